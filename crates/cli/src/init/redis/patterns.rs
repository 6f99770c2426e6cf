//! Patterns of keys, such as `user:{id}:name`.

use std::collections::{BTreeMap, BTreeSet};

use super::parts::{Part, parts};

/// A key of a sample, as text, with the parts of its contents that matter for patterns.
#[derive(Clone, Debug)]
pub struct Key {
    /// Its name.
    pub name: String,
    /// Its type at the server.
    pub of: String,
    /// The names of a hash's fields; none if it is no hash, or was not looked into.
    pub fields: Option<BTreeSet<Vec<u8>>>,
}

/// Keys with the same fixed parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// The fixed text before the part that varies.
    pub before: String,
    /// The fixed text after it.
    pub after: String,
    /// The part that varies, of each key.
    pub names: Vec<String>,
    /// The keys, by their places in the sample, in the order of `names`.
    pub keys: Vec<usize>,
}

/// The patterns of a sample, and the keys without one.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// The patterns, by their texts.
    pub patterns: Vec<Pattern>,
    /// Single keys, with no part that seems to vary.
    pub single: Vec<usize>,
    /// Keys that begin with the part that varies.
    pub unprefixed: Vec<usize>,
    /// Groups of keys of which several parts vary: the text with a `*` for each, and the keys.
    pub compound: Vec<(String, Vec<usize>)>,
}

/// The number of different words at one place of otherwise equal keys from which these words are taken for names.
const WORDS_MIN: usize = 6;

/// A key with its parts, of which some are known to vary.
struct Split {
    key: usize,
    parts: Vec<Part>,
}

/// Finds the patterns of keys.
pub fn find(keys: &[Key]) -> Found {
    let mut all: Vec<Split> = keys
        .iter()
        .enumerate()
        .map(|(at, key)| Split { key: at, parts: parts(&key.name) })
        .collect();
    name_words(keys, &mut all);
    let mut groups: BTreeMap<Vec<Part>, Vec<Split>> = BTreeMap::new();
    for split in all {
        groups.entry(shape(&split.parts)).or_default().push(split);
    }
    let mut found = Found::default();
    for group in groups.into_values() {
        add(group, &mut found);
    }
    found.patterns.sort_by(|a, b| (&a.before, &a.after).cmp(&(&b.before, &b.after)));
    found
}

/// Returns the parts of a key with nothing in place of each name.
fn shape(parts: &[Part]) -> Vec<Part> {
    let shape = parts.iter().map(|part| match part {
        Part::Name(_) => Part::Name(String::new()),
        other => other.clone(),
    });
    shape.collect()
}

/// Turns words into names where many keys differ in nothing else.
fn name_words(keys: &[Key], all: &mut [Split]) {
    let mut known: BTreeSet<String> = BTreeSet::new();
    // Words that are names in one pattern are names in others, too, which are found in a further round.
    loop {
        let mut places: BTreeMap<(Vec<Part>, usize), Vec<usize>> = BTreeMap::new();
        for (index, split) in all.iter().enumerate() {
            if split.parts.iter().any(|part| matches!(part, Part::Name(_))) {
                continue;
            }
            for at in (1..split.parts.len()).filter(|at| matches!(split.parts[*at], Part::Word(_)))
            {
                let mut shape = split.parts.clone();
                shape[at] = Part::Name(keys[split.key].of.clone());
                places.entry((shape, at)).or_default().push(index);
            }
        }
        let word = |split: &Split, at: usize| match &split.parts[at] {
            Part::Word(word) | Part::Name(word) => word.clone(),
            Part::Separator(_) => String::new(),
        };
        let mut best: BTreeMap<usize, (usize, usize)> = BTreeMap::new();
        for ((_, at), indexes) in &places {
            let words: BTreeSet<String> =
                indexes.iter().map(|index| word(&all[*index], *at)).collect();
            let are_known = words.iter().all(|word| known.contains(word));
            let members: Vec<&Key> = indexes.iter().map(|index| &keys[all[*index].key]).collect();
            if words.contains("") || !(are_known || words.len() >= WORDS_MIN || are_alike(&members))
            {
                continue;
            }
            for index in indexes {
                let known = best.entry(*index).or_default();
                *known = (*known).max((words.len(), *at));
            }
        }
        if best.is_empty() {
            return;
        }
        for (index, (_, at)) in best {
            let name = word(&all[index], at);
            known.insert(name.clone());
            all[index].parts[at] = Part::Name(name);
        }
    }
}

/// True if several keys are hashes with fields of the same names, as far as they were looked into.
fn are_alike(keys: &[&Key]) -> bool {
    let fields: Vec<&BTreeSet<Vec<u8>>> =
        keys.iter().filter_map(|key| key.fields.as_ref()).collect();
    let [first, _, ..] = fields[..] else { return false };
    let is_alike = |fields: &&BTreeSet<Vec<u8>>| {
        let common = fields.intersection(first).count();
        common > 0 && common * 2 >= fields.len().max(first.len())
    };
    fields.iter().all(is_alike)
}

/// Adds a group of keys of one shape.
fn add(group: Vec<Split>, found: &mut Found) {
    let name = |split: &Split, at: usize| match &split.parts[at] {
        Part::Name(name) => name.clone(),
        _ => String::new(),
    };
    let first = &group[0].parts;
    let named: Vec<usize> =
        (0..first.len()).filter(|at| matches!(first[*at], Part::Name(_))).collect();
    // A part that is the same in all keys is fixed, if another one varies.
    let varies = |at: &usize| group.iter().any(|split| name(split, *at) != name(&group[0], *at));
    let mut varying: Vec<usize> = named.iter().copied().filter(varies).collect();
    if varying.is_empty() {
        varying = named.last().copied().into_iter().collect();
    }
    let text = |split: &Split, range: std::ops::Range<usize>| -> String {
        let shown = split.parts[range].iter().map(|part| match part {
            Part::Separator(separator) => separator.to_string(),
            Part::Word(text) | Part::Name(text) => text.clone(),
        });
        shown.collect()
    };
    let keys: Vec<usize> = group.iter().map(|split| split.key).collect();
    match varying[..] {
        [] => found.single.extend(keys),
        [0] => found.unprefixed.extend(keys),
        [at] => found.patterns.push(Pattern {
            before: text(&group[0], 0..at),
            after: text(&group[0], at + 1..first.len()),
            names: group.iter().map(|split| name(split, at)).collect(),
            keys,
        }),
        _ => {
            let mut shown = group.into_iter().next().expect("a group has keys");
            for at in varying {
                shown.parts[at] = Part::Word("*".into());
            }
            let whole = text(&shown, 0..shown.parts.len());
            found.compound.push((whole, keys));
        }
    }
}

impl Pattern {
    /// Returns the pattern as a binding writes it.
    pub fn text(&self, key: &str) -> String {
        format!("{}{{{key}}}{}", self.before, self.after)
    }

    /// True if all parts that vary are numbers as `int` writes them.
    pub fn has_numbers(&self) -> bool {
        self.names
            .iter()
            .all(|name| name.parse::<i64>().is_ok_and(|number| number.to_string() == *name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(keys: &[(&str, &str, &[&str])]) -> Found {
        let keys: Vec<Key> = keys
            .iter()
            .map(|(name, key_type, fields)| Key {
                name: (*name).into(),
                of: (*key_type).into(),
                fields: (*key_type == "hash")
                    .then(|| fields.iter().map(|field| field.as_bytes().to_vec()).collect()),
            })
            .collect();
        find(&keys)
    }

    fn texts(found: &Found) -> Vec<String> {
        found
            .patterns
            .iter()
            .map(|pattern| format!("{} {}", pattern.text("id"), pattern.keys.len()))
            .collect()
    }

    #[test]
    fn keys_that_differ_in_a_name_have_a_pattern() {
        let all = found(&[
            ("user:7", "hash", &["mail"]),
            ("user:8", "hash", &["mail"]),
            ("user:7:friends", "set", &[]),
            ("app:1:job:5", "string", &[]),
            ("app:1:job:6", "string", &[]),
            ("room:3:seat:4", "string", &[]),
            ("room:5:seat:6", "string", &[]),
            ("7:x", "string", &[]),
            ("motd", "string", &[]),
        ]);
        assert_eq!(texts(&all), ["app:1:job:{id} 2", "user:{id} 2", "user:{id}:friends 1"]);
        assert_eq!(all.compound, [("room:*:seat:*".to_owned(), vec![5, 6])]);
        assert_eq!((all.unprefixed, all.single), (vec![7], vec![8]));
        assert!(all.patterns[1].has_numbers());
    }

    #[test]
    fn words_are_names_where_there_are_many_or_hashes_are_alike() {
        let all = found(&[
            ("user:ana", "hash", &["mail", "age"]),
            ("user:bo", "hash", &["mail"]),
            ("inbox:ana", "list", &[]),
            ("inbox:bo", "list", &[]),
            ("config:mail", "string", &[]),
            ("config:theme", "string", &[]),
            ("place:a", "string", &[]),
            ("place:b", "string", &[]),
            ("place:c", "string", &[]),
            ("place:d", "string", &[]),
            ("place:e", "string", &[]),
            ("place:f", "string", &[]),
            ("lock:x", "hash", &["by"]),
            ("lock:y", "hash", &["until"]),
        ]);
        assert_eq!(texts(&all), ["inbox:{id} 2", "place:{id} 6", "user:{id} 2"]);
        assert_eq!(all.single, [4, 5, 12, 13]);
    }
}
