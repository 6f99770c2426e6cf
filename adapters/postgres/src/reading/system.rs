//! Statements that read the runtime's own rows.

use std::collections::BTreeSet;

use mingle_model::TransactionId;
use mingle_store::RecordKind;

use crate::encoding::transaction;
use crate::layout::Layout;
use crate::session::Step;
use crate::text::Many;
use crate::wire::Param;

fn bound(limit: usize) -> Param {
    Param::Int(i64::try_from(limit).unwrap_or(i64::MAX))
}

/// Reads records: id, value, version.
pub fn records(layout: &Layout, ids: &BTreeSet<Vec<u8>>) -> Step {
    let (table, among) = (layout.system("records"), Many::of(ids.len()).among("id"));
    let sql = format!("SELECT id, value, version FROM {table} WHERE {among}");
    Step::new(sql, vec![Param::BytesList(ids.iter().cloned().collect())])
}

/// Reads records of a kind from a key on, in order: key, value.
pub fn scan(layout: &Layout, kind: RecordKind, from: &[u8], limit: usize) -> Step {
    let sql = format!(
        "SELECT key, value FROM {} WHERE kind = $1::bigint::smallint AND key >= $2::bytea \
         ORDER BY key LIMIT $3::bigint",
        layout.system("records")
    );
    let kind = Param::Int(kind.code().into());
    Step::new(sql, vec![kind, Param::Bytes(from.to_vec()), bound(limit)])
}

/// Reads witness rows of transactions from one on, in order, of as many transactions as `limit`
/// rows need.
pub fn sweep(layout: &Layout, from: TransactionId, limit: usize) -> Step {
    let table = layout.system("witnesses");
    let sql = format!(
        "SELECT {} FROM {table} WHERE transaction >= $1::bytea AND transaction <= \
         (SELECT f.transaction FROM (SELECT transaction FROM {table} \
          WHERE transaction >= $1::bytea ORDER BY transaction LIMIT $2::bigint) AS f \
          ORDER BY f.transaction DESC LIMIT 1) \
         ORDER BY transaction, object",
        crate::system::WITNESS_COLUMNS
    );
    Step::new(sql, vec![Param::Bytes(transaction(from)), bound(limit)])
}
