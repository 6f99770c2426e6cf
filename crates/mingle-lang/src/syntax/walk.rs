//! Visiting every expression of a syntax tree.

use super::ast::{Block, Else, Expr, ExprKind, If, ItemKind, Program, StmtKind};

/// Calls `visit` for every expression, those within others included, outer ones first.
pub fn each_expr(program: &Program, visit: &mut impl FnMut(&Expr)) {
    for item in &program.items {
        match &item.kind {
            ItemKind::Level { .. } | ItemKind::Store(_) | ItemKind::Struct(_) => {}
            ItemKind::Object(object) => {
                let defaults = object
                    .fields
                    .iter()
                    .filter_map(|field| field.default.as_ref());
                defaults.for_each(|default| expr(default, visit));
            }
            ItemKind::Function(function) => {
                function
                    .lets
                    .iter()
                    .for_each(|binding| expr(&binding.value, visit));
                expr(&function.body, visit);
            }
            ItemKind::Transaction(transaction) => block(&transaction.body, visit),
        }
    }
}

fn block(outer: &Block, visit: &mut impl FnMut(&Expr)) {
    for statement in &outer.statements {
        match &statement.kind {
            StmtKind::Let(binding) => expr(&binding.value, visit),
            StmtKind::Assign { place, value, .. } => {
                expr(place, visit);
                expr(value, visit);
            }
            StmtKind::If(inner) => if_statement(inner, visit),
            StmtKind::While { condition, body } => {
                expr(condition, visit);
                block(body, visit);
            }
            StmtKind::For { iterated, body, .. } => {
                expr(iterated, visit);
                block(body, visit);
            }
            StmtKind::Match {
                scrutinee,
                some_block,
                none_block,
                ..
            } => {
                expr(scrutinee, visit);
                block(some_block, visit);
                block(none_block, visit);
            }
            StmtKind::Require {
                condition, message, ..
            } => {
                expr(condition, visit);
                expr(message, visit);
            }
            StmtKind::Return(value) => value.iter().for_each(|value| expr(value, visit)),
            StmtKind::Expr(value) => expr(value, visit),
            StmtKind::Error => {}
        }
    }
}

fn if_statement(outer: &If, visit: &mut impl FnMut(&Expr)) {
    expr(&outer.condition, visit);
    block(&outer.then_block, visit);
    match &outer.else_branch {
        Some(Else::Block(inner)) => block(inner, visit),
        Some(Else::If(inner, _)) => if_statement(inner, visit),
        None => {}
    }
}

fn expr(outer: &Expr, visit: &mut impl FnMut(&Expr)) {
    visit(outer);
    for part in parts(&outer.kind) {
        expr(part, visit);
    }
}

/// The expressions that one consists of, in source order.
pub fn parts(kind: &ExprKind) -> Vec<&Expr> {
    match kind {
        ExprKind::Bool(_)
        | ExprKind::Int(_)
        | ExprKind::Float(_)
        | ExprKind::String(_)
        | ExprKind::Bytes(_)
        | ExprKind::Name(_)
        | ExprKind::None
        | ExprKind::Error => Vec::new(),
        ExprKind::Field(inner, _)
        | ExprKind::Index(_, inner)
        | ExprKind::Some(inner)
        | ExprKind::Not(inner)
        | ExprKind::Negate(inner)
        | ExprKind::Paren(inner)
        | ExprKind::Endorse { value: inner, .. } => vec![inner],
        ExprKind::Method(receiver, _, args) => {
            std::iter::once(&**receiver).chain(args.iter()).collect()
        }
        ExprKind::Create { inits, .. } | ExprKind::Struct(_, inits) => {
            inits.iter().map(|init| &init.value).collect()
        }
        ExprKind::List(items) | ExprKind::Call(_, items) => items.iter().collect(),
        ExprKind::Binary(_, left, right) => vec![left, right],
        ExprKind::If(condition, then, otherwise) => vec![condition, then, otherwise],
    }
}
