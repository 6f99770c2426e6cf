//! The variables visible at a place.

use crate::syntax::Span;
use crate::syntax::ast::{self, Block, Else, Ident, ItemKind, Stmt, StmtKind};

/// Returns the variables that can be named just before a token, the innermost last: the variables
/// declared earlier in the surrounding function or transaction.
///
/// # Examples
///
/// ```
/// use mingle_lang::names::visible;
/// use mingle_lang::syntax::{lex, parse};
///
/// let source = lex("transaction t(a: int) { let b = a; let c = b; }");
/// let (tree, _) = parse(&source);
/// let names = visible(&tree, 13);
/// assert_eq!(names.iter().map(|name| &*name.name).collect::<Vec<_>>(), ["a", "b"]);
/// ```
pub fn visible(tree: &ast::Program, token: u32) -> Vec<&Ident> {
    let mut names = Vec::new();
    for item in &tree.items {
        match &item.kind {
            ItemKind::Function(function) if within(function.body_span, token) => {
                names.extend(function.params.iter().map(|param| &param.name));
                let before = function.lets.iter().filter(|binding| binding.span.end <= token);
                names.extend(before.map(|binding| &binding.name));
            }
            ItemKind::Transaction(declared) if within(declared.body.span, token) => {
                names.extend(declared.params.iter().map(|param| &param.name));
                block(&declared.body, token, &mut names);
            }
            _ => {}
        }
    }
    names
}

fn within(span: Span, token: u32) -> bool {
    span.start < token && token <= span.end
}

fn block<'a>(inner: &'a Block, token: u32, names: &mut Vec<&'a Ident>) {
    if !within(inner.span, token) {
        return;
    }
    for statement in &inner.statements {
        if statement.span.start >= token {
            return;
        }
        self::statement(statement, token, names);
    }
}

fn statement<'a>(statement: &'a Stmt, token: u32, names: &mut Vec<&'a Ident>) {
    match &statement.kind {
        StmtKind::Let(binding) if binding.span.end <= token => names.push(&binding.name),
        StmtKind::If(branch) => branches(branch, token, names),
        StmtKind::While { body, .. } => block(body, token, names),
        StmtKind::For { first, second, body, .. } if within(body.span, token) => {
            names.push(first);
            names.extend(second);
            block(body, token, names);
        }
        StmtKind::Match { some_name, some_block, none_block, .. } => {
            if within(some_block.span, token) {
                names.push(some_name);
            }
            block(some_block, token, names);
            block(none_block, token, names);
        }
        StmtKind::MatchAnswer { arms, .. } => {
            for arm in arms {
                if within(arm.block.span, token) {
                    names.extend(&arm.name);
                }
                block(&arm.block, token, names);
            }
        }
        _ => {}
    }
}

fn branches<'a>(branch: &'a ast::If, token: u32, names: &mut Vec<&'a Ident>) {
    block(&branch.then_block, token, names);
    match &branch.else_branch {
        Some(Else::Block(inner)) => block(inner, token, names),
        Some(Else::If(inner, _)) => branches(inner, token, names),
        None => {}
    }
}
