//! Commits: all statements are sent in one round trip, and take effect if none of them fails. The
//! server skips the `COMMIT` behind a failed statement, and the pool sends a `ROLLBACK`.
//!
//! # The story of a commit
//!
//! A transaction has read the accounts `ana` and `bob` (its connection is leased, its snapshot is
//! taken), and now commits a transfer of 10 from one to the other, under an id. [`plan`] makes the
//! statements, and [`commit`] adds `BEGIN` and `COMMIT` and sends all of them as one pipeline:
//!
//! ```text
//! BEGIN        only if the transaction has no connection yet
//! LOCK TABLE   only if a witness row of the whole store is written: lock_store
//! look         SELECT CASE WHEN <unknown witness rows of ana, bob or the store> THEN stop(…)
//!                         WHEN <the transaction is too old for its id>         THEN stop(…)
//!                         ELSE pg_current_xact_id() END, <guards>
//! outcome      INSERT INTO mingle_outcomes: the id has committed
//! checks       records that were read and that neither a guard nor a write covers; in a commit
//!              without writes also the objects that were read
//! writes       the statements of the writes, in their order, after the locks of their rows
//! COMMIT
//! ```
//!
//! Each statement costs the server about as much as the change of a row. [`together`] therefore
//! combines the outcome with the look into one statement; the writes become parts of it too if
//! there are no checks and [`may_go_together`] allows it. The look returns the version of the
//! commit, which is the id of PostgreSQL's transaction.
//!
//! A condition that does not hold raises an error in the server, so this process need not wait for
//! any answer before it sends `COMMIT`. [`judge`] reads the answers:
//!
//! - All statements succeeded: [`Verdict::Committed`].
//! - A statement was answered with an error: [`Verdict::Failed`], even if the connection broke
//!   afterwards.
//! - No answer came, or the answer to `COMMIT` was lost or reports a shutdown: [`Verdict::Unknown`].
//!   The caller can then ask for the outcome of the id with [`ask`].
//!
//! After a conflict, [`explain`] looks a second time, on a new snapshot. It reports unknown witness
//! rows as `Witnessed`, an id that was barred as a refusal, and any other cause as a conflict. If
//! existing tables may have changed, `Inner::explain` (in `again`) looks at them instead.
//!
//! A transaction without writes whose commit is empty sends only `COMMIT` ([`finish_reads`]): its
//! reads are valid if that succeeds.

use std::collections::BTreeSet;

use mingle_model::{Stamp, TransactionId, Version};
use mingle_store::{Commit, Committed, Guard, Outcome, Refusal, StoreError};

use crate::encoding::object_digest;
use crate::error::Failure;
use crate::layout::Layout;
use crate::outcome;
use crate::session::{Step, StepResult};
use crate::store::Inner;
use crate::system::{self, Beginning, check_record, record_id};
use crate::together::{may_go_together, together};
use crate::transaction::{Done, PostgresTransaction, begin};
use crate::wire::int;
use crate::writing::{Writing, check_objects};

/// Locks the store for a transaction that writes a witness row of the whole store. The lock
/// excludes all others that write such a row or check such rows for a commit.
pub fn lock_store(layout: &Layout) -> Step {
    Step::control(format!("LOCK TABLE {} IN EXCLUSIVE MODE", layout.system("store")))
}

/// The statements sent between `BEGIN` and `COMMIT`.
pub struct Planned {
    /// The statements.
    pub steps: Vec<Step>,
    /// The index of the statement that returns the version of the written rows, if anything is
    /// written.
    pub version: Option<usize>,
}

/// Plans the statements of a commit.
///
/// # Errors
///
/// The reason why nothing of the commit can be written.
pub fn plan(inner: &Inner, done: &mut Done, commit: &Commit) -> Result<Planned, Refusal> {
    let layout = &inner.layout;
    let existing = std::mem::take(&mut done.existing);
    let mut writing = Writing::new(layout, &inner.operations, existing).under(commit.id);
    writing = writing.having_drawn(&done.drawn);
    writing.add(&commit.writes, done.flushed)?;
    let writes = std::mem::take(&mut writing.steps);
    let concerns_store = writing.concerns_store;
    done.note(writing, &commit.writes);
    let mut steps = Vec::new();
    if concerns_store {
        steps.push(lock_store(layout));
    }
    let begins = done.has_written || commit.id.is_some();
    let beginning = begins.then(|| {
        let objects = done.has_data.then(|| done.written.iter().map(object_digest).collect());
        let known = known(done, commit);
        Beginning { id: commit.id, keep: &inner.keep, objects, known }
    });
    let version = begins.then_some(steps.len());
    let begun = system::begin_commit(layout, beginning, &commit.guards)?;
    let mut looked_at = done.written_records.clone();
    for guard in &commit.guards {
        let (Guard::Absent(key) | Guard::Below(key, _)) = guard;
        looked_at.insert(record_id(key)?);
    }
    let missing = done.records.difference(&looked_at);
    let mut checks: Vec<Step> = missing.map(|id| check_record(layout, id.clone())).collect();
    if !done.has_written {
        let objects = done.objects.iter().map(|(kind, object)| (kind, object));
        checks.extend(check_objects(layout, objects));
    }
    let Some(system::Begun { look, outcome }) = begun else {
        steps.extend(checks.into_iter().chain(writes));
        return Ok(Planned { steps, version: None });
    };
    let (mut parts, rest) = if checks.is_empty() && may_go_together(&writes) {
        (writes, Vec::new())
    } else {
        (Vec::new(), [checks, writes].concat())
    };
    parts.extend(outcome);
    steps.push(together(&layout.texts, look, parts));
    steps.extend(rest);
    Ok(Planned { steps, version: version.filter(|_| done.has_written) })
}

/// Returns the transactions whose witness rows are known, including the transaction's own.
pub fn known(done: &Done, commit: &Commit) -> BTreeSet<TransactionId> {
    let own = done.rows.iter().chain(&commit.id);
    commit.known.iter().chain(own).copied().collect()
}

/// Commits a transaction.
pub async fn commit(
    mut transaction: PostgresTransaction,
    commit: Commit,
) -> Result<Committed, StoreError> {
    if let Some(broken) = transaction.broken() {
        return Err(broken);
    }
    let inner = std::sync::Arc::clone(&transaction.inner);
    let is_open = transaction.lease.is_some();
    if transaction.has_ended && !commit.is_empty() {
        return Err(transaction.refused("nothing comes after the last reads"));
    }
    if commit.is_empty() && !transaction.done.has_written {
        return Box::pin(finish_reads(transaction)).await;
    }
    let planned =
        plan(&inner, &mut transaction.done, &commit).map_err(|why| transaction.refused(why))?;
    let mut steps = planned.steps;
    if let Err(failure) = transaction.ready(&steps).await {
        drop(transaction.lease.take());
        return Err(Box::pin(inner.explain(failure, &commit.writes)).await);
    }
    if !is_open {
        steps.insert(0, begin());
    }
    steps.push(Step::commit());
    let lease = transaction.lease.as_mut().expect("it is ready");
    if lease.connection().is_closed() {
        return Err(transaction.unavailable("the connection was closed"));
    }
    lease.soil();
    let unknown = || StoreError::Unknown { store: inner.store.clone(), id: commit.id };
    let Some(results) = lease.run(&steps).await else { return Err(unknown()) };
    let verdict = judge(&results, &inner.layout);
    lease.settle(&results);
    match verdict {
        Verdict::Committed => {
            inner.clean_up(commit.id, &transaction.done.floors);
            let version = planned.version.map(|step| step + usize::from(!is_open));
            Ok(committed(&results, version, transaction.done.seen))
        }
        Verdict::Unknown => Err(unknown()),
        Verdict::Failed(
            failure @ (Failure::Stale(_) | Failure::Unlike(_) | Failure::Hidden(_)),
        ) => {
            if matches!(failure, Failure::Stale(_)) {
                lease.connection().forget();
            }
            drop(transaction.lease.take());
            Err(Box::pin(inner.explain(failure, &commit.writes)).await)
        }
        Verdict::Failed(failure) => Err(Box::pin(explain(transaction, &commit, failure)).await),
    }
}

/// The end of a commit.
enum Verdict {
    Committed,
    /// The commit did not take effect.
    Failed(Failure),
    /// The server did not answer.
    Unknown,
}

fn judge(results: &[StepResult], layout: &Layout) -> Verdict {
    let Some((last, before)) = results.split_last() else { return Verdict::Unknown };
    // A statement that was answered with an error prevents `COMMIT` from committing, even if the
    // connection breaks afterwards. If there is no answer, everything may have been done.
    if let Some(error) = before.iter().find_map(|result| result.as_ref().err()) {
        return match Failure::of(error, layout) {
            Failure::Lost(_) => Verdict::Unknown,
            failure => Verdict::Failed(failure),
        };
    }
    let Err(error) = last else { return Verdict::Committed };
    match Failure::of(error, layout) {
        // A server that is shut down while a commit waits for its standby returns this error, and
        // has committed.
        Failure::Lost(_) | Failure::Unavailable(_) => Verdict::Unknown,
        failure => Verdict::Failed(failure),
    }
}

/// Returns the commit's result; `version` is the index of the statement that returned the version.
pub fn committed(results: &[StepResult], version: Option<usize>, seen: u64) -> Committed {
    let rows = version.and_then(|place| results.get(place)?.as_ref().ok());
    let given = rows.and_then(|rows| rows.first()).map(|row| int(row, 0));
    let version = given.map_or(seen, |version| u64::try_from(version).unwrap_or_default());
    Committed { version: Version(version), stamp: Stamp::default() }
}

/// Ends a transaction that has only read: its reads are valid if its commit succeeds.
async fn finish_reads(mut transaction: PostgresTransaction) -> Result<Committed, StoreError> {
    let seen = transaction.done.read();
    let Some(lease) = &mut transaction.lease else { return Ok(seen) };
    let results = lease.run(&[Step::commit()]).await;
    lease.settle(results.as_deref().unwrap_or_default());
    match results.and_then(|mut results| results.pop()) {
        Some(Ok(_)) => Ok(seen),
        Some(Err(error)) => {
            let failure = Failure::of(&error, &transaction.inner.layout);
            Err(failure.before_commit(&transaction.inner.store))
        }
        None => Err(transaction.unavailable("no answer in time")),
    }
}

/// Returns the error for a commit that did not take effect. After a conflict, a second look on a
/// new snapshot finds out if it met witness rows or an id that is recorded.
async fn explain(
    mut transaction: PostgresTransaction,
    commit: &Commit,
    failure: Failure,
) -> StoreError {
    let inner = &transaction.inner;
    if matches!(failure, Failure::Refused(_) | Failure::Violated(_) | Failure::Unavailable(_)) {
        return failure.before_commit(&inner.store);
    }
    let done = &transaction.done;
    let objects = done.written.iter().map(object_digest).collect();
    let mut steps = Vec::new();
    if done.has_data {
        steps.push(system::rows_of(&inner.layout, objects));
    }
    if let Some(id) = commit.id {
        steps.push(outcome::find(&inner.layout, id));
    }
    // A serializable look at the newest ids would conflict with every commit that adds one.
    let steps = Step::beside(steps);
    let Some(lease) = &mut transaction.lease else { return StoreError::Conflict };
    let Some(Ok(())) = lease.prepare(&steps).await else { return StoreError::Conflict };
    lease.soil();
    let Some(results) = lease.run(&steps).await else { return StoreError::Conflict };
    lease.settle(&results);
    let mut found = Vec::new();
    for result in results {
        match result {
            Ok(rows) => found.push(rows),
            Err(_) => return StoreError::Conflict,
        }
    }
    // Drop the results of BEGIN and COMMIT.
    found.pop();
    found.remove(0);
    if commit.id.is_some() {
        let rows = found.pop().unwrap_or_default();
        match outcome::read(&rows) {
            Outcome::Committed => return StoreError::Conflict,
            Outcome::NotCommitted => {
                let reason = "it was said that the commit did not take effect".to_owned();
                return transaction.refused(reason);
            }
            Outcome::Unknown => {}
        }
    }
    let rows: Result<Vec<_>, String> =
        found.first().into_iter().flatten().map(|row| system::witness_row(row, 0)).collect();
    let known = known(done, commit);
    match rows {
        Err(why) => transaction.refused(why),
        Ok(rows) if rows.iter().any(|row| !known.contains(&row.id)) => {
            StoreError::Witnessed { rows }
        }
        Ok(_) => StoreError::Conflict,
    }
}

/// Asks for the outcome of a commit.
pub async fn ask(inner: &Inner, id: TransactionId) -> Result<Outcome, StoreError> {
    let unavailable =
        |reason: String| StoreError::Unavailable { store: inner.store.clone(), reason };
    let mut lease = inner.pool.lease().await.map_err(unavailable)?;
    let [bar, look] = outcome::ask(&inner.layout, id);
    let asked = [bar.clone(), look.clone()];
    match lease.prepare(&asked).await {
        Some(Ok(())) => {}
        Some(Err(error)) => return Err(unavailable(error.to_string())),
        None => return Err(unavailable("no answer in time".into())),
    }
    let steps = Step::beside(vec![bar, look]);
    lease.soil();
    let Some(mut results) = lease.run(&steps).await else {
        return Err(unavailable("no answer in time".into()));
    };
    lease.settle(&results);
    if let Some(error) = results.iter().find_map(|result| result.as_ref().err()) {
        return match Failure::of(error, &inner.layout) {
            // A commit with this id is in progress.
            Failure::Conflict => Ok(Outcome::Unknown),
            failure => Err(failure.before_commit(&inner.store)),
        };
    }
    Ok(outcome::read(&results.swap_remove(2).unwrap_or_default()))
}
