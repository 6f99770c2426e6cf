//! The memory budget that all requests share.
//!
//! Each body is small, and few calls run at a time, but all of them together may need more memory
//! than the machine has. The received bytes of each body and the decoded arguments are therefore
//! taken from one budget, until the call has ended. If the budget is used up, a request is refused
//! and told to try again later.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::problem::{Code, Problem};

/// A number of bytes that requests share.
pub(crate) struct Budget {
    bytes_max: usize,
    taken: Arc<AtomicUsize>,
}

/// The bytes that one request has taken. Dropping it returns them to the budget.
pub(crate) struct Held {
    bytes: usize,
    bytes_max: usize,
    taken: Arc<AtomicUsize>,
}

impl Budget {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { bytes_max, taken: Arc::default() }
    }

    /// Returns the share of a request that holds no bytes yet.
    pub(crate) fn hold(&self) -> Held {
        Held { bytes: 0, bytes_max: self.bytes_max, taken: self.taken.clone() }
    }

    /// Returns the number of bytes that requests hold at this moment.
    #[cfg(test)]
    pub(crate) fn taken(&self) -> usize {
        self.taken.load(Ordering::Acquire)
    }
}

impl Held {
    /// Takes more bytes.
    ///
    /// # Errors
    ///
    /// [`Code::TooLarge`] if this request alone needs more than the whole budget,
    /// [`Code::Overloaded`] if other requests hold too much of it.
    pub(crate) fn grow(&mut self, bytes: usize) -> Result<(), Problem> {
        let mine = self.bytes.saturating_add(bytes);
        if mine > self.bytes_max {
            let detail = format!(
                "the request takes {mine} bytes of memory, and all requests together at most {}",
                self.bytes_max
            );
            return Err(Problem::new(Code::TooLarge, detail).closing());
        }
        let fits = |taken: usize| taken.checked_add(bytes).filter(|all| *all <= self.bytes_max);
        self.taken
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, fits)
            .map_err(|_| Problem::out_of_memory(self.bytes_max))?;
        self.bytes = mine;
        Ok(())
    }

    /// Changes the number of bytes held to `bytes`.
    ///
    /// # Errors
    ///
    /// As [`Held::grow`], if the number increases.
    pub(crate) fn become_bytes(&mut self, bytes: usize) -> Result<(), Problem> {
        if let Some(less) = self.bytes.checked_sub(bytes) {
            self.taken.fetch_sub(less, Ordering::AcqRel);
            self.bytes = bytes;
            return Ok(());
        }
        self.grow(bytes - self.bytes)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.taken.fetch_sub(self.bytes, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_is_held_stays_within_the_bound_and_is_given_back() {
        let budget = Budget::new(100);
        let (mut first, mut second) = (budget.hold(), budget.hold());
        first.grow(60).expect("it is free");
        let refused = second.grow(50).expect_err("60 are taken");
        assert_eq!(refused.code(), Code::Overloaded);
        assert_eq!(refused.to_json()["retryable"], true);
        first.become_bytes(20).expect("it is less");
        second.grow(50).expect("only 20 are taken");
        assert_eq!(first.become_bytes(60).map_err(|found| found.code()), Err(Code::Overloaded));
        assert_eq!(first.grow(81).map_err(|found| found.code()), Err(Code::TooLarge));
        assert_eq!(budget.taken(), 70, "what is refused takes nothing");
        first.become_bytes(30).expect("30 are free");
        assert_eq!(budget.taken(), 80, "what became more holds what it became");
        first.become_bytes(20).expect("it is less");
        drop((first, second));
        assert_eq!(budget.taken(), 0);
    }
}
