//! The workloads of the thesis's evaluation (§7.2.3, §7.3.3 to §7.3.6).

use mingle_cops::locator::Locator;
use mingle_model::random::{Random, mix};

use super::job::{Job, Kind, Row, Workload};

/// The size of the values of the microbenchmarks, in bytes.
const TINY: usize = 1;

/// One key at a time, drawn alike: the microbenchmark of COPS.
#[derive(Clone, Copy, Debug)]
pub struct Single {
    pub keys: u32,
    pub kind: Kind,
    /// The number of keys that calls access, one after the other for each actor; so an actor that
    /// writes has as many dependencies in COPS-RT.
    pub accessed: u32,
}

impl Workload for Single {
    fn rows(&self) -> Vec<Row> {
        (0..self.keys).map(|key| Row { key, columns: 1, bytes: TINY }).collect()
    }

    fn draw(&self, actor: usize, random: &mut Random) -> Job {
        // Actors have keys of their own, so that none reads another's writes.
        let first = actor as u32 * self.accessed;
        let key = (first + random.below(self.accessed as usize) as u32) % self.keys;
        Job { kind: self.kind, rows: vec![Row { key, columns: 1, bytes: TINY }] }
    }
}

/// The dynamic workload of COPS: actors with a group of keys each, which also access the groups of
/// others, nearer ones more often.
#[derive(Clone, Copy, Debug)]
pub struct Groups {
    /// The number of groups, one for each actor.
    pub count: usize,
    /// The keys of each group.
    pub keys: u32,
    /// The variance of the normal distribution of groups around an actor's own.
    pub variance: f64,
    /// Writes and reads: of as many calls together, so many of each.
    pub writes: usize,
    pub reads: usize,
    /// The size of values in bytes.
    pub bytes: usize,
}

impl Default for Groups {
    /// The thesis's defaults (Table 7.3), but 128 keys of each group instead of 512.
    fn default() -> Self {
        Self { count: 256, keys: 128, variance: 1.0, writes: 1, reads: 1, bytes: TINY }
    }
}

/// Draws from the standard normal distribution (Box and Muller).
fn normal(random: &mut Random) -> f64 {
    let mut uniform = || (random.bits() >> 11) as f64 / (1_u64 << 53) as f64;
    let (radius, angle) = (1.0 - uniform(), uniform());
    (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
}

impl Groups {
    /// Draws the group of a call: steps of width 1 of the normal distribution, which closes to a ring.
    fn group(&self, actor: usize, random: &mut Random) -> usize {
        let step = (normal(random) * self.variance.sqrt()).round() as i64;
        (actor as i64 + step).rem_euclid(self.count as i64) as usize
    }
}

impl Workload for Groups {
    fn rows(&self) -> Vec<Row> {
        let keys = 0..self.count as u32 * self.keys;
        keys.map(|key| Row { key, columns: 1, bytes: self.bytes }).collect()
    }

    fn draw(&self, actor: usize, random: &mut Random) -> Job {
        let first = self.group(actor, random) as u32 * self.keys;
        let key = first + random.below(self.keys as usize) as u32;
        let is_write = random.below(self.writes + self.reads) < self.writes;
        let kind = if is_write { Kind::Write } else { Kind::Read };
        Job { kind, rows: vec![Row { key, columns: 1, bytes: self.bytes }] }
    }
}

/// Draws `count` different keys.
fn distinct(count: usize, keys: u32, random: &mut Random) -> Vec<u32> {
    let mut drawn: Vec<u32> = Vec::with_capacity(count);
    while drawn.len() < count.min(keys as usize) {
        let key = random.below(keys as usize) as u32;
        if !drawn.contains(&key) {
            drawn.push(key);
        }
    }
    drawn
}

/// The dynamic workload of Eiger (Table 7.5).
#[derive(Clone, Copy, Debug)]
pub struct Rows {
    pub keys: u32,
    /// The columns of each key, all of which a call accesses.
    pub columns: u32,
    pub bytes: usize,
    /// The keys of a call.
    pub keys_per_call: usize,
    /// The writes among 1,000 calls.
    pub writes_per_mille: usize,
    /// The transactions among 100 writes.
    pub atomic_percent: usize,
}

impl Default for Rows {
    /// The thesis's defaults, but 60,000 keys instead of a million: of so many keys about as large a part is
    /// written within a measurement as of a million on its machines until dependencies are collected.
    fn default() -> Self {
        let (keys_per_call, writes_per_mille, atomic_percent) = (5, 100, 50);
        Self {
            keys: 60_000,
            columns: 5,
            bytes: 128,
            keys_per_call,
            writes_per_mille,
            atomic_percent,
        }
    }
}

impl Workload for Rows {
    fn rows(&self) -> Vec<Row> {
        (0..self.keys).map(|key| self.row(key)).collect()
    }

    fn draw(&self, _actor: usize, random: &mut Random) -> Job {
        let kind = match random.below(1_000) < self.writes_per_mille {
            false => Kind::Read,
            true if random.below(100) < self.atomic_percent => Kind::Atomic,
            true => Kind::Write,
        };
        let keys = distinct(self.keys_per_call, self.keys, random);
        Job { kind, rows: keys.into_iter().map(|key| self.row(key)).collect() }
    }
}

impl Rows {
    fn row(&self, key: u32) -> Row {
        Row { key, columns: self.columns, bytes: self.bytes }
    }
}

/// Facebook's TAO as the thesis has it (Table 7.5): distributions by their 50th, 90th and 99th
/// percentile, between which the logarithm is linear. That gives the fractions of calls with at most 4
/// and 8 keys that the thesis names (§7.3.7).
#[derive(Clone, Copy, Debug)]
pub struct Facebook {
    pub keys: u32,
    /// True if writes are transactions.
    pub is_atomic: bool,
}

/// The percentiles of value sizes in bytes, columns of a key, and keys of a read.
const SIZES: [f64; 3] = [16.0, 32.0, 4_096.0];
const COLUMNS: [f64; 3] = [1.0, 2.0, 128.0];
const KEYS: [f64; 3] = [1.0, 16.0, 128.0];

/// The writes among 1,000 calls.
const WRITES_PER_MILLE: usize = 2;

/// Returns the value of a distribution at a quantile.
fn quantile([half, nine_tenths, most]: [f64; 3], quantile: f64) -> f64 {
    let between = |low: f64, high: f64, from: f64, to: f64| {
        low * (high / low).powf((quantile - from) / (to - from))
    };
    match quantile {
        ..0.5 => half,
        0.5..0.9 => between(half, nine_tenths, 0.5, 0.9),
        0.9..0.99 => between(nine_tenths, most, 0.9, 0.99),
        _ => most,
    }
}

/// Returns a number from 0 to 1 that is always the same for `seed`.
fn fraction(seed: u64) -> f64 {
    (mix(seed) >> 11) as f64 / (1_u64 << 53) as f64
}

impl Facebook {
    /// Returns a row, with the same columns and sizes each time.
    fn row(key: u32) -> Row {
        let columns = quantile(COLUMNS, fraction(u64::from(key) << 1)) as u32;
        let bytes = quantile(SIZES, fraction(u64::from(key) << 1 | 1)) as usize;
        Row { key, columns, bytes }
    }
}

impl Workload for Facebook {
    fn rows(&self) -> Vec<Row> {
        (0..self.keys).map(Self::row).collect()
    }

    fn draw(&self, _actor: usize, random: &mut Random) -> Job {
        let is_write = random.below(1_000) < WRITES_PER_MILLE;
        let (kind, count) = match is_write {
            true if self.is_atomic => (Kind::Atomic, 1),
            true => (Kind::Write, 1),
            false => (Kind::Read, quantile(KEYS, fraction(random.bits())) as usize),
        };
        let keys = distinct(count, self.keys, random);
        Job { kind, rows: keys.into_iter().map(Self::row).collect() }
    }
}

/// Writes to a number of servers, with as many keys at each (Figure 7.6).
#[derive(Clone, Debug)]
pub struct Spread {
    rows: Rows,
    /// The keys of each server of the first data center, for the system that is measured.
    by_server: Vec<Vec<u32>>,
    servers: usize,
    keys_per_server: usize,
    kind: Kind,
}

impl Spread {
    /// Creates the workload for a locator of keys.
    pub fn new(
        locator: Locator,
        (servers, keys_per_server): (usize, usize),
        kind: Kind,
        server_of: impl Fn(u32) -> u16,
    ) -> Self {
        let rows = Rows { keys: 5_000, ..Rows::default() };
        let mut by_server = vec![Vec::new(); locator.servers(0).count()];
        for key in 0..rows.keys {
            by_server[usize::from(server_of(key))].push(key);
        }
        Self { rows, by_server, servers, keys_per_server, kind }
    }
}

impl Workload for Spread {
    fn rows(&self) -> Vec<Row> {
        self.rows.rows()
    }

    fn draw(&self, _actor: usize, random: &mut Random) -> Job {
        let servers = distinct(self.servers, self.by_server.len() as u32, random);
        let rows = servers.into_iter().flat_map(|server| {
            let keys = &self.by_server[server as usize];
            let places = distinct(self.keys_per_server, keys.len() as u32, random);
            places.into_iter().map(|place| self.rows.row(keys[place as usize])).collect::<Vec<_>>()
        });
        Job { kind: self.kind, rows: rows.collect() }
    }
}

/// One reader of two keys of different servers, and one writer of both (Table 7.4).
#[derive(Clone, Copy, Debug)]
pub struct Pair {
    pub keys: [u32; 2],
    /// The keys that each call accesses.
    pub count: usize,
    pub kind: Kind,
    /// True if the second actor writes both keys, in transactions.
    pub is_disturbed: bool,
}

impl Workload for Pair {
    fn rows(&self) -> Vec<Row> {
        self.keys.map(|key| Row { key, columns: 1, bytes: TINY }).into()
    }

    fn draw(&self, actor: usize, _random: &mut Random) -> Job {
        if self.is_disturbed && actor > 0 {
            return Job { kind: Kind::Atomic, rows: self.rows() };
        }
        Job { kind: self.kind, rows: self.rows()[..self.count].to_vec() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facebook_has_the_percentiles_and_fractions_of_the_thesis() {
        let at = |of, quantiles: [f64; 3]| quantiles.map(|one| quantile(of, one) as u32);
        assert_eq!(at(SIZES, [0.5, 0.9, 0.99]), [16, 32, 4_096]);
        assert_eq!(at(COLUMNS, [0.5, 0.9, 0.99]), [1, 2, 128]);
        assert_eq!(at(KEYS, [0.5, 0.9, 0.99]), [1, 16, 128]);
        // 73 % of the operations have at most 4 keys, and 83 % at most 8.
        let share = |most: u32| {
            let all = (0..10_000).map(|step| quantile(KEYS, f64::from(step) / 1e4) as u32);
            all.filter(|keys| *keys <= most).count() as f64 / 1e4
        };
        assert!((share(4) - 0.73).abs() < 0.03, "{}", share(4));
        assert!((share(8) - 0.83).abs() < 0.03, "{}", share(8));
    }

    #[test]
    fn groups_are_those_of_the_actor_without_variance_and_all_alike_with_much() {
        let mut random = Random::new(8);
        let groups = Groups { count: 16, variance: 0.0, ..Groups::default() };
        assert!((0..100).all(|_| groups.group(3, &mut random) == 3));
        let groups = Groups { variance: 512.0, ..groups };
        let mut counts = [0; 16];
        (0..16_000).for_each(|_| counts[groups.group(3, &mut random)] += 1);
        assert!(counts.iter().all(|count| (700..1_300).contains(count)), "{counts:?}");
    }

    #[test]
    fn a_spread_write_has_its_keys_at_as_many_servers() {
        let locator = Locator::new(2, 8).expect("it is within bounds");
        let server = |key| locator.server(0, key).server();
        let spread = Spread::new(locator, (4, 5), Kind::Atomic, server);
        let mut random = Random::new(2);
        for _ in 0..200 {
            let rows = spread.draw(0, &mut random).rows;
            let mut keys: Vec<u32> = rows.iter().map(|row| row.key).collect();
            let mut servers: Vec<u16> = keys.iter().map(|key| server(*key)).collect();
            keys.sort_unstable();
            keys.dedup();
            servers.sort_unstable();
            servers.dedup();
            assert_eq!((keys.len(), servers.len()), (20, 4));
        }
    }
}
