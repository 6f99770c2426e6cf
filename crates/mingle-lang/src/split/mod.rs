//! Splitting a transaction into one phase for each store that it visits (MixT §5.3).
//!
//! Every statement of the flattened transaction belongs to one phase: an effect to its store's,
//! everything else to the latest phase of what it depends on. A phase then keeps of the program
//! what it runs, and what it replays: a value that an earlier phase recorded, at the place where
//! that phase computed it. Conditions are such values too, so a loop or branch that spans phases
//! takes the same way in each.
//!
//! - [`phases`]: which phase each statement belongs to;
//! - [`keep`]: what each phase keeps, records and replays;
//! - [`tree`]: the program of one phase, as a tree;
//! - [`schedule`]: the order within a block that needs the fewest round trips.
//!
//! # Departures
//!
//! MixT records every binding of a variable in one iterator. Here each assignment has a queue of
//! its own, so that assignments of one variable may run in different phases; and what depends on
//! parameters alone is computed again instead of recorded.

pub(crate) mod keep;
pub(crate) mod phases;
pub(crate) mod schedule;
pub(crate) mod tree;

pub use phases::Mode;

/// Parts of the splitter that a test can break, to see that something notices.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mutation {
    /// Nothing is broken.
    #[default]
    None,
    /// A later phase does not replay the conditions of branches.
    ConditionNotReplayed,
    /// What a branch assigned is not recorded.
    MergeNotRecorded,
    /// Later phases run on after a `return`.
    ReturnForgotten,
    /// Stores are visited as declared, whatever flows.
    OrderAsDeclared,
    /// A `require` runs in the last phase.
    RequireLate,
    /// Local statements run in the phase of their operands, whatever the context.
    ContextIgnored,
    /// Reads move over writes to the same field.
    ReadsPassWrites,
    /// Statements over variables that a block assigns move freely.
    VariablesPass,
    /// The first value that a loop recorded is replayed in every round.
    LoopReplaysFirst,
    /// Reads are not joined with the transaction's own writes.
    OverlayIgnored,
    /// A branch around an endorsement goes on whether or not what decided it has changed.
    AgreementIgnored,
    /// Every slot is taken for one that any phase can compute for itself.
    AllComputedAgain,
}
