//! Which incarnation of which data center belongs to the system (`geo.md`, "Model").
//!
//! The unit of loss is the *incarnation* of a data center: what it was from when it was admitted until
//! it lost a disk, or was given up. [`Members`] is decided in the log of the first partition's group
//! ([`Entry::Fence`], [`Entry::Frozen`]), and every change of it begins a new *epoch*.
//!
//! An incarnation that is given up is *fenced* in steps, each an epoch. While it is
//! [`Fencing`](Standing::Fencing) the others take nothing of it any more, and each reports up to where
//! it has its transactions, at all partitions, on disk. Once enough have reported, the highest report
//! is the *cut*: what lies above it is dropped everywhere, and nothing above it is accepted. Until
//! enough have all that is below it, the incarnation is [`Settling`](Standing::Settling); then it is
//! [`Fenced`](Standing::Fenced), and the cut stands for good.
//!
//! Why that is right: a transaction is shown elsewhere only if it is uniform, so `f` data centers beside
//! its origin have it at all partitions and have said so. Of the `D - 1` others `D - f` report, which
//! leaves out `f - 1` at most: one that had it has reported. And each report is of whole transactions,
//! since it is the least of all partitions.
//!
//! And why the cut has to settle: the highest report may be that of one alone. Were that given up next,
//! nobody could ever reach the cut. So as long as fewer than `f` have reached it, the loss of the last one
//! that has begins the reports anew. What was shown meanwhile is uniform, so who is left reports it.
//!
//! The next incarnation of a data center is [admitted](Entry::Admit) after that, and begins an epoch too.
//! It comes with empty disks and takes over the state of another; its timestamps lie above the cut.
//!
//! Vectors mean something only together with the epoch: one from before a cut may reach above it. So
//! messages with vectors name the epoch of their sender, and in one epoch all mean the same.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::certify::Entry;
use crate::timestamp::{DcId, Timestamp};
use crate::vector::DCS_MAX;

/// How an incarnation stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Standing {
    /// It belongs to the system.
    #[default]
    In,
    /// It is given up: nothing new is taken of it.
    Fencing,
    /// It is cut off, for good.
    Fenced,
    /// It is cut off, and few have what is left of it: the cut may yet come to lie lower.
    Settling,
}

/// The incarnation of a data center.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Its number, from 0.
    pub incarnation: u32,
    /// How it stands.
    pub standing: Standing,
}

/// Where an incarnation was cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cut {
    /// The data center.
    pub dc: DcId,
    /// Which incarnation of it.
    pub incarnation: u32,
    /// Its transactions up to here stay, those above never were.
    pub at: Timestamp,
    /// The epoch that began with it.
    pub epoch: u32,
}

/// How many others have a say when an incarnation is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quorum {
    /// After so many reports it is cut off.
    pub reports: u8,
    /// Once so many have all that is left of it, the cut stands.
    pub holders: u8,
}

impl Quorum {
    /// Of a system of so many data centers, `f` of which may be lost.
    ///
    /// # Examples
    ///
    /// ```
    /// use mingle_geo::members::Quorum;
    ///
    /// assert_eq!(Quorum::of(3, 1), Quorum { reports: 2, holders: 1 });
    /// assert_eq!(Quorum::of(5, 2), Quorum { reports: 3, holders: 2 });
    /// ```
    pub fn of(dc_count: u8, f: u8) -> Self {
        // With f = 0 all the others show what is uniform to one alone.
        let others = dc_count.saturating_sub(1).max(1);
        let reports = dc_count.saturating_sub(f).clamp(1, others);
        Self { reports, holders: f.clamp(1, reports) }
    }
}

/// Who belongs to the system. A decided fact: anyone may hand it on.
///
/// # Examples
///
/// ```
/// use mingle_geo::certify::Entry;
/// use mingle_geo::members::{Membership, Quorum, Standing};
/// use mingle_geo::{DcId, Timestamp};
///
/// let mut log = Membership::default();
/// let (dc, incarnation) = (DcId(0), 0);
/// log.apply(&Entry::Fence { dc, incarnation, quorum: Quorum::of(3, 1) });
/// for (by, known) in [(DcId(1), Timestamp(5)), (DcId(2), Timestamp(9))] {
///     assert_eq!(log.members().of(dc).standing, Standing::Fencing);
///     log.apply(&Entry::Frozen { dc, incarnation, by, known, epoch: 1 });
/// }
/// assert_eq!(log.members().cut_of(dc, incarnation), Some(Timestamp(9)));
/// assert_eq!(log.members().epoch(), 2);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Members {
    epoch: u32,
    /// Those of whom there is something to say.
    dcs: BTreeMap<DcId, Member>,
    cuts: Vec<Cut>,
}

impl Members {
    /// Counts the changes.
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// The newest incarnation of a data center.
    pub fn of(&self, dc: DcId) -> Member {
        self.dcs.get(&dc).copied().unwrap_or_default()
    }

    /// Whether a data center's newest incarnation belongs to the system.
    pub fn is_in(&self, dc: DcId) -> bool {
        self.of(dc).standing == Standing::In
    }

    /// Whether this incarnation was given up.
    pub fn is_over(&self, dc: DcId, incarnation: u32) -> bool {
        let member = self.of(dc);
        incarnation < member.incarnation
            || incarnation == member.incarnation && member.standing != Standing::In
    }

    /// The data centers of which a later incarnation than the first belongs to the system.
    pub(crate) fn admitted(&self) -> Vec<(DcId, u32)> {
        let members = self.dcs.iter().map(|(dc, member)| (*dc, member.incarnation));
        members.filter(|(_, incarnation)| *incarnation > 0).collect()
    }

    /// Where an incarnation was cut off for good, if it was.
    pub fn cut_of(&self, dc: DcId, incarnation: u32) -> Option<Timestamp> {
        self.bound_of(dc, incarnation).filter(|_| self.stands(dc, incarnation))
    }

    /// The cuts that stand, and that vectors of this epoch do not know of.
    pub fn cuts_after(&self, epoch: u32) -> impl Iterator<Item = &Cut> {
        self.bounds_after(epoch).filter(|cut| self.stands(cut.dc, cut.incarnation))
    }

    /// [`cut_of`](Self::cut_of), also of one that is settling.
    pub(crate) fn bound_of(&self, dc: DcId, incarnation: u32) -> Option<Timestamp> {
        let mut cuts = self.cuts.iter();
        cuts.find(|cut| (cut.dc, cut.incarnation) == (dc, incarnation)).map(|cut| cut.at)
    }

    /// [`cuts_after`](Self::cuts_after), also of those that are settling.
    pub(crate) fn bounds_after(&self, epoch: u32) -> impl Iterator<Item = &Cut> {
        self.cuts.iter().filter(move |cut| cut.epoch > epoch)
    }

    /// Whether where an incarnation was cut off does not change any more.
    fn stands(&self, dc: DcId, incarnation: u32) -> bool {
        let member = self.of(dc);
        incarnation < member.incarnation || member.standing == Standing::Fenced
    }

    /// Whether it speaks of nothing that there cannot be.
    pub(crate) fn is_sound(&self, dc_count: u8) -> bool {
        let named = self.dcs.keys().chain(self.cuts.iter().map(|cut| &cut.dc));
        named.into_iter().all(|dc| dc.0 < dc_count && usize::from(dc.0) < DCS_MAX)
            && self.cuts.iter().all(|cut| cut.epoch <= self.epoch)
    }

    fn change(&mut self, dc: DcId, member: Member) {
        self.epoch += 1;
        self.dcs.insert(dc, member);
    }

    /// An incarnation is cut off there, or not yet.
    fn bound(&mut self, dc: DcId, incarnation: u32, at: Option<Timestamp>) {
        let epoch = self.epoch;
        self.cuts.retain(|cut| (cut.dc, cut.incarnation) != (dc, incarnation));
        self.cuts.extend(at.map(|at| Cut { dc, incarnation, at, epoch }));
    }
}

/// What the log of the first partition says of members, in full.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Membership {
    members: Members,
    /// Of those that are being fenced, or settle.
    reports: BTreeMap<DcId, Reports>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Reports {
    quorum: Quorum,
    /// What was reported in an epoch before this one does not count.
    since: u32,
    /// By who reports, and is not given up itself. Of one that settles: who has reached the cut.
    known: BTreeMap<DcId, Timestamp>,
}

impl Membership {
    /// Who belongs to the system.
    pub fn members(&self) -> &Members {
        &self.members
    }

    /// What goes on from these members where no log is kept: whoever is being fenced, or settles, is
    /// reported on anew. A report that was given before is given again, or a lower one: nobody takes
    /// anything more of that incarnation.
    pub fn resume(members: Members, quorum: Quorum) -> Self {
        let is_awaited =
            |member: &Member| matches!(member.standing, Standing::Fencing | Standing::Settling);
        let awaited = members.dcs.iter().filter(|(_, member)| is_awaited(member));
        let (since, known) = (members.epoch, BTreeMap::new());
        let reports = awaited.map(|(dc, _)| (*dc, Reports { quorum, since, known: known.clone() }));
        Self { reports: reports.collect(), members }
    }

    /// Follows an entry of the log. One that says nothing of members, or comes too late, has no effect.
    pub fn apply(&mut self, entry: &Entry) {
        match *entry {
            Entry::Fence { dc, incarnation, quorum } => {
                let member = Member { incarnation, standing: Standing::In };
                if self.members.of(dc) == member {
                    let standing = Standing::Fencing;
                    self.members.change(dc, Member { standing, ..member });
                    self.leave_out(dc);
                    let (since, known) = (self.members.epoch, BTreeMap::new());
                    self.reports.insert(dc, Reports { quorum, since, known });
                }
            }
            Entry::Frozen { dc, by, known, .. } if !self.has(entry) => self.report(dc, by, known),
            Entry::Admit { dc, incarnation } => {
                let before = incarnation.checked_sub(1);
                let standing = Standing::Fenced;
                if before.map(|incarnation| Member { incarnation, standing })
                    == Some(self.members.of(dc))
                {
                    self.members.change(dc, Member { incarnation, standing: Standing::In });
                }
            }
            _ => {}
        }
    }

    fn report(&mut self, dc: DcId, by: DcId, known: Timestamp) {
        let Some(reports) = self.reports.get_mut(&dc) else { return };
        let member = self.members.of(dc);
        let is_cut = member.standing == Standing::Settling;
        // What lies above the cut is dropped where it was.
        let bound = self.members.bound_of(dc, member.incarnation);
        reports.known.insert(by, known.min(bound.unwrap_or(known)));
        if !is_cut && reports.known.len() < usize::from(reports.quorum.reports) {
            return;
        }
        let at = reports.known.values().copied().max().unwrap_or_default();
        reports.known.retain(|_, known| *known == at);
        let standing = if reports.known.len() < usize::from(reports.quorum.holders) {
            Standing::Settling
        } else {
            self.reports.remove(&dc);
            Standing::Fenced
        };
        if standing == member.standing {
            return;
        }
        self.members.change(dc, Member { standing, ..member });
        if !is_cut {
            self.members.bound(dc, member.incarnation, Some(at));
        }
    }

    /// Reports of one that is given up itself count no more. Where nobody else has reached a cut that
    /// settles, reports begin anew.
    fn leave_out(&mut self, by: DcId) {
        let epoch = self.members.epoch;
        for (dc, reports) in &mut self.reports {
            let member = self.members.of(*dc);
            reports.known.remove(&by);
            if member.standing == Standing::Settling && reports.known.is_empty() {
                reports.since = epoch;
                self.members.dcs.insert(*dc, Member { standing: Standing::Fencing, ..member });
                self.members.bound(*dc, member.incarnation, None);
            }
        }
    }

    /// Whether the log has what an entry says, or that comes too late.
    pub fn has(&self, entry: &Entry) -> bool {
        match *entry {
            Entry::Fence { dc, incarnation, .. } => {
                let member = Member { incarnation, standing: Standing::In };
                self.members.of(dc) != member
            }
            Entry::Frozen { dc, incarnation, by, known, epoch } => {
                let bound = self.members.bound_of(dc, incarnation);
                // One that was given up meanwhile has lost what it said, whoever is in its place.
                let mut cuts = self.members.cuts.iter();
                let is_lost = cuts.any(|cut| cut.dc == by && cut.epoch >= epoch);
                let is_awaited = self.members.of(dc).incarnation == incarnation
                    && (by != dc && self.members.is_in(by) && !is_lost)
                    && self.reports.get(&dc).is_some_and(|reports| {
                        epoch >= reports.since && !reports.known.contains_key(&by)
                    })
                    && bound.is_none_or(|at| known >= at);
                !is_awaited
            }
            Entry::Admit { dc, incarnation } => self.members.of(dc).incarnation >= incarnation,
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const D0: DcId = DcId(0);

    fn fence(incarnation: u32) -> Entry {
        Entry::Fence { dc: D0, incarnation, quorum: Quorum::of(3, 1) }
    }

    fn frozen(by: u8, known: u64) -> Entry {
        frozen_in(1, by, known)
    }

    /// A report in that epoch.
    fn frozen_in(epoch: u32, by: u8, known: u64) -> Entry {
        Entry::Frozen { dc: D0, incarnation: 0, by: DcId(by), known: Timestamp(known), epoch }
    }

    /// Of five data centers one is given up.
    fn fence_of_five(dc: u8) -> Entry {
        Entry::Fence { dc: DcId(dc), incarnation: 0, quorum: Quorum::of(5, 2) }
    }

    fn standing(log: &Membership) -> Standing {
        log.members().of(D0).standing
    }

    fn after(entries: &[Entry]) -> Membership {
        let mut log = Membership::default();
        for entry in entries {
            log.apply(entry);
        }
        log
    }

    #[test]
    fn the_cut_is_the_highest_of_the_first_reports() {
        let log = after(&[fence(0), frozen(2, 7), frozen(1, 3), frozen(3, 9)]);
        assert_eq!(log.members().cut_of(D0, 0), Some(Timestamp(7)));
        assert_eq!(log.members().epoch(), 2);
        assert!(log.members().is_over(D0, 0) && !log.members().is_over(D0, 1));
        assert_eq!(log.members().cuts_after(1).count(), 1);
        assert_eq!(log.members().cuts_after(2).count(), 0);
    }

    #[test]
    fn nobody_reports_twice_nor_on_itself() {
        let log = after(&[fence(0), frozen(1, 3), frozen(1, 8), frozen(0, 9)]);
        assert_eq!(log.members().of(D0).standing, Standing::Fencing);
        assert!(log.has(&frozen(1, 3)) && !log.has(&frozen(2, 3)));
    }

    #[test]
    fn what_comes_too_late_or_too_early_has_no_effect() {
        for entries in [vec![frozen(1, 3), frozen(2, 3)], vec![fence(1)], Vec::new()] {
            assert_eq!(after(&entries).members(), &Members::default());
        }
        let fenced = [fence(0), frozen(1, 3), frozen(2, 4)];
        let again = [fence(0), frozen(1, 3), frozen(2, 4), fence(0), frozen(3, 9)];
        assert_eq!(after(&fenced), after(&again));
        assert!(after(&fenced).has(&fence(0)));
    }

    #[test]
    fn only_the_next_incarnation_is_admitted_and_only_after_a_cut() {
        let admit = |incarnation| Entry::Admit { dc: D0, incarnation };
        for entries in [vec![admit(0), admit(1)], vec![fence(0), admit(1)]] {
            assert_eq!(after(&entries).members().of(D0).incarnation, 0);
        }
        let log = after(&[fence(0), frozen(1, 3), frozen(2, 4), admit(2), admit(1), fence(0)]);
        let members = log.members();
        assert_eq!(members.of(D0), Member { incarnation: 1, standing: Standing::In });
        assert_eq!((members.epoch(), members.cut_of(D0, 0)), (3, Some(Timestamp(4))));
        assert_eq!(members.admitted(), [(D0, 1)]);
        assert!(members.is_over(D0, 0) && !members.is_over(D0, 1));
        assert!(log.has(&admit(1)) && !log.has(&admit(2)) && !log.has(&fence(1)));
    }

    #[test]
    fn what_goes_on_from_members_asks_for_reports_anew() {
        let before = after(&[fence(0), frozen(1, 3)]);
        let quorum = Quorum::of(3, 1);
        let mut log = Membership::resume(before.members().clone(), quorum);
        log.apply(&frozen(2, 7));
        assert_eq!(log.members().of(D0).standing, Standing::Fencing);
        log.apply(&frozen(1, 3));
        assert_eq!(log.members().cut_of(D0, 0), Some(Timestamp(7)));
        let resumed = Membership::resume(log.members().clone(), quorum);
        assert_eq!(resumed, log, "there is nothing to be reported");
    }

    #[test]
    fn a_cut_that_one_alone_has_reached_does_not_stand() {
        let reports = [fence_of_five(0), frozen(1, 9), frozen(2, 5), frozen(3, 7)];
        let mut log = after(&reports);
        assert_eq!(standing(&log), Standing::Settling);
        assert_eq!((log.members().cut_of(D0, 0), log.members().cuts_after(0).count()), (None, 0));
        assert_eq!(log.members().bound_of(D0, 0), Some(Timestamp(9)));
        assert!(log.members().is_over(D0, 0));
        log.apply(&Entry::Admit { dc: D0, incarnation: 1 });
        // Too little, and who has said so already.
        for entry in [frozen_in(2, 2, 8), frozen_in(2, 1, 9)] {
            assert!(log.has(&entry));
            log.apply(&entry);
            assert_eq!((standing(&log), log.members().epoch()), (Standing::Settling, 2));
        }
        // One that had more drops it.
        for entry in [frozen_in(2, 2, 9), frozen(4, 11)] {
            let mut log = log.clone();
            assert!(!log.has(&entry));
            log.apply(&entry);
            assert_eq!((standing(&log), log.members().epoch()), (Standing::Fenced, 3));
            assert_eq!(log.members().cut_of(D0, 0), Some(Timestamp(9)));
            // Vectors were clipped when it was cut off.
            assert_eq!(log.members().cuts_after(2).count(), 0);
        }
    }

    #[test]
    fn what_an_incarnation_said_is_not_said_by_the_next() {
        let (dc, incarnation) = (DcId(1), 0);
        let cut_off = |by, epoch| Entry::Frozen { dc, incarnation, by, known: Timestamp(1), epoch };
        let mut log = after(&[fence_of_five(0), fence_of_five(1)]);
        for by in [2, 3, 4] {
            log.apply(&cut_off(DcId(by), 2));
        }
        log.apply(&Entry::Admit { dc, incarnation: 1 });
        assert!(log.members().is_in(dc));
        assert!(log.has(&frozen_in(2, 1, 9)), "it comes late");
        assert!(!log.has(&frozen_in(4, 1, 5)));
    }

    #[test]
    fn a_cut_that_nobody_can_reach_any_more_is_agreed_on_anew() {
        let reports = [fence_of_five(0), frozen(1, 9), frozen(2, 5), frozen(3, 7)];
        let mut log = after(&reports);
        log.apply(&fence_of_five(2));
        assert_eq!(standing(&log), Standing::Settling, "another has all of it");
        log.apply(&fence_of_five(1));
        assert_eq!((standing(&log), log.members().epoch()), (Standing::Fencing, 4));
        assert_eq!(log.members().bound_of(D0, 0), None);
        // A report of before does not count: more may have been taken since.
        assert!(log.has(&frozen_in(3, 3, 7)));
        for entry in [frozen_in(3, 3, 7), frozen_in(4, 3, 8), frozen_in(4, 4, 8)] {
            log.apply(&entry);
        }
        assert_eq!(standing(&log), Standing::Fencing);
        // The data center that is given up itself says nothing, and its next incarnation may.
        let Some(reports) = log.reports.get(&DcId(2)) else { panic!("{log:?}") };
        let quorum = Quorum { reports: 2, ..reports.quorum };
        let mut resumed = Membership::resume(log.members().clone(), quorum);
        for by in [3, 4] {
            resumed.apply(&frozen_in(4, by, 8));
        }
        assert_eq!(resumed.members().cut_of(D0, 0), Some(Timestamp(8)));
        assert_eq!(resumed.members().cuts_after(3).count(), 1);
    }

    #[test]
    fn who_is_given_up_itself_does_not_report() {
        let quorum = Quorum::of(3, 1);
        let other = Entry::Fence { dc: DcId(1), incarnation: 0, quorum };
        let log = after(&[fence(0), other, frozen(1, 3), frozen(2, 4)]);
        assert_eq!(log.members().of(D0).standing, Standing::Fencing);
    }
}
