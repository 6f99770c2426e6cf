//! The entry points of the compiler.

use std::sync::Arc;

use mingle_model::Name;

use crate::code::{self, Plan, Program};
use crate::diagnostic::{Diagnostic, Diagnostics, Severity, allowed, m0204, m0701};
use crate::flow::Rules;
use crate::split::Mutation;
use crate::syntax::{self, Source, Span, ast};
use crate::{advice, check as names_and_types, flat, flow, hir};

/// A program, as far as the compiler could read it, and its mistakes.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The text and its tokens.
    pub source: Source,
    /// The tree.
    pub syntax: ast::Program,
    /// The checked and split program; none if there are errors. Its places are those of its own
    /// text, which differs from `source` if the program has several files.
    pub program: Option<Program>,
    /// The mistakes, in source order.
    pub diagnostics: Vec<Diagnostic>,
    /// The number of diagnostics that were dropped.
    pub omitted: usize,
    /// Its endorsements, in source order.
    pub endorsements: Vec<EndorsementInfo>,
}

impl Checked {
    /// True if any diagnostic is an error.
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(|diagnostic| diagnostic.severity() == Severity::Error)
    }
}

impl Checked {
    /// Returns the number of errors, including those not shown.
    fn error_count(&self) -> usize {
        let shown = self.diagnostics.iter().filter(|shown| shown.severity() == Severity::Error);
        shown.count() + self.omitted
    }
}

/// An endorsement in a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndorsementInfo {
    /// Its span.
    pub span: Span,
    /// The level that the value gets.
    pub level: Name,
    /// The reason.
    pub reason: Name,
}

/// Reads and checks a program of one text. It has no folder, and so its imports are refused: see
/// [`crate::files::load`] and [`check_source`] for programs of several files.
///
/// # Examples
///
/// ```
/// let checked = mingle_lang::check("store accounts: strong;");
/// assert!(checked.diagnostics.iter().any(|found| found.title == "no level is called `strong`"));
/// assert!(checked.program.is_none());
/// ```
pub fn check(text: impl Into<String>) -> Checked {
    check_with(text, Rules::default(), Mutation::None)
}

/// Checks a program whose files [`crate::files::load`] has read.
pub fn check_source(source: Source) -> Checked {
    checked_with(source, Rules::default(), Mutation::None)
}

/// Like [`check`], with parts of the compiler broken: tests use it to see that such a fault is
/// found.
#[doc(hidden)]
pub fn check_with(text: impl Into<String>, rules: Rules, mutation: Mutation) -> Checked {
    checked_with(syntax::lex(text), rules, mutation)
}

fn checked_with(source: Source, rules: Rules, mutation: Mutation) -> Checked {
    let mut checked = check_once(source, rules, mutation);
    let errors = checked.error_count();
    let count = |source: Source| check_once(source, rules, Mutation::None).error_count();
    advice::keep_what_helps(&checked.source, &mut checked.diagnostics, errors, count);
    checked
}

/// Checks a program without trying the advice.
pub(crate) fn check_once(source: Source, rules: Rules, mutation: Mutation) -> Checked {
    let (mut tree, found) = syntax::parse(&source);
    let mut diagnostics = Diagnostics::default();
    for diagnostic in found {
        diagnostics.push_distinct(diagnostic);
    }
    let is_broken = diagnostics.has_errors();
    for diagnostic in m0701::refusals(&source, &mut tree) {
        diagnostics.push_distinct(diagnostic);
    }
    let (program, outcomes) = names_and_types::check(&tree, &mut diagnostics);
    let mut endorsements = Vec::new();
    let mut plans = Vec::new();
    if !is_broken {
        for (transaction, outcome) in program.transactions.iter().zip(outcomes) {
            if outcome.is_good {
                let plan = split(
                    &program,
                    transaction,
                    rules,
                    mutation,
                    &mut endorsements,
                    &mut diagnostics,
                );
                plans.extend(plan.map(Arc::new));
            }
        }
    }
    endorsements.sort_by_key(|endorsement: &EndorsementInfo| endorsement.span);
    let program = if diagnostics.has_errors() {
        None
    } else if source.files.is_empty() {
        let text = source.text.as_str().into();
        Some(Program { text, checked: Arc::new(program), plans })
    } else {
        // The program that runs is the one whose text is stored and sent, places included.
        check_once(syntax::lex(source.joined_text()), rules, mutation).program
    };
    let omitted = diagnostics.omitted;
    let diagnostics = allowed::apply(&tree, diagnostics.into_sorted(), omitted == 0);
    Checked { source, syntax: tree, program, diagnostics, omitted, endorsements }
}

/// Checks the flow of a transaction, and splits it if that is sound.
fn split(
    program: &hir::Program,
    transaction: &hir::Transaction,
    rules: Rules,
    mutation: Mutation,
    endorsements: &mut Vec<EndorsementInfo>,
    diagnostics: &mut Diagnostics,
) -> Option<Plan> {
    let (flat, flow) = flow_of(program, transaction, rules, diagnostics)?;
    endorsements.extend(flat.endorsements.iter().map(|endorsement| EndorsementInfo {
        span: endorsement.span,
        level: program.levels.name(endorsement.level).clone(),
        reason: endorsement.reason.clone(),
    }));
    flow.map(|flow| code::plan(program, transaction, flat, &flow, mutation))
}

/// Flattens a transaction and checks its flow. The flow is none if it breaks a rule; the whole
/// result is none if it is too large.
pub(crate) fn flow_of(
    program: &hir::Program,
    transaction: &hir::Transaction,
    rules: Rules,
    diagnostics: &mut Diagnostics,
) -> Option<(flat::Flat, Option<flow::Flow>)> {
    let Some(flat) = flow::flatten(program, transaction, rules) else {
        let unfit =
            m0204::Unfit::TooLarge { name: transaction.name.to_string(), limit: flat::INLINED_MAX };
        diagnostics.push(m0204::render(unfit, transaction.span));
        return None;
    };
    let errors = diagnostics.errors;
    let (flat, flow) = flow::analyse(program, transaction, flat, rules, diagnostics);
    let is_sound = diagnostics.errors == errors;
    Some((flat, is_sound.then_some(flow)))
}
