//! The results of a check.

use std::fmt;

use crate::model::Model;

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The history satisfies the model.
    Satisfied(Witness),
    /// It violates the model.
    Violated(Counterexample),
    /// A bound was reached first, or the history lacks information; the reason, in one line.
    Unknown(String),
}

impl Verdict {
    /// True if the history satisfies the model.
    pub fn is_satisfied(&self) -> bool {
        matches!(self, Self::Satisfied(_))
    }

    /// True if the history violates the model.
    pub fn is_violated(&self) -> bool {
        matches!(self, Self::Violated(_))
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Satisfied(witness) => write!(f, "{witness}"),
            Self::Violated(counterexample) => write!(f, "{counterexample}"),
            Self::Unknown(reason) => writeln!(f, "unknown: {reason}"),
        }
    }
}

/// The way in which a result was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// The model's axioms force it, and no choice is left.
    Axioms,
    /// The order of writes that the history records. If that order breaks the model, another order,
    /// which the store did not use, might not.
    RecordedOrder,
    /// The order in which the history lists its transactions explains every read.
    GivenOrder,
    /// Orders were searched.
    Search,
}

impl fmt::Display for Basis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Axioms => "by the axioms",
            Self::RecordedOrder => "by the recorded order of writes",
            Self::GivenOrder => "by the order of the history",
            Self::Search => "by search",
        })
    }
}

/// The proof that a history satisfies a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Witness {
    /// The model.
    pub model: Model,
    /// The way in which it was found.
    pub basis: Basis,
    /// The transactions in an order that explains the reads as the model requires; empty for models
    /// that require no such order.
    pub order: Vec<i64>,
    /// For mixed consistency, the witness of each level's model.
    pub parts: Vec<Witness>,
}

impl fmt::Display for Witness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} is satisfied, {}", self.model, self.basis)?;
        self.parts.iter().try_for_each(|part| write!(f, "  {part}"))
    }
}

/// The proof that a history violates a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counterexample {
    /// The model.
    pub model: Model,
    /// For mixed consistency, the level of the violated model; its projection has the checked
    /// events.
    pub projection: Option<mingle_model::Level>,
    /// The way in which it was found.
    pub basis: Basis,
    /// The anomaly.
    pub anomaly: Anomaly,
    /// The transactions that it concerns, one line each.
    pub transactions: Vec<String>,
}

/// An anomaly of a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Anomaly {
    /// One read that no order explains.
    Read {
        /// The reader.
        transaction: i64,
        /// The key read.
        key: i64,
        /// The value returned.
        value: i64,
        /// The fault of the read.
        what: BadRead,
    },
    /// Transactions in a cycle: each must come before the next, and the last before the first.
    Cycle {
        /// The reasons why each must come before the next.
        edges: Vec<Edge>,
        /// For edges that rest on an order outside the cycle, that order.
        support: Vec<Vec<Edge>>,
    },
    /// No order of the transactions in the counterexample explains their reads; leaving out any
    /// more would leave an order.
    NoOrder,
    /// After the system came to rest, two reads of a key differ.
    Diverged {
        /// The key.
        key: i64,
        /// Each reader with the value it read.
        reads: [(i64, i64); 2],
    },
    /// After the system came to rest, a read returned the initial value, though the key was
    /// written.
    Lost {
        /// The key.
        key: i64,
        /// The reader.
        reader: i64,
        /// A transaction that wrote it.
        writer: i64,
    },
}

/// The fault of one read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadRead {
    /// No transaction wrote that value.
    OutOfThinAir,
    /// It was written by a transaction that aborted.
    Aborted {
        /// The aborted transaction.
        writer: i64,
    },
    /// Its writer wrote the key again before it committed.
    Intermediate {
        /// The writer.
        writer: i64,
    },
    /// The transaction itself wrote it, after the read.
    Future,
    /// The transaction itself had written another value before.
    NotOwn {
        /// The value that it had written last.
        expected: i64,
    },
    /// The transaction had read another value before.
    NotRepeatable {
        /// The value that it had read.
        before: i64,
    },
}

/// The reason why one transaction must come before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The first transaction; none for the initial values.
    pub from: Option<i64>,
    /// The later transaction.
    pub to: Option<i64>,
    /// The reason.
    pub why: Why,
}

/// The reasons for an order, with the names of Adya's graphs (ICDE 2000).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Session order.
    So,
    /// Real time: the first ended before the later one began.
    Rt,
    /// The later one reads a key that the first wrote.
    Wr(i64),
    /// Both write a key, and the store recorded this order.
    WwRecorded(i64),
    /// Both write a key. A third transaction, which the first precedes, reads it from the later
    /// one.
    WwForced {
        /// The key.
        key: i64,
        /// The reader.
        reader: Option<i64>,
    },
    /// Both write a key, and the first began before the second committed.
    WwOverlap(i64),
    /// The first reads a key from a writer, and the later one overwrites that writer's value.
    Rw {
        /// The key.
        key: i64,
        /// The writer of the value read; none for the initial values.
        writer: Option<i64>,
    },
}

fn name(transaction: Option<i64>) -> String {
    transaction.map_or_else(|| "the initial values".to_owned(), |id| format!("T{id}"))
}

impl fmt::Display for Edge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (from, to) = (name(self.from), name(self.to));
        match self.why {
            _ if self.from.is_none() => write!(f, "{from} come before {to}"),
            Why::So => write!(f, "{from} -so-> {to}: they follow each other in their session"),
            Why::Rt => write!(f, "{from} -rt-> {to}: {from} ended before {to} began"),
            Why::Wr(key) => write!(f, "{from} -wr({key})-> {to}: {to} reads key {key} from {from}"),
            Why::WwRecorded(key) => {
                write!(f, "{from} -ww({key})-> {to}: the recorded order of the writes of key {key}")
            }
            Why::WwForced { key, reader } => {
                let reader = name(reader);
                write!(
                    f,
                    "{from} -ww({key})-> {to}: {reader} comes after {from}, \
                     and reads key {key} from {to}"
                )
            }
            Why::WwOverlap(key) => write!(
                f,
                "{from} -ww({key})-> {to}: both write key {key}, \
                 and {from} began before {to} committed"
            ),
            Why::Rw { key, writer } => {
                let writer = name(writer);
                write!(
                    f,
                    "{from} -rw({key})-> {to}: {from} reads key {key} from {writer}, \
                     which {to} overwrites"
                )
            }
        }
    }
}

impl fmt::Display for Anomaly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read { transaction, key, value, what } => {
                writeln!(f, "  T{transaction} reads {value} at key {key}, {what}")
            }
            Self::Cycle { edges, support } => {
                edges.iter().try_for_each(|edge| writeln!(f, "  {edge}"))?;
                for path in support {
                    if let (Some(first), Some(last)) = (path.first(), path.last()) {
                        writeln!(f, "{} comes before {}:", name(first.from), name(last.to))?;
                    }
                    path.iter().try_for_each(|edge| writeln!(f, "  {edge}"))?;
                }
                Ok(())
            }
            Self::NoOrder => writeln!(f, "  no order of these transactions explains their reads"),
            Self::Diverged { key, reads: [(first, a), (second, b)] } => writeln!(
                f,
                "  after all came to rest T{first} reads {a} at key {key}, and T{second} reads {b}"
            ),
            Self::Lost { key, reader, writer } => writeln!(
                f,
                "  after all came to rest T{reader} reads the initial value of key {key}, \
                 which T{writer} wrote"
            ),
        }
    }
}

impl fmt::Display for BadRead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfThinAir => write!(f, "which nobody wrote"),
            Self::Aborted { writer } => write!(f, "which T{writer} wrote and aborted"),
            Self::Intermediate { writer } => {
                write!(f, "which T{writer} replaced before it committed")
            }
            Self::Future => write!(f, "which it writes only later"),
            Self::NotOwn { expected } => write!(f, "and had itself written {expected} before"),
            Self::NotRepeatable { before } => write!(f, "and had read {before} before"),
        }
    }
}

impl fmt::Display for Counterexample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is violated, {}", self.model, self.basis)?;
        match self.projection {
            Some(level) => writeln!(f, ", by the events at stores of at least level {level}:")?,
            None => writeln!(f, ":")?,
        }
        write!(f, "{}", self.anomaly)?;
        if !self.transactions.is_empty() {
            writeln!(f, "where")?;
        }
        self.transactions.iter().try_for_each(|line| writeln!(f, "  {line}"))
    }
}
