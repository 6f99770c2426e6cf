//! Items: levels, stores, objects, structs, and the bodies of functions and transactions.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use mingle_model::{Field, FieldType, ObjectType, Schema, StructType, Type};

use super::call::is_builtin;
use super::{Checker, Named};
use crate::diagnostic::m0201::{self, Mismatch};
use crate::diagnostic::{m0101, m0102, m0103, near_miss};
use crate::hir::{FunctionId, Object, ObjectId, Operation, Store, StoreId};
use crate::syntax::ast::{self, ItemKind};
use crate::syntax::{Span, ast::Ident};

const BUILTIN_TYPES: [&str; 13] = [
    "bool", "int", "float", "string", "bytes", "time", "ref", "option", "list", "counter", "set",
    "map", "log",
];

impl<'a> Checker<'a> {
    pub(super) fn items(&mut self) {
        self.levels();
        self.declare();
        self.operations();
        self.structs_and_objects();
    }

    fn levels(&mut self) {
        let mut spans: HashMap<&str, Span> = HashMap::new();
        for item in &self.tree.items {
            let ItemKind::Level { name, above, below } = &item.kind else {
                continue;
            };
            let (Some(above_id), Some(below_id)) = (self.level(above), self.level(below)) else {
                continue;
            };
            if self.program.levels.find(&name.name).is_some() {
                let first = spans.get(&*name.name).copied();
                self.diagnostics.push(m0102::render(&name.name, name.span, first));
            } else if self
                .program
                .levels
                .add_between(name.name.clone(), above_id, below_id)
                .is_none()
            {
                let above = (&*above.name, above.span);
                self.diagnostics.push(m0103::render(above, (&*below.name, below.span)));
            }
            spans.entry(&name.name).or_insert(name.span);
        }
    }

    pub(super) fn level(&mut self, ident: &Ident) -> Option<mingle_model::LevelId> {
        let found = self.program.levels.find(&ident.name);
        if found.is_none() {
            let near =
                near_miss(&ident.name, self.program.levels.names().iter().map(|name| &**name));
            self.diagnostics.push(m0101::render("level", &ident.name, ident.span, near));
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

    fn declare_name(&mut self, ident: &Ident, named: Named) {
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
            for operation in &store.operations {
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
                // A mistake in a type was reported; the operation stays known by its name.
                let params =
                    params.into_iter().map(|(name, found)| (name, found.unwrap_or(Type::Bool)));
                self.program.stores[index].operations.push(Operation {
                    name: name.name.clone(),
                    is_command: operation.is_command,
                    params: params.collect(),
                    result: result.map(|found| found.unwrap_or(Type::Bool)),
                    span: name.span,
                    docs: operation.docs.clone(),
                });
            }
        }
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
            let fields = self.param_types(&declared.fields);
            let fields =
                fields.into_iter().filter_map(|(name, found)| Some((name, found?))).collect();
            let name = declared.name.name.clone();
            schema
                .structs
                .entry(name.clone())
                .or_insert_with(|| Arc::new(StructType { name, fields }));
        }
        self.recursive_structs(&mut schema);
        // Keys and types first: a default may name any object.
        let mut shells = Vec::new();
        for item in &tree.items {
            let ItemKind::Object(object) = &item.kind else {
                continue;
            };
            let shell = self.object_shell(object);
            schema.objects.entry(shell.name.clone()).or_insert_with(|| Arc::new(shell.clone()));
            shells.push((item, object, shell));
        }
        self.key_cycles(&mut schema, &shells);
        self.program.schema = Arc::new(schema.clone());
        for (item, object, shell) in shells {
            let store = self.store_named(&object.store);
            let declared = Arc::new(self.object_defaults(object, shell));
            if let Some(known) = schema.objects.get_mut(&declared.name) {
                *known = declared.clone();
            }
            self.program.objects.push(Object {
                declared,
                store: store.unwrap_or(StoreId(0)),
                span: object.name.span,
                store_span: object.store.span,
                docs: item.docs.clone(),
            });
        }
        self.program.schema = Arc::new(schema);
    }

    fn store_named(&mut self, ident: &Ident) -> Option<StoreId> {
        if let Some((Named::Store(id), _)) = self.names.get(&ident.name) {
            self.store_used[id.index()] = true;
            return Some(*id);
        }
        let near = near_miss(&ident.name, self.program.stores.iter().map(|store| &*store.name));
        self.diagnostics.push(m0101::render("store", &ident.name, ident.span, near));
        None
    }

    /// An object with its types but without its defaults.
    fn object_shell(&mut self, object: &ast::Object) -> ObjectType {
        let mut seen: HashMap<&str, Span> =
            HashMap::from([(&*object.key.name.name, object.key.name.span)]);
        let key_type = self.value_type(&object.key.param_type);
        if let Some(found) = &key_type
            && !matches!(
                found,
                Type::String | Type::Int | Type::Bool | Type::Bytes | Type::Time | Type::Ref(_)
            )
        {
            let mismatch = Mismatch::Key { found: found.to_string() };
            self.diagnostics.push(m0201::render(mismatch, object.key.param_type.span));
        }
        let mut fields = Vec::new();
        for field in &object.fields {
            if let Some(first) = seen.insert(&field.name.name, field.name.span) {
                self.diagnostics.push(m0102::render(
                    &field.name.name,
                    field.name.span,
                    Some(first),
                ));
                continue;
            }
            let field_type =
                self.field_type(&field.field_type).unwrap_or(FieldType::Register(Type::Bool));
            fields.push(mingle_model::Field {
                name: field.name.name.clone(),
                field_type,
                default: mingle_model::Value::Bool(false),
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

    fn object_defaults(&mut self, object: &ast::Object, mut shell: ObjectType) -> ObjectType {
        let schema = self.program.schema.clone();
        for field in &mut shell.fields {
            let Field { name, field_type, default } = field;
            let written = object.fields.iter().find(|written| written.name.name == *name);
            let written = written.and_then(|written| written.default.as_ref());
            match (&*field_type, written) {
                (FieldType::Register(value_type), None) => *default = schema.default_of(value_type),
                (FieldType::Register(value_type), Some(written)) => {
                    *default = self
                        .constant(written, value_type)
                        .unwrap_or_else(|| schema.default_of(value_type));
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

    /// Structs that contain themselves by value have no values; each is reported and emptied.
    fn recursive_structs(&mut self, schema: &mut Schema) {
        fn inner(found: &Type) -> Option<&mingle_model::Name> {
            if let Type::Struct(name) = found { Some(name) } else { None }
        }
        // A struct is well-founded once all structs in it are.
        let mut founded: HashSet<mingle_model::Name> = HashSet::new();
        loop {
            let before = founded.len();
            for (name, declared) in &schema.structs {
                let mut parts = declared.fields.iter().filter_map(|(_, found)| inner(found));
                if !founded.contains(name)
                    && parts
                        .all(|part| founded.contains(part) || !schema.structs.contains_key(part))
                {
                    founded.insert(name.clone());
                }
            }
            if founded.len() == before {
                break;
            }
        }
        for (name, declared) in &mut schema.structs {
            if founded.contains(name) {
                continue;
            }
            if let Some((_, span)) = self.names.get(name) {
                let mismatch = Mismatch::Recursive { name: name.to_string() };
                self.diagnostics.push(m0201::render(mismatch, *span));
            }
            *declared = Arc::new(StructType { name: name.clone(), fields: Vec::new() });
        }
    }

    fn key_cycles(
        &mut self,
        schema: &mut Schema,
        shells: &[(&ast::Item, &ast::Object, ObjectType)],
    ) {
        for (_, object, shell) in shells {
            let mut at = &shell.key_type;
            let mut steps = 0;
            while let Type::Ref(name) = at {
                let Some(next) = schema.objects.get(name) else {
                    break;
                };
                if *name == shell.name || steps > schema.objects.len() {
                    break;
                }
                at = &next.key_type;
                steps += 1;
            }
            if matches!(at, Type::Ref(name) if *name == shell.name) {
                let mismatch = Mismatch::KeyCycle { object: shell.name.to_string() };
                self.diagnostics.push(m0201::render(mismatch, object.key.param_type.span));
            }
        }
        // Cut all cycles, so that defaults end.
        let cyclic: Vec<_> =
            schema.objects.values().filter(|object| leads_on(schema, object)).cloned().collect();
        for object in cyclic {
            let cut = ObjectType { key_type: Type::String, ..(*object).clone() };
            schema.objects.insert(object.name.clone(), Arc::new(cut));
        }
    }
}

/// Whether keys of this object lead through refs without end.
fn leads_on(schema: &Schema, object: &ObjectType) -> bool {
    let mut at = &object.key_type;
    for _ in 0..=schema.objects.len() {
        let Type::Ref(name) = at else { return false };
        let Some(next) = schema.objects.get(name) else {
            return false;
        };
        at = &next.key_type;
    }
    true
}
