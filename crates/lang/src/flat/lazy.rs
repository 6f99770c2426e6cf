//! Operators whose first operand decides which of the others counts.
//!
//! The operands that `&&`, `||`, `??` and the `if` that gives a value do not choose have no effect,
//! so all operands may be evaluated first. Reads are evaluated so, because they then go out
//! together. A `query` can be expensive, and in MixT's Figure 13 avoiding it is the point: the
//! strong count is queried only if the weak count has reached the goal. So an operator with a query
//! in a later operand is lowered into a branch:
//!
//! ```text
//! near && box.exact(team) >= goal      if near { q = box.exact(team)
//!                                 ──►            c = q >= goal       }
//!                                      else    { c = false           }
//! ```
//!
//! A branch adds its condition to the context of the statements in it. The rules may forbid that
//! although they allow the operator: the first operand may be weaker than the query's store.
//! [`crate::flow`] finds these operators; they are lowered again, with all operands evaluated
//! first.

use std::collections::{HashMap, HashSet};

use mingle_model::{Type, Value};

use super::lower::Lowering;
use super::{Kind, Operand, StmtId};
use crate::hir::{self, Expr, ExprKind, FunctionId, Program};
use crate::ops::Op;

/// Operators of a transaction, by their number in the order in which they are lowered.
pub(crate) type Operators = HashSet<u32>;

/// An operator lowered into a branch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Choice {
    /// Its number.
    pub(crate) number: u32,
    /// The branch.
    pub(crate) branch: StmtId,
    /// True if the first operand is an option, and decides by being `some`.
    pub(crate) is_option: bool,
}

/// The state of the operators while a transaction is lowered.
#[derive(Default)]
pub(super) struct Choices {
    /// The operators that evaluate all operands first.
    eager: Operators,
    /// The number of operators that contain a query.
    count: u32,
    /// For each function, true if it contains a query.
    asking: HashMap<FunctionId, bool>,
}

impl Choices {
    pub(super) fn new(eager: &Operators) -> Self {
        Self { eager: eager.clone(), ..Self::default() }
    }
}

impl<'a> Lowering<'a> {
    /// Lowers an operator.
    pub(super) fn operation(&mut self, op: &Op, args: &'a [Expr], expr: &Expr) -> Operand {
        if let Some(chosen) = self.choice(op, args, expr) {
            return chosen;
        }
        let args = args.iter().map(|arg| self.expr(arg)).collect();
        self.local(op.clone(), args, expr.value_type.clone(), expr.span)
    }

    /// Lowers an operator into a branch, if its first operand decides whether a query is asked.
    fn choice(&mut self, op: &Op, args: &'a [Expr], expr: &Expr) -> Option<Operand> {
        if !matches!(op, Op::And | Op::Or | Op::OrValue | Op::OrOption | Op::Select) {
            return None;
        }
        if !args[1..].iter().any(|arg| asks(self.program, &mut self.choices.asking, arg)) {
            return None;
        }
        let number = self.choices.count;
        self.choices.count += 1;
        if self.choices.eager.contains(&number) {
            return None;
        }
        let (branch, chosen) = self.branch_for(op, args, expr);
        let is_option = matches!(op, Op::OrValue | Op::OrOption);
        self.flat.choices.push(Choice { number, branch, is_option });
        Some(chosen)
    }

    fn branch_for(&mut self, op: &Op, args: &'a [Expr], expr: &Expr) -> (StmtId, Operand) {
        let span = expr.span;
        let first = self.expr(&args[0]);
        let condition = match op {
            Op::OrValue | Op::OrOption => {
                self.local(Op::IsSome, vec![first.clone()], Type::Bool, args[0].span)
            }
            _ => first.clone(),
        };
        let dst = self.slot(None, expr.value_type.clone());
        let id = self.push(Kind::Return { value: None }, span);
        let (then_block, ()) = self.nested(id, |to| {
            let src = match op {
                Op::And | Op::Select => to.expr(&args[1]),
                Op::Or => Operand::Const(Value::Bool(true)),
                Op::OrValue => {
                    to.local(Op::Unwrap, vec![first.clone()], expr.value_type.clone(), span)
                }
                _ => first.clone(),
            };
            to.push(Kind::Copy { dst, src }, span);
        });
        let (else_block, ()) = self.nested(id, |to| {
            let src = match op {
                Op::And => Operand::Const(Value::Bool(false)),
                Op::Select => to.expr(&args[2]),
                _ => to.expr(&args[1]),
            };
            to.push(Kind::Copy { dst, src }, span);
        });
        self.flat.statements[id.index()].kind = Kind::If {
            condition,
            condition_span: args[0].span,
            then_block,
            else_block,
            merges: vec![dst],
        };
        (id, Operand::Slot(dst))
    }
}

/// True if an expression contains a query.
fn asks(program: &Program, asking: &mut HashMap<FunctionId, bool>, expr: &Expr) -> bool {
    let mut any = |exprs: &[Expr]| exprs.iter().any(|expr| asks(program, asking, expr));
    match &expr.kind {
        ExprKind::Operation(store, index, args) => {
            let operation = &program.stores[store.index()].operations[*index as usize];
            !operation.is_command || any(args)
        }
        ExprKind::Call(function, args) => any(args) || function_asks(program, asking, *function),
        ExprKind::Const(_) | ExprKind::Var(_) | ExprKind::Now | ExprKind::Unique(_) => false,
        ExprKind::Local(_, args) => any(args),
        ExprKind::Struct(inits) => inits.iter().any(|(_, value)| asks(program, asking, value)),
        ExprKind::Register(place) => asks(program, asking, &place.object),
        ExprKind::Collection(place, _, args) => any(args) || asks(program, asking, &place.object),
        ExprKind::Exists(object, _) => asks(program, asking, object),
        ExprKind::Endorse { value, .. } | ExprKind::Policy(value, _) => {
            asks(program, asking, value)
        }
        ExprKind::Take { place, amount, .. } => {
            asks(program, asking, amount) || asks(program, asking, &place.object)
        }
        ExprKind::Create { key, inits, .. } => {
            key.given().is_some_and(|key| asks(program, asking, key))
                || inits.iter().any(|(_, value)| asks(program, asking, value))
        }
    }
}

fn function_asks(
    program: &Program,
    asking: &mut HashMap<FunctionId, bool>,
    id: FunctionId,
) -> bool {
    if let Some(known) = asking.get(&id) {
        return *known;
    }
    // Functions do not call each other in a cycle; one with a mistake might.
    asking.insert(id, false);
    let function: &hir::Function = &program.functions[id.index()];
    let lets = function.lets.iter().map(|(_, value)| value);
    let found = lets.chain(&function.body).any(|expr| asks(program, asking, expr));
    asking.insert(id, found);
    found
}
