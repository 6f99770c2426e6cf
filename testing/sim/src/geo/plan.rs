//! A seed's plan: the setup and all events, as data.

use mingle_geo::certify::{CertifierConfig, GroupConfig};
use mingle_geo::flaw::{Flaw, Planted};
use mingle_geo::{Config, DcId, PartitionId, SessionConfig};
use mingle_geo_node::{Limits, Node as Process, Setup as ProcessSetup};
use mingle_model::random::{Random, mix};

use super::fault::{Event, Fault, Kept, Place, Shape};
use super::setup::{Focus, Setup, weighted, within};

/// The plan of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The seed.
    pub seed: u64,
    /// The planted mistake, if there is one.
    pub flaw: Option<Flaw>,
    /// The simulated system.
    pub setup: Setup,
    /// The events. The plan stays valid if some of them are removed.
    pub schedule: Vec<Event>,
}

impl Plan {
    /// Returns the plan of a seed.
    pub fn draw(seed: u64) -> Self {
        Self::scaled(seed, 100)
    }

    /// Returns a plan with `percent` of the usual length.
    pub fn scaled(seed: u64, percent: usize) -> Self {
        // A third of the seeds has causal transactions alone.
        Self::drawn(seed, percent, seed % 3 != 1)
    }

    pub(super) fn drawn(seed: u64, percent: usize, has_strong: bool) -> Self {
        let mut random = Random::new(mix(seed));
        let mut setup = Setup::draw(&mut random, percent);
        if has_strong {
            setup = setup.with_strong(&mut Random::new(mix(seed ^ 0x57_0126)));
        }
        let mut schedule = draw_faults(&mut random, &setup, percent);
        super::fence::draw(seed, &setup, &mut schedule);
        super::rejoin::draw(seed, &setup, &mut schedule);
        super::ways::draw(seed, &setup, &mut schedule);
        super::apart::draw(seed, &mut setup, &mut schedule);
        for index in 0..setup.acts {
            schedule.extend((0..setup.clients).map(|client| Event::Act { client, index }));
        }
        Self { seed, flaw: None, setup, schedule }
    }

    /// Returns the same plan with a planted mistake.
    pub fn with(self, flaw: Option<Flaw>) -> Self {
        Self { flaw, ..self }
    }

    fn planted(&self) -> Planted {
        self.flaw.map_or_else(Planted::default, Planted::from)
    }

    fn config_of(&self, dc: u8, partition: u16) -> Config {
        Config { planted: self.planted(), ..self.setup.config_of(dc, partition) }
    }

    fn group_config_of(&self, dc: u8, partition: u16) -> GroupConfig {
        let group = &self.setup.strong.group;
        let (partition, planted) = (PartitionId(partition), self.planted());
        let certifier = CertifierConfig { partition, planted, ..group.certifier.clone() };
        GroupConfig { dc: DcId(dc), certifier, ..group.clone() }
    }

    /// Creates the replica of an incarnation from the records on its disk; `is_new` is false if the
    /// disk has lost its data.
    /// Restores the process of a machine from the entries on its disk.
    pub(super) fn process<'a>(
        &self,
        (dc, partition, incarnation): (u8, u16, u32),
        entries: impl IntoIterator<Item = &'a [u8]>,
        is_new: bool,
    ) -> Process {
        let config = Config { incarnation, ..self.config_of(dc, partition) };
        let group = GroupConfig { is_new, incarnation, ..self.group_config_of(dc, partition) };
        let limits = Limits { checkpoint_after: self.setup.network.compact_after };
        let process = Process::restore(DcId(dc), limits, [ProcessSetup { config, group }], entries);
        process.expect("the settings are sound, and the disk has what was written")
    }

    pub(super) fn session_config(&self, id: u64, dc: u8, is_durable: bool) -> SessionConfig {
        let config = self.setup.session_config(id, dc, is_durable);
        SessionConfig { planted: self.planted(), ..config }
    }
}

/// The kinds of faults that can be drawn.
#[derive(Clone, Copy)]
enum Kind {
    Crash,
    CrashDc,
    FailedWrite,
    FullDisk,
    Pause,
    Slow,
    Reconnect,
    Cut,
    Delay,
    Lossy,
    Step,
    Vanish,
    Unplug,
}

const KINDS: [Kind; 13] = [
    Kind::Crash,
    Kind::CrashDc,
    Kind::FailedWrite,
    Kind::FullDisk,
    Kind::Pause,
    Kind::Slow,
    Kind::Reconnect,
    Kind::Cut,
    Kind::Delay,
    Kind::Lossy,
    Kind::Step,
    Kind::Vanish,
    Kind::Unplug,
];

/// Returns the weight of each kind, in the order of [`KINDS`].
fn weights(focus: Focus) -> [usize; 13] {
    match focus {
        Focus::Links => [1, 0, 0, 0, 1, 1, 10, 3, 5, 5, 0, 1, 6],
        Focus::Crashes => [12, 3, 3, 0, 3, 0, 2, 1, 0, 1, 0, 2, 1],
        Focus::Disks => [3, 1, 8, 6, 1, 3, 0, 0, 0, 0, 0, 1, 0],
        Focus::Clocks | Focus::FarClocks => [3, 1, 0, 0, 2, 1, 1, 1, 1, 0, 12, 1, 0],
        Focus::Cuts => [1, 0, 0, 0, 1, 0, 2, 14, 2, 1, 0, 1, 1],
        Focus::Away => [2, 1, 0, 0, 1, 0, 2, 6, 1, 1, 0, 1, 1],
        Focus::Coordinators => [4, 1, 1, 1, 3, 2, 1, 1, 0, 2, 0, 10, 4],
        Focus::Calm | Focus::Mixed | Focus::Loss | Focus::Helpers | Focus::Long => {
            [5, 1, 2, 1, 3, 2, 3, 5, 2, 2, 2, 3, 3]
        }
    }
}

fn draw_faults(random: &mut Random, setup: &Setup, percent: usize) -> Vec<Event> {
    let focus = setup.focus;
    let usual = match focus {
        Focus::Calm => random.below(4),
        Focus::Long | Focus::FarClocks => 20 + random.below(40),
        _ => 60 + random.below(120),
    };
    let count = (usual * percent).div_ceil(100);
    let choices: Vec<(usize, Kind)> = weights(focus).into_iter().zip(KINDS).collect();
    let mut draw = Draw { random, setup };
    let mut events = Vec::new();
    for _ in 0..count {
        let kind = weighted(draw.random, &choices);
        events.push(draw.event(kind));
    }
    if focus == Focus::Away {
        events.extend((0..=draw.random.below(2)).map(|_| draw.away()));
    }
    let may_lose = focus == Focus::Loss || focus == Focus::Mixed && draw.random.one_in(10);
    if may_lose {
        let most = usize::from(setup.config.f);
        let count = if most == 0 { 0 } else { 1 + draw.random.below(most) };
        if count > 0 && setup.strong.is_some() && draw.random.one_in(2) {
            draw.lose_lone(&mut events);
        } else if draw.random.one_in(2) {
            events.extend((0..count).map(|_| draw.loss()));
        } else {
            draw.lose_together(count, &mut events);
        }
    }
    events.sort_by_key(|event| match event {
        Event::Fault { at_us, .. } => *at_us,
        Event::Act { .. } => 0,
    });
    events
}

struct Draw<'a> {
    random: &'a mut Random,
    setup: &'a Setup,
}

impl Draw<'_> {
    fn dc(&mut self) -> u8 {
        self.random.below(usize::from(self.setup.config.dc_count)) as u8
    }

    fn partition(&mut self) -> u16 {
        self.random.below(usize::from(self.setup.config.partition_count)) as u16
    }

    /// Draws two data centers.
    fn two(&mut self) -> (u8, u8) {
        let (a, count) = (self.dc(), self.setup.config.dc_count);
        let b = (a + 1 + self.random.below(usize::from(count) - 1) as u8) % count;
        (a, b)
    }

    fn place(&mut self) -> Place {
        let dc = self.dc();
        if self.random.one_in(5) { Place::Dc(dc) } else { Place::Replica(dc, self.partition()) }
    }

    fn at(&mut self, fault: Fault, lasts_us: u64) -> Event {
        let at_us = within(self.random, (100_000, self.setup.lasts_us));
        Event::Fault { at_us, lasts_us, fault }
    }

    fn shape(&mut self) -> Shape {
        let (a, b) = self.two();
        match self.random.below(8) {
            0..=2 => Shape::Off(a),
            3 => {
                let all = (1u8 << self.setup.config.dc_count) - 1;
                Shape::Halves(self.random.bits() as u8 & all)
            }
            4 => Shape::Pair(a, b),
            5 => Shape::OneWay(a, b),
            6 => Shape::Siblings(a, b, self.partition()),
            _ => Shape::Inside(a, self.partition()),
        }
    }

    fn event(&mut self, kind: Kind) -> Event {
        let (dc, partition) = (self.dc(), self.partition());
        let short_us = within(self.random, (1_000, 200_000));
        let long_us = within(self.random, (50_000, 1_500_000));
        let kept = *self.random.pick(&[Kept::Nothing, Kept::Torn, Kept::Torn, Kept::All]);
        match kind {
            Kind::Crash => {
                let lasts_us = if self.random.one_in(2) { short_us } else { long_us };
                self.at(Fault::Crash { place: Place::Replica(dc, partition), kept }, lasts_us)
            }
            Kind::CrashDc => self.at(Fault::Crash { place: Place::Dc(dc), kept }, long_us),
            Kind::FailedWrite => self.at(Fault::FailedWrite { dc, partition }, short_us),
            Kind::FullDisk => self.at(Fault::FullDisk { dc, partition }, long_us),
            Kind::Pause => {
                let place = self.place();
                self.at(Fault::Pause { place }, short_us)
            }
            Kind::Slow => {
                let by_us = within(self.random, (2_000, 60_000));
                self.at(Fault::Slow { dc, partition, by_us }, long_us)
            }
            Kind::Reconnect => {
                let b = self.dc();
                self.at(Fault::Reconnect { a: dc, b }, 0)
            }
            Kind::Cut => {
                let (shape, is_held) = (self.shape(), self.random.one_in(4));
                self.at(Fault::Cut { shape, is_held }, long_us)
            }
            Kind::Delay => {
                let (a, b) = self.two();
                let by_us = within(self.random, (10_000, 300_000));
                self.at(Fault::Delay { a, b, by_us }, long_us)
            }
            Kind::Lossy => {
                let one_in = *self.random.pick(&[4, 10, 30]);
                self.at(Fault::Lossy { one_in }, long_us)
            }
            Kind::Step => self.step(),
            Kind::Vanish => {
                let client = self.random.below(self.setup.clients);
                self.at(Fault::Vanish { client }, 0)
            }
            Kind::Unplug => {
                let client = self.random.below(self.setup.clients);
                self.at(Fault::Unplug { client }, 0)
            }
        }
    }

    fn step(&mut self) -> Event {
        let most_us: u64 = match self.setup.focus {
            Focus::FarClocks => 20_000_000,
            Focus::Clocks => *self.random.pick(&[20_000, 400_000, 1_500_000]),
            _ => *self.random.pick(&[5_000, 100_000, 500_000]),
        };
        let by_us = within(self.random, (0, 2 * most_us)) as i64 - most_us as i64;
        let place = self.place();
        self.at(Fault::Step { place, by_us }, 0)
    }

    /// Takes a data center away for a good part of the run.
    fn away(&mut self) -> Event {
        let third_us = self.setup.lasts_us / 3;
        let at_us = within(self.random, (third_us / 4, 2 * third_us));
        let lasts_us = within(self.random, (third_us, 2 * third_us));
        let dc = self.dc();
        let fault = if self.random.one_in(3) {
            Fault::Crash { place: Place::Dc(dc), kept: Kept::Torn }
        } else {
            Fault::Cut { shape: Shape::Off(dc), is_held: false }
        };
        Event::Fault { at_us, lasts_us, fault }
    }

    fn loss(&mut self) -> Event {
        let lasts_us = self.setup.lasts_us;
        let at_us = within(self.random, (lasts_us / 4, lasts_us * 9 / 10));
        Event::Fault { at_us, lasts_us: 0, fault: Fault::Lose { dc: self.dc() } }
    }

    /// Loses a data center while one of its partitions is behind in replicating to others;
    /// transactions of its other partitions may depend on the missing ones (UniStore, Figure 2).
    fn lose_lone(&mut self, events: &mut Vec<Event>) {
        let (dc, partition) = (self.dc(), self.partition());
        let lasts_us = within(self.random, (100_000, 900_000));
        let at_us = within(self.random, (self.setup.lasts_us / 4, self.setup.lasts_us * 9 / 10));
        let fault = Fault::Cut { shape: Shape::Lone(dc, partition), is_held: false };
        events.push(Event::Fault { at_us, lasts_us, fault });
        let at_us = at_us + within(self.random, (lasts_us / 2, lasts_us));
        events.push(Event::Fault { at_us, lasts_us: 0, fault: Fault::Lose { dc } });
    }

    /// Cuts off several data centers together and then loses them; data that only they have is
    /// gone.
    fn lose_together(&mut self, count: usize, events: &mut Vec<Event>) {
        let (first, dc_count) = (self.dc(), self.setup.config.dc_count);
        let dcs: Vec<u8> = (0..count).map(|next| (first + next as u8) % dc_count).collect();
        let set = dcs.iter().fold(0, |set, dc| set | 1 << dc);
        let alone_us = within(self.random, (20_000, 900_000));
        let lasts_us = self.setup.lasts_us;
        let at_us = within(self.random, (lasts_us / 4, lasts_us * 9 / 10));
        let cut = Fault::Cut { shape: Shape::Halves(set), is_held: false };
        events.push(Event::Fault { at_us, lasts_us: alone_us, fault: cut });
        for dc in dcs {
            let at_us = at_us + within(self.random, (alone_us * 3 / 4, alone_us));
            events.push(Event::Fault { at_us, lasts_us: 0, fault: Fault::Lose { dc } });
        }
    }
}
