//! Lines and columns as the protocol counts them: from 0, columns in UTF-16 units or in bytes.

use std::ops::Range;

use gen_lsp_types::{Position, Range as LspRange};
use mingle_lang::syntax::line_starts;

/// The unit of columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Encoding {
    #[default]
    Utf16,
    Utf8,
}

/// The start of each line of a text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lines {
    starts: Vec<usize>,
    /// UTF-16 units before each [`BLOCK`] of bytes: lines may be as long as the text, and counting
    /// from their start for every place would be quadratic.
    units_before: Vec<usize>,
}

/// Bytes for which units are counted beforehand.
const BLOCK: usize = 4_096;

impl Lines {
    pub(crate) fn new(text: &str) -> Self {
        let bytes = text.as_bytes();
        // The protocol ends lines as the language does.
        let starts = std::iter::once(0).chain(line_starts(bytes)).collect();
        let mut units = 0;
        let mut units_before = vec![0];
        for block in bytes.chunks(BLOCK) {
            units += units_of(block);
            units_before.push(units);
        }
        Self { starts, units_before }
    }

    /// Returns the position of a byte.
    pub(crate) fn position(&self, text: &str, byte: usize, encoding: Encoding) -> Position {
        let byte = byte.min(text.len());
        let line = self.starts.partition_point(|start| *start <= byte) - 1;
        let start = self.starts[line];
        let column = match encoding {
            Encoding::Utf8 => byte - start,
            Encoding::Utf16 => self.units_up_to(text, byte) - self.units_up_to(text, start),
        };
        Position { line: line as u32, character: column as u32 }
    }

    pub(crate) fn range(&self, text: &str, bytes: Range<usize>, encoding: Encoding) -> LspRange {
        LspRange {
            start: self.position(text, bytes.start, encoding),
            end: self.position(text, bytes.end, encoding),
        }
    }

    /// Returns the byte at a position. As in the protocol, a column beyond the end of a line means
    /// its end; a column within a character means its start.
    pub(crate) fn byte(&self, text: &str, position: Position, encoding: Encoding) -> usize {
        let line = position.line as usize;
        let Some(&start) = self.starts.get(line) else { return text.len() };
        let end = self.starts.get(line + 1).copied().unwrap_or(text.len());
        let content = text[start..end].trim_end_matches(['\n', '\r']);
        let wanted = position.character as usize;
        let mut column = 0;
        for (at, character) in content.char_indices() {
            column += match encoding {
                Encoding::Utf8 => character.len_utf8(),
                Encoding::Utf16 => character.len_utf16(),
            };
            if column > wanted {
                return start + at;
            }
        }
        start + content.len()
    }

    fn units_up_to(&self, text: &str, byte: usize) -> usize {
        let block = byte / BLOCK;
        self.units_before[block] + units_of(&text.as_bytes()[block * BLOCK..byte])
    }
}

/// Returns the number of UTF-16 units of the characters that start in these bytes.
fn units_of(bytes: &[u8]) -> usize {
    let units = |byte: &u8| usize::from(byte & 0xC0 != 0x80) + usize::from(*byte >= 0xF0);
    bytes.iter().map(units).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, byte: usize, utf16: (u32, u32), utf8: (u32, u32)) {
        let lines = Lines::new(text);
        for (encoding, (line, character)) in [(Encoding::Utf16, utf16), (Encoding::Utf8, utf8)] {
            let position = Position { line, character };
            assert_eq!(lines.position(text, byte, encoding), position, "{encoding:?}");
            assert_eq!(lines.byte(text, position, encoding), byte, "{encoding:?}");
        }
    }

    #[test]
    fn places_are_counted_in_both_encodings() {
        let text = "aé\u{1F600}b\r\nc\rd\n";
        check(text, 0, (0, 0), (0, 0));
        check(text, 3, (0, 2), (0, 3));
        check(text, 7, (0, 4), (0, 7));
        check(text, 8, (0, 5), (0, 8));
        check(text, 10, (1, 0), (1, 0));
        check(text, 12, (2, 0), (2, 0));
        check(text, 14, (3, 0), (3, 0));
        let long = "\u{1F600}".repeat(BLOCK);
        check(&long, 4 * BLOCK, (0, 2 * BLOCK as u32), (0, 4 * BLOCK as u32));
    }

    #[test]
    fn places_that_are_not_there_mean_the_nearest_before() {
        let text = "a\u{1F600}\r\nb";
        let lines = Lines::new(text);
        let byte =
            |line, character| lines.byte(text, Position { line, character }, Encoding::Utf16);
        assert_eq!(byte(0, 2), 1);
        assert_eq!(byte(0, 99), 5);
        assert_eq!(byte(1, 99), 8);
        assert_eq!(byte(99, 0), 8);
    }
}
