//! Random choices, and positions of scans.

use mingle_model::random::{Random, mix};

use super::number::int;
use super::{Fault, matches};
use crate::resp::Bytes;

/// The number of elements up to which one scan returns a whole collection.
const WHOLE: usize = 128;

/// The usual number of elements of a step of a scan.
const STEP: usize = 10;

/// Returns the position of a name in scans: a hash of 63 bits, never 0. It is the same everywhere, so
/// a cursor needs no memory at the server.
pub fn position(name: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    for byte in name {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    (mix(hash) >> 1).max(1)
}

/// The arguments of a scan.
#[derive(Clone, Debug)]
pub struct Scan {
    /// The least position; 0 at the beginning.
    pub cursor: u64,
    /// The pattern of names.
    pub pattern: Option<Bytes>,
    /// The number of elements of a step.
    pub count: usize,
    /// The type of items, for a scan of names.
    pub of: Option<Bytes>,
    /// True if values are not returned.
    pub is_bare: bool,
}

impl Scan {
    /// Reads a cursor, and the options after it.
    pub fn parse(cursor: &[u8], options: &[Bytes]) -> Result<Self, Fault> {
        let cursor = std::str::from_utf8(cursor).ok().and_then(|text| text.parse().ok());
        let cursor = cursor.ok_or_else(|| Fault::error("invalid cursor"))?;
        let mut scan = Self { cursor, pattern: None, count: STEP, of: None, is_bare: false };
        let mut rest = options;
        while let [name, after @ ..] = rest {
            rest = match (name.to_ascii_lowercase().as_slice(), after) {
                (b"match", [pattern, after @ ..]) => {
                    scan.pattern = Some(pattern.clone());
                    after
                }
                (b"count", [count, after @ ..]) => {
                    let count = int(count)?;
                    scan.count =
                        usize::try_from(count).ok().filter(|it| *it > 0).ok_or(Fault::Syntax)?;
                    after
                }
                (b"type", [of, after @ ..]) => {
                    scan.of = Some(of.clone());
                    after
                }
                (b"novalues", after) => {
                    scan.is_bare = true;
                    after
                }
                _ => return Err(Fault::Syntax),
            };
        }
        Ok(scan)
    }

    /// True if a name matches the pattern.
    pub fn takes(&self, name: &[u8]) -> bool {
        self.pattern.as_ref().is_none_or(|pattern| matches(pattern, name))
    }

    /// Returns the elements of the next step in a collection, and the next cursor.
    pub fn step<T>(&self, elements: Vec<T>, name: impl Fn(&T) -> Bytes) -> (u64, Vec<T>) {
        let placed = elements.into_iter().map(|element| (position(&name(&element)), element));
        let mut placed: Vec<(u64, T)> = placed.collect();
        let mut next = 0;
        if placed.len() > WHOLE {
            placed.retain(|(at, _)| *at >= self.cursor);
            placed.sort_by_key(|(at, _)| *at);
            // Elements at one position are returned together.
            let last = placed.get(self.count - 1).map(|(at, _)| *at);
            let after = |at: &u64| last.is_some_and(|last| *at > last);
            next = placed.iter().map(|(at, _)| *at).find(after).unwrap_or(0);
            placed.retain(|(at, _)| next == 0 || *at < next);
        }
        let elements = placed.into_iter().map(|(_, element)| element);
        (next, elements.filter(|element| self.takes(&name(element))).collect())
    }
}

/// Chooses elements at random: `count` distinct ones, or with a negative count that many which may be
/// equal.
pub fn choose<T: Clone>(elements: &[T], count: i64, random: &mut Random) -> Vec<T> {
    if elements.is_empty() {
        return Vec::new();
    }
    let number = count.unsigned_abs() as usize;
    if count < 0 {
        return (0..number).map(|_| random.pick(elements).clone()).collect();
    }
    let mut elements = elements.to_vec();
    for place in 0..number.min(elements.len()) {
        let other = place + random.below(elements.len() - place);
        elements.swap(place, other);
    }
    elements.truncate(number);
    elements
}

/// The maximum number of elements that a random choice may return with repetitions.
pub const CHOICES_MAX: i64 = 1 << 20;

/// Reads the count of a random choice.
pub fn choices(text: &[u8]) -> Result<i64, Fault> {
    let count = int(text)?;
    if count < -CHOICES_MAX {
        return Err(Fault::error(format!("value is out of range, at least -{CHOICES_MAX}")));
    }
    Ok(count)
}
