//! The numbered properties of UniStore §5 hold after every step of a run in which links lose and
//! reorder messages and a replica crashes.

use mingle_geo::{DcId, Key, Kind, Op, PartitionId, Timestamp, Vector};
use mingle_model::Value;

use crate::support::{Network, World, key_of};

const DCS: u8 = 3;
const PARTITIONS: u16 = 2;

/// A committed transaction: where, its vector, and the line that it appended to the log of each
/// partition.
struct Committed {
    origin: DcId,
    commit_vec: Vector,
    line: i64,
}

struct Run {
    world: World,
    logs: Vec<Key>,
    committed: Vec<Committed>,
}

impl Run {
    fn new(seed: u64) -> Self {
        let mut world = World::with(DCS, PARTITIONS, seed, |config| {
            config.transaction_ms_max = 200;
            config.forward_after_ms = 100;
        });
        world.network = Network {
            near_us: (50, 2_000),
            far_us: (5_000, 40_000),
            is_fifo: false,
            lost_one_in: 15,
            twice_one_in: 15,
            disk_us: (50, 5_000),
        };
        for dc in 0..DCS {
            world.open_with(dc.into(), dc, |config| config.retry_ms = 50);
        }
        let logs = (0..PARTITIONS).map(|partition| key_of(Kind::Log, partition, PARTITIONS, "log"));
        Self { world, logs: logs.collect(), committed: Vec::new() }
    }

    /// Commits a line to the logs of both partitions at a data center.
    fn commit(&mut self, dc: u8) {
        let line = self.committed.len() as i64;
        for log in &self.logs {
            self.world.write(dc.into(), log, Op::Append(Value::Int(line)));
        }
        let commit_vec = self.world.committed(dc.into());
        self.committed.push(Committed { origin: DcId(dc), commit_vec, line });
    }

    /// Runs for a while, and calls `look` on all running replicas after every few steps.
    fn watch(&mut self, ms: u64, look: &mut dyn FnMut(&Self)) {
        let until_us = self.world.now_us + ms * 1_000;
        while self.world.now_us < until_us {
            for _ in 0..10 {
                self.world.step();
            }
            look(self);
        }
    }

    /// A run with commits everywhere, a lost link, a crash and a restart.
    fn play(mut self, look: &mut dyn FnMut(&Self)) -> Self {
        self.watch(100, look);
        for round in 0..12 {
            match round {
                3 => self.world.down.extend([(0, 2), (2, 0)]),
                5 => self.world.crash(1, 1, false),
                6 => self.world.restart(1, 1),
                9 => self.world.heal(),
                _ => {}
            }
            for dc in (0..DCS).filter(|dc| *dc != 1 || round != 5) {
                self.commit(dc);
                look(&self);
            }
            self.watch(60, look);
        }
        self
    }

    fn replicas(&self) -> impl Iterator<Item = (u8, u16)> {
        let all = self.world.nodes.iter();
        all.filter(|(_, node)| node.replica.is_some()).map(|(at, _)| *at)
    }

    /// True if a replica stores a transaction's operations on its partition.
    fn stores(&self, at: (u8, u16), committed: &Committed) -> bool {
        let everything =
            (0..DCS).fold(Vector::ZERO, |all, dc| all.with(DcId(dc), Timestamp(u64::MAX)));
        let log = &self.logs[usize::from(at.1)];
        let state = self.world.replica(at.0, at.1).inspect(log, &everything).expect("the newest");
        let mut lines = state.as_log().expect("a log").iter();
        lines.any(|line| *line == Value::Int(committed.line))
    }
}

/// Property 1: a replica stores the updates to its partition of all transactions of a data center
/// with timestamps up to its entry of `knownVec`.
#[test]
fn property_1_what_is_known_is_stored() {
    for seed in 1..=3 {
        let mut count = 0;
        Run::new(seed).play(&mut |run| {
            for at in run.replicas() {
                let known_vec = run.world.replica(at.0, at.1).known_vec();
                for committed in &run.committed {
                    let origin = committed.origin;
                    if committed.commit_vec[origin] <= known_vec[origin] {
                        count += 1;
                        let line = committed.line;
                        assert!(run.stores(at, committed), "seed {seed}: {at:?} lacks {line}");
                    }
                }
            }
        });
        assert!(count > 1_000, "{count}");
    }
}

/// Property 2: `knownVec` at any replica of a data center has reached `stableVec` at every other.
#[test]
fn property_2_what_is_stable_is_known_in_all_partitions() {
    for seed in 1..=3 {
        let mut highest = Vector::ZERO;
        Run::new(seed).play(&mut |run| {
            for (dc, partition) in run.replicas() {
                let stable_vec = run.world.replica(dc, partition).stable_vec();
                highest.join(&stable_vec);
                for (_, other) in run.replicas().filter(|(of, _)| *of == dc) {
                    let known_vec = run.world.replica(dc, other).known_vec();
                    let found = format!(
                        "seed {seed}: d{dc}: {stable_vec} at {partition}, {known_vec} at {other}"
                    );
                    assert!(known_vec.covers(&stable_vec), "{found}");
                }
            }
        });
        assert!((0..DCS).all(|dc| highest[DcId(dc)] > Timestamp::ZERO), "{highest}");
    }
}

/// Property 3: `f + 1` data centers, including a replica's own, know every transaction that is
/// uniform at the replica.
#[test]
fn property_3_what_is_uniform_is_known_at_f_plus_1_data_centers() {
    for seed in 1..=3 {
        let mut highest = Vector::ZERO;
        Run::new(seed).play(&mut |run| {
            let has = |dc: u8, origin: DcId, timestamp: Timestamp| {
                // A replica that is down has it on disk, and reports it again after its restart.
                let mut replicas = run.replicas().filter(|(of, _)| *of == dc);
                replicas.all(|(_, at)| run.world.replica(dc, at).known_vec()[origin] >= timestamp)
            };
            for (dc, partition) in run.replicas() {
                let uniform_vec = run.world.replica(dc, partition).uniform_vec();
                highest.join(&uniform_vec);
                for (origin, timestamp) in uniform_vec.iter().take(DCS.into()) {
                    let having = (0..DCS).filter(|other| has(*other, origin, timestamp)).count();
                    let found = format!("seed {seed}: {origin}:{timestamp} at d{dc} p{partition}");
                    assert!(having > 1 && has(dc, origin, timestamp), "{found}, at {having}");
                }
            }
        });
        assert!((0..DCS).all(|dc| highest[DcId(dc)] > Timestamp::ZERO), "{highest}");
    }
}

/// Property 4: transactions whose commit vectors are within `uniformVec` of any replica become
/// visible at all data centers, even if any one of them is lost at that moment.
#[test]
fn property_4_what_is_within_uniform_survives() {
    for lost in 0..DCS {
        let mut run = Run::new(7 + u64::from(lost)).play(&mut |_| {});
        // This transaction is known only at its own data center, and no replica claims that it is
        // uniform.
        run.world.isolate(lost);
        run.commit(lost);
        run.world.run_ms(100);
        let vectors = run.replicas().map(|(dc, at)| run.world.replica(dc, at).uniform_vec());
        let vectors: Vec<Vector> = vectors.collect();
        run.world.lose(lost);
        run.world.run_ms(3_000);
        let is_uniform = |one: &&Committed| vectors.iter().any(|all| all.covers(&one.commit_vec));
        let uniform: Vec<i64> =
            run.committed.iter().filter(is_uniform).map(|one| one.line).collect();
        assert!(uniform.len() > 20 && uniform.len() < run.committed.len(), "{uniform:?}");
        for dc in (0..DCS).filter(|dc| *dc != lost) {
            let client = 100 + u64::from(dc);
            run.world.open(client, dc);
            let logs: Vec<&Key> = run.logs.iter().collect();
            let states = run.world.read(client, &logs).expect("a read");
            for (partition, state) in states.iter().enumerate() {
                let shown: Vec<&Value> = state.as_log().expect("a log").iter().collect();
                for line in &uniform {
                    let at = PartitionId(partition as u16);
                    assert!(shown.contains(&&Value::Int(*line)), "d{dc} {at:?} lacks {line}");
                }
            }
        }
    }
}
