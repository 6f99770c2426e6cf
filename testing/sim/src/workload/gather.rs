//! The remains of a run: the stores' contents after it became quiet, and the coverage counts.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use mingle_model::Value;
use mingle_store::{Address, Data, DataStore, Read, RecordKind, Session as StoreSession};

use super::calls::Object;
use super::history::{Final, History};
use super::stage::{Stage, lock};

/// Collects the history with the final contents.
pub(super) async fn gather(stage: &Stage) -> History {
    let mut history = History {
        operations: lock(&stage.operations).clone(),
        eventual: stage.setup.eventual(),
        is_torn: stage.stores.iter().any(|store| !store.capabilities().atomic_commit),
        by_id: stage.setup.by_id(),
        ..History::default()
    };
    let schema = stage.program.schema();
    for object in Object::all().filter(|object| schema.objects.contains_key(object.kind())) {
        let store = &stage.stores[object.store() as usize];
        let mut replicas = Vec::new();
        for session in sessions(&**store) {
            replicas.push(final_of(stage, &**store, &session, object).await);
        }
        history.finals.insert(object, replicas);
    }
    for store in &stage.stores {
        for session in sessions(&**store) {
            residue(&**store, &session, &mut history.residue).await;
        }
    }
    history
}

/// True if some transaction waits for an operator.
pub(super) async fn has_parked(stage: &Stage) -> bool {
    let parked = Read::Records { kind: RecordKind::Parked, from: [].as_slice().into(), limit: 1 };
    for store in &stage.stores {
        for session in sessions(&**store) {
            let found = read(&**store, &session, std::slice::from_ref(&parked)).await;
            if found
                .iter()
                .any(|data| matches!(data, Data::Records(records) if !records.is_empty()))
            {
                return true;
            }
        }
    }
    false
}

pub(super) fn sessions(store: &dyn DataStore) -> Vec<StoreSession> {
    let replicas = &store.capabilities().replicas;
    if replicas.is_empty() {
        return vec![StoreSession::default()];
    }
    replicas.iter().map(|replica| StoreSession::at(replica.clone())).collect()
}

async fn read(store: &dyn DataStore, session: &StoreSession, reads: &[Read]) -> Vec<Data> {
    let mut transaction = store.begin(session).await.expect("all is quiet");
    let answers = transaction.read(reads).await.expect("all is quiet");
    answers.into_iter().map(|answer| answer.data).collect()
}

async fn final_of(
    stage: &Stage,
    store: &dyn DataStore,
    session: &StoreSession,
    object: Object,
) -> Final {
    let declared = &stage.program.schema().objects[object.kind()];
    let at = |name: &str| Address {
        object: object.to_ref(),
        field: declared.field_index(name).expect("the simulated program has it") as u16,
    };
    let reads = match object {
        Object::Account(_) => vec![Read::Elements(at("entries")), Read::Register(at("balance"))],
        Object::Slot(_) => vec![Read::Elements(at("entries")), Read::Register(at("taken"))],
        Object::Shelf(_) if declared.field_index("left").is_some() => {
            vec![Read::Elements(at("entries")), Read::Counter(at("left"))]
        }
        Object::Shelf(_) | Object::Ledger(_) | Object::Pad(_) | Object::Sheet(_) => {
            vec![Read::Elements(at("entries"))]
        }
        Object::Board(_) | Object::Inbox(_) => vec![
            Read::Elements(at("entries")),
            Read::Counter(at("count")),
            Read::Entries(at("marks")),
        ],
    };
    let reads: Vec<Read> = reads
        .into_iter()
        .map(|read| match read {
            Read::Elements(address) => Read::LogLast(address, 1_000_000),
            other => other,
        })
        .collect();
    let mut found = Final::default();
    for data in read(store, session, &reads).await {
        match data {
            Data::Values(values) => {
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                found.entries = values.iter().map(text).collect();
            }
            Data::Register(value) => {
                found.count = value.and_then(|value| value.as_int()).unwrap_or_default();
            }
            Data::Counter(sum) => found.count = sum as i64,
            Data::Entries(entries) => {
                let mark = |(key, value): &(Value, Value)| {
                    Some((key.as_str()?.to_owned(), value.as_int()?))
                };
                found.marks = entries.iter().filter_map(mark).collect();
            }
            _ => {}
        }
    }
    found
}

/// Collects rows that should have been cleaned up.
async fn residue(store: &dyn DataStore, session: &StoreSession, residue: &mut Vec<String>) {
    let name = &store.capabilities().store;
    let replica = session.replica.as_deref().unwrap_or("its one copy");
    for kind in RecordKind::ALL {
        // Records of keyed calls expire by age.
        if matches!(kind, RecordKind::Floor | RecordKind::Program | RecordKind::Called) {
            continue;
        }
        let reads = [Read::Records { kind, from: [].as_slice().into(), limit: 1_000 }];
        for data in read(store, session, &reads).await {
            let Data::Records(records) = data else { continue };
            for (key, _) in records {
                let key = mingle_store::RecordKey { kind, key };
                let floor = match key.origin() {
                    Some(origin) => {
                        let floor = mingle_store::RecordKey::of_origin(RecordKind::Floor, origin);
                        match read(store, session, &[Read::Record(floor)]).await.pop() {
                            Some(Data::Record(Some(floor))) => {
                                mingle_store::record::read_floor(&floor)
                            }
                            _ => 0,
                        }
                    }
                    None => 0,
                };
                residue.push(format!("{key:?} at {replica} of {name}, floor {floor}"));
            }
        }
    }
    let from = mingle_model::TransactionId { origin: mingle_model::Origin(0), sequence: 0 };
    for data in read(store, session, &[Read::Witnesses { from, limit: 1_000 }]).await {
        let Data::Witnesses(rows) = data else { continue };
        residue.extend(rows.iter().map(|row| format!("{row:?} at {replica} of {name}")));
    }
}

/// Counts the occurrences of each coverage point.
pub(super) fn covered(stage: &Stage, history: &History) -> BTreeMap<String, u64> {
    let mut covered = super::promises::counts(history);
    covered.extend(lock(&stage.counted).clone());
    covered.insert("restarts".into(), *lock(&stage.restarts));
    let laggards = stage.laggards.load(Ordering::Relaxed);
    covered.insert("clean-ups that met a replica which lagged".into(), laggards);
    for deaths in &stage.deaths {
        for ((call, moment), count) in deaths.kills() {
            *covered.entry(format!("died {moment:?} {call:?}")).or_default() += count;
        }
        *covered.entry("commits that arrived after their process".into()).or_default() +=
            deaths.late();
    }
    for plan in &stage.faults {
        for ((call, fault), count) in plan.injected() {
            *covered.entry(format!("{fault:?} at {call:?}")).or_default() += count;
        }
    }
    covered
}
