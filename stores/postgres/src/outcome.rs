//! What became of a commit with an id.
//!
//! One row for each id, inserted by its commit, or by whoever asks first: then it is barred. Rows
//! are removed once they are old; up to which id they are gone is kept for each origin, and of
//! those ids without a row nothing is said any more, and none takes effect.

use mingle_model::TransactionId;
use mingle_store::Outcome;

use crate::encoding::transaction;
use crate::layout::Layout;
use crate::session::Step;
use crate::wire::{Param, Row, boolean};

/// Bars an id that has no row, and gives its row: none where it is too old to say.
pub fn ask(layout: &Layout, id: TransactionId) -> [Step; 2] {
    let (outcomes, gone) = (layout.system("outcomes"), layout.system("outcomes_gone"));
    let bar = format!(
        "INSERT INTO {outcomes} (transaction, is_committed) SELECT $1::bytea, false \
         WHERE NOT EXISTS (SELECT FROM {gone} WHERE origin = substring($1::bytea FOR 16) \
         AND transaction >= $1::bytea) ON CONFLICT DO NOTHING"
    );
    let id = vec![Param::Bytes(transaction(id))];
    [Step::new(bar, id.clone()), look(layout, id)]
}

fn look(layout: &Layout, id: Vec<Param>) -> Step {
    let outcomes = layout.system("outcomes");
    Step::new(format!("SELECT is_committed FROM {outcomes} WHERE transaction = $1::bytea"), id)
}

/// The row of an id.
pub fn find(layout: &Layout, id: TransactionId) -> Step {
    look(layout, vec![Param::Bytes(transaction(id))])
}

/// What the row says.
pub fn read(rows: &[Row]) -> Outcome {
    match rows.first() {
        None => Outcome::Unknown,
        Some(row) if boolean(row, 0) => Outcome::Committed,
        Some(_) => Outcome::NotCommitted,
    }
}

/// Removes the old rows of an origin up to an id, at or below its floor.
pub fn forget(layout: &Layout, last: TransactionId, keep: &str) -> Step {
    let first = TransactionId { sequence: 0, ..last };
    let sql = remove(layout, "transaction >= $2::bytea AND transaction <= $3::bytea AND");
    let params = vec![
        Param::Text(keep.to_owned()),
        Param::Bytes(transaction(first)),
        Param::Bytes(transaction(last)),
    ];
    Step::new(sql, params)
}

/// Removes all old rows.
pub fn purge(layout: &Layout, keep: &str) -> Step {
    Step::new(remove(layout, ""), vec![Param::Text(keep.to_owned())])
}

fn remove(layout: &Layout, condition: &str) -> String {
    let (outcomes, gone) = (layout.system("outcomes"), layout.system("outcomes_gone"));
    format!(
        "WITH removed AS (DELETE FROM {outcomes} WHERE {condition} \
         at < clock_timestamp() - $1::text::interval RETURNING transaction) \
         INSERT INTO {gone} AS g (origin, transaction) \
         SELECT DISTINCT ON (substring(transaction FOR 16)) \
         substring(transaction FOR 16), transaction FROM removed \
         ORDER BY substring(transaction FOR 16), transaction DESC \
         ON CONFLICT (origin) DO UPDATE SET transaction = greatest(g.transaction, \
         excluded.transaction), at = clock_timestamp()"
    )
}
