//! Checks of writes before any effect, so that validated writes can be applied.

use mingle_model::{Ref, Value};
use mingle_store::{Address, Write};

use crate::builtin;
use crate::core::Core;
use crate::encoding::value;
use crate::layout::Shape;
use crate::limits::{ADD_MAX, COMMIT_BYTES_MAX, ENCODED_BYTES_MAX, WRITES_MAX};

/// Checks writes against the objects and bounds of the store, and replaces commands by their
/// writes. `before` writes were flushed already.
///
/// # Errors
///
/// Why the store refuses.
pub fn prepare(core: &Core, writes: Vec<Write>, before: usize) -> Result<Vec<Write>, String> {
    if writes.len() + before > WRITES_MAX {
        return Err(format!("a commit carries at most {WRITES_MAX} writes"));
    }
    let prepare = |write| {
        let write = match write {
            Write::Command { operation, arguments } => builtin::find(&core.builtins, &operation)?
                .write(&arguments)
                .map_err(|why| format!("operation {operation} {why}"))?,
            other => other,
        };
        check(core, &write)?;
        Ok(write)
    };
    writes.into_iter().map(prepare).collect()
}

/// Checks the total size of a commit.
///
/// # Errors
///
/// Why the store refuses.
pub fn check_size(writes: &[Write]) -> Result<(), String> {
    let bytes: usize = writes.iter().map(weight).sum();
    if bytes > COMMIT_BYTES_MAX {
        return Err(format!("a commit carries at most {COMMIT_BYTES_MAX} bytes, not {bytes}"));
    }
    Ok(())
}

fn weight(write: &Write) -> usize {
    match write {
        Write::Assign(_, value)
        | Write::Insert(_, value)
        | Write::Remove(_, value)
        | Write::Erase(_, value)
        | Write::Append(_, value) => value.weight(),
        Write::Put(_, key, value) => key.weight() + value.weight(),
        Write::Record(key, value) => key.key.len() + value.len(),
        _ => 0,
    }
}

fn check(core: &Core, write: &Write) -> Result<(), String> {
    let field = |address: &Address, shapes: &[Shape], values: &[&Value]| {
        core.layout.field(address, shapes)?;
        value::check(address.object.key())?;
        values.iter().try_for_each(|value| value::check(value))
    };
    let object = |object: &Ref| {
        core.layout.kind(object.kind())?;
        value::check(object.key())
    };
    let record = |bytes: usize| {
        if bytes > ENCODED_BYTES_MAX {
            return Err(format!("a record takes at most {ENCODED_BYTES_MAX} bytes, not {bytes}"));
        }
        Ok(())
    };
    match write {
        Write::Create(target) | Write::Delete(target) => object(target),
        Write::Witness(row) => row.object.as_ref().map_or(Ok(()), object),
        Write::Forget(_) => Ok(()),
        Write::Record(key, value) => record(key.key.len() + value.len()),
        Write::Discard(key) => record(key.key.len()),
        Write::Assign(address, value) => field(address, &[Shape::Register], &[value]),
        Write::Add(address, amount) => {
            if amount.unsigned_abs() > ADD_MAX.unsigned_abs() {
                return Err(format!("an add of {amount} is beyond 2^90"));
            }
            field(address, &[Shape::Counter], &[])
        }
        Write::Insert(address, value) | Write::Remove(address, value) => {
            field(address, &[Shape::Set], &[value])
        }
        Write::Put(address, key, value) => field(address, &[Shape::Map], &[key, value]),
        Write::Erase(address, key) => field(address, &[Shape::Map], &[key]),
        Write::Append(address, value) => field(address, &[Shape::Log], &[value]),
        Write::Clear(address) => field(address, &[Shape::Set, Shape::Map, Shape::Log], &[]),
        Write::Command { .. } => unreachable!("prepare put what it writes in its place"),
    }
}
