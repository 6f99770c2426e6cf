//! Seeded randomness for results that must be the same each time.

pub use mingle_model::random::next_random;
