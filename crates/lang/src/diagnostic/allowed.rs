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
    for item in &tree.items {
        add(&mut allowed, &item.allows, item.span);
        if let ItemKind::Transaction(transaction) = &item.kind {
            in_block(&mut allowed, &transaction.body);
        }
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

fn add<'a>(allowed: &mut Vec<Allowed<'a>>, allows: &'a [Allow], within: Span) {
    for code in allows.iter().flat_map(|allow| &allow.codes) {
        // The parser has reported other codes.
        if Code::find(&code.name).is_some_and(|code| code.severity() == Severity::Warning) {
            let (code, at) = (&*code.name, code.span);
            allowed.push(Allowed { code, at, within, has_effect: false });
        }
    }
}

fn in_block<'a>(allowed: &mut Vec<Allowed<'a>>, block: &'a Block) {
    for statement in &block.statements {
        add(allowed, &statement.allows, statement.span);
        match &statement.kind {
            StmtKind::If(branch) => in_if(allowed, branch),
            StmtKind::While { body, .. } | StmtKind::For { body, .. } => in_block(allowed, body),
            StmtKind::Match { some_block, none_block, .. } => {
                in_block(allowed, some_block);
                in_block(allowed, none_block);
            }
            StmtKind::MatchAnswer { arms, .. } => {
                for arm in arms {
                    in_block(allowed, &arm.block);
                }
            }
            _ => {}
        }
    }
}

fn in_if<'a>(allowed: &mut Vec<Allowed<'a>>, branch: &'a If) {
    in_block(allowed, &branch.then_block);
    match &branch.else_branch {
        Some(Else::Block(block)) => in_block(allowed, block),
        Some(Else::If(inner, _)) => in_if(allowed, inner),
        None => {}
    }
}
