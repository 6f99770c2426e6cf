//! Name resolution for editors: from places in the text to declarations, and back.
//!
//! The checker resolves every name while it checks, and records the result here. So an editor sees
//! exactly what the compiler sees, also in a program with mistakes: parts that the compiler could
//! not resolve are missing, and nothing is guessed.

mod declared;
mod record;
mod scope;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use mingle_model::{FieldType, Name, Type};

use crate::check as names_and_types;
use crate::diagnostic::Diagnostics;
use crate::hir::{self, Bounds};
use crate::syntax::{Span, ast};

pub(crate) use record::{Bound, Record};
pub use scope::visible;

/// The kind of a declaration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A level that the program adds.
    Level,
    /// A store.
    Store,
    /// A query or command of a store.
    Operation,
    /// A kind of object.
    Object,
    /// The key of an object.
    Key,
    /// A field of an object.
    Field,
    /// A struct.
    Struct,
    /// A field of a struct.
    StructField,
    /// An enumeration.
    Enum,
    /// A value of an enumeration.
    EnumValue,
    /// A function.
    Function,
    /// A transaction.
    Transaction,
    /// A parameter.
    Parameter,
    /// A variable: of a `let`, a `var`, a `for` or an arm.
    Variable,
}

/// A declaration.
#[derive(Clone, Debug, PartialEq)]
pub struct Declaration {
    /// Its kind.
    pub kind: Kind,
    /// Its name.
    pub name: Name,
    /// The span of the name: one token.
    pub span: Span,
    /// The declaration in the program's syntax, without bodies.
    pub shown: String,
    /// Its doc comment.
    pub docs: String,
}

/// The type of an expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Typed {
    /// A value.
    Value(Type),
    /// A collection of an object, which is no value.
    Collection(FieldType),
    /// A counter with bounds.
    Bounded(Bounds),
}

impl std::fmt::Display for Typed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Value(value_type) => value_type.fmt(f),
            Self::Collection(field_type) => field_type.fmt(f),
            Self::Bounded(bounds) => bounds.fmt(f),
        }
    }
}

/// The names of one program.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// The declarations by the token that names them.
    declarations: BTreeMap<u32, Declaration>,
    /// Each use's token, with its declaration's token.
    uses: BTreeMap<u32, u32>,
    /// The uses of built-ins, by token.
    builtin: BTreeMap<u32, String>,
    /// Types of expressions, by their end and start.
    types: BTreeMap<(u32, u32), Typed>,
    /// The checked program; complete only for transactions without mistakes.
    pub(crate) program: hir::Program,
    /// For each transaction of `program`, true if it is free of mistakes.
    pub(crate) good: Vec<bool>,
    /// The places of the transactions of `program`, in order.
    transactions: Vec<(Span, usize)>,
}

impl Names {
    /// Resolves the names of a parsed program.
    ///
    /// # Examples
    ///
    /// ```
    /// use mingle_lang::names::Names;
    /// use mingle_lang::syntax::{Span, lex, parse};
    ///
    /// let source = lex("fn one() -> int { let x = 1; x }");
    /// let names = Names::of(&parse(&source).0);
    /// let declared = names.at(12).unwrap();
    /// assert_eq!((&*declared.name, &*declared.shown), ("x", "let x: int"));
    /// assert_eq!(names.references(declared.span).count(), 1);
    /// ```
    pub fn of(tree: &ast::Program) -> Self {
        let mut diagnostics = Diagnostics::default();
        let (program, outcomes, record) = names_and_types::check_recording(tree, &mut diagnostics);
        let declarations = declared::declarations(tree, &record);
        let mut uses = record.uses.clone();
        uses.extend(declared::members(tree, &record));
        uses.retain(|_, declared| declarations.contains_key(declared));
        let mut builtin = record.builtin;
        for (at, level) in &record.levels {
            if !uses.contains_key(at) && program.levels.find(level).is_some() {
                builtin.insert(*at, format!("the built-in level `{level}`"));
            }
        }
        let index = |name: Span| {
            program.transactions.iter().position(|transaction| transaction.span == name)
        };
        let transactions = tree.items.iter().filter_map(|item| match &item.kind {
            ast::ItemKind::Transaction(declared) => Some((item.span, index(declared.name.span)?)),
            _ => None,
        });
        let transactions = transactions.collect();
        Self {
            transactions,
            declarations,
            uses,
            builtin,
            types: record.types,
            program,
            good: outcomes.iter().map(|outcome| outcome.is_good).collect(),
        }
    }

    /// Returns all declarations, in source order.
    pub fn declarations(&self) -> impl Iterator<Item = &Declaration> {
        self.declarations.values()
    }

    /// Returns the declaration whose name, or a use of it, is this token.
    pub fn at(&self, token: u32) -> Option<&Declaration> {
        let declared = self.uses.get(&token).unwrap_or(&token);
        self.declarations.get(declared)
    }

    /// Returns the uses of the declaration at `declared`, in source order, without the declaration.
    pub fn references(&self, declared: Span) -> impl Iterator<Item = Span> + '_ {
        let uses = self.uses.iter();
        uses.filter(move |(_, to)| **to == declared.start).map(|(token, _)| Span::token(*token))
    }

    /// Returns the description of a built-in at a token: an operation of a type, or a built-in
    /// function.
    pub fn builtin_at(&self, token: u32) -> Option<&str> {
        self.builtin.get(&token).map(String::as_str)
    }

    /// True if a token is resolved.
    pub fn knows(&self, token: u32) -> bool {
        self.uses.contains_key(&token) || self.declarations.contains_key(&token)
    }

    /// Returns the type of the longest expression that ends before this token.
    pub fn type_before(&self, token: u32) -> Option<&Typed> {
        let ending = self.types.range((token, 0)..=(token, u32::MAX));
        ending.map(|(_, found)| found).next()
    }

    /// Returns the smallest expression around a token, and its type.
    pub fn type_at(&self, token: u32) -> Option<(Span, &Typed)> {
        let around = self.types.iter().filter(|((_, start), _)| *start <= token);
        let around = around.filter(|((end, _), _)| *end > token);
        let spans = around.map(|((end, start), found)| (Span { start: *start, end: *end }, found));
        spans.min_by_key(|(span, _)| span.end - span.start)
    }

    /// Returns the declaration of a name in the shared namespace.
    pub fn item(&self, kind: Kind, name: &str) -> Option<&Declaration> {
        self.declarations().find(|found| found.kind == kind && &*found.name == name)
    }

    /// Returns the transaction around a token, if it is free of mistakes in names and types.
    pub(crate) fn transaction_around(&self, token: u32) -> Option<&hir::Transaction> {
        let (_, index) =
            self.transactions.iter().find(|(span, _)| span.start <= token && token < span.end)?;
        self.good[*index].then(|| &self.program.transactions[*index])
    }

    /// True if every use refers to the same declaration in both, token by token.
    pub fn agrees_with(&self, other: &Self) -> bool {
        self.uses == other.uses && self.declarations.keys().eq(other.declarations.keys())
    }

    /// Returns the members of a type's expressions: fields, then operations.
    pub fn members(&self, of: &Typed) -> Vec<Member> {
        let mut members = Vec::new();
        let field = |kind, name: &Name, shown: String| Member {
            kind,
            name: name.to_string(),
            shown: format!("{name}: {shown}"),
        };
        match of {
            Typed::Value(Type::Ref(object)) => {
                if let Some(object) = self.program.schema.objects.get(object) {
                    let key = &object.key_name;
                    members.push(field(Kind::Key, key, object.key_type.to_string()));
                    let mut known = self.program.objects.iter();
                    let known = known.rfind(|known| known.declared.name == object.name);
                    members.extend(object.fields.iter().enumerate().map(|(index, declared)| {
                        let bounds = known.and_then(|known| known.bounds_of(index as u16));
                        let shown = bounds.map_or_else(
                            || declared.field_type.to_string(),
                            |found| found.to_string(),
                        );
                        field(Kind::Field, &declared.name, shown)
                    }));
                }
            }
            Typed::Value(Type::Struct(name)) => {
                let fields = self.program.schema.structs.get(name);
                members.extend(
                    fields
                        .iter()
                        .flat_map(|declared| &declared.fields)
                        .map(|(name, found)| field(Kind::StructField, name, found.to_string())),
                );
            }
            _ => {}
        }
        let operations = names_and_types::operations(of).iter();
        members.extend(operations.map(|name| Member {
            kind: Kind::Operation,
            name: (*name).to_owned(),
            shown: format!("{of}.{name}(…)"),
        }));
        members
    }

    /// Returns the fields allowed in braces after the name of an object or struct; for an object,
    /// its key and registers.
    pub fn fields(&self, name: &str, is_object: bool) -> Vec<Member> {
        let of = if is_object { Type::Ref(name.into()) } else { Type::Struct(name.into()) };
        let mut members = self.members(&Typed::Value(of));
        let object = self.program.schema.objects.get(name).filter(|_| is_object);
        let is_collection = |member: &Member| {
            let field =
                object.and_then(|object| Some(&object.fields[object.field_index(&member.name)?]));
            field.is_some_and(|field| !matches!(field.field_type, FieldType::Register(_)))
        };
        members.retain(|member| member.kind != Kind::Operation && !is_collection(member));
        members
    }

    /// Returns the indexes of a kind of object.
    pub fn indexes(&self, object: &str) -> Vec<Member> {
        let objects = self.program.objects.iter().filter(|known| &*known.declared.name == object);
        let indexes = objects.flat_map(|object| &object.indexes);
        indexes
            .map(|index| {
                let fields: Vec<String> =
                    index.fields.iter().map(|(name, found)| format!("{name}: {found}")).collect();
                Member {
                    kind: Kind::Operation,
                    name: index.name.to_string(),
                    shown: format!("{object}.{}({}).first(…)", index.name, fields.join(", ")),
                }
            })
            .collect()
    }

    /// Returns the values of an enumeration.
    pub fn values(&self, of: &str) -> Vec<Member> {
        let declared = self.program.enums.iter().filter(|known| &*known.name == of);
        declared
            .flat_map(|declared| &declared.values)
            .map(|value| Member {
                kind: Kind::EnumValue,
                name: value.name.to_string(),
                shown: declared::value_text(&value.name, Some(&value.label)),
            })
            .collect()
    }

    /// Returns the operations of a store.
    pub fn operations(&self, store: &str) -> Vec<Member> {
        let stores = self.program.stores.iter().filter(|known| &*known.name == store);
        let operations = stores.flat_map(|store| &store.operations);
        let operations = operations.filter(|operation| operation.builtin.is_none());
        operations
            .filter_map(|operation| {
                let declared = self.declarations.get(&operation.span.start)?;
                Some(Member {
                    kind: Kind::Operation,
                    name: operation.name.to_string(),
                    shown: declared.shown.clone(),
                })
            })
            .collect()
    }
}

/// A name that can follow the dot after an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its kind; a built-in operation counts as an operation.
    pub kind: Kind,
    /// Its name.
    pub name: String,
    /// Its declaration.
    pub shown: String,
}
