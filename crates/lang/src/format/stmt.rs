//! Statements.

use super::doc::Doc;
use super::{Formatter, LineStart};
use crate::syntax::ast::{AssignOp, Block, Else, Expr, ExprKind, If, Let, Stmt, StmtKind};

impl Formatter<'_> {
    /// Formats a block with its braces, after the text before it on its line.
    pub(super) fn block(&mut self, block: &Block, docs: &mut Vec<Doc>) {
        let close = block.span.end - 1;
        docs.push(Doc::text("{"));
        let mut inner = Vec::new();
        let mut start = LineStart::First;
        for statement in &block.statements {
            let first = self.allows(&statement.allows, start, &mut inner);
            inner.extend(self.line(statement.span.start, first));
            self.statement(statement, &mut inner);
            start = LineStart::AsWritten;
        }
        inner.extend(self.last_comments(close, start));
        if inner.is_empty() {
            docs.push(Doc::text("}"));
            return;
        }
        docs.extend([Doc::indent(inner), Doc::HardLine, Doc::text("}")]);
    }

    fn statement(&mut self, statement: &Stmt, docs: &mut Vec<Doc>) {
        match &statement.kind {
            StmtKind::Let(binding) => self.let_binding(binding, docs),
            StmtKind::Assign { place, op, value } => {
                self.expr(place, docs);
                let op = match op {
                    AssignOp::Set => "=",
                    AssignOp::Add => "+=",
                    AssignOp::Subtract => "-=",
                };
                docs.extend([Doc::Space, Doc::text(op), Doc::Space]);
                self.expr(value, docs);
                docs.push(Doc::text(";"));
            }
            StmtKind::If(inner) => self.if_statement(inner, docs),
            StmtKind::While { condition, body } => {
                docs.extend([Doc::text("while"), Doc::Space]);
                self.head(condition, docs);
                self.block(body, docs);
            }
            StmtKind::For { first, second, iterated, body } => {
                docs.extend([Doc::text("for"), Doc::Space]);
                self.ident(first, docs);
                if let Some(second) = second {
                    docs.extend([Doc::text(","), Doc::Space]);
                    self.ident(second, docs);
                }
                docs.extend([Doc::Space, Doc::text("in"), Doc::Space]);
                self.head(iterated, docs);
                self.block(body, docs);
            }
            StmtKind::Match { .. } => self.match_statement(statement, docs),
            StmtKind::MatchAnswer { scrutinee, arms } => {
                self.match_answer(statement, scrutinee, arms, docs);
            }
            StmtKind::Require { .. } => self.require(statement, docs),
            StmtKind::Return(value) => {
                docs.push(Doc::text("return"));
                if let Some(value) = value {
                    docs.push(Doc::Space);
                    self.expr(value, docs);
                }
                docs.push(Doc::text(";"));
            }
            StmtKind::Expr(value) => {
                self.expr(value, docs);
                docs.push(Doc::text(";"));
            }
            StmtKind::Error => docs.push(Doc::text(self.source.span_text(statement.span))),
        }
    }

    pub(super) fn let_binding(&mut self, binding: &Let, docs: &mut Vec<Doc>) {
        let word = if binding.mutable { "var" } else { "let" };
        docs.extend([Doc::text(word), Doc::Space]);
        self.ident(&binding.name, docs);
        if let Some(written) = &binding.written_type {
            docs.extend([Doc::text(":"), Doc::Space]);
            self.type_expr(written, docs);
        }
        docs.extend([Doc::Space, Doc::text("="), Doc::Space]);
        self.expr(&binding.value, docs);
        docs.push(Doc::text(";"));
    }

    /// Formats the head of a statement up to its brace, which stands on its own line after a
    /// condition of several lines.
    pub(super) fn head(&mut self, head: &Expr, docs: &mut Vec<Doc>) {
        if matches!(head.kind, ExprKind::Binary(..) | ExprKind::Endorse { .. }) {
            docs.extend(self.comments(head.span.start));
            let mut parts = Vec::new();
            self.open_expr(head, &mut parts);
            parts.push(Doc::Line);
            docs.push(Doc::group(parts));
        } else {
            self.expr(head, docs);
            docs.push(Doc::Space);
        }
    }

    fn if_statement(&mut self, inner: &If, docs: &mut Vec<Doc>) {
        docs.extend([Doc::text("if"), Doc::Space]);
        self.head(&inner.condition, docs);
        self.block(&inner.then_block, docs);
        match &inner.else_branch {
            None => {}
            Some(Else::Block(block)) => {
                docs.extend([Doc::Space, Doc::text("else"), Doc::Space]);
                self.block(block, docs);
            }
            Some(Else::If(next, _)) => {
                docs.extend([Doc::Space, Doc::text("else"), Doc::Space]);
                self.if_statement(next, docs);
            }
        }
    }

    fn match_statement(&mut self, statement: &Stmt, docs: &mut Vec<Doc>) {
        let StmtKind::Match { scrutinee, some_name, some_block, none_block, some_first } =
            &statement.kind
        else {
            return;
        };
        docs.extend([Doc::text("match"), Doc::Space]);
        self.head(scrutinee, docs);
        docs.push(Doc::text("{"));
        let mut inner = Vec::new();
        let mut start = LineStart::First;
        for is_some in [*some_first, !*some_first] {
            if is_some {
                // `some`, `(`, the name.
                inner.extend(self.line(some_name.span.start - 2, start));
                inner.push(Doc::text("some("));
                self.ident(some_name, &mut inner);
                inner.extend([Doc::text(")"), Doc::Space, Doc::text("=>"), Doc::Space]);
                self.block(some_block, &mut inner);
            } else {
                // `none`, `=>`, the block.
                inner.extend(self.line(none_block.span.start - 2, start));
                inner.extend([Doc::text("none"), Doc::Space, Doc::text("=>"), Doc::Space]);
                self.block(none_block, &mut inner);
            }
            start = LineStart::AsWritten;
        }
        inner.extend(self.last_comments(statement.span.end - 1, start));
        docs.extend([Doc::indent(inner), Doc::HardLine, Doc::text("}")]);
    }

    fn require(&mut self, statement: &Stmt, docs: &mut Vec<Doc>) {
        let StmtKind::Require { condition, message, code } = &statement.kind else {
            return;
        };
        docs.extend([Doc::text("require"), Doc::Space]);
        docs.extend(self.comments(condition.span.start));
        let mut parts = Vec::new();
        self.expr(condition, &mut parts);
        let mut inner = vec![Doc::Line];
        inner.extend(self.comments(message.span.start));
        inner.extend([Doc::text("else"), Doc::Space]);
        self.expr(message, &mut inner);
        if let Some(code) = code {
            inner.extend([Doc::Space, Doc::text("as"), Doc::Space]);
            self.ident(code, &mut inner);
        }
        inner.push(Doc::text(";"));
        parts.push(Doc::indent(inner));
        docs.push(Doc::group(parts));
    }
}
