//! Writes: into the write buffer, and to the store before the commit if the program asks the store
//! itself.

use std::collections::BTreeMap;

use mingle_lang::code::WriteSpec;
use mingle_lang::flat::{Slot, WriteKind};
use mingle_lang::hir::{CollectionWrite, ObjectId};
use mingle_model::{FieldType, Name, Ref, Value};
use mingle_store::{Data, Read, Write};

use super::{Machine, Need};
use crate::api::error::Error;
use crate::interpreter::write_buffer::FieldWrites;

/// The memory that one write takes besides its values, in bytes.
const WRITE_BYTES: usize = 64;

impl<'a> Machine<'a> {
    pub(super) fn operation_name(&self, operation: u32) -> Name {
        let store = self.store.expect("an operation runs in its store's phase");
        self.program.stores[store.index()].operations[operation as usize].name.clone()
    }

    /// Sends the waiting writes, and forgets the data fetched before them.
    pub(super) fn flush(&mut self) -> Need {
        let mut writes = std::mem::take(&mut self.commands);
        writes.extend(self.write_buffer.take_writes());
        self.fetched.clear();
        Need::Flush(writes)
    }

    /// Sends waiting commands, if any, before the next read.
    pub(super) fn flush_commands(&mut self) -> Option<Need> {
        if self.commands.is_empty() { None } else { Some(self.flush()) }
    }

    fn written_object(&self, write: &WriteSpec) -> Ref {
        match write.object.as_ref().map(|object| self.value(object)) {
            Some(Value::Ref(object)) => object,
            other => panic!(
                "a write of an object has its ref, not {other:?}: the program was not checked"
            ),
        }
    }

    pub(super) fn write(
        &mut self,
        write: &'a WriteSpec,
        dst: Option<Slot>,
    ) -> Result<Option<Need>, Error> {
        if let WriteKind::Command(operation) = &write.kind {
            return Ok(self.command(*operation, write, dst));
        }
        let object = self.written_object(write);
        let args: Vec<Value> = write.args.iter().map(|arg| self.value(arg)).collect();
        self.spend(WRITE_BYTES + args.iter().map(Value::weight).sum::<usize>())?;
        let mut args = args.into_iter();
        let mut arg = || args.next().expect("a write has its arguments");
        match &write.kind {
            WriteKind::Assign(kind, field) => self.assign(*kind, &object, *field, arg()),
            WriteKind::Delete(kind) => {
                self.lose(*kind, None, &object);
                self.write_buffer.delete(&object);
            }
            WriteKind::Create(kind, fields) => {
                self.write_buffer.create(&object);
                for (field, value) in fields.iter().zip(args) {
                    self.assign(*kind, &object, *field, value);
                }
            }
            WriteKind::Collection(kind, field, collection) => match collection {
                CollectionWrite::Add => {
                    self.write_buffer.add(
                        &object,
                        *field,
                        arg().as_int().expect("an amount is an int"),
                    );
                }
                CollectionWrite::Insert => self.write_buffer.set(&object, *field, arg(), true),
                CollectionWrite::Remove => self.write_buffer.set(&object, *field, arg(), false),
                CollectionWrite::Put => {
                    let key = arg();
                    self.write_buffer.put(&object, *field, key, Some(arg()));
                }
                CollectionWrite::Erase => self.write_buffer.put(&object, *field, arg(), None),
                CollectionWrite::Append => self.write_buffer.append(&object, *field, arg()),
                CollectionWrite::Clear => {
                    let empty = match &self.program.objects[kind.index()].declared.fields
                        [usize::from(*field)]
                    .field_type
                    {
                        FieldType::Set(_) => FieldWrites::Set(true, BTreeMap::new()),
                        FieldType::Map(..) => FieldWrites::Map(true, BTreeMap::new()),
                        _ => FieldWrites::Log(true, Vec::new()),
                    };
                    self.write_buffer.clear(&object, *field, empty);
                }
            },
            WriteKind::Command(_) => {}
        }
        Ok(None)
    }

    fn assign(&mut self, kind: ObjectId, object: &Ref, field: u16, value: Value) {
        if value == Value::NONE {
            self.lose(kind, Some(field), object);
        }
        self.write_buffer.assign(object, field, value);
    }

    fn command(&mut self, operation: u32, write: &'a WriteSpec, dst: Option<Slot>) -> Option<Need> {
        let arguments: Vec<Value> = write.args.iter().map(|arg| self.value(arg)).collect();
        let operation = self.operation_name(operation);
        // The command may write any object.
        self.claims.clear();
        let Some(dst) = dst else {
            // Writes made before a command are visible to it, so they keep their order.
            let before = self.write_buffer.take_writes();
            self.commands.extend(before);
            self.commands.push(Write::Command { operation, arguments });
            return None;
        };
        if !self.write_buffer.is_empty() || !self.commands.is_empty() {
            self.at -= 1;
            return Some(self.flush());
        }
        // A command with a result is asked like a query; its answer is used once.
        let request = Read::Query { operation, arguments };
        if let Some(Data::Result(value)) = self.fetched.remove(&request) {
            self.fetched.clear();
            self.slots[dst.index()] = value;
            return None;
        }
        self.at -= 1;
        self.ask(vec![request])
    }
}
