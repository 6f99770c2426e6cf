//! Answers that may be weak or late: policies of reads, and `match` over their answers.

use std::sync::Arc;

use mingle_model::{LevelId, Type};

use super::expr::Evaluated;
use super::methods::{Method, find_method};
use super::{Body, Checker};
use crate::diagnostic::m0201::{self, Mismatch};
use crate::diagnostic::m0601::{self, NoPolicy};
use crate::diagnostic::m0602::{self, Misuse};
use crate::diagnostic::m0603::{self, Arms};
use crate::diagnostic::{Edit, w0601};
use crate::hir::{
    CollectionRead, Expr, ExprKind, Place, Policies, Policy, StmtKind, StoreId, VarId,
};
use crate::syntax::Span;
use crate::syntax::ast::{self, AnswerArm, PolicyKind, TypeExpr, TypeKind};

/// The longest bound, in milliseconds: one hour.
const BOUND_MAX: u64 = 3_600_000;

/// A policy at a store.
enum Resolved {
    /// The store's own level: as if there were no policy.
    Own,
    /// Another policy.
    Other(Policy),
}

/// A mistake that was reported.
pub(super) struct Reported;

impl Checker<'_> {
    /// Resolves a type where an answer may stand.
    pub(super) fn answer_type(&mut self, written: &TypeExpr) -> Option<Type> {
        match &written.kind {
            TypeKind::Rushed(inner) => Some(Type::Rushed(Arc::new(self.value_type(inner)?))),
            _ => self.value_type(written),
        }
    }

    /// Returns a value, unless it is an answer that may be weak or late.
    pub(super) fn plain(&mut self, value: Expr) -> Option<Expr> {
        if !matches!(value.value_type, Type::Rushed(_)) {
            return Some(value);
        }
        let own_level = self.own_level_edit(&value);
        self.diagnostics.push(m0602::render(Misuse::Plain { own_level }, value.span));
        None
    }

    /// The edit that reads an answer at the level of its store.
    fn own_level_edit(&self, answer: &Expr) -> Option<Edit> {
        let ExprKind::Policy(read, _) = &answer.kind else { return None };
        let store = self.store_read(read)?;
        let level = self.program.levels.name(self.level_at(store)?);
        // A policy of the read's own stands after it.
        let policy = Span { start: read.span.end, end: answer.span.end };
        Some(if policy.start < policy.end {
            Edit { span: policy, text: format!("at {level}") }
        } else {
            Edit { span: answer.span, text: format!("{{text}} at {level}") }
        })
    }

    /// Checks a value that may be an answer; none if a mistake was reported.
    pub(super) fn answer(&mut self, body: &mut Body, expr: &ast::Expr) -> Option<Expr> {
        match self.evaluate(body, expr, None)? {
            Evaluated::Value(value) => Some(value),
            other => self.as_value(other, expr.span),
        }
    }

    /// Checks a value of this type, which may be that of an answer.
    pub(super) fn answer_of(
        &mut self,
        body: &mut Body,
        expr: &ast::Expr,
        expected: &Type,
    ) -> Option<Expr> {
        if !matches!(expected, Type::Rushed(_)) {
            return self.value_of(body, expr, expected);
        }
        let value = self.answer(body, expr)?;
        if value.value_type == *expected {
            return Some(value);
        }
        let (expected, found) = (expected.to_string(), value.value_type.to_string());
        self.diagnostics.push(m0201::render(Mismatch::Types { expected, found }, expr.span));
        None
    }

    /// Reports a `var` that holds an answer: assignments would merge answers.
    pub(super) fn no_var(&mut self, binding: &ast::Let, value: Option<&Expr>) {
        let is_answer = value.is_some_and(|value| matches!(value.value_type, Type::Rushed(_)));
        if binding.mutable && is_answer {
            let keyword = Span::token(binding.span.start);
            self.diagnostics.push(m0602::render(Misuse::Var { keyword }, binding.name.span));
        }
    }

    /// The store that a read asks.
    fn store_read(&self, read: &Expr) -> Option<StoreId> {
        match &read.kind {
            ExprKind::Register(place) | ExprKind::Collection(place, ..) => {
                Some(self.program.store_of(place.kind))
            }
            ExprKind::Exists(_, kind) => Some(self.program.store_of(*kind)),
            _ => None,
        }
    }

    /// The level of a store; none if the declaration of the store has a mistake.
    fn level_at(&self, store: StoreId) -> Option<LevelId> {
        self.program.stores.get(store.index()).map(|store| store.level)
    }

    /// Gives a read the policy that its field declares.
    pub(super) fn as_declared(&self, read: Expr) -> Expr {
        let (place, operation) = match &read.kind {
            ExprKind::Register(place) => (place, None),
            ExprKind::Collection(place, operation, _) => (place, Some(*operation)),
            _ => return read,
        };
        let object = &self.program.objects[place.kind.index()];
        let own = self.level_at(object.store).map(Policy::At);
        match object.policies.of(place.field, operation) {
            Some(policy) if Some(policy) != own => {
                let span = read.span;
                Self::with_policy(read, policy, span)
            }
            _ => read,
        }
    }

    fn with_policy(read: Expr, policy: Policy, span: Span) -> Expr {
        let value_type = match policy {
            Policy::At(_) => read.value_type.clone(),
            Policy::By(_) => Type::Rushed(Arc::new(read.value_type.clone())),
        };
        Expr { kind: ExprKind::Policy(Box::new(read), policy), value_type, span }
    }

    /// Checks a read with a policy of its own.
    pub(super) fn read_with_policy(
        &mut self,
        body: &mut Body,
        read: &ast::Expr,
        policy: &ast::Policy,
        span: Span,
    ) -> Option<Evaluated> {
        let mut read = match self.evaluate(body, read, None)? {
            Evaluated::Value(value) => value,
            Evaluated::Write(_) | Evaluated::Done(_) => {
                return self.no_policy(NoPolicy::Write, policy);
            }
            other @ Evaluated::Collection(..) => self.as_value(other, read.span)?,
        };
        if let ExprKind::Policy(inner, _) = read.kind {
            read = *inner;
        }
        let Some(store) = self.store_read(&read) else {
            return self.no_policy(NoPolicy::NoRead, policy);
        };
        let level = self.level_at(store)?;
        let resolved = self.policy(policy, level)?;
        Some(Evaluated::Value(match resolved {
            Resolved::Own => read,
            Resolved::Other(policy) => Self::with_policy(read, policy, span),
        }))
    }

    fn no_policy<T>(&mut self, why: NoPolicy, policy: &ast::Policy) -> Option<T> {
        self.diagnostics.push(m0601::render(why, policy.span));
        None
    }

    /// Resolves a policy at a store of this level; none if a mistake was reported.
    fn policy(&mut self, policy: &ast::Policy, own: LevelId) -> Option<Resolved> {
        match &policy.kind {
            PolicyKind::At(written) => {
                let level = self.level(written)?;
                if level == own {
                    return Some(Resolved::Own);
                }
                let levels = &self.program.levels;
                if !levels.is_stronger(own, level) {
                    let name = |level| levels.name(level).to_string();
                    let why = NoPolicy::Stronger { asked: name(level), own: name(own) };
                    return self.no_policy(why, policy);
                }
                Some(Resolved::Other(Policy::At(level)))
            }
            PolicyKind::By(written) => {
                let bound = milliseconds(&written.name);
                match bound.filter(|bound| *bound <= BOUND_MAX) {
                    Some(0) => self.no_policy(NoPolicy::Zero, policy),
                    Some(bound) => Some(Resolved::Other(Policy::By(bound))),
                    None => self.no_policy(NoPolicy::TooLong, policy),
                }
            }
        }
    }

    /// Resolves the policies that an object declares for its fields.
    pub(super) fn policies(&mut self, object: &ast::Object, index: usize) -> Policies {
        let (declared, store) = {
            let object = &self.program.objects[index];
            (object.declared.clone(), object.store)
        };
        let Some(level) = self.level_at(store) else { return Policies::default() };
        let mut found = Policies::default();
        for written in &object.fields {
            let Some(at) = declared.field_index(&written.name.name) else { continue };
            if let Some(policy) = &written.policy
                && let Some(Resolved::Other(policy)) = self.policy(policy, level)
            {
                found.fields.push((at as u16, policy));
            }
            for (name, policy) in &written.operation_policies {
                let field_type = &declared.fields[at].field_type;
                let Some(Method::Read(read, ..)) = find_method(field_type, &name.name) else {
                    let why = NoPolicy::Operation {
                        name: name.name.to_string(),
                        on: field_type.to_string(),
                    };
                    self.no_policy::<()>(why, policy);
                    continue;
                };
                let policy = match self.policy(policy, level) {
                    Some(Resolved::Own) => Policy::At(level),
                    Some(Resolved::Other(policy)) => policy,
                    None => continue,
                };
                found.operations.push((at as u16, read, policy));
            }
        }
        found
    }

    /// The level at which a `for` reads the contents of a collection, if it is not the store's own.
    ///
    /// # Errors
    ///
    /// If a mistake was reported.
    pub(super) fn contents_level(
        &mut self,
        place: &Place,
        span: Span,
    ) -> Result<Option<LevelId>, Reported> {
        let policies = &self.program.objects[place.kind.index()].policies;
        match policies.of(place.field, None::<CollectionRead>) {
            None => Ok(None),
            Some(Policy::At(level)) => Ok(Some(level)),
            Some(Policy::By(_)) => {
                let level = self.own_level(place);
                let own_level = Some(Edit { span, text: format!("{{text}}.to_list() at {level}") });
                self.diagnostics.push(m0602::render(Misuse::Plain { own_level }, span));
                Err(Reported)
            }
        }
    }

    fn own_level(&self, place: &Place) -> String {
        let level = self.level_at(self.program.store_of(place.kind));
        level.map_or_else(String::new, |level| self.program.levels.name(level).to_string())
    }

    /// Checks a `match` over an answer.
    pub(super) fn match_answer(
        &mut self,
        body: &mut Body,
        span: Span,
        scrutinee: &ast::Expr,
        arms: &[AnswerArm],
    ) -> Option<StmtKind> {
        let answer = self.answer(body, scrutinee);
        let inner = match answer.as_ref().map(|answer| &answer.value_type) {
            Some(Type::Rushed(inner)) => Some((**inner).clone()),
            Some(other) => {
                let (expected, found) = ("rushed<…>".into(), other.to_string());
                let mismatch = Mismatch::Types { expected, found };
                self.diagnostics.push(m0201::render(mismatch, scrutinee.span));
                None
            }
            None => None,
        };
        let own = answer.as_ref().and_then(|answer| self.store_answered(body, answer));
        let own = own.and_then(|store| self.level_at(store));
        let errors = self.diagnostics.errors;
        let (mut levels, mut checked, mut late) = (Vec::new(), Vec::new(), None);
        for arm in arms {
            body.open();
            let level = arm.name.as_ref().map(|_| self.level(&arm.level));
            let var = arm.name.as_ref().map(|name| self.bind(body, name, inner.clone()));
            let block = self.block(body, &arm.block);
            body.close();
            match (level, var) {
                (Some(level), Some(var)) => {
                    if let Some(level) = level {
                        self.arm_in_order(arm, level, (&levels, late.is_some()), own);
                        levels.push((level, arm.level.span));
                        checked.push((level, var, block));
                    }
                }
                _ => {
                    if late.replace(block).is_some() {
                        self.diagnostics.push(m0603::render(Arms::Again, arm.level.span));
                    }
                }
            }
        }
        let eventual = self.program.levels.find("eventual");
        let names_all = levels.iter().any(|(level, _)| Some(*level) == eventual);
        if late.is_none() && !names_all && levels.len() == checked.len() {
            let end = Span { start: span.end - 1, end: span.end };
            self.diagnostics.push(m0603::render(Arms::Incomplete { end }, Span::token(span.start)));
        }
        if self.diagnostics.errors > errors {
            return None;
        }
        Some(StmtKind::MatchAnswer {
            scrutinee: answer.filter(|_| inner.is_some())?,
            arms: checked,
            late,
        })
    }

    /// Reports an arm that stands in the wrong place, or that no answer reaches.
    fn arm_in_order(
        &mut self,
        arm: &AnswerArm,
        level: LevelId,
        (earlier, after_late): (&[(LevelId, Span)], bool),
        own: Option<LevelId>,
    ) {
        let span = arm.level.span;
        let levels = &self.program.levels;
        let name = levels.name(level).to_string();
        if after_late {
            self.diagnostics.push(m0603::render(Arms::AfterLate { name }, span));
        } else if let Some((before, at)) =
            earlier.iter().find(|(before, _)| levels.is_at_least(level, *before))
        {
            let before = levels.name(*before).to_string();
            self.diagnostics.push(m0603::render(Arms::Order { name, before, at: *at }, span));
        } else if let Some(own) = own.filter(|own| !levels.is_at_least(*own, level)) {
            let own = levels.name(own).to_string();
            self.diagnostics.push(w0601::render(&name, &own, span));
        }
    }

    /// The store that an answer comes from.
    fn store_answered(&self, body: &Body, answer: &Expr) -> Option<StoreId> {
        match &answer.kind {
            ExprKind::Policy(read, _) => self.store_read(read),
            ExprKind::Var(var) => body.answers.get(var).copied(),
            _ => None,
        }
    }

    /// Notes the store of the answer that a variable holds.
    pub(super) fn note_answer(&self, body: &mut Body, var: VarId, value: Option<&Expr>) {
        if let Some(store) = value.and_then(|value| self.store_answered(body, value)) {
            body.answers.insert(var, store);
        }
    }
}

/// Returns the milliseconds of a duration; none if there are too many.
fn milliseconds(written: &str) -> Option<u64> {
    let (digits, factor) = match written.strip_suffix("ms") {
        Some(digits) => (digits, 1),
        None => (written.strip_suffix('s')?, 1_000),
    };
    digits.replace('_', "").parse::<u64>().ok()?.checked_mul(factor)
}
