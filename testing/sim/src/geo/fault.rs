//! Faults, as data.

/// One replica or a whole data center.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The replica of a partition in a data center.
    Replica(u8, u16),
    /// All replicas of a data center.
    Dc(u8),
}

impl Place {
    /// Returns the data center of the place.
    pub fn dc(self) -> u8 {
        match self {
            Self::Replica(dc, _) | Self::Dc(dc) => dc,
        }
    }

    pub(super) fn has(self, dc: u8, partition: u16) -> bool {
        match self {
            Self::Replica(of, own) => (of, own) == (dc, partition),
            Self::Dc(of) => of == dc,
        }
    }
}

/// The part of the unacknowledged writes that a crash leaves on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// Nothing.
    Nothing,
    /// A prefix of the records being written. A checksum detects a torn record, so each record is
    /// there whole or absent.
    Torn,
    /// All records, although no acknowledgement was sent.
    All,
}

/// The set of links that are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// All links between one data center and the others.
    Off(u8),
    /// All links between the data centers of this set (a bit mask) and the others.
    Halves(u8),
    /// The links between two data centers.
    Pair(u8, u8),
    /// The links from one data center to another, in one direction.
    OneWay(u8, u8),
    /// The link between two siblings.
    Siblings(u8, u8, u16),
    /// The links between a replica and its siblings in all other data centers.
    Lone(u8, u16),
    /// The links between a partition and the others of its data center.
    Inside(u8, u16),
    /// The link from one replica to another, in one direction.
    Way((u8, u16), (u8, u16)),
}

impl Shape {
    /// True if the shape includes messages from one replica to another.
    pub(super) fn cuts(self, from: (u8, u16), to: (u8, u16)) -> bool {
        let is_between = |a: u8, b: u8| (from.0, to.0) == (a, b) || (from.0, to.0) == (b, a);
        match self {
            Self::Off(dc) => from.0 != to.0 && (from.0 == dc || to.0 == dc),
            Self::Halves(set) => (set >> from.0 & 1) != (set >> to.0 & 1),
            Self::Pair(a, b) => is_between(a, b),
            Self::OneWay(a, b) => (from.0, to.0) == (a, b),
            Self::Siblings(a, b, partition) => {
                is_between(a, b) && from.1 == partition && to.1 == partition
            }
            Self::Lone(dc, partition) => {
                let is_own = from.0 == dc || to.0 == dc;
                is_own && from.0 != to.0 && from.1 == partition && to.1 == partition
            }
            Self::Inside(dc, partition) => {
                from.0 == dc && to.0 == dc && (from.1 == partition) != (to.1 == partition)
            }
            Self::Way(one, other) => (from, to) == (one, other),
        }
    }

    /// Returns the data center whose internal links are cut, if there is one.
    pub(super) fn inside(self) -> Option<u8> {
        match self {
            Self::Inside(dc, _) => Some(dc),
            Self::Way(from, to) if from.0 == to.0 => Some(from.0),
            _ => None,
        }
    }
}

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Replicas stop, and restart from their disks at the end.
    Crash {
        /// The replicas concerned.
        place: Place,
        /// The part of the unacknowledged writes that the disks keep.
        kept: Kept,
    },
    /// The next write of a disk fails. Its replica stops, since the contents of a log after a
    /// failed write are unknown, and restarts at the end from the records found there.
    FailedWrite {
        /// The data center of the replica.
        dc: u8,
        /// The partition of the replica.
        partition: u16,
    },
    /// A disk is full: writes wait until there is room. The replica continues with work that needs
    /// no disk.
    FullDisk {
        /// The data center of the replica.
        dc: u8,
        /// The partition of the replica.
        partition: u16,
    },
    /// Replicas stand still, and later continue as if nothing had happened.
    Pause {
        /// The replicas concerned.
        place: Place,
    },
    /// A replica handles every input later by a fixed time.
    Slow {
        /// The data center of the replica.
        dc: u8,
        /// The partition of the replica.
        partition: u16,
        /// The delay in microseconds.
        by_us: u64,
    },
    /// The connections between two data centers, or inside one, break and are made again; messages
    /// under way are lost.
    Reconnect {
        /// The first data center.
        a: u8,
        /// The second data center, or the first again.
        b: u8,
    },
    /// Links are cut.
    Cut {
        /// The links concerned.
        shape: Shape,
        /// True if messages sent during the cut arrive after it, as on a connection that outlives
        /// the cut; otherwise they are lost.
        is_held: bool,
    },
    /// Messages between two data centers take longer.
    Delay {
        /// The first data center.
        a: u8,
        /// The second data center.
        b: u8,
        /// The added delay in microseconds.
        by_us: u64,
    },
    /// Links lose and repeat messages.
    Lossy {
        /// One message in this many is affected.
        one_in: usize,
    },
    /// The clocks of machines step.
    Step {
        /// The machines concerned.
        place: Place,
        /// The step in microseconds.
        by_us: i64,
    },
    /// A client vanishes during any activity; another begins in its place.
    Vanish {
        /// The index of the client.
        client: usize,
    },
    /// A client's connections break and are made again; messages under way are lost.
    Unplug {
        /// The index of the client.
        client: usize,
    },
    /// A data center is lost for good.
    Lose {
        /// The data center.
        dc: u8,
    },
    /// A replica's disk loses all its data, and the replica restarts under its old identity. Its
    /// data center is given up for that reason.
    LoseDisk {
        /// The data center of the replica.
        dc: u8,
        /// The partition of the replica.
        partition: u16,
    },
    /// A data center, lost or only cut off, is given up: the others are asked until they have
    /// agreed.
    Fence {
        /// The data center.
        dc: u8,
    },
    /// The next incarnation of a data center that was given up is admitted, with empty disks.
    Admit {
        /// The data center.
        dc: u8,
        /// The data centers that are asked for the admission, as bits; a random living one if none
        /// of these lives. If the highest bit is set, the request is repeated once after the
        /// admission.
        asked: u8,
        /// True if its replicas start before any data center has agreed to the admission.
        is_early: bool,
    },
}

impl Fault {
    /// Returns the data centers, as bits, that the fault separates completely from most of the
    /// others.
    pub(super) fn takes_away(self, dc_count: u8) -> Option<u8> {
        match self {
            Self::Crash { place: Place::Dc(dc), .. } | Self::Cut { shape: Shape::Off(dc), .. } => {
                Some(1 << dc)
            }
            Self::Cut { shape: Shape::Halves(set), .. } => {
                let others = !set & ((1 << dc_count) - 1);
                let is_fewer = set.count_ones() < others.count_ones();
                Some(if is_fewer { set } else { others })
            }
            _ => None,
        }
    }
}

/// An event in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A fault.
    Fault {
        /// The begin, in microseconds.
        at_us: u64,
        /// The duration in microseconds, for a fault that lasts.
        lasts_us: u64,
        /// The fault.
        fault: Fault,
    },
    /// A client performs an act; the seed determines the act from the index alone.
    Act {
        /// The index of the client.
        client: usize,
        /// The index of the act.
        index: usize,
    },
}
