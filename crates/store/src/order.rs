//! Values as parts of keys of a database that orders bytes.
//!
//! For any two values `a` and `b`, the bytes of `a` compare to those of `b` as `a` to `b`, and
//! neither is a prefix of the other unless they are equal, so parts can follow one another.

use mingle_model::limits::DECODED_DEPTH_MAX;
use mingle_model::{Date, Decimal, Document, Float, IndexQuestion, Ref, Time, Value};

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

/// Keys next to each other in the order of their bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first key.
    pub lower: Vec<u8>,
    /// The end of the keys, itself not included; none if there is no key beyond.
    pub upper: Option<Vec<u8>>,
}

/// Returns the entries of an index that answer a question, each of which is `lead`, the values of the index's fields, and
/// the object's key.
///
/// ```
/// use mingle_model::{IndexQuestion, Value};
/// use mingle_store::order;
///
/// let blue = [Value::from("blue")];
/// let question =
///     IndexQuestion { equal: &blue, from: None, before: None, after: None, is_reversed: false, most: 10 };
/// let span = order::span(b"color/", &question);
/// let mut entry = b"color/".to_vec();
/// order::encode(&blue[0], &mut entry);
/// order::encode(&Value::Int(7), &mut entry);
/// assert!(span.lower <= entry && Some(entry) < span.upper);
/// ```
pub fn span(lead: &[u8], question: &IndexQuestion<'_>) -> Span {
    let mut lead = lead.to_vec();
    question.equal.iter().for_each(|value| encode(value, &mut lead));
    let bound = |value: &Value| {
        let mut bound = lead.clone();
        encode(value, &mut bound);
        bound
    };
    let mut lower = question.from.map(bound);
    let mut upper = question.before.map(bound).or_else(|| prefix_end(&lead));
    if let Some(after) = question.after.map(|after| bound(after.key())) {
        if question.is_reversed {
            upper = Some(after);
        } else {
            lower = Some(next(&after));
        }
    }
    Span { lower: lower.unwrap_or(lead), upper }
}

/// Returns the least key that is greater than an entry; no entry is the beginning of another one.
pub fn next(entry: &[u8]) -> Vec<u8> {
    [entry, &[0]].concat()
}

/// Returns the first key after all that begin with `prefix`; none if there is no such key.
pub fn prefix_end(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte != u8::MAX)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end)
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

/// Takes one value from the front of `key`; none if `key` does not start with a result of [`encode`], or with one that
/// nests deeper than any value.
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
    decode_within(key, DECODED_DEPTH_MAX)
}

fn decode_within(key: &mut &[u8], depth: usize) -> Option<Value> {
    let depth = depth.checked_sub(1)?;
    Some(match take(key)? {
        0 => Value::Bool(take(key)? != 0),
        1 => Value::Int(decode_int(key)?),
        2 => Value::Float(decode_float(key)?),
        3 => Value::from(decode_text(key)?),
        4 => Value::Bytes(decode_bytes(key)?.into()),
        5 => Value::Time(Time::from_micros(decode_int(key)?)),
        6 => Value::Struct(decode_many(key, depth)?.into()),
        7 if take(key)? == END => Value::NONE,
        7 => Value::some(decode_within(key, depth)?),
        8 => Value::List(decode_many(key, depth)?.into()),
        9 => {
            let kind = decode_text(key)?;
            Value::Ref(Ref::new(kind, decode_within(key, depth)?))
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

fn decode_many(key: &mut &[u8], depth: usize) -> Option<Vec<Value>> {
    let mut values = Vec::new();
    while take(key)? == MORE {
        values.push(decode_within(key, depth)?);
    }
    Some(values)
}

#[cfg(test)]
mod tests {
    use mingle_model::random::Random;

    use super::*;

    const SEED: u64 = 44;

    fn draw(random: &mut Random, depth: usize) -> Value {
        let text = |random: &mut Random| -> String {
            (0..random.below(4)).map(|_| *random.pick(&['\0', '\u{1}', 'a', 'b', 'ä'])).collect()
        };
        let number =
            |random: &mut Random| *random.pick(&[i64::MIN, -256, -1, 0, 1, 255, 256, i64::MAX]);
        match random.below(if depth == 0 { 9 } else { 12 }) {
            0 => Value::Bool(random.one_in(2)),
            1 => Value::Int(number(random)),
            2 => Value::Float(Float(*random.pick(&[
                f64::NEG_INFINITY,
                -1.5,
                -0.0,
                0.0,
                f64::MIN_POSITIVE,
                1.5,
                f64::INFINITY,
                f64::NAN,
            ]))),
            3 => Value::from(text(random)),
            4 => Value::Bytes(text(random).into_bytes().into()),
            5 => Value::Time(Time::from_micros(number(random))),
            6 => Value::Date(Date::from_days(*random.pick(&[i32::MIN, -1, 0, 1, i32::MAX]))),
            7 => {
                let numbers = ["-10", "-9.99", "0", "0.001", "9.99", "10"];
                Value::Decimal(random.pick(&numbers).parse().expect("a decimal"))
            }
            8 => Value::NONE,
            9 => Value::some(draw(random, depth - 1)),
            10 => Value::Ref(Ref::new("Kind", draw(random, depth - 1))),
            _ => {
                let values: Vec<Value> =
                    (0..random.below(3)).map(|_| draw(random, depth - 1)).collect();
                if random.one_in(2) { Value::list(values) } else { Value::Struct(values.into()) }
            }
        }
    }

    fn key(value: &Value) -> Vec<u8> {
        let mut key = Vec::new();
        encode(value, &mut key);
        key
    }

    #[test]
    fn keys_have_the_order_of_their_values_and_read_back() {
        println!("seed {SEED}");
        let mut random = Random::new(SEED);
        let values: Vec<Value> = (0..400).map(|_| draw(&mut random, 2)).collect();
        for a in &values {
            let bytes = key(a);
            assert_eq!(decode(&mut &*bytes).as_ref(), Some(a));
            for b in &values {
                let other = key(b);
                // Values of different types are never in one place of a key.
                if bytes[0] == other[0] && std::mem::discriminant(a) == std::mem::discriminant(b) {
                    assert_eq!(bytes.cmp(&other), a.cmp(b), "{a:?} and {b:?}");
                }
                assert!(a == b || !other.starts_with(&bytes), "{a:?} begins {b:?}");
            }
        }
    }

    /// Entries of three parts, two values and a key, between the bounds are those that a question asks for.
    #[test]
    fn a_span_has_the_entries_that_a_question_asks_for() {
        let mut random = Random::new(SEED);
        let mut found = 0;
        for _ in 0..3_000 {
            // Of one type, as the values of one field are.
            let texts = ["", "a", "a\0", "b"];
            let numbers = [i64::MIN, -1, 0, i64::MAX];
            let text = |random: &mut Random| Value::from(*random.pick(&texts));
            let number = |random: &mut Random| Value::Int(*random.pick(&numbers));
            let values = [text(&mut random), number(&mut random)];
            let object = Ref::new("Kind", text(&mut random));
            let equal: Vec<Value> = match random.below(3) {
                0 => Vec::new(),
                1 => vec![text(&mut random)],
                _ => vec![text(&mut random), number(&mut random)],
            };
            let bound = |random: &mut Random| match equal.len() {
                0 => random.one_in(2).then(|| text(random)),
                1 => random.one_in(2).then(|| number(random)),
                _ => None,
            };
            let (from, before) = (bound(&mut random), bound(&mut random));
            let after =
                (equal.len() == 2 && random.one_in(2)).then(|| Ref::new("Kind", text(&mut random)));
            let question = IndexQuestion {
                equal: &equal,
                from: from.as_ref(),
                before: before.as_ref(),
                after: after.as_ref(),
                is_reversed: random.one_in(2),
                most: 1,
            };
            let lead = b"lead";
            let span = span(lead, &question);
            let mut entry = lead.to_vec();
            values.iter().chain([object.key()]).for_each(|value| encode(value, &mut entry));
            let is_inside =
                span.lower <= entry && span.upper.as_ref().is_none_or(|upper| entry < *upper);
            let is_asked_for = question.asks_for(&object, &values.each_ref());
            assert_eq!(is_inside, is_asked_for, "{question:?} {values:?} {object:?}, seed {SEED}");
            found += u32::from(is_asked_for);
        }
        assert!(found > 300, "{found} entries were asked for");
    }

    #[test]
    fn other_bytes_are_no_value() {
        println!("seed {SEED}");
        let mut random = Random::new(SEED);
        for _ in 0..400 {
            let mut bytes = key(&draw(&mut random, 2));
            for end in 0..bytes.len() {
                assert_eq!(decode(&mut &bytes[..end]), None, "{bytes:?} until {end}");
            }
            let at = random.below(bytes.len());
            bytes[at] = random.bits() as u8;
            decode(&mut &*bytes);
        }
        let deep = [7, MORE].repeat(1_000_000);
        assert_eq!(decode(&mut &*deep), None);
        assert_eq!(decode(&mut &[13][..]), None);
        assert_eq!(decode(&mut &[3, 0xFF, 0, 0][..]), None, "no UTF-8");
    }
}
