//! Tests of the columns that fit, and of the values that they hold.

use super::*;

fn described(base: &str) -> Described {
    Described {
        name: "c".into(),
        base: base.into(),
        shown: base.into(),
        sql_type: base.into(),
        type_name: base.into(),
        labels: None,
        is_enum: false,
        is_not_null: true,
        has_default: false,
        is_generated: false,
        digits: None,
        second_digits: 6,
        has_enum_items: false,
        is_deterministic: true,
    }
}

#[test]
fn misfits_name_the_column_and_what_would_fit() {
    let schema = Schema::default();
    let check = |base: &str, declared: &Type| {
        Column::new(&schema, &described(base), declared, "K.f", Use::Plain).map(|_| ())
    };
    assert_eq!(check("bigint", &Type::Int), Ok(()));
    for (base, declared, fits) in [
        ("real", Type::Int, "bigint"),
        ("numeric", Type::Int, "bigint"),
        ("character", Type::Int, "bigint"),
        ("integer[]", Type::List(Type::String.into()), "an array of text"),
        ("text[]", Type::List(Type::Time.into()), "an array of timestamp with time zone"),
        ("bigint[]", Type::List(Type::Decimal.into()), "an array of numeric"),
        ("date[]", Type::List(Type::List(Type::Date.into()).into()), "json or jsonb"),
        ("date", Type::Time, "timestamp with time zone"),
        ("timestamp with time zone", Type::Date, "date"),
        ("integer", Type::Option(Type::Int.into()), "may be null"),
    ] {
        let error = check(base, &declared).unwrap_err();
        assert!(error.contains("column c is"), "{error}");
        assert!(error.contains(base) && error.contains(fits), "{error}");
    }
}

#[test]
fn a_column_holds_what_it_need_not_round() {
    let number = |text| Decimal::parse(text).expect("a decimal");
    for (text, all, after, expected) in [
        ("99.99", 4, 2, true),
        ("99.990", 4, 2, true),
        ("100", 4, 2, false),
        ("0.001", 4, 2, false),
        ("0.00", 4, 2, true),
        ("-99.99", 4, 2, true),
        ("1200", 2, -2, true),
        ("9900", 2, -2, true),
        ("10000", 2, -2, false),
        ("1250", 3, -2, false),
        ("0.00012", 2, 5, true),
        ("0.00123", 2, 5, false),
    ] {
        assert_eq!(holds(number(text), all, after), expected, "{text} in numeric({all}, {after})");
    }
}

#[test]
fn only_one_form_of_a_uuid_is_one() {
    assert!(is_uuid("0e37df36-f698-11e6-8dd4-cb9ced3df976"));
    assert!(!is_uuid("0E37DF36-f698-11e6-8dd4-cb9ced3df976"));
    assert!(!is_uuid("0e37df36f69811e68dd4cb9ced3df976"));
}
