//! Notes of outcomes are removed once they are old.
//!
//! Each commit with an id leaves a note ([`name::outcome`]), and each question about a commit that has not taken effect
//! leaves one that bars it. With every so many commits a page of notes is looked at, in the order of their names, at the
//! data center of the commit, and the old ones are removed.
//!
//! A note is old once every data center that is not given up has been known for [`OUTCOMES_KEPT`] to have passed the
//! time of its version. While one is away nothing later than its last message becomes old, and a process that waited for it
//! has as long to ask what became of its commit.
//!
//! In the same transaction the data center writes, for each origin, the highest number that it has removed, in the
//! item [`name::gone`]. A snapshot shows both or none of this. So a transaction that finds no note of an id up to that
//! number knows nothing of this commit: it refuses to commit it, and the outcome is unknown. Each data center has
//! entries of its own in that item, and one sweep at a time, which sees those before it: the numbers only grow.

use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use mingle_geo::types::Register;
use mingle_geo::{DcId, Key, Kind, Op, State, Timestamp, Update, Vector};
use mingle_model::{Origin, Stamp, TransactionId, Value};
use mingle_store::StoreError;

use super::cluster::Phase;
use super::fetch::Found;
use super::name;
use super::store::{GeoStore, Shared};
use crate::limits::{OUTCOMES_KEPT, OUTCOMES_SWEPT};

/// The number of notes of a page.
const PAGE: usize = 256;

/// The number of commits with an id from one page to the next: a page has more notes than they leave, by the factor that
/// the store with one copy uses, too.
const COMMITS: usize = PAGE / OUTCOMES_SWEPT;

/// The maximum time for a page: the caller of a commit waits for it.
const PATIENCE: Duration = Duration::from_millis(200);

/// The sections of the names of notes.
const BARS: &[u8] = b"b";
const NOTES: &[u8] = b"c";

/// The position of the search for old notes, over all programs of a store in this process.
#[derive(Debug, Default)]
pub struct Sweep(Mutex<Place>);

#[derive(Debug, Default)]
struct Place {
    commits: usize,
    is_running: bool,
    /// The first name of the next page; none at the beginning of all.
    next: Option<Vec<u8>>,
    /// By data center: its incarnation, and the timestamp of its last sweep.
    last: BTreeMap<DcId, (u32, Timestamp)>,
    /// The times that all data centers had passed, in microseconds, with the times at which this was seen; the latest
    /// at the end.
    passed: VecDeque<(Duration, u64)>,
}

impl Place {
    /// Notes a time that all data centers have passed; returns the one that they had passed [`OUTCOMES_KEPT`] ago, or 0.
    fn pass(&mut self, now: Duration, passed_us: u64) -> u64 {
        if self.passed.back().is_none_or(|(seen, _)| *seen + OUTCOMES_KEPT / 16 <= now) {
            self.passed.push_back((now, passed_us));
        }
        while self.passed.get(1).is_some_and(|(seen, _)| *seen + OUTCOMES_KEPT <= now) {
            self.passed.pop_front();
        }
        let first = self.passed.front().filter(|(seen, _)| *seen + OUTCOMES_KEPT <= now);
        first.map_or(0, |(_, passed_us)| *passed_us)
    }
}

/// The right to look at a page.
struct Turn<'a> {
    sweep: &'a Sweep,
    from: Vec<u8>,
}

impl Sweep {
    fn lock(&self) -> MutexGuard<'_, Place> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a commit; returns the turn to look at the next page, if there is one.
    fn count(&self) -> Option<Turn<'_>> {
        let mut place = self.lock();
        place.commits += 1;
        if place.commits < COMMITS || place.is_running {
            return None;
        }
        (place.commits, place.is_running) = (0, true);
        let from = place.next.take().unwrap_or_else(|| BARS.to_vec());
        Some(Turn { sweep: self, from })
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.sweep.lock().is_running = false;
    }
}

/// Returns the entry of an origin that a data center writes into [`name::gone`].
fn entry(dc: DcId, origin: Origin) -> Value {
    Value::Bytes([&[dc.0][..], &origin.0.to_be_bytes()].concat().into())
}

/// Returns the number up to which a data center has removed notes of an origin.
fn gone_at(state: &State, dc: DcId, origin: Origin) -> u64 {
    match state.as_map().and_then(|gone| gone.get(&entry(dc, origin))) {
        Some(Value::Int(sequence)) => u64::try_from(*sequence).unwrap_or_default(),
        _ => 0,
    }
}

impl GeoStore {
    /// Returns the number of notes of the outcomes of commits that a data center keeps; they are removed once they are
    /// old.
    ///
    /// # Errors
    ///
    /// When no data center has this name, or its process has stopped.
    pub fn note_count(&self, datacenter: &str) -> Result<usize, StoreError> {
        let shared = &self.shared;
        let dc = shared.dc(datacenter)?;
        let count = |section: &[u8]| {
            let first = shared.space.key(Key::new(Kind::Register, section));
            let prefix = [shared.space.prefix(), section].concat();
            let found = shared.net.with(|inner| inner.items(dc, &first, &prefix, usize::MAX));
            found.map(|keys| keys.len()).ok_or_else(|| shared.down(dc))
        };
        Ok(count(BARS)? + count(NOTES)?)
    }
}

impl Shared {
    /// True if a note of this id may have been removed; `state` is that of [`name::gone`].
    pub(super) fn is_gone(&self, state: &State, id: TransactionId) -> bool {
        let mut dcs = (0..self.config.datacenters.len() as u8).map(DcId);
        id.sequence > 0 && dcs.any(|dc| gone_at(state, dc, id.origin) >= id.sequence)
    }

    /// True if a note of this id was fetched as removed.
    pub(super) fn is_found_gone(&self, found: &Found, id: TransactionId) -> bool {
        self.is_gone(found.get(&name::gone()), id)
    }

    /// Looks at the next page of notes, if it is time for one, after a commit at a data center. A trouble leaves
    /// the page for a later turn.
    pub(super) async fn sweep_after(&self, dc: DcId) {
        if !self.is_strong() && !self.has_notes() {
            return;
        }
        let Some(turn) = self.sweep.count() else { return };
        let old_us = self.sweep.lock().pass(self.core.world.elapsed(), self.passed_us(dc));
        if old_us == 0 {
            return;
        }
        let mut page = pin!(self.sweep_page(dc, (&turn.from, old_us)));
        let mut patience = self.core.world.sleep(PATIENCE);
        let next = poll_fn(|context| match page.as_mut().poll(context) {
            Poll::Ready(next) => Poll::Ready(next.ok()),
            Poll::Pending => patience.as_mut().poll(context).map(|()| None),
        });
        let next = next.await.unwrap_or_else(|| Some(turn.from.clone()));
        self.sweep.lock().next = next;
    }

    /// Returns the time that all data centers which are not given up have passed, as a data center knows it.
    fn passed_us(&self, dc: DcId) -> u64 {
        self.net.with(|inner| {
            let all = (0..self.config.datacenters.len() as u8).map(DcId);
            let awaited: Vec<DcId> = all.filter(|it| inner.phase(*it) != Phase::GivenUp).collect();
            let visible = inner.visible(dc);
            awaited.into_iter().map(|it| visible[it].micros()).min().unwrap_or_default()
        })
    }

    /// Removes the notes of a page that are older than a time in microseconds; returns the name from which the next page
    /// begins.
    async fn sweep_page(
        &self,
        dc: DcId,
        (from, old_us): (&[u8], u64),
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let trouble = |trouble| self.trouble(trouble, None);
        let mut client = self.client_of(dc, &Stamp::default(), false).await?;
        let last = self.sweep.lock().last.get(&dc).copied();
        if let Some((_, at)) = last.filter(|(of, _)| *of == client.incarnation()) {
            client.reach(&Vector::ZERO.with(dc, at)).await.map_err(trouble)?;
        }
        let first = self.space.key(Key::new(Kind::Register, from));
        let prefix = [self.space.prefix(), &from[..1]].concat();
        let found = self.net.with(|inner| inner.items(dc, &first, &prefix, PAGE));
        let mut keys: Vec<Key> =
            found.unwrap_or_default().into_iter().map(|key| self.space.own(key)).collect();
        let next = match keys.last() {
            Some(last) if keys.len() >= PAGE => Some([&last.name, &[0][..]].concat()),
            _ if from.starts_with(BARS) => Some(NOTES.to_vec()),
            _ => None,
        };
        if keys.is_empty() {
            self.give_back(client);
            return Ok(next);
        }
        keys.push(name::gone());
        let states = client.read(keys.clone()).await.map_err(trouble)?;
        let updates = removals((dc, old_us), &keys, &states);
        if !updates.is_empty() {
            client.write(updates).map_err(trouble)?;
            let done = client.commit().await.map_err(trouble)?;
            let swept = (client.incarnation(), done.commit_vec[dc]);
            self.sweep.lock().last.insert(dc, swept);
            if !self.is_strong() {
                self.committed_by(&client, &done.commit_vec);
            }
        }
        self.give_back(client);
        Ok(next)
    }
}

/// Returns the updates that remove those of these notes that are older than a time; the last item is
/// [`name::gone`].
fn removals<S: AsRef<State>>((dc, old_us): (DcId, u64), keys: &[Key], states: &[S]) -> Vec<Update> {
    let is_old = |state: &State| {
        let version = state.as_register().and_then(Register::version);
        version.is_some_and(|version| version.timestamp.micros() < old_us)
    };
    let Some((gone, notes)) = states.split_last() else { return Vec::new() };
    let mut highest: BTreeMap<Origin, u64> = BTreeMap::new();
    let mut updates = Vec::new();
    for (key, state) in keys.iter().zip(notes) {
        let Some(id) = name::noted(&key.name).filter(|_| is_old(state.as_ref())) else {
            continue;
        };
        let last =
            highest.entry(id.origin).or_insert_with(|| gone_at(gone.as_ref(), dc, id.origin));
        *last = id.sequence.max(*last);
        updates.push(Update { key: key.clone(), op: Op::Erase, id: None });
    }
    updates.extend(highest.into_iter().map(|(origin, sequence)| {
        let sequence = Value::Int(i64::try_from(sequence).unwrap_or(i64::MAX));
        Update { key: name::gone(), op: Op::Put(entry(dc, origin), sequence), id: None }
    }));
    updates
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_counts_once_all_have_passed_it_for_long() {
        let mut place = Place::default();
        let minutes = Duration::from_mins;
        assert_eq!(place.pass(minutes(0), 100), 0);
        assert_eq!(place.pass(minutes(5), 200), 0);
        assert_eq!(place.pass(minutes(10), 300), 100);
        // A data center was away.
        assert_eq!(place.pass(minutes(15), 300), 200);
        assert_eq!(place.pass(minutes(24), 300), 300);
        assert_eq!(place.pass(minutes(25), 900), 300);
        assert_eq!(place.pass(minutes(26), 901), 300);
        assert_eq!(place.pass(minutes(36), 999), 901);
        assert!(place.passed.len() <= 17);
    }

    #[test]
    fn one_page_is_looked_at_at_a_time() {
        let sweep = Sweep::default();
        assert!((1..COMMITS).all(|_| sweep.count().is_none()));
        let turn = sweep.count().expect("it is time");
        assert_eq!(turn.from, BARS);
        assert!((0..2 * COMMITS).all(|_| sweep.count().is_none()), "one is under way");
        drop(turn);
        assert!(sweep.count().is_some());
    }
}
