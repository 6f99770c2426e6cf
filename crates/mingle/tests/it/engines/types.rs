//! Values of every type and of random compound types through JSON, a program and every engine, with extremes: they come
//! back as they went, and the program itself takes them for equal.

use std::fmt::Write as _;

use mingle::Session;
use mingle_model::random::{Random, hostile_json};
use mingle_model::{Date, Decimal, Document, FieldType, Ref, Schema, Time, Type, Value, json};
use mingle_services::Engine;

use crate::engines::site::{RealSite, block_on, bound, space};

/// The types of single values; all but the last can be keys.
const SCALARS: [&str; 11] = [
    "bool",
    "int",
    "string",
    "bytes",
    "time",
    "date",
    "decimal",
    "Color",
    "ref Thing",
    "ref Place",
    "float",
];

const TEXTS: [&str; 10] = [
    "",
    " a ",
    "null",
    "true",
    "1",
    "é\u{1}\n",
    "😀\u{10ffff}",
    "'\"\\%_;--",
    "{\"some\":[]}",
    "$1",
];

const DECIMALS: [&str; 7] = [
    "0",
    "-0.50",
    "1000",
    "99999999999999999999999999999999999999",
    "-0.00000000000000000000000000000000000001",
    "1.2345678901234567890123456789012345678",
    "1000000000000000000000000000000.5",
];

const FLOATS: [f64; 9] = [
    0.0,
    -0.0,
    0.1,
    5e-324,
    f64::MAX,
    f64::MIN,
    f64::INFINITY,
    f64::NEG_INFINITY,
    9_007_199_254_740_993.0,
];

/// Registers of random types in a program.
const REGISTERS: usize = 8;

/// Returns a random type that a register can have.
fn random_type(random: &mut Random, depth: usize) -> String {
    match random.below(if depth == 0 { 2 } else { 5 }) {
        2 => format!("option<{}>", random_type(random, depth - 1)),
        3 => format!("list<{}>", random_type(random, depth - 1)),
        4 => "Pair".to_owned(),
        1 if random.one_in(4) => "json".to_owned(),
        _ => (*random.pick(&SCALARS)).to_owned(),
    }
}

/// Returns a program with an object for each type of keys, and one with registers of random types.
fn program(random: &mut Random, level: &str) -> String {
    let mut text = format!(
        "store place: {level};
        enum Color {{ red, green = \"it's \\\"green\\\"; --\", nothing = \"null\" }}
        struct Spot {{ at: time, no: decimal, of: ref Thing }}
        object Thing in place {{ key name: string; }}
        object Place in place {{ key spot: Spot; }}
        struct Pair {{ one: {}, other: {} }}
        object Item in place {{ key id: int;",
        random_type(random, 1).replace("Pair", "int"),
        random_type(random, 2).replace("Pair", "json"),
    );
    let types: Vec<String> = (0..REGISTERS).map(|_| random_type(random, 3)).collect();
    for (at, declared) in types.iter().enumerate() {
        write!(text, "f{at}: {declared};").expect("text");
    }
    text += "}";
    for (at, declared) in types.iter().enumerate() {
        write!(
            text,
            "transaction put_f{at}(item: ref Item, v: {declared}) -> {declared} {{ item.f{at} = v; return v; }}
            transaction get_f{at}(item: ref Item) -> {declared} {{ return item.f{at}; }}
            transaction same_f{at}(item: ref Item, v: {declared}) -> bool {{ return item.f{at} == v; }}"
        )
        .expect("text");
    }
    for (at, declared) in SCALARS.iter().enumerate().take(SCALARS.len() - 1) {
        write!(
            text,
            "object By{at} in place {{
                key k: {declared}; one: {declared}; all: set<{declared}>; by: map<{declared}, {declared}>;
                lines: log<{declared}>;
            }}
            transaction put_{at}(k: ref By{at}, v: {declared}) {{
                k.one = v; k.all.insert(v); k.by.put(v, k.k); k.lines.append(v);
            }}
            transaction same_{at}(k: ref By{at}, v: {declared}) -> list<bool> {{
                return [k.one == v, k.all.contains(v), k.by.get(v) == some(k.k), k.lines.last(1) == [v]];
            }}"
        )
        .expect("text");
    }
    text
}

/// Returns a random value of a type, often an extreme one.
fn value(random: &mut Random, schema: &Schema, declared: &Type) -> Value {
    let whole = |random: &mut Random| match random.below(6) {
        0 => i64::MIN,
        1 => i64::MAX,
        2 => 0,
        3 => -1,
        4 => 1 << 53,
        _ => random.bits() as i64 >> random.below(64),
    };
    match declared {
        Type::Bool => Value::Bool(random.one_in(2)),
        Type::Int => Value::Int(whole(random)),
        Type::Float => Value::from(*random.pick(&FLOATS)),
        Type::String => {
            let text = random.pick(&TEXTS).repeat(1 + random.below(3));
            Value::from(&*text)
        }
        Type::Bytes => {
            let count = random.below(40);
            let bytes: Vec<u8> = (0..count).map(|_| random.bits() as u8).collect();
            Value::Bytes(bytes.into())
        }
        Type::Time => Value::Time(Time::from_micros(whole(random))),
        Type::Date => {
            let any = random.bits() as i32;
            let days = *random.pick(&[i32::MIN, i32::MAX, 0, -1, -719_469, any]);
            Value::Date(Date::from_days(days))
        }
        Type::Decimal => {
            let text = *random.pick(&DECIMALS);
            Value::Decimal(text.parse::<Decimal>().expect("a decimal"))
        }
        Type::Json => Value::Json(Document::parse(&hostile_json(random)).expect("a document")),
        Type::Enum(of) => Value::String(random.pick(&of.values).label.clone()),
        Type::Ref(kind) => {
            let key = value(random, schema, &schema.objects[kind].key_type);
            Value::Ref(Ref::new(kind.clone(), key))
        }
        Type::Struct(name) => {
            let fields = schema.structs[name].fields.clone();
            Value::Struct(fields.iter().map(|(_, part)| value(random, schema, part)).collect())
        }
        Type::Option(inner) if random.one_in(3) => {
            let _ = inner;
            Value::NONE
        }
        Type::Option(inner) => Value::some(value(random, schema, inner)),
        Type::List(inner) => {
            let count = random.below(4);
            Value::list((0..count).map(|_| value(random, schema, inner)).collect::<Vec<_>>())
        }
        Type::Rushed(_) => unreachable!("no register is of this type"),
    }
}

/// Returns the type of a register.
fn declared(site: &RealSite, object: &str, field: &str) -> Type {
    let object = &site.database.program().schema().objects[object];
    let field = object.fields.iter().find(|it| *it.name == *field).expect("it is declared");
    let FieldType::Register(inner) = &field.field_type else { panic!("{field:?} is a register") };
    inner.clone()
}

/// A program over its store, called with values; they come back as JSON.
struct Place(RealSite);

impl Place {
    fn ok(&self, transaction: &str, arguments: &[Value]) -> String {
        let database = &self.0.database;
        let report = block_on(database.call(transaction, arguments.to_vec(), Session::default()));
        let report = report.unwrap_or_else(|error| panic!("{transaction} {arguments:?}: {error}"));
        database.result_text(transaction, &report)
    }

    fn show(&self, object: &Ref) -> String {
        let session = Session::default();
        let shown = self.0.database.show_text(object, &session, 1_000);
        block_on(shown).expect("the store answers").expect("it is there")
    }

    /// Returns a value as JSON, which gives the same value again.
    fn exact(&self, value: &Value, declared: &Type) -> String {
        let schema = self.0.database.program().schema();
        let text = json::to_text(schema, value, declared);
        let read = json::from_text(schema, text.as_bytes(), declared);
        assert_eq!(read.as_ref(), Ok(value), "{declared}: {text}");
        text
    }
}

fn round_trip(engine: Option<Engine>, more: &str, seed: u64) {
    println!("seed {seed}");
    let mut random = Random::new(seed);
    let Some(binding) = block_on(bound("place", engine, &space())) else { return };
    let level = if engine == Some(Engine::Cassandra) { "eventual" } else { "causal" };
    let text = program(&mut random, level);
    let place = Place(RealSite::new(&text, &(binding + more)));
    let schema = place.0.database.program().schema().clone();
    for at in 0..REGISTERS {
        let (name, item) = (format!("f{at}"), Ref::new("Item", Value::Int(at as i64)));
        let declared = declared(&place.0, "Item", &name);
        for _ in 0..6 {
            let given = value(&mut random, &schema, &declared);
            let (expected, about) =
                (place.exact(&given, &declared), format!("{engine:?}, {declared}: {given}"));
            let arguments = [Value::Ref(item.clone()), given];
            assert_eq!(place.ok(&format!("put_{name}"), &arguments), expected, "{about}");
            assert_eq!(place.ok(&format!("get_{name}"), &arguments[..1]), expected, "{about}");
            assert_eq!(place.ok(&format!("same_{name}"), &arguments), "true", "{about}");
            let shown = place.show(&item);
            assert!(shown.contains(&format!("\"{name}\":{expected}")), "{shown}: {about}");
        }
    }
    for at in 0..SCALARS.len() - 1 {
        keyed(&place, at, &mut random);
    }
    assert!(place.0.settles());
}

/// Values of a scalar type as keys of objects and maps, elements and lines. Keys and elements have their canonical form:
/// 1.50 and 1.5 are one of them.
fn keyed(place: &Place, at: usize, random: &mut Random) {
    let schema = place.0.database.program().schema();
    let object = format!("By{at}");
    let declared = declared(&place.0, &object, "one");
    for _ in 0..4 {
        let (key, given) = (value(random, schema, &declared), value(random, schema, &declared));
        let about = format!("{declared}: {given} at {key}");
        let (line, element) =
            (place.exact(&given, &declared), place.exact(&given.canonical(), &declared));
        let (of_key, key) = (place.exact(&key, &declared), Ref::new(&*object, key));
        let arguments = [Value::Ref(key.clone()), given];
        place.ok(&format!("put_{at}"), &arguments);
        let same = place.ok(&format!("same_{at}"), &arguments);
        assert_eq!(same, "[true,true,true,true]", "{about}");
        let found = place.show(&key);
        let [_, one, all, by, lines] =
            ["k", "one", "all", "by", "lines"].map(|part| format!("\"{part}\":"));
        let place_of = |part: &str| found.find(part).unwrap_or_else(|| panic!("{part}: {found}"));
        let [one, all, by, lines] = [one, all, by, lines].map(|part| place_of(&part));
        assert!(found[..one].contains(&of_key), "{found}: {about}");
        assert!(found[one..all].contains(&line), "{found}: {about}");
        assert!(found[all..by].contains(&element), "{found}: {about}");
        assert!(found[by..lines].contains(&element), "{found}: {about}");
        assert!(found[lines..].contains(&line), "{found}: {about}");
    }
}

#[test]
fn values_of_all_types_come_back_from_the_embedded_engine() {
    for seed in [1, 2, 3] {
        round_trip(None, "", seed);
    }
}

#[test]
fn values_of_all_types_come_back_from_several_data_centers() {
    round_trip(None, "[stores.place]\ndatacenters = [\"oslo\", \"rome\"]\nbetween = \"1ms\"\n", 4);
}

#[test]
fn values_of_all_types_come_back_from_postgres() {
    round_trip(Some(Engine::Postgres), "", 5);
}

#[test]
fn values_of_all_types_come_back_from_redis() {
    round_trip(Some(Engine::Redis), "", 6);
}

#[test]
fn values_of_all_types_come_back_from_cassandra() {
    round_trip(Some(Engine::Cassandra), "", 7);
}
