//! Splitting a transaction into one phase for each store that it visits (MixT §5.3).
//!
//! Every statement of the flattened transaction belongs to one phase: an effect belongs to the
//! phase of its store, every other statement to the latest phase of the values that it depends on.
//! A phase keeps the parts of the program that it runs, and the values that it replays: a value
//! that an earlier phase recorded is inserted at the place where that phase computed it. Conditions
//! are such values too, so a loop or branch that spans phases takes the same path in each.
//!
//! - [`phases`]: the phase of each statement;
//! - [`keep`]: the parts that each phase keeps, records and replays;
//! - [`tree`]: the program of one phase, as a tree;
//! - [`schedule`]: the order within a block that needs the fewest round trips.
//!
//! # Departures
//!
//! MixT records every binding of a variable in one iterator. Here each assignment has its own
//! queue, so assignments of one variable may run in different phases. A value that depends on
//! parameters alone is computed again instead of recorded.

pub(crate) mod keep;
pub(crate) mod phases;
pub(crate) mod schedule;
pub(crate) mod tree;

pub use phases::Mode;

/// Parts of the splitter that a test can break, to check that the tests detect it.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mutation {
    /// Nothing is broken.
    #[default]
    None,
    /// A later phase does not replay the conditions of branches.
    ConditionNotReplayed,
    /// The assignments of a branch are not recorded.
    MergeNotRecorded,
    /// Later phases run on after a `return`.
    ReturnForgotten,
    /// Stores are visited in the order of their declarations, regardless of flows.
    OrderAsDeclared,
    /// A `require` runs in the last phase.
    RequireLate,
    /// Local statements run in the phase of their operands, regardless of the context.
    ContextIgnored,
    /// Reads move over writes to the same field.
    ReadsPassWrites,
    /// Statements over variables that a block assigns can move freely.
    VariablesPass,
    /// The first value that a loop recorded is replayed in every round.
    LoopReplaysFirst,
    /// Reads are not joined with the transaction's own writes.
    OverlayIgnored,
    /// A branch around an endorsement continues even if its condition has changed.
    AgreementIgnored,
    /// Every slot is taken for one that any phase can compute for itself.
    AllComputedAgain,
}
