//! Finding out if any process changes the data of this store by commands.
//!
//! A command can change any object, so its witness rows must be where every process looks: among
//! the witness rows of the whole store. Few stores have commands, so reads skip these rows where
//! they can. The first process with a command announces commands in all data centers. Before its
//! first command it waits until no process can still rely on the earlier state. A process that
//! looks and finds no announcement does not look again for half of the time for which the result is
//! valid, and does not read these rows meanwhile: no data that it has read by then is the work of a
//! command.
//!
//! Times are durations by each process's own clock, so clocks need not agree; the bounds hold even
//! if one clock runs at half the speed of another.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::try_join;
use futures_util::lock::Mutex as AsyncMutex;
use mingle_store::StoreError;
use mingle_store::overlay::Overlay;
use scylla::statement::Consistency;

use crate::change::{Change, RecordPlace};
use crate::error::Failed;
use crate::fetch::{Found, Part, Record, record_at};
use crate::layout::ROWS;
use crate::limits::{COMMANDS_AFTER, COMMANDS_RULED_OUT_FOR};
use crate::store::Core;

/// The state of this process's knowledge about commands.
#[derive(Debug)]
pub struct Commands {
    /// There may be commands.
    are_there: AtomicBool,
    /// The last look at each replica.
    looks: Vec<Look>,
    /// Held while this process announces commands.
    telling: AsyncMutex<()>,
    /// Commands were announced in all data centers, long enough ago.
    is_told: AtomicBool,
}

/// A look at one replica.
#[derive(Debug, Default)]
struct Look {
    /// The time at which it began, if it found no announcement.
    began: Mutex<Option<Duration>>,
    /// Held by the task that looks.
    turn: AsyncMutex<()>,
}

impl Look {
    fn began(&self) -> MutexGuard<'_, Option<Duration>> {
        self.began.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True if it began less than `limit` ago.
    fn is_within(&self, now: Duration, limit: Duration) -> bool {
        self.began().is_some_and(|began| now.saturating_sub(began) < limit)
    }
}

impl Commands {
    /// Creates the state before any look.
    pub fn new(replicas: usize) -> Self {
        Self {
            are_there: AtomicBool::new(false),
            looks: (0..replicas).map(|_| Look::default()).collect(),
            telling: AsyncMutex::new(()),
            is_told: AtomicBool::new(false),
        }
    }

    fn may_be_there(&self) -> bool {
        self.are_there.load(Ordering::Acquire)
    }

    /// True if no data read at a replica by now is the work of a command.
    fn are_ruled_out(&self, replica: usize, now: Duration) -> bool {
        !self.may_be_there() && self.looks[replica].is_within(now, COMMANDS_RULED_OUT_FOR)
    }
}

/// The announcement before and after all data centers have it: a process is about to use commands,
/// and every process knows.
const SAID: u8 = 1;
const KNOWN: u8 = 2;

impl Core {
    fn commands_place(&self) -> RecordPlace {
        // No block has this kind.
        let kind = format!("{} commands", self.layout.area);
        RecordPlace { kind, head: vec![0], tail: Vec::new() }
    }

    async fn said(&self, replica: usize) -> Result<Option<Record>, Failed> {
        let consistency = Some(Consistency::LocalQuorum);
        record_at(&self.sites[replica], &self.commands_place(), consistency).await
    }

    /// Returns the rows of `reading` and the witness rows of the whole store, as of then or later.
    pub(crate) async fn with_whole(
        self: &Arc<Self>,
        replica: usize,
        reading: impl Future<Output = Result<Found, Failed>>,
    ) -> Result<Found, Failed> {
        if self.commands.may_be_there() {
            let (mut found, whole) = try_join(reading, self.whole_rows(replica)).await?;
            found.join(whole);
            return Ok(found);
        }
        let (mut found, ()) = try_join(reading, self.look_for_commands(replica)).await?;
        found.join(if self.commands.are_ruled_out(replica, self.world.elapsed()) {
            Found::none_of(&self.layout.whole(), Part::Field(ROWS.to_owned()))
        } else {
            self.whole_rows(replica).await?
        });
        Ok(found)
    }

    /// Looks for commands, if the last look is too old.
    async fn look_for_commands(self: &Arc<Self>, replica: usize) -> Result<(), Failed> {
        if self.has_looked(replica) {
            return Ok(());
        }
        let look = &self.commands.looks[replica];
        let now = self.world.elapsed();
        if look.is_within(now, COMMANDS_RULED_OUT_FOR) && look.turn.try_lock().is_none() {
            // Another task is looking, and its result comes soon enough for this one.
            return Ok(());
        }
        let core = Arc::clone(self);
        self.attended(async move { core.look(replica).await }).await
    }

    fn has_looked(&self, replica: usize) -> bool {
        let look = &self.commands.looks[replica];
        look.is_within(self.world.elapsed(), COMMANDS_RULED_OUT_FOR / 2)
    }

    async fn look(&self, replica: usize) -> Result<(), Failed> {
        let look = &self.commands.looks[replica];
        let _turn = look.turn.lock().await;
        if self.has_looked(replica) {
            return Ok(());
        }
        let began = self.world.elapsed();
        let is_there = self.said(replica).await?.is_some();
        self.commands.are_there.fetch_or(is_there, Ordering::AcqRel);
        *look.began() = (!is_there).then_some(began);
        Ok(())
    }

    /// Announces commands before the writes of the first command are sent.
    pub(crate) async fn tell_before(self: &Arc<Self>, overlay: &Overlay) -> Result<(), StoreError> {
        let tells = overlay.has_commands || overlay.added_rows().any(|row| row.object.is_none());
        if !tells || self.commands.is_told.load(Ordering::Acquire) {
            return Ok(());
        }
        let core = Arc::clone(self);
        self.attended(async move { core.tell_of_commands().await }).await
    }

    /// Announces commands in all data centers, and waits until every process knows. All data
    /// centers must be reachable the first time; later calls cost nothing.
    pub(crate) async fn tell_of_commands(&self) -> Result<(), StoreError> {
        self.commands.are_there.store(true, Ordering::Release);
        if self.commands.is_told.load(Ordering::Acquire) {
            return Ok(());
        }
        let _turn = self.commands.telling.lock().await;
        let said = self.said(0).await.map_err(|failed| self.failed(&failed))?;
        if said.is_none_or(|said| said.value != [KNOWN]) {
            self.say(SAID).await?;
            self.world.sleep(COMMANDS_AFTER).await;
            self.say(KNOWN).await?;
        }
        self.commands.is_told.store(true, Ordering::Release);
        Ok(())
    }

    async fn say(&self, what: u8) -> Result<(), StoreError> {
        let (at, time) = (self.commands_place(), self.clock.next());
        let said = [Change::PutRecord { at, value: vec![what], time }];
        // Where keyspaces stand for data centers, each keyspace gets the announcement.
        let sites = if self.apart.is_some() { &self.sites[..] } else { &self.sites[..1] };
        for site in sites {
            let told = site.apply_at(&said, Consistency::EachQuorum).await;
            told.map_err(|failed| {
                let reason = failed.reason();
                self.unavailable(format!(
                    "all data centers must know before the first command here, by a quorum of each: {reason}"
                ))
            })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_looked_rules_commands_out_for_a_while_and_one_that_comes_waits_longer() {
        let commands = Commands::new(2);
        let began = Duration::from_secs(7);
        assert!(!commands.are_ruled_out(0, began), "nobody has looked");
        *commands.looks[0].began() = Some(began);
        let end = began + COMMANDS_RULED_OUT_FOR;
        let before = COMMANDS_RULED_OUT_FOR.saturating_sub(Duration::from_nanos(1));
        assert!(commands.are_ruled_out(0, began + before));
        assert!(!commands.are_ruled_out(0, end));
        assert!(!commands.are_ruled_out(1, began), "at another replica");
        assert!(COMMANDS_AFTER >= 2 * COMMANDS_RULED_OUT_FOR, "clocks differ");
        commands.are_there.store(true, Ordering::Release);
        assert!(!commands.are_ruled_out(0, began));
    }
}
