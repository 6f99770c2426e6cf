//! Indexes: ordered entries that a replica derives from its items.
//!
//! A shell tells a replica by [`Derive`] which entries follow from the values of which registers, for
//! example one entry for each object, with the values of two fields and the object's key. The object is the
//! *owner* of its registers. Then the replica can be asked for entries in order, so a reader finds the objects
//! with given values without a scan of all.
//!
//! **Derived, never merged.** Concurrent transactions may change two registers of one owner. The values
//! that a later snapshot shows together were then written together by no transaction, so no transaction
//! could have written the entry. Therefore entries are no items: they are not replicated and not written to
//! disk. A replica derives them from the versions that it has, in the step that changes these, and anew after
//! a restart.
//!
//! **Superset.** A replica serves many snapshots. At any of them a register shows one of the values in its
//! base or one that an operation in its log wrote. An owner has the entries of all combinations of these
//! values; so the entry for the values at a snapshot is there as long as the snapshot can be read. A reader
//! drops the entries that do not fit the values at its own snapshot. Once the operations are folded, only the
//! entry of the value that is left remains: nothing else removes entries, and nothing grows without bound.
//!
//! **Loose owners.** An owner with more than [`COMBINATIONS_MAX`] combinations, or with entries of more than
//! [`ENTRIES_BYTES_MAX`], has no entries; it is listed as
//! *loose*, and readers look at its registers in any case. Registers that change often are folded often
//! ([`crate::limits::FOLD_OPERATIONS`]), so few owners are loose, unless a data center has been away for long.
//!
//! **Reading.** Before a shell asks for entries, its snapshot must be complete at every partition of the data
//! center, as it is after a read of one key of each; and it must not be older than the folded versions. A replica
//! answers only if both are so.

use std::fmt;
use std::sync::Arc;

use mingle_model::Value;

use crate::key::Key;

/// An owner with more combinations of values than this has no entries, and is loose.
pub const COMBINATIONS_MAX: usize = 64;

/// An owner whose entries have more bytes than this is loose, too: 1 MiB.
pub const ENTRIES_BYTES_MAX: usize = 1 << 20;

/// An index: the entries that follow from the values of registers.
///
/// # Examples
///
/// The items of a user, by the user's city:
///
/// ```
/// use mingle_geo::derive::Derive;
/// use mingle_geo::{Key, Kind};
/// use mingle_model::Value;
///
/// #[derive(Debug)]
/// struct ByCity;
///
/// impl Derive for ByCity {
///     fn name(&self) -> &[u8] {
///         b"by city"
///     }
///
///     fn owner<'k>(&self, key: &'k Key) -> Option<&'k [u8]> {
///         key.name.strip_prefix(b"city:")
///     }
///
///     fn items(&self, owner: &[u8]) -> Vec<Key> {
///         vec![Key::new(Kind::Register, [b"city:", owner].concat())]
///     }
///
///     fn entry(&self, owner: &[u8], values: &[&Value]) -> Option<Vec<u8>> {
///         let Value::String(city) = values[0] else { return None };
///         Some([city.as_bytes(), b"\0", owner].concat())
///     }
/// }
///
/// let key = Key::new(Kind::Register, "city:ana");
/// let owner = ByCity.owner(&key).expect("it is the city of a user");
/// assert_eq!(ByCity.items(owner), [key.clone()]);
/// assert_eq!(ByCity.entry(owner, &[&"Oslo".into()]), Some(b"Oslo\0ana".to_vec()));
/// ```
pub trait Derive: fmt::Debug + Send + Sync {
    /// Returns the name of the index. Of two indexes of one name a replica keeps the first.
    fn name(&self) -> &[u8];

    /// Returns the owner of an item; `None` if no entry follows from the item.
    fn owner<'k>(&self, key: &'k Key) -> Option<&'k [u8]>;

    /// Returns the registers of an owner, in an order that stays the same; all are in one partition.
    fn items(&self, owner: &[u8]) -> Vec<Key>;

    /// Returns the entry of an owner whose registers hold these values, if it has one then. No two owners have
    /// the same entry.
    fn entry(&self, owner: &[u8], values: &[&Value]) -> Option<Vec<u8>>;
}

/// A part of an index.
#[derive(Clone, Debug)]
pub struct Span {
    /// The name of the index.
    pub index: Vec<u8>,
    /// The first entry.
    pub lower: Vec<u8>,
    /// The end of the entries, itself not included; `None` if the index has no end.
    pub upper: Option<Vec<u8>>,
    /// True if the entries come from the last to the first.
    pub is_reversed: bool,
    /// The maximum number of entries.
    pub most: usize,
}

/// Entries of a part of an index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entries {
    /// The entries, in the order that was asked for.
    pub found: Vec<Arc<[u8]>>,
    /// All owners of the index that are loose, in order.
    pub loose: Vec<Arc<[u8]>>,
}
