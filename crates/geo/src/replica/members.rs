//! Epochs, and their effects on this replica's data; see [`members`](crate::members).
//!
//! An epoch is written to disk before the replica acts or sends in it. Messages from a replica of
//! another epoch are dropped, since all of them are repeated or requested again. A sender of an
//! older epoch is told the members.

use super::forward::Lag;
use super::{Input, Replica};
use crate::error::Refusal;
use crate::flaw::Flaw;
use crate::members::{Cut, Members, Standing};
use crate::message::{
    Address, AttachReply, BarrierReply, MembersReply, Message, OutcomeQuery, OutcomeReply,
    PrepareAck, ReadReply, TransferEnd, Vote,
};
use crate::record::{Alarm, Output, Record};
use crate::timestamp::{DcId, Now, Timestamp};
use crate::vector::{DCS_MAX, Vector};

impl Replica {
    /// True if this incarnation of its data center is given up: it then does nothing any more.
    pub fn is_over(&self) -> bool {
        self.members.is_over(self.config.dc, self.config.incarnation)
    }

    /// Handles an input of a replica whose disk has lost its records: it refuses all requests.
    pub(crate) fn refuse_for_ever(&mut self, input: Input, out: &mut Vec<Output>) {
        if let Input::Message { from: from @ Address::Client(_), message } = input {
            self.refuse_as_fenced(from, &message);
            // No record is written, so the disk stays empty.
            out.extend(self.staged.then.drain(..).map(Output::Send));
        }
    }

    /// Returns the cut of the previous incarnation, if there is one.
    fn cut_before(&self, dc: DcId, incarnation: u32) -> Option<Timestamp> {
        self.members.bound_of(dc, incarnation.checked_sub(1)?)
    }

    /// True if this is a later incarnation of its data center that has not yet copied another one's
    /// state. Its disk is empty, so it announces nothing of its own and serves no clients.
    pub fn is_coming_up(&self) -> bool {
        let (dc, incarnation) = (self.config.dc, self.config.incarnation);
        let is_later = incarnation > 0 && !self.makes(Flaw::ServesUntransferred);
        is_later && self.cut_before(dc, incarnation).is_none_or(|cut| self.known_vec[dc] < cut)
    }

    /// True if a client asks before all replicas of a later incarnation have copied the state.
    /// Until then the replica cannot tell which transactions of the previous incarnation survived.
    pub(super) fn is_too_early(&self, from: Address) -> bool {
        let (dc, incarnation) = (self.config.dc, self.config.incarnation);
        let is_later = incarnation > 0 && !self.makes(Flaw::ServesUntransferred);
        let is_asked = matches!(from, Address::Client(_)) && is_later;
        is_asked && self.cut_before(dc, incarnation).is_none_or(|cut| self.stable_vec[dc] < cut)
    }

    /// True if all surviving transactions of the previous incarnation are here, with the floors
    /// that it raised. Otherwise another replica must give its state to the next incarnation.
    pub(super) fn has_all_before(&self, dc: DcId) -> bool {
        let cut = self.cut_before(dc, self.members.of(dc).incarnation);
        cut.is_none_or(|cut| self.known_vec[dc] >= cut)
    }

    /// Requests the state of the other data centers in turn, once this incarnation is a member.
    pub(super) fn come_up(&mut self, now: Now) {
        let own = self.config.dc;
        let is_admitted = self.members.of(own).incarnation == self.config.incarnation;
        if !self.is_coming_up() || !is_admitted || self.is_pulling() {
            return;
        }
        let others: Vec<DcId> = self.others_in().collect();
        let turn = now.mono_us / 1_000 / self.config.tick_ms.max(1);
        if let Some(dc) = others.get(turn as usize % others.len().max(1)) {
            self.begin_transfer(now, *dc);
        }
    }

    /// Returns the other data centers that belong to the system; only these need messages.
    pub(super) fn others_in(&self) -> impl Iterator<Item = DcId> + Clone + use<> {
        let others = self.config.others().filter(|dc| self.members.is_in(*dc));
        of_mask(others.fold(0, |mask, dc| mask | 1 << dc.0))
    }

    /// Returns the data centers from which transactions outside `folded` may still come.
    pub(super) fn accepting(&self, folded: &Vector) -> impl Iterator<Item = DcId> + Clone + use<> {
        let accepting =
            self.config.dcs().filter(|dc| self.bound(*dc).is_none_or(|cut| folded[*dc] < cut));
        of_mask(accepting.fold(0, |mask, dc| mask | 1 << dc.0))
    }

    /// True if no transactions of this origin up to `to` are accepted.
    pub(super) fn is_cut_off(&self, origin: DcId, to: Timestamp) -> bool {
        match self.members.of(origin).standing {
            Standing::In => false,
            Standing::Fencing => to > self.known_vec[origin],
            Standing::Settling | Standing::Fenced => self.bound(origin).is_none_or(|cut| to > cut),
        }
    }

    /// True if a message can be interpreted: its vectors, if it has any, are of this epoch.
    pub(super) fn is_of_this_epoch(&self, from: Address, message: &Message) -> bool {
        let is_late = matches!(message, Message::Replicate(_)) && self.makes(Flaw::FencedAccepted);
        let is_from_client = matches!(from, Address::Client(_));
        let epoch = message.epoch().filter(|_| !is_from_client && !is_late);
        epoch.is_none_or(|epoch| epoch == self.members.epoch()) && self.is_meant(message)
    }

    /// True if a client's request names this incarnation.
    fn is_meant(&self, message: &Message) -> bool {
        let meant = match message {
            Message::Read(read) => read.incarnation,
            Message::CommitOne(commit) => commit.incarnation,
            Message::Prepare(prepare) => prepare.incarnation,
            Message::Barrier(barrier) => barrier.incarnation,
            _ => return true,
        };
        meant == self.config.incarnation
    }

    /// Answers a message that cannot be handled here.
    pub(super) fn turn_away(&mut self, now: Now, from: Address, message: Message) {
        match (from, message) {
            (Address::Replica(..), Message::Members(members)) => self.on_members(now, members),
            (Address::Replica(..), message) => {
                let is_behind = message.epoch().is_some_and(|epoch| epoch < self.members.epoch());
                if is_behind && !self.is_over() {
                    self.send(from, Message::Members(self.members.clone()));
                }
            }
            (Address::Client(_), message) if self.is_too_early(from) => {
                let (dc, incarnation) = (self.config.dc, self.config.incarnation);
                self.refuse(from, &message, Refusal::ComingUp { dc, incarnation });
            }
            (Address::Client(_), message) => self.refuse_as_fenced(from, &message),
        }
    }

    /// Refuses all waiting requests.
    fn refuse_all(&mut self) {
        for (from, request) in self.take_waiting() {
            self.refuse_as_fenced(from, &request);
        }
    }

    fn refuse_as_fenced(&mut self, from: Address, message: &Message) {
        let (dc, incarnation) = (self.config.dc, self.config.incarnation);
        self.refuse(from, message, Refusal::Fenced { dc, incarnation });
    }

    fn refuse(&mut self, from: Address, message: &Message, refusal: Refusal) {
        let (incarnation, handout) = (self.config.incarnation, self.handout());
        let partition = self.config.partition;
        let reply = match message {
            Message::Read(read) => {
                let (request, result) = (read.request, Err(refusal));
                Message::ReadReply(ReadReply { request, result, handout })
            }
            Message::CommitOne(commit) => {
                let (id, result) = (commit.id, Err(refusal));
                Message::OutcomeReply(OutcomeReply { id, result, handout })
            }
            Message::OutcomeQuery(query) => {
                let (id, result) = (query.id, Err(refusal));
                Message::OutcomeReply(OutcomeReply { id, result, handout })
            }
            Message::Prepare(prepare) => {
                let (id, vote) = (prepare.id, Vote::Unknown(refusal));
                Message::PrepareAck(PrepareAck { id, partition, vote, handout })
            }
            Message::Barrier(barrier) => {
                let (request, result) = (barrier.request, Err(refusal));
                Message::BarrierReply(BarrierReply { request, result, handout })
            }
            Message::Attach(attach) => {
                let (request, result) = (attach.request, Err(refusal));
                Message::AttachReply(AttachReply { incarnation, request, result, handout })
            }
            // The message needs no answer.
            _ => return,
        };
        self.send(from, reply);
    }

    /// Refuses a change of members: without a group there is no agreement on them.
    pub(super) fn refuse_change(&mut self, from: Address, request: u64, refusal: Refusal) {
        let reply = MembersReply { request, result: Err(refusal) };
        self.send(from, Message::MembersReply(reply));
    }

    /// Begins a new epoch.
    pub(super) fn on_members(&mut self, now: Now, members: Members) {
        if members.epoch() <= self.members.epoch() {
            return;
        }
        if !members.is_sound(self.config.dc_count) {
            return self.alarm(Alarm::Malformed("members that there cannot be"));
        }
        self.write(Record::Members(members.clone()));
        self.adopt(members);
        if self.is_over() {
            return self.refuse_all();
        }
        self.recompute_known(now);
        self.wake_attaching(now);
        self.hear_attaching(now);
    }

    /// Adopts members that are on disk, or will be.
    pub(super) fn adopt(&mut self, members: Members) {
        let before = self.members.epoch();
        self.members = members;
        let cuts: Vec<Cut> = self.members.bounds_after(before).copied().collect();
        for cut in cuts {
            self.cut_off(cut);
        }
        self.transfer.stop();
    }

    /// Drops everything above a cut. It was never shown, unless more data centers were lost than
    /// `f` allows.
    fn cut_off(&mut self, cut: Cut) {
        let Cut { dc, at, .. } = cut;
        let found = self.uniform_vec[dc].max(self.pins.folded()[dc]);
        let (dropped, is_clean) = self.op_log.cut_off(dc, at);
        if found > at || !is_clean {
            self.alarm(Alarm::AboveCut { dc, found, cut: at });
        }
        for id in dropped {
            self.outcomes.forget(&id);
        }
        let column = usize::from(dc.0);
        self.committed_causal[column].cut_off(at);
        self.op_floors.suspend(dc, at);
        let vectors = &mut self.disk.vectors;
        let own = [
            &mut self.known_vec,
            &mut self.stable_vec,
            &mut self.uniform_vec,
            &mut self.uniform_told,
            &mut vectors.known_vec,
            &mut vectors.stable_vec,
            &mut vectors.uniform_vec,
        ];
        let rows = self.local_matrix.iter_mut();
        let local = rows.flat_map(|row| [&mut row.known_vec, &mut row.snapshot_floor]);
        let announced = self.disk.announced.iter_mut().map(|(_, _, known_vec)| known_vec);
        let far = self.stable_matrix.iter_mut().chain(&mut self.global_matrix);
        own.into_iter().chain(local).chain(announced).chain(far).for_each(|vec| vec.clip(dc, at));
        self.pins.clip(dc, at);
        // Its copies are lost with it and no longer count.
        self.stable_matrix[column] = Vector::ZERO;
        self.global_matrix[column] = Vector::ZERO;
        self.sent[column] = Timestamp::ZERO;
        for (row, lags) in self.lags.iter_mut().enumerate() {
            lags[column] = Lag::default();
            if row == column {
                lags.fill(Lag::default());
            }
        }
    }

    /// Limits a received state for data centers that are being fenced to the position that this
    /// replica has reported. The snapshot itself stays whole, since it is uniform.
    pub(super) fn leave_out_frozen(&self, at: &Vector, end: &mut TransferEnd) {
        let frozen = |dc: &DcId| self.members.of(*dc).standing == Standing::Fencing;
        for dc in self.config.others().filter(frozen) {
            let most = self.known_vec[dc].max(at[dc]);
            end.known_vec.clip(dc, most);
            end.suffix
                .retain(|transaction| transaction.origin != dc || transaction.timestamp() <= most);
        }
    }

    /// Returns, for each data center being fenced, the timestamp up to which all partitions of this
    /// data center have its transactions on disk. The list is empty until every partition has
    /// entered the epoch, since until then one may accept more. It also lists settling cuts, once
    /// all partitions have reached them.
    pub fn frozen(&self) -> Vec<(DcId, u32, Timestamp)> {
        let epoch = self.members.epoch();
        if self.is_over() || self.local_matrix.iter().any(|row| row.epoch != epoch) {
            return Vec::new();
        }
        let known = |dc: DcId| self.local_matrix.iter().map(|row| row.known_vec[dc]).min();
        let known = |dc: DcId| known(dc).unwrap_or_default();
        let (own, incarnation) = (self.config.dc, self.config.incarnation);
        if incarnation > 0 && self.cut_before(own, incarnation).is_none_or(|cut| known(own) < cut) {
            // The previous incarnation counted towards uniformity, and this one may lack some of
            // its transactions.
            return Vec::new();
        }
        let reports = self.config.others().filter_map(|dc| {
            let (member, known) = (self.members.of(dc), known(dc));
            let is_awaited = match member.standing {
                Standing::In | Standing::Fenced => false,
                Standing::Fencing => true,
                Standing::Settling => self.bound(dc).is_some_and(|cut| known >= cut),
            };
            is_awaited.then_some((dc, member.incarnation, known))
        });
        reports.collect()
    }

    /// Returns the cut of the newest incarnation of a data center, if there is one.
    fn bound(&self, dc: DcId) -> Option<Timestamp> {
        self.members.bound_of(dc, self.members.of(dc).incarnation)
    }

    /// Asks for the missing transactions of data centers that are cut off: the others send them
    /// unasked only after a delay.
    pub(super) fn ask_for_what_is_left(&mut self, now: Now) {
        if self.is_coming_up() {
            // They come with the copied state.
            return;
        }
        let is_lacking = |dc: &DcId| self.bound(*dc).is_some_and(|cut| self.known_vec[*dc] < cut);
        let lacking: Vec<DcId> = self.config.others().filter(is_lacking).collect();
        let others: Vec<DcId> = self.others_in().collect();
        let turn = now.mono_us / 1_000 / self.config.tick_ms.max(1);
        if let Some(sibling) = others.get(turn as usize % others.len().max(1)) {
            for origin in lacking {
                self.ask(now, *sibling, origin);
            }
        }
    }

    /// True if a transaction of a fenced incarnation is not here and never will be.
    pub(super) fn is_gone(&self, query: &OutcomeQuery) -> bool {
        let OutcomeQuery { id, begun_us, dc, incarnation } = *query;
        let Some(cut) = self.members.cut_of(dc, incarnation) else { return false };
        self.known_vec[dc] >= cut
            && self.outcomes.blind()[dc] == Timestamp::ZERO
            && !self.outcomes.is_past(&id, begun_us)
    }
}

/// Returns the data centers of a bit set, without borrowing.
fn of_mask(mask: u8) -> impl Iterator<Item = DcId> + Clone {
    (0..DCS_MAX as u8).filter(move |dc| mask >> dc & 1 == 1).map(DcId)
}
