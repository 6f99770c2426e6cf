//! Recorded runs of a geo-replicated store, as data: the calls of sessions with their answers, the
//! store's own account of them, and the faults during the run.
//!
//! The recorder writes down the store's statements and the faults injected, and judges nothing.
//! Times are simulated microseconds, on one clock for the whole run. Timestamps are the store's
//! own.

use std::collections::{BTreeMap, BTreeSet};

use mingle_model::{Origin, TransactionId};

use super::conflict::{Conflicts, Strong};
pub use super::item::{Content, Item, ItemKind, Op, OpId};
use super::vector::Vector;

/// A recorded run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Run {
    /// The system under test.
    pub system: System,
    /// Its clients' sessions, in any order; [`Session::id`] distinguishes them.
    pub sessions: Vec<Session>,
    /// The processes of sessions, by [`Session::id`], where several sessions of one process see each
    /// other's acknowledged commits. A session without one is by itself.
    pub processes: BTreeMap<u64, u64>,
    /// Data centers that were lost for good, each with all data that only it had.
    pub losses: Vec<Loss>,
    /// Data centers that were given up; each is one of `losses` too.
    pub cuts: Vec<Cut>,
    /// Data centers that got a new number after an earlier one was given up.
    pub admissions: Vec<Admission>,
    /// The faults, with their times.
    pub faults: Vec<Fault>,
    /// The times at which a data center first showed a transaction of another to one of its
    /// sessions, or had it visible for new ones. As many as were recorded.
    pub sightings: Vec<Sighting>,
    /// The replicas' claims about uniform transactions. At least the last of each replica, before
    /// it was lost or at the end; as many as were recorded.
    pub claims: Vec<Claim>,
    /// Floors of operation ids that replicas raised.
    pub floors: Vec<Floor>,
    /// The final state.
    pub end: End,
}

/// The system under test.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct System {
    /// The number of data centers, numbered from 0. A data center that was given up and is admitted
    /// again counts as another: a [later one](Run::admissions). Of two transactions with one
    /// timestamp, the transaction of the higher number is the later one.
    pub dc_count: u8,
    /// The number of data centers that may be lost (`f`): transactions at `f + 1` of them are
    /// uniform.
    pub losses_max: u8,
    /// The number of partitions of each data center.
    pub partition_count: u16,
    /// The partition of each used item. Only checks of floors need it.
    pub partition_of: BTreeMap<Item, u16>,
    /// The conflicting labels of strong transactions.
    pub conflicts: Conflicts,
    /// Counters that strong transactions keep from going below 0.
    pub accounts: BTreeSet<Item>,
    /// Items that only strong transactions may change.
    pub strong_only: BTreeSet<Item>,
}

/// One client's session: its calls in the order in which it made them, one at a time.
#[derive(Clone, Debug, PartialEq)]
pub struct Session {
    /// Its unique number.
    pub id: u64,
    /// Its calls. A call that was never answered is the last one, or was given up before the next:
    /// the store may still carry it out.
    pub calls: Vec<Call>,
}

/// One call of a session; a whole transaction is one call.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The time of the call; for a transaction, of its first operation.
    pub begin_us: u64,
    /// The time of the answer; for a transaction, of its commit. None if it was not answered before
    /// the run ended, although the session still waited for it.
    pub end_us: Option<u64>,
    /// The request and its answer.
    pub what: What,
}

/// The kind of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// A transaction.
    Transaction(Box<Transaction>),
    /// A request that everything that the session has seen becomes uniform.
    Barrier {
        /// The data center that received the request.
        dc: u8,
        /// True if the answer confirmed it. False if the request failed or was not answered.
        is_uniform: bool,
    },
    /// A request to continue at a data center.
    Attach {
        /// The data center.
        dc: u8,
        /// The answer.
        answer: Attached,
    },
    /// The addition of another session's past to this one's: it carried that session's token.
    Join {
        /// The other session.
        session: u64,
        /// The number of the other's finished calls when the token was taken.
        call_count: usize,
        /// The vector in the token.
        past_vec: Vector,
    },
    /// The session continues above this vector, which its process has acknowledged.
    Raised {
        /// The vector.
        floor: Vector,
    },
    /// After a loss was accepted, the session learned that one of its own earlier transactions had
    /// committed, and continues after it. Facts unknown about it when it ended stay unknown.
    Learned {
        /// The transaction.
        id: TransactionId,
        /// Its commit vector.
        commit_vec: Vector,
    },
}

/// The answer to an attach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attached {
    /// The session continues there with all its past.
    Resumed,
    /// The session continues there with a new past: only `past_vec` remains of the old one.
    WithLoss {
        /// Its own transactions that were reported as missing there.
        lost: Vec<TransactionId>,
        /// True if the session was told that these are all.
        is_complete: bool,
        /// The remaining part of its past.
        past_vec: Vector,
    },
    /// It failed, or was given up or not answered: the session stays at its data center.
    Failed,
}

/// A transaction as its session saw it, with the store's own account of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Transaction {
    /// Its unique id.
    pub id: TransactionId,
    /// The data center at which it ran.
    pub dc: u8,
    /// For a strong transaction, its strong attributes.
    pub strong: Option<Strong>,
    /// The snapshot of its reads, if it read.
    pub snapshot: Option<Vector>,
    /// Its reads and updates in the order of the requests: a read shows the updates before it.
    pub actions: Vec<Action>,
    /// The outcome that its session was told. If the first answer was "unknown" and the session
    /// asked until the outcome was known, the later answer.
    pub outcome: Outcome,
    /// The commit in the logs of the store's replicas, if the recorder read them; also present if
    /// the session was never told. None if no replica ever had it committed.
    pub commit: Option<Commit>,
    /// The time at which the session requested the commit, if it did.
    pub commit_asked_us: Option<u64>,
}

/// One step of a transaction.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// It read an item.
    Read {
        /// The item.
        item: Item,
        /// The content found.
        found: Content,
    },
    /// It changes an item.
    Update {
        /// The item.
        item: Item,
        /// The operation.
        op: Op,
        /// Its id, if other transactions may run it too.
        id: Option<OpId>,
    },
}

/// The outcome of a transaction as told to its session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It has no updates, and is over; a strong transaction that only reads commits.
    ReadOnly,
    /// It is committed.
    Committed {
        /// Its commit vector.
        commit_vec: Vector,
        /// True if it was said to be uniform, with all that its session had seen.
        is_uniform: bool,
    },
    /// It is not committed, and never will be.
    Aborted,
    /// The session was told nothing, or that the outcome is unknown.
    Unknown,
    /// The session gave it up before it requested the commit, or a read failed.
    GivenUp,
}

/// A commit, as recorded in the store's logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Commit {
    /// The data center that committed it, or [`STRONG`](super::STRONG).
    pub origin: u8,
    /// Its snapshot, including the entry of its origin.
    pub snap_vec: Vector,
    /// Its commit vector: the snapshot, with its timestamp at its origin.
    pub commit_vec: Vector,
}

impl Commit {
    /// Returns its timestamp at its origin.
    pub fn timestamp(&self) -> u64 {
        self.commit_vec.get(self.origin)
    }

    /// Returns its place in the order of last writers: by timestamp, then origin.
    pub fn version(&self) -> (u64, u8) {
        (self.timestamp(), self.origin)
    }
}

/// The loss of a data center.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The data center.
    pub dc: u8,
    /// The time.
    pub at_us: u64,
}

/// The removal of a data center, dead or alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The data center.
    pub dc: u8,
    /// The timestamp on which the other data centers agreed: its transactions up to here stay,
    /// those above are gone.
    pub at: u64,
}

/// The new admission of a data center that was given up: from then on it acts as another data
/// center, with a number and a column of vectors of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admission {
    /// Its number from then on.
    pub dc: u8,
    /// Its number before.
    pub of: u8,
    /// The time; none if it never happened.
    pub at_us: Option<u64>,
}

/// A temporary fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The kind.
    pub kind: FaultKind,
    /// Its begin.
    pub begin_us: u64,
    /// Its end; `u64::MAX` if it was never repaired.
    pub end_us: u64,
}

/// The kind of a fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// A replica was down.
    Down {
        /// Its data center.
        dc: u8,
        /// Its partition.
        partition: u16,
    },
    /// The writes of a replica reached its disk slowly or not at all.
    Disk {
        /// Its data center.
        dc: u8,
        /// Its partition.
        partition: u16,
    },
    /// A replica's clock was off by more than usual, jumped or stepped back.
    Clock {
        /// Its data center.
        dc: u8,
        /// Its partition.
        partition: u16,
    },
    /// Messages from one data center to another were lost or held; from one to itself, those
    /// between its replicas.
    Link {
        /// The sending data center.
        from: u8,
        /// The receiving data center.
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
        /// Its name, for messages.
        name: String,
        /// The affected data centers.
        dcs: Vec<u8>,
    },
}

/// The first appearance of a transaction at another data center.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// The data center.
    pub dc: u8,
    /// The transaction.
    pub transaction: TransactionId,
    /// The time at which it was there first.
    pub at_us: u64,
}

/// A replica's claim about uniform transactions: for each data center, all up to a timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Its data center.
    pub dc: u8,
    /// Its partition.
    pub partition: u16,
    /// The time.
    pub at_us: u64,
    /// The claimed vector; its column of strong transactions is ignored.
    pub uniform_vec: Vector,
}

/// A replica no longer accepts operation ids of an origin up to a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Floor {
    /// Its data center.
    pub dc: u8,
    /// Its partition.
    pub partition: u16,
    /// The origin of the operation ids.
    pub origin: Origin,
    /// The highest sequence of its transactions below the floor.
    pub sequence: u64,
    /// The timestamp of the raise: commits of the data center above it have no such id.
    pub at: u64,
}

/// The final state of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct End {
    /// The time.
    pub at_us: u64,
    /// True if all faults except losses were over, and the system had the time to settle: only then
    /// does a run show the eventual state.
    pub is_settled: bool,
    /// The final view of each data center that is not lost, read outside the recorded transactions.
    pub views: Vec<View>,
}

/// The final view of a data center.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    /// The data center.
    pub dc: u8,
    /// The snapshot of the view.
    pub snapshot: Vector,
    /// The content of each item. All items that any transaction used.
    pub items: BTreeMap<Item, Content>,
}

impl Run {
    /// Returns the transactions with their sessions, session by session, in order.
    pub fn transactions(&self) -> impl Iterator<Item = (&Session, &Call, &Transaction)> {
        self.sessions.iter().flat_map(|session| {
            session.calls.iter().filter_map(move |call| match &call.what {
                What::Transaction(transaction) => Some((session, call, &**transaction)),
                _ => None,
            })
        })
    }

    /// True if a commit is gone with its data center.
    pub fn is_cut_off(&self, commit: &Commit) -> bool {
        self.cuts.iter().any(|cut| cut.dc == commit.origin && commit.timestamp() > cut.at)
    }

    /// Returns the data centers that were lost.
    pub fn lost_dcs(&self) -> BTreeSet<u8> {
        self.losses.iter().map(|loss| loss.dc).collect()
    }

    /// True if a data center was never admitted.
    pub fn is_to_come(&self, dc: u8) -> bool {
        self.admissions.iter().any(|admission| admission.dc == dc && admission.at_us.is_none())
    }

    /// Extends a past that includes transactions of a data center admitted again: it then also
    /// includes the transactions that the data center kept from before.
    pub(super) fn see_before(&self, past_vec: &mut Vector) {
        for admission in self.admissions.iter().rev() {
            let cut = self.cuts.iter().find(|cut| cut.dc == admission.of);
            if let Some(cut) = cut.filter(|_| past_vec.get(admission.dc) > 0) {
                past_vec.join(&Vector::ZERO.with(cut.dc, cut.at));
            }
        }
    }

    /// Returns the entry of a snapshot for the data center that reads, under all its numbers.
    pub(super) fn own_entry(&self, dc: u8, snapshot: &Vector) -> u64 {
        let before = |dc: &u8| {
            let admission = self.admissions.iter().find(|admission| admission.dc == *dc);
            admission.map(|admission| admission.of)
        };
        let numbers = std::iter::successors(Some(dc), before);
        numbers.map(|dc| snapshot.get(dc)).max().unwrap_or(0)
    }

    /// Returns the number of data centers that exist at one time, if none is lost.
    pub fn dcs_at_once(&self) -> u8 {
        self.system.dc_count.saturating_sub(self.admissions.len() as u8)
    }

    /// Returns the number of data centers left in the end.
    pub fn alive(&self) -> usize {
        let lost = self.lost_dcs();
        let dcs = 0..self.system.dc_count;
        dcs.filter(|dc| !lost.contains(dc) && !self.is_to_come(*dc)).count()
    }
}

impl Transaction {
    /// Returns its updates with their items, in order.
    pub fn updates(&self) -> impl Iterator<Item = (Item, &Op, Option<&OpId>)> {
        self.actions.iter().filter_map(|action| match action {
            Action::Update { item, op, id } => Some((*item, op, id.as_ref())),
            Action::Read { .. } => None,
        })
    }

    /// Returns its reads with the contents found, in order.
    pub fn reads(&self) -> impl Iterator<Item = (Item, &Content)> {
        self.actions.iter().filter_map(|action| match action {
            Action::Read { item, found } => Some((*item, found)),
            Action::Update { .. } => None,
        })
    }
}
