//! Small scripted runs, and ways to break them.

use mingle_checker::geo::{
    Action, Content, Item, ItemKind, Op, OpId, Outcome, Promise, Run, Transaction, What, check,
    check_some,
};
use mingle_model::{Origin, TransactionId, Value};

use super::store::Store;

pub const REGISTER: Item = Item { kind: ItemKind::Register, key: 0 };
pub const COUNTER: Item = Item { kind: ItemKind::Counter, key: 0 };
pub const SET: Item = Item { kind: ItemKind::Set, key: 0 };
pub const MAP: Item = Item { kind: ItemKind::Map, key: 0 };
pub const LOG: Item = Item { kind: ItemKind::Log, key: 0 };
pub const OTHER_LOG: Item = Item { kind: ItemKind::Log, key: 1 };
pub const ITEMS: [Item; 6] = [REGISTER, COUNTER, SET, MAP, LOG, OTHER_LOG];

pub fn int(value: i64) -> Value {
    Value::Int(value)
}

pub fn ints(values: &[i64]) -> Vec<Value> {
    values.iter().copied().map(int).collect()
}

/// Returns a store with a session at each data center, 0 to 2, and one more at the first.
pub fn store() -> Store {
    Store::new(&[0, 1, 2, 0])
}

/// Commits one operation in a transaction of its own.
pub fn put(store: &mut Store, client: usize, item: Item, op: &Op) -> TransactionId {
    store.update(client, item, op, None);
    store.commit(client, true)
}

/// Reads one item in a transaction of its own.
pub fn get(store: &mut Store, client: usize, item: Item) -> Content {
    let found = store.read(client, item);
    store.commit(client, true);
    found
}

pub fn settle(store: Store) -> Run {
    store.settle(&ITEMS)
}

/// Returns the transaction of a session's call.
pub fn at(run: &mut Run, session: usize, call: usize) -> &mut Transaction {
    match &mut run.sessions[session].calls[call].what {
        What::Transaction(transaction) => transaction,
        what => panic!("{what:?} is no transaction"),
    }
}

/// Replaces the content found by a transaction's read.
pub fn find(transaction: &mut Transaction, read: usize, content: Content) {
    let reads = transaction.actions.iter_mut().filter_map(|action| match action {
        Action::Read { found, .. } => Some(found),
        Action::Update { .. } => None,
    });
    *reads.into_iter().nth(read).expect("so many reads") = content;
}

/// Replaces the final content of an item at a data center.
pub fn hold(run: &mut Run, dc: u8, item: Item, content: Content) {
    let mut views = run.end.views.iter_mut();
    let view = views.find(|view| view.dc == dc).expect("a view");
    view.items.insert(item, content);
}

/// Marks a commit as acknowledged as uniform.
pub fn acknowledge(transaction: &mut Transaction) {
    let Outcome::Committed { is_uniform, .. } = &mut transaction.outcome else {
        panic!("it is not committed");
    };
    *is_uniform = true;
}

pub fn id(sequence: u64) -> OpId {
    let transaction = TransactionId { origin: Origin(500), sequence };
    OpId { transaction, phase: 2, position: 0 }
}

#[track_caller]
pub fn keeps(run: &Run) {
    let report = check(run);
    assert!(report.is_kept(), "{report}");
}

/// Checks that a run breaks exactly these promises; the report contains these words.
#[track_caller]
pub fn breaks(run: &Run, promises: &[Promise], words: &str) {
    let report = check(run);
    assert_eq!(report.broken(), promises, "{report}");
    assert!(report.to_string().contains(words), "{words:?} is not in {report}");
}

/// Checks that a run breaks a promise when checked against it alone.
#[track_caller]
pub fn breaks_alone(run: &Run, promise: Promise, words: &str) {
    let report = check_some(run, &[promise]);
    assert_eq!(report.broken(), [promise], "{report}");
    assert!(report.to_string().contains(words), "{words:?} is not in {report}");
}
