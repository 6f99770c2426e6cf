//! The outside of the node: the journal, the clocks, and the messages that wait to be sent.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use mingle_geo::Now;
use mingle_geo_node::{Journal, Outgoing, Time, Transport};

use crate::journal::FileJournal;

/// The outside of the node.
#[derive(Debug)]
pub struct Machine {
    started: Instant,
    pub journal: FileJournal,
    /// Messages of the node that are on no connection yet.
    pub outgoing: Vec<Outgoing>,
}

impl Machine {
    pub fn new(journal: FileJournal) -> Self {
        Self { started: Instant::now(), journal, outgoing: Vec::new() }
    }
}

impl Time for Machine {
    fn now(&self) -> Now {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Now { wall_us: wall.as_micros() as u64, mono_us: self.started.elapsed().as_micros() as u64 }
    }
}

impl Transport for Machine {
    fn send(&mut self, outgoing: Outgoing) {
        self.outgoing.push(outgoing);
    }
}

impl Journal for Machine {
    fn append(&mut self, entry: &[u8]) {
        self.journal.append(entry);
    }

    fn sync(&mut self) {
        self.journal.sync();
    }

    fn length(&self) -> usize {
        self.journal.length()
    }

    fn replace(&mut self, entries: Vec<Vec<u8>>) {
        self.journal.replace(entries);
    }
}
