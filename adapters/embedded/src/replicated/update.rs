//! The update of one commit, which a replica sends to the others.
//!
//! Keys omit their section and replica; each replica prepends its own.

use super::context::Context;
use super::tally::{self, Removal};
use crate::encoding::wire::{Reader, Writer};

/// The name of an update: its replica, and its number there, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dot {
    /// Index of the replica.
    pub origin: u8,
    /// The number there.
    pub sequence: u64,
}

/// The effect of one commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Update {
    /// Its name.
    pub dot: Dot,
    /// Its Lamport timestamp, above those of all that its replica had seen.
    pub timestamp: u64,
    /// The updates that its replica had seen.
    pub context: Context,
    /// Objects deleted and collections cleared; applied before all else.
    pub scopes: Vec<Scope>,
    /// Units changed, each at most once.
    pub units: Vec<UnitChange>,
    /// Adds to counters, each at most once.
    pub adds: Vec<(Vec<u8>, i128)>,
    /// Lines appended: the log, and the line.
    pub lines: Vec<(Vec<u8>, Vec<u8>)>,
}

/// A removal of all that the update's context covers under a prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// An object's prefix, or a collection's.
    pub prefix: Vec<u8>,
    /// For an object.
    pub object: Option<ObjectScope>,
    /// True if the collection is a log.
    pub is_log: bool,
}

/// The part of an object's deletion beyond its prefix.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectScope {
    /// The adds to remove from each counter.
    pub counters: Vec<(Vec<u8>, Removal)>,
}

/// The kind of unit that a change applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitKind {
    /// An object's presence.
    Presence,
    /// A register, or a record.
    Register,
    /// An element or entry, of the collection whose prefix has this length.
    Element(u32),
    /// A witness row.
    Witness,
}

/// A change to one unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitChange {
    /// The kind of unit.
    pub kind: UnitKind,
    /// Its key.
    pub key: Vec<u8>,
    /// Dots to take away.
    pub removed: Vec<Dot>,
    /// The value that the update's own dot adds.
    pub added: Option<Vec<u8>>,
}

impl Dot {
    /// Appends the dot.
    pub fn encode(self, writer: &mut Writer) {
        writer.u8(self.origin);
        writer.u64(self.sequence);
    }

    /// Takes a dot.
    pub fn decode(reader: &mut Reader<'_>) -> Self {
        Self { origin: reader.u8(), sequence: reader.u64() }
    }
}

impl Update {
    /// Returns the origin of an update in a row.
    pub fn origin(row: &[u8]) -> u8 {
        Dot::decode(&mut Reader(row)).origin
    }

    /// The row form.
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        self.dot.encode(&mut writer);
        writer.u64(self.timestamp);
        self.context.encode(&mut writer);
        writer.count(self.scopes.len());
        for scope in &self.scopes {
            scope.encode(&mut writer);
        }
        writer.count(self.units.len());
        for unit in &self.units {
            unit.encode(&mut writer);
        }
        writer.count(self.adds.len());
        for (key, amount) in &self.adds {
            writer.bytes(key);
            writer.i128(*amount);
        }
        writer.count(self.lines.len());
        for (log, line) in &self.lines {
            writer.bytes(log);
            writer.bytes(line);
        }
        writer.0
    }

    /// From the row form.
    pub fn decode(row: &[u8]) -> Self {
        let reader = &mut Reader(row);
        let dot = Dot::decode(reader);
        let timestamp = reader.u64();
        let context = Context::decode(reader);
        let scopes = many(reader, Scope::decode);
        let units = many(reader, UnitChange::decode);
        let adds = many(reader, |reader| (reader.bytes().to_vec(), reader.i128()));
        let lines = many(reader, |reader| (reader.bytes().to_vec(), reader.bytes().to_vec()));
        assert!(reader.is_empty(), "an update with bytes left over is corrupt");
        Self { dot, timestamp, context, scopes, units, adds, lines }
    }
}

fn many<T>(reader: &mut Reader<'_>, mut one: impl FnMut(&mut Reader<'_>) -> T) -> Vec<T> {
    (0..reader.count()).map(|_| one(reader)).collect()
}

impl Scope {
    fn encode(&self, writer: &mut Writer) {
        writer.bytes(&self.prefix);
        writer.u8(u8::from(self.is_log));
        writer.u8(u8::from(self.object.is_some()));
        if let Some(object) = &self.object {
            writer.count(object.counters.len());
            for (key, removal) in &object.counters {
                writer.bytes(key);
                tally::encode_removal(removal, writer);
            }
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Self {
        let prefix = reader.bytes().to_vec();
        let is_log = reader.u8() != 0;
        let object = (reader.u8() != 0).then(|| ObjectScope {
            counters: many(reader, |reader| {
                (reader.bytes().to_vec(), tally::decode_removal(reader))
            }),
        });
        Self { prefix, object, is_log }
    }
}

impl UnitChange {
    fn encode(&self, writer: &mut Writer) {
        match self.kind {
            UnitKind::Presence => writer.u8(0),
            UnitKind::Register => writer.u8(1),
            UnitKind::Element(prefix) => {
                writer.u8(2);
                writer.u32(prefix);
            }
            UnitKind::Witness => writer.u8(3),
        }
        writer.bytes(&self.key);
        writer.count(self.removed.len());
        for dot in &self.removed {
            dot.encode(writer);
        }
        writer.u8(u8::from(self.added.is_some()));
        if let Some(added) = &self.added {
            writer.bytes(added);
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Self {
        let kind = match reader.u8() {
            0 => UnitKind::Presence,
            1 => UnitKind::Register,
            2 => UnitKind::Element(reader.u32()),
            3 => UnitKind::Witness,
            other => panic!("a unit of kind {other} is corrupt"),
        };
        Self {
            kind,
            key: reader.bytes().to_vec(),
            removed: many(reader, Dot::decode),
            added: (reader.u8() != 0).then(|| reader.bytes().to_vec()),
        }
    }
}
