//! A run as data: the calls and the faults that a seed draws.

use mingle_cops::config::{Config, Handler, Protocol, keep_all};
use mingle_cops::cops::client as cops;
use mingle_cops::flaw::Flaw;
use mingle_cops::locator::Locator;
use mingle_model::random::{Random, mix};

use super::columns::Calls;
pub use super::library::Call;

/// The time in which calls begin and faults happen, in microseconds.
pub const LASTS_US: u64 = 400_000;

/// A call of an actor, which begins once its earlier calls have been answered.
#[derive(Clone, Debug)]
pub struct Step {
    /// The earliest time, in microseconds.
    pub at_us: u64,
    /// The data center of the client.
    pub dc: u8,
    /// The actor.
    pub actor: u32,
    /// The call.
    pub call: Call,
}

/// A fault.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// Packets between two data centers are lost for a time.
    Cut {
        /// The data centers.
        between: (u8, u8),
        /// Begin and end, in microseconds.
        us: (u64, u64),
    },
    /// Packets between the servers of a data center are lost for a time.
    Break {
        /// The data center.
        dc: u8,
        /// Begin and end, in microseconds.
        us: (u64, u64),
    },
    /// A data center is lost for good, with all packets from it that are on their way.
    Lose {
        /// The data center.
        dc: u8,
        /// The time, in microseconds.
        at_us: u64,
    },
}

/// A run: everything in it follows from this.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The seed of the delays of packets.
    pub seed: u64,
    /// The settings of the system.
    pub config: Config,
    /// The longest delay between each two data centers, in microseconds, by their numbers.
    pub delays_us: Vec<u64>,
    /// True if some packets are slow, within data centers too.
    pub is_slow: bool,
    /// The calls.
    pub steps: Vec<Step>,
    /// The faults.
    pub faults: Vec<Fault>,
}

impl Plan {
    /// Draws the plan of a seed.
    pub fn draw(protocol: Protocol, seed: u64) -> Self {
        let mut random = Random::new(mix(seed ^ 0x00c0_9500));
        let (dcs, servers) = (2 + random.below(2) as u8, 1 + random.below(3) as u16);
        let servers = if protocol == Protocol::Log { 1 } else { servers };
        let locator = Locator::new(dcs, servers).expect("these numbers are within the bounds");
        let (trans_time_us, retry_us) = (30_000, 25_000);
        let (handler, flaw): (Handler, _) = (keep_all, None);
        let config = Config { protocol, locator, trans_time_us, retry_us, handler, flaw };
        let delays_us = (0..16).map(|_| 5_000 + random.below(120_000) as u64).collect();
        let actors = match protocol {
            // Reads amid the phases of a transaction need actors that are not busy.
            protocol if protocol.has_columns() => *random.pick(&[1, 3, 8]),
            _ => 1 + random.below(3),
        };
        let keys = 2 + random.below(3) as u32;
        let (mut steps, mut calls) = (Vec::new(), Calls::default());
        let lasts_us = LASTS_US as usize / *random.pick(&[1, 8, 40]);
        for number in 0..usize::from(dcs) * (10 + random.below(20)) {
            let at_us = random.below(lasts_us) as u64;
            let (dc, actor) = (random.below(usize::from(dcs)) as u8, random.below(actors) as u32);
            let value = number as u64 + 1;
            let call = match protocol {
                protocol if protocol.has_columns() => {
                    Call::Eiger(calls.draw(&mut random, keys, value))
                }
                _ => Call::Cops(draw_call(&mut random, protocol, keys, value)),
            };
            steps.push(Step { at_us, dc, actor, call });
        }
        steps.sort_by_key(|step| step.at_us);
        let faults = draw_faults(&mut random, dcs);
        let is_slow = random.one_in(2);
        Self { seed, config, delays_us, is_slow, steps, faults }
    }

    /// Plants a fault in the protocol.
    pub fn with(mut self, flaw: Flaw) -> Self {
        self.config.flaw = Some(flaw);
        self
    }

    /// Returns the longest delay of a packet between two data centers, in microseconds.
    pub fn delay_us(&self, from: u8, to: u8) -> u64 {
        if from == to {
            return 1_500;
        }
        self.delays_us[usize::from(from & 3) * 4 + usize::from(to & 3)]
    }

    /// Returns the number of calls and faults.
    pub(super) fn len(&self) -> usize {
        self.steps.len() + self.faults.len()
    }

    /// Returns the plan without `count` of its calls and faults, from `place` on.
    pub(super) fn without(&self, place: usize, count: usize) -> Self {
        let kept = |index: &usize| *index < place || *index >= place + count;
        let after = self.steps.len();
        let steps = self.steps.iter().enumerate().filter(|(index, _)| kept(index));
        let faults = self.faults.iter().enumerate().filter(|(index, _)| kept(&(index + after)));
        Self {
            steps: steps.map(|(_, step)| step.clone()).collect(),
            faults: faults.map(|(_, fault)| *fault).collect(),
            ..self.clone()
        }
    }
}

fn draw_call(random: &mut Random, protocol: Protocol, keys: u32, value: u64) -> cops::Call {
    let key = |random: &mut Random| random.below(keys as usize) as u32;
    match random.below(5) {
        0 | 1 => cops::Call::Write(key(random), value),
        2 | 3 if protocol == Protocol::CopsRt => {
            let (one, other) = (key(random), key(random));
            cops::Call::ReadTrans(vec![one, other, 0])
        }
        _ => cops::Call::Read(key(random)),
    }
}

fn draw_faults(random: &mut Random, dcs: u8) -> Vec<Fault> {
    let mut faults = Vec::new();
    let period = |random: &mut Random, longest| {
        let begin = random.below(LASTS_US as usize) as u64;
        (begin, begin + random.below(longest) as u64)
    };
    for _ in 0..random.below(3) {
        let one = random.below(usize::from(dcs)) as u8;
        let between = (one, (one + 1) % dcs);
        faults.push(Fault::Cut { between, us: period(random, 200_000) });
    }
    for _ in 0..random.below(3) {
        let dc = random.below(usize::from(dcs)) as u8;
        faults.push(Fault::Break { dc, us: period(random, 60_000) });
    }
    if dcs > 2 && random.one_in(3) {
        let (dc, at_us) = (random.below(usize::from(dcs)) as u8, period(random, 1_000).1);
        faults.push(Fault::Lose { dc, at_us });
    }
    faults
}
