//! The plans of takes that run ahead: each is a transaction of its own, which takes and says if it did.

use std::sync::Arc;

use mingle_model::Type;

use super::{Plan, plan};
use crate::diagnostic::Diagnostics;
use crate::flat::Held;
use crate::flow::{self, Rules};
use crate::hir::{
    Expr, ExprKind, ObjectId, Place, Program, Stmt, StmtKind, StoreId, Transaction, Var, VarId,
};
use crate::split::Mutation;

/// A bounded counter from which a transaction takes ahead.
#[derive(Clone, Debug)]
pub struct HoldPlan {
    /// The store.
    pub store: StoreId,
    /// The kind of object.
    pub kind: ObjectId,
    /// The counter.
    pub field: u16,
    /// A transaction that takes: its arguments are the object and the amount, its result says if it took.
    pub plan: Arc<Plan>,
}

/// A counter: its kind of object, and its field.
pub(super) type Counter = (ObjectId, u16);

/// Returns the index of the counter of a take; adds it if it is not there.
pub(super) fn index_of(holds: &mut Vec<Counter>, held: &Held) -> u32 {
    let counter = (held.kind, held.field);
    let found = holds.iter().position(|known| *known == counter).unwrap_or_else(|| {
        holds.push(counter);
        holds.len() - 1
    });
    found as u32
}

/// Returns the plans of takes from these counters, for a transaction that takes ahead.
pub(super) fn plans(
    program: &Program,
    transaction: &Transaction,
    holds: Vec<Counter>,
) -> Vec<HoldPlan> {
    let plans = holds.into_iter().map(|(kind, field)| {
        let taking = taking(program, transaction, (kind, field));
        let flat = flow::flatten(program, &taking, Rules::default());
        let flat = flat.expect("a transaction without functions is small");
        let mut found = Diagnostics::default();
        let (flat, flow) = flow::analyse(program, &taking, flat, Rules::default(), &mut found);
        let plan = Arc::new(plan(program, &taking, flat, &flow, Mutation::None));
        HoldPlan { store: program.store_of(kind), kind, field, plan }
    });
    plans.collect()
}

/// Returns the transaction that takes. It has the name of the one for which it takes, whose caller's rights it needs.
fn taking(program: &Program, transaction: &Transaction, (kind, field): Counter) -> Transaction {
    let span = transaction.span;
    let object_type = Type::Ref(program.objects[kind.index()].declared.name.clone());
    let var = |name: &str, var_type: Type| Var {
        name: name.into(),
        var_type: Some(var_type),
        span,
        mutable: false,
    };
    let read =
        |var: u32, value_type: Type| Expr { kind: ExprKind::Var(VarId(var)), value_type, span };
    let object = Box::new(read(0, object_type.clone()));
    let place = Place { object, kind, field, span };
    let amount = Box::new(read(1, Type::Int));
    let take = ExprKind::Take { place, amount, gives: false };
    let take = Expr { kind: take, value_type: Type::Bool, span };
    let statement = |kind| Stmt { kind, span };
    Transaction {
        name: transaction.name.clone(),
        span,
        docs: String::new(),
        isolated: None,
        vars: vec![var("object", object_type), var("amount", Type::Int), var("taken", Type::Bool)],
        param_count: 2,
        result: Some(Type::Bool),
        body: vec![
            statement(StmtKind::Let(VarId(2), take)),
            statement(StmtKind::Return(Some(read(2, Type::Bool)))),
        ],
    }
}
