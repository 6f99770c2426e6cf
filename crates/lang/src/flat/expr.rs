//! Expressions: each effect becomes a statement of its own, functions stand in place.

use mingle_model::{LevelId, Type, Value};

use super::lower::{INLINED_MAX, Lowering};
use super::unique::Written;
use super::{Access, Endorsement, Kind, Operand, ReadKind, Slot, WriteKind};
use crate::hir::{self, Expr, ExprKind, NewKey, ObjectId, VarId};
use crate::ops::Op;
use crate::syntax::Span;

impl<'a> Lowering<'a> {
    pub(super) fn local(
        &mut self,
        op: Op,
        args: Vec<Operand>,
        value_type: Type,
        span: Span,
    ) -> Operand {
        let dst = self.slot(None, value_type);
        self.push(Kind::Local { dst, op, args }, span);
        Operand::Slot(dst)
    }

    #[allow(clippy::too_many_arguments)]
    pub(super) fn read(
        &mut self,
        kind: ReadKind,
        store: hir::StoreId,
        object: Option<(Operand, Span)>,
        args: Vec<(Operand, Span)>,
        dsts: Vec<Slot>,
        span: Span,
    ) -> Operand {
        let first = Operand::Slot(dsts[0]);
        self.push(Kind::Read(Access { store, kind, object, args, dsts, answering: None }), span);
        first
    }

    /// Evaluates the value of a variable, so that the variable has a slot of its own.
    /// The value of a variable that is assigned at `name_span`, by a statement at `span`.
    pub(super) fn named(
        &mut self,
        var: VarId,
        value: &'a Expr,
        (name_span, span): (Span, Span),
    ) -> Operand {
        let before = self.flat.slots.len();
        let operand = self.expr(value);
        let name = self.vars[var.index()].name.clone();
        match &operand {
            Operand::Const(_) => operand,
            // An answer is not copied: a `match` finds its read.
            Operand::Slot(_) if matches!(value.value_type, Type::Rushed(_)) => operand,
            // A slot that this expression made for itself becomes the variable's.
            Operand::Slot(slot)
                if slot.index() >= before && self.flat.slots[slot.index()].name.is_none() =>
            {
                let info = &mut self.flat.slots[slot.index()];
                (info.name, info.assigned) = (Some(name), Some(name_span));
                operand
            }
            Operand::Slot(_) => {
                let dst = self.slot(Some(name), value.value_type.clone());
                self.flat.slots[dst.index()].assigned = Some(name_span);
                self.push(Kind::Copy { dst, src: operand }, span);
                Operand::Slot(dst)
            }
        }
    }

    pub(super) fn exprs(&mut self, exprs: &'a [Expr]) -> Vec<(Operand, Span)> {
        exprs.iter().map(|expr| (self.expr(expr), expr.span)).collect()
    }

    pub(super) fn expr(&mut self, expr: &'a Expr) -> Operand {
        let span = expr.span;
        match &expr.kind {
            ExprKind::Const(value) => Operand::Const(value.clone()),
            ExprKind::Var(var) => self.env[var.index()].clone(),
            ExprKind::Local(op, args) => self.operation(op, args, expr),
            ExprKind::Struct(inits) => {
                let mut values: Vec<(u16, Operand)> =
                    inits.iter().map(|(index, value)| (*index, self.expr(value))).collect();
                values.sort_by_key(|(index, _)| *index);
                let args = values.into_iter().map(|(_, value)| value).collect();
                self.local(Op::MakeStruct, args, expr.value_type.clone(), span)
            }
            ExprKind::Register(place) => {
                self.place_read(ReadKind::Register(place.kind, place.field), place, &[], expr)
            }
            ExprKind::Collection(place, read, args) => self.place_read(
                ReadKind::Collection(place.kind, place.field, *read),
                place,
                args,
                expr,
            ),
            ExprKind::Exists(object, kind) => {
                let operand = self.expr(object);
                let dst = self.slot(None, Type::Bool);
                let store = self.program.store_of(*kind);
                self.read(
                    ReadKind::Exists(*kind),
                    store,
                    Some((operand, object.span)),
                    Vec::new(),
                    vec![dst],
                    span,
                )
            }
            ExprKind::Create { is_put, kind, key, inits } => {
                self.create(expr, *is_put, *kind, key, inits)
            }
            ExprKind::Call(function, args) => self.call(*function, args, expr),
            ExprKind::Operation(store, index, args) => {
                let args = self.exprs(args);
                let operation = &self.program.stores[store.index()].operations[*index as usize];
                let result = operation.result.clone();
                if !operation.is_command {
                    let dst = self.slot(None, result.unwrap_or(Type::Bool));
                    return self.read(ReadKind::Query(*index), *store, None, args, vec![dst], span);
                }
                self.command((*store, *index), result, args, span)
            }
            ExprKind::Take { place, amount, gives } => self.take(place, amount, *gives, span),
            ExprKind::Now => self.now(span),
            ExprKind::Unique(site) => self.unique(*site, span),
            ExprKind::Policy(read, policy) => self.answered_read(read, *policy, expr),
            ExprKind::Endorse { value, level, reason } => {
                let src = self.expr(value);
                let endorsement = self.flat.endorsements.len() as u32;
                self.flat.endorsements.push(Endorsement {
                    span,
                    level: *level,
                    reason: reason.clone(),
                });
                let dst = self.slot(None, expr.value_type.clone());
                self.push(Kind::Endorse { dst, src, endorsement }, span);
                Operand::Slot(dst)
            }
        }
    }

    /// Runs a command, and returns its result.
    fn command(
        &mut self,
        (store, index): (hir::StoreId, u32),
        result: Option<Type>,
        args: Vec<(Operand, Span)>,
        span: Span,
    ) -> Operand {
        let dsts: Vec<Slot> = result.map(|found| self.slot(None, found)).into_iter().collect();
        let value = dsts.first().map(|slot| Operand::Slot(*slot));
        let kind = WriteKind::Command(index);
        let access = Access { store, kind, object: None, args, dsts, answering: None };
        self.push(Kind::Write(access), span);
        value.unwrap_or(Operand::Const(Value::Bool(false)))
    }

    fn now(&mut self, span: Span) -> Operand {
        let dst = self.slot(None, Type::Time);
        self.push(Kind::Now { dst }, span);
        Operand::Slot(dst)
    }

    fn unique(&mut self, site: u32, span: Span) -> Operand {
        let dst = self.slot(None, Type::String);
        self.push(Kind::Unique { dst, site }, span);
        Operand::Slot(dst)
    }

    /// Reads the contents of a collection for a loop, a list for each of its variables.
    pub(super) fn columns(
        &mut self,
        (first, second): (VarId, Option<VarId>),
        kind: ReadKind,
        (place, args): (&'a hir::Place, &'a [Expr]),
        level: Option<LevelId>,
        span: Span,
    ) -> Vec<Operand> {
        let object = (self.expr(&place.object), place.object.span);
        let args = self.exprs(args);
        let of = |var: VarId| {
            Type::List(self.vars[var.index()].var_type.clone().unwrap_or(Type::Bool).into())
        };
        let types: Vec<Type> = std::iter::once(first).chain(second).map(of).collect();
        let dsts: Vec<Slot> = types.into_iter().map(|list| self.slot(None, list)).collect();
        let lists = dsts.iter().map(|slot| Operand::Slot(*slot)).collect();
        self.read(kind, self.program.store_of(place.kind), Some(object), args, dsts, span);
        if let Some(level) = level {
            self.answer_last(hir::Policy::At(level));
        }
        lists
    }

    fn place_read(
        &mut self,
        kind: ReadKind,
        place: &'a hir::Place,
        args: &'a [Expr],
        expr: &Expr,
    ) -> Operand {
        let object = self.expr(&place.object);
        let args = self.exprs(args);
        let dst = self.slot(None, expr.value_type.clone());
        let store = self.program.store_of(place.kind);
        self.read(kind, store, Some((object, place.object.span)), args, vec![dst], expr.span)
    }

    pub(super) fn create(
        &mut self,
        expr: &'a Expr,
        is_put: bool,
        kind: ObjectId,
        key: &'a NewKey,
        inits: &'a [(u16, Expr)],
    ) -> Operand {
        let span = expr.span;
        let (key_operand, key_span) = match key {
            NewKey::Given(key) => (self.expr(key), key.span),
            NewKey::Fresh(site) => (self.unique(*site, span), span),
            NewKey::Drawn { operation, site } => (self.draw(kind, *operation, *site, span), span),
        };
        let name = self.program.objects[kind.index()].declared.name.clone();
        let object =
            self.local(Op::MakeRef(name), vec![key_operand], expr.value_type.clone(), span);
        let values: Vec<(Operand, Span)> =
            inits.iter().map(|(_, value)| (self.expr(value), value.span)).collect();
        let store = self.program.store_of(kind);
        let object_at = (object.clone(), key_span);
        if !is_put && key.given().is_some() {
            self.must_be_new(kind, &object_at, span);
        }
        let written: Vec<Written> = inits
            .iter()
            .zip(&values)
            .map(|((field, _), (value, span))| (*field, value.clone(), *span))
            .collect();
        self.uniques(kind, &object_at, &written, !is_put, span);
        let fields = inits.iter().map(|(field, _)| *field).collect();
        let kind = WriteKind::Create(kind, fields);
        let access = Access {
            store,
            kind,
            object: Some(object_at),
            args: values,
            dsts: Vec::new(),
            answering: None,
        };
        self.push(Kind::Write(access), span);
        object
    }

    /// Draws the key of an object. The argument tells one draw of the transaction from another.
    fn draw(&mut self, kind: ObjectId, operation: u32, site: u32, span: Span) -> Operand {
        let named = self.unique(site, span);
        let dst = self.slot(None, Type::Int);
        let store = self.program.store_of(kind);
        let read = ReadKind::Draw(kind, operation);
        self.read(read, store, None, vec![(named, span)], vec![dst], span)
    }

    pub(super) fn call(
        &mut self,
        function: hir::FunctionId,
        args: &'a [Expr],
        expr: &Expr,
    ) -> Operand {
        let args: Vec<Operand> = args.iter().map(|arg| self.expr(arg)).collect();
        let before = self.flat.statements.len();
        let program = self.program;
        let function = &program.functions[function.index()];
        let Some(body) = &function.body else { return Operand::Const(Value::Bool(false)) };
        // A call takes time even where it adds no statement.
        self.calls += 1 + function.lets.len();
        self.too_large |= self.calls > INLINED_MAX;
        if self.too_large {
            return Operand::Const(Value::Bool(false));
        }
        let outer_call = self.call;
        self.call = outer_call.or(Some(expr.span));
        let outer_vars = std::mem::replace(&mut self.vars, &function.vars);
        let mut env = args;
        env.resize(function.vars.len(), Operand::Const(Value::Bool(false)));
        let outer_env = std::mem::replace(&mut self.env, env);
        let outer_changes = std::mem::take(&mut self.changes);
        for (var, value) in &function.lets {
            let name_span = self.vars[var.index()].span;
            let value = self.named(*var, value, (name_span, value.span));
            self.set(*var, value);
        }
        let result = self.expr(body);
        self.changes = outer_changes;
        self.env = outer_env;
        self.vars = outer_vars;
        self.call = outer_call;
        if outer_call.is_none() {
            self.inlined += self.flat.statements.len() - before;
        }
        self.too_large |= self.inlined.max(self.flat.statements.len() - before) > INLINED_MAX;
        result
    }
}
