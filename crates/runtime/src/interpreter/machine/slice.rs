//! Slices of computation.
//!
//! A task that computes without waiting keeps a thread from all other tasks. So a machine computes
//! in slices: after [`SLICE_STEPS`] steps it asks for a turn, and its driver lets other tasks run
//! first. Slices are counted in steps, not in time, so that runs can be repeated exactly.

use mingle_model::Value;
use mingle_store::{Data, Read};

use crate::api::settings::{BYTES_PER_STEP, SLICE_STEPS, VALUES_PER_STEP};

/// The steps that are left of a slice.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slice(u64);

impl Default for Slice {
    fn default() -> Self {
        Self(SLICE_STEPS)
    }
}

impl Slice {
    /// Returns true if no step is left; then the next slice begins.
    pub(super) fn is_used_up(&mut self) -> bool {
        let is_used_up = self.0 == 0;
        if is_used_up {
            *self = Self::default();
        }
        is_used_up
    }

    /// Takes steps, or all that are left.
    pub(super) fn take(&mut self, steps: u64) {
        self.0 = self.0.saturating_sub(steps);
    }

    /// Takes the steps for reading or writing this number of bytes.
    pub(super) fn take_bytes(&mut self, bytes: usize) {
        self.take((bytes / BYTES_PER_STEP) as u64);
    }

    /// Takes the steps for visiting this number of values.
    pub(super) fn take_values(&mut self, values: usize) {
        self.take((values / VALUES_PER_STEP) as u64);
    }
}

/// Returns the number of values in an answer of a store.
pub(super) fn values_in(data: &Data) -> usize {
    match data {
        Data::Values(values) => values.len(),
        Data::Entries(entries) => 2 * entries.len(),
        _ => 1,
    }
}

/// Returns a rough count of the bytes of an answer, for the bound on memory.
pub(super) fn weight(data: &Data) -> usize {
    let inner = match data {
        Data::Bool(_) | Data::Counter(_) | Data::Count(_) | Data::Register(None) => 0,
        Data::Register(Some(value)) | Data::Result(value) => value.weight(),
        Data::Values(values) => values.iter().map(Value::weight).sum(),
        Data::Entries(entries) => {
            entries.iter().map(|(key, value)| key.weight() + value.weight()).sum()
        }
        Data::Record(_) | Data::Records(_) | Data::Witnesses(_) => {
            unreachable!("a program reads data alone")
        }
    };
    inner + size_of::<Read>() + size_of::<Data>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_ends_once_its_steps_are_taken_in_whatever_way() {
        let steps = SLICE_STEPS as usize;
        let takes: [&dyn Fn(&mut Slice); 3] = [
            &|slice| slice.take(SLICE_STEPS / 2),
            &|slice| slice.take_bytes(steps / 2 * BYTES_PER_STEP),
            &|slice| slice.take_values(steps / 2 * VALUES_PER_STEP),
        ];
        for (index, take) in takes.into_iter().enumerate() {
            let mut slice = Slice::default();
            assert!(!slice.is_used_up(), "{index}");
            take(&mut slice);
            assert!(!slice.is_used_up(), "{index}: half of it is left");
            take(&mut slice);
            assert!(slice.is_used_up(), "{index}: nothing is left");
            assert!(!slice.is_used_up(), "{index}: the next one has begun");
        }
        // Taking more than is left takes all that is left.
        let mut slice = Slice::default();
        slice.take(u64::MAX);
        assert!(slice.is_used_up());
    }

    #[test]
    fn answers_have_as_many_values_as_a_program_gets() {
        let (one, two) = (Value::Int(1), Value::Int(2));
        assert_eq!(values_in(&Data::Count(7)), 1);
        assert_eq!(values_in(&Data::Values(vec![one.clone(), two.clone()])), 2);
        assert_eq!(values_in(&Data::Entries(vec![(one.clone(), two.clone())])), 2);
        let alone = weight(&Data::Register(None));
        assert!(weight(&Data::Register(Some(one.clone()))) > alone);
        let text = Value::from("x".repeat(1000).as_str());
        assert!(weight(&Data::Entries(vec![(one, text)])) >= alone + 1000);
    }
}
