//! The columns of the database, and the forms in which values fit them.

use mingle_model::{Schema, Type};

use super::super::items::Item;
use super::super::labels::Labels;

/// The form in which values are sent and read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cast {
    /// Unchanged.
    Plain,
    /// As `bigint`.
    Whole,
    /// As text.
    Text,
    /// A `character(n)`, as text without the blanks that fill it up.
    Padded,
    /// A `citext`, as text. If it is `unit` (a key, element, entry or ref), the text is read in small
    /// letters and must be given in them, see [`form`](super::form).
    Folded { unit: bool },
    /// A `real`, as the `double precision` with the same shortest text.
    Real,
    /// An array of one dimension, as the text of an array.
    Array(Texts),
    /// As text in the canonical form of a UUID.
    Uuid,
    /// As a `date`, a `numeric` or a `timestamptz`.
    One(Item),
    /// An array of such values, in the binary format.
    Items(Item),
    /// As JSON.
    Json,
    /// A counter: as text.
    Sum,
}

/// The texts that the items of an array can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Texts {
    /// All, and other values than texts.
    All,
    /// Those of `character(n)`: without blanks at the end.
    Padded,
    /// UUIDs in canonical form.
    Uuid,
}

/// A column as the database describes it.
#[derive(Clone, Debug)]
pub(crate) struct Described {
    /// Its name.
    pub(crate) name: String,
    /// Its type; for a domain the underlying type.
    pub(crate) base: String,
    /// Its type with its length, for messages.
    pub(crate) shown: String,
    /// Its type, without length.
    pub(crate) sql_type: String,
    /// The name of the type, without its schema; for an array that of its items.
    pub(crate) type_name: String,
    /// The values that it can hold, if they are listed.
    pub(crate) labels: Option<Labels>,
    /// True if the type is an enumeration.
    pub(crate) is_enum: bool,
    /// True if null is refused.
    pub(crate) is_not_null: bool,
    /// True if it has a default, or is numbered by the database.
    pub(crate) has_default: bool,
    /// True if only the database can set its values: it is computed, or numbered (`GENERATED
    /// ALWAYS`).
    pub(crate) is_generated: bool,
    /// Digits before and after the point of a `numeric`, if declared.
    pub(crate) digits: Option<(i64, i64)>,
    /// The number of fractional digits of a second that a `timestamp` keeps.
    pub(crate) second_digits: u32,
    /// True if it is an array of an enumeration.
    pub(crate) has_enum_items: bool,
    /// True if its collation takes only the same texts for equal.
    pub(crate) is_deterministic: bool,
}

/// The use of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// A key, an element of a set or an entry of a map: the database finds rows by it.
    Unit,
    /// A register, a value of a map or a line of a log: it is read and written as it is.
    Plain,
}

/// Returns the digits of a `numeric`, all of them and those after the point, from the modifier of its type.
pub(crate) fn digits_of(modifier: i64) -> (i64, i64) {
    // The number after the point has eleven bits, and may be below 0.
    ((modifier >> 16) & 0xffff, ((modifier & 0x7ff) ^ 0x400) - 0x400)
}

/// Returns the scalar that represents a type in a column: for a `ref` that of its key.
pub(super) fn scalar<'t>(schema: &'t Schema, value_type: &'t Type) -> &'t Type {
    match value_type {
        Type::Ref(kind) => match schema.objects.get(kind) {
            Some(object) => scalar(schema, &object.key_type),
            None => value_type,
        },
        other => other,
    }
}

/// Returns the message on a column that does not fit.
pub(super) fn misfit(found: &Described, declared: &Type, what: &str, fits: &str) -> String {
    format!(
        "column {} is {}, but {what} is of type {declared}, for which {fits} would fit",
        found.name, found.shown
    )
}

/// Returns the form of values of a scalar type in a column.
///
/// # Errors
///
/// The types that would fit.
pub(super) fn cast(wanted: &Type, found: &Described, is_unit: bool) -> Result<Cast, String> {
    let misfit = |fits: &str| Err(fits.to_owned());
    let base = &*found.base;
    Ok(match wanted {
        Type::Bool if base == "boolean" => Cast::Plain,
        Type::Bool => return misfit("boolean"),
        Type::Int => match base {
            "smallint" | "integer" | "bigint" => Cast::Whole,
            "numeric" if matches!(found.digits, Some((..=18, 0))) => Cast::Whole,
            _ => return misfit("smallint, integer, bigint or numeric(18, 0)"),
        },
        Type::Float if base == "double precision" => Cast::Plain,
        Type::Float if base == "real" => Cast::Real,
        Type::Float => return misfit("double precision or real"),
        Type::String if is_unit && !found.is_deterministic => {
            return misfit("a collation that takes only the same texts for equal (deterministic)");
        }
        Type::String => match base {
            "text" | "character varying" => Cast::Text,
            "character" => Cast::Padded,
            "citext" => Cast::Folded { unit: is_unit },
            "uuid" => Cast::Uuid,
            _ if found.is_enum => Cast::Text,
            _ => {
                return misfit(
                    "text, character varying, character, citext, uuid or an enumeration",
                );
            }
        },
        Type::Bytes if base == "bytea" => Cast::Plain,
        Type::Bytes => return misfit("bytea"),
        Type::Time => match base {
            "timestamp with time zone" | "timestamp without time zone" => Cast::One(Item::Moment {
                is_zoned: base == "timestamp with time zone",
                digits: found.second_digits,
            }),
            _ => return misfit("timestamp with time zone"),
        },
        Type::Decimal if base == "numeric" => Cast::One(Item::Number { digits: found.digits }),
        Type::Decimal => return misfit("numeric"),
        Type::Date if base == "date" => Cast::One(Item::Day),
        Type::Date => return misfit("date"),
        Type::Json if is_unit => return misfit("a type with an order"),
        _ if matches!(base, "json" | "jsonb") => Cast::Json,
        Type::List(inner) => match (found.array_of(inner), Item::of(inner, found)) {
            (Some(texts), _) if !is_unit => Cast::Array(texts),
            (_, Some(item)) if !is_unit => Cast::Items(item),
            _ => return misfit(array_for(inner)),
        },
        _ => return misfit("json or jsonb"),
    })
}

/// Returns the columns that hold lists of a type.
fn array_for(items: &Type) -> &'static str {
    match items {
        Type::Bool => "json, jsonb or an array of boolean",
        Type::Int => "json, jsonb or an array of smallint, integer or bigint",
        Type::Float => "json, jsonb or an array of double precision or real",
        Type::String => {
            "json, jsonb or an array of text, character varying, character, citext, uuid or an enumeration"
        }
        Type::Bytes => "json, jsonb or an array of bytea",
        Type::Time => "json, jsonb or an array of timestamp with time zone",
        Type::Date => "json, jsonb or an array of date",
        Type::Decimal => "json, jsonb or an array of numeric",
        _ => "json or jsonb",
    }
}

impl Described {
    /// Returns its type as values are cast to it: the underlying type of a domain, without a length.
    /// A cast to a type with a length would cut values off; the assignment to the column refuses
    /// them.
    pub(super) fn cast_type(&self) -> &str {
        // `character` alone is `character(1)`.
        match &*self.base {
            "character" => "bpchar",
            "character[]" => "bpchar[]",
            base => base,
        }
    }

    /// Returns the texts that its items can be, if it is an array whose items are sent as text and are of the type.
    fn array_of(&self, items: &Type) -> Option<Texts> {
        let base = self.base.strip_suffix("[]")?;
        let fits = match items {
            Type::Bool => base == "boolean",
            Type::Int => matches!(base, "smallint" | "integer" | "bigint"),
            Type::Float => base == "double precision",
            Type::String if base == "character" => return Some(Texts::Padded),
            Type::String if base == "uuid" => return Some(Texts::Uuid),
            // The items of a list are read and written as they are, and never compared by the database.
            Type::String => {
                matches!(base, "text" | "character varying" | "citext") || self.has_enum_items
            }
            _ => false,
        };
        fits.then_some(Texts::All)
    }
}
