//! Values in columns of foreign tables, in the column's own type.
//!
//! | type | column |
//! | --- | --- |
//! | `string` | `text`, `ascii`; `uuid`, `timeuuid` as their text |
//! | `int` | `bigint`; `int`, `smallint`, `tinyint` have smaller ranges, and refuse values beyond them |
//! | `float`, `bool`, `bytes`, `time` | `double`, `boolean`, `blob`, `timestamp` |
//! | `date` | `date` |
//! | `decimal` | `decimal` |
//! | `ref` | as the object's key |
//! | `option` | a column that may be null |
//! | all others | `text`, as JSON |

use std::fmt;

use mingle_model::{Date, Decimal, Float, Ref, Schema, Time, Tree, Type, Value, json};
use mingle_store::{Refusal, Violation, ViolationKind};
use scylla::cluster::metadata::{ColumnType, NativeType};
use scylla::value::{CqlDate, CqlDecimal, CqlTimestamp, CqlTimeuuid, CqlValue};
use serde::{Deserialize, Serialize};

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Text,
    Ascii,
    Blob,
    Bool,
    Tiny,
    Small,
    Int,
    Big,
    Double,
    Moment,
    Uuid,
    TimeUuid,
    Day,
    Number,
}

impl Kind {
    /// Returns the kind of a column of this type; none if values of the language have no form
    /// there.
    pub fn of(column: &ColumnType<'_>) -> Option<Self> {
        let ColumnType::Native(native) = column else { return None };
        Some(match native {
            NativeType::Text => Self::Text,
            NativeType::Ascii => Self::Ascii,
            NativeType::Blob => Self::Blob,
            NativeType::Boolean => Self::Bool,
            NativeType::TinyInt => Self::Tiny,
            NativeType::SmallInt => Self::Small,
            NativeType::Int => Self::Int,
            NativeType::BigInt => Self::Big,
            NativeType::Double => Self::Double,
            NativeType::Timestamp => Self::Moment,
            NativeType::Uuid => Self::Uuid,
            NativeType::Timeuuid => Self::TimeUuid,
            NativeType::Date => Self::Day,
            NativeType::Decimal => Self::Number,
            _ => return None,
        })
    }

    /// Returns the type that values in columns of this kind have by themselves.
    pub fn declared(self) -> Type {
        match self {
            Self::Text | Self::Ascii | Self::Uuid | Self::TimeUuid => Type::String,
            Self::Blob => Type::Bytes,
            Self::Bool => Type::Bool,
            Self::Tiny | Self::Small | Self::Int | Self::Big => Type::Int,
            Self::Double => Type::Float,
            Self::Moment => Type::Time,
            Self::Day => Type::Date,
            Self::Number => Type::Decimal,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text => "text",
            Self::Ascii => "ascii",
            Self::Blob => "blob",
            Self::Bool => "boolean",
            Self::Tiny => "tinyint",
            Self::Small => "smallint",
            Self::Int => "int",
            Self::Big => "bigint",
            Self::Double => "double",
            Self::Moment => "timestamp",
            Self::Uuid => "uuid",
            Self::TimeUuid => "timeuuid",
            Self::Day => "date",
            Self::Number => "decimal",
        })
    }
}

/// A value for a column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Scalar {
    Null,
    Text(String),
    Ascii(String),
    Blob(Vec<u8>),
    Bool(bool),
    Tiny(i8),
    Small(i16),
    Int(i32),
    Big(i64),
    /// The bits.
    Double(u64),
    Moment(i64),
    Uuid([u8; 16]),
    TimeUuid([u8; 16]),
    /// Days since 1970.
    Day(i32),
    Number(Decimal),
}

impl Scalar {
    /// Returns the driver's form of the value.
    pub fn bound(&self) -> Option<CqlValue> {
        Some(match self {
            Self::Null => return None,
            Self::Text(text) => CqlValue::Text(text.clone()),
            Self::Ascii(text) => CqlValue::Ascii(text.clone()),
            Self::Blob(bytes) => CqlValue::Blob(bytes.clone()),
            Self::Bool(value) => CqlValue::Boolean(*value),
            Self::Tiny(value) => CqlValue::TinyInt(*value),
            Self::Small(value) => CqlValue::SmallInt(*value),
            Self::Int(value) => CqlValue::Int(*value),
            Self::Big(value) => CqlValue::BigInt(*value),
            Self::Double(bits) => CqlValue::Double(f64::from_bits(*bits)),
            Self::Moment(ms) => CqlValue::Timestamp(CqlTimestamp(*ms)),
            Self::Uuid(bytes) => CqlValue::Uuid(CqlTimeuuid::from_bytes(*bytes).into()),
            Self::TimeUuid(bytes) => CqlValue::Timeuuid(CqlTimeuuid::from_bytes(*bytes)),
            // In CQL, days are counted from the first one that there is.
            Self::Number(number) => CqlValue::Decimal(number_of(*number)),
            Self::Day(days) => CqlValue::Date(CqlDate(days.cast_unsigned() ^ (1 << 31))),
        })
    }

    /// Returns its approximate size in bytes.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Text(text) | Self::Ascii(text) => text.len(),
            Self::Blob(bytes) => bytes.len(),
            _ => 16,
        }
    }
}

/// Checks that values of a type have a form in columns of a kind.
///
/// # Errors
///
/// When they have none.
pub fn check(schema: &Schema, kind: Kind, value_type: &Type) -> Result<(), String> {
    let fits = match value_type {
        Type::Option(inner) if !matches!(**inner, Type::Option(_)) => {
            return check(schema, kind, inner);
        }
        Type::Ref(name) => match schema.objects.get(name) {
            Some(object) => return check(schema, kind, &object.key_type),
            None => false,
        },
        Type::String => matches!(kind, Kind::Text | Kind::Ascii | Kind::Uuid | Kind::TimeUuid),
        Type::Int => matches!(kind, Kind::Big | Kind::Int | Kind::Small | Kind::Tiny),
        Type::Float => kind == Kind::Double,
        Type::Bool => kind == Kind::Bool,
        Type::Bytes => kind == Kind::Blob,
        Type::Time => kind == Kind::Moment,
        Type::Date => kind == Kind::Day,
        Type::Decimal => kind == Kind::Number,
        _ => kind == Kind::Text,
    };
    if fits { Ok(()) } else { Err(format!("{value_type} has no form in a column of type {kind}")) }
}

/// Converts a value for a column of a kind that fits its type.
///
/// # Errors
///
/// When the value is beyond the range of the column.
pub fn encode(
    schema: &Schema,
    kind: Kind,
    value: &Value,
    value_type: &Type,
) -> Result<Scalar, Refusal> {
    let beyond = || range(format!("{value} is beyond what a column of type {kind} holds"));
    Ok(match (value, value_type) {
        (Value::Option(None), _) => Scalar::Null,
        (Value::Option(Some(inner)), Type::Option(of)) if !matches!(**of, Type::Option(_)) => {
            encode(schema, kind, inner, of)?
        }
        (Value::Ref(object), Type::Ref(name)) if schema.objects.contains_key(name) => {
            encode(schema, kind, object.key(), &schema.objects[name].key_type)?
        }
        (Value::String(text), _) => match kind {
            Kind::Ascii if text.is_ascii() => Scalar::Ascii(text.to_string()),
            Kind::Text => Scalar::Text(text.to_string()),
            Kind::Uuid => Scalar::Uuid(uuid(text).ok_or_else(beyond)?),
            Kind::TimeUuid => Scalar::TimeUuid(uuid(text).ok_or_else(beyond)?),
            _ => return Err(beyond()),
        },
        (Value::Int(value), _) => match kind {
            Kind::Tiny => Scalar::Tiny((*value).try_into().map_err(|_| beyond())?),
            Kind::Small => Scalar::Small((*value).try_into().map_err(|_| beyond())?),
            Kind::Int => Scalar::Int((*value).try_into().map_err(|_| beyond())?),
            _ => Scalar::Big(*value),
        },
        (Value::Float(value), _) => Scalar::Double(value.0.to_bits()),
        (Value::Bool(value), _) => Scalar::Bool(*value),
        (Value::Bytes(bytes), _) => Scalar::Blob(bytes.to_vec()),
        // A `timestamp` has milliseconds: a finer time would become another one.
        (Value::Time(time), _) if time.micros() % 1_000 != 0 => {
            let why = format!("{value} is beyond what a timestamp holds, which is milliseconds");
            return Err(range(why));
        }
        (Value::Time(time), _) => Scalar::Moment(time.millis()),
        (Value::Date(day), _) => Scalar::Day(day.days()),
        (Value::Decimal(number), _) => Scalar::Number(*number),
        (value, of) => Scalar::Text(json::to_text(schema, value, of)),
    })
}

/// Returns the refusal of a value that a column of the type cannot hold.
fn range(message: String) -> Refusal {
    Violation::of(ViolationKind::Range, message).into()
}

/// Returns the value in a column.
///
/// # Errors
///
/// When it does not have this type.
pub fn decode(
    schema: &Schema,
    column: Option<&CqlValue>,
    value_type: &Type,
) -> Result<Value, String> {
    let odd = || match column {
        None => format!("expected {value_type}, found null"),
        Some(found) => format!("expected {value_type}, found {found}"),
    };
    match value_type {
        Type::Option(inner) if !matches!(**inner, Type::Option(_)) => {
            let inner = column.map(|_| decode(schema, column, inner)).transpose()?;
            return Ok(inner.map_or(Value::NONE, Value::some));
        }
        Type::Ref(name) => {
            let object = schema.objects.get(name).ok_or_else(odd)?;
            let key = decode(schema, column, &object.key_type)?;
            return Ok(Value::Ref(Ref::new(name.clone(), key)));
        }
        _ => {}
    }
    let column = column.ok_or_else(odd)?;
    Ok(match (value_type, column) {
        (Type::String, CqlValue::Text(text) | CqlValue::Ascii(text)) => json::read_string(text)?,
        (Type::String, CqlValue::Uuid(id)) => Value::from(id.to_string()),
        (Type::String, CqlValue::Timeuuid(id)) => Value::from(id.to_string()),
        (Type::Int, CqlValue::BigInt(value)) => Value::Int(*value),
        (Type::Int, CqlValue::Int(value)) => Value::Int((*value).into()),
        (Type::Int, CqlValue::SmallInt(value)) => Value::Int((*value).into()),
        (Type::Int, CqlValue::TinyInt(value)) => Value::Int((*value).into()),
        (Type::Float, CqlValue::Double(value)) => Value::Float(Float(*value)),
        (Type::Bool, CqlValue::Boolean(value)) => Value::Bool(*value),
        (Type::Bytes, CqlValue::Blob(bytes)) => Value::Bytes(bytes.as_slice().into()),
        (Type::Time, CqlValue::Timestamp(at)) => Value::Time(moment(at.0)?),
        (Type::Decimal, CqlValue::Decimal(number)) => Value::Decimal(decimal(number)?),
        (Type::Date, CqlValue::Date(day)) => {
            Value::Date(Date::from_days((day.0 ^ (1 << 31)).cast_signed()))
        }
        // Results of counting: `count(*)` is a bigint, and a native counter reads as a counter
        // value.
        (Type::Int, CqlValue::Counter(count)) => Value::Int(count.0),
        (_, CqlValue::Text(text)) => {
            let read = Tree::parse(text.as_bytes()).map_err(|_| odd())?;
            json::from_tree(schema, &read, value_type).map_err(|error| error.to_string())?
        }
        _ => return Err(odd()),
    })
}

/// Returns the time from milliseconds.
fn moment(millis: i64) -> Result<Time, String> {
    let micros = millis.checked_mul(1_000).map(Time::from_micros);
    micros.ok_or_else(|| format!("expected a time, found a timestamp of {millis} ms"))
}

/// Returns a number as Cassandra writes it: in as few bytes as hold it with its sign.
fn number_of(number: Decimal) -> CqlDecimal {
    let bytes = number.coefficient().to_be_bytes();
    let is_fill = |at: usize| {
        let fill = if number.coefficient() < 0 { 255 } else { 0 };
        bytes[at] == fill && (bytes[at + 1] ^ fill) < 128
    };
    let first = (0..bytes.len() - 1).find(|at| !is_fill(*at)).unwrap_or(bytes.len() - 1);
    CqlDecimal::from_signed_be_bytes_slice_and_exponent(&bytes[first..], number.scale().into())
}

/// Returns the number in a column.
fn decimal(found: &CqlDecimal) -> Result<Decimal, String> {
    let (bytes, scale) = found.as_signed_be_bytes_slice_and_exponent();
    let most = Decimal::DIGITS_MAX;
    let too_many = || format!("expected a decimal, found one of more than {most} digits");
    let fill = if bytes.first().is_some_and(|first| *first >= 128) { 255 } else { 0 };
    let zeros = bytes.iter().take_while(|byte| **byte == fill).count();
    let kept = &bytes[zeros..];
    let mut all = [fill; 16];
    let start = all.len().checked_sub(kept.len()).ok_or_else(too_many)?;
    all[start..].copy_from_slice(kept);
    let mut coefficient = i128::from_be_bytes(all);
    if (coefficient < 0) != (fill == 255) {
        return Err(too_many());
    }
    // Other clients also write scales below 0, and more zeros than a decimal keeps.
    let mut scale = scale;
    while scale > Decimal::SCALE_MAX.into() && coefficient % 10 == 0 && coefficient != 0 {
        coefficient /= 10;
        scale -= 1;
    }
    if coefficient == 0 {
        scale = scale.clamp(0, Decimal::SCALE_MAX.into());
    }
    while scale < 0 {
        coefficient = coefficient.checked_mul(10).ok_or_else(too_many)?;
        scale += 1;
    }
    let scale = u8::try_from(scale).map_err(|_| too_many())?;
    Decimal::new(coefficient, scale).ok_or_else(too_many)
}

/// Returns the sixteen bytes of an identifier's text.
fn uuid(text: &str) -> Option<[u8; 16]> {
    let groups: Vec<&str> = text.split('-').collect();
    let sizes: Vec<usize> = groups.iter().map(|group| group.len()).collect();
    if sizes != [8, 4, 4, 4, 12] || !text.chars().all(|c| c.is_ascii_hexdigit() || c == '-') {
        return None;
    }
    u128::from_str_radix(&groups.concat(), 16).ok().map(u128::to_be_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_hold_what_they_are_given_or_refuse_it() {
        let schema = Schema::default();
        let number = |text: &str| Value::Decimal(Decimal::parse(text).unwrap());
        let cases = [
            (Kind::Text, Type::String, Value::from("é")),
            (Kind::Ascii, Type::String, Value::from("e")),
            (Kind::Uuid, Type::String, Value::from("01234567-89ab-cdef-0123-456789abcdef")),
            (Kind::Tiny, Type::Int, Value::Int(-128)),
            (Kind::Small, Type::Int, Value::Int(32_767)),
            (Kind::Int, Type::Int, Value::Int(i64::from(i32::MIN))),
            (Kind::Big, Type::Int, Value::Int(i64::MAX)),
            (Kind::Double, Type::Float, Value::from(-0.5)),
            (Kind::Bool, Type::Bool, Value::Bool(true)),
            (Kind::Blob, Type::Bytes, Value::Bytes([0, 255].as_slice().into())),
            (Kind::Moment, Type::Time, Value::Time(Time::from_millis(-1))),
            (Kind::Day, Type::Date, Value::Date(Date::MIN)),
            (Kind::Number, Type::Decimal, number("0.00")),
            (Kind::Number, Type::Decimal, number("-19.90")),
            (Kind::Number, Type::Decimal, number("255")),
            (Kind::Number, Type::Decimal, number("-128")),
            (Kind::Number, Type::Decimal, number(&"9".repeat(38))),
            (Kind::Number, Type::Decimal, number(&format!("-0.{}", "9".repeat(38)))),
            (Kind::Day, Type::Date, Value::Date(Date::from_days(20_484))),
            (Kind::Day, Type::Date, Value::Date(Date::MAX)),
            (Kind::Text, Type::List(Type::Int.into()), Value::list([Value::Int(1)])),
            (Kind::Text, Type::Json, Value::Json("[1e30, null]".parse().unwrap())),
            (Kind::Big, Type::Option(Type::Int.into()), Value::NONE),
            (Kind::Big, Type::Option(Type::Int.into()), Value::some(Value::Int(7))),
        ];
        for (kind, of, value) in cases {
            check(&schema, kind, &of).unwrap();
            let scalar = encode(&schema, kind, &value, &of).unwrap();
            let found = decode(&schema, scalar.bound().as_ref(), &of);
            // Equal decimals of other scales show as different texts.
            let shown = found.as_ref().map(ToString::to_string);
            assert_eq!(shown, Ok(value.to_string()), "{kind:?} {of}");
            assert_eq!(found, Ok(value), "{kind:?} {of}");
        }
        for (kind, of, value) in [
            (Kind::Tiny, Type::Int, Value::Int(128)),
            (Kind::Ascii, Type::String, Value::from("é")),
            (Kind::Uuid, Type::String, Value::from("x")),
            (Kind::Moment, Type::Time, Value::Time(Time::from_micros(-1))),
        ] {
            let refused = encode(&schema, kind, &value, &of);
            assert!(
                matches!(refused, Err(Refusal::Broken(why)) if why.message.contains("beyond")),
                "{kind:?}"
            );
        }
        assert!(check(&schema, Kind::Int, &Type::String).is_err());
        assert!(decode(&schema, None, &Type::Int).is_err());
    }
}
