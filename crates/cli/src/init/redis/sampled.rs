//! A sample of keys, with a part of the contents of some of them.

use std::collections::BTreeMap;

use mingle_store_redis::{Contents, OpenError, Sample, SampledKey, Sampler};

use super::parts::{Part, parts};
use super::patterns::Key;

/// The number of keys of one kind whose contents are looked at.
const CONTENTS_MAX: usize = 100;

/// The beginning of the keys of stores of Mingle.
const OWN: &[u8] = b"mingle:";

/// A sample, sorted.
#[derive(Debug, Default)]
pub struct Sampled {
    /// The keys that can be mapped.
    pub keys: Vec<Key>,
    /// Their contents, in the same order.
    pub contents: Vec<Contents>,
    /// True for each key with a time to live.
    pub expire: Vec<bool>,
    /// The number of keys of stores of Mingle.
    pub own: usize,
    /// The keys whose names are no text.
    pub odd: Vec<Vec<u8>>,
    /// The number of keys that the user may not read.
    pub forbidden: u64,
    /// The number of keys in the database.
    pub total: u64,
    /// True if time ran out.
    pub is_late: bool,
}

impl Sampled {
    /// Sorts a sample, and looks at the contents of some of its keys of each kind.
    ///
    /// # Errors
    ///
    /// When the server does not answer.
    pub async fn look(sampler: &Sampler, sample: Sample) -> Result<Self, OpenError> {
        let mut sampled = Self {
            forbidden: sample.forbidden,
            total: sample.total,
            is_late: sample.is_late,
            ..Self::default()
        };
        let mut kept: Vec<SampledKey> = Vec::new();
        for key in sample.keys {
            if key.name.starts_with(OWN) {
                sampled.own += 1;
            } else if let Ok(name) = String::from_utf8(key.name.clone()) {
                let of = key.key_type.clone();
                sampled.keys.push(Key { name, of, fields: None });
                sampled.expire.push(key.expires);
                kept.push(key);
            } else {
                sampled.odd.push(key.name);
            }
        }
        let chosen = chosen(&sampled.keys);
        let asked: Vec<&SampledKey> = chosen.iter().map(|at| &kept[*at]).collect();
        let contents = sampler.contents(&asked).await?;
        sampled.contents = vec![Contents::Unknown; kept.len()];
        for (at, contents) in chosen.into_iter().zip(contents) {
            if let Contents::Hash(pairs) = &contents {
                let fields = pairs.iter().map(|(field, _)| field.clone());
                sampled.keys[at].fields = Some(fields.collect());
            }
            sampled.contents[at] = contents;
        }
        Ok(sampled)
    }

    /// Returns the sentence that says how much of the database was looked at.
    pub fn summary(&self) -> String {
        let looked = self.keys.len() + self.own + self.odd.len();
        let read = self.contents.iter().filter(|contents| **contents != Contents::Unknown).count();
        let late = if self.is_late { ", as many as a minute allowed" } else { "" };
        format!(
            "This is a guess from {looked} of {} keys{late}, and from a part of the contents of {read}. Other \
             keys may\nhave other patterns, and their values other types.",
            self.total
        )
    }
}

/// A kind of keys: their type, their first and last words, and the number of their parts.
type Kind = (String, Option<Part>, Option<Part>, usize);

/// Chooses keys of each kind, some here and some there: keys are of one kind if they have the same type, the same first
/// and last word, and as many parts.
fn chosen(keys: &[Key]) -> Vec<usize> {
    let mut kinds: BTreeMap<Kind, Vec<usize>> = BTreeMap::new();
    for (at, key) in keys.iter().enumerate() {
        let parts = parts(&key.name);
        let word = |part: Option<&Part>| part.filter(|part| matches!(part, Part::Word(_))).cloned();
        // The last word is fixed only if another part can vary.
        let last = if parts.len() > 3 { word(parts.last()) } else { None };
        let kind = (key.of.clone(), word(parts.first()), last, parts.len());
        kinds.entry(kind).or_default().push(at);
    }
    let some = kinds.into_values().flat_map(|all| {
        let step = all.len().div_ceil(CONTENTS_MAX);
        all.into_iter().step_by(step).collect::<Vec<_>>()
    });
    some.collect()
}
