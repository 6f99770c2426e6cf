//! Names and types: from the syntax tree to the checked program.
//!
//! Every mistake is reported and what depends on it is left out in silence, so that one mistake
//! is one diagnostic.

mod bodies;
mod call;
mod constant;
mod create;
mod cycles;
mod expr;
mod items;
mod operators;
mod stmt;
mod types;

use std::collections::HashMap;

use mingle_model::{Name, Type};

use crate::diagnostic::Diagnostics;
use crate::hir::{FunctionId, ObjectId, Program, StoreId, Var, VarId};
use crate::names::Record;
use crate::syntax::{Span, ast};

pub(crate) use call::operations;

/// Checks names and types. The program that comes back is complete only if no diagnostic is an
/// error.
///
/// Gives the program, and for each transaction what came of it.
pub(crate) fn check(
    tree: &ast::Program,
    is_broken: bool,
    diagnostics: &mut Diagnostics,
) -> (Program, Vec<Outcome>) {
    let (program, outcomes, _) = check_with(tree, is_broken, None, diagnostics);
    (program, outcomes)
}

/// As [`check`], and notes which name stands for what.
pub(crate) fn check_recording(
    tree: &ast::Program,
    is_broken: bool,
    diagnostics: &mut Diagnostics,
) -> (Program, Vec<Outcome>, Record) {
    let record = Some(Record::default());
    let (program, outcomes, record) = check_with(tree, is_broken, record, diagnostics);
    (program, outcomes, record.unwrap_or_default())
}

fn check_with(
    tree: &ast::Program,
    is_broken: bool,
    record: Option<Record>,
    diagnostics: &mut Diagnostics,
) -> (Program, Vec<Outcome>, Option<Record>) {
    diagnostics.only_certain = is_broken;
    let mut checker = Checker {
        tree,
        program: Program::default(),
        names: HashMap::new(),
        function_uses: Vec::new(),
        object_used: Vec::new(),
        store_used: Vec::new(),
        used_here: Vec::new(),
        record,
        diagnostics,
    };
    checker.items();
    checker.functions();
    let items_are_good = !checker.diagnostics.has_errors();
    let mut outcomes = checker.transactions();
    checker.unused_items();
    for outcome in &mut outcomes {
        outcome.is_good &= items_are_good;
    }
    (checker.program, outcomes, checker.record)
}

/// What came of a transaction.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    /// Whether it is free of errors; none is if an item that all share has one.
    pub(crate) is_good: bool,
    /// The objects and stores that it uses, with repeats.
    pub(crate) used: Vec<Used>,
}

/// What a transaction uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Used {
    Object(ObjectId),
    Store(StoreId),
}

/// What a name of the shared namespace stands for.
#[derive(Clone, Copy, Debug)]
enum Named {
    Store(StoreId),
    Object(ObjectId),
    Struct,
    Function(FunctionId),
}

/// The place of constants, where only reads may stand, and not even those.
const DEFAULT: &str = "in a default";

/// A variable's place in the scopes of a body.
struct Scope {
    names: HashMap<Name, VarId>,
}

struct Checker<'a> {
    tree: &'a ast::Program,
    program: Program,
    names: HashMap<Name, (Named, Span)>,
    /// For each function, those that it calls and where.
    function_uses: Vec<Vec<(FunctionId, Span)>>,
    object_used: Vec<bool>,
    store_used: Vec<bool>,
    /// What was used since a transaction began, with repeats.
    used_here: Vec<Used>,
    /// What is noted for editors.
    record: Option<Record>,
    diagnostics: &'a mut Diagnostics,
}

/// The body that is being checked.
struct Body {
    vars: Vec<Var>,
    used: Vec<bool>,
    /// Why a variable is not a `var`: the span of its `let`, or none if it is bound otherwise.
    let_spans: Vec<Option<Span>>,
    scopes: Vec<Scope>,
    /// Where only reads may stand, and what place that is.
    reads_only: Option<&'static str>,
    /// The function that this is the body of.
    function: Option<FunctionId>,
    result: Option<Type>,
    has_result: bool,
    loops: Vec<Span>,
    unique_sites: u32,
}

impl Body {
    fn new(function: Option<FunctionId>) -> Self {
        Self {
            vars: Vec::new(),
            used: Vec::new(),
            let_spans: Vec::new(),
            scopes: Vec::new(),
            reads_only: function.map(|_| "in a function"),
            function,
            result: None,
            has_result: false,
            loops: Vec::new(),
            unique_sites: 0,
        }
    }

    fn open(&mut self) {
        self.scopes.push(Scope { names: HashMap::new() });
    }

    fn close(&mut self) {
        self.scopes.pop();
    }

    fn find(&self, name: &str) -> Option<VarId> {
        self.scopes.iter().rev().find_map(|scope| scope.names.get(name).copied())
    }

    fn visible_names(&self) -> impl Iterator<Item = &str> {
        self.scopes.iter().flat_map(|scope| scope.names.keys().map(|name| &**name))
    }
}
