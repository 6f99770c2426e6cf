//! The engine for `linearizable` and `snapshot`: snapshots, and validation at commit.
//!
//! A transaction reads from the snapshot that it takes with its first read, and remembers which
//! units it read at which version. At commit, while no other commit goes on, each of these must
//! still have that version; then its writes are applied to the rows as they are now. So a
//! transaction takes effect at its commit as if it had run then in one go, which is strict
//! serializability. Writes without reads never conflict. A transaction without writes takes
//! effect at its snapshot, and needs no validation: the snapshot lies between its begin and its
//! end, and shows the effects of all earlier commits.

mod apply;
mod engine;

pub use engine::SerializableStore;
