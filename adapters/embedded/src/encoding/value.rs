//! Values as they stand in rows: a version byte, then the value, exact to the bit (a negative
//! zero stays one).

use mingle_model::{Date, Decimal, Float, Ref, Time, Value};

use super::wire::{Reader, Writer};
use crate::limits::{ENCODED_BYTES_MAX, VALUE_DEPTH_MAX};

/// The format that this version writes, and the only one that it reads.
const FORMAT: u8 = 1;

/// Checks a value against the bounds of this engine.
///
/// # Errors
///
/// When it nests too deep or is too large.
pub fn check(value: &Value) -> Result<(), String> {
    let depth = depth(value, 0);
    if depth > VALUE_DEPTH_MAX {
        return Err(format!("a value nests deeper than {VALUE_DEPTH_MAX} levels"));
    }
    // Escaping at most doubles the size of a value.
    if value.weight() > ENCODED_BYTES_MAX / 2 {
        return Err(format!(
            "a value of {} bytes is larger than {}",
            value.weight(),
            ENCODED_BYTES_MAX / 2
        ));
    }
    Ok(())
}

fn depth(value: &Value, above: usize) -> usize {
    if above > VALUE_DEPTH_MAX {
        return above;
    }
    match value {
        Value::Struct(values) | Value::List(values) => {
            values.iter().map(|value| depth(value, above + 1)).max().unwrap_or(above)
        }
        Value::Option(Some(value)) => depth(value, above + 1),
        Value::Ref(object) => depth(object.key(), above + 1),
        _ => above,
    }
}

/// The row form of `value`.
pub fn encode(value: &Value) -> Vec<u8> {
    let mut writer = Writer::default();
    writer.u8(FORMAT);
    write(&mut writer, value);
    writer.0
}

fn write(writer: &mut Writer, value: &Value) {
    match value {
        Value::Bool(value) => {
            writer.u8(0);
            writer.u8(u8::from(*value));
        }
        Value::Int(value) => {
            writer.u8(1);
            writer.u64(value.cast_unsigned());
        }
        Value::Float(value) => {
            writer.u8(2);
            writer.u64(value.0.to_bits());
        }
        Value::String(text) => {
            writer.u8(3);
            writer.bytes(text.as_bytes());
        }
        Value::Bytes(bytes) => {
            writer.u8(4);
            writer.bytes(bytes);
        }
        Value::Time(value) => {
            writer.u8(5);
            writer.u64(value.micros().cast_unsigned());
        }
        Value::Struct(values) => write_many(writer, 6, values),
        Value::Option(None) => writer.u8(7),
        Value::Option(Some(value)) => {
            writer.u8(8);
            write(writer, value);
        }
        Value::List(values) => write_many(writer, 9, values),
        Value::Ref(object) => {
            writer.u8(10);
            writer.bytes(object.kind().as_bytes());
            write(writer, object.key());
        }
        Value::Date(value) => {
            writer.u8(11);
            writer.u32(value.days().cast_unsigned());
        }
        Value::Decimal(value) => {
            writer.u8(12);
            writer.u8(value.scale());
            writer.i128(value.coefficient());
        }
        Value::Json(document) => {
            writer.u8(13);
            writer.bytes(document.as_str().as_bytes());
        }
    }
}

fn write_many(writer: &mut Writer, tag: u8, values: &[Value]) {
    writer.u8(tag);
    writer.count(values.len());
    for value in values {
        write(writer, value);
    }
}

/// The value in a row.
///
/// # Panics
///
/// When the bytes are no result of [`encode`].
pub fn decode(bytes: &[u8]) -> Value {
    let mut reader = Reader(bytes);
    let format = reader.u8();
    assert_eq!(format, FORMAT, "a value of an unknown format is corrupt");
    let value = read(&mut reader);
    assert!(reader.is_empty(), "a value with bytes left over is corrupt");
    value
}

fn read(reader: &mut Reader<'_>) -> Value {
    match reader.u8() {
        0 => Value::Bool(reader.u8() != 0),
        1 => Value::Int(reader.u64().cast_signed()),
        2 => Value::Float(Float(f64::from_bits(reader.u64()))),
        3 => Value::from(read_text(reader)),
        4 => Value::Bytes(reader.bytes().into()),
        5 => Value::Time(Time::from_micros(reader.u64().cast_signed())),
        6 => Value::Struct(read_many(reader).into()),
        7 => Value::NONE,
        8 => Value::some(read(reader)),
        9 => Value::List(read_many(reader).into()),
        10 => {
            let kind = read_text(reader);
            Value::Ref(Ref::new(kind, read(reader)))
        }
        11 => Value::Date(Date::from_days(reader.u32().cast_signed())),
        12 => {
            let scale = reader.u8();
            let number = Decimal::new(reader.i128(), scale);
            Value::Decimal(number.expect("a decimal of too many digits is corrupt"))
        }
        13 => Value::Json(super::document(read_text(reader))),
        tag => panic!("a value of unknown tag {tag} is corrupt"),
    }
}

fn read_many(reader: &mut Reader<'_>) -> Vec<Value> {
    (0..reader.count()).map(|_| read(reader)).collect()
}

fn read_text<'a>(reader: &mut Reader<'a>) -> &'a str {
    std::str::from_utf8(reader.bytes()).expect("text was written as UTF-8: it is corrupt")
}
