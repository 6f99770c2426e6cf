//! Writing a folder.

use std::fmt;
use std::io;

use mingle_model::random::mix;

use super::name::Name;
use super::recover::{RecoverError, Recovered, recover};
use super::{Fault, Folder};
use crate::segment::{
    ENTRY_BYTES_MAX, FRAME_BYTES, HEADER_BYTES, Header, Identity, Kind, put_frame,
};

/// The usual length of a log, header included.
pub const SEGMENT_BYTES: u64 = 16 << 20;

/// The bytes that are written at once.
const BLOCK_BYTES: usize = 1 << 20;

/// The reason why a journal cannot be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpenError {
    /// The files cannot be read, or are damaged.
    Recover(RecoverError),
    /// A file cannot be written.
    Fault(Fault),
    /// The folder has no journal, and the process does not found one.
    NotFounded,
    /// The folder has a journal, and the process is to found one.
    Founded {
        /// The number of starts that the journal has seen.
        boot: u32,
    },
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Recover(why) => why.fmt(f),
            Self::Fault(why) => why.fmt(f),
            Self::NotFounded => f.write_str(
                "the folder has no journal. If its disk was lost, give up this data center and admit \
                 it again; if this is its first start, found it",
            ),
            Self::Founded { boot } => write!(
                f,
                "the folder has the journal of a process that was started {boot} times, and a \
                 process is founded in a folder without one"
            ),
        }
    }
}

impl std::error::Error for OpenError {}

impl From<Fault> for OpenError {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// The writer of a journal. Its operations block until the disk has done them.
#[derive(Debug)]
pub struct Log<F: Folder> {
    folder: F,
    identity: Identity,
    boot: u32,
    segment_bytes: u64,
    seed: u64,
    current: Segment<F::File>,
    /// The position of the next frame.
    position: u64,
    /// Everything before this position is safe.
    safe: u64,
    fault: Option<Fault>,
}

/// An opened journal.
#[derive(Debug)]
pub struct Opened<F: Folder> {
    /// The writer.
    pub log: Log<F>,
    /// The entries that it holds, all of them safe.
    pub entries: Vec<Vec<u8>>,
    /// The number of this start.
    pub boot: u32,
    /// True if a torn tail was dropped.
    pub was_torn: bool,
}

/// The log that is being written.
#[derive(Debug)]
struct Segment<T> {
    file: T,
    name: Name,
    salt: u64,
    /// The place of the next frame in the file.
    place: u64,
    /// The length that is written ahead.
    length: u64,
}

/// A checkpoint to be written.
#[derive(Debug)]
pub struct Checkpoint<F: Folder> {
    folder: F,
    header: Header,
}

impl<F: Folder> Log<F> {
    /// Opens the journal in a folder, or founds one. The seed is a random number, new at each call.
    ///
    /// # Errors
    ///
    /// If the journal is damaged or belongs to another process, if a file cannot be written, or if
    /// `is_founding` does not fit the folder.
    pub fn open(
        folder: F,
        identity: Identity,
        is_founding: bool,
        segment_bytes: u64,
        seed: u64,
    ) -> Result<Opened<F>, OpenError> {
        let names = folder.names().map_err(|error| Fault::new("list", "", &error))?;
        let Recovered { entries, boot, end, number, stale, is_torn } =
            recover(identity, names, |name| folder.read(name)).map_err(OpenError::Recover)?;
        match (boot, is_founding) {
            (0, false) => return Err(OpenError::NotFounded),
            (1.., true) => return Err(OpenError::Founded { boot }),
            _ => {}
        }
        let (number, boot) = (number + 1, boot + 1);
        let header = Header {
            kind: Kind::Start,
            identity,
            boot,
            number,
            position: end,
            length: 0,
            salt: mix(seed ^ mix(number)),
        };
        let current = create(&folder, &header, segment_bytes)?;
        // Both names may not become safe in the opposite order.
        sync_names(&folder)?;
        let salt = mix(!header.salt);
        let checkpoint = Header { kind: Kind::Checkpoint, salt, ..header };
        Checkpoint { folder: folder.clone(), header: checkpoint }.write(&entries)?;
        for name in &stale {
            remove(&folder, name)?;
        }
        let (position, safe) = (end, end);
        let log = Self {
            folder,
            identity,
            boot,
            segment_bytes,
            seed,
            current,
            position,
            safe,
            fault: None,
        };
        Ok(Opened { log, entries, boot, was_torn: is_torn })
    }

    /// Appends entries. They are safe when this returns without an error.
    ///
    /// # Errors
    ///
    /// The first error of the operating system, then and at all later calls: the contents of the files
    /// are not known any more, so the process must stop.
    pub fn append(&mut self, entries: &[Vec<u8>]) -> Result<(), Fault> {
        self.attempt(|log| log.try_append(entries))
    }

    /// Begins a log whose number a checkpoint may have. The checkpoint's entries are to replace all
    /// entries up to here.
    ///
    /// # Errors
    ///
    /// As for [`append`](Self::append).
    pub fn checkpoint(&mut self) -> Result<Checkpoint<F>, Fault> {
        self.attempt(Self::rotate)?;
        let number = self.current.name.number();
        let header = Header {
            kind: Kind::Checkpoint,
            position: self.position,
            salt: mix(!self.current.salt),
            ..self.header(number)
        };
        Ok(Checkpoint { folder: self.folder.clone(), header })
    }

    /// Returns the first error, if there was one.
    pub fn fault(&self) -> Option<&Fault> {
        self.fault.as_ref()
    }

    fn attempt<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T, Fault>) -> Result<T, Fault> {
        if let Some(fault) = &self.fault {
            return Err(fault.clone());
        }
        let done = work(self);
        self.fault = done.as_ref().err().cloned();
        done
    }

    fn header(&self, number: u64) -> Header {
        Header {
            kind: Kind::Log,
            identity: self.identity,
            boot: self.boot,
            number,
            position: self.position,
            length: 0,
            salt: mix(self.seed ^ mix(number)),
        }
    }

    fn try_append(&mut self, entries: &[Vec<u8>]) -> Result<(), Fault> {
        let mut block = Vec::new();
        for entry in entries {
            self.check(entry)?;
            let length = (FRAME_BYTES + entry.len()) as u64;
            let place = self.current.place + block.len() as u64;
            if place + length > self.current.length && place > HEADER_BYTES as u64 {
                self.flush(&mut block)?;
                self.rotate()?;
            }
            let (salt, safe) = (self.current.salt, self.safe);
            put_frame(&mut block, salt, self.position, safe, entry);
            self.position += length;
            if block.len() >= BLOCK_BYTES {
                self.flush(&mut block)?;
            }
        }
        self.flush(&mut block)?;
        self.sync()
    }

    /// Refuses an entry that could not be read back.
    fn check(&self, entry: &[u8]) -> Result<(), Fault> {
        if (1..=ENTRY_BYTES_MAX).contains(&entry.len()) {
            return Ok(());
        }
        let length = entry.len();
        let why = format!("an entry has {length} bytes, expected 1 to {ENTRY_BYTES_MAX}");
        let error = io::Error::new(io::ErrorKind::InvalidInput, why);
        Err(Fault::new("write", &self.current.name.to_string(), &error))
    }

    fn flush(&mut self, block: &mut Vec<u8>) -> Result<(), Fault> {
        let Segment { file, name, place, .. } = &mut self.current;
        let written = self.folder.write(file, *place, block);
        written.map_err(|error| Fault::new("write", &name.to_string(), &error))?;
        *place += block.len() as u64;
        block.clear();
        Ok(())
    }

    fn sync(&mut self) -> Result<(), Fault> {
        let Segment { file, name, .. } = &self.current;
        let synced = self.folder.sync(file);
        synced.map_err(|error| Fault::new("sync", &name.to_string(), &error))?;
        self.safe = self.position;
        Ok(())
    }

    /// Makes the current log safe, and begins the next one.
    fn rotate(&mut self) -> Result<(), Fault> {
        self.sync()?;
        let header = self.header(self.current.name.number() + 1);
        self.current = create(&self.folder, &header, self.segment_bytes)?;
        sync_names(&self.folder)
    }
}

impl<F: Folder> Checkpoint<F> {
    /// Writes these entries, and removes the files that they replace. A crash leaves the old files or
    /// the new one.
    ///
    /// # Errors
    ///
    /// The error of the operating system: the process must stop.
    pub fn write(mut self, entries: &[Vec<u8>]) -> Result<(), Fault> {
        let name = Name::Checkpoint(self.header.number);
        let lengths = entries.iter().map(|entry| (FRAME_BYTES + entry.len()) as u64);
        self.header.length = lengths.sum();
        let (incomplete, folder) = (name.incomplete(), &self.folder);
        let fault = |action| move |error: io::Error| Fault::new(action, &name.to_string(), &error);
        let file = folder.create(&incomplete).map_err(fault("create"))?;
        let (mut block, mut place, mut position) = (Vec::new(), 0, 0);
        self.header.put(&mut block);
        for entry in entries {
            put_frame(&mut block, self.header.salt, position, 0, entry);
            position += (FRAME_BYTES + entry.len()) as u64;
            if block.len() >= BLOCK_BYTES {
                folder.write(&file, place, &block).map_err(fault("write"))?;
                place += block.len() as u64;
                block.clear();
            }
        }
        folder.write(&file, place, &block).map_err(fault("write"))?;
        folder.sync(&file).map_err(fault("sync"))?;
        folder.rename(&incomplete, &name.to_string()).map_err(fault("rename"))?;
        sync_names(folder)?;
        self.remove_earlier()
    }

    fn remove_earlier(&self) -> Result<(), Fault> {
        let names = self.folder.names().map_err(|error| Fault::new("list", "", &error))?;
        let number = self.header.number;
        for name in names {
            if Name::parse(&name).is_some_and(|name| name.number() < number) {
                remove(&self.folder, &name)?;
            }
        }
        Ok(())
    }
}

/// Creates a log with zeros in place of frames.
fn create<F: Folder>(folder: &F, header: &Header, length: u64) -> Result<Segment<F::File>, Fault> {
    let name = Name::Log(header.number);
    let incomplete = name.incomplete();
    let fault = |action| move |error: io::Error| Fault::new(action, &name.to_string(), &error);
    let file = folder.create(&incomplete).map_err(fault("create"))?;
    let mut block = Vec::new();
    header.put(&mut block);
    let mut place = 0;
    while place < length {
        let more = (length - place).min(BLOCK_BYTES as u64) as usize;
        block.resize(more.max(block.len()), 0);
        folder.write(&file, place, &block).map_err(fault("write"))?;
        place += block.len() as u64;
        block.clear();
    }
    folder.sync(&file).map_err(fault("sync"))?;
    folder.rename(&incomplete, &name.to_string()).map_err(fault("rename"))?;
    let place = HEADER_BYTES as u64;
    Ok(Segment { file, name, salt: header.salt, place, length })
}

fn remove<F: Folder>(folder: &F, name: &str) -> Result<(), Fault> {
    match folder.remove(name) {
        // An earlier checkpoint removed it.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done.map_err(|error| Fault::new("remove", name, &error)),
    }
}

fn sync_names<F: Folder>(folder: &F) -> Result<(), Fault> {
    folder.sync_names().map_err(|error| Fault::new("sync", "", &error))
}
