//! Stored witness rows: ordered by transaction, each prefixed with its object, so that the end of a
//! transaction finds all of its rows.

use mingle_model::{Ref, TransactionId, WitnessRow};

use crate::request::Word;

const FORMAT: u8 = 1;

/// Returns the stored form of an id: of fixed length, in the order of ids.
pub fn id(id: TransactionId) -> String {
    format!("{}-{}", origin(id), number(id))
}

/// Returns the origin of an id.
pub fn origin(id: TransactionId) -> String {
    format!("{:032x}", id.origin.0)
}

/// Returns the number of an id at its origin.
pub fn number(id: TransactionId) -> String {
    format!("{:016x}", id.sequence)
}

/// Returns the suffix of the key of an object's rows, or of the whole store's rows.
pub fn suffix(object: Option<(&Ref, Word)>) -> Word {
    let Some((object, key)) = object else { return Word::new() };
    [format!(":{}:", object.kind()).into_bytes(), key].concat()
}

/// Encodes a row: id, length of the suffix, suffix, and the row itself.
pub fn encode(row: &WitnessRow, suffix: &[u8]) -> Word {
    let head = format!("{}:{:010}:", id(row.id), suffix.len());
    let body = postcard::to_stdvec(row).expect("a row has a form for every value in it");
    [head.as_bytes(), suffix, &[FORMAT], &body].concat()
}

/// Decodes a row.
///
/// # Errors
///
/// When it is not in this version's form.
pub fn decode(kept: &[u8]) -> Result<WitnessRow, String> {
    let body = || {
        let size: usize = std::str::from_utf8(kept.get(50..60)?).ok()?.parse().ok()?;
        let (format, body) = kept.get(61 + size..)?.split_first()?;
        if *format != FORMAT {
            return None;
        }
        postcard::from_bytes(body).ok()
    };
    body().ok_or_else(|| "a witness row is corrupt, or of a newer version".into())
}
