//! How far transactions have come in a data center, and what holds back the rest.

use mingle_geo::{DcId, Delay, DelayedBy, Replica, folding, uniformity};

/// The age above which transactions that are not uniform are held back, in microseconds: many times the time that
/// messages between data centers usually need.
const UNIFORM_US_MAX: u64 = 2_000_000;

/// The same for transactions that are not folded, beyond the time for which a snapshot may be read.
const FOLDED_US_MAX: u64 = 5_000_000;

/// A part of the way that transactions go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// As many data centers have them as survive the loss of others.
    Uniformity,
    /// Their versions have become one, and use no memory any more.
    Folding,
}

impl std::fmt::Display for Stage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Uniformity => "uniformity",
            Self::Folding => "folding",
        })
    }
}

/// The progress of one data center.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// The time at which it was looked at, in microseconds since 1970.
    pub wall_us: u64,
    /// How far each origin's transactions are uniform.
    pub uniform: Vec<Delay>,
    /// How far each origin's transactions are folded.
    pub folded: Vec<Delay>,
    /// The number of operations that are not folded, and their approximate bytes.
    pub unfolded: (usize, usize),
    /// The approximate bytes of transactions that are kept for other data centers.
    pub kept_bytes: usize,
    /// The time for which a snapshot may be read, in microseconds.
    pub readable_us: u64,
    /// The start of the process, in microseconds since 1970: what was held back before it counts from it on.
    pub started_us: u64,
}

/// Transactions of one origin that have not come far for longer than usual.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldBack {
    /// How far they have not come.
    pub stage: Stage,
    /// The data center that began them, or [`DcId::STRONG`].
    pub origin: DcId,
    /// The time from which they are held back, in milliseconds since 1970; none if no transaction has come that far.
    pub since_ms: Option<u64>,
    /// What holds them back, as a clause.
    pub why: String,
}

impl Progress {
    /// Looks at all partitions of a data center.
    pub fn of<'a>(
        partitions: impl Iterator<Item = &'a Replica> + Clone,
        wall_us: u64,
        started_us: u64,
    ) -> Self {
        let sizes = partitions.clone().map(Replica::log_size);
        let kept = partitions.clone().map(|replica| {
            let origins = replica.config().dcs();
            origins.map(|origin| replica.kept_bytes(origin)).sum::<usize>()
        });
        let readable_ms = partitions.clone().map(|it| it.config().transaction_ms_max).max();
        Self {
            wall_us,
            uniform: uniformity(partitions.clone()),
            folded: folding(partitions.clone()),
            unfolded: sizes.fold((0, 0), |(of, bytes), (more, size)| (of + more, bytes + size)),
            kept_bytes: kept.sum(),
            readable_us: readable_ms.unwrap_or_default() * 1_000,
            started_us,
        }
    }

    /// Returns the age of a delay, in milliseconds; none if no transaction has come that far.
    pub fn age_ms(&self, delay: &Delay) -> Option<u64> {
        let reached_us = delay.reached.micros();
        (reached_us > 0).then(|| self.wall_us.saturating_sub(reached_us) / 1_000)
    }

    /// Returns the transactions that are held back for longer than usual.
    pub fn held_back(&self) -> Vec<HeldBack> {
        let stages = [
            (Stage::Uniformity, &self.uniform, UNIFORM_US_MAX),
            (Stage::Folding, &self.folded, self.readable_us.saturating_add(FOLDED_US_MAX)),
        ];
        let held = stages.into_iter().flat_map(|(stage, delays, usual_us)| {
            let late = delays.iter().filter(move |delay| {
                delay.reached.micros().max(self.started_us).saturating_add(usual_us) < self.wall_us
            });
            late.map(move |delay| {
                let reached_us = delay.reached.micros();
                let since_ms = (reached_us > 0).then_some(reached_us / 1_000);
                HeldBack { stage, origin: delay.origin, since_ms, why: why(delay) }
            })
        });
        held.collect()
    }
}

/// Returns what holds back transactions, and what an operator can do.
fn why(delay: &Delay) -> String {
    let origin = delay.origin;
    match &delay.by {
        DelayedBy::Arrival(partition) => {
            format!("nothing later of {origin} has arrived at partition {}", partition.0)
        }
        DelayedBy::Decision(partition) => format!(
            "partition {} has a transaction that is prepared and not decided, or does not go on",
            partition.0
        ),
        DelayedBy::Reports(lacking) => {
            let names: Vec<String> = lacking.iter().map(ToString::to_string).collect();
            format!("of {}, too few have reported that they have it", names.join(", "))
        }
        DelayedBy::Causes => "a transaction before it has causes that are not here yet".to_owned(),
        DelayedBy::Transfer(partition) => {
            format!(
                "partition {} copies its data to or from another data center, or for a backup",
                partition.0
            )
        }
        DelayedBy::Readers => {
            "snapshots that were handed out, or were before a restart, may still be read".to_owned()
        }
        DelayedBy::Certification => {
            "strong transactions wait for a decision, which needs a majority of the data centers"
                .to_owned()
        }
    }
}
