//! Witness rows as they are kept: in the order of their transactions, each with its object in
//! front, so that the end of a transaction finds all that it left.

use mingle_model::{Ref, TransactionId, WitnessRow};

use crate::request::Word;

const FORMAT: u8 = 1;

/// How an id is kept: of fixed length, in the order of ids.
pub fn id(id: TransactionId) -> String {
    format!("{}-{}", origin(id), number(id))
}

/// The origin of an id.
pub fn origin(id: TransactionId) -> String {
    format!("{:032x}", id.origin.0)
}

/// The number of an id at its origin.
pub fn number(id: TransactionId) -> String {
    format!("{:016x}", id.sequence)
}

/// What the key of the rows of an object, or of the whole store, ends with.
pub fn suffix(object: Option<(&Ref, Word)>) -> Word {
    let Some((object, key)) = object else { return Word::new() };
    [format!(":{}:", object.kind()).into_bytes(), key].concat()
}

/// A row as it is kept: id, length of the suffix, suffix, and the row itself.
pub fn encode(row: &WitnessRow, suffix: &[u8]) -> Word {
    let head = format!("{}:{:010}:", id(row.id), suffix.len());
    let body = postcard::to_stdvec(row).expect("a row has a form for every value in it");
    [head.as_bytes(), suffix, &[FORMAT], &body].concat()
}

/// The row that is kept so.
///
/// # Errors
///
/// When it is none of this version.
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
