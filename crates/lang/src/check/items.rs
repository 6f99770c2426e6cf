//! Items: levels, stores, objects, structs, and the bodies of functions and transactions.

use std::collections::HashMap;
use std::sync::Arc;

use mingle_model::{Field, FieldType, Name, ObjectType, Schema, StructType, Type, Value};

use super::call::is_builtin;
use super::cycles::Cycles;
use super::types::{key_parts, unfit_element, unfit_key};
use super::{Checker, Named};
use crate::diagnostic::m0201::{self, Mismatch};
use crate::diagnostic::m0204::{self, Unfit};
use crate::diagnostic::{m0101, m0102, m0103};
use crate::hir::{FunctionId, Object, ObjectId, Operation, Policies, Store, StoreId};
use crate::syntax::ast::{self, ItemKind};
use crate::syntax::{Span, ast::Ident};

const BUILTIN_TYPES: [&str; 16] = [
    "bool", "int", "float", "string", "bytes", "time", "date", "decimal", "json", "ref", "option",
    "list", "counter", "set", "map", "log",
];

/// The maximum number of fields of an object or struct, and of operations of a store.
const MEMBERS_MAX: usize = 4_096;

/// The maximum nesting of structs in structs, and of refs in keys.
const DEPTH_MAX: usize = 128;

/// The maximum number of values in a struct, including those of nested structs.
const PARTS_MAX: usize = 10_000;

impl<'a> Checker<'a> {
    pub(super) fn items(&mut self) {
        self.levels();
        self.declare();
        self.operations();
        self.structs_and_objects();
        self.indexes();
        self.draws();
    }

    fn levels(&mut self) {
        let mut spans: HashMap<&str, Span> = HashMap::new();
        for item in &self.tree.items {
            let ItemKind::Level { name, above, below } = &item.kind else {
                continue;
            };
            let ids = |checker: &mut Self, names: &[Ident]| -> Option<Vec<_>> {
                let found: Vec<_> = names.iter().map(|name| checker.level(name)).collect();
                found.into_iter().collect()
            };
            let (above_ids, below_ids) = (ids(self, above), ids(self, below));
            let (Some(above_ids), Some(below_ids)) = (above_ids, below_ids) else { continue };
            if self.program.levels.find(&name.name).is_some() {
                let first = spans.get(&*name.name).copied();
                self.diagnostics.push(m0102::render(&name.name, name.span, first));
            } else {
                let levels = &mut self.program.levels;
                levels.add_between(name.name.clone(), &above_ids, &below_ids);
                let pairs = above.iter().zip(&above_ids).flat_map(|above| {
                    below.iter().zip(&below_ids).map(move |below| (above, below))
                });
                for ((above, above_id), (below, below_id)) in pairs {
                    if !levels.is_stronger(*above_id, *below_id) {
                        let above = (&*above.name, above.span);
                        self.diagnostics.push(m0103::render(above, (&*below.name, below.span)));
                    }
                }
            }
            spans.entry(&name.name).or_insert(name.span);
        }
    }

    pub(super) fn level(&mut self, ident: &Ident) -> Option<mingle_model::LevelId> {
        let found = self.program.levels.find(&ident.name);
        if let Some(record) = &mut self.record {
            record.levels.insert(ident.span.start, ident.name.clone());
        }
        // A level that is missing in the text was reported by the parser.
        if found.is_none() && !ident.name.is_empty() {
            let known: Vec<&str> = self.program.levels.names().iter().map(|name| &**name).collect();
            let near = self.diagnostics.near_miss(&ident.name, known.iter().copied());
            let found = m0101::render_known("level", &ident.name, ident.span, near, &known);
            self.diagnostics.push(found);
        }
        found
    }

    /// Gives every name of the shared namespace its meaning.
    fn declare(&mut self) {
        let tree: &'a ast::Program = self.tree;
        let (mut objects, mut functions) = (0, 0);
        for item in &tree.items {
            match &item.kind {
                ItemKind::Store(store) => {
                    let id = StoreId(self.program.stores.len() as u32);
                    self.declare_name(&store.name, Named::Store(id));
                    let level = self.level(&store.level).unwrap_or(mingle_model::LevelId(0));
                    self.program.stores.push(Store {
                        name: store.name.name.clone(),
                        level,
                        span: store.name.span,
                        operations: Vec::new(),
                    });
                }
                ItemKind::Object(object) => {
                    self.declare_name(&object.name, Named::Object(ObjectId(objects)));
                    objects += 1;
                }
                ItemKind::Struct(declared) => self.declare_name(&declared.name, Named::Struct),
                ItemKind::Enum(declared) => self.declare_enum(declared),
                ItemKind::Function(function) => {
                    self.declare_name(&function.name, Named::Function(FunctionId(functions)));
                    functions += 1;
                }
                ItemKind::Level { .. } | ItemKind::Transaction(_) => {}
            }
        }
        self.store_used = vec![false; self.program.stores.len()];
        self.object_used = vec![false; objects as usize];
    }

    pub(super) fn declare_name(&mut self, ident: &Ident, named: Named) {
        let name = &*ident.name;
        if BUILTIN_TYPES.contains(&name) || is_builtin(name) {
            self.diagnostics.push(m0102::render(name, ident.span, None));
        } else if let Some((_, first)) = self.names.get(name) {
            self.diagnostics.push(m0102::render(name, ident.span, Some(*first)));
        } else {
            self.names.insert(ident.name.clone(), (named, ident.span));
        }
    }

    fn operations(&mut self) {
        let stores = self.tree.items.iter().filter_map(|item| match &item.kind {
            ItemKind::Store(store) => Some(store),
            _ => None,
        });
        for (index, store) in stores.enumerate() {
            let mut seen: HashMap<&str, Span> = HashMap::new();
            let operations = self.bounded(&store.name, &store.operations, "operations");
            for operation in operations {
                let name = &operation.name;
                if let Some(first) = seen.insert(&name.name, name.span) {
                    self.diagnostics.push(m0102::render(&name.name, name.span, Some(first)));
                    continue;
                }
                let params = self.param_types(&operation.params);
                let result = operation.result.as_ref().map(|written| self.value_type(written));
                if !operation.is_command && operation.result.is_none() {
                    let what = format!("the query `{}`", name.name);
                    self.diagnostics.push(m0201::render(Mismatch::NoValue { what }, name.span));
                }
                // A mistake in a type was reported; the operation is still declared by its name.
                if params.iter().any(|(_, found)| found.is_none()) || matches!(result, Some(None)) {
                    let names = (store.name.name.clone(), name.name.clone());
                    self.broken_fields.insert(names);
                }
                let params =
                    params.into_iter().map(|(name, found)| (name, found.unwrap_or(Type::Bool)));
                self.program.stores[index].operations.push(Operation {
                    name: name.name.clone(),
                    is_command: operation.is_command,
                    params: params.collect(),
                    result: result.map(|found| found.unwrap_or(Type::Bool)),
                    span: name.span,
                    docs: operation.docs.clone(),
                    builtin: None,
                });
            }
        }
    }

    /// Returns the members of a declaration, at most [`MEMBERS_MAX`] of them.
    pub(super) fn bounded<'m, T>(
        &mut self,
        name: &Ident,
        members: &'m [T],
        what: &'static str,
    ) -> &'m [T] {
        if members.len() <= MEMBERS_MAX {
            return members;
        }
        let unfit = Unfit::TooMany { name: name.name.to_string(), what, limit: MEMBERS_MAX };
        self.diagnostics.push(m0204::render(unfit, name.span));
        &members[..MEMBERS_MAX]
    }

    pub(super) fn param_types(
        &mut self,
        params: &[ast::Param],
    ) -> Vec<(mingle_model::Name, Option<Type>)> {
        let mut seen: HashMap<&str, Span> = HashMap::new();
        let mut types = Vec::new();
        for param in params {
            if let Some(first) = seen.insert(&param.name.name, param.name.span) {
                self.diagnostics.push(m0102::render(
                    &param.name.name,
                    param.name.span,
                    Some(first),
                ));
            }
            types.push((param.name.name.clone(), self.value_type(&param.param_type)));
        }
        types
    }

    fn structs_and_objects(&mut self) {
        let tree: &'a ast::Program = self.tree;
        let mut schema = Schema::default();
        for item in &tree.items {
            let ItemKind::Struct(declared) = &item.kind else {
                continue;
            };
            let fields = self.bounded(&declared.name, &declared.fields, "fields");
            let name = declared.name.name.clone();
            let mut known = Vec::new();
            for (field, found) in self.param_types(fields) {
                match found {
                    Some(found) => known.push((field, found)),
                    None => drop(self.broken_fields.insert((name.clone(), field))),
                }
            }
            let fields = known;
            schema
                .structs
                .entry(name.clone())
                .or_insert_with(|| Arc::new(StructType { name, fields }));
        }
        self.recursive_structs(&mut schema);
        // Keys and types come first, because a default may name any object.
        let mut shells = Vec::new();
        for item in &tree.items {
            let ItemKind::Object(object) = &item.kind else {
                continue;
            };
            let shell = self.object_shell(object, &schema);
            schema.objects.entry(shell.name.clone()).or_insert_with(|| Arc::new(shell.clone()));
            shells.push((item, object, shell));
        }
        self.key_cycles(&mut schema, &shells);
        self.program.schema = Arc::new(schema.clone());
        for (item, object, shell) in &shells {
            let store = self.store_named(&object.store);
            let bounds = self.bounds_declared(object, shell);
            self.program.objects.push(Object {
                declared: Arc::new(shell.clone()),
                store: store.unwrap_or(StoreId(0)),
                span: object.name.span,
                store_span: object.store.span,
                docs: item.docs.clone(),
                policies: Policies::default(),
                bounds,
                indexes: Vec::new(),
                draw: None,
            });
        }
        let mut defaults = HashMap::new();
        for (index, (_, object, shell)) in shells.into_iter().enumerate() {
            let declared = Arc::new(self.object_defaults(object, shell, &mut defaults));
            let known = schema.objects.entry(declared.name.clone());
            known.and_modify(|known| known.clone_from(&declared));
            self.program.objects[index].declared = declared;
            self.program.objects[index].policies = self.policies(object, index);
        }
        self.program.schema = Arc::new(schema);
    }

    fn store_named(&mut self, ident: &Ident) -> Option<StoreId> {
        if let Some((Named::Store(id), declared)) = self.names.get(&ident.name) {
            let (id, declared) = (*id, *declared);
            self.note_use(ident.span, declared);
            self.use_store(id);
            return Some(id);
        }
        if ident.name.is_empty() {
            return None;
        }
        let known: Vec<&str> = self.program.stores.iter().map(|store| &*store.name).collect();
        let near = self.diagnostics.near_miss(&ident.name, known.iter().copied());
        let found = m0101::render_known("store", &ident.name, ident.span, near, &known);
        self.diagnostics.push(found);
        None
    }

    /// Checks an object's key and field types, without its defaults.
    fn object_shell(&mut self, object: &ast::Object, schema: &Schema) -> ObjectType {
        let mut seen: HashMap<&str, Span> =
            HashMap::from([(&*object.key.name.name, object.key.name.span)]);
        let key_type = self.value_type(&object.key.param_type);
        if let Some(mismatch) = key_type.as_ref().and_then(|found| unfit_key(schema, found)) {
            self.diagnostics.push(m0201::render(mismatch, object.key.param_type.span));
        }
        if key_type.is_none() {
            let names = (object.name.name.clone(), object.key.name.name.clone());
            self.broken_fields.insert(names);
        }
        let mut fields = Vec::new();
        for field in self.bounded(&object.name, &object.fields, "fields") {
            if let Some(first) = seen.insert(&field.name.name, field.name.span) {
                self.diagnostics.push(m0102::render(
                    &field.name.name,
                    field.name.span,
                    Some(first),
                ));
                continue;
            }
            let field_type = self.field_type(&field.field_type).unwrap_or_else(|| {
                self.broken_fields.insert((object.name.name.clone(), field.name.name.clone()));
                FieldType::Register(Type::Bool)
            });
            if let Some((mismatch, span)) = unfit_element(schema, &field.field_type, &field_type) {
                self.diagnostics.push(m0201::render(mismatch, span));
            }
            fields.push(mingle_model::Field {
                name: field.name.name.clone(),
                field_type,
                default: Value::Bool(false),
            });
        }
        ObjectType {
            name: object.name.name.clone(),
            store: object.store.name.clone(),
            key_name: object.key.name.name.clone(),
            key_type: key_type.unwrap_or(Type::String),
            fields,
        }
    }

    /// Gives an object its defaults; default values of structs are built once and shared.
    fn object_defaults(
        &mut self,
        object: &ast::Object,
        mut shell: ObjectType,
        structs: &mut HashMap<Name, Value>,
    ) -> ObjectType {
        let schema = self.program.schema.clone();
        let written: HashMap<&str, &ast::ObjectField> =
            object.fields.iter().rev().map(|field| (&*field.name.name, field)).collect();
        let mut default_of = |value_type: &Type| match value_type {
            Type::Struct(name) => {
                structs.entry(name.clone()).or_insert_with(|| schema.default_of(value_type)).clone()
            }
            other => schema.default_of(other),
        };
        let shell_name = shell.name.clone();
        for field in &mut shell.fields {
            let Field { name, field_type, default } = field;
            let written = written.get(&**name).and_then(|written| written.default.as_ref());
            match (&*field_type, written) {
                (FieldType::Register(value_type), None) => *default = default_of(value_type),
                (FieldType::Register(value_type), Some(_))
                    if self.broken_fields.contains(&(shell_name.clone(), name.clone())) =>
                {
                    *default = default_of(value_type);
                }
                (FieldType::Register(value_type), Some(written)) => {
                    *default = self
                        .constant(written, value_type)
                        .unwrap_or_else(|| default_of(value_type));
                }
                (collection, Some(written)) => {
                    let field_type = collection.to_string();
                    let fact = crate::diagnostic::m0206::Collection::Default { field_type };
                    self.diagnostics.push(crate::diagnostic::m0206::render(fact, written.span));
                }
                (_, None) => {}
            }
        }
        shell
    }

    /// Reports each cycle of structs that contain themselves by value, and empties these structs:
    /// they have no values.
    fn recursive_structs(&mut self, schema: &mut Schema) {
        let names: Vec<Name> = self.in_source_order(schema.structs.keys());
        let parts = |name: &Name| {
            let fields = schema.structs[name].fields.iter();
            fields.filter_map(|(_, found)| match found {
                Type::Struct(part) => Some(part.clone()),
                _ => None,
            })
        };
        let edges = edges(&names, |name| parts(name).collect());
        let cycles = Cycles::of(&edges);
        for first in cycles.firsts() {
            let name = &names[first];
            if let Some((_, span)) = self.names.get(name) {
                let mismatch = Mismatch::Recursive { name: name.to_string() };
                self.diagnostics.push(m0201::render(mismatch, *span));
            }
        }
        let (mut depths, mut sizes) = (vec![0; names.len()], vec![0; names.len()]);
        let mut too_large = Vec::new();
        for index in cycles.inside_out() {
            let inner = &edges[index];
            depths[index] = 1 + inner.iter().map(|part| depths[*part]).max().unwrap_or(0);
            sizes[index] = schema.structs[&names[index]].fields.len()
                + inner.iter().map(|part| sizes[*part]).sum::<usize>();
            let name = names[index].to_string();
            let unfit = if depths[index] > DEPTH_MAX {
                Unfit::TooDeep { name, limit: DEPTH_MAX }
            } else if sizes[index] > PARTS_MAX {
                Unfit::TooMany { name, what: "values in it", limit: PARTS_MAX }
            } else {
                continue;
            };
            (depths[index], sizes[index]) = (0, 0);
            too_large.push(index);
            if let Some((_, span)) = self.names.get(&names[index]) {
                self.diagnostics.push(m0204::render(unfit, *span));
            }
        }
        let cyclic = (0..names.len()).filter(|index| cycles.leads_to_one(*index));
        for name in cyclic.chain(too_large).map(|index| names[index].clone()) {
            let emptied = StructType { name: name.clone(), fields: Vec::new() };
            schema.structs.insert(name, Arc::new(emptied));
        }
    }

    /// Reports each cycle of keys that lead back to themselves, and cuts it: such keys have no
    /// values.
    fn key_cycles(
        &mut self,
        schema: &mut Schema,
        shells: &[(&ast::Item, &ast::Object, ObjectType)],
    ) {
        let names: Vec<Name> = self.in_source_order(schema.objects.keys());
        let keyed_by = |name: &Name| {
            let parts = key_parts(schema, &schema.objects[name].key_type);
            let next = parts.into_iter().filter_map(|part| match part {
                Type::Ref(next) => Some(next.clone()),
                _ => None,
            });
            next.collect::<Vec<Name>>()
        };
        let edges = edges(&names, keyed_by);
        let cycles = Cycles::of(&edges);
        let shells: HashMap<&Name, &ast::Object> =
            shells.iter().map(|(_, object, shell)| (&shell.name, *object)).collect();
        for object in cycles.firsts().iter().filter_map(|first| shells.get(&names[*first])) {
            let mismatch = Mismatch::KeyCycle { object: object.name.name.to_string() };
            self.diagnostics.push(m0201::render(mismatch, object.key.param_type.span));
        }
        let mut cut: Vec<usize> =
            (0..names.len()).filter(|index| cycles.leads_to_one(*index)).collect();
        let mut depths = vec![0; names.len()];
        for index in cycles.inside_out() {
            depths[index] = 1 + edges[index].iter().map(|next| depths[*next]).max().unwrap_or(0);
            if depths[index] > DEPTH_MAX {
                depths[index] = 0;
                cut.push(index);
                if let Some(object) = shells.get(&names[index]) {
                    let name = object.name.name.to_string();
                    let unfit = Unfit::TooDeep { name, limit: DEPTH_MAX };
                    self.diagnostics.push(m0204::render(unfit, object.key.param_type.span));
                }
            }
        }
        // These keys are replaced, so that computing defaults terminates.
        for index in cut {
            if let Some(object) = schema.objects.get_mut(&names[index]) {
                *object = Arc::new(ObjectType { key_type: Type::String, ..(**object).clone() });
            }
        }
    }

    fn in_source_order<'n>(&self, names: impl Iterator<Item = &'n Name>) -> Vec<Name> {
        let mut names: Vec<Name> = names.cloned().collect();
        names.sort_by_key(|name| self.names.get(name).map(|(_, span)| *span));
        names
    }
}

/// For each name, the indices of the names that it leads to.
fn edges(names: &[Name], leads_to: impl Fn(&Name) -> Vec<Name>) -> Vec<Vec<usize>> {
    let places: HashMap<&Name, usize> = names.iter().zip(0..).collect();
    let targets = |name| leads_to(name).iter().filter_map(|to| places.get(to).copied()).collect();
    names.iter().map(targets).collect()
}
