//! The boundary of the storage library: a panic on the inside is an error on the outside.
//!
//! A page that is damaged makes redb, and the decoders of this engine, stop with a panic: nothing may be
//! built on it. Only the store that holds the page has to stop, not the process. Every call of redb, and
//! every read of rows from a disk, runs in [`contain`].

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// True while this thread is within [`contain`]: a panic now becomes an error. A panic hook that asks
/// this need not print such a panic.
pub fn is_contained() -> bool {
    DEPTH.with(Cell::get) > 0
}

/// Runs `work`.
///
/// # Errors
///
/// The message of its panic, if it panics.
pub fn contain<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    DEPTH.with(|depth| depth.set(depth.get() + 1));
    let done = catch_unwind(AssertUnwindSafe(work));
    DEPTH.with(|depth| depth.set(depth.get() - 1));
    done.map_err(|panic| message(&*panic))
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "a panic without a message".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_its_message() {
        assert_eq!(contain(|| 7), Ok(7));
        let found: Result<(), String> = contain(|| {
            assert!(is_contained());
            panic!("page {}", 3)
        });
        assert_eq!(found, Err("page 3".into()));
        assert!(!is_contained());
    }
}
