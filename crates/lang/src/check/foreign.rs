//! Calls that other languages have: each is reported with the way to write it here.

use mingle_model::Type;

use super::call::BUILTINS;
use super::operators::is_shown;
use super::{Body, Checker};
use crate::diagnostic::m0204::{self, Unfit};
use crate::diagnostic::{Edit, alias, m0101};
use crate::hir::Expr;
use crate::syntax::Span;
use crate::syntax::ast::{self, Ident};

impl Checker<'_> {
    pub(super) fn unknown_function(&mut self, name: &Ident, span: Span, args: &[ast::Expr]) {
        if self.is_transaction(&name.name) {
            let unfit = Unfit::Transaction { name: name.name.to_string() };
            self.diagnostics.push(m0204::render(unfit, name.span));
            return;
        }
        let functions = self.program.functions.iter().map(|function| &*function.name);
        let near = self.diagnostics.near_miss(&name.name, functions.chain(BUILTINS));
        let found = match (alias::function(&name.name), &*name.name, args) {
            (Some(means), ..) => m0101::render_alias("function", &name.name, name.span, means),
            (None, "len" | "length" | "size" | "count", [of]) => {
                let edits = vec![
                    Edit {
                        span: Span { start: span.start, end: of.span.start },
                        text: String::new(),
                    },
                    Edit {
                        span: Span { start: of.span.end, end: span.end },
                        text: ".size()".into(),
                    },
                ];
                m0101::render("function", &name.name, name.span, None)
                    .with_help("`size` is an operation", edits)
            }
            (None, "print" | "println" | "printf" | "echo" | "puts" | "log", _) => {
                m0101::render("function", &name.name, name.span, None)
                    .with_note("a program prints nothing: return the value")
            }
            (None, ..) => m0101::render("function", &name.name, name.span, near),
        };
        self.diagnostics.push(found);
    }

    /// True if the program declares a transaction of this name.
    fn is_transaction(&self, name: &str) -> bool {
        let declares = |item: &ast::Item| match &item.kind {
            ast::ItemKind::Transaction(declared) => &*declared.name.name == name,
            _ => false,
        };
        self.tree.items.iter().any(declares)
            || self.tree.left_out.iter().any(|left_out| &**left_out == name)
    }

    /// Reports an object that is called like a function, or asked for an object by its key.
    pub(super) fn object_called(&mut self, object: &Ident, span: Span, args: &[ast::Expr]) {
        let edits = match args {
            [key] => vec![
                Edit {
                    span: Span { start: object.span.end, end: key.span.start },
                    text: "[".into(),
                },
                Edit { span: Span { start: key.span.end, end: span.end }, text: "]".into() },
            ],
            _ => Vec::new(),
        };
        let unfit = Unfit::Object { name: object.name.to_string(), edits };
        self.diagnostics.push(m0204::render(unfit, span));
    }

    /// Reports `Order.get(key)`, where `Order` is an object.
    pub(super) fn method_of_object(
        &mut self,
        body: &mut Body,
        span: Span,
        object: &ast::Expr,
        args: &[ast::Expr],
    ) -> bool {
        let ast::ExprKind::Name(of) = &object.kind else { return false };
        if body.find(of).is_some() || self.object_of(of).is_none() {
            return false;
        }
        let ident = Ident { name: of.clone(), span: object.span };
        self.object_called(&ident, span, args);
        self.quietly(body, args);
        true
    }

    /// Reports an operation of other languages that is a function or an operator here.
    pub(super) fn foreign_method(
        &mut self,
        span: Span,
        object: &ast::Expr,
        receiver: &Expr,
        name: &Ident,
    ) -> bool {
        let (before, after) = match (&receiver.value_type, &*name.name) {
            (found, "to_string" | "toString" | "str" | "String")
                if *found == Type::String || is_shown(found) =>
            {
                ("string(", ")")
            }
            (Type::Option(_), "is_none" | "isNone" | "is_empty" | "isEmpty") => ("!", ".is_some()"),
            (Type::List(_) | Type::String | Type::Bytes, "is_empty" | "isEmpty") => {
                ("", ".size() == 0")
            }
            _ => return false,
        };
        let edits = vec![
            Edit { span: object.span, text: format!("{before}{{text}}") },
            Edit { span: Span { start: object.span.end, end: span.end }, text: after.into() },
        ];
        let unfit = Unfit::Written { name: name.name.to_string(), edits };
        self.diagnostics.push(m0204::render(unfit, name.span));
        true
    }
}
