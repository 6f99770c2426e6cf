//! Reads with a policy, and the arms of a `match` over their answers.
//!
//! A plain run has one state, so the value of an answer does not depend on its level. The levels come
//! from outside: a test that gives the same ones to a split run compares both *given the answers*.

use mingle_model::{LevelId, Levels, Name, Ref, Value};

use super::{Run, Stop};
use crate::hir::{Expr, ExprKind, Policy, Stmt, StoreId, VarId};
use crate::plain::Abort;

/// The level of the answer to a read of an object: the store and the object; none if it is late.
pub type Answered<'a> = &'a dyn Fn(StoreId, &Ref) -> Option<Name>;

/// Returns one of the levels that a store may answer at, or late, by a number.
pub fn answered_level(levels: &Levels, store: LevelId, number: u64) -> Option<Name> {
    let mut all: Vec<Option<Name>> = vec![None, Some(levels.name(store).clone())];
    for weaker in ["causal", "eventual"] {
        let level = levels.find(weaker).filter(|level| levels.is_stronger(store, *level));
        all.extend(level.map(|level| Some(levels.name(level).clone())));
    }
    let index = usize::try_from(number % all.len() as u64).unwrap_or(0);
    all.swap_remove(index)
}

impl Run<'_> {
    /// Evaluates a read with a policy.
    pub(super) fn answered(&mut self, read: &Expr, policy: Policy) -> Result<Value, Abort> {
        let Policy::By(_) = policy else { return self.expr(read) };
        let (store, object, value) = match &read.kind {
            ExprKind::Register(place) => {
                let object = self.object(&place.object)?;
                let value = self.register(&object, place);
                (self.program.store_of(place.kind), object, value)
            }
            ExprKind::Collection(place, operation, args) => {
                let object = self.object(&place.object)?;
                let args = self.exprs(args)?;
                let value = self.collection(&object, place, *operation, &args)?;
                (self.program.store_of(place.kind), object, value)
            }
            ExprKind::Exists(object, kind) => {
                let object = self.object(object)?;
                let value = Value::Bool(self.state.exists(&object));
                (self.program.store_of(*kind), object, value)
            }
            _ => return self.expr(read),
        };
        Ok(self.answer(store, &object, value))
    }

    fn answer(&self, store: StoreId, object: &Ref, value: Value) -> Value {
        let own = || self.program.levels.name(self.program.level_of(store)).clone();
        match self.outside.answered.map_or_else(|| Some(own()), |level| level(store, object)) {
            Some(level) => Value::answer(&level, value),
            None => Value::late(),
        }
    }

    /// Runs the arm that takes an answer.
    pub(super) fn answer_arm(
        &mut self,
        answer: &Value,
        arms: &[(LevelId, VarId, Vec<Stmt>)],
        late: Option<&[Stmt]>,
    ) -> Result<(), Stop> {
        let (level, value) = answer.as_answer().expect("an answer has a level");
        let levels = &self.program.levels;
        let answered = levels.find(level).zip(value);
        let arm = answered.and_then(|(level, value)| {
            let (_, var, block) = arms.iter().find(|(arm, ..)| levels.is_at_least(level, *arm))?;
            Some((*var, value.clone(), block))
        });
        match arm {
            Some((var, value, block)) => {
                self.vars[var.index()] = value;
                self.block(block)
            }
            None => self.block(late.unwrap_or_default()),
        }
    }
}
