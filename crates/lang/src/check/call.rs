//! Calls: built-in functions, declared functions, methods, and operations of stores.

use std::sync::Arc;

use mingle_model::{FieldType, Type};

use super::expr::Evaluated;
use super::methods::{Method, find_method, operations};
use super::{Body, Checker, DEFAULT, Named};
use crate::diagnostic::m0201::{self, Mismatch};
use crate::diagnostic::m0202::{self, Arity};
use crate::diagnostic::m0204::{self, Unfit};
use crate::diagnostic::{Diagnostics, alias, m0101};
use crate::hir::{Expr, ExprKind, Place, StoreId, WriteOp};
use crate::names::Typed;
use crate::ops::Op;
use crate::syntax::Span;
use crate::syntax::ast::{self, Ident};

pub(super) const BUILTINS: [&str; 14] = [
    "now",
    "unique",
    "string",
    "int",
    "float",
    "date",
    "time",
    "decimal",
    "min",
    "max",
    "abs",
    "checked_add",
    "checked_sub",
    "checked_mul",
];

/// True if the language has a built-in function of that name.
pub(super) fn is_builtin(name: &str) -> bool {
    BUILTINS.contains(&name)
}

impl Checker<'_> {
    pub(super) fn call(
        &mut self,
        body: &mut Body,
        span: Span,
        name: &Ident,
        args: &[ast::Expr],
    ) -> Option<Evaluated> {
        if is_builtin(&name.name) {
            self.note_builtin(name.span, || format!("the built-in function `{}`", name.name));
            return self.builtin(body, span, name, args).map(Evaluated::Value);
        }
        let id = match self.names.get(&name.name) {
            Some((Named::Function(id), declared)) => {
                let (id, declared) = (*id, *declared);
                self.note_use(name.span, declared);
                id
            }
            Some((Named::Object(_), _)) => {
                self.object_called(name, span, args);
                self.quietly(body, args);
                return None;
            }
            Some((named, _)) => {
                let unfit = Unfit::Call { name: name.name.to_string(), what: named.what() };
                self.diagnostics.push(m0204::render(unfit, name.span));
                return None;
            }
            None => {
                let unfit = Unfit::Call { name: name.name.to_string(), what: "a variable" };
                if body.find(&name.name).is_some() {
                    self.diagnostics.push(m0204::render(unfit, name.span));
                } else {
                    self.unknown_function(name, span, args);
                }
                for arg in args {
                    self.value(body, arg);
                }
                return None;
            }
        };
        if body.reads_only == Some(DEFAULT) {
            // Defaults are checked before functions are declared, and a function's reads would not
            // be constant.
            self.diagnostics.push(m0201::render(Mismatch::NotConstant, span));
            return None;
        }
        if let Some(caller) = body.function {
            self.function_uses[caller.index()].push((id, span));
        }
        let function = &self.program.functions[id.index()];
        let result = function.result.clone();
        let params: Vec<Option<Type>> =
            function.vars[..function.param_count].iter().map(|var| var.var_type.clone()).collect();
        let args = self.arguments(body, span, &name.name, &params, args)?;
        Some(Evaluated::Value(Expr { kind: ExprKind::Call(id, args), value_type: result?, span }))
    }

    /// Checks the arguments against parameters of these types; none if a mistake was reported.
    pub(super) fn arguments(
        &mut self,
        body: &mut Body,
        span: Span,
        of: &str,
        params: &[Option<Type>],
        args: &[ast::Expr],
    ) -> Option<Vec<Expr>> {
        if params.len() != args.len() {
            let arity =
                Arity::Arguments { of: of.to_owned(), expected: params.len(), found: args.len() };
            self.diagnostics.push(m0202::render(arity, span));
            if self.record.is_some() {
                // Editors still need the names in the arguments.
                self.quietly(body, args);
            }
            return None;
        }
        let checked: Vec<Option<Expr>> = params
            .iter()
            .zip(args)
            .map(|(param, arg)| match param {
                Some(param) => self.value_of(body, arg, param),
                None => self.value(body, arg),
            })
            .collect();
        checked.into_iter().collect()
    }

    /// Resolves the names in expressions without reporting mistakes.
    pub(super) fn quietly(&mut self, body: &mut Body, args: &[ast::Expr]) {
        let mut ignored = Diagnostics::default();
        std::mem::swap(self.diagnostics, &mut ignored);
        for arg in args {
            self.evaluate(body, arg, None);
        }
        std::mem::swap(self.diagnostics, &mut ignored);
    }

    fn builtin(
        &mut self,
        body: &mut Body,
        span: Span,
        name: &Ident,
        args: &[ast::Expr],
    ) -> Option<Expr> {
        let expected = match &*name.name {
            "now" | "unique" => 0,
            "string" | "int" | "float" | "date" | "time" | "decimal" | "abs" => 1,
            _ => 2,
        };
        if args.len() != expected {
            let arity = Arity::Arguments { of: name.name.to_string(), expected, found: args.len() };
            self.diagnostics.push(m0202::render(arity, span));
            return None;
        }
        let option = |inner| Type::Option(Arc::new(inner));
        let (kind, value_type) = match (&*name.name, args) {
            ("now", _) => {
                if body.reads_only == Some(DEFAULT) {
                    self.diagnostics.push(m0201::render(Mismatch::NotConstant, span));
                    return None;
                }
                (ExprKind::Now, Type::Time)
            }
            ("unique", _) => {
                if body.reads_only == Some(DEFAULT) {
                    self.diagnostics.push(m0201::render(Mismatch::NotConstant, span));
                    return None;
                }
                if body.function.is_some() {
                    self.diagnostics.push(m0204::render(Unfit::UniqueInFunction, span));
                    return None;
                }
                body.unique_sites += 1;
                (ExprKind::Unique(body.unique_sites - 1), Type::String)
            }
            ("min" | "max", [left, right]) => {
                let (left, right) = self.same_type(body, left, right)?;
                self.ordered(&left.value_type, span)?;
                let value_type = left.value_type.clone();
                let op = if &*name.name == "min" { Op::Min } else { Op::Max };
                (ExprKind::Local(op, vec![left, right]), value_type)
            }
            (checked, [left, right]) => {
                let left = self.value_of(body, left, &Type::Int);
                let right = self.value_of(body, right, &Type::Int);
                let op = match checked {
                    "checked_add" => Op::CheckedAdd,
                    "checked_sub" => Op::CheckedSubtract,
                    _ => Op::CheckedMultiply,
                };
                (ExprKind::Local(op, vec![left?, right?]), option(Type::Int))
            }
            (convert, args) => return self.convert(body, span, convert, &args[0]),
        };
        Some(Expr { kind, value_type, span })
    }

    pub(super) fn method(
        &mut self,
        body: &mut Body,
        span: Span,
        object: &ast::Expr,
        name: &Ident,
        args: &[ast::Expr],
    ) -> Option<Evaluated> {
        if let ast::ExprKind::Name(store) = &object.kind
            && body.find(store).is_none()
            && let Some((Named::Store(id), declared)) = self.names.get(store)
        {
            let (id, declared) = (*id, *declared);
            self.note_use(object.span, declared);
            return self.operation(body, span, id, name, args);
        }
        if let Some(chain) = self.index_read(body, span, (object, name, args)) {
            return self.checked_index_read(body, span, &chain).map(Evaluated::Value);
        }
        if self.method_of_object(body, span, object, args) {
            return None;
        }
        let receiver = self.evaluate(body, object, None);
        self.note_operation(object.span, name);
        let Some(receiver) = receiver else {
            for arg in args {
                self.value(body, arg);
            }
            return None;
        };
        if let Evaluated::Collection(place, field_type) = receiver {
            return self.collection_method(body, span, place, &field_type, name, args);
        }
        let receiver = self.as_value(receiver, object.span)?;
        if let Type::Ref(kind) = &receiver.value_type
            && let Some(kind) = self.object_of(kind)
        {
            let boxed = Box::new(receiver.clone());
            match &*name.name {
                "exists" => {
                    self.arguments(body, span, "exists", &[], args)?;
                    let kind = ExprKind::Exists(boxed, kind);
                    return Some(Evaluated::Value(Expr { kind, value_type: Type::Bool, span }));
                }
                "delete" => {
                    self.arguments(body, span, "delete", &[], args)?;
                    self.no_write(body, "`delete`", span)?;
                    self.no_delete(kind, span)?;
                    return Some(Evaluated::Write(WriteOp::Delete(*boxed, kind)));
                }
                _ => {}
            }
        }
        if self.foreign_method(span, object, &receiver, name) {
            return None;
        }
        self.value_method(body, span, receiver, name, args).map(Evaluated::Value)
    }

    /// Records a use of a built-in.
    fn note_builtin(&mut self, at: Span, shown: impl FnOnce() -> String) {
        if let Some(record) = &mut self.record {
            record.builtin.insert(at.start, shown());
        }
    }

    /// Records an operation on the type of the expression before the point.
    fn note_operation(&mut self, receiver: Span, name: &Ident) {
        if let Some(record) = &self.record
            && let Some(on) = record.types.get(&(receiver.end, receiver.start))
            && operations(on).contains(&&*name.name)
        {
            let shown = format!("the operation `{}` of `{on}`", name.name);
            self.note_builtin(name.span, || shown);
        }
    }

    fn value_method(
        &mut self,
        body: &mut Body,
        span: Span,
        receiver: Expr,
        name: &Ident,
        args: &[ast::Expr],
    ) -> Option<Expr> {
        let option = |inner: &Type| Type::Option(Arc::new(inner.clone()));
        let found = receiver.value_type.clone();
        let (op, params, result) = match (&found, &*name.name) {
            (Type::List(_), "size") => (Op::ListSize, vec![], Type::Int),
            (Type::List(inner), "get") => (Op::ListGet, vec![Type::Int], option(inner)),
            (Type::List(inner), "contains") => {
                (Op::ListContains, vec![(**inner).clone()], Type::Bool)
            }
            (Type::String, "size") => (Op::StringSize, vec![], Type::Int),
            (Type::String, "contains") => (Op::StringContains, vec![Type::String], Type::Bool),
            (Type::Bytes, "size") => (Op::BytesSize, vec![], Type::Int),
            (Type::Option(_), "is_some") => (Op::IsSome, vec![], Type::Bool),
            (Type::Int, "checked_add") => (Op::CheckedAdd, vec![Type::Int], option(&Type::Int)),
            (Type::Int, "checked_sub") => {
                (Op::CheckedSubtract, vec![Type::Int], option(&Type::Int))
            }
            (Type::Int, "checked_mul") => {
                (Op::CheckedMultiply, vec![Type::Int], option(&Type::Int))
            }
            (Type::Decimal, "divide") => {
                (Op::DivideDecimal, vec![Type::Decimal, Type::Int], option(&Type::Decimal))
            }
            (Type::Decimal, "round") => (Op::RoundDecimal, vec![Type::Int], Type::Decimal),
            _ => {
                return self.no_method(body, &Typed::Value(found), name, args);
            }
        };
        let params: Vec<_> = params.into_iter().map(Some).collect();
        let args = self.arguments(body, span, &name.name, &params, args)?;
        let operands = std::iter::once(receiver).chain(args).collect();
        Some(Expr { kind: ExprKind::Local(op, operands), value_type: result, span })
    }

    pub(super) fn no_method<T>(
        &mut self,
        body: &mut Body,
        on: &Typed,
        name: &Ident,
        args: &[ast::Expr],
    ) -> Option<T> {
        let known = operations(on).iter().copied();
        let near = alias::method(operations(on), &name.name)
            .or_else(|| self.diagnostics.near_miss(&name.name, known))
            .map(str::to_owned);
        let unfit = Unfit::Method { on: on.to_string(), name: name.name.to_string(), near };
        self.diagnostics.push(m0204::render(unfit, name.span));
        for arg in args {
            self.value(body, arg);
        }
        None
    }

    fn collection_method(
        &mut self,
        body: &mut Body,
        span: Span,
        place: Place,
        field_type: &FieldType,
        name: &Ident,
        args: &[ast::Expr],
    ) -> Option<Evaluated> {
        if let Some(bounds) = self.bounds_at(&place) {
            return self.bounded_method(body, span, place, bounds, name, args);
        }
        let Some(method) = find_method(field_type, &name.name) else {
            return self.no_method(body, &Typed::Collection(field_type.clone()), name, args);
        };
        let params = match &method {
            Method::Read(_, params, _) | Method::Write(_, params) => {
                params.iter().cloned().map(Some).collect::<Vec<_>>()
            }
        };
        let args = self.arguments(body, span, &name.name, &params, args)?;
        match method {
            Method::Read(read, _, value_type) => {
                let kind = ExprKind::Collection(place, read, args);
                let read = Expr { kind, value_type, span };
                Some(Evaluated::Value(self.as_declared(read)))
            }
            Method::Write(write, _) => {
                self.no_write(body, &format!("`{}`", name.name), span)?;
                Some(Evaluated::Write(WriteOp::Collection(place, write, args)))
            }
        }
    }

    fn operation(
        &mut self,
        body: &mut Body,
        span: Span,
        store: StoreId,
        name: &Ident,
        args: &[ast::Expr],
    ) -> Option<Evaluated> {
        self.use_store(store);
        let declared = &self.program.stores[store.index()];
        // The queries of indexes have names of their own, which no program can write.
        let index = declared.operations.iter().position(|operation| operation.name == name.name);
        let Some(index) = index else {
            let known = declared.operations.iter().filter(|operation| operation.builtin.is_none());
            let near =
                self.diagnostics.near_miss(&name.name, known.map(|operation| &*operation.name));
            let what = format!("operation of the store `{}`", declared.name);
            self.diagnostics.push(m0101::render(&what, &name.name, name.span, near));
            for arg in args {
                self.value(body, arg);
            }
            return None;
        };
        let operation = declared.operations[index].clone();
        let store_name = declared.name.clone();
        self.note_use(name.span, operation.span);
        if self.is_broken_field(&store_name, &name.name) {
            self.quietly(body, args);
            return None;
        }
        let params: Vec<_> =
            operation.params.iter().map(|(_, found)| Some(found.clone())).collect();
        let args = self.arguments(body, span, &name.name, &params, args)?;
        if operation.is_command {
            self.no_write(body, &format!("the command `{}`", name.name), span)?;
        } else if body.reads_only == Some(DEFAULT) {
            self.diagnostics.push(m0201::render(Mismatch::NotConstant, span));
            return None;
        }
        let kind = ExprKind::Operation(store, index as u32, args);
        Some(match operation.result {
            Some(value_type) => Evaluated::Value(Expr { kind, value_type, span }),
            None => Evaluated::Done(Expr { kind, value_type: Type::Bool, span }),
        })
    }
}
