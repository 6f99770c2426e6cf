//! Reading of a backup.

use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read};
use std::path::Path;

use mingle_geo::floors::Raised;
use mingle_geo::record::{Install, Record};
use mingle_geo::wire::{WireError, take_record};
use mingle_geo::{DcId, Vector};

use crate::process::ItemState;

use super::frame::{
    FrameHead, FrameKind, HEAD_BYTES, Header, MAGIC, PREAMBLE_BYTES, Totals, VERSION,
};

/// The maximum number of bytes of a record.
const RECORD_BYTES_MAX: usize = 1 << 30;

/// The reason why a file is no complete backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Damage {
    /// It does not begin like a backup.
    Foreign,
    /// It has another version.
    Version(u32),
    /// It ends before its last frame.
    CutOff,
    /// A frame is damaged, or is not one of this backup.
    Frame(u64),
    /// The header is not one that a data center writes.
    Header,
    /// A record cannot be read.
    Record {
        /// Its number, from 0.
        number: u64,
        /// The reason.
        why: WireError,
    },
    /// A record is not one of a backup.
    Content {
        /// Its number, from 0.
        number: u64,
        /// The reason.
        why: &'static str,
    },
    /// The last frame counts other contents.
    Totals {
        /// The contents.
        found: Totals,
        /// Those of the last frame.
        expected: Totals,
    },
    /// Bytes follow the last frame.
    More,
    /// The file cannot be read.
    Fault(ErrorKind, String),
}

/// The damage of a file, and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileError {
    /// The name of the file.
    pub file: String,
    /// The number of bytes before the damage.
    pub at: u64,
    /// The damage.
    pub damage: Damage,
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, at, damage } = self;
        write!(f, "{file}: ")?;
        match damage {
            Damage::Foreign => f.write_str("it is no backup of mingled"),
            Damage::Version(found) => write!(
                f,
                "it has version {found} of backups, and this build reads version {VERSION}"
            ),
            Damage::CutOff => {
                write!(f, "it is cut off: it ends at byte {at}, before the end of the backup")
            }
            Damage::Frame(number) => {
                write!(f, "it is damaged: frame {number} at byte {at} cannot be read")
            }
            Damage::Header => write!(f, "its header at byte {at} has values that cannot be"),
            Damage::Record { number, why } => {
                write!(f, "record {number} before byte {at} cannot be read: {why}")
            }
            Damage::Content { number, why } => {
                write!(f, "record {number} before byte {at} is not one of a backup: {why}")
            }
            Damage::Totals { found, expected } => write!(
                f,
                "its end at byte {at} counts {} records with {} items in {} bytes, and {} with {} in {} were read",
                expected.records,
                expected.items,
                expected.bytes,
                found.records,
                found.items,
                found.bytes
            ),
            Damage::More => write!(f, "bytes follow its end at byte {at}"),
            Damage::Fault(_, why) => write!(f, "it cannot be read at byte {at}: {why}"),
        }
    }
}

impl std::error::Error for FileError {}

/// Some contents of a backup.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// Items at the vector of the header.
    Items(Vec<ItemState>),
    /// Floors of operation ids.
    Floors(Vec<(DcId, Raised)>),
}

/// A reader of a backup. Contents are to be used only once the end was read.
#[derive(Debug)]
pub struct Reader<R> {
    input: R,
    file: String,
    at: u64,
    header: Header,
    /// The number of the next frame.
    number: u64,
    /// The bytes of the stream that are not used yet.
    stream: Vec<u8>,
    read: Totals,
    is_over: bool,
}

impl Reader<BufReader<File>> {
    /// Opens a file.
    ///
    /// # Errors
    ///
    /// If it cannot be read, or does not begin like a backup.
    pub fn open(path: &Path) -> Result<Self, FileError> {
        let file = path.display().to_string();
        match File::open(path) {
            Ok(input) => Self::new(BufReader::new(input), file),
            Err(error) => Err(FileError { file, at: 0, damage: fault(&error) }),
        }
    }
}

fn fault(error: &io::Error) -> Damage {
    if error.kind() == ErrorKind::UnexpectedEof {
        return Damage::CutOff;
    }
    Damage::Fault(error.kind(), error.to_string())
}

impl<R: Read> Reader<R> {
    /// Reads the header of a backup; `file` is its name for errors.
    ///
    /// # Errors
    ///
    /// If it does not begin like a backup.
    pub fn new(mut input: R, file: String) -> Result<Self, FileError> {
        let mut preamble = [0; PREAMBLE_BYTES];
        let begun = input.read_exact(&mut preamble);
        let (magic, version) = preamble.split_at(MAGIC.len());
        let version = version.try_into().map_or(0, u32::from_le_bytes);
        let damage = match begun {
            Err(error) if error.kind() != ErrorKind::UnexpectedEof => Some(fault(&error)),
            _ if magic != MAGIC => Some(Damage::Foreign),
            Err(error) => Some(fault(&error)),
            Ok(()) => (version != VERSION).then_some(Damage::Version(version)),
        };
        if let Some(damage) = damage {
            return Err(FileError { file, at: 0, damage });
        }
        let unknown = Header {
            cluster: 0,
            dc: DcId(0),
            incarnation: 0,
            dc_count: 1,
            partition_count: 1,
            epoch: 0,
            wall_us: 0,
            at: Vector::ZERO,
            salt: 0,
        };
        let mut reader = Self {
            input,
            file,
            at: PREAMBLE_BYTES as u64,
            header: unknown,
            number: 0,
            stream: Vec::new(),
            read: Totals::default(),
            is_over: false,
        };
        let (kind, content) = reader.frame()?;
        if kind != FrameKind::Header {
            return Err(reader.damaged(Damage::Frame(0)));
        }
        reader.header = Header::take(&content).map_err(|damage| reader.damaged(damage))?;
        Ok(reader)
    }

    /// Returns the header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the contents that were read so far.
    pub fn totals(&self) -> Totals {
        self.read
    }

    /// Returns the number of bytes that were read so far.
    pub fn bytes(&self) -> u64 {
        self.at
    }

    fn damaged(&self, damage: Damage) -> FileError {
        FileError { file: self.file.clone(), at: self.at, damage }
    }

    /// Reads a frame.
    fn frame(&mut self) -> Result<(FrameKind, Vec<u8>), FileError> {
        let mut bytes = [0; HEAD_BYTES];
        self.input.read_exact(&mut bytes).map_err(|error| self.damaged(fault(&error)))?;
        let head = FrameHead::take(&bytes).filter(|head| head.number == self.number);
        let Some(head) = head else { return Err(self.damaged(Damage::Frame(self.number))) };
        let mut content = vec![0; head.length];
        self.input.read_exact(&mut content).map_err(|error| self.damaged(fault(&error)))?;
        if !head.fits(self.header.salt, &bytes, &content) {
            return Err(self.damaged(Damage::Frame(self.number)));
        }
        self.at += (HEAD_BYTES + content.len()) as u64;
        self.number += 1;
        Ok((head.kind, content))
    }

    /// Returns the next contents; `None` once the end was read, and all before it is complete.
    ///
    /// # Errors
    ///
    /// The damage.
    pub fn next_content(&mut self) -> Result<Option<Content>, FileError> {
        loop {
            if self.is_over {
                return Ok(None);
            }
            if let Some(record) = self.record()? {
                return self.content(record).map(Some);
            }
            let number = self.number;
            match self.frame()? {
                (FrameKind::Piece, content) => self.stream.extend(content),
                (FrameKind::End, content) => self.end(&content)?,
                (FrameKind::Header, _) => return Err(self.damaged(Damage::Frame(number))),
            }
        }
    }

    /// Takes the next record of the stream, if all of it is here.
    fn record(&mut self) -> Result<Option<Record>, FileError> {
        let Some((length, rest)) = self.stream.split_first_chunk() else { return Ok(None) };
        let (length, number) = (u32::from_le_bytes(*length) as usize, self.read.records);
        if length > RECORD_BYTES_MAX {
            let why = "it is too long";
            return Err(self.damaged(Damage::Content { number, why }));
        }
        let Some(bytes) = rest.get(..length) else { return Ok(None) };
        let record = take_record(bytes);
        let record = record.map_err(|why| self.damaged(Damage::Record { number, why }))?;
        self.stream.drain(..4 + length);
        self.read.records += 1;
        self.read.bytes += 4 + length as u64;
        Ok(Some(record))
    }

    fn content(&mut self, record: Record) -> Result<Content, FileError> {
        let number = self.read.records - 1;
        let refused = |why| Err(self.damaged(Damage::Content { number, why }));
        match record {
            Record::OpFloors(floors) => {
                self.read.floors += floors.len() as u64;
                Ok(Content::Floors(floors))
            }
            Record::Install(Install { at, states, suffix, forward, .. }) => {
                if at != self.header.at {
                    return refused("its items have another vector than the header");
                }
                if !suffix.is_empty() || !forward.is_empty() {
                    return refused("it has single transactions");
                }
                if states.iter().any(|(key, state)| state.kind() != key.kind) {
                    return refused("an item has another type than its key");
                }
                self.read.items += states.len() as u64;
                Ok(Content::Items(states))
            }
            _ => refused("it is of another kind"),
        }
    }

    /// Compares the totals with the contents; nothing may follow.
    fn end(&mut self, content: &[u8]) -> Result<(), FileError> {
        let number = self.number - 1;
        let expected = Totals::take(content).ok_or_else(|| self.damaged(Damage::Frame(number)))?;
        let found = self.read;
        if found != expected || !self.stream.is_empty() {
            return Err(self.damaged(Damage::Totals { found, expected }));
        }
        let mut more = [0];
        match self.input.read_exact(&mut more) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => {}
            Err(error) => return Err(self.damaged(fault(&error))),
            Ok(()) => return Err(self.damaged(Damage::More)),
        }
        self.is_over = true;
        Ok(())
    }
}
