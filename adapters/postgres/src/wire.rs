//! Parameters and cells in messages to and from the server, in a few types. All other types are
//! cast in SQL, so that the server checks the values.

use std::error::Error;

use mingle_model::{Date, Decimal, Float, Time, Value};
use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type as SqlType, to_sql_checked};

/// 2000-01-01, PostgreSQL's epoch, in microseconds since 1970.
const EPOCH_US: i64 = 946_684_800_000_000;

/// The first moment that `timestamptz` is sure to hold, in 4711 BC, in microseconds since 1970. Its
/// last moment is later than any of [`Time`].
const MOMENT_MIN: i64 = -210_800_000_000_000_000;

/// 2000-01-01 in days since 1970.
const EPOCH_DAYS: i32 = 10_957;

/// The first and the last day that `date` holds, in 4714 BC and 5874897, in days since 1970.
const DAYS: std::ops::RangeInclusive<i32> = -2_440_588..=2_145_042_905;

/// A parameter of a statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Param {
    /// No value.
    Null,
    /// `bool`.
    Bool(bool),
    /// `bigint`.
    Int(i64),
    /// `timestamptz`.
    Moment(Time),
    /// `date`.
    Day(Date),
    /// `numeric`.
    Number(Decimal),
    /// `double precision`.
    Float(f64),
    /// `text`, or `json` in its text form.
    Text(String),
    /// `bytea`.
    Bytes(Vec<u8>),
    /// `bytea[]`.
    BytesList(Vec<Vec<u8>>),
    /// An array of this type.
    List(SqlType, Vec<Param>),
}

impl Param {
    /// Returns the type that it is sent as. Statements cast it if they need another type.
    pub fn sql_type(&self) -> SqlType {
        match self {
            Self::Null => SqlType::UNKNOWN,
            Self::Bool(_) => SqlType::BOOL,
            Self::Int(_) => SqlType::INT8,
            Self::Moment(_) => SqlType::TIMESTAMPTZ,
            Self::Day(_) => SqlType::DATE,
            Self::Number(_) => SqlType::NUMERIC,
            Self::Float(_) => SqlType::FLOAT8,
            Self::Text(_) => SqlType::TEXT,
            Self::Bytes(_) => SqlType::BYTEA,
            Self::BytesList(_) => SqlType::BYTEA_ARRAY,
            Self::List(array, _) => array.clone(),
        }
    }
}

impl ToSql for Param {
    fn to_sql(
        &self,
        sql_type: &SqlType,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Self::Null => Ok(IsNull::Yes),
            Self::Bool(value) => value.to_sql(sql_type, out),
            Self::Int(value) => value.to_sql(sql_type, out),
            // Microseconds since 2000.
            Self::Moment(time) => time.micros().saturating_sub(EPOCH_US).to_sql(sql_type, out),
            Self::Day(day) => day.days().saturating_sub(EPOCH_DAYS).to_sql(sql_type, out),
            Self::Number(number) => {
                out.extend_from_slice(&crate::numeric::encode(*number));
                Ok(IsNull::No)
            }
            Self::Float(value) => value.to_sql(sql_type, out),
            Self::Text(text) => text.as_str().to_sql(sql_type, out),
            Self::Bytes(bytes) => bytes.as_slice().to_sql(sql_type, out),
            Self::BytesList(list) => list.to_sql(sql_type, out),
            Self::List(array, items) => items.to_sql(array, out),
        }
    }

    /// Accepts any type: statements cast every parameter, so its type is always one of [`Param`]'s.
    fn accepts(_: &SqlType) -> bool {
        true
    }

    to_sql_checked!();
}

/// A row in the form of the driver that fetched it. Its cells are in the binary format.
pub enum Row {
    /// A row of tokio-postgres.
    Plain(tokio_postgres::Row),
    /// A row of sqlx.
    #[cfg(feature = "sqlx")]
    Sqlx(sqlx_postgres::PgRow),
}

impl Row {
    /// Returns the number of cells.
    pub fn len(&self) -> usize {
        match self {
            Self::Plain(row) => row.len(),
            #[cfg(feature = "sqlx")]
            Self::Sqlx(row) => sqlx_core::row::Row::len(row),
        }
    }

    /// Returns the names of its columns.
    pub fn names(&self) -> Vec<&str> {
        match self {
            Self::Plain(row) => row.columns().iter().map(tokio_postgres::Column::name).collect(),
            #[cfg(feature = "sqlx")]
            Self::Sqlx(row) => sqlx_core::row::Row::columns(row)
                .iter()
                .map(sqlx_core::column::Column::name)
                .collect(),
        }
    }

    /// Returns the type of a column; [`SqlType::UNKNOWN`] for a type that is not built in.
    pub fn column_type(&self, index: usize) -> SqlType {
        let found = match self {
            Self::Plain(row) => row.columns().get(index).map(|column| column.type_().clone()),
            #[cfg(feature = "sqlx")]
            Self::Sqlx(row) => sqlx_core::row::Row::columns(row)
                .get(index)
                .and_then(|column| sqlx_core::column::Column::type_info(column).oid())
                .and_then(|oid| SqlType::from_oid(oid.0)),
        };
        found.unwrap_or(SqlType::UNKNOWN)
    }
}

/// A cell's raw bytes.
struct Raw<'a>(Option<&'a [u8]>);

impl<'a> FromSql<'a> for Raw<'a> {
    fn from_sql(_: &SqlType, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(Some(raw)))
    }

    fn from_sql_null(_: &SqlType) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(None))
    }

    fn accepts(_: &SqlType) -> bool {
        true
    }
}

/// A row with cells in the binary format.
pub trait Cells {
    /// Returns the bytes of a cell; none if it is null or absent.
    fn cell(&self, index: usize) -> Option<&[u8]>;
}

impl Cells for tokio_postgres::Row {
    fn cell(&self, index: usize) -> Option<&[u8]> {
        self.try_get::<_, Raw<'_>>(index).ok().and_then(|raw| raw.0)
    }
}

impl<T: Cells> Cells for &T {
    fn cell(&self, index: usize) -> Option<&[u8]> {
        (**self).cell(index)
    }
}

impl Cells for Row {
    fn cell(&self, index: usize) -> Option<&[u8]> {
        match self {
            Self::Plain(row) => row.cell(index),
            #[cfg(feature = "sqlx")]
            Self::Sqlx(row) => sqlx_core::row::Row::try_get_raw(row, index).ok()?.as_bytes().ok(),
        }
    }
}

/// Returns the bytes of a cell; none if it is null or absent.
pub fn cell(row: &impl Cells, index: usize) -> Option<&[u8]> {
    row.cell(index)
}

/// Returns a `bytea`.
pub fn bytes(row: &impl Cells, index: usize) -> Vec<u8> {
    cell(row, index).unwrap_or_default().to_vec()
}

/// Returns a `bigint`; 0 if it is null.
pub fn int(row: &impl Cells, index: usize) -> i64 {
    cell(row, index).and_then(read_int).unwrap_or_default()
}

/// Returns a `bool`; false if it is null.
pub fn boolean(row: &impl Cells, index: usize) -> bool {
    cell(row, index).is_some_and(|raw| raw.first() == Some(&1))
}

/// Returns a `text`.
pub fn text(row: &impl Cells, index: usize) -> Option<&str> {
    std::str::from_utf8(cell(row, index)?).ok()
}

/// Returns a `bigint[]`; nulls in it become 0.
pub fn ints(row: &impl Cells, index: usize) -> Vec<i64> {
    let list = |raw| Vec::<Option<i64>>::from_sql(&SqlType::INT8_ARRAY, raw).ok();
    let found = cell(row, index).and_then(list);
    found.unwrap_or_default().into_iter().map(Option::unwrap_or_default).collect()
}

fn read_int(raw: &[u8]) -> Option<i64> {
    Some(i64::from_be_bytes(raw.try_into().ok()?))
}

/// Decodes a scalar of a type used on the wire: `bool`, `bigint` (for an `int`, a `time` or a `date`),
/// `double precision`, `numeric`, `text`, `bytea`.
pub fn scalar(value_type: &mingle_model::Type, raw: &[u8]) -> Option<Value> {
    use mingle_model::Type;
    Some(match value_type {
        Type::Bool => Value::Bool(*raw.first()? != 0),
        Type::Int => Value::Int(read_int(raw)?),
        Type::Time => Value::Time(Time::from_micros(read_int(raw)?)),
        Type::Date => Value::Date(Date::from_days(read_int(raw)?.try_into().ok()?)),
        Type::Decimal => Value::Decimal(crate::numeric::decode(raw).ok()?),
        Type::Float => {
            Value::Float(Float(f64::from_bits(u64::from_be_bytes(raw.try_into().ok()?))))
        }
        Type::String => Value::from(std::str::from_utf8(raw).ok()?),
        Type::Bytes => Value::Bytes(raw.into()),
        _ => return None,
    })
}

/// Returns the moment in a `timestamptz`, or in a `timestamp` that is taken to be in UTC.
///
/// # Errors
///
/// The cell's content, if it is no time: infinity, or a moment outside the range of [`Time`].
pub fn moment(raw: &[u8]) -> Result<Time, String> {
    match read_int(raw) {
        Some(i64::MAX) => Err("infinity, which is no time".into()),
        Some(i64::MIN) => Err("-infinity, which is no time".into()),
        Some(micros) => micros
            .checked_add(EPOCH_US)
            .map(Time::from_micros)
            .ok_or_else(|| "a time after the year 294246, the last that there is".into()),
        None => Err("no time".into()),
    }
}

/// Returns the day in a `date`.
///
/// # Errors
///
/// The cell's content, if it is no day: infinity.
pub fn day(raw: &[u8]) -> Result<Date, String> {
    match raw.try_into().map(i32::from_be_bytes) {
        Ok(i32::MAX) => Err("infinity, which is no date".into()),
        Ok(i32::MIN) => Err("-infinity, which is no date".into()),
        Ok(days) => days
            .checked_add(EPOCH_DAYS)
            .map(Date::from_days)
            .ok_or_else(|| "a date after the year 5881580, the last that there is".into()),
        Err(_) => Err("no date".into()),
    }
}

/// Returns the parameter for a day.
///
/// # Errors
///
/// When it is before the first day of `date`, or after the last.
pub fn day_param(day: Date) -> Result<Param, String> {
    if !DAYS.contains(&day.days()) {
        return Err(format!("{day} is beyond what date holds"));
    }
    Ok(Param::Day(day))
}

/// Returns the parameter for a moment.
///
/// # Errors
///
/// When it is before the first moment of `timestamptz`.
pub fn moment_param(time: Time) -> Result<Param, String> {
    if time.micros() < MOMENT_MIN {
        return Err(format!("{time} is beyond what timestamptz holds"));
    }
    Ok(Param::Moment(time))
}

/// Returns the parameter for a scalar; none for any other value.
pub fn param(value: &Value) -> Option<Param> {
    Some(match value {
        Value::Bool(value) => Param::Bool(*value),
        Value::Int(value) => Param::Int(*value),
        Value::Float(value) => Param::Float(value.0),
        Value::String(text) => Param::Text(text.to_string()),
        Value::Bytes(raw) => Param::Bytes(raw.to_vec()),
        Value::Time(time) => Param::Int(time.micros()),
        Value::Date(day) => Param::Int(day.days().into()),
        Value::Decimal(number) => Param::Number(*number),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use mingle_model::Type;

    use super::*;

    struct Line(Vec<Option<Vec<u8>>>);

    impl Cells for Line {
        fn cell(&self, index: usize) -> Option<&[u8]> {
            self.0.get(index)?.as_deref()
        }
    }

    #[test]
    fn cells_are_read_as_what_they_are() {
        let cells = [vec![1], vec![0], 7_i64.to_be_bytes().to_vec(), b"abc".to_vec(), vec![255]];
        let line = Line(cells.into_iter().map(Some).chain([None]).collect());
        assert_eq!([0, 1, 5, 6].map(|index| boolean(&line, index)), [true, false, false, false]);
        assert_eq!([2, 3, 5, 6].map(|index| int(&line, index)), [7, 0, 0, 0]);
        assert_eq!([3, 4, 5].map(|index| text(&line, index)), [Some("abc"), None, None]);
        assert_eq!([3, 5].map(|index| bytes(&line, index)), [b"abc".to_vec(), Vec::new()]);
    }

    #[test]
    fn scalars_are_read_by_their_types() {
        let eight = |bits: u64| bits.to_be_bytes();
        assert_eq!(scalar(&Type::Bool, &[1]), Some(Value::Bool(true)));
        assert_eq!(scalar(&Type::Bool, &[0]), Some(Value::Bool(false)));
        assert_eq!(scalar(&Type::Bool, &[]), None);
        assert_eq!(scalar(&Type::Int, &eight(u64::MAX)), Some(Value::Int(-1)));
        assert_eq!(scalar(&Type::Int, &[1]), None);
        assert_eq!(scalar(&Type::Time, &eight(5)), Some(Value::Time(Time::from_micros(5))));
        let half = scalar(&Type::Float, &eight(0.5_f64.to_bits()));
        assert_eq!(half, Some(Value::Float(Float(0.5))));
        assert_eq!(scalar(&Type::String, b"a"), Some(Value::from("a")));
        assert_eq!(scalar(&Type::String, &[255]), None);
        assert_eq!(scalar(&Type::Bytes, &[255]), Some(Value::Bytes([255].as_slice().into())));
        assert_eq!(scalar(&Type::List(Type::Int.into()), &[1]), None);
    }

    /// A value sent as a parameter comes back equal as a cell.
    #[test]
    fn parameters_are_of_the_values_types() {
        for (value, expected) in [
            (Value::Bool(true), Param::Bool(true)),
            (Value::Int(-3), Param::Int(-3)),
            (Value::from("a"), Param::Text("a".into())),
            (Value::Time(Time::from_micros(9)), Param::Int(9)),
        ] {
            assert_eq!(format!("{:?}", param(&value)), format!("{:?}", Some(expected)));
        }
        assert!(param(&Value::list([])).is_none());
        assert!(day_param(Date::from_days(*DAYS.start())).is_ok());
        assert!(day_param(Date::from_days(*DAYS.start() - 1)).is_err());
        assert!(day_param(Date::from_days(*DAYS.end() + 1)).is_err());
        assert!(moment_param(Time::from_micros(MOMENT_MIN)).is_ok());
        assert!(moment_param(Time::from_micros(MOMENT_MIN - 1)).is_err());
    }
}
