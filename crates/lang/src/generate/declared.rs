//! The declarations of every generated program.

use std::fmt::Write as _;

/// Names and levels of the stores of every generated program, strongest first.
pub const STORES: [(&str, &str); 5] = [
    ("bank", "linearizable"),
    ("shop", "linearizable"),
    ("feed", "causal"),
    ("wall", "causal"),
    ("logs", "eventual"),
];

/// Keys that generated programs use, so that their refs alias.
pub const KEYS: [&str; 3] = ["a", "b", "c"];

/// The fields of every kind of object, in order.
const FIELDS: [&str; 21] = [
    "n", "b", "s", "m", "p", "l", "r", "q", "c", "e", "f", "d", "g", "h", "t", "w", "y", "u", "z",
    "v", "i",
];

/// Kinds of object with a key of each type that is not a string, with the key's field and its type.
/// The kind of index `i` lives in the store of index `i`, modulo the number of stores.
pub(super) const KEYED: [(&str, &str, &str); 9] = [
    ("Number", "number", "int"),
    ("Seat", "place", "Place"),
    ("Switch", "on", "bool"),
    ("Linked", "to", "ref O0"),
    ("Moment", "at", "time"),
    ("Raw", "raw", "bytes"),
    ("Day", "day", "date"),
    ("Price", "price", "decimal"),
    ("Voice", "tone", "Tone"),
];

/// The stores that have a kind of object with `unique`s.
pub const UNIQUE: [usize; 2] = [0, 1];

/// Returns the index of a field of every kind of object.
///
/// # Panics
///
/// When no field has this name.
pub fn field(name: &str) -> u16 {
    FIELDS.iter().position(|field| *field == name).expect("a field of generated programs") as u16
}

/// Returns the operations of the store of this index, by name, with their implementation for the
/// embedded engine.
pub fn operations(store: usize) -> [(&'static str, String); 5] {
    [
        ("size", format!("builtin:size O{store}.e")),
        ("maybe", format!("builtin:value O{store}.m")),
        ("lines", format!("builtin:value O{store}.g")),
        ("push", format!("builtin:append O{store}.g")),
        ("bump", format!("builtin:add O{store}.c")),
    ]
}

/// Returns the declarations that every generated program starts with: in each store one kind of
/// object with a field of every type. With `has_levels`, the program also declares its own levels.
pub(super) fn declarations(has_levels: bool) -> String {
    let mut text = String::new();
    if has_levels {
        text.push_str("level regional between linearizable and causal;\n");
        text.push_str("level spare between linearizable and causal;\n");
        text.push_str("level both between linearizable and regional, spare;\n");
    }
    for (index, (store, level)) in STORES.iter().enumerate() {
        // The rank of `feed` is below the rank of the other store of its level.
        let level = if has_levels && *store == "feed" { "regional" } else { level };
        writeln!(
            text,
            "store {store}: {level} {{ query size(o: ref O{index}) -> int; query maybe(o: ref O{index}) -> option<int>; \
             query lines(o: ref O{index}) -> list<int>; command push(o: ref O{index}, x: int); \
             command bump(o: ref O{index}, x: int); }}"
        )
        .expect("writing to a string cannot fail");
    }
    text.push_str("/// Two of a kind.\nstruct Pair { first: int, second: bool, }\n");
    text.push_str(
        "/// Of a voice.\nenum Tone { low, /// Not \"high\".\nmid = \"mid-range\", high, }\n",
    );
    text.push_str("struct Place { row: int, letter: string }\n");
    for (index, (store, _)) in STORES.iter().enumerate() {
        let next = (index + 1) % STORES.len();
        writeln!(
            text,
            "object O{index} in {store} {{ key name: string; n: int = {index}; b: bool; s: string; m: option<int>; \
             p: Pair; l: list<int>; r: ref O{index}; q: ref O{next}; c: counter; e: set<int>; f: set<ref O{next}>; \
             d: map<int, int>; g: log<int>; h: map<string, ref O{next}>; t: time; w: float = 0.5; y: bytes = b\"-\"; \
             u: date = date(\"2026-01-31\"); z: decimal; v: Tone = Tone.mid; i: json; index by n; index by s, n as texts; }}"
        )
        .expect("writing to a string cannot fail");
    }
    for (index, (kind, key, key_type)) in KEYED.iter().enumerate() {
        let (store, _) = STORES[index % STORES.len()];
        writeln!(text, "object {kind} in {store} {{ key {key}: {key_type}; n: int; }}")
            .expect("writing to a string cannot fail");
    }
    for (index, (store, _)) in STORES.iter().enumerate() {
        writeln!(
            text,
            "object Stock{index} in {store} {{ key name: string; left: counter min 0; room: counter min -2 max 3; }}"
        )
        .expect("writing to a string cannot fail");
    }
    text.push_str(&badges());
    text.push_str("fn twice(x: int) -> int { x + x }\n");
    text.push_str("fn pick(b: bool, x: int, y: int) -> int { let z = if b { x } else { y }; z }\n");
    for (index, (store, _)) in STORES.iter().enumerate() {
        writeln!(text, "fn known{index}(o: ref O{index}) -> int {{ {store}.maybe(o) ?? o.n }}")
            .expect("writing to a string cannot fail");
        writeln!(text, "fn sum{index}(o: ref O{index}) -> int {{ o.n + o.c.value() }}")
            .expect("writing to a string cannot fail");
    }
    text
}

/// Returns the declarations of the objects with `unique`s.
fn badges() -> String {
    let declared = UNIQUE.iter().map(|index| {
        let store = STORES[*index].0;
        format!(
            "object Badge{index} in {store} {{ key name: string; color: int = 1; shape: option<int>; of: ref O{index}; \
             unique color; unique of, shape as look; }}\n"
        )
    });
    declared.collect()
}
