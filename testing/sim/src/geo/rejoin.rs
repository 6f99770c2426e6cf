//! Data centers that were given up and are readmitted as their next incarnations, with empty disks.
//!
//! Separate random sources draw all of this, so a run without it is unchanged.

mod draw;

use mingle_checker::geo::FaultKind;
use mingle_geo::message::{Admit, Message};
use mingle_geo::{Certification, DcId, SessionConfig};
use mingle_model::random::{Random, mix};

use super::client::Stage;
use super::fault::{Event, Fault, Kept};
use super::reach::Seen;
use super::setup::{Setup, within};
use super::world::{Happening, KEEPER, Parcel, World};

pub(super) use draw::draw;

/// The interval between repeated requests and checks of an admission, in microseconds.
const AGAIN_US: u64 = 30_000;

/// The maximum number of an incarnation's messages that are kept for late delivery.
const LATE_MAX: usize = 60;

/// One message in `LATE_ONE_IN` is kept.
const LATE_ONE_IN: usize = 12;

/// One client in `GOES_ONE_IN` moves to a data center that is back.
const GOES_ONE_IN: usize = 3;

/// The number of incarnations that the checkers can distinguish.
const COLUMNS_MAX: usize = mingle_checker::geo::DCS_MAX;

/// The progress of an admission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The previous incarnation is not cut off yet.
    Waits,
    /// The other data centers are being asked.
    Asks,
    /// The incarnation is a member, and takes over the others' state.
    ComesUp,
}

#[derive(Clone, Copy, Debug)]
struct Admission {
    dc: u8,
    step: Step,
    /// The data centers to ask, as bits; a random living one if there are none.
    asked: u8,
    is_early: bool,
}

/// The state of the admissions.
pub(super) struct Rejoin {
    random: Random,
    /// The incarnation started last, by data center.
    pub incarnations: Vec<u32>,
    under_way: Vec<Admission>,
    /// The data centers with an admission in the schedule, as bits.
    planned: u8,
    /// The data centers that run again and have not come up yet, as bits.
    coming: u8,
    /// The recorded fault of giving up each data center.
    pub noted: Vec<Option<usize>>,
    late: Vec<Parcel>,
}

impl Rejoin {
    pub fn new(seed: u64, setup: &Setup, schedule: &[Event]) -> Self {
        let planned = schedule.iter().fold(0, |set, event| match event {
            Event::Fault { fault: Fault::Admit { dc, .. }, .. } => set | 1 << dc,
            _ => set,
        });
        let dcs = usize::from(setup.config.dc_count);
        Self {
            random: Random::new(mix(seed ^ 0x00ad_3177)),
            incarnations: vec![0; dcs],
            under_way: Vec::new(),
            planned,
            coming: 0,
            noted: vec![None; dcs],
            late: Vec::new(),
        }
    }
}

impl World<'_> {
    /// Returns the current incarnation of a data center.
    pub(super) fn incarnation_at(&self, dc: u8) -> (u8, u32) {
        (dc, self.rejoin.incarnations[usize::from(dc)])
    }

    /// True if no replica of a data center runs or may run again: it is lost and not coming up.
    pub(super) fn is_gone(&self, dc: u8) -> bool {
        self.is_lost(dc) && self.rejoin.coming >> dc & 1 == 0
    }

    /// True if a data center runs again and has not come up yet.
    pub(super) fn is_coming(&self, dc: u8) -> bool {
        self.rejoin.coming >> dc & 1 == 1
    }

    /// True if the data center that a client uses is lost or replaced by another incarnation.
    pub(super) fn is_left(&self, slot: usize) -> bool {
        let session = &self.clients[slot].session;
        let dc = session.dc().0;
        let newest = self.rejoin.incarnations[usize::from(dc)];
        self.is_lost(dc) || session.token().incarnation < newest
    }

    pub(super) fn has_rejoined(&self) -> bool {
        self.rejoin.incarnations.iter().any(|incarnation| *incarnation > 0)
    }

    /// True if a data center is still to be admitted or to come up.
    pub(super) fn is_admitting(&self) -> bool {
        !self.rejoin.under_way.is_empty()
    }

    pub(super) fn session_config(&self, id: u64, dc: u8, is_durable: bool) -> SessionConfig {
        let incarnation = self.rejoin.incarnations[usize::from(dc)];
        SessionConfig { incarnation, ..self.plan.session_config(id, dc, is_durable) }
    }

    /// Begins the admission of the next incarnation of a data center.
    pub(super) fn begin_admit(&mut self, dc: u8, asked: u8, is_early: bool) {
        let is_under_way = |admission: &Admission| admission.dc == dc;
        if self.rejoin.under_way.iter().any(is_under_way) {
            return;
        }
        self.rejoin.under_way.push(Admission { dc, step: Step::Waits, asked, is_early });
        self.go_on_admitting(dc);
    }

    /// Performs the next step of an admission if it is due.
    pub(super) fn go_on_admitting(&mut self, dc: u8) {
        let mut under_way = std::mem::take(&mut self.rejoin.under_way);
        let place = under_way.iter().position(|admission| admission.dc == dc);
        if let Some(place) = place
            && !self.is_admitted(&mut under_way[place])
        {
            self.queue.push(self.now_us + AGAIN_US, Happening::Admit { dc });
        } else if let Some(place) = place {
            under_way.remove(place);
        }
        self.rejoin.under_way = under_way;
    }

    /// Advances an admission; true if it is over.
    fn is_admitted(&mut self, admission: &mut Admission) -> bool {
        let Admission { dc, asked, is_early, .. } = *admission;
        let incarnation = self.rejoin.incarnations[usize::from(dc)];
        match admission.step {
            Step::Waits => {
                if self.fencing >> dc & 1 == 1 {
                    return false;
                }
                if !self.recorder.columns.is_cut((dc, incarnation)) {
                    // The data center has not been given up.
                    return true;
                }
                let next = (dc, incarnation + 1);
                self.recorder.columns.admit(next, self.now_us);
                if is_early {
                    self.start_anew(dc);
                }
                admission.step = Step::Asks;
                self.ask_to_admit(next, asked);
            }
            Step::Asks => {
                let next = if is_early { incarnation } else { incarnation + 1 };
                let mut replicas = self.nodes.iter().filter_map(|node| node.replica());
                let is_in =
                    |members: &mingle_geo::Members| members.of(DcId(dc)).incarnation >= next;
                if !replicas.any(|replica| is_in(replica.replica().members())) {
                    self.ask_to_admit((dc, next), asked);
                    return false;
                }
                if !is_early {
                    self.start_anew(dc);
                }
                self.admitted((dc, next), asked);
                admission.step = Step::ComesUp;
            }
            Step::ComesUp => {
                let has_come_up = self.has_come_up(dc);
                if has_come_up {
                    self.come_up(dc);
                }
                return has_come_up;
            }
        }
        false
    }

    fn ask_to_admit(&mut self, (dc, incarnation): (u8, u32), asked: u8) {
        let living: Vec<u8> = self.living().filter(|other| *other != dc).collect();
        let chosen = living.iter().filter(|other| asked >> **other & 1 == 1);
        let mut chosen: Vec<u8> = chosen.copied().collect();
        if chosen.is_empty() {
            chosen.push(*self.rejoin.random.pick(&living));
        }
        if chosen.len() > 1 {
            self.reach.saw(Seen::AdmitAskedOften);
        }
        for other in chosen {
            let admit = Admit { request: 1, dc: DcId(dc), incarnation };
            let to = self.index_of(other, 0);
            self.send(self.nodes.len(), to, KEEPER, &Message::Admit(admit));
        }
    }

    /// Starts all replicas of a data center with empty disks.
    fn start_anew(&mut self, dc: u8) {
        self.rejoin.incarnations[usize::from(dc)] += 1;
        self.rejoin.coming |= 1 << dc;
        for index in 0..self.nodes.len() {
            if self.nodes[index].dc != dc {
                continue;
            }
            self.stop(index, Kept::Nothing);
            let node = &mut self.nodes[index];
            node.disk.clear();
            node.life += 1;
            node.incarnation += 1;
            (node.has_lost_disk, node.down, node.fails_next) = (false, 0, None);
            self.restart(index);
        }
    }

    /// Handles the agreement of the others on the admission.
    fn admitted(&mut self, (dc, incarnation): (u8, u32), asked: u8) {
        self.tell(|| format!("incarnation {incarnation} of d{dc} is admitted"));
        self.lost &= !(1 << dc);
        self.blame_healing();
        self.blame_for_ever(dc);
        // The messages that the previous incarnation sent and received arrive again.
        for _ in 0..self.rejoin.late.len() {
            let at_us = self.now_us + within(&mut self.rejoin.random, (0, 1_500_000));
            self.queue.push(at_us, Happening::Late);
        }
        if asked >> 7 == 1 {
            // One request is repeated at a data center that has already granted it.
            self.ask_to_admit((dc, incarnation), 0);
        }
    }

    /// Delivers one of the kept messages.
    pub(super) fn come_late(&mut self) {
        let Some(parcel) = self.rejoin.late.pop() else { return };
        self.reach.saw(Seen::RejoinedLate);
        let epoch = self.links.epoch(parcel.from, parcel.to);
        self.queue.push(self.now_us, Happening::Deliver { epoch, parcel });
    }

    fn has_come_up(&self, dc: u8) -> bool {
        let is_central = self.setup.config.certification == Certification::Central;
        let mut nodes = self.nodes.iter().filter(|node| node.dc == dc);
        nodes.all(|node| {
            node.replica().is_some_and(|replica| {
                let has_own_group = !is_central || node.partition == 0;
                let votes = replica.group().is_member() || !has_own_group;
                !replica.replica().is_coming_up() && votes
            })
        })
    }

    /// Records that a data center has come up and is a full member again.
    fn come_up(&mut self, dc: u8) {
        self.tell(|| format!("d{dc} has come up"));
        self.reach.saw(Seen::Rejoined);
        if self.is_troubled(dc) {
            self.reach.saw(Seen::RejoinedUnderFaults);
        }
        self.rejoin.coming &= !(1 << dc);
        if let Some(noted) = self.rejoin.noted[usize::from(dc)].take() {
            self.recorder.put_right(noted, self.now_us);
        }
        self.blame_healing();
        self.blame_no_longer(dc);
        for slot in 0..self.clients.len() {
            let is_asked = self.rejoin.random.one_in(GOES_ONE_IN);
            let client = &mut self.clients[slot];
            if is_asked && client.stage != Stage::Done {
                client.goes_to = Some(dc);
            }
        }
    }

    /// True if a scheduled fault may have disturbed the data center since its admission.
    fn is_troubled(&self, dc: u8) -> bool {
        let mut events = self.plan.schedule.iter();
        let at_us = events.find_map(|event| match event {
            Event::Fault { at_us, fault: Fault::Admit { dc: of, .. }, .. } if *of == dc => {
                Some(*at_us)
            }
            _ => None,
        });
        let Some(from_us) = at_us else { return false };
        self.plan.schedule.iter().any(|event| match event {
            Event::Fault { at_us, fault, .. } => {
                let is_then = (from_us..=self.now_us).contains(at_us);
                is_then
                    && matches!(
                        fault,
                        Fault::Crash { .. } | Fault::Cut { .. } | Fault::Lossy { .. }
                    )
            }
            Event::Act { .. } => false,
        })
    }

    /// Keeps a message from or to a data center that will be admitted again.
    pub(super) fn keep_for_late(&mut self, parcel: &Parcel) {
        let Parcel { from, to, is_ordered, .. } = *parcel;
        let is_planned = |end: usize| {
            self.nodes.get(end).is_some_and(|node| self.rejoin.planned >> node.dc & 1 == 1)
        };
        let is_kept =
            !is_ordered && self.rejoin.planned != 0 && (is_planned(from) || is_planned(to));
        if !is_kept || self.has_rejoined() || !self.rejoin.random.one_in(LATE_ONE_IN) {
            return;
        }
        let late = parcel.clone();
        if self.rejoin.late.len() < LATE_MAX {
            self.rejoin.late.push(late);
        } else {
            let place = self.rejoin.random.below(LATE_MAX);
            self.rejoin.late[place] = late;
        }
    }

    /// Records the coverage of readmitted data centers.
    pub(super) fn see_rejoined(&mut self) {
        let is_led = |node: &super::node::Node| {
            let replica = node.replica().filter(|_| node.incarnation > 0);
            replica.is_some_and(|replica| replica.group().is_leader())
        };
        if self.nodes.iter().any(is_led) {
            self.reach.saw(Seen::RejoinedLeads);
        }
    }

    /// Records that a data center is given up: until its readmission, clients need not wait for it.
    pub(super) fn note_given_up(&mut self, dc: u8) {
        let kind = FaultKind::Other { name: "given up".to_owned(), dcs: vec![dc] };
        let noted = self.recorder.wrong(kind, self.now_us);
        self.rejoin.noted[usize::from(dc)] = Some(noted);
        self.blame_for_ever(dc);
    }
}
