//! Objects for patterns of keys.

use std::collections::{BTreeMap, BTreeSet};

use mingle_model::Type;
use mingle_store_redis::Contents;
use mingle_store_redis::mapping::can_meet;

use super::patterns::{self, Pattern};
use super::sampled::Sampled;
use super::values::{infer, infer_names, is_hyperloglog, without_torn_end};
use crate::init::design::{Collection, Design, Field, Key, Kind, LeftOut, Object};
use crate::init::names::{Taken, identifier, of_object};

/// The number of single keys that are listed one by one.
const SINGLE_MAX: usize = 10;

/// The greatest number of fields of hashes that are taken for registers of an object.
const FIELDS_MAX: usize = 128;

/// The use of the keys of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    /// Hashes with the registers of objects.
    Registers,
    /// Keys that hold one field each, by the type of the key.
    Field(&'static str),
}

/// A pattern that can be mapped.
struct Fit {
    pattern: Pattern,
    used: Use,
}

/// Designs the objects for a sample.
pub fn design(store: &str, sampled: &Sampled) -> Design {
    let mut design = Design { store: store.to_owned(), kind: Kind::Redis, ..Design::default() };
    let found = patterns::find(&sampled.keys);
    let mut fits = Vec::new();
    for pattern in found.patterns {
        match used(sampled, &pattern) {
            Ok(used) => fits.push(Fit { pattern, used }),
            Err((kind, why)) => {
                let why = format!("{why} ({})", count(sampled, &pattern.keys));
                design.left_out.push(LeftOut { name: pattern.text("…"), kind, why });
            }
        }
    }
    let families = without_clashes(families(fits), sampled, &mut design.left_out);
    let mut taken = Taken::default();
    taken.take(store.to_owned());
    for family in families {
        design.objects.push(object(sampled, &family, &mut taken));
    }
    design.objects.sort_by(|a, b| a.table.cmp(&b.table));
    design.left_out.extend(of_others(sampled, &found.single, &found.unprefixed, &found.compound));
    design
}

/// Returns the number of keys, with an example, and the number of those that expire.
fn count(sampled: &Sampled, keys: &[usize]) -> String {
    let example = keys.first().map_or("", |at| &sampled.keys[*at].name);
    let count = match keys.len() {
        1 => format!("1 key, {example}"),
        count => format!("{count} keys, such as {example}"),
    };
    match keys.iter().filter(|at| sampled.expire[**at]).count() {
        0 => count,
        expire if expire == keys.len() => format!("{count}, with times to live"),
        expire => format!("{count}, {expire} of them with a time to live"),
    }
}

/// Returns the use of the keys of a pattern, or the kind of its keys and the reason why they are left out.
fn used(sampled: &Sampled, pattern: &Pattern) -> Result<Use, (String, String)> {
    let mut types: BTreeMap<&str, usize> = BTreeMap::new();
    for at in &pattern.keys {
        *types.entry(&sampled.keys[*at].of).or_default() += 1;
    }
    if [&pattern.before, &pattern.after].iter().any(|text| text.contains(['{', '}'])) {
        return Err((
            "keys".into(),
            "a mapped key has no braces beside those of its object's key".into(),
        ));
    }
    let contents = || pattern.keys.iter().map(|at| &sampled.contents[*at]);
    let types: Vec<(&str, usize)> = types.into_iter().collect();
    match types[..] {
        [("hash", _)] if are_records(contents()) => Ok(Use::Registers),
        [("hash", _)] => Ok(Use::Field("hash")),
        [("set", _)] => Ok(Use::Field("set")),
        [("list", _)] => Ok(Use::Field("list")),
        [("string", _)] => {
            let is_odd = |contents: &Contents| matches!(contents, Contents::String(value, _) if is_hyperloglog(value));
            if contents().any(is_odd) {
                let why = "no field is kept so; a declared `query` can read it (PFCOUNT)";
                return Err(("HyperLogLog".into(), why.into()));
            }
            Ok(Use::Field("string"))
        }
        [(of, _)] => Err((called(of).to_owned(), why_not(of))),
        _ => {
            let types: Vec<String> =
                types.iter().map(|(of, count)| format!("{count} of type {of}")).collect();
            Err(("keys".into(), format!("they have several types: {}", types.join(", "))))
        }
    }
}

fn called(key_type: &str) -> &str {
    if key_type == "zset" { "sorted set" } else { key_type }
}

fn why_not(key_type: &str) -> String {
    let command = match key_type {
        "zset" => " (ZSCORE, ZRANGE)",
        "stream" => " (XRANGE)",
        _ => "",
    };
    format!("no field is kept so; a declared `query` can read it{command}")
}

/// True if hashes have mostly the same fields, so that these are registers and not the entries of a map.
fn are_records<'c>(contents: impl Iterator<Item = &'c Contents>) -> bool {
    let hashes: Vec<BTreeSet<&[u8]>> = contents
        .filter_map(|contents| match contents {
            Contents::Hash(pairs) => Some(pairs.iter().map(|(field, _)| &**field).collect()),
            _ => None,
        })
        .collect();
    let mut counts: BTreeMap<&[u8], usize> = BTreeMap::new();
    for field in hashes.iter().flatten() {
        *counts.entry(field).or_default() += 1;
    }
    let all: usize = counts.values().sum();
    let common = counts.values().filter(|count| **count * 2 >= hashes.len());
    let is_word =
        |field: &&[u8]| std::str::from_utf8(field).is_ok_and(|text| !super::parts::is_name(text));
    let words = counts.keys().filter(|field| is_word(field)).count();
    !counts.is_empty()
        && counts.len() <= FIELDS_MAX
        && words * 2 > counts.len()
        && common.sum::<usize>() * 2 >= all
}

/// Patterns of one object: with the same text before its key.
struct Family {
    /// The hash of its registers.
    registers: Option<Pattern>,
    /// Keys of single fields.
    fields: Vec<(Pattern, &'static str)>,
    /// The type of its key: `int` or `string`.
    key_type: Type,
    /// The texts after which it is named.
    named: (String, String),
}

impl Family {
    fn new(registers: Option<Pattern>, fields: Vec<(Pattern, &'static str)>, after: &str) -> Self {
        let all = || registers.iter().chain(fields.iter().map(|(pattern, _)| pattern));
        let has_numbers = all().all(Pattern::has_numbers);
        let key_type = if has_numbers { Type::Int } else { Type::String };
        let before = all().next().map(|pattern| pattern.before.clone()).unwrap_or_default();
        Self { registers, fields, key_type, named: (before, after.to_owned()) }
    }
}

/// Gathers patterns into objects. Hashes of registers beside another one of the same object are objects of their own.
fn families(fits: Vec<Fit>) -> Vec<Family> {
    let mut by_text: BTreeMap<String, Vec<Fit>> = BTreeMap::new();
    for fit in fits {
        by_text.entry(fit.pattern.before.clone()).or_default().push(fit);
    }
    let mut all = Vec::new();
    for fits in by_text.into_values() {
        let (mut registers, mut fields) = (Vec::new(), Vec::new());
        for Fit { pattern, used } in fits {
            match used {
                Use::Registers => registers.push(pattern),
                Use::Field(of) => fields.push((pattern, of)),
            }
        }
        // The shortest one stands first.
        registers.sort_by_key(|pattern| pattern.after.len());
        let mut registers = registers.into_iter();
        let main = registers.next();
        if main.is_some() || !fields.is_empty() {
            all.push(Family::new(main, fields, ""));
        }
        for further in registers {
            let after = further.after.clone();
            all.push(Family::new(Some(further), Vec::new(), &after));
        }
    }
    all
}

/// Leaves out patterns that a binding would refuse beside others: hashes of registers stay before others, and patterns
/// of many keys before those of few.
fn without_clashes(
    families: Vec<Family>,
    sampled: &Sampled,
    left_out: &mut Vec<LeftOut>,
) -> Vec<Family> {
    let mut order: Vec<(bool, usize, Pattern, Type)> = Vec::new();
    for family in &families {
        let of = |pattern: &Pattern, is_field| {
            (is_field, usize::MAX - pattern.keys.len(), pattern.clone(), family.key_type.clone())
        };
        order.extend(family.registers.iter().map(|pattern| of(pattern, false)));
        order.extend(family.fields.iter().map(|(pattern, _)| of(pattern, true)));
    }
    order.sort_by(|a, b| {
        (a.0, a.1, &a.2.before, &a.2.after).cmp(&(b.0, b.1, &b.2.before, &b.2.after))
    });
    let mut kept: Vec<(Pattern, Type)> = Vec::new();
    for (_, _, pattern, of) in order {
        let meets = |(known, known_type): &&(Pattern, Type)| {
            let known = (&*known.before, &*known.after, known_type);
            can_meet(known, (&pattern.before, &pattern.after, &of))
        };
        match kept.iter().find(meets) {
            None => kept.push((pattern, of)),
            Some((known, _)) => left_out.push(LeftOut {
                name: pattern.text("…"),
                kind: "keys".into(),
                why: format!(
                    "they could be keys of {}, whose part in braces can be any text, so a binding refuses both ({})",
                    known.text("…"),
                    count(sampled, &pattern.keys)
                ),
            }),
        }
    }
    let is_kept = |pattern: &Pattern| kept.iter().any(|(known, _)| known == pattern);
    let rest = families.into_iter().map(|mut family| {
        family.registers = family.registers.filter(|pattern| is_kept(pattern));
        family.fields.retain(|(pattern, _)| is_kept(pattern));
        family
    });
    rest.filter(|family| family.registers.is_some() || !family.fields.is_empty()).collect()
}

/// Returns a name for an object: its last word, or all of its words if that is taken.
fn name(family: &Family, taken: &mut Taken) -> String {
    let (before, after) = &family.named;
    let words = |text: &str| -> Vec<String> {
        let words = text.split(|c: char| !c.is_alphanumeric());
        words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
    };
    let before = words(before);
    let last = before.last().cloned().unwrap_or_default();
    let own = |first: &str| {
        let all: Vec<String> = std::iter::once(of_object(first)).chain(words(after)).collect();
        of_object(&all.join("_"))
    };
    let short = own(&last);
    if taken.has(&short) && before.len() > 1 {
        return taken.take(own(&before.join("_")));
    }
    taken.take(short)
}

fn object(sampled: &Sampled, family: &Family, objects: &mut Taken) -> Object {
    let name = name(family, objects);
    let values = family.registers.as_ref().map(|pattern| values(sampled, pattern));
    let has_id = values.as_ref().is_some_and(|values| values.contains_key(&b"id"[..]));
    let mut taken = Taken::default();
    let key_name = taken.take(if has_id { "key".into() } else { "id".into() });
    let mut object = Object {
        name,
        table: format!("{}{{{key_name}}}", family.named.0),
        found: None,
        key: Key { name: key_name, declared: family.key_type.to_string(), parts: Vec::new() },
        fields: Vec::new(),
        collections: Vec::new(),
        indexes: Vec::new(),
        left_out: Vec::new(),
        remarks: Vec::new(),
    };
    if let Some(pattern) = &family.registers {
        object.table = pattern.text(&object.key.name);
        object.found = Some(count(sampled, &pattern.keys));
    }
    for (column, values) in values.unwrap_or_default() {
        let Ok(column) = std::str::from_utf8(column) else {
            object.left_out.push(LeftOut {
                name: column.escape_ascii().to_string(),
                kind: "a field".into(),
                why: "its name is no text".into(),
            });
            continue;
        };
        let (declared, remark) = infer(values.iter().copied());
        let name = taken.take(identifier(column, "field"));
        object.remarks.extend(remark.map(|remark| format!("{name} {remark}")));
        object.fields.push(Field {
            name,
            column: column.to_owned(),
            more: Vec::new(),
            declared: declared.to_owned(),
            is_read_only: false,
        });
    }
    for (pattern, of) in &family.fields {
        let collection = field(sampled, pattern, of, &object.key.name);
        object.add(collection);
    }
    object
}

/// Returns the values of each field of the hashes of a pattern.
fn values<'s>(sampled: &'s Sampled, pattern: &Pattern) -> BTreeMap<&'s [u8], Vec<&'s [u8]>> {
    let mut values: BTreeMap<&[u8], Vec<&[u8]>> = BTreeMap::new();
    for at in &pattern.keys {
        let Contents::Hash(pairs) = &sampled.contents[*at] else { continue };
        for (field, value) in pairs {
            values.entry(field).or_default().push(value);
        }
    }
    values
}

/// Returns the field that keys of a pattern hold.
fn field(sampled: &Sampled, pattern: &Pattern, of: &'static str, key: &str) -> Collection {
    let contents = || pattern.keys.iter().map(|at| &sampled.contents[*at]);
    let (usual, declared, remark) = match of {
        "hash" => {
            let pairs = || {
                contents().flat_map(|contents| match contents {
                    Contents::Hash(pairs) => &pairs[..],
                    _ => &[],
                })
            };
            let names: Vec<&[u8]> = pairs().map(|(name, _)| &**name).collect();
            let values: Vec<&[u8]> = pairs().map(|(_, value)| &**value).collect();
            let (value, remark) = infer(values.iter().copied());
            let entry = infer_names(names.iter().copied());
            ("entries", format!("map<{entry}, {value}>"), remark)
        }
        "string" => {
            let texts = contents().filter_map(|contents| match contents {
                Contents::String(text, length) if text.len() as u64 == *length => Some(&**text),
                Contents::String(text, _) => Some(without_torn_end(text)),
                _ => None,
            });
            let texts: Vec<&[u8]> = texts.collect();
            let (value, remark) = infer(texts.iter().copied());
            ("value", value.to_owned(), remark)
        }
        _ => {
            let items = contents().flat_map(|contents| match contents {
                Contents::Set(items) | Contents::List(items) => &items[..],
                _ => &[],
            });
            let items: Vec<&[u8]> = items.map(|item| &**item).collect();
            if of == "set" {
                ("elements", format!("set<{}>", infer_names(items.iter().copied())), None)
            } else {
                let (line, remark) = infer(items.iter().copied());
                ("lines", format!("log<{line}>"), remark)
            }
        }
    };
    let found = count(sampled, &pattern.keys);
    let after: Vec<&str> = pattern
        .after
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect();
    Collection {
        name: if after.is_empty() { usual.to_owned() } else { after.join("_") },
        declared,
        table: pattern.text(key),
        key: String::new(),
        entry: None,
        order: None,
        value: of.to_owned(),
        remark: Some(remark.map_or(found.clone(), |remark| format!("{found}; {remark}"))),
    }
}

/// Returns the lines on keys that have no pattern.
fn of_others(
    sampled: &Sampled,
    single: &[usize],
    unprefixed: &[usize],
    compound: &[(String, Vec<usize>)],
) -> Vec<LeftOut> {
    const SINGLE: &str =
        "no part of the key varies, as that of a mapped key does; a declared `query` can read it";
    let mut lines = Vec::new();
    let mut many = |count: u64, name: String, why: &str| {
        if count > 0 {
            let kind = if count == 1 { "the key".into() } else { format!("{count} keys such as") };
            lines.push(LeftOut { name, kind, why: why.to_owned() });
        }
    };
    let name = |at: Option<&usize>| at.map(|at| sampled.keys[*at].name.clone()).unwrap_or_default();
    let rest = single.get(SINGLE_MAX..).unwrap_or_default();
    many(rest.len() as u64, name(rest.first()), SINGLE);
    many(
        unprefixed.len() as u64,
        name(unprefixed.first()),
        "the part that varies stands first, and a mapped key begins with a fixed text",
    );
    let odd = sampled.odd.first().map(|key| key.escape_ascii().to_string());
    many(sampled.odd.len() as u64, odd.unwrap_or_default(), "the name is no text");
    many(sampled.own as u64, "mingle:…".into(), "they belong to stores of Mingle");
    many(sampled.forbidden, "…".into(), "the server refuses TYPE for them");
    lines.extend(single.iter().take(SINGLE_MAX).map(|at| LeftOut {
        name: sampled.keys[*at].name.clone(),
        kind: called(&sampled.keys[*at].of).to_owned(),
        why: SINGLE.to_owned(),
    }));
    lines.extend(compound.iter().map(|(text, keys)| LeftOut {
        name: text.clone(),
        kind: "keys".into(),
        why: format!(
            "several of their parts vary, and a mapped key has one such part ({})",
            count(sampled, keys)
        ),
    }));
    lines
}
