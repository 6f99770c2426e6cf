//! What holds back uniformity and folding, and since when.
//!
//! A vector's entry is a time: nothing of that origin after it is uniform, or folded. So its age says since when it
//! is held back, and no further state is needed. Why it is held back follows from the vectors that this entry
//! is the least of.

use super::Replica;
use crate::timestamp::{DcId, PartitionId, Timestamp};

/// How far the transactions of one origin have come in a data center, and what holds back the rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delay {
    /// The origin; [`DcId::STRONG`] for strong transactions.
    pub origin: DcId,
    /// The timestamp up to which they have come; none has if it is zero.
    pub reached: Timestamp,
    /// What holds back the rest.
    pub by: DelayedBy,
}

/// What holds back transactions of an origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DelayedBy {
    /// This partition has nothing later of the origin.
    Arrival(PartitionId),
    /// This partition of the origin itself has a transaction that is prepared and not decided, or is behind.
    Decision(PartitionId),
    /// Too few data centers have reported that they have it: these have not.
    Reports(Vec<DcId>),
    /// A transaction before it has causes that are not here.
    Causes,
    /// This partition sends its data to another data center, takes that of one, or is copied for a backup.
    Transfer(PartitionId),
    /// Snapshots that were handed out may still be read.
    Readers,
    /// Strong transactions that wait for a decision; a majority of the data centers makes it.
    Certification,
}

/// Returns how far each origin's transactions are uniform in a data center, from all its partitions in this process.
/// Data centers that were given up are left out.
///
/// ```
/// use mingle_geo::{Config, DcId, DelayedBy, PartitionId, Replica, uniformity};
///
/// let config = Config::new(DcId(0), 3, PartitionId(0), 1);
/// let replica = Replica::new(config).expect("settings");
/// let delays = uniformity([&replica]);
/// assert_eq!(delays.len(), 3);
/// assert_eq!(delays[1].by, DelayedBy::Arrival(PartitionId(0)));
/// ```
pub fn uniformity<'a>(partitions: impl IntoIterator<Item = &'a Replica>) -> Vec<Delay> {
    let partitions: Vec<&Replica> = partitions.into_iter().collect();
    let Some(first) = partitions.first() else { return Vec::new() };
    let delay = |origin: DcId| {
        let least = partitions.iter().min_by_key(|replica| replica.uniform_vec[origin])?;
        let reached = least.uniform_vec[origin];
        Some(Delay { origin, reached, by: least.uniform_delay(origin) })
    };
    first.accepting(&first.uniform_vec).filter_map(delay).collect()
}

/// Returns how far each origin's transactions are folded in a data center, from all its partitions in this process;
/// strong ones only where an item waits for them. Data centers that were given up are left out.
///
/// ```
/// use mingle_geo::{Config, DcId, PartitionId, Replica, folding};
///
/// let config = Config::new(DcId(0), 1, PartitionId(0), 1);
/// let replica = Replica::new(config).expect("settings");
/// assert_eq!(folding([&replica])[0].origin, DcId(0));
/// ```
pub fn folding<'a>(partitions: impl IntoIterator<Item = &'a Replica>) -> Vec<Delay> {
    let partitions: Vec<&Replica> = partitions.into_iter().collect();
    let Some(first) = partitions.first() else { return Vec::new() };
    let delay = |origin: DcId| {
        let least = partitions.iter().min_by_key(|replica| replica.pins.folded()[origin])?;
        let reached = least.pins.folded()[origin];
        let pinning = partitions.iter().find(|replica| {
            replica.transfer.pinned().is_some_and(|pinned| pinned[origin] <= reached)
        });
        let floor = partitions.iter().min_by_key(|replica| replica.own_floor(origin))?;
        let by = if let Some(replica) = pinning {
            DelayedBy::Transfer(replica.config.partition)
        } else if floor.own_floor(origin) > reached {
            DelayedBy::Causes
        } else if floor.uniform_vec[origin] <= reached {
            floor.uniform_delay(origin)
        } else {
            DelayedBy::Readers
        };
        Some(Delay { origin, reached, by })
    };
    let strong = partitions.iter().filter(|replica| replica.strong_wanted().is_some());
    let strong = strong.map(|replica| replica.pins.folded()[DcId::STRONG]).min();
    let strong =
        strong.map(|reached| Delay { origin: DcId::STRONG, reached, by: DelayedBy::Certification });
    first.accepting(&first.pins.folded()).filter_map(delay).chain(strong).collect()
}

impl Replica {
    /// Returns the entry of the floor that this replica announces.
    fn own_floor(&self, origin: DcId) -> Timestamp {
        self.local_matrix[usize::from(self.config.partition.0)].snapshot_floor[origin]
    }

    /// Returns why nothing later of an origin is uniform at this replica.
    fn uniform_delay(&self, origin: DcId) -> DelayedBy {
        let reached = self.uniform_vec[origin];
        let reported = |dc: &DcId| self.stable_matrix[usize::from(dc.0)][origin] > reached;
        if self.stable_vec[origin] > reached {
            return DelayedBy::Reports(self.others_in().filter(|dc| !reported(dc)).collect());
        }
        let rows = self.config.partitions().zip(&self.local_matrix);
        let least = rows.min_by_key(|(_, row)| row.known_vec[origin]);
        let partition = least.map_or(self.config.partition, |(partition, _)| partition);
        if origin == self.config.dc {
            DelayedBy::Decision(partition)
        } else {
            DelayedBy::Arrival(partition)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::vector::Vector;

    const P0: PartitionId = PartitionId(0);
    const P1: PartitionId = PartitionId(1);

    /// Returns one of two partitions of d0; each vector holds d0, d1 and d2.
    fn partition(number: PartitionId) -> Replica {
        Replica::new(Config::new(DcId(0), 3, number, 2)).expect("settings")
    }

    fn vector(entries: [u64; 3]) -> Vector {
        let entries = entries.into_iter().enumerate();
        entries.fold(Vector::ZERO, |vector, (dc, at)| vector.with(DcId(dc as u8), Timestamp(at)))
    }

    fn by(delays: &[Delay]) -> Vec<(u64, DelayedBy)> {
        delays.iter().map(|delay| (delay.reached.0, delay.by.clone())).collect()
    }

    #[test]
    fn uniformity_waits_for_reports_arrivals_and_decisions() {
        let (mut first, mut second) = (partition(P0), partition(P1));
        for replica in [&mut first, &mut second] {
            replica.uniform_vec = vector([20, 20, 20]);
            replica.stable_vec = vector([20, 20, 30]);
            replica.stable_matrix =
                vec![vector([20, 20, 30]), vector([20, 20, 20]), vector([20, 20, 20])];
        }
        second.uniform_vec = vector([20, 20, 10]);
        second.stable_matrix[1] = vector([20, 20, 10]);
        for replica in [&mut first, &mut second] {
            replica.local_matrix[0].known_vec = vector([20, 90, 90]);
            replica.local_matrix[1].known_vec = vector([90, 20, 90]);
        }
        let found = by(&uniformity([&first, &second]));
        let reports = DelayedBy::Reports(vec![DcId(1)]);
        let expected = [(20, DelayedBy::Decision(P0)), (20, DelayedBy::Arrival(P1)), (10, reports)];
        assert_eq!(found, expected);
    }

    #[test]
    fn folding_waits_for_what_is_not_uniform_and_for_readers() {
        let (mut first, mut second) = (partition(P0), partition(P1));
        for replica in [&mut first, &mut second] {
            replica.pins.raise_folded(&vector([10, 10, 10]));
            replica.uniform_vec = vector([20, 10, 20]);
            replica.stable_vec = vector([20, 10, 20]);
        }
        first.local_matrix[0].snapshot_floor = vector([10, 10, 15]);
        second.local_matrix[1].snapshot_floor = vector([20, 20, 15]);
        let found = by(&folding([&first, &second]));
        let expected =
            [(10, DelayedBy::Readers), (10, DelayedBy::Arrival(P0)), (10, DelayedBy::Causes)];
        assert_eq!(found, expected);
    }

    #[test]
    fn without_partitions_there_is_nothing() {
        assert!(uniformity([]).is_empty() && folding([]).is_empty());
    }
}
