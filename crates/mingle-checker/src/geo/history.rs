//! Recorded runs of a geo-replicated store, as data: what sessions asked and were answered, what the
//! store says that it made of it, and what went wrong meanwhile.
//!
//! Who records a run writes down what the store says and what was done to it, and judges nothing.
//! Times are simulated microseconds, on one clock for the whole run. Timestamps are the store's own.

use std::collections::{BTreeMap, BTreeSet};

use mingle_model::{Origin, TransactionId};

use super::conflict::{Conflicts, Strong};
pub use super::item::{Content, Item, ItemKind, Op, OpId};
use super::vector::Vector;

/// A recorded run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Run {
    /// What ran.
    pub system: System,
    /// Who used it, in any order; [`Session::id`] tells them apart.
    pub sessions: Vec<Session>,
    /// Data centers that were lost for good, each with everything that only it had.
    pub losses: Vec<Loss>,
    /// Data centers that were given up, each one of `losses` too.
    pub cuts: Vec<Cut>,
    /// Those that have a number since an earlier one was given up.
    pub admissions: Vec<Admission>,
    /// What was done to the system, and when.
    pub faults: Vec<Fault>,
    /// When a data center first showed a transaction of another to one of its sessions, or had it
    /// visible for new ones. As many as were recorded.
    pub sightings: Vec<Sighting>,
    /// What replicas said is uniform. At least the last of each replica, before it was lost or at
    /// the end; as many as were recorded.
    pub claims: Vec<Claim>,
    /// Floors of operation ids that replicas raised.
    pub floors: Vec<Floor>,
    /// What it came to.
    pub end: End,
}

/// What ran.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct System {
    /// How many data centers, numbered from 0. One that was given up and is admitted again counts as
    /// another: a [later one](Run::admissions). Of two transactions with one timestamp the later is
    /// that of the higher number.
    pub dc_count: u8,
    /// How many of them may be lost (`f`): what `f + 1` have is uniform.
    pub losses_max: u8,
    /// How many partitions each of them has.
    pub partition_count: u16,
    /// The partition of each item that is used. Only checks of floors need it.
    pub partition_of: BTreeMap<Item, u16>,
    /// Which labels of strong transactions conflict.
    pub conflicts: Conflicts,
    /// Counters that strong transactions keep from going below 0.
    pub accounts: BTreeSet<Item>,
    /// Items that only strong transactions may change.
    pub strong_only: BTreeSet<Item>,
}

/// One client's session: its calls in the order in which it made them, one at a time.
#[derive(Clone, Debug, PartialEq)]
pub struct Session {
    /// Its number, which no other has.
    pub id: u64,
    /// What it asked for. A call that was never answered is the last one, or was given up before
    /// the next: the store may still do what it asked for.
    pub calls: Vec<Call>,
}

/// One call of a session; of a transaction, all of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// When it was made; of a transaction, its first operation.
    pub begin_us: u64,
    /// When it was answered; of a transaction, its commit. None if it was not answered before the
    /// run ended, although the session still waited for it.
    pub end_us: Option<u64>,
    /// What was asked, and answered.
    pub what: What,
}

/// What a call is about.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// A transaction.
    Transaction(Box<Transaction>),
    /// That everything that the session has seen is uniform.
    Barrier {
        /// The data center that was asked.
        dc: u8,
        /// Whether it was told that it is. False where it failed or was not answered.
        is_uniform: bool,
    },
    /// To go on at a data center.
    Attach {
        /// Where.
        dc: u8,
        /// What came of it.
        answer: Attached,
    },
    /// Another session's past was added to this one's: it carried that session's token.
    Join {
        /// The other session.
        session: u64,
        /// How many of the other's calls were over when the token was taken.
        call_count: usize,
        /// The vector in the token.
        past_vec: Vector,
    },
    /// After a loss was accepted the session learned that one of its own transactions before that had
    /// committed, and goes on behind it. What was not known of it when it ended stays so.
    Learned {
        /// The transaction.
        id: TransactionId,
        /// How it committed.
        commit_vec: Vector,
    },
}

/// What came of an attach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attached {
    /// The session goes on there with all its past.
    Resumed,
    /// It goes on there, and begins anew: of its past counts only what is in `past_vec`.
    WithLoss {
        /// Its own transactions that it was told are not there.
        lost: Vec<TransactionId>,
        /// Whether it was told that these are all.
        is_complete: bool,
        /// What is left of its past.
        past_vec: Vector,
    },
    /// It failed, or was given up or not answered: the session stays where it was.
    Failed,
}

/// A transaction as its session saw it, with what the store says that it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Transaction {
    /// Its id, which no other has.
    pub id: TransactionId,
    /// The data center that it ran at.
    pub dc: u8,
    /// Of a strong transaction, what makes it one.
    pub strong: Option<Strong>,
    /// The snapshot that its reads were answered from, if it read.
    pub snapshot: Option<Vector>,
    /// Its reads and updates in the order in which they were asked for: a read shows the updates
    /// before it.
    pub actions: Vec<Action>,
    /// What its session was told. Where that was at first that nobody knows, and the session asked
    /// until it was known, what it was told then.
    pub outcome: Outcome,
    /// What stands in the logs of the store's replicas, if anybody looked: also where the session
    /// was never told. None if no replica ever had it committed.
    pub commit: Option<Commit>,
    /// When the session asked for the commit, if it did.
    pub commit_asked_us: Option<u64>,
}

/// One step of a transaction.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// It read an item.
    Read {
        /// The item.
        item: Item,
        /// What was found.
        found: Content,
    },
    /// It changes an item.
    Update {
        /// The item.
        item: Item,
        /// How.
        op: Op,
        /// Its name, if others may run it too.
        id: Option<OpId>,
    },
}

/// What a session was told of the end of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It updated nothing, and is over; a strong one that only reads commits.
    ReadOnly,
    /// It is committed.
    Committed {
        /// Its commit vector.
        commit_vec: Vector,
        /// Whether it was said to be uniform, with all that its session had seen.
        is_uniform: bool,
    },
    /// It is not committed, and never will be.
    Aborted,
    /// Nothing, or that nobody knows.
    Unknown,
    /// The session gave it up before it asked for its commit, or a read failed.
    GivenUp,
}

/// A commit, as it stands in the store's logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Commit {
    /// The data center that committed it, or [`STRONG`](super::STRONG).
    pub origin: u8,
    /// Its snapshot, the entry of its origin included.
    pub snap_vec: Vector,
    /// Its commit vector: the snapshot, with its timestamp at its origin.
    pub commit_vec: Vector,
}

impl Commit {
    /// Its timestamp at its origin.
    pub fn timestamp(&self) -> u64 {
        self.commit_vec.get(self.origin)
    }

    /// Its place in the order of last writers: by timestamp, then origin.
    pub fn version(&self) -> (u64, u8) {
        (self.timestamp(), self.origin)
    }
}

/// A data center was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// Which.
    pub dc: u8,
    /// When.
    pub at_us: u64,
}

/// A data center was given up, dead or alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Which.
    pub dc: u8,
    /// The others agreed on this: its transactions with timestamps up to here stay, those above are
    /// gone.
    pub at: u64,
}

/// A data center that was given up is admitted again: what it does from then on it does as another, with
/// a number and a column of vectors of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admission {
    /// Its number from then on.
    pub dc: u8,
    /// Its number before.
    pub of: u8,
    /// When; none if that never came to be.
    pub at_us: Option<u64>,
}

/// Something was wrong for a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What.
    pub kind: FaultKind,
    /// From when.
    pub begin_us: u64,
    /// Until when; `u64::MAX` if it never was put right.
    pub end_us: u64,
}

/// What was wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// A replica was down.
    Down {
        /// Its data center.
        dc: u8,
        /// Its partition.
        partition: u16,
    },
    /// Nothing that a replica wrote reached its disk, or only slowly.
    Disk {
        /// Its data center.
        dc: u8,
        /// Its partition.
        partition: u16,
    },
    /// A replica's clock was off by more than is usual, jumped or stepped back.
    Clock {
        /// Its data center.
        dc: u8,
        /// Its partition.
        partition: u16,
    },
    /// Messages from one data center to another were lost or held; of one to itself, those between
    /// its replicas.
    Link {
        /// From there.
        from: u8,
        /// To there.
        to: u8,
    },
    /// Messages between clients and a data center were lost or held.
    Clients {
        /// The data center.
        dc: u8,
    },
    /// Some messages were lost, repeated or overtook each other, anywhere.
    Noise,
    /// Anything else, with the data centers whose sessions may have to wait for it.
    Other {
        /// What, for messages.
        name: String,
        /// Where.
        dcs: Vec<u8>,
    },
}

/// A data center showed a transaction of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// The data center.
    pub dc: u8,
    /// The transaction.
    pub transaction: TransactionId,
    /// When it was there first.
    pub at_us: u64,
}

/// A replica said what is uniform: of each data center, all transactions up to a timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Its data center.
    pub dc: u8,
    /// Its partition.
    pub partition: u16,
    /// When.
    pub at_us: u64,
    /// What it said; the column of strong transactions counts for nothing.
    pub uniform_vec: Vector,
}

/// A replica accepts operation ids of an origin up to a number no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Floor {
    /// Its data center.
    pub dc: u8,
    /// Its partition.
    pub partition: u16,
    /// Of whose operation ids.
    pub origin: Origin,
    /// Those of its transactions up to this sequence.
    pub sequence: u64,
    /// The timestamp at which it was raised: what the data center commits above it has none.
    pub at: u64,
}

/// What a run came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct End {
    /// When.
    pub at_us: u64,
    /// Whether all faults were over, but for losses, and everything had the time to settle: only
    /// then does a run tell what comes to be in the end.
    pub is_settled: bool,
    /// What each data center that is not lost showed, in no transaction's way.
    pub views: Vec<View>,
}

/// What a data center showed in the end.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    /// The data center.
    pub dc: u8,
    /// The snapshot that was read.
    pub snapshot: Vector,
    /// What each item held. All items that any transaction used.
    pub items: BTreeMap<Item, Content>,
}

impl Run {
    /// The transactions with their sessions, session by session, in order.
    pub fn transactions(&self) -> impl Iterator<Item = (&Session, &Call, &Transaction)> {
        self.sessions.iter().flat_map(|session| {
            session.calls.iter().filter_map(move |call| match &call.what {
                What::Transaction(transaction) => Some((session, call, &**transaction)),
                _ => None,
            })
        })
    }

    /// Whether a commit is gone with the data center that made it.
    pub fn is_cut_off(&self, commit: &Commit) -> bool {
        self.cuts.iter().any(|cut| cut.dc == commit.origin && commit.timestamp() > cut.at)
    }

    /// The data centers that were lost.
    pub fn lost_dcs(&self) -> BTreeSet<u8> {
        self.losses.iter().map(|loss| loss.dc).collect()
    }

    /// Whether a data center was never admitted.
    pub fn is_to_come(&self, dc: u8) -> bool {
        self.admissions.iter().any(|admission| admission.dc == dc && admission.at_us.is_none())
    }

    /// Whoever has seen something of a data center that was admitted again goes on behind what was left of it
    /// before.
    pub(super) fn see_before(&self, past_vec: &mut Vector) {
        for admission in self.admissions.iter().rev() {
            let cut = self.cuts.iter().find(|cut| cut.dc == admission.of);
            if let Some(cut) = cut.filter(|_| past_vec.get(admission.dc) > 0) {
                past_vec.join(&Vector::ZERO.with(cut.dc, cut.at));
            }
        }
    }

    /// How many data centers there are at one time, if none is lost.
    pub fn dcs_at_once(&self) -> u8 {
        self.system.dc_count.saturating_sub(self.admissions.len() as u8)
    }

    /// How many are left in the end.
    pub fn alive(&self) -> usize {
        let lost = self.lost_dcs();
        let dcs = 0..self.system.dc_count;
        dcs.filter(|dc| !lost.contains(dc) && !self.is_to_come(*dc)).count()
    }
}

impl Transaction {
    /// Its updates with their items, in order.
    pub fn updates(&self) -> impl Iterator<Item = (Item, &Op, Option<&OpId>)> {
        self.actions.iter().filter_map(|action| match action {
            Action::Update { item, op, id } => Some((*item, op, id.as_ref())),
            Action::Read { .. } => None,
        })
    }

    /// Its reads with what they found, in order.
    pub fn reads(&self) -> impl Iterator<Item = (Item, &Content)> {
        self.actions.iter().filter_map(|action| match action {
            Action::Read { item, found } => Some((*item, found)),
            Action::Update { .. } => None,
        })
    }
}
