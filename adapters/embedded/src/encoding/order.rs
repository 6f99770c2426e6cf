//! Values as parts of keys.
//!
//! For any two values `a` and `b`, the bytes of `a` compare to those of `b` as `a` to `b`, and
//! neither is a prefix of the other unless they are equal, so parts can follow one another.

use mingle_model::{Date, Decimal, Float, Ref, Time, Value};

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

/// Takes one value from the front of `key`.
///
/// # Panics
///
/// When `key` does not start with a result of [`encode`].
pub fn decode(key: &mut &[u8]) -> Value {
    match take(key) {
        0 => Value::Bool(take(key) != 0),
        1 => Value::Int(decode_int(key)),
        2 => Value::Float(decode_float(key)),
        3 => Value::from(decode_text(key)),
        4 => Value::Bytes(decode_bytes(key).into()),
        5 => Value::Time(Time::from_micros(decode_int(key))),
        6 => Value::Struct(decode_many(key).into()),
        7 if take(key) == END => Value::NONE,
        7 => Value::some(decode(key)),
        8 => Value::List(decode_many(key).into()),
        9 => {
            let kind = decode_text(key);
            Value::Ref(Ref::new(kind, decode(key)))
        }
        10 => Value::Date(decode_date(key)),
        11 => {
            let (first, rest) = key.split_first_chunk().expect("a key that ends early is corrupt");
            *key = rest;
            let number = Decimal::from_ordered_bytes(*first);
            Value::Decimal(number.expect("a decimal of other bytes is corrupt"))
        }
        12 => Value::Json(super::document(&decode_text(key))),
        tag => panic!("a key part of unknown tag {tag} is corrupt"),
    }
}

fn take(key: &mut &[u8]) -> u8 {
    let (first, rest) = key.split_first().expect("a key that ends early is corrupt");
    *key = rest;
    *first
}

fn decode_u64(key: &mut &[u8]) -> u64 {
    let (first, rest) = key.split_first_chunk().expect("a key that ends early is corrupt");
    *key = rest;
    u64::from_be_bytes(*first)
}

fn decode_int(key: &mut &[u8]) -> i64 {
    (decode_u64(key) ^ (1 << 63)).cast_signed()
}

fn decode_date(key: &mut &[u8]) -> Date {
    let (first, rest) = key.split_first_chunk().expect("a key that ends early is corrupt");
    *key = rest;
    Date::from_days((u32::from_be_bytes(*first) ^ (1 << 31)).cast_signed())
}

fn decode_float(key: &mut &[u8]) -> Float {
    let ordered = decode_u64(key);
    Float(if ordered == u64::MAX {
        f64::NAN
    } else if ordered >> 63 == 1 {
        f64::from_bits(ordered ^ (1 << 63))
    } else {
        f64::from_bits(!ordered)
    })
}

fn decode_bytes(key: &mut &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let zero =
            key.iter().position(|byte| *byte == 0).expect("a key that ends early is corrupt");
        bytes.extend(&key[..zero]);
        *key = &key[zero + 1..];
        if take(key) == 0 {
            return bytes;
        }
        bytes.push(0);
    }
}

fn decode_text(key: &mut &[u8]) -> String {
    String::from_utf8(decode_bytes(key)).expect("text was written as UTF-8: it is corrupt")
}

fn decode_many(key: &mut &[u8]) -> Vec<Value> {
    let mut values = Vec::new();
    while take(key) == MORE {
        values.push(decode(key));
    }
    values
}
