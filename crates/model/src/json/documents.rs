use serde_json::Value as Json;

use crate::document::{Document, Tree};
use crate::json;
use crate::random::{Random, hostile_json};
use crate::{Schema, Type, Value};

const SEED: u64 = 4_417;

fn canonical(text: &str) -> String {
    Document::parse(text).unwrap_or_else(|error| panic!("{text}: {error}")).to_string()
}

#[test]
fn equal_numbers_have_one_text() {
    let cases = [
        ("0", &["0", "-0", "0.000", "0e99999999999999999999", "-0.0E-7"][..]),
        ("1.5", &["1.5", "1.50", "15e-1", "0.15E1", "150.0e-2"]),
        ("-100", &["-100", "-1e2", "-100.00", "-0.001e+5"]),
        ("0.05", &["0.05", "5e-2", "0.050", "0.0000000005e8"]),
        ("12345678901234567890123.4", &["12345678901234567890123.40"]),
    ];
    for (wanted, texts) in cases {
        for text in texts {
            assert_eq!(canonical(text), wanted, "{text}");
        }
    }
    assert_eq!(canonical("1e399").len(), 400);
    assert_eq!(canonical("-1e-400").len(), 403);
    for text in ["1e400", "1e-401", "1e99999999999999999999", "-1e-9223372036854775808"] {
        let error = Document::parse(text).expect_err(text);
        assert!(error.contains("at most 400 digits before the point"), "{error}");
    }
}

#[test]
fn texts_have_few_escapes_and_members_are_sorted_by_bytes() {
    let text = r#" {"b":1, "\u00e9":"\u00E9\/\ud83d\ude00\u001f\n\"", "B":[ ], "":{ }} "#;
    assert_eq!(canonical(text), "{\"\":{},\"B\":[],\"b\":1,\"é\":\"é/😀\\u001f\\n\\\"\"}");
}

#[test]
fn wrong_texts_are_refused_with_their_place() {
    let cases = [
        ("", "expected a JSON value, found the end at line 1 column 1"),
        ("nul", "expected a JSON value, found 'n' at line 1 column 1"),
        ("01", "a number begins with no 0 but that before its point at line 1 column 2"),
        ("1.", "expected a digit, found the end at line 1 column 3"),
        (".5", "expected a JSON value, found '.' at line 1 column 1"),
        ("+1", "expected a JSON value, found '+' at line 1 column 1"),
        ("1e", "expected a digit, found the end at line 1 column 3"),
        ("NaN", "expected a JSON value, found 'N' at line 1 column 1"),
        ("1 2", "expected the end, found '2' at line 1 column 3"),
        ("[1,]", "expected a JSON value, found ']' at line 1 column 4"),
        ("{\n\"a\":1,}", "expected a member's name in quotes, found '}' at line 2 column 7"),
        ("{\"a\" 1}", "expected `:`, found '1' at line 1 column 6"),
        (r#"{"a":1,"\u0061":2}"#, "the member `a` is there twice at line 1 column 16"),
        (
            "\"\n\"",
            "expected `\"` or a character that needs no escape, found '\\n' at line 1 column 2",
        ),
        (r#""\x""#, "expected an escape of JSON, found 'x' at line 1 column 3"),
        (r#""\u12g4""#, "expected four hexadecimal digits, found 'g' at line 1 column 6"),
        (
            r#""\ud800""#,
            "an escape is one half of a surrogate pair, without the other at line 1 column 8",
        ),
        (
            r#""\ud800\u0041""#,
            "an escape is one half of a surrogate pair, without the other at line 1 column 14",
        ),
        (
            r#""\udc00""#,
            "an escape is one half of a surrogate pair, without the other at line 1 column 8",
        ),
        (r#"["\u0000"]"#, "a text in a json value holds no U+0000"),
        (r#"{"\u0000":1}"#, "a text in a json value holds no U+0000"),
    ];
    for (text, wanted) in cases {
        assert_eq!(Document::parse(text).expect_err(text), wanted, "{text}");
    }
    let broken = Tree::parse(b"[\"\xff\"]").expect_err("no UTF-8").to_string();
    assert_eq!(broken, "expected UTF-8, found other bytes at line 1 column 3");
}

#[test]
fn depth_and_size_are_bounded() {
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    assert!(Document::parse(&nested(100)).is_ok());
    let error = Document::parse(&nested(101)).expect_err("too deep");
    assert_eq!(error, "a json value nests at most 100 deep");
    assert!(Document::parse(&nested(100_000)).is_err());
    // A short text of long numbers would take much memory.
    let long = format!("[{}1]", "1e399,".repeat(100_000));
    assert!(Document::parse(&long).expect_err("too long").contains("at most 16777216 bytes"));
}

#[test]
fn hostile_documents_read_back_as_they_are() {
    let mut random = Random::new(SEED);
    let schema = Schema::default();
    let option = Type::Option(Type::Json.into());
    for _ in 0..3_000 {
        let text = hostile_json(&mut random);
        let document =
            Document::parse(&text).unwrap_or_else(|error| panic!("seed {SEED}, {text}: {error}"));
        assert_eq!(Document::parse(document.as_str()).as_ref(), Ok(&document), "{text}");
        let usual: Option<Json> = serde_json::from_str(&text).ok();
        if let Some(usual) = usual {
            let rounded = Document::try_from(&usual).expect("it has no more digits");
            let ours = Document::try_from(&document.to_serde()).expect("as above");
            assert_eq!(ours, rounded, "{text}");
        }
        let value = Value::Json(document);
        let written = json::to_text(&schema, &value, &Type::Json);
        assert_eq!(json::from_text(&schema, written.as_bytes(), &Type::Json), Ok(value.clone()));
        for value in [Value::some(value), Value::NONE] {
            let written = json::to_text(&schema, &value, &option);
            let read = json::from_text(&schema, written.as_bytes(), &option);
            assert_eq!(read, Ok(value), "{written}");
        }
    }
}

#[test]
fn an_optional_document_that_is_null_is_not_none() {
    let schema = Schema::default();
    let option = Type::Option(Type::Json.into());
    for (document, wanted) in [
        ("null", r#"{"some":null}"#),
        (r#"{"some":1}"#, r#"{"some":{"some":1}}"#),
        (r#"{"some":1,"x":2}"#, r#"{"some":1,"x":2}"#),
        ("[null]", "[null]"),
    ] {
        let value = Value::some(Value::Json(Document::parse(document).expect("JSON")));
        assert_eq!(json::to_text(&schema, &value, &option), wanted);
        assert_eq!(json::to_json(&schema, &value, &option).to_string(), wanted);
        assert_eq!(json::from_text(&schema, wanted.as_bytes(), &option), Ok(value));
    }
}

#[test]
fn trees_are_shown_on_one_line_or_on_several() {
    let text = r#"{"b":[1,{"a":null}],"a":[],"c":{},"d":"\n"}"#;
    let tree = Tree::parse(text.as_bytes()).expect("JSON");
    assert_eq!(tree.to_string(), text);
    let usual: Json = serde_json::from_str(text).expect("JSON");
    assert_eq!(format!("{tree:#}"), format!("{usual:#}"));
}

#[test]
fn objects_of_many_members_have_each_name_once() {
    let members = |count: usize, last: usize| {
        let all =
            (0..count).map(|at| format!("\"m{}\":0", if at == count - 1 { last } else { at }));
        format!("{{{}}}", all.collect::<Vec<_>>().join(","))
    };
    for count in [2, 15, 16, 17, 18, 1_000] {
        assert!(Document::parse(&members(count, count)).is_ok(), "{count}");
        for last in [0, count - 2] {
            let error = Document::parse(&members(count, last)).expect_err("it is there twice");
            assert!(error.contains("is there twice"), "{count}, {last}: {error}");
        }
    }
}
