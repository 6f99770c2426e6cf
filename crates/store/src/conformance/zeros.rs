//! The two zeros are equal, so they are one element and one key; but `1.0 / x` tells them apart, so a value that is
//! only kept keeps its sign. Elements and keys have the sign of `0.0`, in whichever store.

use std::sync::Arc;

use mingle_model::{Float, Ref, Value};

use super::schema::zeros::{BY_FLOAT, BY_SPOT, FLOATS, LISTS, MARKS, OPTIONS, SPOT, SPOTS, TRAIL};
use super::{Bench, Checked, Wrong, ensure_eq, get, tests};
use crate::operation::{Address, Data, Read, Write};

tests![
    zeros_are_one_element,
    zeros_are_one_key,
    zeros_keep_their_sign_in_what_is_only_kept,
    zeros_are_one_within_a_transaction,
];

fn at(key: i64, field: u16) -> Address {
    Address { object: Ref::new("Zeros", Value::Int(key)), field }
}

fn float(zero: f64) -> Value {
    Value::Float(Float(zero))
}

fn spot(zero: f64) -> Value {
    Value::Struct(Arc::from([float(zero), Value::some(float(zero))]))
}

/// One form of a value for each of the types that hold floats.
type Form = fn(f64) -> Value;

const SETS: [(u16, Form); 4] = [
    (FLOATS, float),
    (SPOTS, spot),
    (LISTS, |zero| Value::list([float(1.0), float(zero)])),
    (OPTIONS, |zero| Value::some(float(zero))),
];
const MAPS: [(u16, Form); 2] = [(BY_FLOAT, float), (BY_SPOT, spot)];

/// Each zero, and then the other one.
const ORDERS: [[f64; 2]; 3] = [[0.0, -0.0], [-0.0, 0.0], [-0.0, -0.0]];

/// As text, in which the two zeros differ.
fn shown(data: &Data) -> String {
    format!("{data:?}")
}

async fn reads_as(bench: &Bench<'_>, read: Read, expected: Data, what: &str) -> Checked {
    let found = bench.data(read.clone()).await?;
    ensure_eq!(shown(&found), shown(&expected), "{what}: {read:?}");
    Ok(())
}

async fn zeros_are_one_element(bench: &Bench<'_>) -> Checked {
    let mut key = 0;
    for (field, form) in SETS {
        for [first, second] in ORDERS {
            for together in [true, false] {
                key += 1;
                let set = at(key, field);
                let inserts =
                    [first, second].map(|zero| Write::Insert(set.clone(), form(zero))).to_vec();
                let what = format!("field {field}, {first:?} and {second:?}, together: {together}");
                if together {
                    bench.write(inserts).await?;
                } else {
                    for insert in inserts {
                        bench.write(vec![insert]).await?;
                    }
                }
                let all = Data::Values(vec![form(0.0)]);
                reads_as(bench, Read::Elements(set.clone()), all, &what).await?;
                reads_as(bench, Read::SetSize(set.clone()), Data::Count(1), &what).await?;
                for zero in [0.0, -0.0] {
                    let contains = Read::Contains(set.clone(), form(zero));
                    reads_as(bench, contains, Data::Bool(true), &what).await?;
                }
                bench.write(vec![Write::Remove(set.clone(), form(second))]).await?;
                reads_as(bench, Read::SetSize(set), Data::Count(0), &what).await?;
            }
        }
    }
    Ok(())
}

async fn zeros_are_one_key(bench: &Bench<'_>) -> Checked {
    let mut key = 100;
    for (field, form) in MAPS {
        for [first, second] in ORDERS {
            for together in [true, false] {
                key += 1;
                let map = at(key, field);
                let put = |zero, number| Write::Put(map.clone(), form(zero), Value::Int(number));
                let what = format!("field {field}, {first:?} and {second:?}, together: {together}");
                if together {
                    bench.write(vec![put(first, 1), put(second, 2)]).await?;
                } else {
                    bench.write(vec![put(first, 1)]).await?;
                    bench.write(vec![put(second, 2)]).await?;
                }
                let all = Data::Entries(vec![(form(0.0), Value::Int(2))]);
                reads_as(bench, Read::Entries(map.clone()), all, &what).await?;
                reads_as(bench, Read::MapSize(map.clone()), Data::Count(1), &what).await?;
                for zero in [0.0, -0.0] {
                    let entry = Read::Entry(map.clone(), form(zero));
                    let expected = Data::Register(Some(Value::Int(2)));
                    reads_as(bench, entry, expected, &what).await?;
                }
                bench.write(vec![Write::Erase(map.clone(), form(first))]).await?;
                reads_as(bench, Read::MapSize(map), Data::Count(0), &what).await?;
            }
        }
    }
    Ok(())
}

async fn zeros_keep_their_sign_in_what_is_only_kept(bench: &Bench<'_>) -> Checked {
    for (key, zero) in [(200, 0.0), (201, -0.0)] {
        bench
            .write(vec![
                Write::Assign(at(key, SPOT), spot(zero)),
                Write::Append(at(key, TRAIL), spot(zero)),
                Write::Put(at(key, MARKS), Value::from("m"), spot(zero)),
            ])
            .await?;
        let kept = || Data::Register(Some(spot(zero)));
        reads_as(bench, Read::Register(at(key, SPOT)), kept(), "a register").await?;
        let line = Data::Values(vec![spot(zero)]);
        reads_as(bench, Read::LogLast(at(key, TRAIL), 1), line, "a line").await?;
        let entry = Read::Entry(at(key, MARKS), Value::from("m"));
        reads_as(bench, entry, kept(), "a value of a map").await?;
    }
    // The old value is replaced by an equal one.
    for (before, after) in [(0.0, -0.0), (-0.0, 0.0)] {
        for zero in [before, after] {
            bench
                .write(vec![
                    Write::Assign(at(202, SPOT), spot(zero)),
                    Write::Put(at(202, MARKS), Value::from("m"), spot(zero)),
                ])
                .await?;
        }
        let kept = || Data::Register(Some(spot(after)));
        reads_as(bench, Read::Register(at(202, SPOT)), kept(), "a register, again").await?;
        let entry = Read::Entry(at(202, MARKS), Value::from("m"));
        reads_as(bench, entry, kept(), "a value of a map, again").await?;
    }
    Ok(())
}

async fn zeros_are_one_within_a_transaction(bench: &Bench<'_>) -> Checked {
    for (field, form) in SETS {
        let (set, mut open) = (at(300, field), bench.begin().await?);
        open.flush(vec![Write::Insert(set.clone(), form(-0.0))]).await?;
        let found = get(&mut open, Read::Contains(set.clone(), form(0.0))).await?;
        ensure_eq!(found, Data::Bool(true), "field {field}, flushed");
        let found = shown(&get(&mut open, Read::Elements(set.clone())).await?);
        ensure_eq!(found, shown(&Data::Values(vec![form(0.0)])), "field {field}, flushed");
        open.flush(vec![Write::Remove(set.clone(), form(0.0))]).await?;
        let found = get(&mut open, Read::SetSize(set)).await?;
        ensure_eq!(found, Data::Count(0), "field {field}, removed");
    }
    for (field, form) in MAPS {
        let (map, mut open) = (at(301, field), bench.begin().await?);
        open.flush(vec![Write::Put(map.clone(), form(-0.0), Value::Int(1))]).await?;
        let found = get(&mut open, Read::Entry(map.clone(), form(0.0))).await?;
        ensure_eq!(found, Data::Register(Some(Value::Int(1))), "field {field}, flushed");
        let found = shown(&get(&mut open, Read::Entries(map.clone())).await?);
        let expected = Data::Entries(vec![(form(0.0), Value::Int(1))]);
        ensure_eq!(found, shown(&expected), "field {field}, flushed");
        open.flush(vec![Write::Erase(map.clone(), form(0.0))]).await?;
        let found = get(&mut open, Read::MapSize(map)).await?;
        ensure_eq!(found, Data::Count(0), "field {field}, erased");
    }
    Ok::<(), Wrong>(())
}
