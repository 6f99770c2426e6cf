//! Values as parts of keys of a database that orders bytes.
//!
//! For any two values `a` and `b`, the bytes of `a` compare to those of `b` as `a` to `b`, and
//! neither is a prefix of the other unless they are equal, so parts can follow one another.

use mingle_model::{Date, Decimal, Document, Float, Ref, Time, Value};

const MORE: u8 = 1;
const END: u8 = 0;

/// Appends the key form of `value` to `key`.
pub fn encode(value: &Value, key: &mut Vec<u8>) {
    match value {
        Value::Bool(value) => key.extend([0, u8::from(*value)]),
        Value::Int(value) => {
            key.push(1);
            encode_int(*value, key);
        }
        Value::Float(value) => {
            key.push(2);
            encode_float(*value, key);
        }
        Value::String(text) => {
            key.push(3);
            encode_bytes(text.as_bytes(), key);
        }
        Value::Bytes(bytes) => {
            key.push(4);
            encode_bytes(bytes, key);
        }
        Value::Time(value) => {
            key.push(5);
            encode_int(value.micros(), key);
        }
        Value::Struct(values) => {
            key.push(6);
            encode_many(values, key);
        }
        Value::Option(None) => key.extend([7, END]),
        Value::Option(Some(value)) => {
            key.extend([7, MORE]);
            encode(value, key);
        }
        Value::List(values) => {
            key.push(8);
            encode_many(values, key);
        }
        Value::Ref(object) => {
            key.push(9);
            encode_bytes(object.kind().as_bytes(), key);
            encode(object.key(), key);
        }
        Value::Date(value) => {
            key.push(10);
            key.extend((value.days().cast_unsigned() ^ (1 << 31)).to_be_bytes());
        }
        Value::Decimal(value) => {
            key.push(11);
            key.extend(value.ordered_bytes());
        }
        Value::Json(document) => {
            key.push(12);
            encode_bytes(document.as_str().as_bytes(), key);
        }
    }
}

fn encode_int(value: i64, key: &mut Vec<u8>) {
    key.extend((value.cast_unsigned() ^ (1 << 63)).to_be_bytes());
}

fn encode_float(value: Float, key: &mut Vec<u8>) {
    let value = value.canonical();
    let bits = value.to_bits();
    let ordered = if value.is_nan() {
        u64::MAX
    } else if bits >> 63 == 0 {
        bits ^ (1 << 63)
    } else {
        !bits
    };
    key.extend(ordered.to_be_bytes());
}

/// Escapes zero bytes, so that the end mark, less than any byte that can follow, is unambiguous.
fn encode_bytes(bytes: &[u8], key: &mut Vec<u8>) {
    let mut rest = bytes;
    while let Some(zero) = rest.iter().position(|byte| *byte == 0) {
        key.extend(&rest[..zero]);
        key.extend([0, u8::MAX]);
        rest = &rest[zero + 1..];
    }
    key.extend(rest);
    key.extend([0, 0]);
}

fn encode_many(values: &[Value], key: &mut Vec<u8>) {
    for value in values {
        key.push(MORE);
        encode(value, key);
    }
    key.push(END);
}

/// Takes one value from the front of `key`; none if `key` does not start with a result of [`encode`].
///
/// ```
/// use mingle_model::Value;
/// use mingle_store::order;
///
/// let mut key = Vec::new();
/// order::encode(&Value::from("a"), &mut key);
/// order::encode(&Value::Int(3), &mut key);
/// let mut rest = key.as_slice();
/// assert_eq!(order::decode(&mut rest), Some(Value::from("a")));
/// assert_eq!(order::decode(&mut rest), Some(Value::Int(3)));
/// assert_eq!(order::decode(&mut rest), None);
/// ```
pub fn decode(key: &mut &[u8]) -> Option<Value> {
    Some(match take(key)? {
        0 => Value::Bool(take(key)? != 0),
        1 => Value::Int(decode_int(key)?),
        2 => Value::Float(decode_float(key)?),
        3 => Value::from(decode_text(key)?),
        4 => Value::Bytes(decode_bytes(key)?.into()),
        5 => Value::Time(Time::from_micros(decode_int(key)?)),
        6 => Value::Struct(decode_many(key)?.into()),
        7 if take(key)? == END => Value::NONE,
        7 => Value::some(decode(key)?),
        8 => Value::List(decode_many(key)?.into()),
        9 => {
            let kind = decode_text(key)?;
            Value::Ref(Ref::new(kind, decode(key)?))
        }
        10 => Value::Date(decode_date(key)?),
        11 => {
            let (first, rest) = key.split_first_chunk()?;
            *key = rest;
            Value::Decimal(Decimal::from_ordered_bytes(*first)?)
        }
        12 => Value::Json(Document::parse(&decode_text(key)?).ok()?),
        _ => return None,
    })
}

fn take(key: &mut &[u8]) -> Option<u8> {
    let (first, rest) = key.split_first()?;
    *key = rest;
    Some(*first)
}

fn decode_u64(key: &mut &[u8]) -> Option<u64> {
    let (first, rest) = key.split_first_chunk()?;
    *key = rest;
    Some(u64::from_be_bytes(*first))
}

fn decode_int(key: &mut &[u8]) -> Option<i64> {
    Some((decode_u64(key)? ^ (1 << 63)).cast_signed())
}

fn decode_date(key: &mut &[u8]) -> Option<Date> {
    let (first, rest) = key.split_first_chunk()?;
    *key = rest;
    Some(Date::from_days((u32::from_be_bytes(*first) ^ (1 << 31)).cast_signed()))
}

fn decode_float(key: &mut &[u8]) -> Option<Float> {
    let ordered = decode_u64(key)?;
    Some(Float(if ordered == u64::MAX {
        f64::NAN
    } else if ordered >> 63 == 1 {
        f64::from_bits(ordered ^ (1 << 63))
    } else {
        f64::from_bits(!ordered)
    }))
}

fn decode_bytes(key: &mut &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    loop {
        let zero = key.iter().position(|byte| *byte == 0)?;
        bytes.extend(&key[..zero]);
        *key = &key[zero + 1..];
        if take(key)? == 0 {
            return Some(bytes);
        }
        bytes.push(0);
    }
}

fn decode_text(key: &mut &[u8]) -> Option<String> {
    String::from_utf8(decode_bytes(key)?).ok()
}

fn decode_many(key: &mut &[u8]) -> Option<Vec<Value>> {
    let mut values = Vec::new();
    while take(key)? == MORE {
        values.push(decode(key)?);
    }
    Some(values)
}
