//! Columns of existing tables: the values that fit, and their casts.

mod fit;

pub(crate) use fit::{Described, Use, digits_of};

use mingle_model::{Decimal, Ref, Schema, Type, Value, json};
use mingle_store::{Refusal, Violation};

use super::form::{array_text, array_value, is_folded, of_real, real_holds};
use super::items::Item;
use crate::layout::Layout;
use crate::wire::{self, Param};
use fit::{Cast, Texts, cast, misfit, scalar};

/// One column and the type of its values in the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    /// Its name, quoted.
    pub(crate) name: String,
    /// The type of the values, without the `option` of a nullable column.
    value_type: Type,
    /// True for an `option`: null is none.
    pub(crate) is_option: bool,
    /// True if only the database can set its values.
    is_read_only: bool,
    /// Its type in SQL, without length.
    sql_type: String,
    cast: Cast,
}

impl Column {
    /// Creates the column for values of a type.
    ///
    /// # Errors
    ///
    /// The type found and the types that would fit.
    pub(crate) fn new(
        schema: &Schema,
        found: &Described,
        declared: &Type,
        what: &str,
        used: Use,
    ) -> Result<Self, String> {
        if found.is_generated {
            return Err(misfit(found, declared, what, "a column that is not GENERATED ALWAYS"));
        }
        if used == Use::Unit {
            return Self::of_key(schema, found, declared, what);
        }
        Self::of_register(schema, found, declared, what)
    }

    /// Creates a column of a register; a column that only the database can set is read, not written.
    ///
    /// # Errors
    ///
    /// The type found and the types that would fit.
    pub(crate) fn of_register(
        schema: &Schema,
        found: &Described,
        declared: &Type,
        what: &str,
    ) -> Result<Self, String> {
        if matches!(declared, Type::Option(_)) && found.is_not_null {
            return Err(misfit(found, declared, what, "a column that may be null"));
        }
        Self::of(schema, found, declared, what, Use::Plain)
    }

    /// Creates a column of a key, of elements or of entries; the database may set its values.
    ///
    /// # Errors
    ///
    /// The type found and the types that would fit.
    pub(crate) fn of_key(
        schema: &Schema,
        found: &Described,
        declared: &Type,
        what: &str,
    ) -> Result<Self, String> {
        Self::of(schema, found, declared, what, Use::Unit)
    }

    fn of(
        schema: &Schema,
        found: &Described,
        declared: &Type,
        what: &str,
        used: Use,
    ) -> Result<Self, String> {
        let (value_type, is_option) = match declared {
            Type::Option(inner) => (&**inner, true),
            other => (other, false),
        };
        let is_unit = used == Use::Unit || matches!(value_type, Type::Ref(_));
        let cast = cast(scalar(schema, value_type), found, is_unit);
        let cast = cast.map_err(|fits| misfit(found, declared, what, &fits))?;
        Ok(Self {
            name: crate::name::quote(&found.name),
            value_type: value_type.clone(),
            is_option,
            is_read_only: found.is_generated,
            sql_type: found.cast_type().to_owned(),
            cast,
        })
    }

    /// Creates a column for a counter.
    ///
    /// # Errors
    ///
    /// The type found and the types that would fit.
    pub(crate) fn counter(found: &Described, what: &str) -> Result<Self, String> {
        let is_whole = match &*found.base {
            "smallint" | "integer" | "bigint" => true,
            "numeric" => matches!(found.digits, Some((_, 0))),
            _ => false,
        };
        if !is_whole || found.is_generated {
            return Err(format!(
                "column {} is {}, but {what} is a counter, for which bigint or a numeric without \
                 digits after the point would fit",
                found.name, found.shown
            ));
        }
        Ok(Self {
            name: crate::name::quote(&found.name),
            value_type: Type::Int,
            is_option: false,
            is_read_only: false,
            sql_type: found.cast_type().to_owned(),
            cast: Cast::Sum,
        })
    }

    /// True if its values and those of another type are the same scalars.
    pub(crate) fn has_scalar(&self, schema: &Schema, other: &Type) -> bool {
        scalar(schema, &self.value_type) == scalar(schema, other)
    }

    /// Returns the value for a part of a key that is in the same column.
    pub(crate) fn of_key_part(&self, layout: &Layout, part: &Value) -> Option<Value> {
        let mut part = part;
        while let Value::Ref(object) = part {
            part = object.key();
        }
        of_scalar(&layout.schema, &self.value_type, part.clone())
    }

    /// Returns the kind of object that its values refer to, if they do.
    pub(crate) fn target(&self) -> Option<&str> {
        match &self.value_type {
            Type::Ref(kind) => Some(kind),
            _ => None,
        }
    }

    /// True if the database finds rows by it and takes capital letters for small ones.
    pub(crate) fn is_folded(&self) -> bool {
        self.cast == Cast::Folded { unit: true }
    }

    /// True if the column holds a counter.
    pub(crate) fn is_counter(&self) -> bool {
        self.cast == Cast::Sum
    }

    /// Returns the SQL expression that casts the `number`th parameter to the column's type.
    pub(crate) fn parameter(&self, number: usize) -> String {
        let sql_type = &self.sql_type;
        match self.cast {
            Cast::Plain => format!("${number}::{sql_type}"),
            Cast::Whole => format!("${number}::bigint::{sql_type}"),
            Cast::Text
            | Cast::Uuid
            | Cast::Json
            | Cast::Padded
            | Cast::Folded { .. }
            | Cast::Array(_) => format!("${number}::text::{sql_type}"),
            Cast::Real => format!("${number}::double precision::{sql_type}"),
            Cast::Items(item) => format!("${number}::{}::{sql_type}", item.array_type()),
            Cast::Sum => format!("${number}::text::numeric"),
            Cast::One(Item::Day) => format!("${number}::date::{sql_type}"),
            Cast::One(Item::Number { .. }) => format!("${number}::numeric::{sql_type}"),
            Cast::One(Item::Moment { is_zoned: true, .. }) => {
                format!("${number}::timestamptz::{sql_type}")
            }
            Cast::One(_) => {
                format!("(${number}::timestamptz AT TIME ZONE 'UTC')::{sql_type}")
            }
        }
    }

    /// Returns the column as it is written in a select list.
    pub(crate) fn selected(&self) -> String {
        let name = &self.name;
        match self.cast {
            Cast::Plain => name.clone(),
            Cast::Whole => format!("{name}::bigint"),
            Cast::Text
            | Cast::Uuid
            | Cast::Json
            | Cast::Sum
            | Cast::Padded
            | Cast::Folded { unit: false } => format!("{name}::text"),
            Cast::Folded { unit: true } => format!("lower({name}::text COLLATE \"default\")"),
            Cast::Real => format!("{name}::double precision"),
            Cast::Array(_) => format!("to_json({name}::text[])::text"),
            Cast::Items(item) => format!("{name}::{}", item.array_type()),
            Cast::One(Item::Day) => format!("{name}::date"),
            Cast::One(Item::Number { .. }) => format!("{name}::numeric"),
            Cast::One(Item::Moment { is_zoned: true, .. }) => format!("{name}::timestamptz"),
            Cast::One(_) => format!("({name}::timestamp AT TIME ZONE 'UTC')"),
        }
    }

    /// Returns the expression by which the database orders the column's values as the language orders them; none if it
    /// does not.
    pub(crate) fn ordered(&self) -> Option<String> {
        match self.cast {
            Cast::Plain | Cast::Whole => Some(self.name.clone()),
            Cast::Text => Some(format!("{}::text COLLATE \"C\"", self.name)),
            Cast::Real | Cast::One(Item::Day | Item::Number { .. } | Item::Moment { .. }) => {
                Some(self.selected())
            }
            _ => None,
        }
    }

    /// Returns the SQL expression of the `number`th parameter, to be compared with [`Column::ordered`].
    pub(crate) fn bound(&self, number: usize) -> String {
        match self.cast {
            Cast::Whole => format!("${number}::bigint"),
            Cast::Text => format!("${number}::text"),
            Cast::Real => format!("${number}::double precision"),
            Cast::One(Item::Day) => format!("${number}::date"),
            Cast::One(Item::Number { .. }) => format!("${number}::numeric"),
            Cast::One(Item::Moment { .. }) => format!("${number}::timestamptz"),
            _ => self.parameter(number),
        }
    }

    /// Returns the parameter for an element or a key. Equal values give the same parameter; the
    /// server alone would distinguish the sign of a zero.
    ///
    /// # Errors
    ///
    /// When the column cannot hold it.
    pub(crate) fn unit(&self, layout: &Layout, value: &Value) -> Result<Param, Refusal> {
        self.param(layout, &value.canonical())
    }

    /// Returns the parameter for a value.
    ///
    /// # Errors
    ///
    /// When the column cannot hold it.
    pub(crate) fn param(&self, layout: &Layout, value: &Value) -> Result<Param, Refusal> {
        let value = match (self.is_option, value) {
            (true, Value::Option(None)) => return Ok(Param::Null),
            (true, Value::Option(Some(inner))) => &**inner,
            (_, value) => value,
        };
        if self.cast == Cast::Json {
            return Ok(Param::Text(json::to_text(&layout.schema, value, &self.value_type)));
        }
        let mut value = value;
        while let Value::Ref(object) = value {
            value = object.key();
        }
        self.check_text(value)?;
        match (self.cast, value) {
            (Cast::Folded { unit: true }, Value::String(text)) if !is_folded(text) => Err(self
                .beyond(&format!(
                    "is citext, whose values here are given in small letters, such as {:?}, but \
                     was given {value}, which would be the same row",
                    text.to_lowercase()
                ))),
            (Cast::Real, Value::Float(number)) if !real_holds(number.0) => {
                Err(self.beyond(&format!("cannot hold {value}: it is real, which would round it")))
            }
            (Cast::Array(_), Value::List(items)) => array_text(items)
                .map(Param::Text)
                .ok_or_else(|| self.beyond(&format!("cannot hold {value}"))),
            (Cast::One(item), value) => item.param(value).map_err(|why| self.beyond(&why)),
            (Cast::Items(item), Value::List(items)) => {
                item.list_param(items).map_err(|why| self.beyond(&why))
            }
            _ => wire::param(value).ok_or_else(|| self.beyond(&format!("cannot hold {value}"))),
        }
    }

    /// Checks that the database would keep a text, or each text of a list, as it is.
    fn check_text(&self, value: &Value) -> Result<(), Refusal> {
        let (texts, items) = match (self.cast, value) {
            (Cast::Padded, value) => (Texts::Padded, std::slice::from_ref(value)),
            (Cast::Uuid, value) => (Texts::Uuid, std::slice::from_ref(value)),
            (Cast::Array(texts), Value::List(items)) => (texts, &**items),
            _ => return Ok(()),
        };
        let is_kept = |item: &&Value| match (texts, item) {
            (Texts::All, _) => true,
            (Texts::Padded, item) => !item.as_str().is_some_and(|text| text.ends_with(' ')),
            (Texts::Uuid, item) => item.as_str().is_some_and(is_uuid),
        };
        let Some(refused) = items.iter().find(|item| !is_kept(item)) else { return Ok(()) };
        Err(self.beyond(&match texts {
            Texts::Uuid => format!(
                "is a uuid, written like 0e37df36-f698-11e6-8dd4-cb9ced3df976 in small letters, \
                 but was given {refused}"
            ),
            _ => format!(
                "cannot hold {refused}: it fills its values up with blanks, and they are given without these"
            ),
        }))
    }

    /// Returns the parameter for a value that a register is given.
    ///
    /// # Errors
    ///
    /// When the column cannot hold it, or only the database can set its values.
    pub(crate) fn assigned(&self, layout: &Layout, value: &Value) -> Result<Param, Refusal> {
        if self.is_read_only {
            return Err(
                self.beyond("can only be read: the database sets its values (GENERATED ALWAYS)")
            );
        }
        self.param(layout, value)
    }

    /// Returns the refusal of a value that the column cannot hold.
    fn beyond(&self, why: &str) -> Refusal {
        let message = format!("column {} {why}", self.name);
        Violation::range(crate::name::unquoted(&self.name), message).into()
    }

    /// Returns the value in a cell; none if a column that is no `option` holds null.
    ///
    /// # Errors
    ///
    /// When the cell holds no value of the type.
    pub(crate) fn read(
        &self,
        layout: &Layout,
        cell: Option<&[u8]>,
    ) -> Result<Option<Value>, String> {
        let Some(raw) = cell else {
            return Ok(self.is_option.then_some(Value::NONE));
        };
        let misfit = || format!("column {} holds no {}", self.name, self.value_type);
        let value = match self.cast {
            Cast::Json => json::from_text(&layout.schema, raw, &self.value_type)
                .map_err(|error| format!("{}: {error}", misfit()))?,
            Cast::Array(_) => {
                let Type::List(inner) = &self.value_type else { return Err(misfit()) };
                array_value(raw, inner).map_err(|found| format!("{}: {found}", misfit()))?
            }
            Cast::Real => match wire::scalar(&Type::Float, raw) {
                Some(Value::Float(number)) => Value::from(of_real(number.0)),
                _ => return Err(misfit()),
            },
            Cast::One(item) => {
                let found = item.value(raw);
                let found = found.map_err(|found| format!("column {} holds {found}", self.name))?;
                of_scalar(&layout.schema, &self.value_type, found).ok_or_else(misfit)?
            }
            Cast::Items(item) => {
                item.list(raw).map_err(|found| format!("{}: {found}", misfit()))?
            }
            _ => scalar_value(&layout.schema, &self.value_type, raw).ok_or_else(misfit)?,
        };
        Ok(Some(if self.is_option { Value::some(value) } else { value }))
    }
}

fn scalar_value(schema: &Schema, value_type: &Type, raw: &[u8]) -> Option<Value> {
    of_scalar(schema, value_type, wire::scalar(scalar(schema, value_type), raw)?)
}

/// Converts a scalar to a value of the type: for a `ref` the scalar is its key.
fn of_scalar(schema: &Schema, value_type: &Type, value: Value) -> Option<Value> {
    let Type::Ref(kind) = value_type else { return Some(value) };
    let key = of_scalar(schema, &schema.objects.get(kind)?.key_type, value)?;
    Some(Value::Ref(Ref::new(kind.clone(), key)))
}

/// True if a `numeric` of `all` digits, of which `after` stand after the point, holds a number exactly. If `after` is
/// below 0, it holds multiples of a power of ten.
pub(super) fn holds(number: Decimal, all: i64, after: i64) -> bool {
    let number = number.canonical();
    if number.is_zero() {
        return true;
    }
    let mut digits = number.coefficient().unsigned_abs().to_string();
    let zeros = digits.len() - digits.trim_end_matches('0').len();
    digits.truncate(digits.len() - zeros);
    // The place of the last digit that is not 0, counted from the point to the right, and the one of the first.
    let last = i64::from(number.scale()) - zeros as i64;
    let first = last - digits.len() as i64 + 1;
    last <= after && after - first < all
}

/// True if the text is a UUID as PostgreSQL writes it: another form would name the same row.
fn is_uuid(text: &str) -> bool {
    let is_digit = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
    text.len() == 36
        && text.char_indices().all(|(index, c)| match index {
            8 | 13 | 18 | 23 => c == '-',
            _ => is_digit(c),
        })
}

#[cfg(test)]
mod tests;
