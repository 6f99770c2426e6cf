//! Columns of existing tables: the values that fit, and their casts.

use mingle_model::{Decimal, Ref, Schema, Type, Value, json};
use mingle_store::{Refusal, Violation};

use crate::layout::Layout;
use crate::wire::{self, Param};

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

/// The form in which values are sent and read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cast {
    /// Unchanged.
    Plain,
    /// As `bigint`.
    Whole,
    /// As text.
    Text,
    /// As text in the canonical form of a UUID.
    Uuid,
    /// As a `timestamptz`; a `timestamp` is taken to be in UTC. The column keeps `digits`
    /// fractional digits of a second.
    Moment { is_zoned: bool, digits: u32 },
    /// As a `date`.
    Day,
    /// As a `numeric`, of so many digits before the point and after it if the column has bounds.
    Number { digits: Option<(i64, i64)> },
    /// As JSON.
    Json,
    /// A counter: as text.
    Sum,
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
}

/// Returns the digits of a `numeric`, all of them and those after the point, from the modifier of its type.
pub(crate) fn digits_of(modifier: i64) -> (i64, i64) {
    // The number after the point has eleven bits, and may be below 0.
    ((modifier >> 16) & 0xffff, ((modifier & 0x7ff) ^ 0x400) - 0x400)
}

/// Returns the scalar that represents a type in a column: for a `ref` that of its key.
fn scalar<'t>(schema: &'t Schema, value_type: &'t Type) -> &'t Type {
    match value_type {
        Type::Ref(kind) => match schema.objects.get(kind) {
            Some(object) => scalar(schema, &object.key_type),
            None => value_type,
        },
        other => other,
    }
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
    ) -> Result<Self, String> {
        let misfit = |fits: &str| {
            Err(format!(
                "column {} is {}, but {what} is of type {declared}, for which {fits} would fit",
                found.name, found.shown
            ))
        };
        if found.is_generated {
            return misfit("a column that is not GENERATED ALWAYS");
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
            return Err(format!(
                "column {} is {}, but {what} is of type {declared}, for which a column that may be null would fit",
                found.name, found.shown
            ));
        }
        Self::of_key(schema, found, declared, what)
    }

    /// Creates a column of a key; the database may set its values.
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
        let (value_type, is_option) = match declared {
            Type::Option(inner) => (&**inner, true),
            other => (other, false),
        };
        let misfit = |fits: &str| {
            Err(format!(
                "column {} is {}, but {what} is of type {declared}, for which {fits} would fit",
                found.name, found.shown
            ))
        };
        let base = &*found.base;
        let cast = match scalar(schema, value_type) {
            Type::Bool if base == "boolean" => Cast::Plain,
            Type::Bool => return misfit("boolean"),
            Type::Int => match base {
                "smallint" | "integer" | "bigint" => Cast::Whole,
                "numeric" if matches!(found.digits, Some((..=18, 0))) => Cast::Whole,
                _ => return misfit("smallint, integer, bigint or numeric(18, 0)"),
            },
            Type::Float if base == "double precision" => Cast::Plain,
            Type::Float => return misfit("double precision"),
            Type::String => match base {
                "text" | "character varying" => Cast::Text,
                "uuid" => Cast::Uuid,
                _ if found.is_enum => Cast::Text,
                _ => return misfit("text, character varying, uuid or an enumeration"),
            },
            Type::Bytes if base == "bytea" => Cast::Plain,
            Type::Bytes => return misfit("bytea"),
            Type::Time => match base {
                "timestamp with time zone" | "timestamp without time zone" => Cast::Moment {
                    is_zoned: base == "timestamp with time zone",
                    digits: found.second_digits,
                },
                _ => return misfit("timestamp with time zone"),
            },
            Type::Decimal if base == "numeric" => Cast::Number { digits: found.digits },
            Type::Decimal => return misfit("numeric"),
            Type::Date if base == "date" => Cast::Day,
            Type::Date => return misfit("date"),
            _ => match base {
                "json" | "jsonb" => Cast::Json,
                _ => return misfit("json or jsonb"),
            },
        };
        Ok(Self {
            name: crate::name::quote(&found.name),
            value_type: value_type.clone(),
            is_option,
            is_read_only: found.is_generated,
            sql_type: found.sql_type.clone(),
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
            sql_type: found.sql_type.clone(),
            cast: Cast::Sum,
        })
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
            Cast::Text | Cast::Uuid | Cast::Json => format!("${number}::text::{sql_type}"),
            Cast::Sum => format!("${number}::text::numeric"),
            Cast::Day => format!("${number}::date::{sql_type}"),
            Cast::Number { .. } => format!("${number}::numeric::{sql_type}"),
            Cast::Moment { is_zoned: true, .. } => format!("${number}::timestamptz::{sql_type}"),
            Cast::Moment { .. } => {
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
            Cast::Text | Cast::Uuid | Cast::Json | Cast::Sum => format!("{name}::text"),
            Cast::Day => format!("{name}::date"),
            Cast::Number { .. } => format!("{name}::numeric"),
            Cast::Moment { is_zoned: true, .. } => format!("{name}::timestamptz"),
            Cast::Moment { .. } => format!("({name}::timestamp AT TIME ZONE 'UTC')"),
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
            let json = json::to_json(&layout.schema, value, &self.value_type);
            return Ok(Param::Text(json.to_string()));
        }
        let mut value = value;
        while let Value::Ref(object) = value {
            value = object.key();
        }
        if self.cast == Cast::Uuid && !value.as_str().is_some_and(is_uuid) {
            return Err(self.beyond(&format!(
                "is a uuid, written like 0e37df36-f698-11e6-8dd4-cb9ced3df976 in small letters, \
                 but was given {value}"
            )));
        }
        match (self.cast, value) {
            (Cast::Moment { digits, .. }, Value::Time(time)) => {
                // The database would round the value, and the row would then hold another one.
                if time.micros() % 10_i64.pow(6_u32.saturating_sub(digits)) != 0 {
                    return Err(self.beyond(&format!(
                        "cannot hold {value}: it keeps {digits} digits of a second's parts"
                    )));
                }
                wire::moment_param(*time)
                    .map_err(|why| self.beyond(&format!("cannot hold it: {why}")))
            }
            (Cast::Number { digits: Some((all, after)) }, Value::Decimal(number))
                if !holds(*number, all, after) =>
            {
                // The database would round the value, and the row would then hold another one.
                Err(self.beyond(&format!("cannot hold {value}: it is numeric({all}, {after})")))
            }
            (Cast::Day, Value::Date(day)) => {
                wire::day_param(*day).map_err(|why| self.beyond(&format!("cannot hold it: {why}")))
            }
            _ => wire::param(value).ok_or_else(|| self.beyond(&format!("cannot hold {value}"))),
        }
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
            Cast::Json => {
                let parsed = serde_json::from_slice(raw).map_err(|_| misfit())?;
                json::from_json(&layout.schema, &parsed, &self.value_type)
                    .map_err(|error| format!("{}: {error}", misfit()))?
            }
            Cast::Moment { .. } => {
                let time = wire::moment(raw);
                let time = time.map_err(|found| format!("column {} holds {found}", self.name))?;
                of_scalar(&layout.schema, &self.value_type, Value::Time(time)).ok_or_else(misfit)?
            }
            Cast::Number { .. } => {
                let number = crate::numeric::decode(raw);
                let number =
                    number.map_err(|found| format!("column {} holds {found}", self.name))?;
                of_scalar(&layout.schema, &self.value_type, Value::Decimal(number))
                    .ok_or_else(misfit)?
            }
            Cast::Day => {
                let day = wire::day(raw);
                let day = day.map_err(|found| format!("column {} holds {found}", self.name))?;
                of_scalar(&layout.schema, &self.value_type, Value::Date(day)).ok_or_else(misfit)?
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
fn holds(number: Decimal, all: i64, after: i64) -> bool {
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
mod tests {
    use super::*;

    fn described(base: &str) -> Described {
        Described {
            name: "c".into(),
            base: base.into(),
            shown: base.into(),
            sql_type: base.into(),
            is_enum: false,
            is_not_null: true,
            has_default: false,
            is_generated: false,
            digits: None,
            second_digits: 6,
        }
    }

    #[test]
    fn misfits_name_the_column_and_what_would_fit() {
        let schema = Schema::default();
        let check = |base: &str, declared: &Type| {
            Column::new(&schema, &described(base), declared, "K.f").map(|_| ())
        };
        assert_eq!(check("bigint", &Type::Int), Ok(()));
        for (base, declared, fits) in [
            ("real", Type::Float, "double precision"),
            ("numeric", Type::Int, "bigint"),
            ("character", Type::String, "character varying"),
            ("date", Type::Time, "timestamp with time zone"),
            ("timestamp with time zone", Type::Date, "date"),
            ("integer", Type::Option(Type::Int.into()), "may be null"),
        ] {
            let error = check(base, &declared).unwrap_err();
            assert!(error.contains("column c is"), "{error}");
            assert!(error.contains(base) && error.contains(fits), "{error}");
        }
    }

    #[test]
    fn a_column_holds_what_it_need_not_round() {
        let number = |text| Decimal::parse(text).expect("a decimal");
        for (text, all, after, expected) in [
            ("99.99", 4, 2, true),
            ("99.990", 4, 2, true),
            ("100", 4, 2, false),
            ("0.001", 4, 2, false),
            ("0.00", 4, 2, true),
            ("-99.99", 4, 2, true),
            ("1200", 2, -2, true),
            ("9900", 2, -2, true),
            ("10000", 2, -2, false),
            ("1250", 3, -2, false),
            ("0.00012", 2, 5, true),
            ("0.00123", 2, 5, false),
        ] {
            assert_eq!(
                holds(number(text), all, after),
                expected,
                "{text} in numeric({all}, {after})"
            );
        }
    }

    #[test]
    fn only_one_form_of_a_uuid_is_one() {
        assert!(is_uuid("0e37df36-f698-11e6-8dd4-cb9ced3df976"));
        assert!(!is_uuid("0E37DF36-f698-11e6-8dd4-cb9ced3df976"));
        assert!(!is_uuid("0e37df36f69811e68dd4cb9ced3df976"));
    }
}
