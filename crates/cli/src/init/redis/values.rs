//! Types of values, as far as a sample tells.

use mingle_model::{Date, Document, Time};

/// The beginning of a `HyperLogLog`, which the server keeps in a string.
const HYPERLOGLOG: &[u8] = b"HYLL";

/// Returns the type of values at the server, and a remark if another one may be meant.
///
/// A type is that of all values only if each of them is written as the type writes it, so a program writes back
/// what it has read. Numbers with a point stay text: a sample does not tell if they are measured or counted.
pub fn infer<'v>(
    values: impl IntoIterator<Item = &'v [u8]> + Clone,
) -> (&'static str, Option<&'static str>) {
    let mut texts = Vec::new();
    for value in values {
        match std::str::from_utf8(value) {
            Ok(text) if !text.contains(is_odd) => texts.push(text),
            _ => return ("bytes", None),
        }
    }
    let all = |is: fn(&str) -> bool| !texts.is_empty() && texts.iter().all(|text| is(text));
    if all(is_int) {
        return ("int", None);
    }
    if all(|text| text == "true" || text == "false") {
        return ("bool", None);
    }
    if all(|text| Date::parse(text).is_ok_and(|date| date.to_string() == text)) {
        return ("date", None);
    }
    if all(|text| Time::parse(text).is_ok_and(|time| time.to_string() == text)) {
        return ("time", None);
    }
    if all(|text| text.starts_with(['{', '[']) && Document::parse(text).is_ok()) {
        return ("json", None);
    }
    if all(|text| text.parse::<f64>().is_ok_and(f64::is_finite)) {
        return ("string", Some("holds numbers: `decimal` or `float` would fit as well"));
    }
    ("string", None)
}

/// True for characters that texts do not have, unlike bitmaps and other structures.
fn is_odd(c: char) -> bool {
    c.is_control() && !['\t', '\n', '\r'].contains(&c)
}

fn is_int(text: &str) -> bool {
    text.parse::<i64>().is_ok_and(|number| number.to_string() == text)
}

/// Returns the type of values that name something: elements of a set, or keys of a map.
pub fn infer_names<'v>(values: impl IntoIterator<Item = &'v [u8]> + Clone) -> &'static str {
    match infer(values).0 {
        "json" => "string",
        found => found,
    }
}

/// True if a string holds a structure of the server's own.
pub fn is_hyperloglog(value: &[u8]) -> bool {
    value.starts_with(HYPERLOGLOG)
}

/// Returns the beginning of a text that was cut off, without the bytes of a character that was cut.
pub fn without_torn_end(value: &[u8]) -> &[u8] {
    match std::str::from_utf8(value) {
        Err(error) if error.error_len().is_none() => &value[..error.valid_up_to()],
        _ => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_is_that_of_all_values() {
        let cases: [(&[&[u8]], &str); 16] = [
            (&[b"1", b"-20", b"0"], "int"),
            (&[b"1", b"007"], "string"),
            (&[b"9223372036854775808"], "string"),
            (&[b"19.90"], "string"),
            (&[b"true", b"false"], "bool"),
            (&[b"2026-01-31"], "date"),
            (&[b"2026-01-31T07:08:09Z"], "time"),
            (&[b"2026-01-31T07:08:09+02:00"], "string"),
            (&[b"{\"a\": 1}", b"[]"], "json"),
            (&[b"{\"a\": 1"], "string"),
            (&[b"ana", b"1"], "string"),
            (&[b"\xff"], "bytes"),
            (&[b"a\0"], "bytes"),
            (&[b"\x01"], "bytes"),
            (&[b"a\tb\r\n"], "string"),
            (&[], "string"),
        ];
        for (values, expected) in cases {
            assert_eq!(infer(values.iter().copied()).0, expected, "{values:?}");
        }
        assert!(infer([&b"19.90"[..]]).1.is_some());
        assert_eq!(infer_names([&b"{}"[..]]), "string");
        assert_eq!(without_torn_end("aé".as_bytes().split_last().expect("bytes").1), b"a");
        assert_eq!(without_torn_end(b"\xffa"), b"\xffa");
    }
}
