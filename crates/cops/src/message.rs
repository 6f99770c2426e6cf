//! The messages of all protocols, with the names of the thesis.

use crate::clock::{NodeId, Timestamp};
use crate::column::{Cell, Location, Mutation, Slice};
use crate::deps::Dep;

/// A client: one process of the application, with many actors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId {
    /// Its data center.
    pub dc: u8,
    /// Its number there.
    pub number: u16,
}

/// The sender or receiver of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Address {
    /// A server.
    Server(NodeId),
    /// A client.
    Client(ClientId),
}

impl Address {
    /// Returns the data center.
    pub fn dc(self) -> u8 {
        match self {
            Self::Server(node) => node.dc(),
            Self::Client(client) => client.dc,
        }
    }
}

/// The number of a request; unique for its client.
pub type RequestId = u64;

/// A value in the COPS family: one number for a write, several for a merged conflict.
pub type Value = Vec<u64>;

/// A request: its client and its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Requested {
    /// The client.
    pub client: ClientId,
    /// The request.
    pub request: RequestId,
}

/// The part of a write transaction for the keys of one server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubRequest {
    /// The transaction.
    pub transaction: Requested,
    /// The key whose server coordinates, in every data center; the locator of the transaction.
    pub coordinator_key: u32,
    /// The number of mutations in the whole transaction.
    pub total: usize,
    /// The mutations of this part.
    pub mutations: Vec<Mutation>,
    /// The dependencies of the transaction.
    pub deps: Vec<Dep>,
}

/// A message.
#[expect(missing_docs, reason = "the line of a message names its fields")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Server to server: has this operation been applied? The answer comes when it has.
    DepCheck { id: u64, dep: Dep },
    /// The answer: it has.
    DepChecked { id: u64, dep: Dep },

    /// Client to server, COPS: reads the latest version, or in COPS-RT the one with this timestamp.
    ReadByTime { request: RequestId, key: u32, ts: Option<Timestamp> },
    /// The answer: the value, the timestamps of its versions (several if they are concurrent, which
    /// only COPS-CD has) and in COPS-RT all dependencies.
    ReadResult {
        request: RequestId,
        key: u32,
        value: Value,
        versions: Vec<Timestamp>,
        deps: Vec<Dep>,
        never_depend: bool,
    },
    /// Client to server, COPS: writes after the dependencies. `deps` has all of them in COPS-RT and is
    /// the same as `nearest` elsewhere.
    WriteAfter { request: RequestId, key: u32, value: u64, deps: Vec<Dep>, nearest: Vec<Dep> },
    /// The answer, with the timestamp of the write.
    Written { request: RequestId, dep: Dep },
    /// Server to equivalent server, COPS: a write to apply after `nearest`. `previous` has the
    /// versions that it replaces in COPS-CD.
    ReplicatedWrite {
        dep: Dep,
        value: u64,
        deps: Vec<Dep>,
        nearest: Vec<Dep>,
        previous: Vec<Timestamp>,
    },
    /// COPS-RT: this data center applied the write `trans_time` ago.
    Committed { dep: Dep },
    /// COPS-RT: all data centers did; its dependencies can be collected.
    CollectDeps { dep: Dep },

    /// Client to server, Eiger: reads a slice now, or at an effective time.
    MultigetSlice { request: RequestId, slice: Slice, part: usize, at: Option<u64> },
    /// The answer, with the logical times between which it is valid, also if it has no cells. If
    /// `is_pending`, a transaction may change the slice: there are no cells, and the client must read
    /// at an effective time.
    SliceResult {
        request: RequestId,
        part: usize,
        cells: Vec<Cell>,
        evt: u64,
        lvt: u64,
        is_pending: bool,
    },
    /// Client to server, Eiger: mutations of one key.
    BatchMutate { request: RequestId, mutations: Vec<Mutation>, deps: Vec<Dep> },
    /// The answer.
    Mutated { request: RequestId, dep: Dep },
    /// Server to equivalent server, Eiger: mutations of one key to apply after the dependencies.
    ReplicatedMutation { dep: Dep, mutations: Vec<Mutation>, deps: Vec<Dep> },
    /// Client to participant, Eiger: prepare this part.
    AtomicMutate(SubRequest),
    /// Participant to coordinator: these mutations are prepared. `extra` has the dependencies that
    /// additions have on earlier additions of the data center.
    YesVote { transaction: Requested, count: usize, extra: Vec<Dep> },
    /// Coordinator to cohort: the transaction is committed.
    Commit { transaction: Requested, ts: Timestamp, evt: u64 },
    /// Cohort to coordinator: the commit is applied here.
    Ack { transaction: Requested },
    /// Server to equivalent servers: a part of a committed transaction.
    ReplicatedTransaction { part: SubRequest, ts: Timestamp },
    /// Cohort to coordinator, remote data center: these mutations have arrived.
    Notify { transaction: Requested, count: usize },
    /// Coordinator to cohort, remote data center: prepare.
    Prepare { transaction: Requested },
    /// Cohort to coordinator: had the transaction been committed at this time?
    CommitCheck { transaction: Requested, at: u64 },
    /// The answer: its timestamp and EVT, if it is committed.
    CommitChecked { transaction: Requested, at: u64, committed: Option<(Timestamp, u64)> },
}

/// A packet's content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// A message outside of a link; it may be lost.
    Plain(Message),
    /// A message of a link, with its number.
    Numbered(u64, Message),
    /// All messages of the link below this number have arrived.
    Arrived(u64),
}

/// A frame with its ends and the logical time of the sender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// The sender.
    pub from: Address,
    /// The receiver.
    pub to: Address,
    /// The logical time of the sender.
    pub time: u64,
    /// The content.
    pub frame: Frame,
}

/// An event for checkers and counters; the protocols do not use it.
#[expect(missing_docs, reason = "the line of an event names its fields")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A server accepts an operation of a client's request.
    Accepted { by: Requested, dep: Dep },
    /// An operation is applied at a data center: operations that depend on it may be, from now on.
    Applied { node: NodeId, dep: Dep },
    /// The newest version of a key at a server.
    Newest { node: NodeId, key: u32, ts: Timestamp },
    /// The newest operation in a location of a server.
    NewestAt { node: NodeId, location: Location, ts: Timestamp },
    /// A path of the protocol was taken.
    Reached(Point),
}

/// A path of a protocol that a run may or may not take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Point {
    /// A read-only transaction took its second round.
    SecondRound,
    /// A dependency check waited.
    DepCheckWaited,
    /// A dependency check was sent again.
    DepCheckAgain,
    /// Concurrent versions were merged.
    Merged,
    /// The dependencies of a version were collected.
    DepsCollected,
    /// A server asked a coordinator about a transaction.
    Indirection,
    /// A write transaction had several servers.
    SeveralServers,
    /// A tombstone was read.
    TombstoneRead,
    /// A column of a slice was absent.
    ColumnAbsent,
    /// A replicated transaction was below a newer value.
    OlderTransaction,
    /// A read-only transaction began again, because it had taken too long.
    Restarted,
}

impl Point {
    /// Returns a description.
    pub fn name(self) -> &'static str {
        match self {
            Self::SecondRound => "second round of a read-only transaction",
            Self::DepCheckWaited => "dependency check that waited",
            Self::DepCheckAgain => "dependency check sent again",
            Self::Merged => "concurrent versions merged",
            Self::DepsCollected => "dependencies of a version collected",
            Self::Indirection => "commit check at a coordinator",
            Self::SeveralServers => "write transaction over several servers",
            Self::TombstoneRead => "tombstone read",
            Self::ColumnAbsent => "absent column in a slice",
            Self::OlderTransaction => "replicated transaction below a newer value",
            Self::Restarted => "read-only transaction begun again",
        }
    }
}

/// An output of a server or a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// A packet to send.
    Send(Packet),
    /// An event.
    Event(Event),
}
