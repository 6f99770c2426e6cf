//! The simplest possible store: the plain interpreter's state behind a lock.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mingle_lang::hir::{CollectionWrite, Program, StoreId};
use mingle_lang::plain::{FieldState, State};
use mingle_model::{BuiltinQuery, FieldType, Level, TransactionId, Value, Version};
use mingle_store::{
    Address, Answer, BoxFuture, Bytes, Capabilities, Commit, Committed, Data, DataStore, Once,
    Outcome, Read, RecordKey, Session, StoreError, Transaction, Write,
};

use crate::harness::operate;

/// The state that all stores of a program share; each writes only its own objects.
pub type Shared = Arc<Mutex<State>>;

/// The records of a store.
type Records = Arc<Mutex<BTreeMap<RecordKey, Bytes>>>;

/// The number of times a store was told which reads of a transaction are its last.
pub static LAST_READS: AtomicU64 = AtomicU64::new(0);

pub struct ModelStore {
    program: Arc<Program>,
    store: StoreId,
    state: Shared,
    records: Records,
    capabilities: Capabilities,
}

impl ModelStore {
    pub fn new(program: Arc<Program>, store: usize, state: Shared) -> Arc<Self> {
        let capabilities = Capabilities {
            store: program.stores[store].name.clone(),
            level: Level::Linearizable,
            atomic_commit: true,
            serializable: true,
            once: Once::Serial,
            may_lose_answers: false,
            floor_suffices: false,
            replicas: Vec::new(),
            weaker_answers: Vec::new(),
            operations_per_round_trip: usize::MAX,
            round_trip: Duration::ZERO,
        };
        let records = Records::default();
        Arc::new(Self { program, store: StoreId(store as u32), state, records, capabilities })
    }
}

impl DataStore for ModelStore {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn begin<'a>(
        &'a self,
        _: &'a Session,
    ) -> BoxFuture<'a, Result<Box<dyn Transaction>, StoreError>> {
        let transaction = ModelTransaction {
            program: self.program.clone(),
            store: self.store,
            state: self.state.clone(),
            records: self.records.clone(),
            flushed: Vec::new(),
            is_over: false,
        };
        Box::pin(std::future::ready(Ok(Box::new(transaction) as Box<dyn Transaction>)))
    }

    fn outcome(&self, _: TransactionId) -> BoxFuture<'_, Result<Outcome, StoreError>> {
        Box::pin(std::future::ready(Ok(Outcome::Unknown)))
    }
}

struct ModelTransaction {
    program: Arc<Program>,
    store: StoreId,
    state: Shared,
    records: Records,
    flushed: Vec<Write>,
    /// True if it was told that it has answered its last reads.
    is_over: bool,
}

impl Transaction for ModelTransaction {
    fn read<'a>(&'a mut self, reads: &'a [Read]) -> BoxFuture<'a, Result<Vec<Answer>, StoreError>> {
        assert!(!self.is_over, "{reads:?} come after the last reads");
        let state = self.state.lock().expect("no test panics with this lock");
        let mut state = std::borrow::Cow::Borrowed(&*state);
        for write in &self.flushed {
            apply(&self.program, self.store, state.to_mut(), write.clone());
        }
        let answers = reads.iter().map(|read| Answer {
            data: match read {
                Read::Record(key) => {
                    let records = self.records.lock().expect("no test panics with this lock");
                    Data::Record(records.get(key).cloned())
                }
                read => answer(&self.program, self.store, &state, read),
            },
            version: Version(0),
            witnesses: Vec::new(),
        });
        let answers = answers.collect();
        Box::pin(std::future::ready(Ok(answers)))
    }

    fn read_last<'a>(
        &'a mut self,
        reads: &'a [Read],
    ) -> BoxFuture<'a, Result<Vec<Answer>, StoreError>> {
        LAST_READS.fetch_add(1, Ordering::Relaxed);
        Box::pin(async {
            let answers = self.read(reads).await;
            self.is_over = true;
            answers
        })
    }

    fn flush(&mut self, writes: Vec<Write>) -> BoxFuture<'_, Result<(), StoreError>> {
        self.flushed.extend(writes);
        Box::pin(std::future::ready(Ok(())))
    }

    fn commit(
        self: Box<Self>,
        commit: Commit,
    ) -> BoxFuture<'static, Result<Committed, StoreError>> {
        assert!(
            !self.is_over || commit.is_empty(),
            "{:?} come after the last reads",
            commit.writes
        );
        let mut state = self.state.lock().expect("no test panics with this lock");
        let mut records = self.records.lock().expect("no test panics with this lock");
        for write in self.flushed.into_iter().chain(commit.writes) {
            match &write {
                Write::Record(key, bytes) => drop(records.insert(key.clone(), bytes.clone())),
                Write::Discard(key) => drop(records.remove(key)),
                _ => {}
            }
            apply(&self.program, self.store, &mut state, write);
        }
        Box::pin(std::future::ready(Ok(Committed::default())))
    }
}

/// Calls an operation, which has no result unless it is a query.
fn call(
    program: &Program,
    store: StoreId,
    state: &mut State,
    operation: &str,
    arguments: &[Value],
) -> Option<Value> {
    let mut operations = program.stores[store.index()].operations.iter();
    let index = operations.position(|declared| *declared.name == *operation);
    let declared = &program.stores[store.index()].operations[index.expect("it is declared")];
    match &declared.builtin {
        Some(BuiltinQuery::Index(read)) => {
            return Some(state.indexed(&program.schema, read, arguments));
        }
        Some(BuiltinQuery::Draw(kind)) => return Some(Value::Int(state.draw(kind))),
        None => {}
    }
    operate(state, store, index.expect("it is declared") as u32, arguments)
}

fn answer(program: &Program, store: StoreId, state: &State, read: &Read) -> Data {
    let field = |address: &Address| state.field(&address.object, address.field);
    match read {
        Read::Exists(object) => Data::Bool(state.exists(object)),
        Read::Register(address) => Data::Register(match field(address) {
            Some(FieldState::Register(value)) => Some(value.clone()),
            _ => None,
        }),
        Read::Counter(address) => Data::Counter(match field(address) {
            Some(FieldState::Counter(sum)) => *sum,
            _ => 0,
        }),
        Read::Contains(address, element) => Data::Bool(
            matches!(field(address), Some(FieldState::Set(elements)) if elements.contains(element)),
        ),
        Read::SetSize(address) => Data::Count(match field(address) {
            Some(FieldState::Set(elements)) => elements.len() as u64,
            _ => 0,
        }),
        Read::Elements(address) => Data::Values(match field(address) {
            Some(FieldState::Set(elements)) => elements.iter().cloned().collect(),
            _ => Vec::new(),
        }),
        Read::Entry(address, key) => Data::Register(match field(address) {
            Some(FieldState::Map(entries)) => entries.get(key).cloned(),
            _ => None,
        }),
        Read::MapSize(address) => Data::Count(match field(address) {
            Some(FieldState::Map(entries)) => entries.len() as u64,
            _ => 0,
        }),
        Read::Entries(address) => Data::Entries(match field(address) {
            Some(FieldState::Map(entries)) => {
                entries.iter().map(|(key, value)| (key.clone(), value.clone())).collect()
            }
            _ => Vec::new(),
        }),
        Read::MapSlice { address, range } => Data::Entries(match field(address) {
            Some(FieldState::Map(entries)) => range.slice(entries),
            _ => Vec::new(),
        }),
        Read::LogSize(address) => Data::Count(lines(field(address)).len() as u64),
        Read::LogLast(address, count) => {
            let lines = lines(field(address));
            let count = usize::try_from(*count).unwrap_or(usize::MAX);
            Data::Values(lines[lines.len().saturating_sub(count)..].to_vec())
        }
        Read::LogSlice { address, from, count } => {
            let number = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
            Data::Values(
                lines(field(address))
                    .iter()
                    .skip(number(*from))
                    .take(number(*count))
                    .cloned()
                    .collect(),
            )
        }
        Read::Query { operation, arguments } => {
            let result = call(program, store, &mut state.clone(), operation, arguments);
            Data::Result(result.expect("a query has a result"))
        }
        // No transaction leaves witness rows here.
        Read::Witnesses { .. } => Data::Witnesses(Vec::new()),
        Read::Record(_) | Read::Records { .. } => unreachable!("programs read data alone"),
    }
}

fn lines(field: Option<&FieldState>) -> &[Value] {
    match field {
        Some(FieldState::Log(lines)) => lines,
        _ => &[],
    }
}

pub fn apply(program: &Program, store: StoreId, state: &mut State, write: Write) {
    let field_type = |address: &Address| -> FieldType {
        let declared = program.schema.objects[address.object.kind()].clone();
        declared.fields[usize::from(address.field)].field_type.clone()
    };
    let mut change = |address: Address, write: CollectionWrite, args: Vec<Value>| {
        let field_type = field_type(&address);
        state.change(&address.object, address.field, &field_type, write, args);
    };
    match write {
        Write::Create(object) => state.create(&object),
        Write::Delete(object) => state.delete(&object),
        Write::Assign(address, value) => state.assign(&address.object, address.field, value),
        Write::Add(address, amount) => state.add(&address.object, address.field, amount),
        Write::Insert(address, element) => change(address, CollectionWrite::Insert, vec![element]),
        Write::Remove(address, element) => change(address, CollectionWrite::Remove, vec![element]),
        Write::Put(address, key, value) => change(address, CollectionWrite::Put, vec![key, value]),
        Write::Erase(address, key) => change(address, CollectionWrite::Erase, vec![key]),
        Write::Append(address, line) => change(address, CollectionWrite::Append, vec![line]),
        Write::Clear(address) => change(address, CollectionWrite::Clear, Vec::new()),
        // No process crashes here, so none reads the records that would be left behind.
        Write::Witness(_) | Write::Forget(_) | Write::Record(..) | Write::Discard(_) => {}
        Write::Command { operation, arguments } => {
            call(program, store, state, &operation, &arguments);
        }
    }
}
