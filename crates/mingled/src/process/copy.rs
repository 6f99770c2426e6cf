//! All items of a data center at one vector, while its clients go on.

use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::sleep;
use std::time::{Duration, Instant};

use mingle_geo::types::State;
use mingle_geo::{DcId, HeldPart, Key, PartitionId};
use mingle_geo_node::{CopyError, Copying};

use super::Process;
use super::driver::{CopyCall, Event};

/// The time in which the partitions must reach all that was acknowledged before a copy.
const REACH: Duration = Duration::from_secs(5);

/// The delay before partitions are asked again.
const AGAIN: Duration = Duration::from_millis(5);

/// An item with its state.
pub type ItemState = (Key, Arc<State>);

/// The reason why a copy of all items cannot begin or go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CopyFault {
    /// The process has stopped.
    Stopped,
    /// The partitions refuse it.
    Refused(CopyError),
}

impl fmt::Display for CopyFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopped => f.write_str("the process has stopped"),
            Self::Refused(why) => why.fmt(f),
        }
    }
}

impl std::error::Error for CopyFault {}

impl From<CopyError> for CopyFault {
    fn from(why: CopyError) -> Self {
        Self::Refused(why)
    }
}

/// A copy of all items that is under way. It ends when it is dropped.
#[derive(Debug)]
pub struct ItemCopy {
    events: Sender<Event>,
    number: u64,
    copying: Copying,
    /// The data center, its incarnation, and the number of data centers.
    place: (DcId, u32, u8),
    partition_count: u16,
    partition: u16,
    after: Option<Key>,
}

impl Process {
    /// Begins a copy of all items at one vector, which has all that was acknowledged here before. There is one copy at
    /// a time: a second one ends the first.
    ///
    /// # Errors
    ///
    /// If this data center does not serve, or its partitions do not reach the acknowledged writes within five seconds.
    ///
    /// # Examples
    ///
    /// ```
    /// use mingle_geo::{DcId, Key, Kind, Op};
    /// use mingled::process::{Process, Settings};
    ///
    /// let folder = tempfile::tempdir()?;
    /// let settings = Settings::new(folder.path().join("d0"), 7, DcId(0), 1);
    /// let settings = Settings { is_founding: true, ..settings };
    /// let process = Process::start(settings, std::net::TcpListener::bind("127.0.0.1:0")?)?;
    /// let session = process.session();
    /// session.write(Key::new(Kind::Counter, "visits"), Op::Add(2))?;
    /// session.commit()?;
    /// let mut copy = process.copy()?;
    /// let mut items = Vec::new();
    /// while let Some(part) = copy.part()? {
    ///     items.extend(part);
    /// }
    /// assert_eq!(items[0].1.as_counter().map(|counter| counter.value()), Some(2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn copy(&self) -> Result<ItemCopy, CopyFault> {
        let mut wanted = ask(&self.events, CopyCall::Wanted)?;
        let until = Instant::now() + REACH;
        loop {
            let begun = ask(&self.events, |answer| CopyCall::Begin(wanted, answer))?;
            match begun {
                Ok((number, copying)) => {
                    return Ok(ItemCopy {
                        events: self.events.clone(),
                        number,
                        copying,
                        place: self.shared.place(),
                        partition_count: self.shared.partition_count(),
                        partition: 0,
                        after: None,
                    });
                }
                Err(CopyError::Behind { found, .. }) if Instant::now() >= until => {
                    // Without a majority of data centers no strong transaction arrives any more.
                    let strong = found[DcId::STRONG];
                    if strong >= wanted[DcId::STRONG] {
                        let wanted = Box::new(wanted);
                        return Err(CopyError::Behind { wanted, found }.into());
                    }
                    wanted[DcId::STRONG] = strong;
                }
                Err(CopyError::Behind { .. }) => sleep(AGAIN),
                Err(why) => return Err(why.into()),
            }
        }
    }
}

/// Asks the driver.
fn ask<T>(
    events: &Sender<Event>,
    call: impl FnOnce(Sender<T>) -> CopyCall,
) -> Result<T, CopyFault> {
    let (answer, answers) = channel();
    events.send(Event::Copy(call(answer))).map_err(|_| CopyFault::Stopped)?;
    answers.recv().map_err(|_| CopyFault::Stopped)
}

impl ItemCopy {
    /// Returns the vector, its epoch and the floors of operation ids.
    pub fn copying(&self) -> &Copying {
        &self.copying
    }

    /// Returns the data center, its incarnation, and the number of data centers.
    pub fn place(&self) -> (DcId, u32, u8) {
        self.place
    }

    /// Returns the number of partitions.
    pub fn partition_count(&self) -> u16 {
        self.partition_count
    }

    /// Returns the next items; `None` after the last ones. A part may be empty.
    ///
    /// # Errors
    ///
    /// If the last part was asked for too long ago, the data centers have changed, or holding the vector takes too much
    /// memory. The copy must begin again then.
    pub fn part(&mut self) -> Result<Option<Vec<ItemState>>, CopyFault> {
        if self.partition >= self.partition_count {
            return Ok(None);
        }
        let (partition, after) = (PartitionId(self.partition), self.after.take());
        let number = self.number;
        let part = ask(&self.events, |answer| CopyCall::Part(number, partition, after, answer))?;
        let HeldPart { states, next } = part?;
        if next.is_none() {
            self.partition += 1;
        }
        self.after = next;
        Ok(Some(states))
    }
}

impl Drop for ItemCopy {
    fn drop(&mut self) {
        // The process may have stopped.
        let _ = self.events.send(Event::Copy(CopyCall::End(self.number)));
    }
}
