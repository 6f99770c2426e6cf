//! Golden scripts of Eiger (thesis, chapter 5).

mod counters;
mod faults;
mod reads;
mod transactions;

use mingle_cops::column::{
    Cell, Column, Content, Family, Location, Mutation, Predicate, Slice, Update,
};
use mingle_cops::deps::Dep;
use mingle_cops::eiger::client::{Answer, Call};
use mingle_cops::message::{Message, Packet};

use crate::stage::{EigerStage, message};

/// The family of values, and that of counters.
const FAMILIES: [Family; 2] = [Family::Standard(0), Family::Counter(0)];

/// An insert of a value into column 1 of a row.
fn insert(key: u32, value: u64) -> Mutation {
    let location = Location { key, family: FAMILIES[0], column: Column::named(1) };
    Mutation { location, update: Update::Insert(value) }
}

/// A delete of column 1 of a row.
fn delete(key: u32) -> Mutation {
    Mutation { update: Update::Delete, ..insert(key, 0) }
}

/// An addition to the counter of a row.
fn add(key: u32, delta: i64) -> Mutation {
    let location = Location { key, family: FAMILIES[1], column: Column::named(1) };
    Mutation { location, update: Update::Add(delta) }
}

/// Column 1 of a row.
fn column(key: u32) -> Slice {
    Slice { key, family: FAMILIES[0], predicate: Predicate::Names(vec![Column::named(1)]) }
}

/// The counter of a row.
fn counter(key: u32) -> Slice {
    Slice { family: FAMILIES[1], ..column(key) }
}

/// The values in an answer, one for each slice; none for an absent or deleted column.
fn values(answer: &Answer) -> Vec<Option<u64>> {
    let value = |cells: &Vec<Cell>| {
        cells.first().map(|cell| match cell.content {
            Content::Value(value) => value,
            other => panic!("{other:?} is no value"),
        })
    };
    answer.slices.iter().map(value).collect()
}

impl EigerStage {
    /// Mutates one row, and returns the operation.
    fn mutate(&mut self, dc: u8, actor: u32, mutations: Vec<Mutation>) -> Dep {
        self.call(dc, actor, Call::BatchMutate(mutations)).written[0]
    }

    /// Mutates rows together, and returns the operation.
    fn atomic(&mut self, dc: u8, actor: u32, mutations: Vec<Mutation>) -> Dep {
        self.call(dc, actor, Call::AtomicMutate(mutations)).written[0]
    }

    /// Reads column 1 of rows together.
    fn columns<const N: usize>(&mut self, dc: u8, actor: u32, keys: [u32; N]) -> Answer {
        self.call(dc, actor, Call::MultigetSlice(keys.map(column).to_vec()))
    }

    /// Reads column 1 of a row.
    fn value(&mut self, dc: u8, actor: u32, key: u32) -> Option<u64> {
        values(&self.columns(dc, actor, [key]))[0]
    }

    /// Reads the counter of a row: its sum and its dependencies.
    fn sum(&mut self, dc: u8, actor: u32, key: u32) -> (i64, Vec<Dep>) {
        let answer = self.call(dc, actor, Call::MultigetSlice(vec![counter(key)]));
        match answer.slices[0].first() {
            None => (0, Vec::new()),
            Some(Cell { content: Content::Sum(sum), deps, .. }) => (*sum, deps.clone()),
            Some(other) => panic!("{other:?} is no sum"),
        }
    }
}

/// True if the packet asks for a slice of this row, or answers a read.
fn reads(packet: &Packet, key: u32) -> bool {
    matches!(message(packet), Some(Message::MultigetSlice { slice, .. }) if slice.key == key)
}

/// True if the packet belongs to a read.
fn is_read(packet: &Packet) -> bool {
    matches!(
        message(packet),
        Some(
            Message::MultigetSlice { .. }
                | Message::SliceResult { .. }
                | Message::CommitCheck { .. }
                | Message::CommitChecked { .. }
        )
    )
}

/// True if the packet is a commit for a cohort.
fn is_commit(packet: &Packet) -> bool {
    matches!(message(packet), Some(Message::Commit { .. }))
}
