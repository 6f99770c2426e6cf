//! What goes wrong, as data.

/// One replica, or all of a data center.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The replica of a partition in a data center.
    Replica(u8, u16),
    /// All of a data center.
    Dc(u8),
}

impl Place {
    /// Its data center.
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

/// What of the writes that were not acknowledged a crash leaves on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// Nothing.
    Nothing,
    /// Some first records of what was being written. A record that was torn itself is found by its
    /// checksum, so each is there whole or not at all.
    Torn,
    /// Everything, though nobody was told.
    All,
}

/// Which links are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A data center from all others.
    Off(u8),
    /// The data centers of this set, as bits, from the others.
    Halves(u8),
    /// Two data centers from each other.
    Pair(u8, u8),
    /// One data center no longer hears another.
    OneWay(u8, u8),
    /// Two siblings from each other.
    Siblings(u8, u8, u16),
    /// A replica from its siblings in all other data centers.
    Lone(u8, u16),
    /// A partition from the others of its data center.
    Inside(u8, u16),
}

impl Shape {
    /// Whether messages from one replica to another are concerned.
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
        }
    }

    /// The data center inside which it cuts, if it does.
    pub(super) fn inside(self) -> Option<u8> {
        match self {
            Self::Inside(dc, _) => Some(dc),
            _ => None,
        }
    }
}

/// Something that goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Replicas stop, and start again from their disks at the end.
    Crash {
        /// Which.
        place: Place,
        /// What the disks keep.
        kept: Kept,
    },
    /// The next write of a disk fails. Its replica stops, since what a log has after a failed write
    /// cannot be known, and starts again from what is found there at the end.
    FailedWrite {
        /// Its data center.
        dc: u8,
        /// Its partition.
        partition: u16,
    },
    /// A disk is full: what is to be written waits until there is room. The replica goes on with what
    /// needs no disk.
    FullDisk {
        /// Its data center.
        dc: u8,
        /// Its partition.
        partition: u16,
    },
    /// Replicas stand still, and go on as if nothing had been.
    Pause {
        /// Which.
        place: Place,
    },
    /// A replica handles everything so much later.
    Slow {
        /// Its data center.
        dc: u8,
        /// Its partition.
        partition: u16,
        /// By how much, in microseconds.
        by_us: u64,
    },
    /// The connections between two data centers, or inside one, break and are made again: what was
    /// under way is lost.
    Reconnect {
        /// One of them.
        a: u8,
        /// The other.
        b: u8,
    },
    /// Links are cut.
    Cut {
        /// Which.
        shape: Shape,
        /// Whether what is sent meanwhile comes after it, as it does on a connection that outlives
        /// the cut; else it is lost.
        is_held: bool,
    },
    /// Messages between two data centers take longer.
    Delay {
        /// One of them.
        a: u8,
        /// The other.
        b: u8,
        /// By how much, in microseconds.
        by_us: u64,
    },
    /// Links lose and repeat messages.
    Lossy {
        /// One in so many.
        one_in: usize,
    },
    /// Machines' clocks step.
    Step {
        /// Whose.
        place: Place,
        /// By so many microseconds.
        by_us: i64,
    },
    /// A client vanishes, whatever it is at; another begins in its place.
    Vanish {
        /// Which.
        client: usize,
    },
    /// A client's connections break and are made again: what was under way is lost.
    Unplug {
        /// Which.
        client: usize,
    },
    /// A data center is gone for good.
    Lose {
        /// Which.
        dc: u8,
    },
    /// A replica's disk loses all that it had, and the replica is started as its old self. Its data center
    /// is given up for it.
    LoseDisk {
        /// Its data center.
        dc: u8,
        /// Its partition.
        partition: u16,
    },
    /// A data center is given up, whether it is gone or only cut off: the others are asked to agree on
    /// that until they have.
    Fence {
        /// Which.
        dc: u8,
    },
    /// The next incarnation of a data center that was given up is admitted, with empty disks.
    Admit {
        /// Which.
        dc: u8,
        /// Who is asked for that, as bits; whoever there is if none of them is there. With the highest it
        /// is asked once more when it is done.
        asked: u8,
        /// Whether its replicas start before anybody has agreed to that.
        is_early: bool,
    },
}

impl Fault {
    /// The data centers that it takes away as a whole from most of all, as bits.
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

/// Something that happens in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Something goes wrong.
    Fault {
        /// When, in microseconds.
        at_us: u64,
        /// For how long, where it lasts.
        lasts_us: u64,
        /// What.
        fault: Fault,
    },
    /// A client does the next thing; what that is the seed says, by the index alone.
    Act {
        /// Which client.
        client: usize,
        /// Which of its acts.
        index: usize,
    },
}
