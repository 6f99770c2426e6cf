//! The transactions that this process has begun, until their records are removed.

pub(crate) mod cleaner;
pub(crate) mod deferred_witness;
pub(crate) mod lease;
pub(crate) mod table;
