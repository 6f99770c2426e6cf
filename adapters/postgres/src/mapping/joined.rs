//! Refs to objects whose keys are structs: a ref has one column for each part of that key, as a foreign key of several
//! columns has.
//!
//! A foreign key often shares a column with the key of its own table (`tenant` in a table whose key begins with it).
//! The key of an object never changes, so such a column is read from the key, and a ref is refused whose part differs
//! from it.

use mingle_model::{FieldType, Name, Ref, Schema, Type, Value};
use mingle_store::{Refusal, Violation};

use super::column::{Column, Described};
use crate::layout::Layout;
use crate::wire::{Cells, Param, cell};

/// The columns of such a ref.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Joined {
    /// The kind of the objects that it refers to.
    kind: Name,
    /// True for an `option`: if one of the columns is null, it is none.
    is_option: bool,
    parts: Vec<Part>,
}

/// One part of the key that is referred to.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Part {
    column: Column,
    /// For a column that is in the key of its own object, too: the place in that key.
    of_key: Option<usize>,
}

/// Returns the kind of the objects to which values of this type refer by a struct, and the types of its parts.
fn target<'s>(schema: &'s Schema, declared: &'s Type) -> Option<(&'s Name, Vec<&'s Type>)> {
    let inner = match declared {
        Type::Option(inner) => inner,
        other => other,
    };
    let Type::Ref(kind) = inner else { return None };
    let Type::Struct(key) = &schema.objects.get(kind)?.key_type else { return None };
    let parts = schema.structs.get(key)?.fields.iter().map(|(_, part)| part).collect();
    Some((kind, parts))
}

/// Checks the number of columns that a mapping lists for a register or counter.
///
/// # Errors
///
/// The numbers, if another one would be right.
pub(super) fn check_count(
    schema: &Schema,
    field_type: &FieldType,
    count: usize,
    what: &str,
) -> Result<(), String> {
    let found = match field_type {
        FieldType::Register(declared) => target(schema, declared),
        _ => None,
    };
    match found {
        Some((_, parts)) if parts.len() == count => Ok(()),
        Some((kind, parts)) => Err(format!(
            "{what} needs one column for each of the {} parts of the key of {kind}, but `columns` lists {count}",
            parts.len()
        )),
        None => Err(format!(
            "{what} is {field_type}, which needs one column, but `columns` lists {count}: several are for refs to objects \
             whose key is a struct"
        )),
    }
}

impl Joined {
    /// Creates the ref in these columns of a table, whose key is in the columns `keys`.
    ///
    /// # Errors
    ///
    /// The reason why a column does not fit.
    pub(super) fn new(
        schema: &Schema,
        declared: &Type,
        columns: &[&Described],
        (keys, what): (&[(String, Type)], &str),
    ) -> Result<Self, String> {
        let (kind, types) =
            target(schema, declared).ok_or_else(|| format!("{what} needs one column"))?;
        let is_option = matches!(declared, Type::Option(_));
        let mut parts = Vec::with_capacity(columns.len());
        for (described, part_type) in columns.iter().zip(types) {
            parts.push(part(schema, described, part_type, (keys, what))?);
        }
        let own = || columns.iter().zip(&parts).filter(|(_, part)| part.of_key.is_none());
        if is_option && (own().any(|(column, _)| column.is_not_null) || own().next().is_none()) {
            return Err(format!(
                "{what} is of type {declared}, for which columns would fit that may be null, at least one of them not \
                 in the key of its table"
            ));
        }
        Ok(Self { kind: kind.clone(), is_option, parts })
    }

    /// Returns the kind of the objects that it refers to.
    pub(super) fn kind(&self) -> &str {
        &self.kind
    }

    /// Returns all its columns, in the order of the parts.
    pub(crate) fn columns(&self) -> impl Iterator<Item = &Column> {
        self.parts.iter().map(|part| &part.column)
    }

    /// Returns the columns that are not in the key of the object: those that are read and written.
    pub(crate) fn own(&self) -> impl Iterator<Item = &Column> {
        self.parts.iter().filter(|part| part.of_key.is_none()).map(|part| &part.column)
    }

    /// Returns the parameters of its own columns for a value that a register of this object is given.
    ///
    /// # Errors
    ///
    /// When a column cannot hold a part, or the key of the object has another value in a column that both share.
    pub(crate) fn assigned(
        &self,
        layout: &Layout,
        object: &Ref,
        value: &Value,
    ) -> Result<Vec<Param>, Refusal> {
        let values = parts_of_ref(value);
        if values.is_empty() {
            return Ok(self.own().map(|_| Param::Null).collect());
        }
        let keys = parts_of(object.key());
        let mut params = Vec::new();
        for (part, value) in self.parts.iter().zip(values) {
            match part.of_key {
                None => params.push(part.column.assigned(layout, &value.canonical())?),
                Some(at) => part.check(object, keys.get(at), value)?,
            }
        }
        Ok(params)
    }

    /// Returns the parameters of its own columns for a new row that is given no ref: the parts of this one.
    ///
    /// # Errors
    ///
    /// When a column cannot hold a part.
    pub(super) fn filled(&self, layout: &Layout, value: &Value) -> Result<Vec<Param>, Refusal> {
        let parts = self.parts.iter().zip(parts_of_ref(value));
        let own = parts.filter(|(part, _)| part.of_key.is_none());
        own.map(|(part, value)| part.column.param(layout, value)).collect()
    }

    /// Returns the ref in a row of an object, whose cells from `first` on are those of its own columns; none if it has
    /// none and is no `option`.
    ///
    /// # Errors
    ///
    /// When a cell holds no value of the type.
    pub(crate) fn read(
        &self,
        layout: &Layout,
        object: &Ref,
        (row, first): (&impl Cells, usize),
    ) -> Result<Option<Value>, String> {
        let (keys, mut at) = (parts_of(object.key()), first);
        let mut values = Vec::with_capacity(self.parts.len());
        for part in &self.parts {
            let value = match part.of_key {
                Some(place) => keys.get(place).and_then(|key| part.column.of_key_part(layout, key)),
                None => {
                    at += 1;
                    part.column.read(layout, cell(row, at - 1))?
                }
            };
            let Some(value) = value else { return Ok(self.is_option.then_some(Value::NONE)) };
            values.push(value);
        }
        let found = Value::Ref(Ref::new(self.kind.clone(), Value::Struct(values.into())));
        Ok(Some(if self.is_option { Value::some(found) } else { found }))
    }
}

fn part(
    schema: &Schema,
    described: &Described,
    part_type: &Type,
    (keys, what): (&[(String, Type)], &str),
) -> Result<Part, String> {
    if matches!(part_type, Type::Option(_) | Type::List(_) | Type::Struct(_)) {
        return Err(format!("{what} refers by a part of type {part_type}, which has no column"));
    }
    let column = Column::of_key(schema, described, part_type, what)?;
    let of_key = keys.iter().position(|(name, _)| *name == described.name);
    if let Some(at) = of_key {
        let (_, key_type) = &keys[at];
        if !column.has_scalar(schema, key_type) {
            return Err(format!(
                "column {} is {key_type} in the key of its object, but {part_type} in {what}",
                described.name
            ));
        }
    }
    Ok(Part { column, of_key })
}

impl Part {
    /// Refuses a value that differs from the one in the key of the object.
    fn check(&self, object: &Ref, key: Option<&Value>, value: &Value) -> Result<(), Refusal> {
        let plain = |value: &Value| scalar(value).canonical();
        if key.is_some_and(|key| plain(key) == plain(value)) {
            return Ok(());
        }
        let name = crate::name::unquoted(&self.column.name);
        let message = format!(
            "column {name} is part of the key of {object}, so a ref there must have {}, but was given {value}",
            key.map_or_else(|| "its value".to_owned(), ToString::to_string)
        );
        Err(Violation::range(name, message).into())
    }
}

/// Returns the parts of the key to which a ref leads; empty for none.
pub(crate) fn parts_of_ref(value: &Value) -> &[Value] {
    match value {
        Value::Option(Some(inner)) => parts_of_ref(inner),
        Value::Ref(object) => parts_of(object.key()),
        _ => &[],
    }
}

/// Returns the parts of a key.
fn parts_of(key: &Value) -> &[Value] {
    match key {
        Value::Struct(parts) => parts,
        single => std::slice::from_ref(single),
    }
}

/// Returns the scalar by which a column holds a value: for a ref, its key.
fn scalar(value: &Value) -> &Value {
    match value {
        Value::Ref(object) => scalar(object.key()),
        other => other,
    }
}
