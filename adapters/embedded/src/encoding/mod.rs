//! Encodings of values and rows as bytes.
//!
//! - [`wire`]: the small parts that everything is made of.
//! - [`value`]: values as they stand in rows, exact to the bit.
//! - [`order`]: values as parts of keys: bytes compare as the values do, and no encoding is a
//!   prefix of another.
//! - [`key`]: the key of each row.
//! - [`row`]: the content of each row.
//! - [`catalog`]: the form of the catalog's row.

pub mod catalog;
pub mod key;
pub mod order;
pub mod row;
pub mod value;
pub mod wire;

/// The document with this canonical text.
///
/// # Panics
///
/// When the text is none.
fn document(text: &str) -> mingle_model::Document {
    mingle_model::Document::parse(text)
        .expect("a document was written in its canonical form: it is corrupt")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use mingle_model::random::{Random, hostile_json};
    use mingle_model::{Date, Decimal, Float, Ref, Time, Value};
    use proptest::prelude::*;

    use super::{order, value};

    fn any_value() -> impl Strategy<Value = Value> {
        let odd_floats = prop::sample::select(vec![f64::NAN, -f64::NAN, 0.0, -0.0, 5e-324]);
        let bytes = prop::collection::vec(prop::sample::select(vec![0, 1, 254, 255]), 0..5);
        let leaf = prop_oneof![
            any::<bool>().prop_map(Value::Bool),
            any::<i64>().prop_map(Value::Int),
            (-2..2i64).prop_map(Value::Int),
            any::<f64>().prop_map(Value::from),
            odd_floats.prop_map(Value::from),
            "[\u{1}ab\u{ff}\u{10ffff}]{0,4}".prop_map(Value::from),
            bytes.prop_map(|bytes| Value::Bytes(bytes.into())),
            any::<i64>().prop_map(|micros| Value::Time(Time::from_micros(micros))),
            any::<i32>().prop_map(|days| Value::Date(Date::from_days(days))),
            (any::<i64>(), 0..39_u8, 0..20_u32).prop_map(|(digits, scale, zeros)| {
                let coefficient = i128::from(digits) * 10_i128.pow(zeros) % 10_i128.pow(38);
                Value::Decimal(Decimal::new(coefficient, scale).expect("at most 38 digits"))
            }),
            any::<u64>().prop_map(|seed| {
                let text = hostile_json(&mut Random::new(seed));
                Value::Json(text.parse().expect("JSON"))
            }),
            Just(Value::NONE),
        ];
        leaf.prop_recursive(4, 16, 3, |inner| {
            let many = prop::collection::vec(inner.clone(), 0..4);
            prop_oneof![
                many.clone().prop_map(Value::list),
                many.prop_map(|values| Value::Struct(Arc::from(values))),
                inner.clone().prop_map(Value::some),
                ("[ab]{0,2}", inner).prop_map(|(kind, key)| Value::Ref(Ref::new(kind, key))),
            ]
        })
    }

    fn key(value: &Value) -> Vec<u8> {
        let mut key = Vec::new();
        order::encode(value, &mut key);
        key
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn keys_compare_as_their_values_do(a in any_value(), b in any_value()) {
            prop_assert_eq!(key(&a).cmp(&key(&b)), a.cmp(&b));
        }

        #[test]
        fn no_key_begins_another(a in any_value(), b in any_value()) {
            prop_assert_eq!(key(&a).starts_with(&key(&b)), a == b);
        }

        #[test]
        fn keys_read_back(a in any_value(), rest in prop::collection::vec(any::<u8>(), 0..4)) {
            let mut bytes = key(&a);
            bytes.extend(&rest);
            let mut left = &*bytes;
            prop_assert_eq!(order::decode(&mut left), a);
            prop_assert_eq!(left, &*rest);
        }

        #[test]
        fn values_read_back_to_the_bit(a in any_value()) {
            let decoded = value::decode(&value::encode(&a));
            // `==` calls the two zeros equal; their text does not.
            prop_assert_eq!(format!("{decoded:?}"), format!("{a:?}"));
            prop_assert_eq!(decoded, a);
        }
    }

    #[test]
    fn a_value_that_nests_too_deep_is_refused() {
        let mut nested = Value::NONE;
        for _ in 0..100_000 {
            nested = Value::some(nested);
        }
        assert!(value::check(&nested).unwrap_err().contains("deeper"));
        // Dropped level by level, since dropping it at once would exhaust the stack.
        while let Value::Option(Some(inner)) = nested {
            nested = Arc::try_unwrap(inner).expect("nobody else has it");
        }
        assert_eq!(value::check(&Value::Float(Float(1.0))), Ok(()));
    }

    #[test]
    #[should_panic(expected = "corrupt")]
    fn a_corrupt_value_stops_the_reader() {
        value::decode(&[1, 3, 200, 0, 0, 0, b'x']);
    }
}
