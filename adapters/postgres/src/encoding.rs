//! Values as bytes: one form for each class of equal values, which marks its own end.
//!
//! Digests of this form identify objects and elements of any type and length: a btree index of
//! PostgreSQL holds at most 2,700 bytes of a key.

use mingle_model::{Date, Decimal, Document, Float, Ref, Time, TransactionId, Value, WitnessRow};
use sha2::{Digest as _, Sha256};

/// SHA-256 of the encoded form.
pub type Digest = Vec<u8>;

/// Identifies an object.
pub fn object_digest(object: &Ref) -> Digest {
    let mut bytes = Vec::new();
    put_bytes(&mut bytes, object.kind().as_bytes());
    encode(object.key(), &mut bytes);
    Sha256::digest(&bytes).to_vec()
}

/// Returns the digest of an element of a set, or of an entry of a map.
pub fn element_digest(object: &Digest, element: &Value) -> Digest {
    let mut bytes = object.clone();
    encode(element, &mut bytes);
    Sha256::digest(&bytes).to_vec()
}

/// Returns the digest of a witness row; equal rows have the same digest.
pub fn witness_digest(object: &Digest, row: &WitnessRow, details: &str) -> Digest {
    let mut bytes = object.clone();
    bytes.extend(transaction(row.id));
    bytes.extend(details.as_bytes());
    Sha256::digest(&bytes).to_vec()
}

/// Returns a short name for a long text.
pub fn short_digest(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    let (first, _) = digest.split_first_chunk().expect("a digest has 32 bytes");
    format!("{:016x}", u64::from_be_bytes(*first))
}

/// Returns the bytes of a transaction's id; ids are ordered like their bytes.
pub fn transaction(id: TransactionId) -> Vec<u8> {
    let mut bytes = id.origin.0.to_be_bytes().to_vec();
    bytes.extend(id.sequence.to_be_bytes());
    bytes
}

/// Decodes an id from [`transaction`]'s form.
pub fn read_transaction(bytes: &[u8]) -> Option<TransactionId> {
    let (origin, rest) = bytes.split_first_chunk()?;
    Some(TransactionId {
        origin: mingle_model::Origin(u128::from_be_bytes(*origin)),
        sequence: u64::from_be_bytes(rest.try_into().ok()?),
    })
}

/// Appends a value.
pub fn encode(value: &Value, bytes: &mut Vec<u8>) {
    put(&value.canonical(), bytes);
}

/// Appends a value exactly: equal values with different representations differ here.
pub fn encode_exactly(value: &Value, bytes: &mut Vec<u8>) {
    put(value, bytes);
}

fn put(value: &Value, bytes: &mut Vec<u8>) {
    match value {
        Value::Bool(value) => bytes.extend([0, u8::from(*value)]),
        Value::Int(value) => {
            bytes.push(1);
            bytes.extend(value.to_be_bytes());
        }
        Value::Float(value) => {
            bytes.push(2);
            bytes.extend(value.0.to_bits().to_be_bytes());
        }
        Value::String(text) => {
            bytes.push(3);
            put_bytes(bytes, text.as_bytes());
        }
        Value::Bytes(raw) => {
            bytes.push(4);
            put_bytes(bytes, raw);
        }
        Value::Time(value) => {
            bytes.push(5);
            bytes.extend(value.micros().to_be_bytes());
        }
        Value::Struct(values) => put_many(bytes, 6, values),
        Value::Option(None) => bytes.push(7),
        Value::Option(Some(value)) => {
            bytes.push(8);
            put(value, bytes);
        }
        Value::List(values) => put_many(bytes, 9, values),
        Value::Ref(object) => {
            bytes.push(10);
            put_bytes(bytes, object.kind().as_bytes());
            put(object.key(), bytes);
        }
        Value::Date(value) => {
            bytes.push(11);
            bytes.extend(value.days().to_be_bytes());
        }
        Value::Decimal(value) => {
            bytes.extend([12, value.scale()]);
            bytes.extend(value.coefficient().to_be_bytes());
        }
        Value::Json(document) => {
            bytes.push(13);
            put_bytes(bytes, document.as_str().as_bytes());
        }
    }
}

fn put_bytes(bytes: &mut Vec<u8>, raw: &[u8]) {
    bytes.extend((raw.len() as u64).to_be_bytes());
    bytes.extend(raw);
}

fn put_many(bytes: &mut Vec<u8>, tag: u8, values: &[Value]) {
    bytes.push(tag);
    bytes.extend((values.len() as u64).to_be_bytes());
    for value in values {
        put(value, bytes);
    }
}

/// Takes one value from the front; none if the bytes are no value.
pub fn decode(bytes: &mut &[u8]) -> Option<Value> {
    Some(match take::<1>(bytes)?[0] {
        0 => Value::Bool(take::<1>(bytes)?[0] != 0),
        1 => Value::Int(i64::from_be_bytes(take(bytes)?)),
        2 => Value::Float(Float(f64::from_bits(u64::from_be_bytes(take(bytes)?)))),
        3 => Value::from(take_text(bytes)?),
        4 => Value::Bytes(take_bytes(bytes)?.into()),
        5 => Value::Time(Time::from_micros(i64::from_be_bytes(take(bytes)?))),
        6 => Value::Struct(take_many(bytes)?.into()),
        7 => Value::NONE,
        8 => Value::some(decode(bytes)?),
        9 => Value::List(take_many(bytes)?.into()),
        10 => {
            let kind = take_text(bytes)?;
            Value::Ref(Ref::new(kind, decode(bytes)?))
        }
        11 => Value::Date(Date::from_days(i32::from_be_bytes(take(bytes)?))),
        12 => {
            let [scale] = take(bytes)?;
            Value::Decimal(Decimal::new(i128::from_be_bytes(take(bytes)?), scale)?)
        }
        13 => Value::Json(Document::parse(take_text(bytes)?).ok()?),
        _ => return None,
    })
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*first)
}

fn take_bytes<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(u64::from_be_bytes(take(bytes)?)).ok()?;
    let (first, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(first)
}

fn take_text<'a>(bytes: &mut &'a [u8]) -> Option<&'a str> {
    std::str::from_utf8(take_bytes(bytes)?).ok()
}

fn take_many(bytes: &mut &[u8]) -> Option<Vec<Value>> {
    let count = u64::from_be_bytes(take(bytes)?);
    (0..count).map(|_| decode(bytes)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples() -> Vec<Value> {
        let text = Value::from("a");
        vec![
            Value::Bool(true),
            Value::Int(i64::MIN),
            Value::from(f64::NAN),
            Value::from(0.0),
            text.clone(),
            Value::from(""),
            Value::Bytes(b"\0a".as_slice().into()),
            Value::Time(Time::from_micros(-1)),
            Value::Date(Date::from_days(-1)),
            Value::Decimal(Decimal::new(-15, 1).expect("two digits")),
            Value::Json(Document::parse("[1.50, {}]").expect("JSON")),
            Value::Struct(vec![text.clone(), Value::NONE].into()),
            Value::some(Value::NONE),
            Value::list([text.clone(), text.clone()]),
            Value::list([Value::from("aa")]),
            Value::from(Ref::new("K", text)),
        ]
    }

    #[test]
    fn values_come_back_and_differ() {
        let mut seen = std::collections::BTreeSet::new();
        for value in samples() {
            let mut bytes = Vec::new();
            encode(&value, &mut bytes);
            assert_eq!(decode(&mut &*bytes), Some(value.clone()), "{value}");
            assert!(seen.insert(bytes), "{value} looks like another");
        }
    }

    #[test]
    fn equal_floats_are_one() {
        let digest = |float: f64| element_digest(&Vec::new(), &Value::from(float));
        assert_eq!(digest(0.0), digest(-0.0));
        assert_eq!(digest(f64::NAN), digest(-f64::NAN));
        assert_ne!(digest(0.0), digest(5e-324));
    }

    #[test]
    fn equal_decimals_are_one() {
        let digest = |coefficient, scale| {
            let number = Decimal::new(coefficient, scale).expect("few digits");
            element_digest(&Vec::new(), &Value::list([Value::Decimal(number)]))
        };
        assert_eq!(digest(15, 1), digest(1_500, 3));
        assert_ne!(digest(15, 1), digest(15, 2));
    }

    #[test]
    fn what_is_cut_short_is_no_value() {
        for value in samples() {
            let mut bytes = Vec::new();
            encode(&value, &mut bytes);
            bytes.pop();
            assert_eq!(decode(&mut &*bytes), None, "{value}");
        }
    }
}
