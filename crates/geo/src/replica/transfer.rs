//! State transfer to a data center that was away for longer than its missing transactions are kept.
//!
//! The receiver pulls part by part: first the states of all items at one snapshot, then all
//! transactions above it. At the end it replaces its items by these, in one record, and adds its
//! own operations that the snapshot does not cover on top. So each transaction is counted once, in
//! the snapshot or above it. The snapshot covers both replicas' folded state, because a receiver
//! that has folded more could not tell which of its operations a smaller snapshot lacks. Neither
//! folds past the snapshot during the transfer.
//!
//! The sender limits its pace ([`TRANSFER_ITEMS_PER_S`]), since it also serves its own clients.
//!
//! A sender that lacks part of the receiver's folded state sends its states as folded at the
//! sender, and the receiver joins them with its own ([`State::join`]). This reunites data centers
//! that were separated for longer than transactions are kept and that both went on.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::Replica;
use crate::codec::size_of_value;
use crate::flaw::Flaw;
use crate::floors::Raised;
use crate::key::Key;
use crate::limits::{
    TRANSFER_BYTES_MAX, TRANSFER_ITEMS_MAX, TRANSFER_ITEMS_MIN, TRANSFER_ITEMS_PER_S,
};
use crate::message::{Behind, Message, TransferEnd, TransferPart, TransferPull};
use crate::record::{Alarm, Install, Record};
use crate::timestamp::{DcId, Now};
use crate::types::State;
use crate::vector::Vector;

/// A pull without an answer is repeated after this many ticks, and the next one after twice as
/// many, so that an answer that was only late is not sent again and again.
const REPEAT_TICKS: u64 = 40;

/// The maximum of this delay, in ticks.
const REPEAT_TICKS_MAX: u64 = 4 * REPEAT_TICKS;

/// A transfer is given up after this many pulls without an answer.
const REPEATS_MAX: u32 = 4;

/// Items, in the order of their keys.
type States = Vec<(Key, Arc<State>)>;

/// The transfers in which this replica takes part.
#[derive(Clone, Debug, Default)]
pub struct Transfers {
    /// By receiver: the snapshot that it reads, and the time until which it is pinned.
    serving: BTreeMap<DcId, (Vector, u64)>,
    /// Pulls that wait for the pace; only the last one of each receiver.
    waiting: VecDeque<TransferPull>,
    pace: Pace,
    pulling: Option<Pulling>,
    /// A snapshot that a reader in this process holds, and the time until which it is pinned.
    held: Option<(Vector, u64)>,
}

/// The budget of items that may be sent.
#[derive(Clone, Copy, Debug, Default)]
struct Pace {
    /// The time at which everything sent is paid for, in microseconds of the monotonic clock.
    paid_us: u64,
}

impl Pace {
    const ITEM_US: u64 = 1_000_000 / TRANSFER_ITEMS_PER_S;

    /// Returns the number of items that may be sent now; 0 if it would be fewer than
    /// [`TRANSFER_ITEMS_MIN`].
    fn allowed(self, mono_us: u64) -> usize {
        let unpaid = self.paid_us.saturating_sub(mono_us).div_ceil(Self::ITEM_US);
        let allowed = TRANSFER_ITEMS_MAX.saturating_sub(unpaid as usize);
        if allowed < TRANSFER_ITEMS_MIN { 0 } else { allowed }
    }

    fn note_sent(&mut self, mono_us: u64, items: usize) {
        self.paid_us = self.paid_us.max(mono_us) + items as u64 * Self::ITEM_US;
    }
}

#[derive(Clone, Debug)]
struct Pulling {
    from: DcId,
    /// The snapshot folded here; folding stays at it until the end.
    folded: Vector,
    at: Option<Vector>,
    states: States,
    repeat_at_us: u64,
    repeat_ticks: u64,
    repeats: u32,
}

impl Transfers {
    /// Returns the snapshot that folding must not pass.
    pub fn pinned(&self) -> Option<Vector> {
        let serving = self.serving.values().map(|(at, _)| *at);
        let pulling = self.pulling.as_ref().map(|pulling| {
            let at = pulling.at.filter(|at| at.covers(&pulling.folded));
            at.unwrap_or(pulling.folded)
        });
        let held = self.held.map(|(at, _)| at);
        serving.chain(pulling).chain(held).reduce(|mut least, at| {
            least.meet(&at);
            least
        })
    }

    /// Stops all transfers, when an epoch begins; they start again.
    pub fn stop(&mut self) {
        *self = Self::default();
    }

    pub fn hold(&mut self, held: Option<(Vector, u64)>) {
        self.held = held;
    }

    pub fn is_pulling(&self) -> bool {
        self.pulling.is_some()
    }

    /// True if there is work at the next tick.
    pub fn is_busy(&self) -> bool {
        self.is_pulling() || !self.waiting.is_empty()
    }
}

impl Replica {
    /// Handles a sibling's message that it no longer keeps the transactions missing here.
    pub(super) fn on_behind(&mut self, now: Now, behind: Behind) {
        let Behind { dc, origin, cut, .. } = behind;
        let is_known = dc.0 < self.config.dc_count && origin.0 < self.config.dc_count;
        if !is_known || dc == self.config.dc || self.is_own(origin) {
            return self.alarm(Alarm::Malformed("a transfer is offered for no known data center"));
        }
        let is_answered = self.transfer.pulling.as_ref().is_some_and(|pulling| {
            pulling.from == dc || pulling.at.is_some() || pulling.repeats == 0
        });
        if self.known_vec[origin] >= cut || is_answered {
            return;
        }
        self.begin_transfer(now, dc);
    }

    /// True if this replica is pulling another one's state.
    pub(crate) fn is_pulling(&self) -> bool {
        self.transfer.is_pulling()
    }

    /// Requests a sibling's state.
    pub(crate) fn begin_transfer(&mut self, now: Now, dc: DcId) {
        self.alarm(Alarm::Transfer { dc, is_complete: false });
        let folded = self.pins.folded();
        self.transfer.pulling = Some(Pulling {
            from: dc,
            folded,
            at: None,
            states: Vec::new(),
            repeat_at_us: 0,
            repeat_ticks: REPEAT_TICKS,
            repeats: 0,
        });
        self.pull(now);
    }

    fn pull(&mut self, now: Now) {
        let folded = self.pins.folded();
        let (dc, tick_us) = (self.config.dc, self.config.tick_ms.saturating_mul(1_000));
        let Some(pulling) = &mut self.transfer.pulling else { return };
        let repeat_us = tick_us.saturating_mul(pulling.repeat_ticks);
        pulling.repeat_at_us = now.mono_us.saturating_add(repeat_us);
        let last = pulling.states.last().map(|(key, _)| key.clone());
        let under_way = pulling.at.zip(last);
        let to = pulling.from;
        let epoch = self.members.epoch();
        let pull = TransferPull { epoch, dc, under_way, folded };
        self.send(self.sibling(to), Message::TransferPull(pull));
    }

    pub(super) fn go_on_with_transfer(&mut self, now: Now) {
        self.transfer.serving.retain(|_, (_, until_us)| *until_us > now.mono_us);
        self.transfer.held = self.transfer.held.filter(|(_, until_us)| *until_us > now.mono_us);
        while self.transfer.pace.allowed(now.mono_us) > 0
            && let Some(pull) = self.transfer.waiting.pop_front()
        {
            self.serve(now, pull);
        }
        let Some(pulling) = &mut self.transfer.pulling else { return };
        if pulling.repeat_at_us > now.mono_us {
            return;
        }
        pulling.repeats += 1;
        pulling.repeat_ticks = (2 * pulling.repeat_ticks).min(REPEAT_TICKS_MAX);
        if pulling.repeats > REPEATS_MAX {
            // A sibling that keeps more than this replica has will offer its state again.
            self.transfer.pulling = None;
            return;
        }
        self.pull(now);
    }

    pub(super) fn on_transfer_pull(&mut self, now: Now, pull: TransferPull) {
        let dc = pull.dc;
        if dc.0 >= self.config.dc_count || dc == self.config.dc {
            return self.alarm(Alarm::Malformed("a transfer to no known data center"));
        }
        let waiting = &mut self.transfer.waiting;
        if let Some(earlier) = waiting.iter_mut().find(|earlier| earlier.dc == dc) {
            *earlier = pull;
        } else if !waiting.is_empty() || self.transfer.pace.allowed(now.mono_us) == 0 {
            waiting.push_back(pull);
        } else {
            self.serve(now, pull);
        }
    }

    /// Answers a pull with as many items as the pace allows.
    fn serve(&mut self, now: Now, pull: TransferPull) {
        let dc = pull.dc;
        let served = self.transfer.serving.get(&dc).map(|(at, _)| *at);
        let (at, after) = match pull.under_way {
            Some((at, last)) if served == Some(at) => (at, Some(last)),
            _ => {
                if !self.has_all_before(dc) {
                    // It cannot serve yet. The receiver asks again, or asks another sibling.
                    return;
                }
                let folded = self.pins.folded();
                let mut at = folded;
                at.join(&pull.folded);
                if !self.known_vec.covers(&at) {
                    // Part of the receiver's folded state is not here.
                    at = folded;
                }
                self.alarm(Alarm::Lagging(dc));
                (at, None)
            }
        };
        let until_us = now.mono_us.saturating_add(self.config.transaction_ms_max * 1_000);
        self.transfer.serving.insert(dc, (at, until_us));
        let allowed = self.transfer.pace.allowed(now.mono_us);
        let Ok((states, is_last)) = self.part(after.as_ref(), &at, allowed) else {
            // Folding has passed the pinned snapshot, because of a transfer to this replica.
            self.transfer.serving.remove(&dc);
            return;
        };
        self.transfer.pace.note_sent(now.mono_us, states.len());
        let end = is_last.then(|| TransferEnd {
            suffix: self.op_log.above(&at).into_values().collect(),
            known_vec: self.known_vec,
            op_floors: self.op_floors.iter().collect(),
        });
        let (epoch, own) = (self.members.epoch(), self.config.dc);
        let part = TransferPart { epoch, dc: own, at, after, states, end };
        self.send(self.sibling(dc), Message::TransferPart(part));
    }

    /// Returns the states of the items after a key, limited by `items_max` and the size of a
    /// message, and true if these are the last ones. The error is an item's folded snapshot beyond
    /// `at`.
    fn part(
        &self,
        after: Option<&Key>,
        at: &Vector,
        items_max: usize,
    ) -> Result<(States, bool), Vector> {
        let (mut part, mut bytes) = (States::new(), 0);
        for key in self.op_log.keys(after) {
            let state = self.op_log.peek(key, at)?;
            bytes += encoded_bytes(key, &state);
            let is_full = part.len() >= items_max || bytes > TRANSFER_BYTES_MAX;
            if is_full && !part.is_empty() {
                return Ok((part, false));
            }
            part.push((key.clone(), state));
        }
        Ok((part, true))
    }

    pub(super) fn on_transfer_part(&mut self, now: Now, part: TransferPart) {
        let mut suffix = part.end.iter().flat_map(|end| &end.suffix);
        let is_sound = suffix.all(|transaction| self.fits_here(transaction))
            && part
                .states
                .iter()
                .all(|(key, state)| state.kind() == key.kind && self.check_partition(key).is_ok());
        if !is_sound {
            return self.alarm(Alarm::Malformed("a part of a state transfer"));
        }
        let Some(pulling) = &mut self.transfer.pulling else { return };
        // The first of the asked siblings to answer serves the transfer; others may be unable to.
        let is_first = part.after.is_none() && pulling.at.is_none();
        if pulling.from != part.dc && !is_first {
            return;
        }
        if part.after.is_none() {
            (pulling.from, pulling.at) = (part.dc, Some(part.at));
            pulling.states.clear();
        } else if pulling.at != Some(part.at)
            || pulling.states.last().map(|(key, _)| key) != part.after.as_ref()
        {
            // A repeated part.
            return;
        }
        pulling.repeats = 0;
        pulling.states.extend(part.states);
        let Some(mut end) = part.end else { return self.pull(now) };
        self.leave_out_frozen(&part.at, &mut end);
        let Some(pulling) = &mut self.transfer.pulling else { return };
        let states = std::mem::take(&mut pulling.states);
        self.transfer.pulling = None;
        self.take_over(now, (part.dc, part.at), states, end);
    }

    /// Continues from the complete state of another replica.
    fn take_over(
        &mut self,
        now: Now,
        (from, at): (DcId, Vector),
        states: States,
        end: TransferEnd,
    ) {
        self.counters.transfers += 1;
        self.alarm(Alarm::Transfer { dc: from, is_complete: true });
        for (dc, raised) in &end.op_floors {
            self.note_floor(*dc, *raised);
        }
        let folded = self.pins.folded();
        let (mut at, mut states) = (at, states);
        if !at.covers(&folded) {
            self.counters.joins += 1;
            if !self.makes(Flaw::BaseReplaced) {
                states = self.joined(&folded, &at, states);
            }
            at.join(&folded);
        }
        let is_coming_up = self.is_coming_up();
        if is_coming_up {
            self.take_over_floors(now, from, &end);
        }
        self.write(Record::OpFloors(end.op_floors));
        let mut cut = Vector::ZERO;
        if is_coming_up {
            // The others have all surviving transactions of the previous incarnation.
            let own = self.config.dc;
            cut[own] = end.known_vec[own];
        }
        for origin in self.config.others() {
            // Transactions inside the snapshot cannot be sent on one by one.
            if self.known_vec[origin] < at[origin] {
                cut[origin] = at[origin];
            }
        }
        let install = Install {
            at,
            states,
            suffix: end.suffix,
            known_vec: end.known_vec,
            cut,
            forward: Vec::new(),
        };
        self.install(install.clone());
        self.write(Record::Install(install));
        self.recompute_known(now);
        self.wake(now);
    }

    /// Joins all items that are here or in the received states, at the snapshots that the two
    /// replicas have folded.
    fn joined(&self, folded: &Vector, at: &Vector, states: States) -> States {
        let mut theirs: BTreeMap<Key, Arc<State>> = states.into_iter().collect();
        let mut joined = BTreeMap::new();
        for key in self.op_log.keys(None) {
            let own = self.op_log.peek(key, folded).expect("nothing is folded past the folded");
            joined.insert(key.clone(), (own, theirs.remove(key)));
        }
        let [own_us, their_us] = [folded, at].map(|at| self.horizon_us_of(at));
        let here = |key: &Key| Arc::new(State::absent(key.kind, own_us));
        let there = |key: &Key| Arc::new(State::absent(key.kind, their_us));
        joined.extend(theirs.into_iter().map(|(key, it)| (key.clone(), (here(&key), Some(it)))));
        let states = joined.into_iter().map(|(key, (own, it))| {
            let mut state = Arc::unwrap_or_clone(own);
            state.join(folded, &it.unwrap_or_else(|| there(&key)), at);
            (key, Arc::new(state))
        });
        // A blank item is equivalent to a missing one.
        states.filter(|(_, state)| !state.is_blank()).collect()
    }

    /// Raises this data center's floors to the sender's. While this data center accepted nothing,
    /// the others could forget ids without regard to its floors, but only ids below their own
    /// floors.
    fn take_over_floors(&mut self, now: Now, from: DcId, end: &TransferEnd) {
        let own = self.config.dc;
        self.clock.observe(end.known_vec.highest());
        let above = self.known_vec[own].max(end.known_vec[own]);
        let theirs = end.op_floors.iter().filter(|(dc, _)| *dc == from);
        let mut taken = Vec::new();
        for (_, Raised { origin, sequence, .. }) in theirs {
            if *sequence > self.op_floors.of(own, *origin) {
                let at = self.clock.next(now.wall_us, above);
                let raised = Raised { origin: *origin, sequence: *sequence, at };
                self.note_floor(own, raised);
                taken.push((own, raised));
            }
        }
        // This is written before the state that makes this replica serve.
        self.write(Record::OpFloors(taken));
    }

    /// Replaces the items by those of a snapshot; see [`OpLog::install`](crate::oplog::OpLog).
    pub(super) fn install(&mut self, install: Install) {
        let own = self.config.dc;
        // A replica that reads an older snapshot begins its transfer again.
        self.transfer.serving.clear();
        self.raise_horizon(&install.at);
        self.op_log.install(install.at, install.states);
        for origin in self.config.dcs() {
            self.committed_causal[usize::from(origin.0)].raise_cut(install.cut[origin]);
        }
        for transaction in install.forward.iter().chain(&install.suffix) {
            self.apply(transaction);
        }
        self.pins.raise_folded(&install.at);
        // The outcomes of transactions inside the states are unknown.
        self.outcomes.raise_blind(&self.known_vec, &install.at);
        if self.is_coming_up() {
            // The clock continues above every timestamp known to the sender.
            self.clock.observe(install.known_vec.highest());
        }
        let own_known = self.known_vec[own].max(install.known_vec[own]);
        self.known_vec.join(&install.known_vec);
        self.known_vec[own] = own_known;
    }
}

pub(super) fn encoded_bytes(key: &Key, state: &State) -> usize {
    size_of_value(&(key, state))
}
