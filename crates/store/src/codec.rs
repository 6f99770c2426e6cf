//! Values as they stand in the server, where a person can read them.
//!
//! | type | is kept as |
//! | --- | --- |
//! | `string`, `bytes` | themselves |
//! | `int` | its decimal digits |
//! | `float` | the shortest decimal that reads back as the same: `1.5`, `-0.0`, `NaN`, `inf` |
//! | `bool` | `true`, `false` |
//! | `time` | RFC 3339, or milliseconds (`123ms`) beyond the years that it covers |
//! | `date` | its text: `2026-01-31` |
//! | `decimal` | its text: `-19.90` |
//! | `json` | its canonical form; any form of it is read |
//! | `ref` | the object's key |
//! | all others | JSON, in the one form that values have |

use mingle_model::{Date, Decimal, Document, Float, Ref, Schema, Time, Tree, Type, Value, json};

use crate::limits::ENCODED_BYTES_MAX;

/// The kept form of a value.
///
/// # Errors
///
/// When it is not of the type, or exceeds the bounds.
pub fn encode(schema: &Schema, value: &Value, value_type: &Type) -> Result<Vec<u8>, String> {
    if !value.is_within_bounds() {
        return Err("a value is too large, or nests too deep".into());
    }
    if !schema.conforms(value, value_type) {
        return Err(format!("expected a value of type {value_type}, found {value}"));
    }
    let bytes = spell(schema, value, value_type);
    if bytes.len() > ENCODED_BYTES_MAX {
        let (found, most) = (bytes.len(), ENCODED_BYTES_MAX);
        return Err(format!("a value takes at most {most} bytes as it is kept, not {found}"));
    }
    Ok(bytes)
}

/// The kept form of a value that names something: equal values have one.
///
/// # Errors
///
/// As [`encode`].
pub fn encode_key(schema: &Schema, value: &Value, value_type: &Type) -> Result<Vec<u8>, String> {
    if !value.is_within_bounds() {
        return Err("a value is too large, or nests too deep".into());
    }
    encode(schema, &value.canonical(), value_type)
}

fn spell(schema: &Schema, value: &Value, value_type: &Type) -> Vec<u8> {
    match (value, value_type) {
        (Value::String(text), _) => text.as_bytes().to_vec(),
        (Value::Bytes(bytes), _) => bytes.to_vec(),
        (Value::Int(value), _) => value.to_string().into_bytes(),
        (Value::Float(value), _) => value.to_string().into_bytes(),
        (Value::Bool(value), _) => value.to_string().into_bytes(),
        (Value::Time(value), _) => value.to_string().into_bytes(),
        (Value::Date(value), _) => value.to_string().into_bytes(),
        (Value::Decimal(value), _) => value.to_string().into_bytes(),
        (Value::Ref(object), Type::Ref(name)) => {
            spell(schema, object.key(), &schema.objects[name].key_type)
        }
        _ => json::to_text(schema, value, value_type).into_bytes(),
    }
}

/// The value that is kept as these bytes.
///
/// # Errors
///
/// When they are no value of the type.
pub fn decode(schema: &Schema, bytes: &[u8], value_type: &Type) -> Result<Value, String> {
    let text = || {
        std::str::from_utf8(bytes)
            .map_err(|_| format!("expected {value_type}, found bytes that are no UTF-8 text"))
    };
    let none = |text: &str| {
        let shown: String = text.chars().take(40).collect();
        format!("expected {value_type}, found {shown:?}")
    };
    match value_type {
        Type::String | Type::Enum(_) => json::read_string(text()?),
        Type::Bytes => Ok(Value::Bytes(bytes.into())),
        Type::Int => text().and_then(|t| t.parse().map(Value::Int).map_err(|_| none(t))),
        Type::Float => {
            text().and_then(|t| t.parse().map(|f| Value::Float(Float(f))).map_err(|_| none(t)))
        }
        Type::Bool => match text()? {
            "true" | "1" => Ok(Value::Bool(true)),
            "false" | "0" => Ok(Value::Bool(false)),
            other => Err(none(other)),
        },
        Type::Time => text().and_then(|t| time(t).ok_or_else(|| none(t))),
        Type::Date => text().and_then(|t| Date::parse(t).map(Value::Date)),
        Type::Decimal => text().and_then(|t| Decimal::parse(t).map(Value::Decimal)),
        Type::Ref(name) => {
            let declared =
                schema.objects.get(name).ok_or_else(|| format!("no object {name} is declared"))?;
            Ok(Value::Ref(Ref::new(
                declared.name.clone(),
                decode(schema, bytes, &declared.key_type)?,
            )))
        }
        Type::Json => {
            Document::parse(text()?).map(Value::Json).map_err(|why| format!("expected json: {why}"))
        }
        Type::Struct(_) | Type::Option(_) | Type::List(_) | Type::Rushed(_) => {
            let read = Tree::parse(bytes).map_err(|_| none(&String::from_utf8_lossy(bytes)))?;
            json::from_tree(schema, &read, value_type).map_err(|error| error.to_string())
        }
    }
}

fn time(text: &str) -> Option<Value> {
    // A number alone is milliseconds, as many programs that are not ours write it.
    let millis = text.parse::<i64>().ok().and_then(|ms| ms.checked_mul(1_000));
    let time = millis.map(Time::from_micros).or_else(|| Time::parse(text).ok());
    time.map(Value::Time)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use mingle_model::random::{Random, hostile_json, next_random};
    use mingle_model::{ObjectType, StructType};

    use super::*;

    const SEED: u64 = 5_417;

    /// A schema with `struct Pair { a: float, b: option<option<bytes>> }` and an object by it.
    fn schema() -> Schema {
        let mut schema = Schema::default();
        let bytes = Type::Option(Arc::new(Type::Option(Arc::new(Type::Bytes))));
        let pair = StructType {
            name: "Pair".into(),
            fields: vec![("a".into(), Type::Float), ("b".into(), bytes)],
        };
        schema.structs.insert("Pair".into(), Arc::new(pair));
        let object = ObjectType {
            name: "Thing".into(),
            store: "store".into(),
            key_name: "key".into(),
            key_type: Type::Struct("Pair".into()),
            fields: Vec::new(),
        };
        schema.objects.insert("Thing".into(), Arc::new(object));
        schema
    }

    fn any_type(random: &mut u64, depth: u32) -> Type {
        match next_random(random) % if depth == 0 { 9 } else { 13 } {
            0 => Type::Bool,
            1 => Type::Int,
            2 => Type::Float,
            3 => Type::String,
            4 => Type::Bytes,
            5 => Type::Time,
            6 => Type::Date,
            7 => Type::Decimal,
            8 => Type::Json,
            9 => Type::Struct("Pair".into()),
            10 => Type::Ref("Thing".into()),
            11 => Type::Option(Arc::new(any_type(random, depth - 1))),
            _ => Type::List(Arc::new(any_type(random, depth - 1))),
        }
    }

    fn any_value(schema: &Schema, random: &mut u64, of: &Type) -> Value {
        let bits = next_random(random);
        let small = bits.is_multiple_of(4);
        match of {
            Type::Bool => Value::Bool(small),
            Type::Rushed(_) => Value::late(),
            Type::Int if small => Value::Int((bits >> 2) as i64 % 3 - 1),
            Type::Int => Value::Int(bits as i64),
            Type::Float if small => {
                let odd = [0.0, -0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 5e-324];
                Value::Float(Float(odd[(bits >> 8) as usize % odd.len()]))
            }
            Type::Float => Value::Float(Float(f64::from_bits(bits))),
            Type::Enum(of) => of.first(),
            Type::String => {
                let letters = ["", "a", "\"", "\\", "\u{1}", "é", "\u{10ffff}", "null", "1"];
                let pick = |shift: u32| letters[(bits >> shift) as usize % letters.len()];
                Value::from(format!("{}{}{}", pick(2), pick(20), pick(40)))
            }
            Type::Bytes => {
                let length = bits as usize % 5;
                Value::Bytes(bits.to_le_bytes()[..length].into())
            }
            Type::Time => Value::Time(Time::from_micros(bits as i64 >> (bits % 40))),
            Type::Date => Value::Date(Date::from_days(bits as i32 >> ((bits >> 32) % 24))),
            Type::Decimal if small => {
                // Equal numbers of other scales.
                let scale = (bits >> 8) as u8 % 3;
                let number = Decimal::new(10_i128.pow(scale.into()) * 3, scale);
                Value::Decimal(number.expect("a few digits"))
            }
            Type::Decimal => {
                let digits = i128::from(bits as i64) * i128::from(bits as u32);
                Value::Decimal(Decimal::new(digits, (bits >> 40) as u8 % 39).expect("29 digits"))
            }
            Type::Json => {
                let text = hostile_json(&mut Random::new(bits));
                Value::Json(Document::parse(&text).expect("JSON"))
            }
            Type::Struct(name) => {
                let fields = schema.structs[name].fields.clone();
                let fields = fields.iter().map(|(_, of)| any_value(schema, random, of));
                Value::Struct(fields.collect())
            }
            Type::Ref(name) => {
                let key_type = schema.objects[name].key_type.clone();
                Value::Ref(Ref::new(name.clone(), any_value(schema, random, &key_type)))
            }
            Type::Option(_) if small => Value::NONE,
            Type::Option(inner) => Value::some(any_value(schema, random, inner)),
            Type::List(inner) => {
                Value::list((0..bits % 4).map(|_| any_value(schema, random, inner)))
            }
        }
    }

    #[test]
    fn values_read_back_to_the_bit() {
        let (schema, mut random) = (schema(), SEED);
        for round in 0..20_000 {
            let of = any_type(&mut random, 3);
            let value = any_value(&schema, &mut random, &of);
            let kept = encode(&schema, &value, &of).expect("it is of the type");
            let found = decode(&schema, &kept, &of);
            let place = || format!("round {round} of seed {SEED}: {of}, {value:?}");
            assert_eq!(found.as_ref(), Ok(&value), "{}", place());
            // `==` calls the two zeros equal; their text does not.
            let shown = format!("{:?}", found.expect("it was read"));
            assert_eq!(shown, format!("{value:?}"), "{}", place());
        }
    }

    #[test]
    fn equal_values_name_the_same_and_others_do_not() {
        let (schema, mut random) = (schema(), SEED);
        for round in 0..5_000 {
            let of = any_type(&mut random, 2);
            let [a, b] = [0, 1].map(|_| any_value(&schema, &mut random, &of));
            let key = |value: &Value| encode_key(&schema, value, &of).expect("it is of the type");
            let place = || format!("round {round} of seed {SEED}: {of}, {a:?} and {b:?}");
            assert_eq!(key(&a) == key(&b), a == b, "{}", place());
        }
        let key = |zero: f64| encode_key(&schema, &Value::from(zero), &Type::Float);
        assert_eq!(key(0.0), key(-0.0));
    }

    #[test]
    fn what_is_no_value_is_refused() {
        let schema = schema();
        for (kept, of) in [
            (&b"x"[..], Type::Int),
            (b"", Type::Int),
            (b"9223372036854775808", Type::Int),
            (b"\xff", Type::String),
            (b"a\0b", Type::String),
            (b"yes", Type::Bool),
            (b"tomorrow", Type::Time),
            (b"2026-02-30", Type::Date),
            (b"1e3", Type::Decimal),
            (b"{\"a\":1,\"a\":1}", Type::Json),
            (b"\"\\u0000\"", Type::Json),
            (b"[1", Type::List(Arc::new(Type::Int))),
            (b"{}", Type::Struct("Pair".into())),
        ] {
            assert!(decode(&schema, kept, &of).is_err(), "{kept:?} as {of}");
        }
        let wrong = encode(&schema, &Value::from("x"), &Type::Int);
        assert_eq!(wrong, Err("expected a value of type int, found \"x\"".into()));
        let mut deep = Value::NONE;
        for _ in 0..1_000 {
            deep = Value::some(deep);
        }
        assert!(encode(&schema, &deep, &Type::Int).is_err_and(|why| why.contains("deep")));
    }
}
