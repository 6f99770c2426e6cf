//! Reads: the requests to a store, and its answers seen through the transaction's own writes.

mod draw;

use std::collections::BTreeSet;
use std::sync::Arc;

use mingle_lang::code::ReadSpec;
use mingle_lang::flat::{ReadKind, Slot};
use mingle_lang::hir::CollectionRead;
use mingle_lang::ops;
use mingle_lang::split::Mutation;
use mingle_model::{FieldType, Ref, Value};
use mingle_store::{Address, Data, Read};

use super::slice::values_in;
use super::{Machine, Need, too_large};
use crate::api::error::Error;
use crate::interpreter::write_buffer::{FieldView, FieldWrites};

impl<'a> Machine<'a> {
    /// Asks for the reads that are not fetched yet.
    pub(super) fn ask(&mut self, reads: Vec<Read>) -> Option<Need> {
        let mut wanted: Vec<Read> = Vec::with_capacity(reads.len());
        let mut seen: BTreeSet<Read> = BTreeSet::new();
        for read in reads {
            if !self.fetched.contains_key(&read) && (wanted.is_empty() || !seen.contains(&read)) {
                if seen.is_empty() {
                    seen.extend(wanted.first().cloned());
                }
                seen.insert(read.clone());
                wanted.push(read);
            }
        }
        if wanted.is_empty() {
            return None;
        }
        self.awaited.clone_from(&wanted);
        Some(Need::Read(wanted))
    }

    pub(super) fn fetch(&mut self, reads: &'a [ReadSpec]) -> Option<Need> {
        if let Some(flush) = self.flush_commands() {
            // Come back to this instruction once the commands are sent.
            self.at -= 1;
            return Some(flush);
        }
        let mut requests = Vec::with_capacity(reads.len());
        for read in reads {
            self.requests(read, &mut requests);
        }
        self.ask(requests)
    }

    pub(super) fn object(&self, read: &ReadSpec) -> Ref {
        match read.object.as_ref().map(|object| self.value(object)) {
            Some(Value::Ref(object)) => object,
            other => panic!(
                "a read of an object has its ref, not {other:?}: the program was not checked"
            ),
        }
    }

    /// Adds the requests of a read to the store, regardless of this transaction's own writes.
    pub(super) fn requests(&self, read: &ReadSpec, requests: &mut Vec<Read>) {
        let count = |value: Value| u64::try_from(value.as_int().unwrap_or_default()).unwrap_or(0);
        let arg = |index: usize| self.value(&read.args[index]);
        match &read.kind {
            ReadKind::Exists(_) | ReadKind::ExistsForNew(_) => {
                requests.push(Read::Exists(self.object(read)));
            }
            ReadKind::Free { .. } => requests.extend(self.others(read)),
            ReadKind::Register(_, field) | ReadKind::Indexed(_, field) => {
                requests.push(Read::Register(self.address(read, *field)));
            }
            ReadKind::Contents(kind, field) => {
                let address = self.address(read, *field);
                requests.push(match self.field_type(*kind, *field) {
                    FieldType::Map(..) => Read::Entries(address),
                    FieldType::Log(_) => Read::LogSlice { address, from: 0, count: u64::MAX },
                    _ => Read::Elements(address),
                });
            }
            ReadKind::Collection(_, field, collection) => {
                let address = self.address(read, *field);
                let request = match collection {
                    CollectionRead::CounterValue => Read::Counter(address),
                    CollectionRead::SetContains => Read::Contains(address, arg(0)),
                    CollectionRead::SetSize => Read::SetSize(address),
                    CollectionRead::SetList => Read::Elements(address),
                    CollectionRead::MapGet => Read::Entry(address, arg(0)),
                    CollectionRead::MapSize => Read::MapSize(address),
                    CollectionRead::MapKeys => Read::Entries(address),
                    CollectionRead::MapFirst
                    | CollectionRead::MapLast
                    | CollectionRead::MapAfter
                    | CollectionRead::MapSlice => self.map_slice(read, *collection, address),
                    CollectionRead::LogLast => Read::LogLast(address, count(arg(0))),
                    CollectionRead::LogSize => Read::LogSize(address),
                    CollectionRead::LogList => Read::LogSlice { address, from: 0, count: u64::MAX },
                    CollectionRead::LogSlice => {
                        // Own appends are counted from the end of the store's log.
                        requests.push(Read::LogSize(address.clone()));
                        Read::LogSlice { address, from: count(arg(0)), count: count(arg(1)) }
                    }
                };
                requests.push(request);
            }
            ReadKind::Query(operation) | ReadKind::Draw(_, operation) => {
                requests.push(self.query(*operation, read));
            }
        }
    }

    fn query(&self, operation: u32, read: &ReadSpec) -> Read {
        let arguments = read.args.iter().map(|arg| self.value(arg)).collect();
        Read::Query { operation: self.operation_name(operation), arguments }
    }

    fn address(&self, read: &ReadSpec, field: u16) -> Address {
        Address { object: self.object(read), field }
    }

    fn field_type(&self, kind: mingle_lang::hir::ObjectId, field: u16) -> &'a FieldType {
        &self.program.objects[kind.index()].declared.fields[usize::from(field)].field_type
    }

    /// Runs a read; if data of the store is missing, asks for it and repeats the instruction later.
    pub(super) fn read(
        &mut self,
        read: &'a ReadSpec,
        dsts: &'a [Slot],
    ) -> Result<Option<Need>, Error> {
        if let Some(flush) = self.flush_commands() {
            self.at -= 1;
            return Ok(Some(flush));
        }
        if let ReadKind::Query(operation) = &read.kind {
            return Ok(self.run_query(*operation, read, dsts[0]));
        }
        if let ReadKind::Draw(kind, operation) = &read.kind {
            return Ok(self.draw(*kind, *operation, read, dsts[0]));
        }
        if let ReadKind::Free { kind, index, fields } = &read.kind {
            return Ok(self.check_free(read, (*kind, *index), fields, dsts[0]));
        }
        if let Some(answering) = read.answering {
            return self.answered_read(read, dsts, answering);
        }
        let mut requests = Vec::new();
        if self.overlaid(read, dsts, &mut requests)? {
            return Ok(None);
        }
        self.at -= 1;
        let need = self.ask(requests);
        assert!(need.is_some(), "a read that has all its answers is done");
        Ok(need)
    }

    /// Runs a query. It sees the writes made before it, so they are sent first.
    fn run_query(&mut self, operation: u32, read: &ReadSpec, dst: Slot) -> Option<Need> {
        if !self.write_buffer.is_empty() {
            self.at -= 1;
            return Some(self.flush());
        }
        let request = self.query(operation, read);
        if let Some(Data::Result(value)) = self.fetched.get(&request) {
            self.slots[dst.index()] = value.clone();
            return None;
        }
        self.at -= 1;
        self.ask(vec![request])
    }

    /// Answers a read if all data is there; otherwise adds the missing requests.
    pub(super) fn overlaid(
        &mut self,
        read: &ReadSpec,
        dsts: &[Slot],
        requests: &mut Vec<Read>,
    ) -> Result<bool, Error> {
        let object = self.object(read);
        let values = match &read.kind {
            ReadKind::Exists(_) | ReadKind::ExistsForNew(_) => {
                let is_seen = self.mutation != Mutation::OverlayIgnored;
                match self.write_buffer.exists(&object).filter(|_| is_seen) {
                    Some(exists) => Some(vec![Value::Bool(exists)]),
                    None => match self.fetched.get(&Read::Exists(object)) {
                        Some(Data::Bool(exists)) => Some(vec![Value::Bool(*exists)]),
                        _ => None,
                    },
                }
            }
            ReadKind::Indexed(_, field) => self.indexed(&object, *field).map(|found| vec![found]),
            ReadKind::Register(kind, field) => {
                self.register(&object, *kind, *field).map(|value| vec![value])
            }
            ReadKind::Contents(kind, field) => {
                let is_map = matches!(self.field_type(*kind, *field), FieldType::Map(..));
                let base = self.base(read, &object);
                self.contents(&object, *field, is_map, base.as_ref()).map(|(first, second)| {
                    let list = |values: Vec<Value>| Value::List(Arc::from(values));
                    std::iter::once(list(first)).chain(second.map(list)).collect()
                })
            }
            ReadKind::Collection(_, field, of) if of.is_map_slice() => {
                self.sliced(read, *of, (&object, *field))?
            }
            ReadKind::Collection(_, field, collection) => {
                let args: Vec<Value> = read.args.iter().map(|arg| self.value(arg)).collect();
                let base = self.base(read, &object);
                self.collection(&object, *field, *collection, &args, base.as_ref(), requests)?
                    .map(|value| vec![value])
            }
            ReadKind::Free { .. } | ReadKind::Query(_) | ReadKind::Draw(..) => None,
        };
        let Some(values) = values else {
            if requests.is_empty() {
                self.requests(read, requests);
            }
            return Ok(false);
        };
        for (dst, value) in dsts.iter().zip(values) {
            self.slots[dst.index()] = value;
        }
        Ok(true)
    }

    /// Takes the steps for a look through the transaction's own writes to a collection.
    fn take_own(&mut self, read: &ReadSpec, object: &Ref) {
        use CollectionRead::{CounterValue, MapGet, SetContains};
        let field = match &read.kind {
            ReadKind::Collection(_, _, CounterValue | MapGet | SetContains) => return,
            ReadKind::Contents(_, field) | ReadKind::Collection(_, field, _) => *field,
            _ => return,
        };
        let written = match self.view(object, field).writes {
            Some(FieldWrites::Set(_, elements)) => elements.len(),
            Some(FieldWrites::Map(_, entries)) => entries.len(),
            Some(FieldWrites::Log(_, lines)) => lines.len(),
            _ => 0,
        };
        self.slice.take_values(written);
    }

    pub(super) fn view(&self, object: &Ref, field: u16) -> FieldView<'_> {
        if self.mutation == Mutation::OverlayIgnored {
            return FieldView { writes: None, hidden: false };
        }
        self.write_buffer.field(object, field)
    }

    /// Returns the value of a counter whose adds have this sum.
    fn counted(&self, object: &Ref, field: u16, sum: i128) -> i64 {
        let declared =
            self.program.objects.iter().find(|known| known.declared.name == *object.kind());
        declared.expect("the object is of a declared kind").counted(field, sum)
    }

    /// Returns the store's answer to the last request of a read, if it is there. A look through it,
    /// and through the transaction's own writes, takes steps of the slice.
    pub(super) fn base(&mut self, read: &ReadSpec, object: &Ref) -> Option<Data> {
        self.take_own(read, object);
        let mut requests = Vec::with_capacity(1);
        self.requests(read, &mut requests);
        let base = requests.last().and_then(|request| self.fetched.get(request)).cloned();
        self.slice.take_values(base.as_ref().map_or(0, values_in));
        base
    }

    /// Returns the contents of a collection: elements, or keys and values. None if the store's
    /// contents are needed and not there.
    pub(super) fn contents(
        &self,
        object: &Ref,
        field: u16,
        is_map: bool,
        base: Option<&Data>,
    ) -> Option<(Vec<Value>, Option<Vec<Value>>)> {
        let view = self.view(object, field);
        let cleared = view.hidden
            || matches!(
                view.writes,
                Some(
                    FieldWrites::Set(true, _)
                        | FieldWrites::Map(true, _)
                        | FieldWrites::Log(true, _)
                )
            );
        let empty = if is_map { Data::Entries(Vec::new()) } else { Data::Values(Vec::new()) };
        let base = if cleared { &empty } else { base? };
        Some(match (base, view.writes) {
            (Data::Values(values), Some(FieldWrites::Set(_, elements))) => {
                let mut all: BTreeSet<Value> = values.iter().cloned().collect();
                for (element, present) in elements {
                    if *present {
                        all.insert(element.clone())
                    } else {
                        all.remove(element)
                    };
                }
                (all.into_iter().collect(), None)
            }
            (Data::Values(values), Some(FieldWrites::Log(_, lines))) => {
                (values.iter().chain(lines).cloned().collect(), None)
            }
            (Data::Entries(entries), Some(FieldWrites::Map(_, changes))) => {
                let mut all: std::collections::BTreeMap<Value, Value> =
                    entries.iter().cloned().collect();
                for (key, value) in changes {
                    match value {
                        Some(value) => all.insert(key.clone(), value.clone()),
                        None => all.remove(key),
                    };
                }
                let (keys, values) = all.into_iter().unzip();
                (keys, Some(values))
            }
            (Data::Entries(entries), _) => {
                let (keys, values) = entries.iter().cloned().unzip();
                (keys, Some(values))
            }
            (Data::Values(values), _) => (values.clone(), None),
            _ => (Vec::new(), None),
        })
    }

    /// Returns the value of a read of a collection; none if data is missing. Then `requests` names
    /// the missing reads, unless only the read itself is missing.
    #[allow(clippy::too_many_arguments)]
    fn collection(
        &self,
        object: &Ref,
        field: u16,
        read: CollectionRead,
        args: &[Value],
        base: Option<&Data>,
        requests: &mut Vec<Read>,
    ) -> Result<Option<Value>, Error> {
        let view = self.view(object, field);
        let address = || Address { object: object.clone(), field };
        Ok(match read {
            CollectionRead::CounterValue => {
                let own = match view.writes {
                    Some(FieldWrites::Counter(sum)) => *sum,
                    _ => 0,
                };
                match base {
                    _ if view.hidden => Some(own),
                    Some(Data::Counter(sum)) => Some(sum.saturating_add(own)),
                    _ => None,
                }
                .map(|sum| Value::Int(self.counted(object, field, sum)))
            }
            CollectionRead::SetContains => match view.writes {
                Some(FieldWrites::Set(_, elements)) if elements.contains_key(&args[0]) => {
                    elements.get(&args[0]).map(|present| Value::Bool(*present))
                }
                Some(FieldWrites::Set(true, _)) => Some(Value::Bool(false)),
                _ if view.hidden => Some(Value::Bool(false)),
                _ => match base {
                    Some(Data::Bool(present)) => Some(Value::Bool(*present)),
                    _ => None,
                },
            },
            CollectionRead::MapGet => match view.writes {
                Some(FieldWrites::Map(_, entries)) if entries.contains_key(&args[0]) => entries
                    .get(&args[0])
                    .map(|value| value.clone().map_or(Value::NONE, Value::some)),
                Some(FieldWrites::Map(true, _)) => Some(Value::NONE),
                _ if view.hidden => Some(Value::NONE),
                _ => match base {
                    Some(Data::Register(value)) => {
                        Some(value.clone().map_or(Value::NONE, Value::some))
                    }
                    _ => None,
                },
            },
            CollectionRead::SetSize | CollectionRead::MapSize => {
                self.size(view, address, base, requests)
            }
            CollectionRead::LogSize => {
                let (cleared, own) = log_writes(view);
                match base {
                    _ if cleared => Some(own.len() as u64),
                    Some(Data::Count(count)) => Some(count + own.len() as u64),
                    _ => None,
                }
                .map(|count| Value::Int(i64::try_from(count).unwrap_or(i64::MAX)))
            }
            CollectionRead::LogLast => {
                let (cleared, own) = log_writes(view);
                let count = usize::try_from(args[0].as_int().unwrap_or_default()).unwrap_or(0);
                let base: &[Value] = match base {
                    _ if cleared => &[],
                    Some(Data::Values(values)) => values,
                    _ => return Ok(None),
                };
                let all = base.len() + own.len();
                let lines = base.iter().chain(own).skip(all.saturating_sub(count));
                Some(list(lines.cloned().collect())?)
            }
            CollectionRead::LogSlice => {
                let (cleared, own) = log_writes(view);
                let size = match self.fetched.get(&Read::LogSize(address())) {
                    _ if cleared => 0,
                    Some(Data::Count(count)) => *count,
                    _ => return Ok(None),
                };
                let base: &[Value] = match base {
                    _ if cleared => &[],
                    Some(Data::Values(values)) => values,
                    _ => return Ok(None),
                };
                let number =
                    |value: &Value| u64::try_from(value.as_int().unwrap_or_default()).unwrap_or(0);
                let (from, count) = (number(&args[0]), number(&args[1]));
                let skip = usize::try_from(from.saturating_sub(size)).unwrap_or(usize::MAX);
                let count = usize::try_from(count).unwrap_or(usize::MAX);
                Some(list(base.iter().chain(own.iter().skip(skip)).take(count).cloned().collect())?)
            }
            // A slice is answered in `sliced`; what is left is a list of all.
            _ => match self.contents(object, field, read == CollectionRead::MapKeys, base) {
                Some((first, _)) => Some(list(first)?),
                None => None,
            },
        })
    }

    /// Returns the size of a set or map; asks the store which changed elements it already has.
    fn size(
        &self,
        view: FieldView<'_>,
        address: impl Fn() -> Address,
        base: Option<&Data>,
        requests: &mut Vec<Read>,
    ) -> Option<Value> {
        let mut size = match base {
            _ if view.hidden => 0,
            Some(Data::Count(count)) => i64::try_from(*count).unwrap_or(i64::MAX),
            _ => return None,
        };
        let changes: Vec<(&Value, bool)> = match view.writes {
            Some(FieldWrites::Set(_, elements)) => {
                elements.iter().map(|(element, present)| (element, *present)).collect()
            }
            Some(FieldWrites::Map(_, entries)) => {
                entries.iter().map(|(key, value)| (key, value.is_some())).collect()
            }
            _ => Vec::new(),
        };
        let is_map = matches!(view.writes, Some(FieldWrites::Map(..)));
        let emptied = view.hidden
            || matches!(view.writes, Some(FieldWrites::Set(true, _) | FieldWrites::Map(true, _)));
        if emptied {
            let present = changes.iter().filter(|(_, present)| *present).count();
            return Some(Value::Int(present as i64));
        }
        for (element, present) in changes {
            let request = if is_map {
                Read::Entry(address(), element.clone())
            } else {
                Read::Contains(address(), element.clone())
            };
            let was = match self.fetched.get(&request) {
                Some(Data::Bool(was)) => *was,
                Some(Data::Register(was)) => was.is_some(),
                _ => {
                    requests.push(request);
                    continue;
                }
            };
            size += i64::from(present) - i64::from(was);
        }
        requests.is_empty().then_some(Value::Int(size))
    }
}

pub(super) fn list(values: Vec<Value>) -> Result<Value, Error> {
    ops::check_list(values.len()).map_err(too_large)?;
    Ok(Value::List(values.into()))
}

/// Returns true if the store's log is hidden, and the lines that this transaction appended.
fn log_writes(view: FieldView<'_>) -> (bool, &[Value]) {
    match view.writes {
        Some(FieldWrites::Log(cleared, lines)) => (*cleared || view.hidden, lines),
        _ => (view.hidden, &[]),
    }
}
