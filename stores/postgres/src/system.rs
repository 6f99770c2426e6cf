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
pub fn rows_of(layout: &Layout, objects: Vec<Digest>) -> Step {
    let many = Many::of(objects.len());
    let sql = layout.texts.get(Text::Witnesses(many), || rows_text(layout, many));
    Step::new(sql, vec![with_whole_store(objects)])
}

/// The text that reads witness rows, of the objects of `$1`.
pub fn rows_text(layout: &Layout, many: Many) -> String {
    let table = layout.system("witnesses");
    format!("SELECT {WITNESS_COLUMNS} FROM {table} WHERE {}", many.among("object"))
}

/// Objects, and the whole store, as a parameter.
pub fn with_whole_store(mut objects: Vec<Digest>) -> Param {
    objects.push(WHOLE_STORE.to_vec());
    Param::BytesList(objects)
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

/// The statements that a commit begins with.
pub struct Begun {
    /// Looks whether all holds that the commit demands. It comes last of those that go out as one.
    pub look: Step,
    /// Writes that its id has taken effect.
    pub outcome: Option<Step>,
}

/// What a commit demands.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Demands {
    /// Whether it writes, and its version is asked for.
    writes: bool,
    /// That the objects whose data it writes have no witness rows that it does not know.
    unwitnessed: bool,
    /// That nothing else takes effect under its id.
    id: bool,
    /// That its origin may begin a transaction.
    origin: bool,
    /// And of records, each that it is absent, or else that it is a low floor.
    absent: Vec<bool>,
}

/// The statements of a beginning, and of guards: a commit takes effect only where they hold of what was last
/// committed. None where there is neither.
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
    /// The statement that looks whether all of it holds.
    ///
    /// Nobody leaves a witness row of the whole store, or announces a record, between this and the
    /// commit's end; and a transaction whose snapshot is older than such a row is a conflict: a
    /// sequence shows, whatever the snapshot, whether there may be one; only then is the row looked
    /// at, and locked. The tables are locked before the statement runs.
    ///
    /// All of it is one statement rather than a function of several, each of which takes the server
    /// about as long as a row's read.
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

    /// What it stops for.
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

/// How many parameters a text has so far.
struct Params(usize);

impl Params {
    /// One more, of this type.
    fn next(&mut self, cast: &str) -> String {
        self.0 += 1;
        format!("${}::{cast}", self.0)
    }
}

/// Fails where one of these rows has changed since the snapshot; each with its column and the sequence
/// that this follows.
fn looks_for_changes(layout: &Layout, rows: &[(&str, &str, &str)]) -> String {
    let tables: Vec<String> = rows.iter().map(|(table, ..)| layout.system(table)).collect();
    let has_changed = rows.iter().zip(&tables).map(|((_, column, sequence), table)| {
        format!("{table}.{column} <> (SELECT last_value FROM {})", layout.system(sequence))
    });
    let has_changed: Vec<String> = has_changed.collect();
    let (tables, has_changed) = (tables.join(", "), has_changed.join(" OR "));
    format!("(SELECT true FROM {tables} WHERE {has_changed} FOR SHARE)")
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
