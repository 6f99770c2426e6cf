//! Endorsed data is read early; all else is as serializable as without the endorsement.

use std::sync::Arc;

use mingle_lang::{Program, check};
use mingle_model::{Level, Ref, Value};
use mingle_runtime::{Call, Error};
use mingle_store::test_world::join_all;
use mingle_store::{Address, BoxFuture, Data, DataStore, Read, Session, TestWorld};

use crate::concurrent::{self, Log};
use crate::embedded::open_with;
use crate::harness::ready;

const RUNS: usize = 30;

/// The state after the transaction `t` has run many times at once.
struct After {
    program: Arc<Program>,
    stores: Vec<Arc<dyn DataStore>>,
    succeeded: usize,
}

/// Runs `before` once and then `t` many times at once, over serializable stores at a distance.
fn at_once(text: &str) -> After {
    let checked = check(text);
    let codes: Vec<&str> = checked.diagnostics.iter().map(|found| found.code.text()).collect();
    let program = Arc::new(checked.program.unwrap_or_else(|| panic!("{codes:?}\n{text}")));
    let world = TestWorld::new(3);
    let stores = open_with(&program, world.clone(), |_| Level::Linearizable);
    let log = Log::default();
    let runtime = |run| concurrent::runtime(&program, &stores, &world, &log, (run, <_>::default()));
    world.block_on(runtime(RUNS).call(Call::new("before", Vec::new()))).expect("it is alone");
    let runs = (0..RUNS).map(|run| {
        let runtime = runtime(run);
        let run: BoxFuture<'_, Result<(), Error>> =
            Box::pin(async move { runtime.call(Call::new("t", Vec::new())).await.map(|_| ()) });
        run
    });
    let mut succeeded = 0;
    for result in world.block_on(join_all(runs.collect())) {
        match result {
            Ok(()) => succeeded += 1,
            Err(Error::Require { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    After { program, stores, succeeded }
}

impl After {
    /// Returns a register of the object "x" of a kind.
    fn int(&self, kind: &str, field: &str) -> i64 {
        let objects = &self.program.checked.objects;
        let object = objects.iter().find(|object| *object.declared.name == *kind);
        let object = object.expect("the kind is declared");
        let at = object.declared.fields.iter().position(|declared| *declared.name == *field);
        let address = Address {
            object: Ref::new(kind, Value::from("x")),
            field: at.expect("the field is declared") as u16,
        };
        let read = [Read::Register(address)];
        let answers = ready(async {
            let session = Session::default();
            let store = &self.stores[object.store.index()];
            let mut transaction = store.begin(&session).await.expect("it is in memory");
            transaction.read(&read).await.expect("nobody else is here")
        });
        match &answers[0].data {
            Data::Register(Some(Value::Int(found))) => *found,
            Data::Register(None) => 0,
            other => panic!("{other:?} is no int"),
        }
    }
}

const STRONG: &str = "store first: linearizable; store second: linearizable;
    object A in first { key k: string; n: int; }
    object B in second { key k: string; n: int; left: int; sold: int; }
    transaction before() { B[\"x\"].left = 3; }";

const WEAK: &str = "store first: linearizable; store second: snapshot;
    object A in first { key k: string; n: int; }
    object B in second { key k: string; n: int; left: int; sold: int; }
    transaction before() { B[\"x\"].left = 3; }";

#[test]
fn an_endorsed_value_is_read_again_for_what_is_not_endorsed() {
    for declarations in [STRONG, WEAK] {
        let after = at_once(&format!(
            "{declarations} transaction t() {{
                let x = B[\"x\"].n;
                A[\"x\"].n = endorse(x) as linearizable because \"it is about right\";
                B[\"x\"].n = x + 1;
            }}"
        ));
        assert_eq!((after.succeeded, after.int("B", "n")), (RUNS, RUNS as i64), "{declarations}");
    }
}

#[test]
fn a_condition_that_is_not_endorsed_is_read_again() {
    let after = at_once(&format!(
        "{WEAK} transaction t() {{
            let left = B[\"x\"].left;
            A[\"x\"].n += endorse(left) as linearizable because \"it is about right\";
            if left > 0 {{
                B[\"x\"].left = left - 1;
                B[\"x\"].sold += 1;
            }}
        }}"
    ));
    assert_eq!((after.int("B", "left"), after.int("B", "sold")), (0, 3));
}

#[test]
fn an_endorsement_that_is_not_needed_has_no_effect() {
    for condition in
        ["endorse(B[\"x\"].left > 0) as linearizable because \"yes\"", "B[\"x\"].left > 0"]
    {
        let after = at_once(&format!(
            "{STRONG} transaction t() {{
                require {condition} else \"sold out\";
                A[\"x\"].n += 1;
                B[\"x\"].left -= 1;
            }}"
        ));
        let found = (after.succeeded, after.int("A", "n"), after.int("B", "left"));
        assert_eq!(found, (3, 3, 0), "{condition}");
    }
}

/// The condition for counting an endorsement must equal the phase's own read.
#[test]
fn a_branch_around_an_endorsement_is_as_serializable_as_without() {
    let after = at_once(&format!(
        "{WEAK} transaction t() {{
            if A[\"x\"].n < 3 {{
                A[\"x\"].n += 1 + endorse(B[\"x\"].n) as linearizable because \"it is about right\";
            }}
        }}"
    ));
    assert_eq!(after.int("A", "n"), 3);
}

#[test]
fn a_loop_around_an_endorsement_is_as_serializable_as_without() {
    let after = at_once(
        "store first: linearizable; store second: snapshot;
        object A in first { key k: string; todo: set<int>; n: int; }
        object B in second { key k: string; n: int; }
        transaction before() { A[\"x\"].todo.insert(1); A[\"x\"].todo.insert(2); }
        transaction t() {
            var sum = 0;
            for item in A[\"x\"].todo {
                sum += item * 0 + 1;
                sum += endorse(B[\"x\"].n) as linearizable because \"it is about right\";
            }
            A[\"x\"].todo.clear();
            A[\"x\"].n += sum;
        }",
    );
    assert_eq!(after.int("A", "n"), 2);
}
