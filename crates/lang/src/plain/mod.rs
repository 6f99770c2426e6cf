//! The plain interpreter: runs an unsplit program over plain maps.
//!
//! It shares only the checked tree and the local operations with the later stages of the compiler.
//! Tests compare split programs with it: both must end in the same state with the same result.

mod answers;
mod bounded;
mod outside;
mod slice;
mod state;
mod unique;

use mingle_model::{BuiltinQuery, Name, Ref, Taken, Time, Value};

use crate::hir::{
    CollectionRead, Expr, ExprKind, FunctionId, Iterated, NewKey, ObjectId, Place, Program, Stmt,
    StmtKind, StoreId, Transaction, VarId, WriteOp,
};
use crate::ops::{self, Op};
use crate::syntax::Span;

pub use answers::{Answered, answered_level};
pub use outside::{Endorsed, EndorsedValues, Operations, Outside};
pub use state::{FieldState, ObjectState, State};

/// The reason why a plain run ended without a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Abort {
    /// A `require` failed.
    Require(Option<Name>, String),
    /// A keyed `new` found that its object exists.
    Exists(Ref),
    /// Another object has the values of a `unique`.
    Taken(Taken),
    /// A value grew too large, or there were too many steps.
    Limit,
    /// The program calls an operation of a store, and the caller supplied no operations.
    Operation,
    /// The run needs an endorsed value that the early run did not record.
    NotEndorsed(Span),
}

enum Stop {
    Abort(Abort),
    Return(Option<Value>),
}

impl From<Abort> for Stop {
    fn from(abort: Abort) -> Self {
        Self::Abort(abort)
    }
}

/// Runs an unsplit transaction. If it aborts, the state is unchanged.
///
/// # Errors
///
/// The reason for the abort.
pub fn run(
    program: &Program,
    transaction: &Transaction,
    arguments: &[Value],
    state: &mut State,
    now: Time,
    seed: u128,
    steps_max: u64,
) -> Result<Option<Value>, Abort> {
    let outside = Outside::default();
    run_with(program, transaction, arguments, state, (now, seed, steps_max), outside)
}

/// Runs a transaction as [`run`] does, with inputs from outside of the program: the time, the seed,
/// the bound on steps, the operations of stores, and the endorsed values.
///
/// # Errors
///
/// The reason for the abort.
pub fn run_with(
    program: &Program,
    transaction: &Transaction,
    arguments: &[Value],
    state: &mut State,
    (now, seed, steps_max): (Time, u128, u64),
    outside: Outside<'_>,
) -> Result<Option<Value>, Abort> {
    let mut after = state.clone();
    let mut run = Run {
        program,
        vars: vec![Value::Bool(false); transaction.vars.len()],
        state: &mut after,
        now,
        seed,
        rounds: Vec::new(),
        steps_left: steps_max,
        outside,
    };
    run.vars[..arguments.len()].clone_from_slice(arguments);
    let result = match run.block(&transaction.body) {
        Ok(()) => None,
        Err(Stop::Return(value)) => value,
        Err(Stop::Abort(abort)) => return Err(abort),
    };
    *state = after;
    Ok(result)
}

struct Run<'a> {
    program: &'a Program,
    vars: Vec<Value>,
    state: &'a mut State,
    now: Time,
    seed: u128,
    rounds: Vec<u64>,
    steps_left: u64,
    outside: Outside<'a>,
}

impl Run<'_> {
    /// True if the run only records the values of endorsements.
    fn is_early(&self) -> bool {
        matches!(self.outside.endorsed, Endorsed::Early(_))
    }

    fn block(&mut self, statements: &[Stmt]) -> Result<(), Stop> {
        statements.iter().try_for_each(|statement| self.statement(statement))
    }

    fn spend(&mut self) -> Result<(), Abort> {
        self.steps_left = self.steps_left.checked_sub(1).ok_or(Abort::Limit)?;
        Ok(())
    }

    fn statement(&mut self, statement: &Stmt) -> Result<(), Stop> {
        self.spend()?;
        match &statement.kind {
            StmtKind::Let(var, value) | StmtKind::Assign(var, value) => {
                self.vars[var.index()] = self.expr(value)?;
            }
            StmtKind::Write(write) => self.write(write)?,
            StmtKind::If { condition, then_block, else_block } => {
                let block = if self.condition(condition)? { then_block } else { else_block };
                self.block(block)?;
            }
            StmtKind::While { condition, body } => {
                self.rounds.push(0);
                while self.condition(condition)? {
                    self.spend()?;
                    self.block(body)?;
                    self.next_round();
                }
                self.rounds.pop();
            }
            StmtKind::For { first, second, iterated, body } => {
                self.for_loop((*first, *second), iterated, body)?;
            }
            StmtKind::Match { scrutinee, some_var, some_block, none_block } => {
                match self.expr(scrutinee)? {
                    Value::Option(Some(value)) => {
                        self.vars[some_var.index()] = (*value).clone();
                        self.block(some_block)?;
                    }
                    _ => self.block(none_block)?,
                }
            }
            StmtKind::MatchAnswer { scrutinee, arms, late } => {
                let answer = self.expr(scrutinee)?;
                self.answer_arm(&answer, arms, late.as_deref())?;
            }
            StmtKind::Require { condition, message, code } => {
                let holds = self.condition(condition)?;
                let message = self.expr(message)?;
                if !holds && !self.is_early() {
                    let message = message.as_str().unwrap_or_default().to_owned();
                    return Err(Abort::Require(code.clone(), message).into());
                }
            }
            StmtKind::Return(value) => {
                let value = value.as_ref().map(|value| self.expr(value)).transpose()?;
                if !self.is_early() {
                    return Err(Stop::Return(value));
                }
            }
            StmtKind::Expr(value) => {
                self.expr(value)?;
            }
        }
        Ok(())
    }

    fn next_round(&mut self) {
        *self.rounds.last_mut().expect("a loop is running") += 1;
    }

    fn for_loop(
        &mut self,
        (first, second): (VarId, Option<VarId>),
        iterated: &Iterated,
        body: &[Stmt],
    ) -> Result<(), Stop> {
        let items: Vec<(Value, Option<Value>)> = match iterated {
            Iterated::List(list) => {
                let list = self.expr(list)?;
                list.as_list().expect("a list").iter().map(|item| (item.clone(), None)).collect()
            }
            Iterated::Slice { map, read, args, .. } => {
                let object = self.object(&map.object)?;
                let args = self.exprs(args)?;
                self.map_slice(&object, map, *read, &args)
                    .into_iter()
                    .map(|(key, value)| (key, Some(value)))
                    .collect()
            }
            Iterated::Collection(place, _) => {
                let object = self.object(&place.object)?;
                match self.state.field(&object, place.field) {
                    Some(FieldState::Set(elements)) => {
                        elements.iter().map(|element| (element.clone(), None)).collect()
                    }
                    Some(FieldState::Log(lines)) => {
                        lines.iter().map(|line| (line.clone(), None)).collect()
                    }
                    Some(FieldState::Map(entries)) => entries
                        .iter()
                        .map(|(key, value)| (key.clone(), Some(value.clone())))
                        .collect(),
                    _ => Vec::new(),
                }
            }
        };
        self.rounds.push(0);
        for (item, value) in items {
            self.spend()?;
            self.vars[first.index()] = item;
            if let (Some(second), Some(value)) = (second, value) {
                self.vars[second.index()] = value;
            }
            self.block(body)?;
            self.next_round();
        }
        self.rounds.pop();
        Ok(())
    }

    fn condition(&mut self, condition: &Expr) -> Result<bool, Abort> {
        Ok(self.expr(condition)?.as_bool().expect("a condition is a bool"))
    }

    fn object(&mut self, object: &Expr) -> Result<Ref, Abort> {
        match self.expr(object)? {
            Value::Ref(object) => Ok(object),
            other => panic!("{other} is no ref: the program was not checked"),
        }
    }

    fn write(&mut self, write: &WriteOp) -> Result<(), Abort> {
        match write {
            WriteOp::Assign(place, op, value) => {
                let object = self.object(&place.object)?;
                let value = match op {
                    None => self.expr(value)?,
                    Some(op) => {
                        let old = self.register(&object, place);
                        let value = self.expr(value)?;
                        ops::apply(op, &[old, value]).map_err(|_| Abort::Limit)?
                    }
                };
                if self.is_early() {
                    return Ok(());
                }
                let written = [(place.field, value)];
                self.uniques(place.kind, &object, &written)?;
                let [(field, value)] = written;
                self.state.assign(&object, field, value);
            }
            WriteOp::Collection(place, op, args) => {
                let object = self.object(&place.object)?;
                let args = self.exprs(args)?;
                let declared = &self.program.objects[place.kind.index()].declared;
                let field_type = &declared.fields[usize::from(place.field)].field_type;
                if !self.is_early() {
                    self.state.change(&object, place.field, field_type, *op, args);
                }
            }
            WriteOp::Give(place, amount) => {
                self.take(place, amount, true)?;
            }
            WriteOp::Delete(object, _) => {
                let object = self.object(object)?;
                if !self.is_early() {
                    self.state.delete(&object);
                }
            }
        }
        Ok(())
    }

    fn register(&self, object: &Ref, place: &Place) -> Value {
        match self.state.field(object, place.field) {
            Some(FieldState::Register(value)) => value.clone(),
            _ => self.program.objects[place.kind.index()].declared.fields[usize::from(place.field)]
                .default
                .clone(),
        }
    }

    fn exprs(&mut self, exprs: &[Expr]) -> Result<Vec<Value>, Abort> {
        exprs.iter().map(|expr| self.expr(expr)).collect()
    }

    fn expr(&mut self, expr: &Expr) -> Result<Value, Abort> {
        Ok(match &expr.kind {
            ExprKind::Const(value) => value.clone(),
            ExprKind::Var(var) => self.vars[var.index()].clone(),
            ExprKind::Local(op, args) => {
                let args = self.exprs(args)?;
                ops::apply(op, &args).map_err(|_| Abort::Limit)?
            }
            ExprKind::Struct(inits) => {
                let mut values = Vec::new();
                for (index, value) in inits {
                    values.push((*index, self.expr(value)?));
                }
                values.sort_by_key(|(index, _)| *index);
                Value::Struct(values.into_iter().map(|(_, value)| value).collect())
            }
            ExprKind::Register(place) => {
                let object = self.object(&place.object)?;
                self.register(&object, place)
            }
            ExprKind::Collection(place, read, args) => {
                let object = self.object(&place.object)?;
                let args = self.exprs(args)?;
                self.collection(&object, place, *read, &args)?
            }
            ExprKind::Exists(object, _) => {
                let object = self.object(object)?;
                Value::Bool(self.state.exists(&object))
            }
            ExprKind::Create { is_put, kind, key, inits } => {
                self.create(*is_put, *kind, key, inits)?
            }
            ExprKind::Call(function, args) => self.call(*function, args)?,
            ExprKind::Operation(store, operation, args) => {
                self.operate(*store, *operation, args)?
            }
            ExprKind::Take { place, amount, gives } => {
                Value::Bool(self.take(place, amount, *gives)?)
            }
            ExprKind::Now => Value::Time(self.now),
            ExprKind::Unique(site) => ops::unique(self.seed, *site, &self.rounds),
            ExprKind::Policy(read, policy) => self.answered(read, *policy)?,
            ExprKind::Endorse { value, .. } => self.endorse(value, expr.span)?,
        })
    }

    fn create(
        &mut self,
        is_put: bool,
        kind: ObjectId,
        key: &NewKey,
        inits: &[(u16, Expr)],
    ) -> Result<Value, Abort> {
        let name = self.program.objects[kind.index()].declared.name.clone();
        let key_value = match key {
            NewKey::Given(key) => self.expr(key)?,
            NewKey::Fresh(site) => ops::unique(self.seed, *site, &self.rounds),
            // An endorsement cannot depend on it.
            NewKey::Drawn { .. } if self.is_early() => Value::Int(0),
            NewKey::Drawn { .. } => Value::Int(self.state.draw(&name)),
        };
        let object = Ref::new(name, key_value);
        let mut values = Vec::new();
        for (field, value) in inits {
            values.push((*field, self.expr(value)?));
        }
        if self.is_early() {
            return Ok(Value::Ref(object));
        }
        if !is_put && key.given().is_some() && self.state.exists(&object) {
            return Err(Abort::Exists(object));
        }
        self.uniques(kind, &object, &values)?;
        self.state.create(&object);
        for (field, value) in values {
            self.state.assign(&object, field, value);
        }
        Ok(Value::Ref(object))
    }

    fn operate(&mut self, store: StoreId, operation: u32, args: &[Expr]) -> Result<Value, Abort> {
        let args = self.exprs(args)?;
        let declared = &self.program.stores[store.index()].operations[operation as usize];
        if let Some(read) = declared.builtin.as_ref().and_then(BuiltinQuery::index) {
            return Ok(self.state.indexed(&self.program.schema, read, &args));
        }
        let call = self.outside.operations.ok_or(Abort::Operation)?;
        let mut scratch = self.is_early().then(|| self.state.clone());
        let state = scratch.as_mut().unwrap_or(self.state);
        Ok(call(state, store, operation, &args).unwrap_or(Value::Bool(false)))
    }

    fn endorse(&mut self, value: &Expr, span: Span) -> Result<Value, Abort> {
        if let Endorsed::Given { values, needless } = &self.outside.endorsed
            && !needless.contains(&span)
        {
            let noted = values.get(&(span, self.rounds.clone()));
            return noted.cloned().ok_or(Abort::NotEndorsed(span));
        }
        let value = self.expr(value)?;
        if let Endorsed::Early(values) = &mut self.outside.endorsed {
            values.insert((span, self.rounds.clone()), value.clone());
        }
        Ok(value)
    }

    fn call(&mut self, function: FunctionId, args: &[Expr]) -> Result<Value, Abort> {
        let mut args = self.exprs(args)?;
        self.spend()?;
        let function = &self.program.functions[function.index()];
        args.resize(function.vars.len(), Value::Bool(false));
        let outer = std::mem::replace(&mut self.vars, args);
        for (var, value) in &function.lets {
            self.vars[var.index()] = self.expr(value)?;
        }
        let body = function.body.as_ref().expect("a checked function has a body");
        let result = self.expr(body);
        self.vars = outer;
        result
    }

    fn collection(
        &mut self,
        object: &Ref,
        place: &Place,
        read: CollectionRead,
        args: &[Value],
    ) -> Result<Value, Abort> {
        use CollectionRead as R;
        if read.is_map_slice() {
            let keys = self.map_slice(object, place, read, args).into_iter().map(|(key, _)| key);
            return ops::apply(&Op::MakeList, &keys.collect::<Vec<_>>()).map_err(|_| Abort::Limit);
        }
        let int = |count: usize| Value::Int(count as i64);
        let list = |items: Vec<Value>| ops::apply(&Op::MakeList, &items).map_err(|_| Abort::Limit);
        let number =
            |value: &Value| usize::try_from(value.as_int().unwrap_or_default()).unwrap_or(0);
        let none = FieldState::Register(Value::NONE);
        let field = self.state.field(object, place.field).unwrap_or(&none);
        Ok(match (read, field) {
            (R::CounterValue, FieldState::Counter(sum)) => {
                Value::Int(self.program.objects[place.kind.index()].counted(place.field, *sum))
            }
            (R::SetContains, FieldState::Set(elements)) => Value::Bool(elements.contains(&args[0])),
            (R::SetSize, FieldState::Set(elements)) => int(elements.len()),
            (R::SetList, FieldState::Set(elements)) => list(elements.iter().cloned().collect())?,
            (R::MapGet, FieldState::Map(entries)) => {
                entries.get(&args[0]).cloned().map_or(Value::NONE, Value::some)
            }
            (R::MapSize, FieldState::Map(entries)) => int(entries.len()),
            (R::MapKeys, FieldState::Map(entries)) => list(entries.keys().cloned().collect())?,
            (R::LogSize, FieldState::Log(lines)) => int(lines.len()),
            (R::LogList, FieldState::Log(lines)) => list(lines.clone())?,
            (R::LogLast, FieldState::Log(lines)) => {
                list(lines[lines.len().saturating_sub(number(&args[0]))..].to_vec())?
            }
            (R::LogSlice, FieldState::Log(lines)) => {
                list(lines.iter().skip(number(&args[0])).take(number(&args[1])).cloned().collect())?
            }
            (R::CounterValue, _) => {
                Value::Int(self.program.objects[place.kind.index()].counted(place.field, 0))
            }
            (R::SetSize | R::MapSize | R::LogSize, _) => int(0),
            (R::SetContains, _) => Value::Bool(false),
            (R::MapGet, _) => Value::NONE,
            _ => list(Vec::new())?,
        })
    }
}
