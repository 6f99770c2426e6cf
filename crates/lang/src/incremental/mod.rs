//! Checks successive versions of one program, as an editor sends them.
//!
//! Each version's text and tree are read anew, and so are the names and types of all shared items.
//! That is a small part of the work; transactions cost the rest. The result for a transaction is
//! reused while its text and the text of every item that it names, directly or through others, are
//! unchanged. Places in a result are relative to these items, because tokens before them come and
//! go.
//!
//! Invariant: the diagnostics are those of [`crate::check()`], except that advice on flows has not
//! been tried yet: [`Incremental::advise`] tries it for the diagnostics that an editor asks about.

mod closure;
mod memo;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};

use mingle_model::Name;

use crate::check as names_and_types;
use crate::check::{Outcome, Used};
use crate::diagnostic::{Code, DIAGNOSTICS_MAX, Diagnostic, Diagnostics, Severity, allowed, m0701};
use crate::flow::Rules;
use crate::program::{check_once, flow_of};
use crate::split::Mutation;
use crate::syntax::ast::{Item, ItemKind};
use crate::syntax::{self, Source, Span, ast};
use crate::{advice, hir};
use closure::{Closures, is_transaction, name_of};
use memo::{Memo, Memos, Placed};

/// A version of a program.
#[derive(Clone, Debug, Default)]
pub struct Version {
    /// The text and its tokens.
    pub source: Source,
    /// The tree.
    pub syntax: ast::Program,
    /// True if parts of the text could not be read.
    pub is_broken: bool,
    /// The mistakes, in source order, with untried advice on flows.
    pub diagnostics: Vec<Diagnostic>,
    /// The number of diagnostics that were dropped.
    pub omitted: usize,
}

/// Checks the versions of one program.
///
/// # Examples
///
/// ```
/// let mut program = mingle_lang::incremental::Incremental::default();
/// let version = program.check("store s: causal; transaction t() { let x = ; }");
/// assert_eq!(version.diagnostics.len(), 1);
/// ```
#[derive(Debug, Default)]
pub struct Incremental {
    closures: Closures,
    memos: Memos,
    /// True if a shared item had a mistake in the previous version: flow analysis is then useless.
    shared_had_mistakes: bool,
}

impl Incremental {
    /// Checks the next version.
    ///
    /// # Panics
    ///
    /// When the text is longer than 4 GiB.
    pub fn check(&mut self, text: impl Into<String>) -> Version {
        self.check_source(syntax::lex(text))
    }

    /// Checks the next version of a program whose files [`crate::files::load`] has read.
    pub fn check_source(&mut self, source: Source) -> Version {
        let (mut syntax, mut parsed) = syntax::parse(&source);
        let is_broken = parsed.iter().any(|found| found.severity() == Severity::Error);
        parsed.extend(m0701::refusals(&source, &mut syntax));
        self.closures.update(&source, &syntax, is_broken);
        self.memos.next_version(syntax.items.len());
        let diagnostics = self.diagnostics(&mut syntax, is_broken, &parsed);
        if diagnostics.found().len() >= DIAGNOSTICS_MAX {
            // Errors beyond the limit are not searched for, so the result depends on the whole
            // program.
            let checked = check_once(source, Rules::default(), Mutation::None);
            let (source, syntax) = (checked.source, checked.syntax);
            let (diagnostics, omitted) = (checked.diagnostics, checked.omitted);
            return Version { source, syntax, is_broken, diagnostics, omitted };
        }
        let omitted = diagnostics.omitted;
        let diagnostics = allowed::apply(&syntax, diagnostics.into_sorted(), omitted == 0);
        Version { source, syntax, is_broken, diagnostics, omitted }
    }

    /// Tries the advice of some diagnostics of a version and keeps helpful advice, as
    /// [`crate::check()`] does.
    pub fn advise(&mut self, version: &Version, diagnostics: &mut [Diagnostic]) {
        let errors = |diagnostics: &[Diagnostic], omitted| {
            let errors = diagnostics.iter().filter(|found| found.severity() == Severity::Error);
            errors.count() + omitted
        };
        let before = errors(&version.diagnostics, version.omitted);
        advice::keep_what_helps(&version.source, diagnostics, before, |source| {
            let tried = self.check_source(source);
            errors(&tried.diagnostics, tried.omitted)
        });
    }

    fn diagnostics(
        &mut self,
        syntax: &mut ast::Program,
        is_broken: bool,
        parsed: &[Diagnostic],
    ) -> Diagnostics {
        let with_flow = !is_broken && !self.shared_had_mistakes;
        let checked = self.check_unknown(syntax, is_broken, with_flow, parsed);
        if !is_broken {
            self.shared_had_mistakes = !checked.shared_is_good;
        }
        if checked.shared_is_good && !with_flow {
            // Flow analysis now also runs for the transactions whose results lack it.
            let checked = self.check_unknown(syntax, is_broken, true, parsed);
            return self.joined(syntax, checked);
        }
        self.joined(syntax, checked)
    }

    /// Checks names and types of everything except transactions with a remembered result.
    fn check_unknown(
        &mut self,
        syntax: &mut ast::Program,
        is_broken: bool,
        with_flow: bool,
        parsed: &[Diagnostic],
    ) -> Checked {
        let twice = declared_twice(syntax);
        let keys: Vec<Option<closure::Key>> = (syntax.items.iter().enumerate())
            .map(|(index, item)| {
                let key = self.closures.key(index)?;
                (!transaction_name(item).is_some_and(|name| twice.contains(name))).then_some(key)
            })
            .collect();
        let is_known: Vec<bool> = keys
            .iter()
            .map(|key| key.is_some_and(|key| self.memos.find(key, with_flow).is_some()))
            .collect();
        let (known, mut part) = take_apart(std::mem::take(&mut syntax.items), &is_known);
        part.is_incomplete = syntax.is_incomplete;
        part.left_out = known.iter().filter_map(transaction_name).cloned().collect();
        let mut diagnostics = Diagnostics::default();
        for diagnostic in parsed {
            diagnostics.push_distinct(diagnostic.clone());
        }
        let (program, outcomes) = names_and_types::check(&part, &mut diagnostics);
        syntax.items = put_together(known, part.items, &is_known);
        let transactions: Vec<Span> = (syntax.items.iter())
            .filter(|item| is_transaction(item))
            .map(|item| item.span)
            .collect();
        let is_shared = |found: &Diagnostic| {
            let after = transactions.partition_point(|span| span.start <= found.span.start);
            after.checked_sub(1).is_none_or(|before| !transactions[before].contains(found.span))
        };
        let mistakes =
            diagnostics.found().iter().filter(|found| found.severity() == Severity::Error);
        let shared_is_good = !is_broken && !mistakes.into_iter().any(is_shared);
        Checked { keys, is_known, program, outcomes, diagnostics, shared_is_good }
    }

    /// Joins the new results with the remembered ones, runs flow analysis, and remembers its
    /// results.
    fn joined(&mut self, syntax: &ast::Program, checked: Checked) -> Diagnostics {
        let mut used: HashSet<Name> = HashSet::new();
        let mut later = Vec::new();
        let names = checked.program.transactions.iter().map(|transaction| &*transaction.name);
        let fresh: HashMap<&str, usize> = names.zip(0..).collect();
        for (index, item) in syntax.items.iter().enumerate() {
            let Some(name) = transaction_name(item) else { continue };
            if let (true, Some(key)) = (checked.is_known[index], checked.keys[index]) {
                let spans = self.spans(syntax, index);
                if let Some(memo) = self.memos.find(key, false) {
                    used.extend(memo.used.iter().cloned());
                    let flow = memo.flow.iter().flatten().filter(|_| checked.shared_is_good);
                    later.extend(memo.types.iter().chain(flow).map(|placed| placed.at(&spans)));
                }
            } else if let Some(at) = fresh.get(&**name) {
                let flow = checked.flow(*at);
                self.remember(syntax, index, &checked, *at, flow.as_deref());
                later.extend(flow.into_iter().flatten());
            }
        }
        let unused: HashSet<Span> = (syntax.items.iter())
            .filter(|item| name_of(item).is_some_and(|name| used.contains(name)))
            .filter_map(name_span)
            .collect();
        let mut joined = Diagnostics::default();
        for found in checked.diagnostics.into_found() {
            if found.code != Code::W0501 || !unused.contains(&found.span) {
                joined.push_distinct(found);
            }
        }
        for found in later {
            joined.push(found);
        }
        joined
    }

    /// Returns the spans of the items that a transaction's diagnostics may mention.
    fn spans(&self, syntax: &ast::Program, item: usize) -> Vec<Span> {
        self.closures.items(item).into_iter().map(|item| syntax.items[item].span).collect()
    }

    /// Remembers the results for a transaction without mistakes in names and types: diagnostics
    /// about such mistakes may depend on names anywhere.
    fn remember(
        &mut self,
        syntax: &ast::Program,
        item: usize,
        checked: &Checked,
        at: usize,
        flow: Option<&[Diagnostic]>,
    ) {
        let Some(key) = checked.keys[item] else { return };
        let span = syntax.items[item].span;
        let here = checked.diagnostics.found().iter().filter(|found| span.contains(found.span));
        let here: Vec<&Diagnostic> = here.collect();
        if here.iter().any(|found| found.severity() == Severity::Error) {
            return;
        }
        let spans = self.spans(syntax, item);
        let placed = |found: &Diagnostic| Placed::new(found.clone(), &spans);
        let types: Option<Vec<Placed>> = here.into_iter().map(placed).collect();
        let flow: Option<Option<Vec<Placed>>> = flow.map(|flow| flow.iter().map(placed).collect());
        let used = checked.outcomes[at].used.iter().map(|used| checked.name_of(*used)).collect();
        // A diagnostic may mention a place that the key does not cover; then nothing is remembered.
        if let (Some(types), Some(flow)) = (types, flow.map_or(Some(None), |flow| flow.map(Some))) {
            self.memos.insert(key, Memo { types, flow, used });
        }
    }
}

/// The result of checking a version.
struct Checked {
    /// The key of each item that is a transaction.
    keys: Vec<Option<closure::Key>>,
    /// For each item, true if it has a remembered result and was left out.
    is_known: Vec<bool>,
    /// The program of the other items.
    program: hir::Program,
    /// The outcome of each of its transactions.
    outcomes: Vec<Outcome>,
    diagnostics: Diagnostics,
    /// True if the shared items have no mistakes.
    shared_is_good: bool,
}

impl Checked {
    /// Returns the diagnostics of flow analysis for a transaction; none if it does not run.
    fn flow(&self, transaction: usize) -> Option<Vec<Diagnostic>> {
        if !self.outcomes[transaction].is_good || !self.shared_is_good {
            return None;
        }
        let mut found = Diagnostics::default();
        let transaction = &self.program.transactions[transaction];
        flow_of(&self.program, transaction, Rules::default(), &mut found);
        Some(found.into_found())
    }

    fn name_of(&self, used: Used) -> Name {
        match used {
            Used::Object(object) => self.program.objects[object.index()].declared.name.clone(),
            Used::Store(store) => self.program.stores[store.index()].name.clone(),
        }
    }
}

fn transaction_name(item: &Item) -> Option<&Name> {
    match &item.kind {
        ItemKind::Transaction(declared) => Some(&declared.name.name),
        _ => None,
    }
}

/// Returns the span of the name of an object or store.
fn name_span(item: &Item) -> Option<Span> {
    match &item.kind {
        ItemKind::Object(object) => Some(object.name.span),
        ItemKind::Store(store) => Some(store.name.span),
        _ => None,
    }
}

/// Returns the names that more than one transaction has.
fn declared_twice(syntax: &ast::Program) -> HashSet<Name> {
    let mut seen = HashSet::new();
    let names = syntax.items.iter().filter_map(transaction_name);
    names.filter(|name| !seen.insert(*name)).cloned().collect()
}

/// Splits the items into those with remembered results and a program of the others.
fn take_apart(items: Vec<Item>, is_known: &[bool]) -> (Vec<Item>, ast::Program) {
    let (known, items): (Vec<_>, Vec<_>) =
        items.into_iter().zip(is_known).partition(|(_, is_known)| **is_known);
    let plain = |items: Vec<(Item, &bool)>| items.into_iter().map(|(item, _)| item).collect();
    (plain(known), ast::Program { items: plain(items), ..ast::Program::default() })
}

/// Returns all items in their original order.
fn put_together(known: Vec<Item>, others: Vec<Item>, is_known: &[bool]) -> Vec<Item> {
    let (mut known, mut others) = (known.into_iter(), others.into_iter());
    let next = |is_known: &bool| if *is_known { known.next() } else { others.next() };
    is_known.iter().filter_map(next).collect()
}
