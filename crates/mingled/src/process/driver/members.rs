//! Data centers that an operator gives up and admits, and their states.

use std::collections::BTreeMap;
use std::sync::mpsc::Sender;

use mingle_geo::members::{Members, Quorum, Standing};
use mingle_geo::message::{Admit, Fence, MembersReply, Message};
use mingle_geo::wire::Parcel;
use mingle_geo::{Address, DcId, PartitionId, Refusal, StrongReplica, Timestamp};
use mingle_geo_node::Time as _;

use super::super::members::{Center, CenterState, ChangeError, GivenUp};
use super::super::progress::Progress;
use super::Driver;

/// The client number of the driver's own requests. Sessions count from 0.
pub const OPERATOR: u64 = u64::MAX;

/// The interval between repetitions of a request, in microseconds.
const AGAIN_US: u64 = 100_000;

/// The maximum time of a change, in microseconds.
const CHANGE_US_MAX: u64 = 20_000_000;

/// A change that an operator waits for.
#[derive(Debug)]
pub struct Change {
    dc: DcId,
    /// The incarnation to give up or to admit.
    incarnation: u32,
    caller: Caller,
    again_us: u64,
    deadline_us: u64,
}

#[derive(Debug)]
enum Caller {
    Fence(Sender<Result<GivenUp, ChangeError>>),
    Admit(Sender<Result<u32, ChangeError>>),
}

impl Caller {
    fn fail(&self, why: ChangeError) {
        // The caller may have gone away.
        match self {
            Self::Fence(caller) => _ = caller.send(Err(why)),
            Self::Admit(caller) => _ = caller.send(Err(why)),
        }
    }
}

/// The changes under way, and the states of the data centers.
#[derive(Debug, Default)]
pub struct Centers {
    changes: BTreeMap<u64, Change>,
    /// The number of the last request.
    requests: u64,
    /// Each state with the time at which it began, in milliseconds since 1970.
    states: BTreeMap<DcId, (CenterState, u64)>,
    /// The time of the first look, in microseconds since 1970.
    started_us: Option<u64>,
    /// The reason why the last connection with each data center ended; `None` is one that has not told
    /// its data center.
    pub ends: BTreeMap<Option<DcId>, String>,
}

impl Driver {
    fn members(&self) -> Members {
        let first = self.node.replica(PartitionId(0));
        first.map(|replica| replica.replica().members().clone()).unwrap_or_default()
    }

    /// True if this incarnation of the own data center is given up, as far as this process knows.
    pub(super) fn is_over(&self) -> bool {
        let first = self.node.replica(PartitionId(0));
        first.is_some_and(|replica| replica.replica().is_over())
    }

    /// Begins to give up a data center.
    pub(super) fn fence(
        &mut self,
        dc: DcId,
        is_forced: bool,
        caller: Sender<Result<GivenUp, ChangeError>>,
    ) {
        let member = self.members().of(dc);
        let is_new = member.standing == Standing::In;
        let checked = self.check_change(dc).and_then(|()| match member.standing {
            Standing::Fenced => Err(ChangeError::GivenUp { dc, incarnation: member.incarnation }),
            _ if is_new && !is_forced && self.links.connected().contains(&dc) => {
                Err(ChangeError::Connected(dc))
            }
            _ => self.check_quorum(dc),
        });
        self.begin_change(dc, member.incarnation, Caller::Fence(caller), checked);
    }

    /// Begins to admit a data center.
    pub(super) fn admit(&mut self, dc: DcId, caller: Sender<Result<u32, ChangeError>>) {
        let member = self.members().of(dc);
        let checked = self.check_change(dc).and_then(|()| match member.standing {
            Standing::Fenced => self.check_quorum(dc),
            Standing::In => Err(ChangeError::NotGivenUp(dc)),
            Standing::Fencing | Standing::Settling => Err(ChangeError::BeingGivenUp(dc)),
        });
        self.begin_change(dc, member.incarnation + 1, Caller::Admit(caller), checked);
    }

    fn begin_change(
        &mut self,
        dc: DcId,
        incarnation: u32,
        caller: Caller,
        checked: Result<(), ChangeError>,
    ) {
        if let Err(why) = checked {
            return caller.fail(why);
        }
        let now_us = self.machine.now().mono_us;
        let deadline_us = now_us + CHANGE_US_MAX;
        let change = Change { dc, incarnation, caller, again_us: now_us, deadline_us };
        self.centers.requests += 1;
        self.centers.changes.insert(self.centers.requests, change);
        self.go_on_changing();
    }

    fn check_change(&self, dc: DcId) -> Result<(), ChangeError> {
        let (own, count) = (self.settings.dc, self.settings.dc_count);
        if dc.0 >= count {
            return Err(ChangeError::Unknown { dc, count });
        }
        if dc == own {
            return Err(ChangeError::Own(dc));
        }
        let incarnation = self.settings.incarnation;
        if self.is_over() {
            return Err(ChangeError::Over { dc: own, incarnation });
        }
        Ok(())
    }

    /// Checks that enough other data centers are connected: a majority decides, and of those that are
    /// left enough must report the data that they have.
    fn check_quorum(&self, dc: DcId) -> Result<(), ChangeError> {
        let (count, members) = (self.settings.dc_count, self.members());
        let replica = self.node.replica(PartitionId(0));
        let f = replica.map_or(0, |replica| replica.replica().config().f);
        let reports = usize::from(Quorum::of(count, f).reports);
        let expected = reports.max(usize::from(count) / 2 + 1);
        let mut found = self.links.connected();
        found.push(self.settings.dc);
        found.retain(|other| *other != dc && members.is_in(*other));
        found.sort();
        if found.len() < expected {
            return Err(ChangeError::TooFew { dc, found, expected });
        }
        Ok(())
    }

    /// Asks for the changes under way, and answers those that are made.
    pub(super) fn go_on_changing(&mut self) {
        if self.centers.changes.is_empty() {
            return;
        }
        let now_us = self.machine.now().mono_us;
        let done = |change: &Change| {
            let mut members = self.node.replicas().map(|replica| replica.replica().members());
            members.all(|members| match change.caller {
                Caller::Fence(_) => members.cut_of(change.dc, change.incarnation).is_some(),
                Caller::Admit(_) => members.of(change.dc).incarnation >= change.incarnation,
            })
        };
        let all = self.centers.changes.iter();
        let ended = all.filter(|(_, it)| done(it) || it.deadline_us <= now_us);
        let ended: Vec<(u64, bool)> =
            ended.map(|(request, change)| (*request, done(change))).collect();
        for (request, is_made) in ended {
            let Some(change) = self.centers.changes.remove(&request) else { continue };
            self.end_change(&change, is_made);
        }
        let mut due = Vec::new();
        for (request, change) in &mut self.centers.changes {
            if change.again_us <= now_us {
                change.again_us = now_us + AGAIN_US;
                let (request, dc, incarnation) = (*request, change.dc, change.incarnation);
                due.push(match change.caller {
                    Caller::Fence(_) => Message::Fence(Fence { request, dc, incarnation }),
                    Caller::Admit(_) => Message::Admit(Admit { request, dc, incarnation }),
                });
            }
        }
        for message in due {
            let to = Address::Replica(self.settings.dc, PartitionId(0));
            let parcel = Parcel { from: Address::Client(OPERATOR), to, message };
            self.node.receive(parcel, &mut self.machine);
        }
    }

    fn end_change(&mut self, change: &Change, is_made: bool) {
        let Change { dc, incarnation, caller, .. } = change;
        let (dc, incarnation) = (*dc, *incarnation);
        // The caller may have gone away.
        match caller {
            _ if !is_made => {
                let mut heard = self.links.connected();
                heard.extend([self.settings.dc, dc]);
                let others = (0..self.settings.dc_count).map(DcId);
                let missing = others.filter(|other| !heard.contains(other)).collect();
                caller.fail(late(&self.members(), (dc, incarnation), missing));
            }
            Caller::Fence(caller) => {
                let cut = self.members().cut_of(dc, incarnation).unwrap_or_default();
                let cut_ms = cut.micros() / 1_000;
                self.note(format!("incarnation {incarnation} of {dc} is given up"));
                let _ = caller.send(Ok(GivenUp { dc, incarnation, cut_ms }));
            }
            Caller::Admit(caller) => {
                self.note(format!("incarnation {incarnation} of {dc} is admitted"));
                let _ = caller.send(Ok(incarnation));
            }
        }
    }

    /// Handles an answer to a request of the driver.
    pub(super) fn on_members_reply(&mut self, message: Message) {
        let Message::MembersReply(MembersReply { request, result: Err(refusal) }) = message else {
            return;
        };
        // A repetition may come after the change was made.
        let is_late = matches!(refusal, Refusal::NotMember { .. });
        let change = self.centers.changes.get(&request);
        if change.is_some_and(|change| !is_late || self.is_refused(change))
            && let Some(change) = self.centers.changes.remove(&request)
        {
            change.caller.fail(ChangeError::Refused(refusal));
        }
    }

    /// True if the group cannot make a change, as far as this replica knows.
    fn is_refused(&self, change: &Change) -> bool {
        let member = self.members().of(change.dc);
        match change.caller {
            Caller::Fence(_) => member.incarnation > change.incarnation,
            Caller::Admit(_) => {
                member.incarnation < change.incarnation && member.standing != Standing::Fenced
            }
        }
    }

    /// Notes the states that have changed.
    pub(super) fn see_centers(&mut self) {
        let (members, connected) = (self.members(), self.links.connected());
        let now_us = self.machine.now().wall_us;
        self.centers.started_us.get_or_insert(now_us);
        let now_ms = now_us / 1_000;
        for dc in (0..self.settings.dc_count).map(DcId) {
            let state = self.state_of(dc, &members, &connected);
            let is_same = self.centers.states.get(&dc).is_some_and(|(known, _)| *known == state);
            if !is_same {
                self.centers.states.insert(dc, (state, now_ms));
            }
            if state == CenterState::Connected {
                self.centers.ends.remove(&Some(dc));
            }
        }
    }

    fn state_of(&self, dc: DcId, members: &Members, connected: &[DcId]) -> CenterState {
        let own = self.settings.dc;
        match members.of(dc).standing {
            // It may not hear of the end of the change.
            _ if dc == own && self.is_over() => CenterState::Fenced,
            Standing::Fencing | Standing::Settling => CenterState::Fencing,
            Standing::Fenced => CenterState::Fenced,
            Standing::In if dc == own => {
                let mut replicas = self.node.replicas();
                let is_coming = replicas.any(|replica| replica.replica().is_coming_up());
                if is_coming { CenterState::ComingUp } else { CenterState::Here }
            }
            Standing::In if connected.contains(&dc) => CenterState::Connected,
            Standing::In => CenterState::Away,
        }
    }

    pub(super) fn progress(&self) -> Progress {
        let replicas = self.node.replicas().map(StrongReplica::replica);
        let now_us = self.machine.now().wall_us;
        Progress::of(replicas, now_us, self.centers.started_us.unwrap_or(now_us))
    }

    /// Returns all data centers.
    pub(super) fn centers(&mut self) -> Vec<Center> {
        self.see_centers();
        let members = self.members();
        let wall_us = self.machine.now().wall_us;
        let centers = self.centers.states.iter().map(|(dc, (state, since_ms))| {
            let known = self.node.replicas().map(|it| it.replica().known_vec()[*dc]);
            let known = known.min().filter(|known| *known != Timestamp::ZERO);
            let lag_ms = match state {
                CenterState::Here => Some(0),
                CenterState::Fenced | CenterState::Fencing => None,
                _ => known.map(|known| wall_us.saturating_sub(known.micros()) / 1_000),
            };
            let why = self.centers.ends.get(&Some(*dc)).cloned();
            let incarnation = members.of(*dc).incarnation;
            Center { dc: *dc, state: *state, since_ms: *since_ms, incarnation, lag_ms, why }
        });
        centers.collect()
    }
}

/// Returns why a change was not made in time; `missing` are the other data centers that are not connected.
fn late(members: &Members, (dc, incarnation): (DcId, u32), mut missing: Vec<DcId>) -> ChangeError {
    let ms = CHANGE_US_MAX / 1_000;
    let member = members.of(dc);
    missing.retain(|other| members.is_in(*other));
    let is_begun = member.incarnation == incarnation
        && matches!(member.standing, Standing::Fencing | Standing::Settling);
    if is_begun && !missing.is_empty() {
        ChangeError::Unreported { dc, missing, ms }
    } else {
        ChangeError::TimedOut { dc, ms }
    }
}

#[cfg(test)]
mod tests {
    use mingle_geo::certify::Entry;
    use mingle_geo::members::Membership;

    use super::*;

    #[test]
    fn a_missing_report_is_named() {
        let fence = |dc| Entry::Fence { dc: DcId(dc), incarnation: 0, quorum: Quorum::of(5, 2) };
        let mut log = Membership::default();
        let why = |log: &Membership, incarnation, missing: &[u8]| {
            let missing = missing.iter().copied().map(DcId).collect();
            late(log.members(), (DcId(4), incarnation), missing).to_string()
        };
        let on_time =
            "the others have not agreed on d4 within 20000 ms; the change may still be made";
        assert_eq!(why(&log, 0, &[3]), on_time, "it has not begun");
        log.apply(&fence(4));
        assert_eq!(why(&log, 0, &[]), on_time, "all are connected");
        assert_eq!(why(&log, 1, &[3]), on_time, "it is to be admitted");
        let expected = "d4 is being given up, but within 20000 ms no report came of what d1, d3 had of it; \
            the change is made once it comes, or once those are given up as well";
        assert_eq!(why(&log, 0, &[1, 3]), expected);
        log.apply(&fence(1));
        assert_eq!(why(&log, 0, &[1, 3]), expected.replace("d1, d3", "d3"), "d1 reports no more");
    }
}
