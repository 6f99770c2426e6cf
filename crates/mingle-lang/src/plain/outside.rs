//! What a plain run takes from outside of the program: the operations of stores, and endorsed
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

/// How endorsements are understood.
#[derive(Debug, Default)]
pub enum Endorsed<'a> {
    /// An endorsement has the value of its expression where it stands.
    #[default]
    InPlace,
    /// The run is only about the values of endorsements: it notes them, writes nothing, and goes on
    /// behind a `return` and where it would abort.
    Early(&'a mut EndorsedValues),
    /// An endorsement has the value that was noted early; those without effect are in place.
    Given {
        /// What was noted.
        values: &'a EndorsedValues,
        /// The endorsements without effect.
        needless: &'a [Span],
    },
}

/// What a plain run takes from outside of the program.
#[derive(Default)]
pub struct Outside<'a> {
    /// The operations of stores; none where a program that calls them aborts.
    pub operations: Option<Operations<'a>>,
    /// How endorsements are understood.
    pub endorsed: Endorsed<'a>,
}
