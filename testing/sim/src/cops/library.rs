//! The client libraries, and their calls and answers as the record has them.

use mingle_cops::column::{Cell, Content, Family, Predicate, Slice};
use mingle_cops::config::{Config, Protocol};
use mingle_cops::cops::client as cops;
use mingle_cops::eiger::client as eiger;
use mingle_cops::message::{ClientId, Output, Packet};

use super::columns;
use super::record::{self, Read, Sum, Write};

/// A call.
#[derive(Clone, Debug)]
pub enum Call {
    /// A call of the COPS family.
    Cops(cops::Call),
    /// A call of Eiger.
    Eiger(eiger::Call),
}

impl Call {
    /// Returns the checkers' keys and the values that the call writes.
    pub(super) fn writes(&self) -> Vec<Write> {
        let write = |(key, value)| Write { key, value };
        match self {
            Self::Cops(cops::Call::Write(key, value)) => vec![write((*key, Some(*value)))],
            Self::Cops(_) | Self::Eiger(eiger::Call::MultigetSlice(_)) => Vec::new(),
            Self::Eiger(
                eiger::Call::BatchMutate(mutations) | eiger::Call::AtomicMutate(mutations),
            ) => mutations.iter().map(columns::write).map(write).collect(),
        }
    }

    /// True if each row that the call writes has an operation of its own.
    pub(super) fn is_divided(&self, protocol: Protocol) -> bool {
        let is_batch = matches!(self, Self::Eiger(eiger::Call::BatchMutate(_)));
        is_batch || protocol == Protocol::EventualColumns
    }

    fn slices(&self) -> &[Slice] {
        match self {
            Self::Eiger(eiger::Call::MultigetSlice(slices)) => slices,
            _ => &[],
        }
    }
}

/// A client of any protocol.
pub(super) enum Client {
    Cops(cops::Client),
    Eiger(eiger::Client),
}

/// An answer of any protocol.
pub(super) enum Answer {
    Cops(cops::Answer),
    Eiger(eiger::Answer),
}

impl Client {
    pub fn new(config: Config, id: ClientId) -> Self {
        match config.protocol {
            protocol if protocol.has_columns() => Self::Eiger(eiger::Client::new(config, id)),
            _ => Self::Cops(cops::Client::new(config, id)),
        }
    }

    /// Begins a call; an error if it is not of this protocol, or the library refuses it.
    pub fn call(&mut self, now_us: u64, actor: u32, call: Call) -> Result<u64, String> {
        match (self, call) {
            (Self::Cops(client), Call::Cops(call)) => Ok(client.call(now_us, actor, call)),
            (Self::Eiger(client), Call::Eiger(call)) => client.call(now_us, actor, call),
            (_, call) => Err(format!("{call:?} is of another protocol")),
        }
    }

    pub fn handle(&mut self, now_us: u64, packet: Packet) {
        match self {
            Self::Cops(client) => client.handle(now_us, packet),
            Self::Eiger(client) => client.handle(now_us, packet),
        }
    }

    pub fn poll(&mut self) -> Option<Output> {
        match self {
            Self::Cops(client) => client.poll(),
            Self::Eiger(client) => client.poll(),
        }
    }

    pub fn answer(&mut self) -> Option<Answer> {
        match self {
            Self::Cops(client) => client.answer().map(Answer::Cops),
            Self::Eiger(client) => client.answer().map(Answer::Eiger),
        }
    }
}

impl Answer {
    pub fn request(&self) -> u64 {
        match self {
            Self::Cops(answer) => answer.request,
            Self::Eiger(answer) => answer.request,
        }
    }

    /// Notes the answer to a call.
    pub fn note(self, call: &Call, noted: &mut record::Call) {
        match self {
            Self::Cops(answer) => {
                noted.rounds = answer.rounds;
                noted.reads.extend(answer.found.into_iter().map(|found| Read {
                    key: found.key,
                    versions: found.versions,
                    values: found.value,
                }));
            }
            Self::Eiger(answer) => {
                noted.rounds = answer.rounds;
                let cells = answer.slices.iter().zip(&answer.deleted);
                for (slice, (cells, deleted)) in call.slices().iter().zip(cells) {
                    note_slice(slice, cells, deleted, noted);
                }
            }
        }
    }
}

/// Notes a slice as a read of each of its columns, absent ones too.
fn note_slice(slice: &Slice, cells: &[Cell], deleted: &[Cell], noted: &mut record::Call) {
    let names: Vec<u32> = match &slice.predicate {
        Predicate::Names(names) => names.iter().map(|column| column.name).collect(),
        Predicate::Range { start, stop, count } if cells.len() < *count => {
            (start.name..=stop.name).collect()
        }
        // Columns after the last one that counts are not read.
        Predicate::Range { start, .. } => {
            let last = cells.iter().map(|cell| cell.column.name).max();
            last.map(|last| (start.name..=last).collect()).unwrap_or_default()
        }
    };
    for name in names {
        let found = cells.iter().chain(deleted).find(|cell| cell.column.name == name);
        let location = columns::location_in(slice, name);
        let key = columns::key(location);
        let content = found.map(|cell| cell.content);
        if let Family::Counter(_) = slice.family {
            let sum = match content {
                Some(Content::Sum(sum)) => sum,
                _ => 0,
            };
            noted.sums.push(Sum { counter: key, sum });
            continue;
        }
        let values = match content {
            Some(Content::Value(value)) => vec![value],
            _ => Vec::new(),
        };
        let versions = found.map(|cell| cell.ts).into_iter().collect();
        noted.reads.push(Read { key, versions, values });
    }
}
