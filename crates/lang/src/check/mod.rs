//! Names and types: from the syntax tree to the checked program.
//!
//! Every mistake is reported once: parts that depend on a mistake are skipped without a report.

mod answers;
mod bodies;
mod bounded;
mod call;
mod constant;
mod convert;
mod create;
mod cycles;
mod draws;
mod enums;
mod expr;
mod fields;
mod foreign;
mod indexes;
mod items;
mod methods;
mod operators;
mod stmt;
mod types;

use std::collections::{HashMap, HashSet};

use mingle_model::{Name, Type};

use crate::diagnostic::Diagnostics;
use crate::hir::{FunctionId, ObjectId, Program, StoreId, Var, VarId};
use crate::names::Record;
use crate::syntax::{Span, ast};

pub(crate) use methods::operations;

/// Checks names and types. The returned program is complete only if no diagnostic is an error.
///
/// Returns the program and the outcome for each transaction.
pub(crate) fn check(tree: &ast::Program, diagnostics: &mut Diagnostics) -> (Program, Vec<Outcome>) {
    let (program, outcomes, _) = check_with(tree, None, diagnostics);
    (program, outcomes)
}

/// Like [`check`], and also records which declaration each name refers to.
pub(crate) fn check_recording(
    tree: &ast::Program,
    diagnostics: &mut Diagnostics,
) -> (Program, Vec<Outcome>, Record) {
    let record = Some(Record::default());
    let (program, outcomes, record) = check_with(tree, record, diagnostics);
    (program, outcomes, record.unwrap_or_default())
}

fn check_with(
    tree: &ast::Program,
    record: Option<Record>,
    diagnostics: &mut Diagnostics,
) -> (Program, Vec<Outcome>, Option<Record>) {
    diagnostics.only_certain = tree.is_incomplete;
    diagnostics.no_warnings = diagnostics.has_errors();
    let mut checker = Checker {
        tree,
        program: Program::default(),
        names: HashMap::new(),
        function_uses: Vec::new(),
        object_used: Vec::new(),
        store_used: Vec::new(),
        used_here: Vec::new(),
        broken_fields: HashSet::new(),
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

/// The outcome of checking a transaction.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    /// True if it is free of errors; false for every transaction if a shared item has an error.
    pub(crate) is_good: bool,
    /// The objects and stores that it uses, with repeats.
    pub(crate) used: Vec<Used>,
}

/// An item that a transaction uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Used {
    Object(ObjectId),
    Store(StoreId),
}

/// The meaning of a name in the shared namespace.
#[derive(Clone, Copy, Debug)]
enum Named {
    Store(StoreId),
    Object(ObjectId),
    Struct,
    /// An enumeration: index into the program's.
    Enum(usize),
    Function(FunctionId),
}

impl Named {
    /// Returns the kind of thing that the name stands for, with its article.
    fn what(self) -> &'static str {
        match self {
            Self::Store(_) => "a store",
            Self::Object(_) => "an object",
            Self::Struct => "a struct",
            Self::Enum(_) => "an enum",
            Self::Function(_) => "a function",
        }
    }
}

/// The description of a default: its expression is constant, so it may neither write nor read.
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
    /// The uses since the current transaction began, with repeats.
    used_here: Vec<Used>,
    /// Fields and operations whose types have a mistake, with their objects, structs or stores.
    broken_fields: HashSet<(Name, Name)>,
    /// The names recorded for editors.
    record: Option<Record>,
    diagnostics: &'a mut Diagnostics,
}

/// The body being checked.
struct Body {
    vars: Vec<Var>,
    used: Vec<bool>,
    /// Why a variable is not a `var`: the span of its `let`, or none if it is bound otherwise.
    let_spans: Vec<Option<Span>>,
    scopes: Vec<Scope>,
    /// The description of the current place, if only reads may stand there.
    reads_only: Option<&'static str>,
    /// The call that may take from a bounded counter: it is the whole value or condition of a statement.
    effect: Option<Span>,
    /// The function of this body; none for a transaction.
    function: Option<FunctionId>,
    /// The stores of the answers that variables hold.
    answers: HashMap<VarId, StoreId>,
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
            effect: None,
            function,
            answers: HashMap::new(),
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
