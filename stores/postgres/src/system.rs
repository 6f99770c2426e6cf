//! The runtime's own rows: records, witness rows and what a commit may demand of them.

use std::collections::BTreeSet;

use mingle_model::{Name, Ref, RowKind, Stamp, TransactionId, WitnessRow};
use mingle_store::{Guard, RecordKey, RecordKind};
use serde_json::{Value as Json, json};

use crate::encoding::{self, Digest, object_digest, read_transaction, transaction};
use crate::layout::Layout;
use crate::limits::RECORD_KEY_BYTES_MAX;
use crate::session::Step;
use crate::text::{Many, Text};
use crate::wire::{Param, Row, bytes, cell, text};

/// The object of the rows of the whole store.
pub const WHOLE_STORE: &[u8] = b"";

/// What [`witness_row`] reads.
pub const WITNESS_COLUMNS: &str = "object, transaction, kind, key, details::text";

/// Identifies a record.
///
/// # Errors
///
/// When its key is too long.
pub fn record_id(key: &RecordKey) -> Result<Vec<u8>, String> {
    if key.key.len() > RECORD_KEY_BYTES_MAX {
        return Err(format!(
            "the key of a record takes at most {RECORD_KEY_BYTES_MAX} bytes, not {}",
            key.key.len()
        ));
    }
    Ok([&[key.kind.code()], &*key.key].concat())
}

/// The witness rows of objects and of the whole store.
pub fn rows_of(layout: &Layout, mut objects: Vec<Digest>) -> Step {
    objects.push(WHOLE_STORE.to_vec());
    let many = Many::of(objects.len());
    let sql = layout.texts.get(Text::Witnesses(many), || {
        let table = layout.system("witnesses");
        format!("SELECT {WITNESS_COLUMNS} FROM {table} WHERE {}", many.among("object"))
    });
    Step::new(sql, vec![Param::BytesList(objects)])
}

/// What a commit that writes begins with: under its id it takes effect, and no other does, if it has
/// one; and it is refused where objects that it writes, or the whole store, have witness rows of
/// others than these transactions, if it writes data. It gives the version of what it writes.
pub struct Beginning<'a> {
    /// The commit's id.
    pub id: Option<TransactionId>,
    /// How long ids are kept, as an interval.
    pub keep: &'a str,
    /// The objects whose data is written, if any data is.
    pub objects: Option<Vec<Digest>>,
    /// The transactions whose witness rows are known.
    pub known: BTreeSet<TransactionId>,
}

/// The statement of a beginning, and of guards: a commit takes effect only where they hold of what was last
/// committed. None where there is neither.
///
/// # Errors
///
/// When the key of a guard's record is too long.
pub fn begin_commit(
    layout: &Layout,
    beginning: Option<Beginning<'_>>,
    guards: &[Guard],
) -> Result<Option<Step>, String> {
    if beginning.is_none() && guards.is_empty() {
        return Ok(None);
    }
    let id = beginning.as_ref().and_then(|beginning| beginning.id);
    let (shut, guards) = id.map_or((None, guards), |id| of_origin(id, guards));
    let call = match (&beginning, shut) {
        (None, _) => None,
        (Some(_), None) => Some("commit"),
        (Some(_), Some(_)) => Some("begin"),
    };
    let absent: Vec<bool> = guards.iter().map(|guard| matches!(guard, Guard::Absent(_))).collect();
    let text = Text::Commit(call, absent.clone());
    let sql = layout.texts.get(text, || commit_text(layout, call, shut.is_some(), &absent));
    let mut params = Vec::new();
    if let Some(beginning) = beginning {
        let objects = beginning.objects.map(|mut objects| {
            objects.push(WHOLE_STORE.to_vec());
            Param::BytesList(objects)
        });
        let id = beginning.id.map(|id| Param::Bytes(transaction(id)));
        let known = beginning.known.into_iter().map(transaction).collect();
        params = vec![
            id.unwrap_or(Param::Null),
            Param::Text(beginning.keep.to_owned()),
            objects.unwrap_or(Param::Null),
            Param::BytesList(known),
        ];
    }
    if let Some(Shut { fence, floor, bound }) = shut {
        params.push(Param::Bytes(record_id(fence)?));
        params.push(Param::Bytes(record_id(floor)?));
        params.push(Param::Bytes(bound.to_be_bytes().to_vec()));
    }
    for guard in guards {
        let (Guard::Absent(key) | Guard::Below(key, _)) = guard;
        params.push(Param::Bytes(record_id(key)?));
        if let Guard::Below(_, bound) = guard {
            params.push(Param::Bytes(bound.to_be_bytes().to_vec()));
        }
    }
    Ok(Some(Step::new(sql, params)))
}

/// The functions that a commit begins with.
fn commit_text(layout: &Layout, call: Option<&str>, is_shut: bool, absent: &[bool]) -> String {
    let (mut calls, mut next) = (Vec::new(), 1);
    if let Some(name) = call {
        let name = layout.system(name);
        let own = if is_shut { ", $5::bytea, $6::bytea, $7::bytea" } else { "" };
        calls.push(format!("{name}($1::bytea, $2::text::interval, $3::bytea[], $4::bytea[]{own})"));
        next = if is_shut { 8 } else { 5 };
    }
    for is_absent in absent {
        calls.push(if *is_absent {
            format!("{}(${next}::bytea)", layout.system("absent"))
        } else {
            format!("{}(${next}::bytea, ${}::bytea)", layout.system("below"), next + 1)
        });
        next += if *is_absent { 1 } else { 2 };
    }
    format!("SELECT {}", calls.join(", "))
}

/// What keeps an origin from beginning a transaction.
#[derive(Clone, Copy)]
struct Shut<'a> {
    fence: &'a RecordKey,
    floor: &'a RecordKey,
    bound: u64,
}

/// The guards of a transaction's origin, if a commit under its id begins with them, and those that follow.
///
/// They need no lock on the floor, which the origin itself raises all the time: whoever else raises it
/// has put up the fence before, which is announced; and the origin raises it past what is over,
/// whose id has an outcome, so that no other commit under it takes effect.
fn of_origin(id: TransactionId, guards: &[Guard]) -> (Option<Shut<'_>>, &[Guard]) {
    let key = |kind| RecordKey::of_origin(kind, id.origin);
    match guards {
        [Guard::Absent(fence), Guard::Below(floor, bound), rest @ ..]
            if *fence == key(RecordKind::Fence)
                && *floor == key(RecordKind::Floor)
                && *bound == id.sequence =>
        {
            (Some(Shut { fence, floor, bound: *bound }), rest)
        }
        _ => (None, guards),
    }
}

/// A commit takes effect only where a record is as the transaction's snapshot has it.
pub fn check_record(layout: &Layout, id: Vec<u8>) -> Step {
    Step::new(format!("SELECT {}($1::bytea)", layout.system("hold")), vec![Param::Bytes(id)])
}

/// Statements that add a witness row; its object's row is changed too, unless it concerns the whole
/// store, so that whoever writes the object at the same time finds out.
pub fn insert_witness(layout: &Layout, row: &WitnessRow) -> Step {
    let object = row.object.as_ref();
    let digest = object.map_or_else(|| WHOLE_STORE.to_vec(), object_digest);
    let details = details(row).to_string();
    let (kind, key, shown) = match object {
        Some(object) => {
            let mut key = Vec::new();
            encoding::encode(object.key(), &mut key);
            let shown: String = object.key().to_string().chars().take(200).collect();
            (Param::Text(object.kind().to_string()), Param::Bytes(key), Param::Text(shown))
        }
        None => (Param::Null, Param::Null, Param::Null),
    };
    let sql = layout.texts.get(Text::Witness, || {
        format!(
            "INSERT INTO {} (object, transaction, digest, kind, key, key_text, details) \
             VALUES ($1::bytea, $2::bytea, $3::bytea, $4::text, $5::bytea, $6::text, $7::text::json) \
             ON CONFLICT DO NOTHING",
            layout.system("witnesses")
        )
    });
    let params = vec![
        Param::Bytes(digest.clone()),
        Param::Bytes(transaction(row.id)),
        Param::Bytes(encoding::witness_digest(&digest, row, &details)),
        kind,
        key,
        shown,
        Param::Text(details),
    ];
    Step::part(sql, params)
}

/// All that a row says beside its object and transaction.
pub fn details(row: &WitnessRow) -> Json {
    let stamp = |stamp: &Stamp| -> Json {
        stamp.iter().map(|(replica, count)| (replica.to_string(), json!(count))).collect()
    };
    let seen: Vec<Json> =
        row.seen.iter().map(|(store, seen)| json!([store.to_string(), stamp(seen)])).collect();
    json!({
        "is_read": row.kind == RowKind::Read,
        "intent": row.intent.to_string(),
        "stores": row.stores.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "seen": seen,
    })
}

/// A row as [`WITNESS_COLUMNS`] give it, from this column on.
///
/// # Errors
///
/// When it is none that this version has written.
pub fn witness_row(row: &Row, from: usize) -> Result<WitnessRow, String> {
    let corrupt = || "a witness row is corrupt, or was written by a newer version".to_owned();
    let object = match (text(row, from + 2), cell(row, from + 3)) {
        (Some(kind), Some(mut key)) => {
            Some(Ref::new(kind, encoding::decode(&mut key).ok_or_else(corrupt)?))
        }
        _ => None,
    };
    let id = read_transaction(&bytes(row, from + 1)).ok_or_else(corrupt)?;
    let parsed = text(row, from + 4).and_then(|text| serde_json::from_str::<Json>(text).ok());
    parsed.and_then(|details| read_details(object, id, &details)).ok_or_else(corrupt)
}

fn read_details(object: Option<Ref>, id: TransactionId, details: &Json) -> Option<WitnessRow> {
    let name = |json: &Json| json.as_str().map(Name::from);
    let stamp = |json: &Json| -> Option<Stamp> {
        let counts = json.as_object()?.iter();
        counts.map(|(replica, count)| Some((replica.as_str().into(), count.as_u64()?))).collect()
    };
    let seen = details.get("seen")?.as_array()?.iter();
    Some(WitnessRow {
        object,
        id,
        kind: if details.get("is_read")?.as_bool()? { RowKind::Read } else { RowKind::Write },
        intent: name(details.get("intent")?)?,
        stores: details.get("stores")?.as_array()?.iter().map(name).collect::<Option<_>>()?,
        seen: seen
            .map(|pair| Some((name(pair.get(0)?)?, stamp(pair.get(1)?)?)))
            .collect::<Option<_>>()?,
    })
}
