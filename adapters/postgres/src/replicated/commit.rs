//! Commits. The transaction's snapshot ends, and its writes are applied to the server's current
//! state: its reads need not hold any more.
//!
//! # The story of a commit
//!
//! A session at server `r1` has read from a snapshot and flushed some writes, which this process has
//! kept. The commit sends one pipeline on the transaction's connection:
//!
//! ```text
//! ROLLBACK                               ends the snapshot; only if the transaction has read
//! BEGIN ISOLATION LEVEL READ COMMITTED   and SET LOCAL: a timeout of 5 s if the rest is lost
//! SELECT … FROM mingle_commit(…)         all of the commit, in one call
//! COMMIT
//! ```
//!
//! The parameters of `mingle_commit` are the id, the vector that the server must have seen, the
//! guards, the written objects with the known witness rows, and all writes as columns
//! ([`Writes::params`]), flushed ones first. The function returns the commit's version and vector;
//! the vector becomes the commit's stamp.
//!
//! [`judge`] reads the answers:
//!
//! - [`Verdict::Committed`]: all statements succeeded.
//! - [`Verdict::Behind`]: the function returned the version [`BEHIND`], because the session has seen
//!   updates that have not been applied at this server.
//! - [`Verdict::Failed`]: a statement failed, so the server has skipped the `COMMIT`. [`explain`]
//!   looks a second time after a conflict, for unknown witness rows and for a recorded id.
//! - [`Verdict::Unknown`]: the answer was lost. [`ask`] queries the outcome at one server.

use std::collections::BTreeSet;

use mingle_model::{TransactionId, Version};
use mingle_store::{Commit, Committed, Guard, Outcome, StoreError};

use super::store::Core;
use super::transaction::ReplicatedTransaction;
use super::vector::Vector;
use super::writes::Writes;
use crate::encoding::{Digest, transaction};
use crate::error::Failure;
use crate::outcome;
use crate::pool::Lease;
use crate::session::{Step, StepResult};
use crate::system::{WHOLE_STORE, record_id, rows_of, witness_row};
use crate::wire::{Param, int, ints};

/// Begins a transaction. It locks the server's state, so the server ends it if the rest of its
/// statements does not arrive within 5 s.
fn begin() -> [Step; 2] {
    let alone = "SET LOCAL idle_in_transaction_session_timeout = '5s'";
    [Step::control("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"), Step::control(alone)]
}

/// The version that `mingle_commit` returns if the session has seen more than the server.
const BEHIND: i64 = -1;

/// The statement of a commit, and the data needed to explain its failure.
struct Planned {
    step: Step,
    objects: Vec<Digest>,
    known: BTreeSet<TransactionId>,
    floors: Vec<TransactionId>,
    has_written: bool,
}

fn plan(transaction_: &ReplicatedTransaction, commit: &Commit) -> Result<Planned, String> {
    let layout = &transaction_.core.layout;
    let all: Vec<_> = transaction_.flushed.iter().chain(&commit.writes).collect();
    let has_written = !all.is_empty();
    let mut writes = Writes::new(layout, all.into_iter())?;
    let own = writes.rows.iter().chain(&commit.id);
    let known: BTreeSet<TransactionId> = commit.known.iter().chain(own).copied().collect();
    let mut objects: Vec<Digest> = std::mem::take(&mut writes.written).into_iter().collect();
    if !objects.is_empty() {
        objects.push(WHOLE_STORE.to_vec());
    }
    let (mut absent, mut below, mut bounds) = (Vec::new(), Vec::new(), Vec::new());
    for guard in &commit.guards {
        match guard {
            Guard::Absent(key) => absent.push(record_id(key)?),
            Guard::Below(key, bound) => {
                below.push(record_id(key)?);
                bounds.push(bound.to_be_bytes().to_vec());
            }
        }
    }
    let floors = std::mem::take(&mut writes.floors);
    let mut params = vec![
        commit.id.map_or(Param::Null, |id| Param::Bytes(transaction(id))),
        Param::Text(transaction_.after.literal()),
    ];
    let ids = known.iter().map(|id| transaction(*id)).collect();
    let lists = [absent, below, bounds, objects.clone(), ids];
    params.extend(lists.map(Param::BytesList));
    params.extend(writes.params());
    let sql = format!(
        "SELECT at_version, at_vector FROM {}($1::bytea, $2::text::bigint[], $3::bytea[], \
         $4::bytea[], $5::bytea[], $6::bytea[], $7::bytea[], $8::bytea, $9::bytea[], \
         $10::bytea[], $11::bytea[], $12::bytea[])",
        layout.system("commit")
    );
    Ok(Planned { step: Step::new(sql, params), objects, known, floors, has_written })
}

/// Commits a transaction.
pub async fn commit(
    mut transaction: ReplicatedTransaction,
    commit: Commit,
) -> Result<Committed, StoreError> {
    if commit.is_empty() && transaction.flushed.is_empty() {
        return transaction.end().await;
    }
    if let Some(broken) = transaction.broken.take() {
        return Err(broken);
    }
    let core = std::sync::Arc::clone(&transaction.core);
    let planned = plan(&transaction, &commit).map_err(|why| core.refused(why))?;
    let mut steps = begin().to_vec();
    steps.extend([planned.step.clone(), Step::commit()]);
    let mut lease = match transaction.open.take() {
        Some((lease, _)) => {
            steps.insert(0, Step::control("ROLLBACK"));
            transaction.prepare(&lease, &steps).await?;
            lease
        }
        None => transaction.lease(&steps).await?,
    };
    if lease.connection().is_closed() {
        return Err(core.unavailable(transaction.server, "the connection was closed"));
    }
    lease.soil();
    let unknown = || StoreError::Unknown { store: core.store.clone(), id: commit.id };
    let Some(results) = lease.run(&steps).await else { return Err(unknown()) };
    let verdict = judge(&results, &core);
    lease.settle(&results);
    match verdict {
        Verdict::Committed { version, vector } => {
            core.committed(transaction.server, commit.id, &planned.floors);
            let version = if planned.has_written {
                u64::try_from(version).unwrap_or_default()
            } else {
                transaction.seen
            };
            let stamp = core.stamp(&vector);
            Ok(Committed { version: Version(version), stamp })
        }
        Verdict::Unknown => Err(unknown()),
        Verdict::Behind => Err(core.behind(transaction.server)),
        Verdict::Failed(Failure::Stale(reason)) => {
            lease.connection().forget();
            Err(core.unavailable(transaction.server, &reason))
        }
        Verdict::Failed(failure) => Err(explain(&core, &lease, &planned, commit.id, failure).await),
    }
}

/// The end of a commit.
enum Verdict {
    Committed {
        version: i64,
        vector: Vector,
    },
    /// The commit did not take effect: the session has seen more than the server.
    Behind,
    /// The commit did not take effect.
    Failed(Failure),
    /// The server did not answer.
    Unknown,
}

fn judge(results: &[StepResult], core: &Core) -> Verdict {
    let Some((last, before)) = results.split_last() else { return Verdict::Unknown };
    // A statement that was answered with an error prevents `COMMIT` from committing, even if the
    // connection breaks afterwards. If there is no answer, everything may have been done.
    if let Some(error) = before.iter().find_map(|result| result.as_ref().err()) {
        return match Failure::of(error, &core.layout) {
            Failure::Lost(_) => Verdict::Unknown,
            failure => Verdict::Failed(failure),
        };
    }
    match last {
        Ok(_) => {
            let row = before.last().and_then(|result| result.as_ref().ok()?.first());
            match row.map(|row| (int(row, 0), row)) {
                Some((BEHIND, _)) => Verdict::Behind,
                Some((version, row)) => {
                    Verdict::Committed { version, vector: Vector(ints(row, 1)) }
                }
                None => Verdict::Unknown,
            }
        }
        Err(error) => match Failure::of(error, &core.layout) {
            // A server that is shut down while a commit waits returns this error, and has
            // committed.
            Failure::Lost(_) | Failure::Unavailable(_) => Verdict::Unknown,
            failure => Verdict::Failed(failure),
        },
    }
}

/// Returns the error for a commit that did not take effect. After a conflict, a second look finds
/// out if it met witness rows or an id that is recorded.
async fn explain(
    core: &Core,
    lease: &Lease,
    planned: &Planned,
    id: Option<TransactionId>,
    failure: Failure,
) -> StoreError {
    if !matches!(failure, Failure::Witnessed | Failure::Taken) {
        return failure.before_commit(&core.store);
    }
    let mut steps = vec![rows_of(&core.layout, planned.objects.clone())];
    steps.extend(id.map(|id| outcome::find(&core.layout, id)));
    let Some(Ok(())) = lease.prepare(&steps).await else { return StoreError::Conflict };
    let Some(results) = lease.run(&steps).await else { return StoreError::Conflict };
    let Ok(found) = results.into_iter().collect::<Result<Vec<_>, _>>() else {
        return StoreError::Conflict;
    };
    if matches!(failure, Failure::Taken) {
        return match found.get(1).map(|rows| outcome::read(rows)) {
            Some(Outcome::NotCommitted) => {
                core.refused("it was said that the commit did not take effect".into())
            }
            _ => StoreError::Conflict,
        };
    }
    let rows: Result<BTreeSet<_>, String> =
        found.first().into_iter().flatten().map(|row| witness_row(row, 0)).collect();
    match rows {
        Err(why) => core.refused(why),
        Ok(rows) if rows.iter().any(|row| !planned.known.contains(&row.id)) => {
            StoreError::Witnessed { rows: rows.into_iter().collect() }
        }
        Ok(_) => StoreError::Conflict,
    }
}

/// Asks one server for the outcome of a commit; a server that does not know the id bars it.
pub async fn ask(core: &Core, server: usize, id: TransactionId) -> Result<Outcome, StoreError> {
    let unavailable = |reason: String| core.unavailable(server, &reason);
    let mut lease = core.servers[server].pool.lease().await.map_err(unavailable)?;
    let [bar, look] = outcome::ask(&core.layout, id);
    match lease.prepare(&[bar.clone(), look.clone()]).await {
        Some(Ok(())) => {}
        Some(Err(error)) => return Err(unavailable(error.to_string())),
        None => return Err(unavailable("no answer in time".into())),
    }
    let steps = [&begin()[..], &[bar, look, Step::commit()]].concat();
    lease.soil();
    let Some(mut results) = lease.run(&steps).await else {
        return Err(unavailable("no answer in time".into()));
    };
    lease.settle(&results);
    if let Some(error) = results.iter().find_map(|result| result.as_ref().err()) {
        return match Failure::of(error, &core.layout) {
            // A commit with this id is in progress.
            Failure::Conflict => Ok(Outcome::Unknown),
            failure => Err(failure.before_commit(&core.store)),
        };
    }
    Ok(outcome::read(&results.swap_remove(3).unwrap_or_default()))
}
