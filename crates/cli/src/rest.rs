//! Transactions that are not over when a command ends.

use std::time::Duration;

use mingle::{Database, Unfinished};

use crate::exit::Exit;

/// The time that a command waits for cleaning up before it ends.
pub const A_MOMENT: Duration = Duration::from_secs(2);

/// Waits for the transactions that the command has begun, and prints a note on standard error for each
/// that is left; normally none is.
pub async fn wait_for_rest(database: &Database, at_most: Duration) -> Exit {
    if database.settle(at_most).await {
        return Exit::Success;
    }
    let Ok(unfinished) = database.unfinished().await else { return Exit::Success };
    let mut exit = Exit::Success;
    for left in &unfinished {
        if left.parked.is_some() {
            exit = Exit::Store;
        }
        eprintln!("note: {}", sentence(left));
    }
    exit
}

/// Describes the rest of a transaction in one line.
pub fn sentence(left: &Unfinished) -> String {
    let (id, name, intent) = (left.id, &left.transaction, &left.intent);
    let by =
        left.principal.as_ref().map_or_else(String::new, |caller| format!(", called by {caller}"));
    let missing = left.missing.join(", ");
    match &left.parked {
        Some(reason) => format!(
            "transaction {id} ({name}{by}) began at {intent} and cannot be finished at {missing}: {reason}; `mingle recover` tries it again, or ends it with `--abandon`"
        ),
        None => format!(
            "transaction {id} ({name}{by}) began at {intent} and is not yet finished at {missing}: the next start goes on with it, and so does `mingle recover`"
        ),
    }
}
