//! Updates applied in any order that the level allows, on replicas without a store around them,
//! compared with an observed-remove specification.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mingle_model::{
    Field, FieldType, Level, ObjectType, Origin, Ref, RowKind, Schema, TransactionId, Type, Value,
    WitnessRow,
};
use mingle_store::{
    Address, Answer, Data, Read, RecordKey, RecordKind, StoreSchema, TestWorld, Write,
};
use proptest::prelude::*;

use super::apply::apply;
use super::build::build;
use super::rows::ReplicaState;
use super::update::Update;
use crate::catalog::Catalog;
use crate::core::Core;
use crate::encoding::key;
use crate::reading::Reading;
use crate::storage::memory::MemoryStorage;
use crate::storage::overlay::Draft;
use crate::storage::{Changes, View};

const REPLICAS: u8 = 3;

fn core() -> Core {
    let types = [
        FieldType::Register(Type::Int),
        FieldType::Counter,
        FieldType::Set(Type::Int),
        FieldType::Map(Type::Int, Type::Int),
        FieldType::Log(Type::Int),
    ];
    let fields = types.into_iter().enumerate().map(|(index, field_type)| Field {
        name: format!("f{index}").into(),
        field_type,
        default: Value::Int(0),
    });
    let object = ObjectType {
        name: "O".into(),
        store: "s".into(),
        key_name: "key".into(),
        key_type: Type::Int,
        fields: fields.collect(),
    };
    let mut schema = Schema::default();
    schema.objects.insert("O".into(), Arc::new(object));
    let schema = StoreSchema {
        store: "s".into(),
        level: Level::Eventual,
        schema: Arc::new(schema),
        operations: BTreeMap::new(),
    };
    let replicas = ["r1".into(), "r2".into(), "r3".into()];
    let mut catalog = Catalog::new(&schema, &replicas);
    let layout = catalog.merge(&schema, &replicas).expect("nothing is kept yet");
    Core::new(
        "s".into(),
        layout,
        BTreeMap::new(),
        Box::<MemoryStorage>::default(),
        TestWorld::new(0),
    )
}

fn at(key: i64, field: u16) -> Address {
    Address { object: Ref::new("O", Value::Int(key)), field }
}

fn record(n: i64) -> RecordKey {
    RecordKey::of_origin(RecordKind::Lease, row(0, n).id.origin)
}

/// A row of the `n`th transaction, of an object or of the whole store.
fn row(key: i64, n: i64) -> WitnessRow {
    WitnessRow {
        object: (key > 0).then(|| Ref::new("O", Value::Int(key))),
        id: TransactionId { origin: Origin(n.unsigned_abs().into()), sequence: 1 },
        kind: RowKind::Write,
        intent: "s".into(),
        stores: Vec::new(),
        seen: Vec::new(),
    }
}

/// Returns one of a few writes that often conflict.
fn any_write() -> impl Strategy<Value = Write> {
    let (key, n) = (0..2i64, 0..3i64);
    (key, n, 0..18u8).prop_map(|(key, n, which)| {
        let value = Value::Int(n);
        match which {
            0 => Write::Create(Ref::new("O", Value::Int(key))),
            1 | 2 => Write::Delete(Ref::new("O", Value::Int(key))),
            3 => Write::Assign(at(key, 0), value),
            4 | 5 => Write::Add(at(key, 1), (i128::from(n) + 1) << (7 * n)),
            6 => Write::Insert(at(key, 2), value),
            7 => Write::Remove(at(key, 2), value),
            8 => Write::Put(at(key, 3), value.clone(), value),
            9 => Write::Erase(at(key, 3), value),
            10 => Write::Append(at(key, 4), value),
            11 => Write::Record(record(n), key.to_be_bytes().as_slice().into()),
            12 => Write::Discard(record(n)),
            13 | 14 => Write::Witness(row(key, n)),
            15 => Write::Forget(row(key, n).id),
            _ => Write::Clear(at(key, [2, 3, 4][n as usize])),
        }
    })
}

/// An event: a commit at a replica, or the delivery of an update that the replica lacks.
#[derive(Clone, Debug)]
enum Step {
    Commit(u8, Vec<Write>),
    Deliver(u8, prop::sample::Index),
}

fn any_steps() -> impl Strategy<Value = Vec<Step>> {
    let writes = prop::collection::vec(any_write(), 1..4);
    let commit = (0..REPLICAS, writes).prop_map(|(replica, writes)| Step::Commit(replica, writes));
    let deliver = (0..REPLICAS, any::<prop::sample::Index>())
        .prop_map(|(replica, index)| Step::Deliver(replica, index));
    prop::collection::vec(prop_oneof![commit, deliver], 1..40)
}

/// All replicas, and the updates on their way.
struct Cluster {
    core: Core,
    changes: Changes,
    waiting: Vec<Vec<Update>>,
    is_causal: bool,
    version: u64,
    specification: Specification,
}

impl Cluster {
    fn new(is_causal: bool) -> Self {
        Self {
            core: core(),
            changes: Changes::new(),
            waiting: vec![Vec::new(); usize::from(REPLICAS)],
            is_causal,
            version: 0,
            specification: Specification::default(),
        }
    }

    fn with_draft<T>(&mut self, act: impl FnOnce(&Core, &mut Draft<'_>) -> T) -> T {
        let base = self.core.storage.snapshot().expect("memory does not fail");
        let mut draft = Draft::new(&*base, std::mem::take(&mut self.changes));
        let result = act(&self.core, &mut draft);
        self.changes = draft.changes;
        result
    }

    fn state(&mut self, replica: u8) -> ReplicaState {
        self.with_draft(|_, draft| {
            let row = draft.get(&key::replica(replica)).expect("memory does not fail");
            row.map_or_else(
                || ReplicaState::new(usize::from(REPLICAS)),
                |row| ReplicaState::decode(&row),
            )
        })
    }

    fn commit(&mut self, replica: u8, writes: &[Write]) {
        let state = self.state(replica);
        let update = self.with_draft(|core, draft| {
            build(core, draft, replica, &state, writes).expect("memory does not fail")
        });
        let decoded = Update::decode(&update.encode());
        assert_eq!(decoded, update, "an update reads back as it was written");
        self.specification.commit(&state, &update, writes);
        self.receive(replica, &update);
        for other in (0..REPLICAS).filter(|other| *other != replica) {
            self.waiting[usize::from(other)].push(update.clone());
        }
    }

    fn receive(&mut self, replica: u8, update: &Update) {
        self.version += 1;
        let version = self.version;
        self.with_draft(|core, draft| {
            apply(core, draft, replica, version, update).expect("memory does not fail");
        });
    }

    /// Delivers one update that may be delivered now, if there is one.
    fn deliver(&mut self, replica: u8, index: prop::sample::Index) -> bool {
        let seen = self.state(replica).context;
        let waiting = &self.waiting[usize::from(replica)];
        let ready: Vec<usize> = (0..waiting.len())
            .filter(|n| !self.is_causal || seen.covers(&waiting[*n].context))
            .collect();
        if ready.is_empty() {
            return false;
        }
        let chosen = ready[index.index(ready.len())];
        let update = self.waiting[usize::from(replica)].remove(chosen);
        self.receive(replica, &update);
        true
    }

    fn read(&mut self, replica: u8) -> Vec<Data> {
        let reads = (0..2).flat_map(|key| {
            [
                Read::Exists(Ref::new("O", Value::Int(key))),
                Read::Register(at(key, 0)),
                Read::Counter(at(key, 1)),
                Read::Elements(at(key, 2)),
                Read::SetSize(at(key, 2)),
                Read::Entries(at(key, 3)),
                Read::MapSize(at(key, 3)),
                Read::LogLast(at(key, 4), 1000),
                Read::LogSize(at(key, 4)),
            ]
        });
        let from = row(0, 0).id;
        let own = (0..3).map(|n| Read::Record(record(n)));
        let own = own.chain([Read::Witnesses { from, limit: usize::MAX }]);
        let reads: Vec<Read> = reads.chain(own).collect();
        self.with_draft(|core, draft| {
            let none = Changes::new();
            let mut reading = Reading::at_replica(core, replica, draft, &none);
            let answers = reads.iter().map(|read| reading.answer(read));
            let answers: Vec<Answer> = answers.map(|a| a.expect("memory does not fail")).collect();
            answers.into_iter().map(|answer| answer.data).collect()
        })
    }

    /// Returns the number of early removals still stored; 0 once all updates have arrived.
    fn leftovers(&mut self) -> usize {
        self.with_draft(|_, draft| {
            let rows = (0..REPLICAS).map(|r| draft.keys(&key::early(r)).expect("memory"));
            rows.map(|rows| rows.len()).sum()
        })
    }
}

/// The expected final content after all commits: each add that no removal had seen. Computed in the
/// plain way, over the whole history, not over the state of replicas.
#[derive(Default)]
struct Specification {
    /// Commits: the timestamp, (origin, sequence), the context seen, and the writes in order.
    commits: Vec<Commit>,
}

struct Commit {
    origin: u8,
    sequence: u64,
    timestamp: u64,
    seen: super::context::Context,
    writes: Vec<Write>,
}

/// The position of a write in the history.
type Position = (usize, usize);

impl Specification {
    fn commit(&mut self, state: &ReplicaState, update: &Update, writes: &[Write]) {
        self.commits.push(Commit {
            origin: update.dot.origin,
            sequence: update.dot.sequence,
            timestamp: update.timestamp,
            seen: state.context.clone(),
            writes: writes.to_vec(),
        });
    }

    /// True if the write at `later` had seen the one at `earlier`.
    fn saw(&self, later: Position, earlier: Position) -> bool {
        let (by, of) = (&self.commits[later.0], &self.commits[earlier.0]);
        if later.0 == earlier.0 {
            return later.1 > earlier.1;
        }
        by.seen.contains(of.origin, of.sequence)
    }

    fn all(&self) -> Vec<(Position, &Write)> {
        let commits = self.commits.iter().enumerate();
        commits
            .flat_map(|(c, commit)| {
                let writes = commit.writes.iter().enumerate();
                writes.map(move |(w, write)| ((c, w), write))
            })
            .collect()
    }

    /// The writes that match and that no removal has seen, in order of (timestamp, origin).
    fn live(&self, adds: impl Fn(&Write) -> bool, removes: impl Fn(&Write) -> bool) -> Vec<&Write> {
        let all = self.all();
        let mut live: Vec<(Position, &Write)> = all
            .iter()
            .filter(|(at, write)| {
                adds(write)
                    && !all.iter().any(|(later, other)| removes(other) && self.saw(*later, *at))
            })
            .copied()
            .collect();
        live.sort_by_key(|((commit, write), _)| {
            let commit = &self.commits[*commit];
            (commit.timestamp, commit.origin, commit.sequence, *write)
        });
        live.into_iter().map(|(_, write)| write).collect()
    }

    /// Returns the reads at a replica that has seen all commits.
    fn read(&self) -> Vec<Data> {
        let objects = (0..2).flat_map(|key| self.read_object(key));
        objects.chain((0..3).map(|n| self.read_record(n))).chain([self.read_rows()]).collect()
    }

    fn read_record(&self, n: i64) -> Data {
        let puts = |w: &Write| matches!(w, Write::Record(key, _) if *key == record(n));
        let discards = |w: &Write| *w == Write::Discard(record(n));
        let last = self.live(puts, |w| puts(w) || discards(w)).last().copied();
        Data::Record(last.map(|write| match write {
            Write::Record(_, value) => value.clone(),
            other => panic!("{other:?} is no record"),
        }))
    }

    fn read_rows(&self) -> Data {
        let rows = (0..3).flat_map(|n| (0..2).map(move |key| row(key, n)));
        let live = rows.filter(|row| {
            let adds = |w: &Write| *w == Write::Witness(row.clone());
            !self.live(adds, |w| adds(w) || *w == Write::Forget(row.id)).is_empty()
        });
        Data::Witnesses(live.collect())
    }

    fn read_object(&self, key: i64) -> Vec<Data> {
        let object = Ref::new("O", Value::Int(key));
        let target = |write: &Write| target(write).as_ref() == Some(&object);
        let deletes = |write: &Write| matches!(write, Write::Delete(_)) && target(write);
        // As for every unit, a write covers the writes that it saw: its removal removes them too.
        let exists = !self.live(|w| target(w) && !matches!(w, Write::Delete(_)), target).is_empty();
        let assigns = |w: &Write| matches!(w, Write::Assign(..)) && target(w);
        let register = self.live(assigns, |w| assigns(w) || deletes(w));
        let register = register.last().map(|write| match write {
            Write::Assign(_, value) => value.clone(),
            other => panic!("{other:?} is no assignment"),
        });
        let adds = self.live(|w| matches!(w, Write::Add(..)) && target(w), deletes);
        let sum = adds.into_iter().map(|write| match write {
            Write::Add(_, amount) => *amount,
            other => panic!("{other:?} is no add"),
        });
        let clears = |field: u16| move |w: &Write| *w == Write::Clear(at(key, field));
        let elements: BTreeSet<Value> = (0..3)
            .map(Value::Int)
            .filter(|value| {
                let adds = |w: &Write| *w == Write::Insert(at(key, 2), value.clone());
                let removes = |w: &Write| *w == Write::Remove(at(key, 2), value.clone());
                !self.live(adds, |w| adds(w) || removes(w) || deletes(w) || clears(2)(w)).is_empty()
            })
            .collect();
        let entries: BTreeMap<Value, Value> = (0..3)
            .map(Value::Int)
            .filter_map(|entry| {
                let is_key = |k: &Value| *k == entry;
                let puts =
                    |w: &Write| matches!(w, Write::Put(a, k, _) if *a == at(key, 3) && is_key(k));
                let erases =
                    |w: &Write| matches!(w, Write::Erase(a, k) if *a == at(key, 3) && is_key(k));
                let removes = |w: &Write| puts(w) || erases(w) || deletes(w) || clears(3)(w);
                match self.live(puts, removes).last()? {
                    Write::Put(_, _, value) => Some((entry.clone(), value.clone())),
                    other => panic!("{other:?} is no put"),
                }
            })
            .collect();
        let appends = |w: &Write| matches!(w, Write::Append(a, _) if *a == at(key, 4));
        let lines = self.live(appends, |w| deletes(w) || clears(4)(w));
        let lines: Vec<Value> = lines
            .into_iter()
            .map(|write| match write {
                Write::Append(_, value) => value.clone(),
                other => panic!("{other:?} is no append"),
            })
            .collect();
        let count = |count: usize| Data::Count(count as u64);
        vec![
            Data::Bool(exists),
            Data::Register(register),
            Data::Counter(sum.sum()),
            Data::Values(elements.iter().cloned().collect()),
            count(elements.len()),
            Data::Entries(entries.clone().into_iter().collect()),
            count(entries.len()),
            Data::Values(lines.clone()),
            count(lines.len()),
        ]
    }
}

fn target(write: &Write) -> Option<Ref> {
    write.object().cloned()
}

/// Runs the steps, delivers all that is left in the order of `rest`, and compares.
fn check(is_causal: bool, steps: &[Step], rest: &[prop::sample::Index]) {
    let mut cluster = Cluster::new(is_causal);
    for step in steps {
        match step {
            Step::Commit(replica, writes) => cluster.commit(*replica, writes),
            Step::Deliver(replica, index) => {
                cluster.deliver(*replica, *index);
            }
        }
    }
    let mut rest = rest.iter().cycle();
    for replica in 0..REPLICAS {
        while cluster.deliver(replica, *rest.next().expect("a cycle does not end")) {}
    }
    let expected = cluster.specification.read();
    for replica in 0..REPLICAS {
        assert_eq!(cluster.read(replica), expected, "at replica {replica}");
    }
    assert_eq!(cluster.leftovers(), 0, "early removals that are never forgotten");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn updates_converge_to_what_was_observed_in_any_order(
        steps in any_steps(),
        rest in prop::collection::vec(any::<prop::sample::Index>(), 1..8),
    ) {
        check(false, &steps, &rest);
    }

    #[test]
    fn updates_converge_to_what_was_observed_in_causal_order(
        steps in any_steps(),
        rest in prop::collection::vec(any::<prop::sample::Index>(), 1..8),
    ) {
        check(true, &steps, &rest);
    }
}
