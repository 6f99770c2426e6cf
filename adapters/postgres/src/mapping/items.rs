//! Arrays whose items are sent and read in the binary format, which depends on no setting of the server.

use mingle_model::{Document, Type, Value};
use tokio_postgres::types::Type as SqlType;

use super::column::{Described, holds};
use super::form::{of_real, real_holds};
use crate::wire::{self, Param};

/// The form in which a value, alone or in an array, is sent and read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    /// A `date`.
    Day,
    /// A `numeric`, of so many digits in all and after the point if the column has bounds.
    Number { digits: Option<(i64, i64)> },
    /// A `timestamptz`, or a `timestamp` in UTC. The column keeps `digits` fractional digits of a second.
    Moment { is_zoned: bool, digits: u32 },
    /// A `bytea`.
    Bytes,
    /// A `real`, as the `double precision` with the same shortest text.
    Real,
    /// A `json` or `jsonb`, as text.
    Json,
}

impl Item {
    /// Returns the form of the items of an array column, if they are of this type.
    pub(crate) fn of(items: &Type, found: &Described) -> Option<Self> {
        let base = found.base.strip_suffix("[]")?;
        Some(match (items, base) {
            (Type::Date, "date") => Self::Day,
            (Type::Decimal, "numeric") => Self::Number { digits: found.digits },
            (Type::Time, "timestamp with time zone" | "timestamp without time zone") => {
                let is_zoned = base == "timestamp with time zone";
                Self::Moment { is_zoned, digits: found.second_digits }
            }
            (Type::Bytes, "bytea") => Self::Bytes,
            (Type::Float, "real") => Self::Real,
            (Type::Json, "json" | "jsonb") => Self::Json,
            _ => return None,
        })
    }

    /// Returns the type of the array that is sent and read.
    pub(crate) fn array_type(self) -> &'static str {
        match self {
            Self::Day => "date[]",
            Self::Number { .. } => "numeric[]",
            Self::Moment { is_zoned: true, .. } => "timestamptz[]",
            Self::Moment { .. } => "timestamp[]",
            Self::Bytes => "bytea[]",
            Self::Real => "double precision[]",
            Self::Json => "text[]",
        }
    }

    fn sql_type(self) -> SqlType {
        match self {
            Self::Day => SqlType::DATE_ARRAY,
            Self::Number { .. } => SqlType::NUMERIC_ARRAY,
            Self::Moment { is_zoned: true, .. } => SqlType::TIMESTAMPTZ_ARRAY,
            Self::Moment { .. } => SqlType::TIMESTAMP_ARRAY,
            Self::Bytes => SqlType::BYTEA_ARRAY,
            Self::Real => SqlType::FLOAT8_ARRAY,
            Self::Json => SqlType::TEXT_ARRAY,
        }
    }

    /// Returns the parameter for one value.
    ///
    /// # Errors
    ///
    /// The reason why a column cannot hold it: the database would round it, and the row would then hold another value.
    pub(crate) fn param(self, value: &Value) -> Result<Param, String> {
        match (self, value) {
            (Self::Moment { digits, .. }, Value::Time(time)) => {
                if time.micros() % 10_i64.pow(6_u32.saturating_sub(digits)) != 0 {
                    return Err(format!(
                        "cannot hold {value}: it keeps {digits} digits of a second's parts"
                    ));
                }
                wire::moment_param(*time).map_err(|why| format!("cannot hold it: {why}"))
            }
            (Self::Number { digits: Some((all, after)) }, Value::Decimal(number))
                if !holds(*number, all, after) =>
            {
                Err(format!("cannot hold {value}: it is numeric({all}, {after})"))
            }
            (Self::Day, Value::Date(day)) => {
                wire::day_param(*day).map_err(|why| format!("cannot hold it: {why}"))
            }
            (Self::Real, Value::Float(number)) if !real_holds(number.0) => {
                Err(format!("cannot hold {value}: it is real, which would round it"))
            }
            (Self::Json, Value::Json(document)) => Ok(Param::Text(document.to_string())),
            _ => wire::param(value).ok_or_else(|| format!("cannot hold {value}")),
        }
    }

    /// Returns the parameter for a list.
    ///
    /// # Errors
    ///
    /// As for [`Item::param`], for the first item that the column cannot hold.
    pub(crate) fn list_param(self, items: &[Value]) -> Result<Param, String> {
        let items: Result<Vec<Param>, String> = items.iter().map(|item| self.param(item)).collect();
        Ok(Param::List(self.sql_type(), items?))
    }

    /// Returns the value of a cell, or of an item of an array.
    ///
    /// # Errors
    ///
    /// The content, if it is no value of the type.
    pub(crate) fn value(self, raw: &[u8]) -> Result<Value, String> {
        match self {
            Self::Day => wire::day(raw).map(Value::Date),
            Self::Number { .. } => crate::numeric::decode(raw).map(Value::Decimal),
            Self::Moment { .. } => wire::moment(raw).map(Value::Time),
            Self::Bytes => Ok(Value::Bytes(raw.into())),
            Self::Real => match wire::scalar(&Type::Float, raw) {
                Some(Value::Float(number)) => Ok(Value::from(of_real(number.0))),
                _ => Err("no number".to_owned()),
            },
            Self::Json => {
                let text = std::str::from_utf8(raw).map_err(|_| "no text".to_owned())?;
                Document::parse(text).map(Value::Json)
            }
        }
    }

    /// Returns the list in a cell.
    ///
    /// # Errors
    ///
    /// The content that no list holds: a null, a second dimension, or an item that is no value of the type.
    pub(crate) fn list(self, raw: &[u8]) -> Result<Value, String> {
        let items = items(raw)?;
        let items = items.into_iter().map(|item| match item {
            Some(item) => self.value(item).map_err(|found| format!("its array has {found}")),
            None => Err("its array has a null".to_owned()),
        });
        items.collect::<Result<Vec<Value>, String>>().map(Value::list)
    }
}

/// Returns the items of an array of one dimension in the binary format: the number of dimensions, a mark for nulls
/// and the type of the items; for each dimension its length and its first index; for each item its length, or
/// -1 for a null, and its bytes.
fn items(raw: &[u8]) -> Result<Vec<Option<&[u8]>>, String> {
    let broken = || "no array".to_owned();
    let mut rest = raw;
    let mut take = || -> Option<i32> {
        let (first, after) = rest.split_first_chunk::<4>()?;
        rest = after;
        Some(i32::from_be_bytes(*first))
    };
    let (dimensions, _, _) = (take(), take(), take());
    let count = match dimensions {
        Some(0) => return Ok(Vec::new()),
        Some(1) => take().ok_or_else(broken)?,
        Some(_) => return Err("its array has several dimensions".into()),
        None => return Err(broken()),
    };
    take().ok_or_else(broken)?;
    let mut items = Vec::new();
    for _ in 0..count {
        let (length, after) = rest.split_first_chunk::<4>().ok_or_else(broken)?;
        rest = after;
        items.push(match usize::try_from(i32::from_be_bytes(*length)) {
            Ok(length) => {
                let (item, after) = rest.split_at_checked(length).ok_or_else(broken)?;
                rest = after;
                Some(item)
            }
            Err(_) => None,
        });
    }
    Ok(items)
}

#[cfg(test)]
mod tests {
    use mingle_model::Date;

    use super::*;

    #[test]
    fn arrays_are_read_from_their_bytes() {
        let array = |numbers: &[i32]| -> Vec<u8> {
            numbers.iter().flat_map(|number| number.to_be_bytes()).collect()
        };
        let days = |found: &[i32]| {
            Ok(Value::list(found.iter().map(|days| Value::Date(Date::from_days(*days)))))
        };
        // Days are counted from 2000.
        assert_eq!(Item::Day.list(&array(&[0, 0, 1082])), days(&[]));
        assert_eq!(
            Item::Day.list(&array(&[1, 0, 1082, 2, 1, 4, 0, 4, -10_957])),
            days(&[10_957, 0])
        );
        for (raw, words) in [
            (array(&[1, 1, 1082, 2, 1, 4, 0, -1]), "its array has a null"),
            (array(&[2, 0, 1082, 1, 1, 1, 1, 4, 0]), "its array has several dimensions"),
            (array(&[1, 0, 1082, 1, 1, 4, i32::MAX]), "its array has infinity, which is no date"),
            (array(&[1, 0, 1082, 3, 1, 4, 0]), "no array"),
            (array(&[1, 0, 1082, 1, 1, 400, 0]), "no array"),
            (array(&[1, 0]), "no array"),
            (Vec::new(), "no array"),
        ] {
            assert_eq!(Item::Day.list(&raw), Err(words.to_owned()));
        }
    }
}
