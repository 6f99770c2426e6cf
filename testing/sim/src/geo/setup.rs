//! The system that a seed sets up.

use mingle_geo::{Baseline, Config, DcId, Key, Kind, PartitionId, SessionConfig};
use mingle_model::Origin;
use mingle_model::random::Random;

use super::strong::Strong;

/// The main subject of a run. Each has its own settings and faults, so that a case that is rare in
/// a mixed run is common in some focus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Focus {
    /// Hardly any fault.
    Calm,
    /// All faults.
    Mixed,
    /// Links that break, lose, repeat, reorder and delay.
    Links,
    /// Replicas and data centers that crash.
    Crashes,
    /// Disks that fail, fill up and are slow.
    Disks,
    /// Clocks that are off, drift and step.
    Clocks,
    /// Clocks that are off by more than is accepted.
    FarClocks,
    /// Networks that part.
    Cuts,
    /// Data centers that are away for long, with small logs.
    Away,
    /// Data centers that are lost for good.
    Loss,
    /// Clients that vanish, mostly in the middle of a commit.
    Coordinators,
    /// Operations that several clients run and that count once.
    Helpers,
    /// Long transactions over snapshots that may be folded meanwhile.
    Long,
}

/// All focuses with their weights.
const FOCUSES: [(usize, Focus); 13] = [
    (4, Focus::Calm),
    (20, Focus::Mixed),
    (10, Focus::Links),
    (12, Focus::Crashes),
    (8, Focus::Disks),
    (8, Focus::Clocks),
    (2, Focus::FarClocks),
    (10, Focus::Cuts),
    (8, Focus::Away),
    (10, Focus::Loss),
    (10, Focus::Coordinators),
    (8, Focus::Helpers),
    (6, Focus::Long),
];

/// A range of times in microseconds, both ends included.
pub type Range = (u64, u64);

/// Draws a value from a range.
pub(super) fn within(random: &mut Random, (least, most): Range) -> u64 {
    least + random.bits() % (most - least + 1)
}

/// Draws one of the choices by weight.
pub(super) fn weighted<T: Copy>(random: &mut Random, choices: &[(usize, T)]) -> T {
    let total = choices.iter().map(|(weight, _)| weight).sum();
    let mut left = random.below(total);
    for (weight, choice) in choices {
        if left < *weight {
            return *choice;
        }
        left -= weight;
    }
    unreachable!("what is left is below the total")
}

/// The behavior of the network and the disks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Network {
    /// The delay of a message inside a data center.
    pub near_us: Range,
    /// The delay of a message between two data centers.
    pub far_us: Range,
    /// True if messages of one connection keep their order.
    pub is_fifo: bool,
    /// One message in this many is lost, and one in this many arrives twice; 0 for none.
    pub lossy_one_in: usize,
    /// The duration of a disk write.
    pub disk_us: Range,
    /// A log is rewritten once it has this many records.
    pub compact_after: usize,
}

/// The error of a machine's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Skew {
    /// The offset at the start, in microseconds.
    pub by_us: i64,
    /// The drift in microseconds per second.
    pub drift_us: i64,
    /// The granularity: the clock shows only multiples of this, in microseconds.
    pub grain_us: u64,
}

impl Default for Skew {
    fn default() -> Self {
        Self { by_us: 0, drift_us: 0, grain_us: 1 }
    }
}

/// The simulated system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// The main subject of the run.
    pub focus: Focus,
    /// The simulated system of UniStore's evaluation.
    pub system: Baseline,
    /// The settings of the replica of the first partition in the first data center.
    pub config: Config,
    /// The network and the disks.
    pub network: Network,
    /// The clock error of each replica, data center by data center.
    pub skews: Vec<Skew>,
    /// The number of clients.
    pub clients: usize,
    /// The clock error of each client.
    pub client_skews: Vec<Skew>,
    /// The number of acts of each client.
    pub acts: usize,
    /// The think time between two acts.
    pub think_us: Range,
    /// The think time inside a transaction.
    pub pause_us: Range,
    /// The interval at which the floors of operation ids are raised, in microseconds; 0 for never.
    pub floor_every_us: u64,
    /// The number of helped transactions by which floors lag behind.
    pub floor_lag: u64,
    /// The time during which faults begin, in microseconds.
    pub lasts_us: u64,
    /// The items: those without operation ids first, accounts last.
    pub keys: Vec<Key>,
    /// The number of items without operation ids.
    pub plain_keys: usize,
    /// The number of items that are accounts.
    pub accounts: usize,
    /// The settings of strong transactions.
    pub strong: Strong,
    /// The `retry_ms` of the sessions.
    pub retry_ms: u64,
    /// The `deadline_ms` of the sessions.
    pub deadline_ms: u64,
    /// The `handout_ms_max` of the sessions.
    pub handout_ms_max: u64,
}

impl Setup {
    /// Draws the setup of a seed; `scale` is the percentage of the usual number of acts.
    pub(super) fn draw(random: &mut Random, scale: usize) -> Self {
        let focus = weighted(random, &FOCUSES);
        let dc_count = if random.one_in(4) { 5 } else { 3 };
        let partition_count = draw_partitions(random, focus);
        let config = draw_config(random, focus, dc_count, partition_count);
        let clients = 12 + random.below(25);
        let acts = ((2_600 + random.below(3_000)) * scale / 100 / clients).max(3);
        let lasts_us = within(random, (4_000_000, 9_000_000)) * scale as u64 / 100;
        let lasts_us = lasts_us.max(800_000);
        let think_us = lasts_us / acts as u64;
        let replicas = usize::from(dc_count) * usize::from(partition_count);
        let skews = draw_skews(random, focus, replicas, usize::from(partition_count));
        let client_skews = (0..clients).map(|_| draw_client_skew(random, focus)).collect();
        let (keys, plain_keys) = draw_keys(random, focus, partition_count);
        let is_long = focus == Focus::Long;
        let network = draw_network(random, focus);
        Self {
            focus,
            system: Baseline::UniStore,
            strong: Strong::none(dc_count, network.far_us),
            network,
            skews,
            clients,
            client_skews,
            acts,
            think_us: (think_us / 8, think_us),
            floor_every_us: if random.one_in(2) { within(random, (30_000, 400_000)) } else { 0 },
            floor_lag: within(random, (0, 6)),
            pause_us: if is_long { (0, 900_000) } else { (0, think_us / 8) },
            lasts_us,
            keys,
            plain_keys,
            accounts: 0,
            retry_ms: within(random, (60, 300)),
            deadline_ms: within(random, (1_000, 4_000)),
            handout_ms_max: *random.pick(&[5, 20, 50, 150]),
            config,
        }
    }

    /// Adds strong transactions and the accounts for them.
    pub(super) fn with_strong(mut self, random: &mut Random) -> Self {
        self.accounts = 1 + random.below(3);
        let names = (0..self.accounts).map(|at| format!("account-{at}"));
        self.keys.extend(names.map(|name| Key::new(Kind::Counter, name)));
        self.strong = Strong::draw(random, self.config.dc_count, self.network.far_us);
        if random.one_in(2) {
            self.config.strong_only.push(self.keys[0].name.to_vec());
        }
        if self.focus == Focus::Helpers {
            // One item of any type, in a pattern that is more than a beginning.
            self.config.strong_only.push(b"plain-[i]*-0".to_vec());
        }
        self
    }

    /// Returns the settings of one replica.
    pub fn config_of(&self, dc: u8, partition: u16) -> Config {
        Config { dc: DcId(dc), partition: PartitionId(partition), ..self.config.clone() }
    }

    /// Returns the settings of a session.
    pub fn session_config(&self, id: u64, dc: u8, is_durable: bool) -> SessionConfig {
        let config = SessionConfig {
            is_durable,
            retry_ms: self.retry_ms,
            deadline_ms: self.deadline_ms,
            handout_ms_max: self.handout_ms_max,
            ..SessionConfig::new(Origin(id.into()), DcId(dc), self.config.partition_count)
        };
        self.system.session_config(config)
    }

    /// Returns the accounts.
    pub fn accounts(&self) -> &[Key] {
        &self.keys[self.keys.len() - self.accounts..]
    }

    /// True if replicas may refuse writes because logs are full.
    pub(super) fn has_small_limits(&self) -> bool {
        self.config.log_bytes_max < 1 << 20
    }

    /// Returns the largest difference between the clocks of two machines, clients included:
    /// microseconds at the start, and additional microseconds per second.
    pub fn spread_us(&self) -> (u64, u64) {
        let skews = self.skews.iter().chain(&self.client_skews);
        let by = skews.clone().map(|skew| skew.by_us);
        let drift = skews.map(|skew| skew.drift_us);
        let spread = |least: Option<i64>, most: Option<i64>| {
            most.unwrap_or(0).max(0).abs_diff(least.unwrap_or(0).min(0))
        };
        (spread(by.clone().min(), by.max()), spread(drift.clone().min(), drift.max()))
    }
}

fn draw_partitions(random: &mut Random, focus: Focus) -> u16 {
    if focus == Focus::FarClocks {
        return 1 + random.below(2) as u16;
    }
    let range = weighted(random, &[(6, (1, 2)), (10, (2, 4)), (3, (5, 8)), (1, (9, 16))]);
    within(random, range) as u16
}

fn draw_config(random: &mut Random, focus: Focus, dc_count: u8, partition_count: u16) -> Config {
    let (dcs, partitions) = (u64::from(dc_count), u64::from(partition_count));
    // The number of messages of one round of ticks.
    let round = dcs * partitions * (partitions + dcs - 2);
    let mut tick_ms = (round / 25).clamp(5, 60) * within(random, (1, 2));
    if focus == Focus::FarClocks {
        tick_ms *= 4;
    }
    let mut config = Config::new(DcId(0), dc_count, PartitionId(0), partition_count);
    if random.one_in(6) {
        config.f = random.below(usize::from(config.f) + 1) as u8;
    }
    config.tick_ms = tick_ms;
    config.tick_idle_ms = tick_ms * within(random, (1, 4));
    config.clock_ahead_ms_max = 5_000;
    config.clock_ceiling_ms = *random.pick(&[5, 50, 500, 3_000]);
    config.transaction_ms_max = match focus {
        Focus::Long => within(random, (200, 600)),
        _ => *random.pick(&[300, 1_000, 2_000]),
    };
    config.outcome_ms_max = config.transaction_ms_max.max(*random.pick(&[3_000, 8_000, 60_000]));
    config.wait_ms_max = if random.one_in(3) { 60 } else { within(random, (300, 3_000)) };
    config.resolve_after_ms = within(random, (50, 400));
    config.forward_after_ms = within(random, (100, 600));
    let has_small_logs = focus == Focus::Away || random.one_in(5);
    if has_small_logs {
        config.forward_bytes_max = *random.pick(&[0, 2_000, 10_000]);
    }
    if focus != Focus::Calm && random.one_in(12) {
        config.log_bytes_max = within(random, (30_000, 90_000)) as usize;
    }
    config
}

fn draw_network(random: &mut Random, focus: Focus) -> Network {
    let far_us = *random.pick(&[
        (500, 700),
        (5_000, 9_000),
        (10_000, 60_000),
        (40_000, 41_000),
        (80_000, 140_000),
    ]);
    let has_bad_links = match focus {
        Focus::Links => random.one_in(2),
        Focus::Calm => false,
        _ => random.one_in(8),
    };
    Network {
        near_us: *random.pick(&[(50, 100), (50, 3_000), (200, 300)]),
        far_us,
        is_fifo: !(has_bad_links && random.one_in(2)),
        lossy_one_in: if has_bad_links { *random.pick(&[20, 50, 200]) } else { 0 },
        disk_us: *random.pick(&[(20, 60), (100, 500), (100, 8_000), (4_000, 12_000)]),
        compact_after: *random.pick(&[150, 400, 1_500]),
    }
}

fn draw_skews(random: &mut Random, focus: Focus, count: usize, partitions: usize) -> Vec<Skew> {
    let most_us = match focus {
        Focus::Clocks => *random.pick(&[300_000, 1_500_000, 4_000_000]),
        Focus::FarClocks => *random.pick(&[6_000_000, 15_000_000, 60_000_000]),
        _ => *random.pick(&[0, 0, 2_000, 20_000, 200_000]),
    };
    let drift_most = if focus == Focus::Clocks { 20_000 } else { *random.pick(&[0, 100, 2_000]) };
    let mut signed = |most: i64| random.below(2 * most as usize + 1) as i64 - most;
    // The machines of one data center mostly use one time source.
    let is_by_replica = signed(2) == 0;
    let grain_us = if signed(2) == 0 { 10_000 } else { 1 };
    let mut skew = Skew::default();
    let skews = (0..count).map(|index| {
        if is_by_replica || index % partitions == 0 {
            skew = Skew { by_us: signed(most_us / 2), drift_us: signed(drift_most), grain_us };
        }
        skew
    });
    skews.collect()
}

fn draw_client_skew(random: &mut Random, focus: Focus) -> Skew {
    let most_us: i64 = match focus {
        Focus::FarClocks => *random.pick(&[0, 1_000_000, 20_000_000]),
        Focus::Clocks => 1_000_000,
        _ => *random.pick(&[0, 1_000, 100_000]),
    };
    let by_us = random.below(2 * most_us as usize + 1) as i64 - most_us;
    Skew { by_us, drift_us: 0, grain_us: 1 }
}

/// Draws a few items of each type, and some for operations with ids.
fn draw_keys(random: &mut Random, focus: Focus, partitions: u16) -> (Vec<Key>, usize) {
    const KINDS: [Kind; 5] = [Kind::Register, Kind::Counter, Kind::Set, Kind::Map, Kind::Log];
    let is_helped = focus == Focus::Helpers;
    let most = usize::from(partitions).min(6) + 2;
    let each = 1 + random.below(most);
    let named = |kind: Kind, name: &str, count: usize| {
        let names = (0..count).map(|index| format!("{name}-{kind}-{index}"));
        names.map(|name| Key::new(kind, name)).collect::<Vec<Key>>()
    };
    let mut keys: Vec<Key> = KINDS.iter().flat_map(|kind| named(*kind, "plain", each)).collect();
    keys.extend(named(Kind::Item, "plain", each.min(3)));
    let plain_keys = keys.len();
    let helped = if is_helped { 1 + random.below(3) } else { random.below(2) };
    keys.extend(KINDS.iter().flat_map(|kind| named(*kind, "helped", helped)));
    if is_helped {
        keys.extend(named(Kind::Item, "helped", helped));
    }
    (keys, plain_keys)
}
