//! Writes, checked before anything is sent, and the script's words for them.

use std::collections::{BTreeMap, BTreeSet};

use mingle_model::{Name, Ref, Schema, Value};
use mingle_store::{Address, Write};

use crate::index::{ordered, settle};
use crate::layout::{Found, Layout, Shape};
use crate::limits::ADD_MAX;
use crate::mapping::Mapped;
use crate::operation::{self, Operations};
use crate::request::{Objects, Word, words};
use crate::witness;
use mingle_store::codec;

/// The context of writes.
#[derive(Clone, Copy)]
pub struct Writer<'a> {
    /// The places of fields.
    pub layout: &'a Layout,
    /// The declared operations.
    pub operations: &'a Operations,
    /// The prefix of Mingle's own keys.
    pub prefix: &'a str,
}

/// Writes in the script's words.
#[derive(Clone, Debug, Default)]
pub struct Prepared {
    /// One list of words for each write.
    pub operations: Vec<Vec<Word>>,
    /// The numbers of the objects whose data they change.
    pub written: BTreeSet<String>,
    /// The kinds with indexes of which they write objects.
    pub kinds: BTreeSet<Name>,
    /// The objects whose entries in indexes they may change, by number.
    indexed: BTreeMap<String, Ref>,
    /// True if a command is among them.
    pub has_commands: bool,
}

impl Writer<'_> {
    /// Adds a write.
    ///
    /// # Errors
    ///
    /// The reason why the store refuses it.
    pub fn add(
        &self,
        objects: &mut Objects,
        write: &Write,
        later: &[Write],
        into: &mut Prepared,
    ) -> Result<(), String> {
        if let Some(object) = write.object() {
            into.written.insert(objects.number(object, || self.layout.key(object))?);
            if !self.layout.indexes.of(object.kind()).is_empty() {
                into.kinds.insert(object.kind().clone());
            }
        }
        let all = &mut into.operations;
        match write {
            Write::Create(object) => self.create(objects, object, later, into)?,
            Write::Delete(object) => self.delete(objects, object, into)?,
            Write::Command { operation, arguments } => {
                into.has_commands = true;
                let command = operation::command(self.operations, operation)?;
                let (keys, words) = command.write(&self.layout.schema, arguments, self.prefix)?;
                all.push([words!["q", keys.len().to_string()], keys, words].concat());
            }
            Write::Witness(row) => {
                let object = match &row.object {
                    Some(object) => Some((object, self.layout.key(object)?)),
                    None => None,
                };
                let suffix = witness::suffix(object);
                let kept = witness::encode(row, &suffix);
                all.push(words!["w", suffix, kept]);
            }
            Write::Forget(id) => all.push(words!["f", witness::id(*id)]),
            Write::Record(key, value) => {
                all.push(words!["R", key.kind.code().to_string(), &*key.key, &**value]);
            }
            Write::Discard(key) => {
                all.push(words!["D", key.kind.code().to_string(), &*key.key]);
            }
            _ => self.change(objects, write, into)?,
        }
        Ok(())
    }

    /// Adds the changes of entries in indexes, after all writes.
    ///
    /// # Errors
    ///
    /// When an object is not in this store.
    pub fn settle(&self, into: &mut Prepared) -> Result<(), String> {
        for (number, object) in &into.indexed {
            let indexes = self.layout.indexes.of(object.kind());
            let declared = &self.layout.kind(object)?.declared;
            into.operations.push(settle(number, object, indexes, declared));
        }
        Ok(())
    }

    fn create(
        &self,
        objects: &mut Objects,
        object: &Ref,
        later: &[Write],
        into: &mut Prepared,
    ) -> Result<(), String> {
        match &self.layout.kind(object)?.mapped {
            Some(mapped) => into.operations.extend(self.create_mapped(mapped, object, later)?),
            None => into.operations.push(words!["c", self.number(objects, object)?]),
        }
        Ok(())
    }

    fn delete(
        &self,
        objects: &mut Objects,
        object: &Ref,
        into: &mut Prepared,
    ) -> Result<(), String> {
        if let Some(mapped) = &self.layout.kind(object)?.mapped {
            into.operations.extend(mapped.delete(&self.layout.key(object)?));
            return Ok(());
        }
        let number = self.number(objects, object)?;
        into.operations.push(words!["d", &*number]);
        if !self.layout.indexes.of(object.kind()).is_empty() {
            into.operations.push(words!["V", &*number]);
            into.indexed.insert(number, object.clone());
        }
        Ok(())
    }

    /// Adds a write of a field, and the value that indexes of the field have from then on.
    fn change(
        &self,
        objects: &mut Objects,
        write: &Write,
        into: &mut Prepared,
    ) -> Result<(), String> {
        into.operations.push(self.field(objects, write)?);
        if let Write::Assign(address, value) = write
            && self.layout.indexes.has(address.object.kind(), address.field)
        {
            let number = self.number(objects, &address.object)?;
            let name = &self.layout.field(address, &[Shape::Register])?.field.name;
            into.operations.push(words!["v", &*number, &**name, ordered(Some(value))]);
            into.indexed.insert(number, address.object.clone());
        }
        Ok(())
    }

    fn number(&self, objects: &mut Objects, object: &Ref) -> Result<String, String> {
        objects.number(object, || self.layout.key(object))
    }

    /// Makes a mapped object exist: it does once one of its fields does.
    fn create_mapped(
        &self,
        mapped: &Mapped,
        object: &Ref,
        later: &[Write],
    ) -> Result<Option<Vec<Word>>, String> {
        let key = self.layout.key(object)?;
        if let Some(create) = mapped.create(&key) {
            return Ok(Some(create));
        }
        let makes = |write: &Write| {
            write.object() == Some(object)
                && matches!(
                    write,
                    Write::Assign(..)
                        | Write::Add(..)
                        | Write::Insert(..)
                        | Write::Put(..)
                        | Write::Append(..)
                )
        };
        if later.iter().any(makes) {
            return Ok(None);
        }
        Ok(Some(mapped.must_exist(&key)))
    }

    fn field(&self, objects: &mut Objects, write: &Write) -> Result<Vec<Word>, String> {
        let (address, shapes): (&Address, &[Shape]) = match write {
            Write::Assign(address, _) => (address, &[Shape::Register]),
            Write::Add(address, _) => (address, &[Shape::Counter]),
            Write::Insert(address, _) | Write::Remove(address, _) => (address, &[Shape::Set]),
            Write::Put(address, ..) | Write::Erase(address, _) => (address, &[Shape::Map]),
            Write::Append(address, _) => (address, &[Shape::Log]),
            Write::Clear(address) => (address, &[Shape::Set, Shape::Map, Shape::Log]),
            _ => unreachable!("all others were dealt with"),
        };
        let found = self.layout.field(address, shapes)?;
        let change = Change::new(&self.layout.schema, found, write)?;
        if let Some(mapped) = &found.kind.mapped {
            return Ok(change.mapped(mapped, &self.layout.key(&address.object)?, found.index));
        }
        let number = self.number(objects, &address.object)?;
        let [code, rest @ ..] = &change.own()[..] else { unreachable!("it has a code") };
        Ok([words![code.clone(), number, &*found.field.name], rest.to_vec()].concat())
    }
}

/// A change of a field, with its values in stored form.
enum Change {
    Assign(Word),
    Add(i128),
    Insert(Word),
    Remove(Word),
    Put(Word, Word),
    Erase(Word),
    Append(Word),
    Clear,
}

impl Change {
    fn new(schema: &Schema, found: Found<'_>, write: &Write) -> Result<Self, String> {
        let at = |why: String| format!("{}.{}: {why}", found.kind.declared.name, found.field.name);
        let unit = |value: &Value| codec::encode_key(schema, value, found.unit()).map_err(at);
        let value = |value: &Value| codec::encode(schema, value, found.inner()).map_err(at);
        Ok(match write {
            Write::Assign(_, new) => Self::Assign(value(new)?),
            Write::Add(_, amount) if amount.unsigned_abs() > ADD_MAX.unsigned_abs() => {
                return Err(at(format!("an add of {amount} is beyond 2^90")));
            }
            Write::Add(_, amount) => Self::Add(*amount),
            Write::Insert(_, element) => Self::Insert(unit(element)?),
            Write::Remove(_, element) => Self::Remove(unit(element)?),
            Write::Put(_, key, new) => Self::Put(unit(key)?, value(new)?),
            Write::Erase(_, key) => Self::Erase(unit(key)?),
            Write::Append(_, line) => Self::Append(value(line)?),
            _ => Self::Clear,
        })
    }

    /// Returns the code, and the words after the field's name.
    fn own(self) -> Vec<Word> {
        match self {
            Self::Assign(value) => words!["a", value],
            Self::Add(amount) => words!["n", amount.to_string()],
            Self::Insert(element) => words!["i", element],
            Self::Remove(element) => words!["r", element, "SREM"],
            Self::Put(key, value) => words!["p", key, value],
            Self::Erase(key) => words!["r", key, "HDEL"],
            Self::Append(line) => words!["l", line],
            Self::Clear => words!["z"],
        }
    }

    fn mapped(self, mapped: &Mapped, key: &[u8], field: usize) -> Vec<Word> {
        match self {
            Self::Assign(value) => mapped.assign(key, field, value),
            Self::Add(amount) => mapped.add(key, field, amount),
            Self::Insert(element) => mapped.change(key, field, "SADD", &[element]),
            Self::Remove(element) => mapped.change(key, field, "SREM", &[element]),
            Self::Put(at, value) => mapped.change(key, field, "HSET", &[at, value]),
            Self::Erase(at) => mapped.change(key, field, "HDEL", &[at]),
            Self::Append(line) => mapped.change(key, field, "RPUSH", &[line]),
            Self::Clear => mapped.change(key, field, "DEL", &[]),
        }
    }
}
