//! Indexes: their declarations, and reads of them.
//!
//! An index becomes queries of its object's store ([`IndexRead`]): what holds for a declared query, in the
//! flow rules, the split and at run time, holds for an index.

use mingle_model::index::indexed_type;
use mingle_model::limits::INDEX_FIELDS_MAX;
use mingle_model::{BuiltinQuery, FieldType, IndexRead, ObjectType, Type, Value};

use super::types::unfit_key;
use super::{Body, Checker, DEFAULT, Named};
use crate::diagnostic::flow::Place;
use crate::diagnostic::m0201::{self, Mismatch};
use crate::diagnostic::m0202::{self, Arity};
use crate::diagnostic::m0204::{self, Unfit};
use crate::diagnostic::{m0101, m0102, m0608};
use crate::hir::{Expr, ExprKind, Index, ObjectId, Operation, StoreId};
use crate::ops::Op;
use crate::syntax::Span;
use crate::syntax::ast::{self, Ident};

/// A read of an index as it is written: `Object.index(values).step(…).step(…)`.
pub(super) struct Chain<'a> {
    object: ObjectId,
    /// The name of the object, in the program.
    of: Span,
    index: &'a Ident,
    values: &'a [ast::Expr],
    /// The calls after it, first to last.
    steps: Vec<(&'a Ident, &'a [ast::Expr], Span)>,
}

/// The arguments of a read, from its steps.
#[derive(Default)]
struct Steps {
    from: Option<Expr>,
    before: Option<Expr>,
    after: Option<Expr>,
    is_reversed: bool,
}

impl Steps {
    /// Returns the arguments between the leading values and the number; `next` is the type of the next field.
    fn arguments(
        self,
        of: &mingle_model::Name,
        next: Option<&Type>,
        counts: bool,
        span: Span,
    ) -> Vec<Expr> {
        let bound = |given: Option<Expr>, inner: &Type| {
            let (kind, span) = match given {
                Some(given) => (ExprKind::Local(Op::Some, vec![given.clone()]), given.span),
                None => (ExprKind::Const(Value::NONE), span),
            };
            Expr { kind, value_type: Type::Option(std::sync::Arc::new(inner.clone())), span }
        };
        let mut args = match next {
            Some(next) => vec![bound(self.from, next), bound(self.before, next)],
            None => vec![bound(self.after, &Type::Ref(of.clone()))],
        };
        if !counts {
            let kind = ExprKind::Const(Value::Bool(self.is_reversed));
            args.push(Expr { kind, value_type: Type::Bool, span });
        }
        args
    }
}

/// Returns the name under which programs read an index: the written one, or `by_` and the names of its fields.
fn read_as(written: &ast::Index) -> mingle_model::Name {
    match &written.name {
        Some(name) => name.name.clone(),
        None => {
            let fields: Vec<&str> = written.fields.iter().map(|field| &*field.name).collect();
            format!("by_{}", fields.join("_")).into()
        }
    }
}

impl Checker<'_> {
    /// Declares the indexes of all objects.
    pub(super) fn indexes(&mut self) {
        let tree = self.tree;
        let objects = tree.items.iter().filter_map(|item| match &item.kind {
            ast::ItemKind::Object(object) => Some(object),
            _ => None,
        });
        for (at, object) in objects.enumerate() {
            let shell = std::sync::Arc::clone(&self.program.objects[at].declared);
            self.indexes_of(object, &shell, at);
        }
    }

    /// Declares an object's indexes, and the queries that read them.
    fn indexes_of(&mut self, object: &ast::Object, shell: &ObjectType, at: usize) {
        let mut names = std::collections::HashMap::new();
        for written in self.bounded(&object.name, &object.indexes, "indexes") {
            let name = read_as(written);
            let span =
                written.name.as_ref().map_or(Span::token(written.span.start), |name| name.span);
            if let Some(first) = names.insert(name.clone(), span) {
                self.diagnostics.push(m0102::render(&name, span, Some(first)));
                continue;
            }
            let Some(fields) = self.index_fields(&written.fields, shell) else {
                // It is declared by its name all the same.
                self.broken_fields.insert((shell.name.clone(), name));
                continue;
            };
            let store = self.program.objects[at].store;
            self.keeps_unique(written, &fields, store);
            let types: Vec<Type> = fields.iter().map(|(_, found)| found.clone()).collect();
            let operations = &mut self.program.stores[store.index()].operations;
            let first = operations.len() as u32;
            for (equal, counts) in
                (0..=fields.len()).flat_map(|equal| [(equal, false), (equal, true)])
            {
                let read = IndexRead {
                    object: shell.name.clone(),
                    index: name.clone(),
                    fields: fields.iter().map(|(field, _)| field.clone()).collect(),
                    equal,
                    counts,
                    is_unique: written.is_unique,
                };
                let verb = if counts { "count" } else { "first" };
                let leading: Vec<&str> =
                    read.fields[..equal].iter().map(|field| &**field).collect();
                operations.push(Operation {
                    name: format!("{}.{name}({}).{verb}", shell.name, leading.join(", ")).into(),
                    is_command: false,
                    params: read.parameters(&types),
                    result: Some(read.result()),
                    span,
                    docs: written.docs.clone(),
                    builtin: Some(BuiltinQuery::Index(read)),
                });
            }
            self.program.objects[at].indexes.push(Index {
                name,
                fields,
                first,
                span,
                whole: written.span,
                is_named: written.name.is_some(),
                is_unique: written.is_unique,
            });
        }
    }

    /// Reports a `unique` at a store whose transactions are not serializable.
    fn keeps_unique(
        &mut self,
        written: &ast::Index,
        fields: &[(mingle_model::Name, Type)],
        store: StoreId,
    ) {
        let levels = &self.program.levels;
        let level = self.program.level_of(store);
        let is_kept =
            levels.find("snapshot").is_some_and(|snapshot| levels.is_at_least(level, snapshot));
        if written.is_unique && !is_kept {
            let fields: Vec<&str> = fields.iter().map(|(name, _)| &**name).collect();
            let store = &self.program.stores[store.index()];
            let (name, level) = (store.name.to_string(), levels.name(level).to_string());
            let word = Span::token(written.span.start);
            self.diagnostics.push(m0608::render(
                &fields,
                &Place { name, level },
                written.span,
                word,
            ));
        }
    }

    /// Returns the fields of an index with the types by which it finds them; none if a mistake was reported.
    fn index_fields(
        &mut self,
        written: &[Ident],
        shell: &ObjectType,
    ) -> Option<Vec<(mingle_model::Name, Type)>> {
        if written.len() > INDEX_FIELDS_MAX {
            let (name, limit) = (shell.name.to_string(), INDEX_FIELDS_MAX);
            let unfit = Unfit::TooMany { name, what: "fields in one index", limit };
            self.diagnostics.push(m0204::render(unfit, written[INDEX_FIELDS_MAX].span));
            return None;
        }
        let mut fields: Vec<(mingle_model::Name, Type)> = Vec::new();
        for field in written {
            let Some(index) = shell.field_index(&field.name) else {
                let known = shell.fields.iter().map(|field| &*field.name);
                self.unknown_field(&shell.name, field, known);
                return None;
            };
            self.note_member(field, &shell.name);
            if self.is_broken_field(&shell.name, &field.name) {
                return None;
            }
            if fields.iter().any(|(name, _)| *name == field.name) {
                self.diagnostics.push(m0102::render(&field.name, field.span, None));
                return None;
            }
            let found = &shell.fields[index].field_type;
            let schema = &self.program.schema;
            let inner = match found {
                FieldType::Register(found) => Some(indexed_type(found)),
                _ => None,
            };
            let fits = |inner: &Type| {
                !matches!(inner, Type::Struct(_)) && unfit_key(schema, inner).is_none()
            };
            let Some(inner) = inner.filter(|inner| fits(inner)) else {
                let mismatch = Mismatch::Index { found: found.to_string() };
                self.diagnostics.push(m0201::render(mismatch, field.span));
                return None;
            };
            fields.push((field.name.clone(), inner.clone()));
        }
        Some(fields)
    }

    /// Returns a read of an index, if an expression is one, or is meant as one.
    pub(super) fn index_read<'e>(
        &self,
        body: &Body,
        span: Span,
        (object, name, args): (&'e ast::Expr, &'e Ident, &'e [ast::Expr]),
    ) -> Option<Chain<'e>> {
        let chain = self.chain(body, (object, name, args), span)?;
        // What follows the end is an operation on the list or number that the read gives.
        let is_end =
            |(step, ..): &(&Ident, &[ast::Expr], Span)| matches!(&*step.name, "first" | "count");
        if chain.steps.iter().rev().skip(1).any(is_end) {
            return None;
        }
        let declared = &self.program.objects[chain.object.index()];
        let has_index = declared.indexes.iter().any(|index| index.name == chain.index.name)
            || self.is_broken_field(&declared.declared.name, &chain.index.name);
        // `Order.get(key)` of other languages has its own message.
        let is_meant = has_index || !declared.indexes.is_empty() || !chain.steps.is_empty();
        is_meant.then_some(chain)
    }

    /// Checks a read of an index; none if a mistake was reported.
    pub(super) fn checked_index_read(
        &mut self,
        body: &mut Body,
        span: Span,
        chain: &Chain<'_>,
    ) -> Option<Expr> {
        let read = self.checked_chain(body, span, chain);
        if read.is_none() && self.record.is_some() {
            self.quietly(body, chain.values);
            for (_, args, _) in &chain.steps {
                self.quietly(body, args);
            }
        }
        read
    }

    /// Returns the parts of a read of an index; none if the expression does not begin with an object's name.
    fn chain<'e>(
        &self,
        body: &Body,
        (object, name, args): (&'e ast::Expr, &'e Ident, &'e [ast::Expr]),
        span: Span,
    ) -> Option<Chain<'e>> {
        let mut steps = vec![(name, args, span)];
        let mut inner = object;
        while let ast::ExprKind::Method(object, name, args) = &inner.kind {
            steps.push((name, args, inner.span));
            inner = object;
        }
        let ast::ExprKind::Name(of) = &inner.kind else { return None };
        if body.find(of).is_some() {
            return None;
        }
        let object = self.object_of(of)?;
        let (index, values, _) = steps.pop()?;
        steps.reverse();
        Some(Chain { object, of: inner.span, index, values, steps })
    }

    fn checked_chain(&mut self, body: &mut Body, span: Span, chain: &Chain<'_>) -> Option<Expr> {
        let index = self.index_of_chain(chain)?;
        let object = &self.program.objects[chain.object.index()];
        let (of, store) = (object.declared.name.clone(), object.store);
        self.use_store(store);
        if body.reads_only == Some(DEFAULT) {
            self.diagnostics.push(m0201::render(Mismatch::NotConstant, span));
            return None;
        }
        let equal = chain.values.len();
        if equal > index.fields.len() {
            let (name, most) = (chain.index.name.to_string(), index.fields.len());
            let arity = Arity::Arguments { of: name, expected: most, found: equal };
            self.diagnostics.push(m0202::render(arity, span));
            return None;
        }
        let Some(((last, most, _), steps)) = chain.steps.split_last() else {
            self.diagnostics.push(m0204::render(Unfit::IndexAlone, span));
            return None;
        };
        let params: Vec<Option<Type>> =
            index.fields[..equal].iter().map(|(_, found)| Some(found.clone())).collect();
        let mut args = self.arguments(body, span, &chain.index.name, &params, chain.values)?;
        let taken = self.steps(body, &of, (&index, equal), steps)?;
        let counts = self.counts(last, &taken, span)?;
        let most = self.arguments(body, span, &last.name, &[Some(Type::Int)], most)?;
        args.extend(taken.arguments(
            &of,
            index.fields.get(equal).map(|(_, next)| next),
            counts,
            span,
        ));
        args.extend(most);
        let query = index.query(equal, counts);
        let declared = &self.program.stores[store.index()].operations[query as usize];
        let value_type = declared.result.clone()?;
        Some(Expr { kind: ExprKind::Operation(store, query, args), value_type, span })
    }

    /// Returns the index that a read names; none if a mistake was reported.
    fn index_of_chain(&mut self, chain: &Chain<'_>) -> Option<Index> {
        let object = &self.program.objects[chain.object.index()];
        let of = object.declared.name.clone();
        if let Some((Named::Object(_), declared)) = self.names.get(&of) {
            let declared = *declared;
            self.note_use(chain.of, declared);
        }
        self.use_object(chain.object);
        if self.is_broken_field(&of, &chain.index.name) {
            return None;
        }
        let indexes = &self.program.objects[chain.object.index()].indexes;
        if let Some(index) = indexes.iter().find(|index| index.name == chain.index.name).cloned() {
            if index.is_named {
                self.note_use(chain.index.span, index.span);
            }
            return Some(index);
        }
        let known: Vec<String> = indexes.iter().map(|index| index.name.to_string()).collect();
        let known: Vec<&str> = known.iter().map(|name| &**name).collect();
        let near = self.diagnostics.near_miss(&chain.index.name, known.iter().copied());
        let (what, name) = (format!("index of `{of}`"), chain.index);
        let found = m0101::render_known(&what, &name.name, name.span, near, &known);
        self.diagnostics.push(found);
        None
    }

    /// True if a read counts; none if it does not end.
    fn counts(&mut self, last: &Ident, taken: &Steps, span: Span) -> Option<bool> {
        match &*last.name {
            "first" => Some(false),
            "count" if taken.is_reversed => {
                let why = "a count has no order";
                self.diagnostics.push(m0204::render(Unfit::IndexStep { why }, last.span));
                None
            }
            "count" => Some(true),
            "from" | "before" | "after" | "reversed" => {
                self.diagnostics.push(m0204::render(Unfit::IndexAlone, span));
                None
            }
            _ => self.no_step(last),
        }
    }

    /// Checks the steps between the values of an index and its end.
    fn steps(
        &mut self,
        body: &mut Body,
        of: &mingle_model::Name,
        (index, equal): (&Index, usize),
        steps: &[(&Ident, &[ast::Expr], Span)],
    ) -> Option<Steps> {
        let mut taken = Steps::default();
        let next = index.fields.get(equal).map(|(_, found)| found.clone());
        for (step, args, span) in steps {
            let (place, wanted) = match (&*step.name, &next) {
                ("from", Some(next)) => (&mut taken.from, next.clone()),
                ("before", Some(next)) => (&mut taken.before, next.clone()),
                ("after", None) => (&mut taken.after, Type::Ref(of.clone())),
                ("reversed", _) => {
                    self.arguments(body, *span, "reversed", &[], args)?;
                    taken.is_reversed = true;
                    continue;
                }
                ("from" | "before", None) => {
                    let why = "all fields of the index have a value already: `after` goes on from an object";
                    self.diagnostics.push(m0204::render(Unfit::IndexStep { why }, step.span));
                    return None;
                }
                ("after", Some(_)) => {
                    let why = "`after` goes on in the order of keys, when each field of the index has a value: `from` and `before` bound the next field";
                    self.diagnostics.push(m0204::render(Unfit::IndexStep { why }, step.span));
                    return None;
                }
                _ => return self.no_step(step),
            };
            if place.is_some() {
                let why = "this bound was given already";
                self.diagnostics.push(m0204::render(Unfit::IndexStep { why }, step.span));
                return None;
            }
            if next.is_some() {
                self.ordered(&wanted, step.span)?;
            }
            let given = self.arguments(body, *span, &step.name, &[Some(wanted)], args)?;
            *place = given.into_iter().next();
        }
        Some(taken)
    }

    fn no_step<T>(&mut self, step: &Ident) -> Option<T> {
        let known = ["first", "count", "from", "before", "after", "reversed"];
        let near = self.diagnostics.near_miss(&step.name, known).map(str::to_owned);
        let unfit = Unfit::Method { on: "index".into(), name: step.name.to_string(), near };
        self.diagnostics.push(m0204::render(unfit, step.span));
        None
    }
}
