//! Statements.

use mingle_model::{FieldType, Type};

use super::bounded::whole;
use super::expr::Evaluated;
use super::{Body, Checker};
use crate::diagnostic::m0201::{self, Mismatch};
use crate::diagnostic::m0202::{self, Arity};
use crate::diagnostic::m0203::{self, Fixed};
use crate::diagnostic::m0204::{self, Unfit};
use crate::diagnostic::{Code, Edit, m0002, m0101, m0102};
use crate::hir::{self, Expr, Iterated, Policy, Stmt, StmtKind, Var, VarId, WriteOp};
use crate::names::Bound;
use crate::ops::Op;
use crate::syntax::Span;
use crate::syntax::ast::{self, AssignOp, Else, ExprKind, Ident};

impl Checker<'_> {
    pub(super) fn block(&mut self, body: &mut Body, block: &ast::Block) -> Vec<Stmt> {
        body.open();
        let statements = self.statements(body, &block.statements);
        body.close();
        statements
    }

    fn statements(&mut self, body: &mut Body, statements: &[ast::Stmt]) -> Vec<Stmt> {
        let checked = statements.iter().filter_map(|statement| {
            let kind = self.statement(body, statement)?;
            Some(Stmt { kind, span: statement.span })
        });
        checked.collect()
    }

    fn statement(&mut self, body: &mut Body, statement: &ast::Stmt) -> Option<StmtKind> {
        match &statement.kind {
            ast::StmtKind::Let(binding) => {
                let (var, value) = self.let_binding(body, binding)?;
                Some(StmtKind::Let(var, value))
            }
            ast::StmtKind::Assign { place, op, value } => self.assign(body, place, *op, value),
            ast::StmtKind::If(branch) => self.if_statement(body, branch),
            ast::StmtKind::While { condition, body: inner } => {
                let condition = self.condition(body, condition);
                body.loops.push(statement.span);
                let inner = self.block(body, inner);
                body.loops.pop();
                Some(StmtKind::While { condition: condition?, body: inner })
            }
            ast::StmtKind::For { first, second, iterated, body: inner } => {
                self.for_statement(body, statement.span, (first, second.as_ref()), iterated, inner)
            }
            ast::StmtKind::Match { scrutinee, some_name, some_block, none_block, .. } => {
                self.match_statement(body, scrutinee, some_name, some_block, none_block)
            }
            ast::StmtKind::MatchAnswer { scrutinee, arms } => {
                self.match_answer(body, statement.span, scrutinee, arms)
            }
            ast::StmtKind::Require { condition, message, code } => {
                let condition = self.condition(body, condition);
                let message = self.value_of(body, message, &Type::String);
                let code = code.as_ref().map(|code| code.name.clone());
                Some(StmtKind::Require { condition: condition?, message: message?, code })
            }
            ast::StmtKind::Return(value) => {
                self.return_statement(body, statement.span, value.as_ref())
            }
            ast::StmtKind::Expr(expr) => self.expression_statement(body, expr),
            ast::StmtKind::Error => None,
        }
    }

    /// Declares a variable in the innermost scope.
    pub(super) fn bind(&mut self, body: &mut Body, name: &Ident, var_type: Option<Type>) -> VarId {
        let id = VarId(body.vars.len() as u32);
        let scope = body.scopes.last_mut().expect("a body has a scope");
        // As in Rust, `_` discards a value and declares no name.
        if &*name.name != "_"
            && let Some(first) = scope.names.insert(name.name.clone(), id)
        {
            let first = body.vars[first.index()].span;
            self.diagnostics.push(m0102::render(&name.name, name.span, Some(first)));
        }
        if let Some(record) = &mut self.record {
            let bound = Bound { name: name.name.clone(), var_type: var_type.clone(), word: "" };
            record.variables.insert(name.span.start, bound);
        }
        body.vars.push(Var { name: name.name.clone(), var_type, span: name.span, mutable: false });
        body.used.push(false);
        body.let_spans.push(None);
        id
    }

    pub(super) fn let_binding(
        &mut self,
        body: &mut Body,
        binding: &ast::Let,
    ) -> Option<(VarId, Expr)> {
        let written = binding.written_type.as_ref().map(|written| self.answer_type(written));
        body.effect = Some(whole(&binding.value));
        let value = match &written {
            Some(Some(expected)) => self.answer_of(body, &binding.value, expected),
            Some(None) => None,
            None => self.answer(body, &binding.value),
        };
        self.no_var(binding, value.as_ref());
        let var_type = match written {
            Some(written) => written,
            None => value.as_ref().map(|value| value.value_type.clone()),
        };
        let var = self.bind(body, &binding.name, var_type);
        body.vars[var.index()].mutable = binding.mutable;
        if let Some(record) = &mut self.record
            && let Some(bound) = record.variables.get_mut(&binding.name.span.start)
        {
            bound.word = if binding.mutable { "var " } else { "let " };
        }
        body.let_spans[var.index()] = Some(Span::token(binding.span.start));
        self.note_answer(body, var, value.as_ref());
        Some((var, value?))
    }

    fn assign(
        &mut self,
        body: &mut Body,
        place: &ast::Expr,
        op: AssignOp,
        value: &ast::Expr,
    ) -> Option<StmtKind> {
        match &place.kind {
            ExprKind::Name(name) => self.assign_variable(body, place, name, op, value),
            ExprKind::Field(object, field) => {
                let errors = self.diagnostics.errors;
                let assigned = self.assigned_field(body, place, object, field, (op, value));
                let Some((place, field_type)) = assigned else {
                    // An assignment to a collection often reads it too, which is no second mistake.
                    if self.diagnostics.found().last().is_some_and(|last| {
                        last.code == Code::M0203 && self.diagnostics.errors > errors
                    }) {
                        self.quietly(body, std::slice::from_ref(value));
                    } else {
                        self.value(body, value);
                    }
                    return None;
                };
                let (op, value) = self.assigned_value(body, op, &field_type, value, place.span)?;
                self.no_write(body, "an assignment to a field", place.span)?;
                Some(StmtKind::Write(WriteOp::Assign(place, op, value)))
            }
            _ => None,
        }
    }

    fn assign_variable(
        &mut self,
        body: &mut Body,
        place: &ast::Expr,
        name: &str,
        op: AssignOp,
        value: &ast::Expr,
    ) -> Option<StmtKind> {
        let Some(var) = body.find(name) else {
            let near = self.diagnostics.near_miss(name, body.visible_names());
            let found = m0101::render("variable", name, place.span, near);
            let declared = vec![Edit { span: place.span, text: format!("var {name}") }];
            let may_declare = op == AssignOp::Set && near.is_none();
            self.diagnostics.push(if may_declare {
                found.with_help("declare it", declared)
            } else {
                found
            });
            let value = self.value(body, value);
            if may_declare {
                // Later uses of the variable are no further mistakes.
                let ident = Ident { name: name.into(), span: place.span };
                let var = self.bind(body, &ident, value.map(|value| value.value_type));
                body.vars[var.index()].mutable = true;
            }
            return None;
        };
        let Var { var_type, mutable, span: declared, .. } = body.vars[var.index()].clone();
        self.note_use(place.span, declared);
        if !mutable {
            let name = name.to_owned();
            let fixed = match body.let_spans[var.index()] {
                Some(keyword) => Fixed::Let { name, declared, keyword },
                None => Fixed::Bound { name, declared },
            };
            self.diagnostics.push(m0203::render(fixed, place.span));
        }
        let Some(var_type) = var_type else {
            self.value(body, value);
            return None;
        };
        let (op, value) = self.assigned_value(body, op, &var_type, value, place.span)?;
        let value = match op {
            None => value,
            Some(op) => {
                let span = place.span.to(value.span);
                let old = Expr {
                    kind: crate::hir::ExprKind::Var(var),
                    value_type: var_type.clone(),
                    span: place.span,
                };
                Expr {
                    kind: crate::hir::ExprKind::Local(op, vec![old, value]),
                    value_type: var_type,
                    span,
                }
            }
        };
        mutable.then_some(StmtKind::Assign(var, value))
    }

    /// Checks the value of `=`, `+=` or `-=` for a place of this type; also returns the operation
    /// that combines it with the old value.
    fn assigned_value(
        &mut self,
        body: &mut Body,
        op: AssignOp,
        place_type: &Type,
        value: &ast::Expr,
        place: Span,
    ) -> Option<(Option<Op>, Expr)> {
        let operator = match op {
            AssignOp::Set => return Some((None, self.value_of(body, value, place_type)?)),
            AssignOp::Add => ast::BinaryOp::Add,
            AssignOp::Subtract => ast::BinaryOp::Subtract,
        };
        let expected = match place_type {
            Type::Time | Type::Date => Type::Int,
            other => other.clone(),
        };
        let value = self.value_of(body, value, &expected)?;
        let Some((op, result)) = Self::arithmetic(operator, place_type, &value.value_type) else {
            let operator = if op == AssignOp::Add { "+=" } else { "-=" };
            let (left, right) = (place_type.to_string(), value.value_type.to_string());
            self.diagnostics.push(m0201::render(
                Mismatch::Operands { operator, left, right, text: None },
                place,
            ));
            return None;
        };
        debug_assert_eq!(result, *place_type);
        Some((Some(op), value))
    }

    fn if_statement(&mut self, body: &mut Body, branch: &ast::If) -> Option<StmtKind> {
        let condition = self.condition(body, &branch.condition);
        let then_block = self.block(body, &branch.then_block);
        let else_block = match &branch.else_branch {
            None => Vec::new(),
            Some(Else::Block(block)) => self.block(body, block),
            Some(Else::If(inner, span)) => {
                let kind = self.if_statement(body, inner);
                kind.map(|kind| Stmt { kind, span: *span }).into_iter().collect()
            }
        };
        Some(StmtKind::If { condition: condition?, then_block, else_block })
    }

    fn for_statement(
        &mut self,
        body: &mut Body,
        span: Span,
        (first, second): (&Ident, Option<&Ident>),
        iterated: &ast::Expr,
        inner: &ast::Block,
    ) -> Option<StmtKind> {
        let over = self.iterated(body, iterated, second.is_some());
        let (first_type, second_type, shown) = match &over {
            Some((_, first_type, second_type, shown)) => {
                (Some(first_type.clone()), second_type.clone(), shown.clone())
            }
            None => (None, None, String::new()),
        };
        if over.is_some() && second.is_some() != second_type.is_some() {
            let expected = if second_type.is_some() { 2 } else { 1 };
            let place = second.map_or(first.span, |second| second.span);
            self.diagnostics.push(m0202::render(Arity::Variables { over: shown, expected }, place));
        }
        body.open();
        let first = self.bind(body, first, first_type);
        let second = second.map(|second| self.bind(body, second, second_type));
        body.loops.push(span);
        let inner = self.block(body, inner);
        body.loops.pop();
        body.close();
        let (iterated, ..) = over?;
        Some(StmtKind::For { first, second, iterated, body: inner })
    }

    /// Checks the operand of a `for`: returns it, the types of its variables, and its description.
    fn iterated(
        &mut self,
        body: &mut Body,
        written: &ast::Expr,
        has_two: bool,
    ) -> Option<(Iterated, Type, Option<Type>, String)> {
        let (place, field_type) = match self.evaluate(body, written, None)? {
            Evaluated::Collection(place, field_type) => (place, field_type),
            other => {
                let list = self.as_value(other, written.span)?;
                let shown = list.value_type.to_string();
                let Type::List(inner) = &list.value_type else {
                    self.diagnostics
                        .push(m0204::render(Unfit::Iterate { found: shown }, written.span));
                    return None;
                };
                let inner = (**inner).clone();
                if let Some((slice, value)) = has_two.then(|| self.map_slice(&list)).flatten() {
                    return Some((slice, inner, Some(value), shown));
                }
                return Some((Iterated::List(list), inner, None, shown));
            }
        };
        let shown = field_type.to_string();
        let (first, second) = match field_type {
            FieldType::Set(inner) | FieldType::Log(inner) => (inner, None),
            FieldType::Map(key, value) => (key, Some(value)),
            FieldType::Counter | FieldType::Register(_) => {
                self.diagnostics.push(m0204::render(Unfit::Iterate { found: shown }, written.span));
                return None;
            }
        };
        let level = self.contents_level(&place, written.span).ok()?;
        Some((Iterated::Collection(place, level), first, second, shown))
    }

    /// Returns the slice of a map that an expression reads, to be iterated with its values, and their type.
    fn map_slice(&self, list: &Expr) -> Option<(Iterated, Type)> {
        let (read, level) = match &list.kind {
            hir::ExprKind::Policy(read, Policy::At(level)) => (&**read, Some(*level)),
            _ => (list, None),
        };
        let hir::ExprKind::Collection(map, read, args) = &read.kind else { return None };
        if !read.is_map_slice() {
            return None;
        }
        let declared = &self.program.objects[map.kind.index()].declared;
        let FieldType::Map(_, value) = &declared.fields[usize::from(map.field)].field_type else {
            return None;
        };
        let (map, args, span) = (map.clone(), args.clone(), list.span);
        Some((Iterated::Slice { map, read: *read, args, level, span }, value.clone()))
    }

    fn match_statement(
        &mut self,
        body: &mut Body,
        scrutinee: &ast::Expr,
        some_name: &Ident,
        some_block: &ast::Block,
        none_block: &ast::Block,
    ) -> Option<StmtKind> {
        let scrutinee_span = scrutinee.span;
        let scrutinee = self.value(body, scrutinee);
        let inner = match scrutinee.as_ref().map(|scrutinee| &scrutinee.value_type) {
            Some(Type::Option(inner)) => Some((**inner).clone()),
            Some(other) => {
                let mismatch =
                    Mismatch::Types { expected: "option<…>".into(), found: other.to_string() };
                self.diagnostics.push(m0201::render(mismatch, scrutinee_span));
                None
            }
            None => None,
        };
        let is_option = inner.is_some();
        body.open();
        let some_var = self.bind(body, some_name, inner);
        let some_block = self.block(body, some_block);
        body.close();
        let none_block = self.block(body, none_block);
        is_option.then_some(StmtKind::Match {
            scrutinee: scrutinee?,
            some_var,
            some_block,
            none_block,
        })
    }

    fn return_statement(
        &mut self,
        body: &mut Body,
        span: Span,
        value: Option<&ast::Expr>,
    ) -> Option<StmtKind> {
        if let Some(head) = body.loops.last() {
            let head = Span::token(head.start);
            self.diagnostics.push(m0002::render(span, head));
        }
        if body.has_result && body.result.is_none() {
            // The declared type has a mistake that was already reported.
            if let Some(value) = value {
                self.value(body, value);
            }
            return None;
        }
        let expected = body.result.clone();
        let kind = match (value, &expected) {
            (None, None) => StmtKind::Return(None),
            (Some(value), Some(expected)) => {
                StmtKind::Return(Some(self.answer_of(body, value, expected)?))
            }
            (None, Some(expected)) => {
                let mismatch = Mismatch::Return { expected: Some(expected.to_string()) };
                self.diagnostics.push(m0201::render(mismatch, span));
                return None;
            }
            (Some(value), None) => {
                self.value(body, value)?;
                self.diagnostics
                    .push(m0201::render(Mismatch::Return { expected: None }, value.span));
                return None;
            }
        };
        body.loops.is_empty().then_some(kind)
    }

    fn expression_statement(&mut self, body: &mut Body, expr: &ast::Expr) -> Option<StmtKind> {
        body.effect = Some(whole(expr));
        match self.evaluate(body, expr, None)? {
            Evaluated::Write(write) => Some(StmtKind::Write(write)),
            Evaluated::Done(effect) => Some(StmtKind::Expr(effect)),
            other => {
                let value = self.as_value(other, expr.span)?;
                self.no_dropped_take(expr, &value)?;
                Some(StmtKind::Expr(value))
            }
        }
    }
}
