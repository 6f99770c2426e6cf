//! HELLO, which begins a connection and negotiates the version.

use serde::{Deserialize, Serialize};

use crate::codec::{Reader, VERSION, Versions, WireError, put_number, put_value};
use crate::timestamp::DcId;

/// The first bytes of a HELLO.
const MAGIC: [u8; 4] = *b"MGEO";

/// The first message of each end of a connection. It has the same form in every version, and the
/// fields of later versions follow it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The versions that the sender reads.
    pub versions: Versions,
    /// The cluster of the sender.
    pub cluster: u128,
    /// The data center of the sender.
    pub dc: DcId,
    /// The number of the sending process in its data center; 0 while there is one per data center.
    pub node: u32,
    /// The incarnation of the data center.
    pub incarnation: u32,
    /// The number of starts of the sending process.
    pub boot: u32,
    /// A random number of this start, by which two copies of one process are told apart.
    pub process: u64,
    /// The sender's wall clock, in microseconds since 1970.
    pub wall_us: u64,
    /// A digest of the settings that all data centers share; 0 if the sender compares none. Builds from before
    /// this field do not send it.
    #[serde(skip)]
    pub settings: u64,
}

impl Hello {
    /// Appends the HELLO to a frame.
    pub fn put(&self, out: &mut Vec<u8>) {
        out.extend(MAGIC);
        let mut body = Vec::new();
        put_value(&mut body, self);
        if self.settings != 0 {
            put_value(&mut body, &self.settings);
        }
        put_number(out, body.len() as u64);
        out.append(&mut body);
    }

    /// Reads a HELLO, which is the whole frame. Fields that a later version added are skipped.
    ///
    /// # Errors
    ///
    /// If the bytes are no HELLO.
    pub fn take(frame: &[u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(frame, VERSION);
        if reader.bytes()? != MAGIC {
            return Err(WireError::Malformed("a connection begins with HELLO"));
        }
        let length = reader.length()?;
        if length != reader.left() {
            return Err(WireError::Malformed("HELLO has another length than it says"));
        }
        let hello: Self = reader.value()?;
        let settings = if reader.left() == 0 { 0 } else { reader.value()? };
        Ok(Self { settings, ..hello })
    }
}
