//! Faults and their times, all derived from the seed and the length.

use std::fmt;

use mingle_model::random::Random;

/// Seconds of load before the first fault.
pub const BEFORE: f64 = 20.0;

/// Seconds until the load is back to normal after a fault. The gap after each fault is longer.
pub const RECOVERY: f64 = 10.0;

/// Seconds of one round of all faults, if the run is long enough for several.
const ROUND: f64 = 300.0;

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One `mingle serve` is killed, and started again at the end.
    KillServe,
    /// One `mingle serve` is stopped by SIGSTOP, for longer than its lease.
    StopServe,
    /// The node of Cassandra in the third data center, at which no server stays, answers no requests.
    NodeAway,
    /// Redis is killed, and started again at the end.
    RestartRedis,
    /// All connections to PostgreSQL are cut.
    CutPostgres,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::KillServe => "serve killed",
            Self::StopServe => "serve stopped",
            Self::NodeAway => "node away",
            Self::RestartRedis => "Redis killed",
            Self::CutPostgres => "PostgreSQL cut",
        })
    }
}

/// A fault and its time, in seconds since the load began.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fault {
    pub kind: Kind,
    /// The index of the affected server, if the fault affects one.
    pub server: usize,
    pub begin: f64,
    pub end: f64,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind)?;
        if matches!(self.kind, Kind::KillServe | Kind::StopServe) {
            write!(f, " ({})", ["a", "b"][self.server])?;
        }
        Ok(())
    }
}

/// The engines of the run besides PostgreSQL.
#[derive(Clone, Copy, Debug)]
pub struct Engines {
    pub redis: bool,
    pub cassandra: bool,
}

/// The faults of a run of so many seconds, in the order of their times.
pub fn faults(seconds: f64, engines: Engines, seed: u64) -> Vec<Fault> {
    let mut random = Random::new(seed);
    let rounds = ((seconds - BEFORE) / ROUND).floor().max(1.0);
    let round = (seconds - BEFORE) / rounds;
    let mut faults = Vec::new();
    for number in 0..rounds as usize {
        let mut kinds = vec![Kind::KillServe, Kind::StopServe, Kind::CutPostgres];
        if engines.redis {
            kinds.push(Kind::RestartRedis);
        }
        if engines.cassandra {
            kinds.push(Kind::NodeAway);
        }
        for place in (1..kinds.len()).rev() {
            kinds.swap(place, random.below(place + 1));
        }
        let mut fraction = || random.below(1_000) as f64 / 1_000.0;
        let lengths: Vec<f64> = kinds
            .iter()
            .map(|kind| match kind {
                Kind::KillServe => 2.0 + 2.0 * fraction(),
                Kind::StopServe => 12.0 + 2.0 * fraction(),
                Kind::NodeAway => (round * 0.2).min(60.0),
                Kind::RestartRedis => 1.0 + fraction(),
                Kind::CutPostgres => 0.0,
            })
            .collect();
        let gap = (round - lengths.iter().sum::<f64>()) / kinds.len() as f64;
        let mut begin = BEFORE + number as f64 * round;
        for (kind, length) in kinds.into_iter().zip(lengths) {
            let server = random.below(2);
            faults.push(Fault { kind, server, begin, end: begin + length });
            begin += length + gap;
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_leave_time_to_recover_and_follow_from_the_seed() {
        let all = Engines { redis: true, cassandra: true };
        for seconds in [120.0, 600.0, 1_800.0] {
            for seed in 0..100 {
                let faults = faults(seconds, all, seed);
                assert_eq!(faults, super::faults(seconds, all, seed));
                assert_eq!(faults.len() % 5, 0);
                assert!(faults[0].begin >= BEFORE);
                let next = faults.iter().skip(1).map(|fault| fault.begin).chain([seconds]);
                for (fault, next) in faults.iter().zip(next) {
                    assert!(fault.begin <= fault.end, "seed {seed}: {fault:?}");
                    assert!(next - fault.end > RECOVERY, "seed {seed}: {fault:?}, then {next}");
                }
            }
        }
    }

    #[test]
    fn what_is_left_out_does_not_fail() {
        let none = Engines { redis: false, cassandra: false };
        let faults = faults(120.0, none, 1);
        let of_others = [Kind::RestartRedis, Kind::NodeAway];
        assert!(faults.len() == 3 && faults.iter().all(|fault| !of_others.contains(&fault.kind)));
    }
}
