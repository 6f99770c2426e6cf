//! The frames of a backup, made in the data center.

use mingle_geo::Vector;
use mingle_geo::record::{Install, Record};
use mingle_geo::wire::put_record;

use super::frame::{CONTENT_BYTES_MAX, FrameKind, Header, MAGIC, Totals, VERSION, frame};
use crate::process::{CopyFault, ItemCopy, ItemState};

/// The maximum number of floors of one record.
const FLOORS_MAX: usize = 1_000;

/// The number of bytes of the stream from which a frame is full.
const FULL: usize = CONTENT_BYTES_MAX;

/// A backup that is being made.
#[derive(Debug)]
pub struct Backup {
    header: Header,
    copy: ItemCopy,
    /// The bytes of the stream that are in no frame yet.
    pending: Vec<u8>,
    totals: Totals,
    /// The number of the next frame.
    number: u64,
    has_floors: bool,
    is_copied: bool,
    is_over: bool,
}

/// Returns the record of some items at a vector, as a checkpoint has all of them.
pub(super) fn items_record(at: Vector, states: Vec<ItemState>) -> Record {
    let (suffix, forward) = (Vec::new(), Vec::new());
    Record::Install(Install { at, states, suffix, known_vec: at, cut: at, forward })
}

impl Backup {
    /// Begins a backup of a copy.
    pub fn new(copy: ItemCopy, cluster: u128, wall_us: u64) -> Self {
        let (dc, incarnation, dc_count) = copy.place();
        let (copying, partition_count) = (copy.copying(), copy.partition_count());
        let (at, epoch, salt) = (copying.at, copying.epoch, crate::random());
        let header = Header {
            cluster,
            dc,
            incarnation,
            dc_count,
            partition_count,
            epoch,
            wall_us,
            at,
            salt,
        };
        Self {
            header,
            copy,
            pending: Vec::new(),
            totals: Totals::default(),
            number: 0,
            has_floors: false,
            is_copied: false,
            is_over: false,
        }
    }

    /// Returns the header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the next bytes of the file: at first the preamble and the header, then one frame each; `None` at the end.
    ///
    /// # Errors
    ///
    /// If the copy cannot go on.
    pub fn next_bytes(&mut self) -> Result<Option<Vec<u8>>, CopyFault> {
        if self.number == 0 {
            let mut bytes = MAGIC.to_vec();
            bytes.extend(VERSION.to_le_bytes());
            // The salt is not known before the header.
            bytes.extend(frame(0, FrameKind::Header, 0, &self.header.content()));
            self.number = 1;
            return Ok(Some(bytes));
        }
        if self.is_over {
            return Ok(None);
        }
        while self.pending.len() < FULL && !self.is_copied {
            self.go_on()?;
        }
        let (kind, content) = if self.pending.is_empty() {
            self.is_over = true;
            (FrameKind::End, self.totals.content())
        } else {
            let rest = self.pending.split_off(self.pending.len().min(CONTENT_BYTES_MAX));
            (FrameKind::Piece, std::mem::replace(&mut self.pending, rest))
        };
        let bytes = frame(self.header.salt, kind, self.number, &content);
        self.number += 1;
        Ok(Some(bytes))
    }

    /// Adds further records to the stream.
    fn go_on(&mut self) -> Result<(), CopyFault> {
        if !self.has_floors {
            self.has_floors = true;
            let floors = self.copy.copying().floors.clone();
            for floors in floors.chunks(FLOORS_MAX) {
                self.totals.floors += floors.len() as u64;
                self.push(&Record::OpFloors(floors.to_vec()));
            }
            return Ok(());
        }
        match self.copy.part()? {
            None => self.is_copied = true,
            Some(states) if states.is_empty() => {}
            Some(states) => {
                self.totals.items += states.len() as u64;
                self.push(&items_record(self.header.at, states));
            }
        }
        Ok(())
    }

    fn push(&mut self, record: &Record) {
        let mut bytes = Vec::new();
        put_record(&mut bytes, record);
        self.totals.records += 1;
        self.totals.bytes += 4 + bytes.len() as u64;
        self.pending.extend((bytes.len() as u32).to_le_bytes());
        self.pending.extend(bytes);
    }
}
