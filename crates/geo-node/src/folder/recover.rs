//! Reading a folder after a stop or a crash.

use std::collections::BTreeSet;
use std::fmt;
use std::io;

use super::Fault;
use super::name::Name;
use crate::segment::{Corrupt, HEADER_BYTES, Header, HeaderError, Identity, Kind, scan};

/// The contents of a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// All entries that can be read, in order.
    pub entries: Vec<Vec<u8>>,
    /// The highest number of starts in the folder; 0 if there is no journal.
    pub boot: u32,
    /// The position behind the last entry.
    pub end: u64,
    /// True if a torn tail was dropped, or an unfinished start.
    pub is_torn: bool,
    /// The highest number of any file.
    pub number: u64,
    /// The files without meaning.
    pub stale: Vec<String>,
}

impl Recovered {
    /// True if the folder has a journal.
    pub fn is_founded(&self) -> bool {
        self.boot > 0
    }
}

/// The reason why a folder has no journal from which a node may start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Damage {
    /// The file is no segment of this build.
    Header(HeaderError),
    /// The file belongs to another process.
    Identity {
        /// The process in the file.
        found: Identity,
        /// The process that reads it.
        expected: Identity,
    },
    /// The file is a copy of another one, or has another kind or number than its name says.
    Misnamed {
        /// The name that fits the header.
        is: String,
    },
    /// The file is missing.
    Missing,
    /// The bytes at position `at` are damaged, and were safe up to `safe`.
    Lost {
        /// The position of the damage.
        at: u64,
        /// The journal was safe up to here.
        safe: u64,
    },
    /// The file begins at another position than the one before it ends, or is of another start.
    Misplaced {
        /// The position and the boot of the file.
        found: (u64, u32),
        /// Those that follow from the files before it.
        expected: (u64, u32),
    },
}

/// A damaged file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damaged {
    /// The name of the file.
    pub file: String,
    /// The damage.
    pub damage: Damage,
}

impl fmt::Display for Damaged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, damage } = self;
        match damage {
            Damage::Header(why) => write!(f, "{file} of the journal cannot be used: {why}")?,
            Damage::Identity { found, expected } => {
                write!(f, "{file} of the journal belongs to {found}, expected {expected}")?;
            }
            Damage::Misnamed { is } => write!(
                f,
                "{file} of the journal has the content of {is}: two files have one position, or the \
                 file was renamed"
            )?,
            Damage::Missing => write!(f, "{file} of the journal is missing")?,
            Damage::Lost { at, safe } => write!(
                f,
                "{file} of the journal is corrupt: the bytes at position {at} are damaged, and were \
                 safe, as was everything up to position {safe}"
            )?,
            Damage::Misplaced { found, expected } => write!(
                f,
                "{file} of the journal begins at position {} in start {}, expected position {} in \
                 start {}",
                found.0, found.1, expected.0, expected.1
            )?,
        }
        match damage {
            Damage::Missing | Damage::Lost { .. } | Damage::Misplaced { .. } => {
                f.write_str(". Restore the file, or give up this data center and admit it again")
            }
            _ => Ok(()),
        }
    }
}

impl std::error::Error for Damaged {}

/// The reason why a folder cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecoverError {
    /// A file is damaged.
    Damaged(Damaged),
    /// The operating system reports an error.
    Fault(Fault),
}

impl fmt::Display for RecoverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Damaged(damaged) => damaged.fmt(f),
            Self::Fault(fault) => fault.fmt(f),
        }
    }
}

impl std::error::Error for RecoverError {}

/// The reader of a folder.
struct Reader<R> {
    identity: Identity,
    read: R,
    recovered: Recovered,
    /// The name of the last log read.
    last: Option<Name>,
}

/// Reads the journal in the files with these names. Files with other names are ignored.
///
/// # Errors
///
/// If bytes are lost on which promises may rest, or if a file cannot be read or belongs to another
/// process. The error names the file.
pub fn recover(
    identity: Identity,
    names: impl IntoIterator<Item = String>,
    read: impl FnMut(&str) -> io::Result<Vec<u8>>,
) -> Result<Recovered, RecoverError> {
    let (mut logs, mut checkpoints) = (BTreeSet::new(), BTreeSet::new());
    let mut reader = Reader { identity, read, recovered: Recovered::default(), last: None };
    for name in names {
        match Name::parse(&name) {
            Some(Name::Log(number)) => _ = logs.insert(number),
            Some(Name::Checkpoint(number)) => _ = checkpoints.insert(number),
            None if Name::is_incomplete(&name) => reader.recovered.stale.push(name),
            None => {}
        }
    }
    reader.recovered.number = logs.last().max(checkpoints.last()).copied().unwrap_or_default();
    let newest = checkpoints.pop_last();
    reader.drop_earlier(checkpoints.into_iter().map(Name::Checkpoint));
    let Some(first) = newest else {
        for number in logs {
            reader.unfinished(Name::Log(number))?;
        }
        // A start that ended before its first checkpoint founded nothing.
        reader.recovered.boot = 0;
        return Ok(reader.recovered);
    };
    reader.checkpoint(Name::Checkpoint(first))?;
    let kept = logs.split_off(&first);
    reader.drop_earlier(logs.into_iter().map(Name::Log));
    reader.logs(first, kept)?;
    Ok(reader.recovered)
}

impl<R: FnMut(&str) -> io::Result<Vec<u8>>> Reader<R> {
    fn drop_earlier(&mut self, names: impl Iterator<Item = Name>) {
        self.recovered.stale.extend(names.map(|name| name.to_string()));
    }

    fn read(&mut self, name: Name) -> Result<(Vec<u8>, Header), RecoverError> {
        let file = name.to_string();
        let fault = |error: io::Error| RecoverError::Fault(Fault::new("read", &file, &error));
        let bytes = (self.read)(&file).map_err(fault)?;
        let header = Header::take(&bytes).map_err(|error| damaged(name, Damage::Header(error)))?;
        let is = match header.kind {
            Kind::Log | Kind::Start => Name::Log(header.number),
            Kind::Checkpoint => Name::Checkpoint(header.number),
        };
        let (found, expected) = (header.identity, self.identity);
        if found != expected {
            return Err(damaged(name, Damage::Identity { found, expected }));
        }
        if is != name {
            return Err(damaged(name, Damage::Misnamed { is: is.to_string() }));
        }
        Ok((bytes, header))
    }

    fn checkpoint(&mut self, name: Name) -> Result<(), RecoverError> {
        let (bytes, header) = self.read(name)?;
        let lost = |at| damaged(name, Damage::Lost { at, safe: header.length });
        let scanned = match scan(&bytes) {
            Ok(scanned) => scanned,
            Err(Corrupt::Middle { at, .. }) => return Err(lost(at)),
            Err(Corrupt::Header(why)) => return Err(damaged(name, Damage::Header(why))),
        };
        if scanned.end != header.length || scanned.is_torn {
            return Err(lost(scanned.end));
        }
        self.recovered.entries.extend(scanned.entries.into_iter().map(<[u8]>::to_vec));
        (self.recovered.boot, self.recovered.end) = (header.boot, header.position);
        Ok(())
    }

    fn logs(&mut self, first: u64, numbers: BTreeSet<u64>) -> Result<(), RecoverError> {
        let mut next = first;
        for number in numbers {
            let name = Name::Log(number);
            if number != next {
                return Err(damaged(Name::Log(next), Damage::Missing));
            }
            next += 1;
            let (bytes, header) = self.read(name)?;
            if header.kind == Kind::Start && number != first {
                self.unfinished(name)?;
                // Nothing follows it, or the next turn finds another unfinished start.
                continue;
            }
            self.log(name, &bytes, &header)?;
        }
        if next == first {
            return Err(damaged(Name::Log(first), Damage::Missing));
        }
        Ok(())
    }

    /// Reads a log that follows those read before.
    fn log(&mut self, name: Name, bytes: &[u8], header: &Header) -> Result<(), RecoverError> {
        let (found, expected) =
            ((header.position, header.boot), (self.recovered.end, self.recovered.boot));
        if let Some(last) = self.last
            && header.position > self.recovered.end
        {
            // A log begins once the one before it is safe.
            let (at, safe) = (self.recovered.end, header.position);
            return Err(damaged(last, Damage::Lost { at, safe }));
        }
        if found != expected {
            return Err(damaged(name, Damage::Misplaced { found, expected }));
        }
        let scanned = match scan(bytes) {
            Ok(scanned) => scanned,
            Err(Corrupt::Middle { at, safe }) => {
                return Err(damaged(name, Damage::Lost { at, safe }));
            }
            Err(Corrupt::Header(why)) => return Err(damaged(name, Damage::Header(why))),
        };
        let frames = HEADER_BYTES + (scanned.end - header.position) as usize;
        self.recovered.is_torn |= bytes[frames..].iter().any(|byte| *byte != 0);
        self.recovered.end = scanned.end;
        self.recovered.entries.extend(scanned.entries.into_iter().map(<[u8]>::to_vec));
        self.last = Some(name);
        Ok(())
    }

    /// Drops the first log of a start that ended before its checkpoint was complete: the process had
    /// not sent anything yet. If it holds entries, its checkpoint is lost.
    fn unfinished(&mut self, name: Name) -> Result<(), RecoverError> {
        let (bytes, header) = self.read(name)?;
        let is_empty = scan(&bytes).is_ok_and(|scanned| scanned.entries.is_empty());
        if header.kind != Kind::Start || !is_empty {
            return Err(damaged(Name::Checkpoint(name.number()), Damage::Missing));
        }
        self.recovered.stale.push(name.to_string());
        self.recovered.is_torn = true;
        Ok(())
    }
}

fn damaged(name: Name, damage: Damage) -> RecoverError {
    RecoverError::Damaged(Damaged { file: name.to_string(), damage })
}
