//! The formats of values in columns of Mingle's own tables.
//!
//! A scalar has a column of its own type. A `ref` has the column of its key. An `option` of these
//! is null or the value. Every other type is `json`, in the canonical JSON form of values: `jsonb`
//! would lose a negative zero. A `time` is a `bigint` of microseconds and a `date` one of days, because the
//! ranges of `timestamptz` and `date` are too small.

use mingle_model::{Name, Ref, Schema, Type, Value, json};

use crate::wire::{self, Param};

/// The column format of one type's values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Codec {
    /// A scalar.
    Plain(Type),
    /// A `ref` to an object of this kind, stored as its key.
    Key(Name, Type),
    /// Null or the value.
    Nullable(Box<Codec>),
    /// `json`.
    Json(Type),
}

fn is_plain(value_type: &Type) -> bool {
    use Type::{Bool, Bytes, Date, Decimal, Float, Int, String, Time};
    matches!(value_type, Bool | Int | Float | String | Bytes | Time | Date | Decimal)
}

impl Codec {
    /// Returns the format for values of this type.
    pub fn of(schema: &Schema, value_type: &Type) -> Self {
        match value_type {
            plain if is_plain(plain) => Self::Plain(plain.clone()),
            Type::Ref(kind) => match schema.objects.get(kind) {
                Some(object) if is_plain(&object.key_type) => {
                    Self::Key(kind.clone(), object.key_type.clone())
                }
                _ => Self::Json(value_type.clone()),
            },
            Type::Option(inner) => match Self::of(schema, inner) {
                plain @ (Self::Plain(_) | Self::Key(..)) => Self::Nullable(Box::new(plain)),
                _ => Self::Json(value_type.clone()),
            },
            _ => Self::Json(value_type.clone()),
        }
    }

    /// Returns the SQL type of the column.
    pub fn column_type(&self) -> &'static str {
        match self {
            Self::Plain(value_type) | Self::Key(_, value_type) => match value_type {
                Type::Bool => "boolean",
                Type::Int | Type::Time | Type::Date => "bigint",
                Type::Float => "double precision",
                Type::Decimal => "numeric",
                Type::Bytes => "bytea",
                _ => "text COLLATE \"C\"",
            },
            Self::Nullable(inner) => inner.column_type(),
            Self::Json(_) => "json",
        }
    }

    /// Returns the SQL expression that casts the `number`th parameter to the column's type.
    pub fn parameter(&self, number: usize) -> String {
        let sql_type = match self.column_type() {
            "text COLLATE \"C\"" => "text",
            // JSON is sent as text: the server checks it.
            "json" => return format!("${number}::text::json"),
            other => other,
        };
        format!("${number}::{sql_type}")
    }

    /// Returns the column as it is written in a select list.
    pub fn selected(&self, column: &str) -> String {
        match self {
            Self::Json(_) => format!("{column}::text"),
            _ => column.to_owned(),
        }
    }

    /// Returns the column as it is compared and ordered: the server compares no `json`.
    pub fn compared(&self, column: &str) -> String {
        match self {
            Self::Json(_) => format!("({column}::text)"),
            Self::Nullable(inner) => inner.compared(column),
            Self::Plain(_) | Self::Key(..) => column.to_owned(),
        }
    }

    /// Returns the parameter to send for a value of the type.
    pub fn param(&self, schema: &Schema, value: &Value) -> Param {
        match (self, value) {
            (Self::Json(value_type), value) => {
                Param::Text(json::to_text(schema, value, value_type))
            }
            (Self::Nullable(_), Value::Option(None)) => Param::Null,
            (Self::Nullable(inner), Value::Option(Some(value))) => inner.param(schema, value),
            (Self::Key(..), Value::Ref(object)) => wire::param(object.key()).unwrap_or(Param::Null),
            (_, value) => wire::param(value).unwrap_or(Param::Null),
        }
    }

    /// Returns the value in a cell.
    ///
    /// # Errors
    ///
    /// When it holds no value of the type.
    pub fn read(&self, schema: &Schema, cell: Option<&[u8]>) -> Result<Value, String> {
        let Some(raw) = cell else {
            return match self {
                Self::Nullable(_) => Ok(Value::NONE),
                _ => Err("a column holds null where a value must be".into()),
            };
        };
        let misfit = |value_type: &Type| format!("a column holds no {value_type}");
        match self {
            Self::Plain(value_type) => {
                wire::scalar(value_type, raw).ok_or_else(|| misfit(value_type))
            }
            Self::Key(kind, value_type) => {
                let key = wire::scalar(value_type, raw).ok_or_else(|| misfit(value_type))?;
                Ok(Value::Ref(Ref::new(kind.clone(), key)))
            }
            Self::Nullable(inner) => Ok(Value::some(inner.read(schema, cell)?)),
            Self::Json(value_type) => json::from_text(schema, raw, value_type)
                .map_err(|error| format!("{}: {error}", misfit(value_type))),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use mingle_model::Float;

    use super::*;

    #[test]
    fn options_of_scalars_are_nullable_and_others_json() {
        let schema = Schema::default();
        let option = |inner: Type| Type::Option(Arc::new(inner));
        let nullable = Codec::of(&schema, &option(Type::Int));
        assert_eq!(nullable.column_type(), "bigint");
        assert_eq!(nullable.param(&schema, &Value::NONE), Param::Null);
        let nested = Codec::of(&schema, &option(option(Type::Int)));
        assert_eq!(nested.column_type(), "json");
        let list = Codec::of(&schema, &Type::List(Arc::new(Type::Float)));
        let value = Value::list([Value::Float(Float(-0.0)), Value::from(5e-324)]);
        let Param::Text(text) = list.param(&schema, &value) else { panic!("no text") };
        let found = list.read(&schema, Some(text.as_bytes()));
        let Ok(Value::List(items)) = &found else { panic!("found {found:?}") };
        let Value::Float(zero) = items[0] else { panic!("no float") };
        assert!(zero.0.is_sign_negative(), "{text} lost the sign");
        assert_eq!(found, Ok(value));
    }
}
