//! Log records as bytes. Each names its version, since a log outlives the build that wrote it.

use crate::codec::{Reader, VERSION, VERSIONS, WireError, put_number, put_value};
use crate::record::Record;

/// The first byte of a record. No form without a version began with it.
const MARK: u8 = 0xd6;

/// Appends a record.
///
/// # Examples
///
/// ```
/// use mingle_geo::wire::{put_record, take_record};
/// use mingle_geo::{Record, Timestamp};
///
/// let record = Record::ClockCeiling(Timestamp(7));
/// let mut bytes = Vec::new();
/// put_record(&mut bytes, &record);
/// assert_eq!(take_record(&bytes), Ok(record));
/// bytes[1] = 9;
/// let refused = take_record(&bytes).unwrap_err().to_string();
/// assert!(refused.contains("version 9") && refused.contains("versions 1 to 1"), "{refused}");
/// ```
pub fn put_record(out: &mut Vec<u8>, record: &Record) {
    out.push(MARK);
    put_number(out, VERSION.into());
    put_value(out, record);
}

/// Reads a record, which is all of the bytes.
///
/// # Errors
///
/// If this build cannot read it.
pub fn take_record(bytes: &[u8]) -> Result<Record, WireError> {
    let mut reader = Reader::new(bytes, VERSION);
    if reader.byte()? != MARK {
        return Err(WireError::Malformed("a record begins with its mark and its version"));
    }
    let version = u16::try_from(reader.number()?);
    let found = version.map_err(|_| WireError::Malformed("a version is too large"))?;
    if !VERSIONS.has(found) {
        return Err(WireError::Version { of: "a record", found });
    }
    let mut reader = Reader::new(reader.rest(), found);
    let record = reader.value()?;
    reader.end()?;
    Ok(record)
}
