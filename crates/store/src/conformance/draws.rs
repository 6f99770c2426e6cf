//! Keys that a store draws: each number once, and none that an object has.

use std::collections::BTreeSet;
use std::sync::Arc;

use mingle_model::random::Random;
use mingle_model::{BuiltinQuery, FieldType, Level, Ref, Type, Value};

use super::schema::{add_object, store_schema};
use super::{Bench, Checked, Wrong, commit, ensure, ensure_eq, get, tests};
use crate::declared::{StoreOperation, StoreSchema};
use crate::operation::{Address, Data, Read, Write};
use crate::store::{StoreError, Transaction};

tests![
    numbers_are_drawn_once_and_of_no_object,
    numbers_go_on_after_a_restart,
    an_object_that_takes_a_drawn_number_is_a_conflict,
];

const KIND: &str = "Ticket";
const OPERATION: &str = "Ticket.key.next";

fn schema(level: Level) -> StoreSchema {
    let mut schema = store_schema(level);
    let declared = Arc::make_mut(&mut schema.schema);
    let registers = [("text".to_owned(), FieldType::Register(Type::String))];
    add_object(declared, KIND, Type::Int, registers);
    let operation = StoreOperation {
        is_command: false,
        parameters: vec![("draw".into(), Type::String)],
        result: Some(Type::Int),
        body: None,
        builtin: Some(BuiltinQuery::Draw(KIND.into())),
    };
    schema.operations.insert(OPERATION.into(), operation);
    schema
}

fn ticket(number: i64) -> Ref {
    Ref::new(KIND, Value::Int(number))
}

fn named(number: i64) -> Vec<Write> {
    let text = Address { object: ticket(number), field: 0 };
    vec![Write::Create(ticket(number)), Write::Assign(text, Value::from("drawn"))]
}

/// Draws with an argument that differs from draw to draw.
async fn drawn(transaction: &mut Box<dyn Transaction>, draw: usize) -> Result<i64, Wrong> {
    let arguments = vec![Value::from(draw.to_string())];
    let read = Read::Query { operation: OPERATION.into(), arguments };
    match get(transaction, read).await? {
        Data::Result(Value::Int(number)) => Ok(number),
        other => Err(Wrong(format!("a number is drawn, not {other:?}"))),
    }
}

/// Transactions that draw at the same time, several numbers each, draw each number once, whether they commit or not,
/// in any order. One that drew the number of an object that exists does not commit.
async fn numbers_are_drawn_once_and_of_no_object(bench: &Bench<'_>) -> Checked {
    let store = bench.factory.open(schema(bench.factory.level())).await;
    let bench = &Bench { factory: bench.factory, store };
    let mut random = Random::new(46);
    let given: BTreeSet<i64> = [2, 3, 7, 11, 12, 13, 14].into();
    bench.write(given.iter().flat_map(|number| named(*number)).collect()).await?;
    let (mut seen, mut draws, mut created) = (BTreeSet::new(), 0, 0);
    for round in 0..20 {
        let mut open = Vec::new();
        // Alone, each commits unless its number is given; stores may take others' work beside it for a conflict.
        let beside = if round < 12 { 3 } else { 1 };
        for _ in 0..beside {
            let mut transaction = bench.begin().await?;
            let mut numbers = Vec::new();
            for _ in 0..=random.below(3) {
                draws += 1;
                numbers.push(drawn(&mut transaction, draws).await?);
            }
            for number in &numbers {
                ensure!(seen.insert(*number), "round {round}: {number} was drawn before");
            }
            open.push((transaction, numbers));
        }
        while !open.is_empty() {
            let (transaction, numbers) = open.swap_remove(random.below(open.len()));
            let is_given = numbers.iter().any(|number| given.contains(number));
            if random.below(4) == 0 {
                continue;
            }
            let writes = numbers.iter().flat_map(|number| named(*number)).collect();
            match transaction.commit(commit(writes)).await {
                Ok(_) => {
                    ensure!(!is_given, "round {round}: one of {numbers:?} was given before");
                    let reads = numbers.iter().map(|number| Read::Exists(ticket(*number)));
                    let found = bench.read(&reads.collect::<Vec<_>>()).await?;
                    let exist = found.iter().all(|answer| answer.data == Data::Bool(true));
                    ensure!(exist, "round {round}: objects with the keys {numbers:?} exist");
                    created += numbers.len();
                }
                Err(StoreError::Conflict) if is_given || beside > 1 => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    ensure!(created >= 10, "only {created} objects were created");
    Ok(())
}

/// A store that was closed draws no number again that a transaction committed, also where the object is gone.
async fn numbers_go_on_after_a_restart(bench: &Bench<'_>) -> Checked {
    let schema = schema(bench.factory.level());
    let mut store = bench.factory.open(schema.clone()).await;
    let mut seen = BTreeSet::new();
    for round in 0..3 {
        let opened = Bench { factory: bench.factory, store: Arc::clone(&store) };
        for draw in 0..4 {
            let mut transaction = opened.begin().await?;
            let number = drawn(&mut transaction, draw).await?;
            ensure!(seen.insert(number), "round {round}: {number} was drawn before");
            transaction.commit(commit(named(number))).await?;
            opened.write(vec![Write::Delete(ticket(number))]).await?;
        }
        drop(opened);
        let Some(reopened) = bench.factory.reopen(store, schema.clone()).await else {
            return Ok(());
        };
        store = reopened;
    }
    ensure_eq!(seen.len(), 12, "all are different");
    Ok(())
}

/// An object that another transaction creates with the number after it was drawn is a conflict, not overwritten.
async fn an_object_that_takes_a_drawn_number_is_a_conflict(bench: &Bench<'_>) -> Checked {
    let store = bench.factory.open(schema(bench.factory.level())).await;
    let bench = &Bench { factory: bench.factory, store };
    let mut transaction = bench.begin().await?;
    let number = drawn(&mut transaction, 1).await?;
    bench.write(named(number)).await?;
    let result = transaction.commit(commit(named(number))).await;
    ensure!(matches!(result, Err(StoreError::Conflict)), "it commits with {result:?}");
    Ok(())
}
