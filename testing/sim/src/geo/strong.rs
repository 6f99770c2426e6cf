//! Strong transactions: their settings, and how clients run them.

use mingle_checker::geo::{self, Action, Content};
use mingle_geo::certify::{
    Access, CertifierConfig, Conflicts, GroupConfig, GroupMessage, Label, Vote,
};
use mingle_geo::session::CallError;
use mingle_geo::{DcId, Key, Message, Op, PartitionId, Refusal, StrongReplica, Update};
use mingle_model::random::Random;

use super::reach::Seen;
use super::script::{Close, Step};
use super::setup::{Range, within};
use super::world::World;

/// The maximum number of repetitions of a strong transaction by a client.
pub const ATTEMPTS_MAX: u32 = 9;

/// The label of a withdrawal. Two withdrawals conflict.
pub const WITHDRAW: &str = "withdraw";

/// The label of a deposit. It conflicts with no labeled access.
pub const DEPOSIT: &str = "deposit";

/// The settings of strong transactions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Strong {
    /// The percentage of transactions that are strong; with 0 nothing is certified.
    pub percent: usize,
    /// The settings of the first replica's part in its group.
    pub group: GroupConfig,
}

impl Strong {
    pub(super) fn draw(random: &mut Random, dc_count: u8, far_us: Range) -> Self {
        let conflicts = Conflicts::new([(Label::from(WITHDRAW), Label::from(WITHDRAW))]);
        let mut certifier = CertifierConfig::new(PartitionId(0), conflicts);
        certifier.outcome_ms_max = *random.pick(&[8_000, 60_000]);
        certifier.index_max = *random.pick(&[10, 60, 100_000]);
        certifier.keep_max = *random.pick(&[5, 100, 100_000]);
        let mut group = GroupConfig::new(DcId(0), dc_count, certifier);
        group.tick_ms = 30 + 5 * far_us.1 / 2_000;
        group.retry_ms = within(random, (100, 400));
        group.resolve_after_ms = within(random, (100, 800));
        group.keep_entries = *random.pick(&[15, 100, 10_000]);
        Self { percent: *random.pick(&[8, 20, 50]), group }
    }

    /// Returns the settings without strong transactions. The certification groups are there still:
    /// they advance the strong entries for items that wait for the horizon.
    pub(super) fn none(dc_count: u8, far_us: Range) -> Self {
        let certifier = CertifierConfig::new(PartitionId(0), Conflicts::default());
        let mut group = GroupConfig::new(DcId(0), dc_count, certifier);
        group.tick_ms = 30 + 5 * far_us.1 / 2_000;
        Self { percent: 0, group }
    }

    /// True if there are strong transactions.
    pub fn is_some(&self) -> bool {
        self.percent > 0
    }

    /// Returns the time in which undecided transactions finish and committed ones are delivered, in
    /// microseconds.
    pub(super) fn settle_us(&self, far_us: u64) -> u64 {
        let GroupConfig { tick_ms, retry_ms, resolve_after_ms, .. } = self.group;
        2_000 * (resolve_after_ms + 2 * retry_ms + 8 * tick_ms) + 12 * far_us
    }
}

impl World<'_> {
    pub(super) fn begin_strong(&mut self, slot: usize, steps: Vec<Step>, end: Close) {
        let client = &mut self.clients[slot];
        client.waits_strong_since_us.get_or_insert(self.now_us);
        // A causal transaction that failed before this one is not tried any more.
        client.waits_since_us = None;
        if let Err(error) = self.try_call(slot, |session, now, _| session.begin_strong(now)) {
            self.clients[slot].next_id();
            return self.on_call_error(slot, error);
        }
        self.begin_transaction(slot, steps, end, Some(geo::Strong::default()));
    }

    /// Starts the waiting time of a read or commit; a strong transaction has its own.
    pub(super) fn waits(&mut self, slot: usize) {
        let client = &mut self.clients[slot];
        let strong = client.open.as_ref().and_then(|open| open.transaction.strong.as_ref());
        if strong.is_none() {
            client.waits_since_us.get_or_insert(self.now_us);
        }
    }

    pub(super) fn label(&mut self, slot: usize, key: Key, label: &str) -> Result<(), CallError> {
        let item = self.recorder.item(&key);
        let strong =
            self.clients[slot].open.as_mut().and_then(|open| open.transaction.strong.as_mut());
        if let Some(strong) = strong {
            strong.labels.insert(item, label.to_owned());
        }
        let label = Label::from(label);
        self.try_call(slot, |session, _, _| session.label(key, Access::Write, label))
    }

    /// Takes from an account if the last read showed that the amount is there.
    pub(super) fn take(&mut self, slot: usize, key: Key, amount: i64) {
        let Some(open) = &mut self.clients[slot].open else { return };
        let found = open.transaction.actions.last();
        let is_there = matches!(found, Some(Action::Read { found: Content::Counter(sum), .. })
            if *sum >= i128::from(amount));
        if is_there {
            open.steps.push_front(Step::Write(Update { key, op: Op::Add(-amount), id: None }));
        } else {
            self.reach.saw(Seen::Withheld);
        }
    }

    /// Handles a failed strong transaction: tries it again if a retry may succeed.
    pub(super) fn try_again(&mut self, slot: usize, refusal: &Refusal) {
        let client = &mut self.clients[slot];
        if client.waits_strong_since_us.is_none() {
            return;
        }
        if !matches!(refusal, Refusal::TimedOut { .. } | Refusal::ClockAhead { .. }) {
            // Another transaction made progress.
            client.waits_strong_since_us = None;
        }
        let may_succeed = matches!(
            refusal,
            Refusal::TimedOut { .. } | Refusal::Conflict { .. } | Refusal::Aborted
        );
        if may_succeed && client.attempt < ATTEMPTS_MAX {
            client.attempt += 1;
            client.acts.push(client.act);
        } else {
            client.give_up_strong();
        }
    }

    /// Records the coverage that a message between replicas shows for strong transactions.
    pub(super) fn see_message(&mut self, message: &Message) {
        let Message::Group(message) = message else { return };
        match message {
            GroupMessage::Advance { .. } => self.reach.saw(Seen::Advanced),
            GroupMessage::Query { .. } => self.reach.saw(Seen::Queried),
            // The coordinators here are clients, so this message goes to a replica that asked.
            GroupMessage::Voted(voted) => match voted.vote {
                Some(Vote::No) => self.reach.saw(Seen::ParticipantRefused),
                Some(Vote::Yes(_)) => self.reach.saw(Seen::Resolved),
                _ => {}
            },
            _ => {}
        }
    }

    /// Records the coverage when a replica stops or is lost.
    pub(super) fn see_stop(&mut self, replica: &StrongReplica) {
        let group = replica.group();
        if group.is_leader() && group.certifier().undecided().next().is_some() {
            self.reach.saw(Seen::LeaderLost);
        }
    }
}
