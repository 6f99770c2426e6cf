//! Texts that end something elsewhere: quotes, comments, lines, scripts. Stores keep them as they are.
//!
//! Adapters draw hostile names from [`Random`] too, for tables, columns and keys.

use mingle_model::{Ref, Value};

use super::schema::{LINES, MARKS, TAGS, TEXT, at, odd_field};
use super::{Bench, Checked, ensure_eq, tests};
use crate::operation::{Address, Data, Read, Write};

tests![hostile_texts_are_kept_as_they_are];

/// Pieces of text that end names, texts, comments or statements in some language, or have a special meaning there.
pub const PIECES: [&str; 34] = [
    "\"",
    "'",
    "`",
    "\\",
    "\\'",
    "--",
    "/*",
    "*/",
    "//",
    "#",
    ";",
    "$mingle$",
    "$$",
    "$1",
    "?",
    "%",
    "{schema}",
    "]]",
    "]==]",
    "</script>",
    "<!--",
    "-->",
    "&lt;",
    "\n",
    "\r\n",
    "\t",
    "\u{1b}[2J",
    "\u{85}",
    "\u{2028}",
    "\u{202e}",
    "é",
    " ",
    "select",
    "); DROP SCHEMA canary CASCADE; --",
];

/// A seeded generator of texts, which is good enough for this (Knuth's MMIX constants).
///
/// # Examples
///
/// ```
/// let mut random = mingle_store::conformance::hostile::Random::new(1);
/// assert!(random.name("table", 63).starts_with("table"));
/// ```
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A generator that draws the same for the same seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let drawn = usize::try_from(self.0 >> 33).expect("31 bits");
        drawn % bound
    }

    /// Text that begins with `first`, so that texts with different beginnings differ.
    pub fn text(&mut self, first: &str, pieces: usize) -> String {
        let rest: String = (0..pieces).map(|_| PIECES[self.below(PIECES.len())]).collect();
        format!("{first}{rest}")
    }

    /// A name of at most `bytes_max` bytes; one of four is as long as that.
    pub fn name(&mut self, first: &str, bytes_max: usize) -> String {
        let pieces = if self.below(4) == 0 { bytes_max } else { 4 };
        let mut name = self.text(first, pieces);
        let mut end = name.len().min(bytes_max);
        while !name.is_char_boundary(end) {
            end -= 1;
        }
        name.truncate(end);
        name
    }
}

async fn hostile_texts_are_kept_as_they_are(bench: &Bench<'_>) -> Checked {
    for seed in 0..24 {
        let mut random = Random::new(seed);
        let key = random.text("k", 6);
        let [text, element, entry, line] = [(); 4].map(|()| Value::from(random.text("t", 6)));
        let raw = [random.text("b\0", 6).as_bytes(), b"\0"].concat();
        let raw = Value::Bytes(raw.as_slice().into());
        let bytes = Address {
            object: Ref::new("Odd", Value::Int(i64::try_from(seed).expect("small"))),
            field: odd_field(0, 4),
        };
        bench
            .write(vec![
                Write::Assign(at(&key, TEXT), text.clone()),
                Write::Insert(at(&key, TAGS), element.clone()),
                Write::Put(at(&key, MARKS), entry.clone(), Value::Int(7)),
                Write::Append(at(&key, LINES), line.clone()),
                Write::Assign(bytes.clone(), raw.clone()),
            ])
            .await?;
        let cases = [
            (Read::Exists(at(&key, 0).object), Data::Bool(true)),
            (Read::Register(at(&key, TEXT)), Data::Register(Some(text))),
            (Read::Elements(at(&key, TAGS)), Data::Values(vec![element.clone()])),
            (Read::Contains(at(&key, TAGS), element.clone()), Data::Bool(true)),
            (Read::Entry(at(&key, MARKS), entry.clone()), Data::Register(Some(Value::Int(7)))),
            (Read::Entries(at(&key, MARKS)), Data::Entries(vec![(entry.clone(), Value::Int(7))])),
            (Read::LogLast(at(&key, LINES), 9), Data::Values(vec![line])),
            (Read::Register(bytes), Data::Register(Some(raw))),
        ];
        for (read, expected) in cases {
            let found = bench.data(read.clone()).await?;
            ensure_eq!(found, expected, "seed {seed}, {read:?}");
        }
        bench
            .write(vec![
                Write::Remove(at(&key, TAGS), element),
                Write::Erase(at(&key, MARKS), entry),
            ])
            .await?;
        for read in [Read::SetSize(at(&key, TAGS)), Read::MapSize(at(&key, MARKS))] {
            let found = bench.data(read.clone()).await?;
            ensure_eq!(found, Data::Count(0), "seed {seed}, {read:?}");
        }
    }
    Ok(())
}
