//! Warnings that the program allows at a place, with a reason.

use super::{Code, Diagnostic, Severity, w0504};
use crate::syntax::Span;
use crate::syntax::ast::{Allow, Block, Else, If, ItemKind, Program, StmtKind};

/// A code that is allowed in a part of the program.
struct Allowed<'a> {
    code: &'a str,
    /// The place of the code.
    at: Span,
    /// The part of the program.
    within: Span,
    has_effect: bool,
}

/// Leaves out the warnings that are allowed where they stand, and adds a warning for each code that
/// is allowed without effect. `is_whole` is true if no diagnostic is missing from the list.
pub(crate) fn apply(
    tree: &Program,
    mut diagnostics: Vec<Diagnostic>,
    is_whole: bool,
) -> Vec<Diagnostic> {
    let mut allowed = Vec::new();
    for (allows, within) in parts(tree) {
        add(&mut allowed, allows, within);
    }
    if allowed.is_empty() {
        return diagnostics;
    }
    diagnostics.retain(|found| {
        // The innermost part comes last.
        let innermost = allowed.iter_mut().rev().find(|allowed| {
            allowed.code == found.code.text() && allowed.within.contains(found.span)
        });
        innermost.is_none_or(|allowed| {
            allowed.has_effect = true;
            false
        })
    });
    let has_errors = diagnostics.iter().any(|found| found.severity() == Severity::Error);
    if is_whole && !has_errors {
        let idle = allowed.iter().filter(|allowed| !allowed.has_effect);
        diagnostics.extend(idle.map(|allowed| w0504::render(allowed.code, allowed.at)));
        diagnostics.sort_by_key(|found| (found.span.start, found.span.end));
    }
    diagnostics
}

/// Returns the innermost statement or item around a span: `allow` stands before it.
///
/// # Examples
///
/// ```
/// use mingle_lang::diagnostic::allowing;
/// use mingle_lang::incremental::Incremental;
///
/// let text = "store s: causal; object O in s { key id: int; } transaction t(o: ref O) { let x = 1; }";
/// let version = Incremental::default().check(text);
/// let unused = version.diagnostics.iter().find(|found| found.code.text() == "W0501");
/// let place = allowing(&version.syntax, unused.expect("`o` is not used").span);
/// assert!(place.is_some());
/// ```
pub fn allowing(tree: &Program, span: Span) -> Option<Span> {
    parts(tree).into_iter().rev().map(|(_, within)| within).find(|within| within.contains(span))
}

/// The warnings that are allowed in a part of the program, and the part.
type Part<'a> = (&'a [Allow], Span);

/// Returns all items and statements; each comes after those that contain it.
fn parts(tree: &Program) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    for item in &tree.items {
        parts.push((&*item.allows, item.span));
        if let ItemKind::Transaction(transaction) = &item.kind {
            in_block(&mut parts, &transaction.body);
        }
    }
    parts
}

fn add<'a>(allowed: &mut Vec<Allowed<'a>>, allows: &'a [Allow], within: Span) {
    for code in allows.iter().flat_map(|allow| &allow.codes) {
        // The parser has reported other codes.
        if Code::find(&code.name).is_some_and(|code| code.severity() == Severity::Warning) {
            let (code, at) = (&*code.name, code.span);
            allowed.push(Allowed { code, at, within, has_effect: false });
        }
    }
}

fn in_block<'a>(parts: &mut Vec<Part<'a>>, block: &'a Block) {
    for statement in &block.statements {
        parts.push((&*statement.allows, statement.span));
        match &statement.kind {
            StmtKind::If(branch) => in_if(parts, branch),
            StmtKind::While { body, .. } | StmtKind::For { body, .. } => in_block(parts, body),
            StmtKind::Match { some_block, none_block, .. } => {
                in_block(parts, some_block);
                in_block(parts, none_block);
            }
            StmtKind::MatchAnswer { arms, .. } => {
                for arm in arms {
                    in_block(parts, &arm.block);
                }
            }
            _ => {}
        }
    }
}

fn in_if<'a>(parts: &mut Vec<Part<'a>>, branch: &'a If) {
    in_block(parts, &branch.then_block);
    match &branch.else_branch {
        Some(Else::Block(block)) => in_block(parts, block),
        Some(Else::If(inner, _)) => in_if(parts, inner),
        None => {}
    }
}
