//! Strong transactions: run speculatively on a uniform snapshot, then certified (UniStore §6.2).
//!
//! A strong transaction reads like a causal one, on a uniform snapshot. To commit, the session
//! first waits until that snapshot is uniform (3:2); this takes time only if it contains the
//! session's own fresh writes. Then it asks the participants to certify
//! ([`Coordinator`](crate::certify::Coordinator)). On a conflict the transaction aborts, and the
//! caller runs it again; the next strong transaction of the session sees the conflicting one.

use std::collections::BTreeMap;

use mingle_model::TransactionId;

use super::{Call, CallError, Event, Fresh, Running, Session, SessionOutput, Timer};
use crate::central::SERVICE;
use crate::certify::{
    Access, Certified, Coordinator, GroupEnvelope, Label, Proposal, Touch, Voted,
};
use crate::config::Certification;
use crate::error::Refusal;
use crate::flaw::Flaw;
use crate::key::Key;
use crate::message::{Barrier, Envelope, Message};
use crate::timestamp::{DcId, Now, PartitionId, Timestamp};
use crate::types::Update;
use crate::vector::Vector;

/// The items that a running strong transaction has used.
pub type Touched = BTreeMap<Key, (Access, Option<Label>)>;

/// A strong commit under way.
#[derive(Clone, Debug)]
pub struct Certifying {
    coordinator: Coordinator,
    id: TransactionId,
    snap_vec: Vector,
    /// The number of the barrier request.
    pub(super) request: u64,
    /// True if the barrier is passed and the participants were asked.
    is_asked: bool,
    /// True if it has read nothing, so that any newer snapshot is valid too.
    is_blind: bool,
    pub(super) timer: Timer,
}

impl Certifying {
    pub fn id(&self) -> TransactionId {
        self.id
    }
}

impl Session {
    /// Begins a strong transaction. Its reads and writes conflict with those of other strong
    /// transactions as the store's [`Conflicts`](crate::certify::Conflicts) say.
    ///
    /// # Errors
    ///
    /// The reason why the call cannot begin.
    pub fn begin_strong(&mut self, now: Now) -> Result<(), CallError> {
        self.check_idle()?;
        if self.running.is_some() {
            return Err(CallError::InTransaction);
        }
        self.run(now).strong = Some(Touched::new());
        Ok(())
    }

    /// Labels the running strong transaction's use of an item with a name for which conflicts are
    /// declared.
    ///
    /// # Errors
    ///
    /// [`CallError::Nothing`] if no strong transaction is running.
    pub fn label(&mut self, key: Key, access: Access, label: Label) -> Result<(), CallError> {
        let strong = self.running.as_mut().and_then(|running| running.strong.as_mut());
        let entry = strong.ok_or(CallError::Nothing)?.entry(key).or_insert((access, None));
        *entry = (entry.0.max(access), Some(label));
        Ok(())
    }

    /// Replaces the recorded reads and writes of the running strong transaction by these touches.
    /// It serves a caller with more precise knowledge, for example one whose keys hold many
    /// elements each. Keys of touches need not name items.
    ///
    /// # Errors
    ///
    /// [`CallError::Nothing`] if no strong transaction is running.
    pub fn declare(&mut self, touches: impl IntoIterator<Item = Touch>) -> Result<(), CallError> {
        let strong = self.running.as_mut().and_then(|running| running.strong.as_mut());
        let touches = touches.into_iter().map(|touch| (touch.key, (touch.access, touch.label)));
        *strong.ok_or(CallError::Nothing)? = touches.collect();
        Ok(())
    }

    /// Returns the snapshot of a strong transaction: uniform, except for the session's own writes.
    pub(super) fn strong_snapshot(&self) -> Vector {
        let mut snapshot = self.handout.strong_snapshot();
        snapshot.join(&self.past_vec);
        snapshot.join(&self.conflict_vec);
        snapshot
    }

    pub(super) fn commit_strong(
        &mut self,
        now: Now,
        running: Running,
        out: &mut Vec<SessionOutput>,
    ) {
        let is_blind = running.snapshot.is_none();
        let snap_vec = running.snapshot.unwrap_or_else(|| self.strong_snapshot());
        let Running { id, begun_us, updates, strong, .. } = running;
        let parts = self.parts(id, begun_us, snap_vec, updates, strong.unwrap_or_default());
        if parts.is_empty() {
            let event = Event::Committed { id, commit_vec: snap_vec, is_uniform: false };
            return out.push(SessionOutput::Event(event));
        }
        // A single service never holds back another partition.
        let count = match self.config.certification {
            Certification::Partitions => self.config.partition_count,
            Certification::Central => 1,
        };
        let coordinator = Coordinator::new(self.config.dc, count, parts);
        let (request, timer) = (self.next_request(), self.timer(now));
        let is_asked = self.config.planted.is(Flaw::BarrierSkipped);
        let certifying =
            Certifying { coordinator, id, snap_vec, request, is_asked, is_blind, timer };
        self.call = Call::Certifying(certifying);
        self.send_certify(out);
    }

    fn parts(
        &self,
        id: TransactionId,
        begun_us: u64,
        snap_vec: Vector,
        updates: Vec<Update>,
        touched: Touched,
    ) -> BTreeMap<PartitionId, Proposal> {
        let count = self.config.partition_count;
        let certifier = |key: &Key| match self.config.certification {
            Certification::Partitions => key.partition(count),
            Certification::Central => SERVICE,
        };
        let mut parts: BTreeMap<PartitionId, Proposal> = BTreeMap::new();
        let empty = || Proposal {
            id,
            begun_us,
            participants: Vec::new(),
            touches: Vec::new(),
            updates: Vec::new(),
            snap_vec,
            clock: Timestamp::ZERO,
            stable: Timestamp::ZERO,
            everywhere: Timestamp::ZERO,
            uniform: Timestamp::ZERO,
        };
        let must_drop = self.config.planted.is(Flaw::ReadSetDropped) && !updates.is_empty();
        for (key, (access, label)) in touched {
            if must_drop && access == Access::Read {
                continue;
            }
            let part = parts.entry(certifier(&key)).or_insert_with(empty);
            part.touches.push(Touch { key, access, label });
        }
        for update in updates {
            parts.entry(certifier(&update.key)).or_insert_with(empty).updates.push(update);
        }
        let participants: Vec<PartitionId> = parts.keys().copied().collect();
        for part in parts.values_mut() {
            part.participants.clone_from(&participants);
        }
        parts
    }

    pub(super) fn send_certify(&self, out: &mut Vec<SessionOutput>) {
        let Call::Certifying(certifying) = &self.call else { return };
        if certifying.is_asked {
            let mut envelopes = Vec::new();
            certifying.coordinator.ask(&mut envelopes);
            return send_all(envelopes, out);
        }
        let (request, past_vec) = (certifying.request, certifying.snap_vec);
        let (to, incarnation) = (self.replica(PartitionId(self.contact)), self.config.incarnation);
        let message = Message::Barrier(Barrier { incarnation, request, past_vec });
        out.push(SessionOutput::Send(Envelope { to, message }));
    }

    /// Handles the end of the barrier: the snapshot is uniform, so everything that the strong
    /// transaction depends on survives it (§4). A transaction that read nothing takes the newer
    /// handout, which is uniform too. Otherwise it would conflict with every transaction since the
    /// last handout.
    pub(super) fn on_snapshot_uniform(&mut self, out: &mut Vec<SessionOutput>) {
        let newest = self.handout.strong_snapshot();
        if let Call::Certifying(certifying) = &mut self.call {
            if certifying.is_blind && !certifying.is_asked {
                certifying.snap_vec.join(&newest);
                certifying.coordinator.set_snapshot(certifying.snap_vec);
            }
            certifying.is_asked = true;
            self.send_certify(out);
        }
    }

    pub(super) fn on_voted(&mut self, voted: &Voted, out: &mut Vec<SessionOutput>) {
        let Call::Certifying(certifying) = &mut self.call else { return };
        let mut envelopes = Vec::new();
        let ended = certifying.coordinator.on_voted(voted, &mut envelopes);
        let id = certifying.id;
        send_all(envelopes, out);
        let Some(ended) = ended else { return };
        let call = std::mem::replace(&mut self.call, Call::Idle);
        let event = match ended {
            Certified::Committed(commit_vec) => {
                self.past_vec.join(&commit_vec);
                // It is never lost, but it may not have arrived yet at the session's next data
                // center.
                self.remember(Fresh { id, dc: DcId::STRONG, commit_vec });
                Event::Committed { id, commit_vec, is_uniform: true }
            }
            Certified::Conflict(until) => {
                self.conflict_vec.join(&until);
                Event::Aborted { id, refusal: Refusal::Conflict { until } }
            }
            Certified::Refused => Event::Aborted { id, refusal: Refusal::Aborted },
            Certified::Forgotten => {
                if let Call::Certifying(certifying) = call {
                    self.uncertain = Some(certifying);
                }
                Event::Unknown { id, refusal: Refusal::TransactionTooOld { floor_us: 0 } }
            }
        };
        out.push(SessionOutput::Event(event));
    }

    /// Gives up after the deadline: the transaction is certainly aborted only if no participant was
    /// asked.
    pub(super) fn give_up_certifying(
        &mut self,
        certifying: Certifying,
        refusal: Refusal,
        out: &mut Vec<SessionOutput>,
    ) {
        let id = certifying.id;
        let event = if certifying.is_asked {
            self.uncertain = Some(certifying);
            Event::Unknown { id, refusal }
        } else {
            Event::Aborted { id, refusal }
        };
        out.push(SessionOutput::Event(event));
    }

    /// Asks again for the outcome of a strong commit, from the session's current data center: votes
    /// are the same in all data centers.
    pub(super) fn ask_certified(
        &mut self,
        now: Now,
        certifying: Certifying,
        out: &mut Vec<SessionOutput>,
    ) {
        let coordinator = certifying.coordinator.at_data_center(self.config.dc);
        let timer = self.timer(now);
        self.call = Call::Certifying(Certifying { coordinator, timer, ..certifying });
        self.send_certify(out);
    }
}

fn send_all(envelopes: Vec<GroupEnvelope>, out: &mut Vec<SessionOutput>) {
    for GroupEnvelope { to, message } in envelopes {
        let message = Message::Group(message);
        out.push(SessionOutput::Send(Envelope { to, message }));
    }
}
