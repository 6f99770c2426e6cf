//! The declarations in a program's syntax tree.

use std::collections::{BTreeMap, HashMap};

use mingle_model::Name;

use super::{Declaration, Kind, Record};
use crate::syntax::ast::{self, Ident, ItemKind, Param, TypeExpr, TypeKind};

/// Returns all declarations, by the token that names them.
pub(super) fn declarations(tree: &ast::Program, record: &Record) -> BTreeMap<u32, Declaration> {
    let mut found = Found::default();
    for item in &tree.items {
        found.item(item);
    }
    for (token, bound) in &record.variables {
        let name = &bound.name;
        let var_type = bound.var_type.as_ref().map_or("?".into(), ToString::to_string);
        let shown = format!("{}{name}: {var_type}", bound.word);
        found.all.entry(*token).or_insert(Declaration {
            // Parameters were found in the tree.
            kind: Kind::Variable,
            name: name.clone(),
            span: crate::syntax::Span::token(*token),
            shown,
            docs: String::new(),
        });
    }
    found.all.retain(|_, declaration| !declaration.name.is_empty());
    found.all
}

/// Returns the uses of members and levels, as pairs of the use's token and its declaration's token.
pub(super) fn members(tree: &ast::Program, record: &Record) -> Vec<(u32, u32)> {
    let mut declared: HashMap<(&Name, &Name), u32> = HashMap::new();
    let mut levels: HashMap<&Name, u32> = HashMap::new();
    for item in &tree.items {
        let (owner, names): (_, Vec<&Ident>) = match &item.kind {
            ItemKind::Object(object) => {
                let fields = object.fields.iter().map(|field| &field.name);
                (&object.name, std::iter::once(&object.key.name).chain(fields).collect())
            }
            ItemKind::Struct(declared) => {
                (&declared.name, declared.fields.iter().map(|field| &field.name).collect())
            }
            ItemKind::Enum(declared) => {
                (&declared.name, declared.values.iter().map(|value| &value.name).collect())
            }
            ItemKind::Level { name, .. } => {
                levels.entry(&name.name).or_insert(name.span.start);
                continue;
            }
            _ => continue,
        };
        for name in names {
            // If two have the same name, the first one counts.
            declared.entry((&owner.name, &name.name)).or_insert(name.span.start);
        }
    }
    let members = record
        .members
        .iter()
        .filter_map(|(at, (owner, member))| Some((*at, *declared.get(&(owner, member))?)));
    let levels = record.levels.iter().filter_map(|(at, level)| Some((*at, *levels.get(level)?)));
    members.chain(levels).collect()
}

#[derive(Default)]
struct Found {
    all: BTreeMap<u32, Declaration>,
}

impl Found {
    fn add(&mut self, kind: Kind, name: &Ident, shown: String, docs: &str) {
        self.all.insert(
            name.span.start,
            Declaration {
                kind,
                name: name.name.clone(),
                span: name.span,
                shown,
                docs: docs.to_owned(),
            },
        );
    }

    fn item(&mut self, item: &ast::Item) {
        let docs = &item.docs;
        match &item.kind {
            ItemKind::Level { name, above, below } => {
                let names =
                    |all: &[Ident]| all.iter().map(|one| &*one.name).collect::<Vec<_>>().join(", ");
                let (name_text, above, below) = (&name.name, names(above), names(below));
                let shown = format!("level {name_text} between {above} and {below}");
                self.add(Kind::Level, name, shown, docs);
            }
            ItemKind::Store(store) => {
                let shown = format!("store {}: {}", store.name.name, store.level.name);
                self.add(Kind::Store, &store.name, shown, docs);
                for operation in &store.operations {
                    let word = if operation.is_command { "command" } else { "query" };
                    let result = operation.result.as_ref();
                    let shown = signature(word, &operation.name, &operation.params, result);
                    self.add(Kind::Operation, &operation.name, shown, &operation.docs);
                    self.params(Kind::Parameter, "", &operation.params);
                }
            }
            ItemKind::Object(object) => self.object(object, docs),
            ItemKind::Struct(declared) => {
                let shown = format!("struct {}", declared.name.name);
                self.add(Kind::Struct, &declared.name, shown, docs);
                self.params(Kind::StructField, "", &declared.fields);
            }
            ItemKind::Enum(declared) => {
                let shown = format!("enum {}", declared.name.name);
                self.add(Kind::Enum, &declared.name, shown, docs);
                for value in &declared.values {
                    let label = value.label.as_ref().map(|(label, _)| &**label);
                    let shown = value_text(&value.name.name, label);
                    self.add(Kind::EnumValue, &value.name, shown, &value.docs);
                }
            }
            ItemKind::Function(function) => {
                let result = Some(&function.result);
                let shown = signature("fn", &function.name, &function.params, result);
                self.add(Kind::Function, &function.name, shown, docs);
                self.params(Kind::Parameter, "", &function.params);
            }
            ItemKind::Transaction(declared) => {
                let word = if declared.isolated.is_some() {
                    "isolated transaction"
                } else {
                    "transaction"
                };
                let result = declared.result.as_ref();
                let shown = signature(word, &declared.name, &declared.params, result);
                self.add(Kind::Transaction, &declared.name, shown, docs);
                self.params(Kind::Parameter, "", &declared.params);
            }
        }
    }

    fn object(&mut self, object: &ast::Object, docs: &str) {
        let shown = format!("object {} in {}", object.name.name, object.store.name);
        self.add(Kind::Object, &object.name, shown, docs);
        self.params(Kind::Key, "key ", std::slice::from_ref(&object.key));
        for field in &object.fields {
            let shown = format!(
                "{}: {}{}",
                field.name.name,
                type_text(&field.field_type),
                policies_text(field)
            );
            self.add(Kind::Field, &field.name, shown, &field.docs);
        }
        for index in &object.indexes {
            let fields: Vec<&str> = index.fields.iter().map(|field| &*field.name).collect();
            if let Some(name) = &index.name {
                let word = if index.is_unique { "unique" } else { "index by" };
                let shown = format!("{word} {} as {}", fields.join(", "), name.name);
                self.add(Kind::Operation, name, shown, &index.docs);
            }
        }
    }

    fn params(&mut self, kind: Kind, word: &str, params: &[Param]) {
        for param in params {
            let shown = format!("{word}{}: {}", param.name.name, type_text(&param.param_type));
            self.add(kind, &param.name, shown, &param.docs);
        }
    }
}

fn signature(word: &str, name: &Ident, params: &[Param], result: Option<&TypeExpr>) -> String {
    let params = params
        .iter()
        .map(|param| format!("{}: {}", param.name.name, type_text(&param.param_type)))
        .collect::<Vec<_>>()
        .join(", ");
    let result = result.map_or(String::new(), |result| format!(" -> {}", type_text(result)));
    format!("{word} {}({params}){result}", name.name)
}

/// Returns a value of an enumeration as it is declared; the label only if it differs from the name.
pub(super) fn value_text(name: &str, label: Option<&str>) -> String {
    match label.filter(|label| *label != name) {
        Some(label) => format!("{name} = {label:?}"),
        None => name.to_owned(),
    }
}

/// Returns a type as written.
fn type_text(written: &TypeExpr) -> String {
    match &written.kind {
        TypeKind::Named(name) => name.to_string(),
        TypeKind::Ref(object) => format!("ref {}", object.name),
        TypeKind::Option(inner) => format!("option<{}>", type_text(inner)),
        TypeKind::List(inner) => format!("list<{}>", type_text(inner)),
        TypeKind::Counter(bounds) => bounds.to_string(),
        TypeKind::Set(inner) => format!("set<{}>", type_text(inner)),
        TypeKind::Map(key, value) => format!("map<{}, {}>", type_text(key), type_text(value)),
        TypeKind::Log(inner) => format!("log<{}>", type_text(inner)),
        TypeKind::Rushed(inner) => format!("rushed<{}>", type_text(inner)),
        TypeKind::Error => "?".into(),
    }
}

/// Returns the policies of a field's reads, as they are written.
fn policies_text(field: &ast::ObjectField) -> String {
    let text = |policy: &ast::Policy| match &policy.kind {
        ast::PolicyKind::At(level) => format!("at {}", level.name),
        ast::PolicyKind::By(bound) => format!("by {}", bound.name),
    };
    let all = field.policy.iter().map(&text);
    let single = field.operation_policies.iter();
    let single = single.map(|(name, policy)| format!("{} {}", name.name, text(policy)));
    let texts: Vec<String> = all.chain(single).collect();
    if texts.is_empty() { String::new() } else { format!(" {}", texts.join(", ")) }
}
