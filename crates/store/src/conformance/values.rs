//! Large and odd values, as registers, elements, keys, lines and keys of objects.

use std::collections::BTreeSet;
use std::sync::Arc;

use mingle_model::{Date, Decimal, Float, Ref, Time, Type, Value};

use super::schema::{MARKS, TAGS, TEXT, at, may_be_key, odd_field, odd_keys, odd_types, thing};
use super::{Bench, Checked, ensure, ensure_eq, tests};
use crate::operation::{Address, Data, KeyRange, Read, Write};

tests![
    odd_values_come_back_from_registers,
    odd_values_are_elements_in_order,
    odd_values_are_keys_of_maps_in_order,
    odd_values_are_lines_in_order,
    odd_values_are_keys_of_objects,
    large_values_are_kept,
    keys_that_begin_alike_are_told_apart,
];

const ODD_DECIMALS: [&str; 10] = [
    "0",
    "0.5",
    "-0.5",
    "1",
    "-19.9",
    "100000000000000000000",
    "99999999999999999999999999999999999999",
    "-99999999999999999999999999999999999999",
    "0.00000000000000000000000000000000000001",
    "-1.2345678901234567890123456789012345678",
];

const ODD_JSON: [&str; 12] = [
    "null",
    "true",
    "0",
    "-0.05",
    "123456789012345678901234567890.5",
    "1e399",
    "\"\"",
    "\"\\u0001\\\"\\\\é😀\"",
    "[]",
    "{}",
    "{\"b\": [1.50, null], \"a\": {\"\": \"x\"}, \"B\": 5e-324}",
    "{\"some\": null}",
];

/// Odd values of a type, none equal to another.
fn odd_values(value_type: &Type) -> Vec<Value> {
    let texts = ["", "a", "a ", "ab", "\u{1}", "é", "😀", "\u{10ffff}", "'\"\\%_;--"];
    let ints = [0, 1, -1, i64::MAX, i64::MIN, 255, 256, -256, 1 << 53];
    match value_type {
        Type::Bool => vec![Value::Bool(true), Value::Bool(false)],
        Type::Int => ints.map(Value::Int).to_vec(),
        Type::Float => [
            f64::NAN,
            0.0,
            -1.5,
            1e-308,
            5e-324,
            -5e-324,
            f64::MAX,
            f64::MIN,
            f64::INFINITY,
            f64::NEG_INFINITY,
        ]
        .map(Value::from)
        .to_vec(),
        Type::String => texts.map(Value::from).to_vec(),
        Type::Json => ODD_JSON.map(json).to_vec(),
        Type::Enum(of) => of.values.iter().map(|it| Value::String(it.label.clone())).collect(),
        Type::Bytes => [&b""[..], b"\0", b"\0\0", b"\0\xff", b"\0\x01", b"\xff", b"\xff\xff", b"a"]
            .map(|bytes| Value::Bytes(bytes.into()))
            .to_vec(),
        Type::Time => ints.map(|micros| Value::Time(Time::from_micros(micros))).to_vec(),
        Type::Date => [0, 1, -1, i32::MIN, i32::MAX, 255, 256, -256, 20_484, -719_469]
            .map(|days| Value::Date(Date::from_days(days)))
            .to_vec(),
        Type::Decimal => ODD_DECIMALS.map(decimal).to_vec(),
        Type::Struct(_) => vec![
            point(0, None),
            point(0, Some("")),
            point(0, Some("a")),
            point(-1, Some("z")),
            point(i64::MAX, None),
        ],
        Type::Ref(_) => texts.map(|key| Value::Ref(thing(key))).to_vec(),
        Type::Option(inner) => {
            let some = odd_values(inner).into_iter().map(Value::some);
            some.chain([Value::NONE]).collect()
        }
        Type::Rushed(_) => vec![Value::late()],
        Type::List(inner) => {
            let items = odd_values(inner);
            let singles = items.iter().map(|item| Value::list([item.clone()]));
            let pairs = items.windows(2).map(|pair| Value::list(pair.to_vec()));
            let all = [Value::list([]), Value::list(items.clone())];
            singles.chain(pairs).chain(all).collect()
        }
    }
}

fn decimal(text: &str) -> Value {
    Value::Decimal(Decimal::parse(text).expect("a decimal"))
}

fn json(text: &str) -> Value {
    Value::Json(text.parse().expect("JSON"))
}

fn point(x: i64, label: Option<&str>) -> Value {
    let label = label.map_or(Value::NONE, |text| Value::some(Value::from(text)));
    Value::Struct(Arc::from([Value::Int(x), label]))
}

fn odd(key: i64, shape: u16, value_type: usize) -> Address {
    let value_type = u16::try_from(value_type).expect("a handful of types");
    Address { object: Ref::new("Odd", Value::Int(key)), field: odd_field(shape, value_type) }
}

/// Values by type, sorted.
fn by_type() -> impl Iterator<Item = (usize, Vec<Value>)> {
    let types = odd_types().into_iter().enumerate();
    types.map(|(index, value_type)| {
        let distinct: BTreeSet<Value> = odd_values(&value_type).into_iter().collect();
        (index, distinct.into_iter().collect())
    })
}

/// The same, of the types that elements and keys may have.
fn keys_by_type() -> impl Iterator<Item = (usize, Vec<Value>)> {
    let types = odd_types();
    by_type().filter(move |(index, _)| may_be_key(&types[*index]))
}

/// Returns an equal value that is written otherwise, if there is one.
fn with_zeros(value: &Value) -> Option<Value> {
    let Value::Decimal(number) = value else { return None };
    Decimal::new(number.coefficient().checked_mul(100)?, number.scale() + 2).map(Value::Decimal)
}

async fn odd_values_come_back_from_registers(bench: &Bench<'_>) -> Checked {
    for (index, mut values) in by_type() {
        if index == 2 {
            values.push(Value::Float(Float(-0.0)));
        }
        values.extend(values.iter().find_map(with_zeros));
        for value in values {
            let address = odd(0, 0, index);
            let write = Write::Assign(address.clone(), value.clone());
            bench.write(vec![write]).await?;
            let found = bench.data(Read::Register(address)).await?;
            ensure_eq!(found, Data::Register(Some(value.clone())), "a register");
            // The two zeros are equal, but `1.0 / x` tells them apart.
            if let (Value::Decimal(wrote), Data::Register(Some(Value::Decimal(read)))) =
                (&value, &found)
            {
                ensure_eq!(read.scale(), wrote.scale(), "the digits after the point of {wrote}");
            }
            if let (Value::Float(wrote), Data::Register(Some(Value::Float(read)))) = (value, found)
            {
                let same = wrote.0.is_sign_negative() == read.0.is_sign_negative();
                ensure!(same || wrote.0.is_nan(), "{wrote} came back as {read}");
            }
        }
    }
    Ok(())
}

async fn odd_values_are_elements_in_order(bench: &Bench<'_>) -> Checked {
    for (index, values) in keys_by_type() {
        let set = odd(1, 1, index);
        let others: Vec<Value> = values.iter().filter_map(with_zeros).collect();
        let inserts = values.iter().rev().chain(values.iter()).chain(&others);
        let writes = inserts.map(|value| Write::Insert(set.clone(), value.clone()));
        bench.write(writes.collect()).await?;
        let elements = bench.data(Read::Elements(set.clone())).await?;
        ensure_eq!(elements, Data::Values(values.clone()), "type {index}");
        let size = bench.data(Read::SetSize(set.clone())).await?;
        ensure_eq!(size, Data::Count(values.len() as u64), "type {index}");
        for value in values {
            let contains = Read::Contains(set.clone(), value.clone());
            let found = bench.data(contains.clone()).await?;
            ensure_eq!(found, Data::Bool(true), "{value}");
            bench.write(vec![Write::Remove(set.clone(), value.clone())]).await?;
            let found = bench.data(contains).await?;
            ensure_eq!(found, Data::Bool(false), "{value}, removed");
        }
        let size = bench.data(Read::SetSize(set)).await?;
        ensure_eq!(size, Data::Count(0), "type {index}, all removed");
    }
    Ok(())
}

async fn odd_values_are_keys_of_maps_in_order(bench: &Bench<'_>) -> Checked {
    for (index, values) in keys_by_type() {
        let map = odd(2, 2, index);
        let numbered = values.iter().enumerate();
        let entries: Vec<(Value, Value)> =
            numbered.map(|(n, key)| (key.clone(), Value::from(n as f64))).collect();
        let puts = entries.iter().rev();
        let writes = puts.map(|(k, v)| Write::Put(map.clone(), k.clone(), v.clone()));
        bench.write(writes.collect()).await?;
        let found = bench.data(Read::Entries(map.clone())).await?;
        ensure_eq!(found, Data::Entries(entries.clone()), "type {index}");
        for (from, (key, _)) in entries.iter().enumerate() {
            let before = entries.get(from + 3).map(|(key, _)| key.clone());
            for (is_last, is_after) in [(false, false), (false, true), (true, false), (true, true)]
            {
                let (from, before) = (Some(key.clone()), before.clone());
                let range = KeyRange { from, is_after, before, count: 2, is_last };
                let expected = range.slice(entries.iter().map(|(key, value)| (key, value)));
                let slice = Read::MapSlice { address: map.clone(), range };
                let found = bench.data(slice.clone()).await?;
                ensure_eq!(found, Data::Entries(expected), "type {index}, {slice:?}");
            }
        }
        for (key, value) in entries {
            let found = bench.data(Read::Entry(map.clone(), key.clone())).await?;
            ensure_eq!(found, Data::Register(Some(value)), "{key}");
        }
    }
    Ok(())
}

async fn odd_values_are_lines_in_order(bench: &Bench<'_>) -> Checked {
    for (index, values) in by_type() {
        let log = odd(3, 3, index);
        let lines: Vec<Value> = values.iter().rev().chain(&values).cloned().collect();
        for chunk in lines.chunks(3) {
            let appends = chunk.iter().map(|line| Write::Append(log.clone(), line.clone()));
            bench.write(appends.collect()).await?;
        }
        let found = bench.data(Read::LogLast(log, u64::MAX)).await?;
        ensure_eq!(found, Data::Values(lines), "type {index}");
    }
    Ok(())
}

async fn odd_values_are_keys_of_objects(bench: &Bench<'_>) -> Checked {
    for (kind, key_type) in odd_keys() {
        let count = |key: &Value| Address { object: Ref::new(kind, key.clone()), field: 0 };
        let keys = odd_values(&key_type);
        let numbered = || (1i128..).zip(&keys);
        let adds = numbered().map(|(n, key)| Write::Add(count(key), n));
        bench.write(adds.collect()).await?;
        for (n, key) in numbered() {
            let found = bench.data(Read::Counter(count(key))).await?;
            ensure_eq!(found, Data::Counter(n), "{kind}[{key}]");
        }
        bench.write(vec![Write::Delete(count(&keys[0]).object)]).await?;
        for (n, key) in numbered() {
            let found = bench.data(Read::Counter(count(key))).await?;
            let expected = if n == 1 { 0 } else { n };
            ensure_eq!(found, Data::Counter(expected), "{kind}[{key}] beside a deletion");
        }
    }
    Ok(())
}

async fn large_values_are_kept(bench: &Bench<'_>) -> Checked {
    let large = Value::from("x".repeat(1 << 20));
    let larger = Value::from("x".repeat((1 << 20) + 1));
    let key = "k".repeat(100_000);
    bench
        .write(vec![
            Write::Assign(at(&key, TEXT), large.clone()),
            Write::Insert(at(&key, TAGS), larger.clone()),
            Write::Insert(at(&key, TAGS), large.clone()),
            Write::Put(at(&key, MARKS), large.clone(), Value::Int(1)),
        ])
        .await?;
    let reads = [
        Read::Register(at(&key, TEXT)),
        Read::Elements(at(&key, TAGS)),
        Read::Entry(at(&key, MARKS), large.clone()),
        Read::Entry(at(&key, MARKS), larger.clone()),
        Read::Exists(thing(&key[1..])),
    ];
    let found: Vec<Data> = bench.read(&reads).await?.into_iter().map(|a| a.data).collect();
    let expected = [
        Data::Register(Some(large.clone())),
        Data::Values(vec![large, larger]),
        Data::Register(Some(Value::Int(1))),
        Data::Register(None),
        Data::Bool(false),
    ];
    for (found, expected) in found.iter().zip(&expected) {
        ensure!(found == expected, "a large value came back otherwise");
    }
    Ok(())
}

async fn keys_that_begin_alike_are_told_apart(bench: &Bench<'_>) -> Checked {
    let keys = ["", "a", "aa", "a\u{1}", "ab", "b"];
    for (n, key) in (1i64..).zip(keys) {
        bench
            .write(vec![
                Write::Assign(at(key, TEXT), Value::from(key)),
                Write::Insert(at(key, TAGS), Value::from(key)),
                Write::Put(at(key, MARKS), Value::from(key), Value::Int(n)),
            ])
            .await?;
    }
    bench.write(vec![Write::Delete(thing("a"))]).await?;
    for (n, key) in (1i64..).zip(keys) {
        let value = Value::from(key);
        let expected = if key == "a" {
            vec![Data::Values(vec![]), Data::Entries(vec![])]
        } else {
            vec![Data::Values(vec![value.clone()]), Data::Entries(vec![(value, Value::Int(n))])]
        };
        let reads = [Read::Elements(at(key, TAGS)), Read::Entries(at(key, MARKS))];
        let found = bench.read(&reads).await?.into_iter().map(|a| a.data);
        ensure_eq!(found.collect::<Vec<_>>(), expected, "object {key:?}");
    }
    Ok(())
}
