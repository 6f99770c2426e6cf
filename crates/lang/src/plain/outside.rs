//! The inputs of a plain run from outside of the program: the operations of stores, and endorsed
//! values that were read before.

use std::collections::BTreeMap;

use mingle_model::Value;

use super::State;
use crate::hir::StoreId;
use crate::syntax::Span;

/// Endorsed values, by the endorsement and the rounds of the loops around it.
pub type EndorsedValues = BTreeMap<(Span, Vec<u64>), Value>;

/// The operations of stores: the state, the store, the index of its operation, the arguments.
pub type Operations<'a> = &'a dyn Fn(&mut State, StoreId, u32, &[Value]) -> Option<Value>;

/// The treatment of endorsements.
#[derive(Debug, Default)]
pub enum Endorsed<'a> {
    /// An endorsement has the value of its expression where it stands.
    #[default]
    InPlace,
    /// The run only records the values of endorsements: it writes nothing, and continues after a
    /// `return` and after a condition for aborting.
    Early(&'a mut EndorsedValues),
    /// An endorsement has the value recorded early; those without effect are evaluated in place.
    Given {
        /// The recorded values.
        values: &'a EndorsedValues,
        /// The endorsements without effect.
        needless: &'a [Span],
    },
}

/// The inputs of a plain run from outside of the program.
#[derive(Default)]
pub struct Outside<'a> {
    /// The operations of stores; if none, a program that calls one aborts.
    pub operations: Option<Operations<'a>>,
    /// The treatment of endorsements.
    pub endorsed: Endorsed<'a>,
    /// The levels of answers; if none, every answer is of its store's level.
    pub answered: Option<super::Answered<'a>>,
}
