//! Writes of the runtime's own rows.

use std::collections::BTreeSet;

use mingle_model::{Ref, TransactionId, WitnessRow};
use mingle_store::record::read_floor;
use mingle_store::{RecordKey, RecordKind, Refusal, Write};

use super::Writing;
use crate::encoding::{object_digest, transaction};
use crate::layout::{Kind, Place};
use crate::limits::NEW_RECORDS_MAX;
use crate::session::Step;
use crate::system::{insert_witness, record_id};
use crate::tables::ANNOUNCED;
use crate::text::{Many, Text};
use crate::wire::Param;

fn is_announced(key: &RecordKey) -> bool {
    ANNOUNCED.contains(&key.kind)
}

/// Counts the leading writes that are records of different keys: one statement writes them all.
pub(super) fn records_at_once(writes: &[Write]) -> usize {
    let mut keys = BTreeSet::new();
    let mut count = 0;
    for write in writes {
        let Write::Record(key, _) = write else { break };
        if is_announced(key) || !keys.insert(key) {
            break;
        }
        count += 1;
    }
    count
}

/// Counts the leading writes that only remove rows: one statement for each table removes them all.
pub(super) fn removed_at_once(writes: &[Write]) -> usize {
    let removes = |write: &&Write| matches!(write, Write::Discard(_) | Write::Forget(_));
    writes.iter().take_while(removes).count()
}

impl Writing<'_> {
    /// Removes records, and witness rows of transactions.
    ///
    /// # Errors
    ///
    /// When a record's key is too long.
    pub(super) fn remove_rows(&mut self, writes: &[Write]) -> Result<(), Refusal> {
        let (mut records, mut announced) = (Vec::new(), Vec::new());
        let mut forgotten = Vec::new();
        for write in writes {
            match write {
                Write::Forget(id) => forgotten.push(transaction(*id)),
                Write::Discard(key) => {
                    let id = record_id(key)?;
                    self.records.insert(id.clone());
                    if is_announced(key) {
                        announced.push(id.clone());
                    }
                    records.push(id);
                }
                _ => return Err("a write that removes nothing".into()),
            }
        }
        let all = [
            ("witnesses", "transaction", forgotten),
            ("records", "id", records),
            ("announced", "id", announced),
        ];
        for (table, column, ids) in all {
            if !ids.is_empty() {
                let table = self.layout.system(table);
                let among = Many::of(ids.len()).among(column);
                let sql = format!("DELETE FROM {table} WHERE {among}");
                self.push(sql, vec![Param::BytesList(ids)]);
            }
        }
        Ok(())
    }

    /// Writes records of different keys that are not announced.
    ///
    /// # Errors
    ///
    /// When a record's key is too long.
    pub(super) fn records(&mut self, writes: &[Write]) -> Result<(), Refusal> {
        let (mut ids, mut values) = (Vec::new(), Vec::new());
        let mut are_new = true;
        for write in writes {
            let Write::Record(key, value) = write else {
                return Err("a write of no record".into());
            };
            let id = record_id(key)?;
            are_new &= self.records.insert(id.clone()) && self.is_new(key);
            ids.push(id);
            values.push(value.to_vec());
        }
        if are_new && writes.len() <= NEW_RECORDS_MAX {
            self.new_records(ids, values);
            return Ok(());
        }
        let sql = self.layout.texts.get(Text::Records, || {
            let (table, version) = (self.layout.system("records"), self.version());
            format!(
                "WITH given AS (SELECT * FROM unnest($1::bytea[], $2::bytea[]) AS g (id, value)), \
                 added AS (INSERT INTO {table} (id, kind, key, value, version) \
                 SELECT id, get_byte(id, 0), substring(id FROM 2), value, {version} FROM given \
                 ON CONFLICT DO NOTHING RETURNING id) \
                 UPDATE {table} AS r SET value = given.value, version = {version} FROM given \
                 WHERE r.id = given.id AND given.id NOT IN (SELECT id FROM added)"
            )
        });
        let params = vec![Param::BytesList(ids), Param::BytesList(values)];
        self.steps.push(Step::new(sql, params));
        Ok(())
    }

    /// Writes a few records that do not exist yet.
    fn new_records(&mut self, ids: Vec<Vec<u8>>, values: Vec<Vec<u8>>) {
        let count = ids.len();
        let sql = self.layout.texts.get(Text::NewRecords(count), || {
            let (table, version) = (self.layout.system("records"), self.version());
            let row = |number: usize| {
                let (id, value) = (2 * number + 1, 2 * number + 2);
                format!(
                    "(${id}::bytea, get_byte(${id}::bytea, 0), substring(${id}::bytea FROM 2), \
                     ${value}::bytea, {version})"
                )
            };
            let rows: Vec<String> = (0..count).map(row).collect();
            format!(
                "INSERT INTO {table} (id, kind, key, value, version) VALUES {}",
                rows.join(", ")
            )
        });
        let pairs = ids.into_iter().zip(values);
        let params = pairs.flat_map(|(id, value)| [Param::Bytes(id), Param::Bytes(value)]);
        self.steps.push(Step::part(sql, params.collect()));
    }

    /// True if a record can only be new: it belongs to the transaction that takes effect with this
    /// commit.
    fn is_new(&self, key: &RecordKey) -> bool {
        let is_its_own = matches!(key.kind, RecordKind::Intent | RecordKind::Fixed);
        let id = key.transaction().map(|(id, _)| id);
        is_its_own && id.is_some() && id == self.begins
    }

    /// Writes a record.
    ///
    /// # Errors
    ///
    /// When its key is too long.
    pub(super) fn record(&mut self, key: &RecordKey, value: &[u8]) -> Result<(), Refusal> {
        if is_announced(key) {
            let sql = format!("SELECT {}($1::bytea)", self.layout.system("announce"));
            self.push(sql, vec![Param::Bytes(record_id(key)?)]);
        }
        if let (RecordKind::Floor, Some(origin)) = (key.kind, key.origin()) {
            let last = TransactionId { origin, sequence: read_floor(value) };
            self.floors.push(last);
        }
        self.records(&[Write::Record(key.clone(), value.into())])
    }

    pub(super) fn witness(&mut self, row: &WitnessRow) -> Result<(), Refusal> {
        match &row.object {
            None => {
                self.concerns_store = true;
                let sql = format!(
                    "UPDATE {} SET witnessed = nextval($1::text::regclass)",
                    self.layout.system("store")
                );
                self.push(sql, vec![Param::Text(self.layout.system("epoch"))]);
            }
            Some(object) => {
                let kind = self.layout.kind_of(object)?;
                self.anchor(kind, object);
            }
        }
        self.steps.push(insert_witness(self.layout, row));
        Ok(())
    }

    /// Changes the row of an object that gets a witness row, unless the row is changed in any case.
    /// A concurrent writer of the object that does not know of the witness then conflicts.
    fn anchor(&mut self, kind: &Kind, object: &Ref) {
        if !self.changed.insert(object.clone()) {
            return;
        }
        let version = self.version();
        let id = Param::Bytes(object_digest(object));
        let Place::Own { table, key, key_codec } = &kind.place else {
            let anchors = self.layout.system("anchors");
            self.push(
                format!("INSERT INTO {anchors} (object) VALUES ($1::bytea) ON CONFLICT DO NOTHING"),
                vec![id.clone()],
            );
            let sql = format!("UPDATE {anchors} SET version = {version} WHERE object = $1::bytea");
            self.push(sql, vec![id]);
            return;
        };
        let insert = format!(
            "INSERT INTO {table} (mingle_id, {key}, mingle_exists) \
             VALUES ($1::bytea, {}, false) ON CONFLICT DO NOTHING",
            key_codec.parameter(2)
        );
        let row = key_codec.param(&self.layout.schema, object.key());
        self.push(insert, vec![id.clone(), row]);
        let update =
            format!("UPDATE {table} SET mingle_witnessed = {version} WHERE mingle_id = $1::bytea");
        self.push(update, vec![id]);
    }
}
