//! Seeded randomness for what must be the same each time.

pub use mingle_model::random::next_random;
