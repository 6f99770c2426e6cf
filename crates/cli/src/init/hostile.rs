//! Names that an untrusted database could have, for tests.

/// Text that ends comments, strings or lines in one of the files, or has a special meaning there.
const PIECES: [&str; 22] = [
    "\n",
    "\r\n",
    "\r",
    "\u{85}",
    "\u{2028}",
    "\u{1b}[2J",
    "\u{202e}",
    "\0",
    "\"",
    "'",
    "\"\"\"",
    "\\",
    "*/",
    "//",
    "///",
    "]",
    "${HOME}",
    "}\n",
    "transaction evil() { }",
    "\nobject Evil in shop { key k: int; }\n",
    " ",
    "=",
];

/// A generator that is good enough for this (Knuth's MMIX constants).
pub struct Random(pub u64);

impl Random {
    /// Returns a name that begins with some text.
    pub fn name(&mut self, first: &str) -> String {
        let mut name = first.to_owned();
        for _ in 0..4 {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            name += PIECES[((self.0 >> 33) as usize) % PIECES.len()];
        }
        name
    }
}
