//! Expressions and types.

use super::Formatter;
use super::doc::Doc;
use crate::syntax::ast::{BinaryOp, Expr, ExprKind, Ident, Init, TypeExpr, TypeKind};

impl Formatter<'_> {
    /// Formats a name, with the comments before it.
    pub(super) fn ident(&mut self, ident: &Ident, docs: &mut Vec<Doc>) {
        docs.extend(self.comments(ident.span.start));
        docs.push(Doc::text(&*ident.name));
    }

    pub(super) fn type_expr(&mut self, written: &TypeExpr, docs: &mut Vec<Doc>) {
        docs.extend(self.comments(written.span.start));
        match &written.kind {
            TypeKind::Named(name) => docs.push(Doc::text(&**name)),
            TypeKind::Counter(bounds) => docs.push(Doc::text(bounds.to_string())),
            TypeKind::Ref(object) => {
                docs.extend([Doc::text("ref"), Doc::Space]);
                self.ident(object, docs);
            }
            TypeKind::Option(inner) => self.type_arguments("option", &[inner], docs),
            TypeKind::List(inner) => self.type_arguments("list", &[inner], docs),
            TypeKind::Set(inner) => self.type_arguments("set", &[inner], docs),
            TypeKind::Log(inner) => self.type_arguments("log", &[inner], docs),
            TypeKind::Rushed(inner) => self.type_arguments("rushed", &[inner], docs),
            TypeKind::Map(key, value) => self.type_arguments("map", &[key, value], docs),
            TypeKind::Error => docs.push(Doc::text(self.source.span_text(written.span))),
        }
    }

    fn type_arguments(&mut self, name: &str, arguments: &[&TypeExpr], docs: &mut Vec<Doc>) {
        docs.push(Doc::text(format!("{name}<")));
        for (index, argument) in arguments.iter().enumerate() {
            if index > 0 {
                docs.extend([Doc::text(","), Doc::Space]);
            }
            self.type_expr(argument, docs);
        }
        docs.push(Doc::text(">"));
    }

    /// Formats an expression as one document.
    pub(super) fn expr(&mut self, expr: &Expr, docs: &mut Vec<Doc>) {
        // Comments before the first token stand outside: they do not break the expression after
        // them.
        docs.extend(self.comments(expr.span.start));
        match &expr.kind {
            ExprKind::Binary(..) => {
                let mut parts = Vec::new();
                self.binary(expr, &mut parts);
                docs.push(Doc::group(parts));
            }
            ExprKind::If(..) => {
                let mut parts = Vec::new();
                self.if_expr(expr, &mut parts);
                docs.push(Doc::group(parts));
            }
            ExprKind::Bool(_)
            | ExprKind::Float(_)
            | ExprKind::String(_)
            | ExprKind::Bytes(_)
            | ExprKind::Name(_)
            | ExprKind::None => docs.push(self.token(expr.span.start)),
            ExprKind::Int(_) => {
                // A negative literal is two tokens.
                let tokens = expr.span.start..expr.span.end;
                docs.extend(tokens.map(|token| self.token(token)));
            }
            ExprKind::Error => docs.push(Doc::text(self.source.span_text(expr.span))),
            ExprKind::Not(inner) => self.prefixed("!", inner, docs),
            ExprKind::Negate(inner) => self.prefixed("-", inner, docs),
            ExprKind::Paren(inner) => self.bracketed("(", inner, expr, ")", docs),
            ExprKind::Some(inner) => self.bracketed("some(", inner, expr, ")", docs),
            ExprKind::Index(object, key) => {
                self.ident(object, docs);
                self.bracketed("[", key, expr, "]", docs);
            }
            _ => self.compound(expr, docs),
        }
    }

    fn compound(&mut self, expr: &Expr, docs: &mut Vec<Doc>) {
        let close = expr.span.end - 1;
        match &expr.kind {
            ExprKind::Field(receiver, name) => {
                self.expr(receiver, docs);
                docs.extend(self.comments(name.span.start));
                docs.push(Doc::text(format!(".{}", name.name)));
            }
            ExprKind::Method(receiver, name, args) => {
                self.expr(receiver, docs);
                docs.extend(self.comments(name.span.start));
                docs.push(Doc::text(format!(".{}", name.name)));
                self.args(["(", ")"], args, close, docs);
            }
            ExprKind::Call(name, args) => {
                self.ident(name, docs);
                self.args(["(", ")"], args, close, docs);
            }
            ExprKind::List(items) => self.args(["[", "]"], items, close, docs),
            ExprKind::Struct(name, inits) => {
                self.ident(name, docs);
                self.inits(inits, close, docs);
            }
            ExprKind::Create { is_put, object, inits } => {
                docs.extend([Doc::text(if *is_put { "put" } else { "new" }), Doc::Space]);
                self.ident(object, docs);
                self.inits(inits, close, docs);
            }
            ExprKind::Policy(read, policy) => {
                self.expr(read, docs);
                docs.push(Doc::Space);
                self.policy(policy, docs);
            }
            ExprKind::Endorse { .. } => {
                let mut parts = Vec::new();
                self.endorse(expr, &mut parts);
                docs.push(Doc::group(parts));
            }
            _ => {}
        }
    }

    /// Formats an expression whose breaks belong to the surrounding document.
    pub(super) fn open_expr(&mut self, expr: &Expr, docs: &mut Vec<Doc>) {
        docs.extend(self.comments(expr.span.start));
        match expr.kind {
            ExprKind::Binary(..) => self.binary(expr, docs),
            ExprKind::Endorse { .. } => self.endorse(expr, docs),
            _ => self.expr(expr, docs),
        }
    }

    fn prefixed(&mut self, operator: &str, inner: &Expr, docs: &mut Vec<Doc>) {
        docs.push(Doc::text(operator));
        self.expr(inner, docs);
    }

    /// Formats one expression in brackets, without a trailing comma.
    fn bracketed(
        &mut self,
        open: &str,
        inner: &Expr,
        outer: &Expr,
        close: &str,
        docs: &mut Vec<Doc>,
    ) {
        let mut parts = vec![Doc::SoftLine];
        self.expr(inner, &mut parts);
        parts.extend(self.comments(outer.span.end - 1));
        docs.push(Doc::group(vec![
            Doc::text(open),
            Doc::indent(parts),
            Doc::SoftLine,
            Doc::text(close),
        ]));
    }

    fn args(&mut self, brackets: [&str; 2], args: &[Expr], close: u32, docs: &mut Vec<Doc>) {
        let elements = args.iter().map(Element::Expr).collect();
        self.list(brackets, Doc::SoftLine, elements, close, docs);
    }

    fn inits(&mut self, inits: &[Init], close: u32, docs: &mut Vec<Doc>) {
        docs.push(Doc::Space);
        let elements = inits.iter().map(Element::Init).collect();
        self.list(["{", "}"], Doc::Line, elements, close, docs);
    }

    /// Formats a list on one line, or with one element per line and a comma after the last.
    fn list(
        &mut self,
        [open, shut]: [&str; 2],
        edge: Doc,
        elements: Vec<Element<'_>>,
        close: u32,
        docs: &mut Vec<Doc>,
    ) {
        if elements.is_empty() {
            let mut inner = self.comments(close);
            if !inner.is_empty() {
                inner.insert(0, Doc::SoftLine);
            }
            docs.push(Doc::group(vec![
                Doc::text(open),
                Doc::indent(inner),
                Doc::SoftLine,
                Doc::text(shut),
            ]));
            return;
        }
        let mut inner = vec![edge.clone()];
        for (index, element) in elements.into_iter().enumerate() {
            if index > 0 {
                inner.extend([Doc::text(","), Doc::Line]);
            }
            match element {
                Element::Expr(expr) => self.expr(expr, &mut inner),
                Element::Init(init) => {
                    self.ident(&init.name, &mut inner);
                    inner.extend([Doc::text(":"), Doc::Space]);
                    self.expr(&init.value, &mut inner);
                }
            }
        }
        inner.push(Doc::IfBroken(","));
        inner.extend(self.comments(close));
        docs.push(Doc::group(vec![Doc::text(open), Doc::indent(inner), edge, Doc::text(shut)]));
    }

    /// Formats a chain of operators of equal precedence, each operator before its right side.
    fn binary(&mut self, expr: &Expr, docs: &mut Vec<Doc>) {
        let (first, rest) = chain(expr);
        self.expr(first, docs);
        let mut inner = Vec::new();
        for (op, operand) in rest {
            inner.push(Doc::Line);
            inner.extend(self.comments(operand.span.start));
            inner.extend([Doc::text(op.text()), Doc::Space]);
            self.expr(operand, &mut inner);
        }
        docs.push(Doc::indent(inner));
    }

    fn if_expr(&mut self, expr: &Expr, docs: &mut Vec<Doc>) {
        let ExprKind::If(condition, then, otherwise) = &expr.kind else {
            return;
        };
        docs.extend([Doc::text("if"), Doc::Space]);
        self.expr(condition, docs);
        self.braced(then, docs);
        docs.extend([Doc::Space, Doc::text("else")]);
        if matches!(otherwise.kind, ExprKind::If(..)) {
            docs.push(Doc::Space);
            docs.extend(self.comments(otherwise.span.start));
            self.if_expr(otherwise, docs);
        } else {
            self.braced(otherwise, docs);
        }
    }

    /// Formats a branch of an `if` that gives a value.
    fn braced(&mut self, branch: &Expr, docs: &mut Vec<Doc>) {
        docs.extend([Doc::Space, Doc::text("{")]);
        let mut inner = vec![Doc::Line];
        self.expr(branch, &mut inner);
        inner.extend(self.comments(branch.span.end));
        docs.extend([Doc::indent(inner), Doc::Line, Doc::text("}")]);
    }

    fn endorse(&mut self, expr: &Expr, docs: &mut Vec<Doc>) {
        let ExprKind::Endorse { value, level, reason } = &expr.kind else {
            return;
        };
        // The value's own bracket closes right after it.
        let call = Expr {
            kind: ExprKind::Error,
            span: crate::syntax::Span { start: expr.span.start, end: value.span.end + 1 },
        };
        self.bracketed("endorse(", value, &call, ")", docs);
        docs.extend([Doc::Space, Doc::text("as"), Doc::Space]);
        self.ident(level, docs);
        if let Some((_, span)) = reason {
            let mut inner = vec![Doc::Line];
            inner.extend(self.comments(span.start));
            inner.extend([Doc::text("because"), Doc::Space, self.token(span.start)]);
            docs.push(Doc::indent(inner));
        }
    }
}

enum Element<'a> {
    Expr(&'a Expr),
    Init(&'a Init),
}

/// Returns the first operand of a chain, and each further operand with the operator before it.
fn chain(expr: &Expr) -> (&Expr, Vec<(BinaryOp, &Expr)>) {
    let mut rest = Vec::new();
    let ExprKind::Binary(top, ..) = &expr.kind else {
        return (expr, rest);
    };
    let mut at = expr;
    if *top == BinaryOp::Coalesce {
        let mut first = None;
        let mut before = None;
        while let ExprKind::Binary(BinaryOp::Coalesce, left, right) = &at.kind {
            match before {
                None => first = Some(&**left),
                Some(op) => rest.push((op, &**left)),
            }
            before = Some(BinaryOp::Coalesce);
            at = right;
        }
        rest.push((BinaryOp::Coalesce, at));
        return (first.unwrap_or(expr), rest);
    }
    while let ExprKind::Binary(op, left, right) = &at.kind {
        if op.precedence() != top.precedence() {
            break;
        }
        rest.push((*op, &**right));
        at = left;
    }
    rest.reverse();
    (at, rest)
}
