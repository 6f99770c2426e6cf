//! The runtime's own rows: records, witness rows, and the conditions of a commit on them.

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

/// The object digest of rows of the whole store.
pub const WHOLE_STORE: &[u8] = b"";

/// The columns that [`witness_row`] reads.
pub const WITNESS_COLUMNS: &str = "object, transaction, kind, key, details::text";

/// Returns the id of a record.
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

/// Reads the witness rows of objects and of the whole store.
pub fn rows_of(layout: &Layout, objects: Vec<Digest>) -> Step {
    let many = Many::of(objects.len());
    let sql = layout.texts.get(Text::Witnesses(many), || rows_text(layout, many));
    Step::new(sql, vec![with_whole_store(objects)])
}

/// Returns the query for witness rows of the objects in `$1`.
pub fn rows_text(layout: &Layout, many: Many) -> String {
    let table = layout.system("witnesses");
    format!("SELECT {WITNESS_COLUMNS} FROM {table} WHERE {}", many.among("object"))
}

/// Returns the objects, and the whole store, as a parameter.
pub fn with_whole_store(mut objects: Vec<Digest>) -> Param {
    objects.push(WHOLE_STORE.to_vec());
    Param::BytesList(objects)
}

/// The conditions at the beginning of a commit that writes. If it has an id, the commit takes
/// effect under the id, and no other commit does. If it writes data, it is refused when the objects
/// that it writes, or the whole store, have witness rows of unknown transactions. The statement
/// returns the version of the commit's writes.
pub struct Beginning<'a> {
    /// The commit's id.
    pub id: Option<TransactionId>,
    /// The time that ids are kept, as an SQL interval.
    pub keep: &'a str,
    /// The objects whose data is written, if any data is.
    pub objects: Option<Vec<Digest>>,
    /// The transactions whose witness rows are known.
    pub known: BTreeSet<TransactionId>,
}

/// The statements at the beginning of a commit.
pub struct Begun {
    /// Checks all conditions of the commit. It is the last part of the combined statement.
    pub look: Step,
    /// Records that the commit's id has taken effect.
    pub outcome: Option<Step>,
}

/// The conditions of a commit.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Demands {
    /// The commit writes, and needs its version.
    writes: bool,
    /// The objects whose data it writes have no unknown witness rows.
    unwitnessed: bool,
    /// No other commit takes effect under its id.
    id: bool,
    /// Its origin may begin a transaction.
    origin: bool,
    /// For each guarded record: true if it must be absent, false if it must be a floor below a
    /// bound.
    absent: Vec<bool>,
}

/// Returns the statements of a beginning and of guards: the commit takes effect only if the guards
/// hold of the last committed state. None if there is neither.
///
/// # Errors
///
/// When the key of a guard's record is too long.
pub fn begin_commit(
    layout: &Layout,
    beginning: Option<Beginning<'_>>,
    guards: &[Guard],
) -> Result<Option<Begun>, String> {
    if beginning.is_none() && guards.is_empty() {
        return Ok(None);
    }
    let id = beginning.as_ref().and_then(|beginning| beginning.id);
    let (shut, guards) = id.map_or((None, guards), |id| of_origin(id, guards));
    let mut demands = Demands {
        writes: beginning.is_some(),
        unwitnessed: false,
        id: id.is_some(),
        origin: shut.is_some(),
        absent: guards.iter().map(|guard| matches!(guard, Guard::Absent(_))).collect(),
    };
    let mut params = Vec::new();
    if let Some(beginning) = beginning {
        if let Some(mut objects) = beginning.objects {
            objects.push(WHOLE_STORE.to_vec());
            demands.unwitnessed = true;
            params.push(Param::BytesList(objects));
            params.push(Param::BytesList(beginning.known.into_iter().map(transaction).collect()));
        }
        if let Some(id) = id {
            params.push(Param::Bytes(transaction(id)));
            params.push(Param::Text(beginning.keep.to_owned()));
        }
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
    let text = Text::Commit(demands.clone());
    let sql = layout.texts.get(text, || demands.text(layout));
    let outcome = id.map(|id| {
        let sql = layout.texts.get(Text::Outcome, || {
            let outcomes = layout.system("outcomes");
            format!("INSERT INTO {outcomes} (transaction, is_committed) VALUES ($1::bytea, true)")
        });
        Step::part(sql, vec![Param::Bytes(transaction(id))])
    });
    Ok(Some(Begun { look: Step::new(sql, params), outcome }))
}

impl Demands {
    /// Returns the statement that checks all conditions.
    ///
    /// Between this statement and the end of the commit, no transaction can write a witness row of
    /// the whole store or announce a record. A transaction whose snapshot is older than such a row
    /// is a conflict: a sequence shows, independently of the snapshot, if there may be one; only
    /// then is the row read and locked. The tables are locked before the statement runs.
    ///
    /// It is one statement rather than a function of several statements: each of those would cost
    /// the server about as much as reading a row.
    fn text(&self, layout: &Layout) -> String {
        let mut params = Params(0);
        let mut given = Vec::new();
        let refused = self.refused(layout, &mut params);
        if self.writes {
            let version = "pg_current_xact_id()::text::bigint";
            given.push(if refused.is_empty() {
                version.to_owned()
            } else {
                format!("CASE {refused}ELSE {version} END")
            });
        }
        let mut rows = Vec::new();
        if self.unwitnessed {
            rows.push(("store", "witnessed", "epoch"));
        }
        if self.origin {
            rows.push(("announcement", "last", "announcements"));
        }
        if !rows.is_empty() {
            given.push(looks_for_changes(layout, &rows));
        }
        for is_absent in &self.absent {
            let id = params.next("bytea");
            given.push(if *is_absent {
                format!("{}({id})", layout.system("absent"))
            } else {
                format!("{}({id}, {})", layout.system("below"), params.next("bytea"))
            });
        }
        format!("SELECT {}", given.join(", "))
    }

    /// Returns the branches that stop the commit.
    fn refused(&self, layout: &Layout, params: &mut Params) -> String {
        let stop = |when: &str, why: &str, code: &str| {
            format!("WHEN {when} THEN {}('{why}', '{code}') ", layout.system("stop"))
        };
        let (mut refused, guard) = (String::new(), crate::error::GUARD);
        if self.unwitnessed {
            let (objects, known) = (params.next("bytea[]"), params.next("bytea[]"));
            let has_rows = format!(
                "EXISTS (SELECT FROM {} AS w WHERE w.object = ANY({objects}) \
                 AND NOT w.transaction = ANY({known}))",
                layout.system("witnesses")
            );
            refused += &stop(&has_rows, "there are witness rows", crate::error::WITNESSED);
        }
        if self.id {
            let (id, keep) = (params.next("bytea"), params.next("text"));
            let is_old = format!(
                "clock_timestamp() - transaction_timestamp() > {keep}::interval / 2 \
                 OR EXISTS (SELECT FROM {} AS g WHERE g.origin = substring({id} FOR 16) \
                 AND g.transaction >= {id})",
                layout.system("outcomes_gone")
            );
            refused += &stop(&is_old, "a transaction is too old", guard);
        }
        if self.origin {
            let [fence, floor, bound] = ["bytea"; 3].map(|cast| params.next(cast));
            let is_shut = format!(
                "EXISTS (SELECT FROM {} WHERE id = {fence}) OR EXISTS (SELECT FROM {} \
                 WHERE id = {floor} AND length(value) = 8 AND value >= {bound})",
                layout.system("announced"),
                layout.system("records")
            );
            refused += &stop(&is_shut, "its origin begins no transactions", guard);
        }
        refused
    }
}

/// The number of parameters in a text so far.
struct Params(usize);

impl Params {
    /// Adds a parameter of this type.
    fn next(&mut self, cast: &str) -> String {
        self.0 += 1;
        format!("${}::{cast}", self.0)
    }
}

/// Returns a check that fails if one of these rows has changed since the snapshot; each is given
/// with its column and the sequence that the column follows.
fn looks_for_changes(layout: &Layout, rows: &[(&str, &str, &str)]) -> String {
    let tables: Vec<String> = rows.iter().map(|(table, ..)| layout.system(table)).collect();
    let has_changed = rows.iter().zip(&tables).map(|((_, column, sequence), table)| {
        format!("{table}.{column} <> (SELECT last_value FROM {})", layout.system(sequence))
    });
    let has_changed: Vec<String> = has_changed.collect();
    let (tables, has_changed) = (tables.join(", "), has_changed.join(" OR "));
    format!("(SELECT true FROM {tables} WHERE {has_changed} FOR SHARE)")
}

/// The records that prevent an origin from beginning a transaction.
#[derive(Clone, Copy)]
struct Shut<'a> {
    fence: &'a RecordKey,
    floor: &'a RecordKey,
    bound: u64,
}

/// Splits off the guards of a transaction's origin, if a commit under its id begins with them.
///
/// They need no lock on the floor, which the origin itself raises all the time. Any other process
/// that raises it has first put up the fence, which is announced. The origin raises it only past
/// finished transactions; their ids have outcomes, so no other commit under them takes effect.
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

/// Returns the statement that fails unless a record is as in the transaction's snapshot.
pub fn check_record(layout: &Layout, id: Vec<u8>) -> Step {
    Step::new(format!("SELECT {}($1::bytea)", layout.system("hold")), vec![Param::Bytes(id)])
}

/// Returns the statements that add a witness row. They also change its object's row, unless it
/// concerns the whole store, so that a concurrent writer of the object conflicts.
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

/// Returns the row's content besides its object and transaction.
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

/// Decodes a witness row from the columns [`WITNESS_COLUMNS`], which start at `from`.
///
/// # Errors
///
/// When this version cannot have written the row.
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
