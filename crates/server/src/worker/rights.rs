//! The rights of a token at the worker.

use mingle_store::{Commit, Read, RecordKind, Write};
use mingle_store_worker::wire::{Operation, hex};

use crate::access::Rights;
use crate::problem::{Code, Problem};

fn forbidden(rights: &Rights, what: &str) -> Problem {
    Problem::new(Code::Forbidden, format!("the token of {} does not allow {what}", rights.name))
}

pub(super) fn check_store(rights: &Rights, store: &str) -> Result<(), Problem> {
    if rights.may_work_at(store) {
        return Ok(());
    }
    Err(forbidden(rights, &format!("the worker of store {store}")))
}

pub(super) fn check_program(rights: &Rights, program: &[u8; 32]) -> Result<(), Problem> {
    if rights.may_work() && rights.may_run(program) {
        return Ok(());
    }
    Err(forbidden(rights, &format!("program {} at the worker", hex(program))))
}

/// Checks a single request. A token that may run only some programs reads and writes data only through
/// them; outside them it may only do the requests that finishing and cleaning up need.
pub(super) fn check_operation(rights: &Rights, operation: &Operation) -> Result<(), Problem> {
    if rights.may_run_all() {
        return Ok(());
    }
    let is_allowed = match operation {
        Operation::Read { reads, .. } => reads.iter().all(is_protocol_read),
        Operation::Flush { writes, .. } => writes.iter().all(is_protocol_write),
        Operation::Commit { commit: Commit { writes, .. }, .. } => {
            writes.iter().all(is_protocol_write)
        }
        Operation::Drop { .. } | Operation::Outcome(_) | Operation::Everywhere => true,
    };
    if is_allowed {
        return Ok(());
    }
    Err(forbidden(rights, "data but through its programs"))
}

fn is_protocol_read(read: &Read) -> bool {
    matches!(read, Read::Record(_) | Read::Records { .. } | Read::Witnesses { .. })
}

/// True if the write belongs to the protocol. Intents and programs are excluded: a helper would run
/// them, with the rights of the principal that they name.
fn is_protocol_write(write: &Write) -> bool {
    match write {
        Write::Forget(_) | Write::Discard(_) => true,
        Write::Record(key, _) => !matches!(key.kind, RecordKind::Intent | RecordKind::Program),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use mingle_model::{Origin, Ref, TransactionId, Value};
    use mingle_store::{Address, RecordKey, Session};
    use mingle_store_worker::wire::Opening;

    use super::*;

    fn commit(write: Write) -> Operation {
        let transaction = Opening { number: 1, is_open: false, session: Session::default() };
        let commit = Commit { writes: vec![write], ..Commit::default() };
        Operation::Commit { transaction, commit }
    }

    #[test]
    fn whoever_is_held_to_programs_writes_no_data_and_no_intents() {
        let id = TransactionId { origin: Origin(1), sequence: 2 };
        let record = |kind| Write::Record(RecordKey::of(kind, id, 0), [].as_slice().into());
        let object = Ref::new("A", Value::from("x"));
        let held = Rights::held_to("till", [[7; 32]]);
        for (write, is_allowed) in [
            (record(RecordKind::Floor), true),
            (record(RecordKind::Parked), true),
            (Write::Forget(id), true),
            (record(RecordKind::Intent), false),
            (record(RecordKind::Program), false),
            (Write::Add(Address { object, field: 0 }, 1), false),
        ] {
            let operation = commit(write);
            assert_eq!(check_operation(&held, &operation).is_ok(), is_allowed, "{operation:?}");
            assert!(check_operation(&Rights::all(), &operation).is_ok());
        }
        assert!(check_program(&held, &[7; 32]).is_ok());
        assert!(check_program(&held, &[8; 32]).is_err());
    }
}
