//! The incarnations of data centers that belong to the system (`geo.md`, "Model").
//!
//! The unit of loss is the *incarnation* of a data center: its life from its admission until it
//! loses a disk or is given up. The log of the first partition's group decides [`Members`]
//! ([`Entry::Fence`], [`Entry::Frozen`]). Each change begins a new *epoch*.
//!
//! An incarnation that is given up is *fenced* in steps, and each step is an epoch. While it is
//! [`Fencing`](Standing::Fencing), the other data centers accept no more of its transactions. Each
//! reports the timestamp up to which it has them on disk at all partitions. Once enough have
//! reported, the highest report becomes the *cut*: transactions above it are dropped everywhere and
//! never accepted again. The incarnation is [`Settling`](Standing::Settling) until enough data
//! centers have all up to the cut. Then it is [`Fenced`](Standing::Fenced): the cut is final.
//!
//! Why this is correct: a transaction is shown elsewhere only if it is uniform. So `f` data centers
//! besides its origin have it at all partitions and have said so. `D - f` of the `D - 1` others
//! report, which leaves out at most `f - 1`, so at least one data center that had it has reported.
//! Each report covers whole transactions, since it is the minimum over all partitions.
//!
//! Why the cut has to settle: if only one data center reported it and were given up next, no other
//! could ever reach it. So while fewer than `f` have reached it, the loss of the last one restarts
//! the reports. Transactions shown meanwhile are uniform, so the remaining data centers report them.
//!
//! Then the next incarnation of the data center can be [admitted](Entry::Admit), which also begins
//! an epoch. It copies another's state to its empty disks. Its timestamps are above the cut.
//!
//! Vectors have a meaning only together with their epoch: a vector from before a cut may reach
//! above it. So messages with vectors name their epoch; in one epoch all vectors mean the same.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::certify::Entry;
use crate::timestamp::{DcId, Timestamp};
use crate::vector::DCS_MAX;

/// The standing of an incarnation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Standing {
    /// It belongs to the system.
    #[default]
    In,
    /// It is being given up: no new transactions of it are accepted.
    Fencing,
    /// It is cut off, and the cut is final.
    Fenced,
    /// It is cut off, but few data centers have all up to the cut, so it may be lowered.
    Settling,
}

/// The incarnation of a data center.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Its number, from 0.
    pub incarnation: u32,
    /// Its standing.
    pub standing: Standing,
}

/// The cut of an incarnation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cut {
    /// The data center.
    pub dc: DcId,
    /// The incarnation.
    pub incarnation: u32,
    /// Its transactions up to here stay; those above are dropped.
    pub at: Timestamp,
    /// The epoch that began with the cut.
    pub epoch: u32,
}

/// The numbers of other data centers that are needed to give up an incarnation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quorum {
    /// The number of reports after which it is cut off.
    pub reports: u8,
    /// The number of data centers that must have everything up to the cut before it is final.
    pub holders: u8,
}

impl Quorum {
    /// Computes the quorum for `dc_count` data centers, `f` of which may be lost.
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
        // With f = 0 only one other may have seen a transaction, so all others must report.
        let others = dc_count.saturating_sub(1).max(1);
        let reports = dc_count.saturating_sub(f).clamp(1, others);
        Self { reports, holders: f.clamp(1, reports) }
    }
}

/// The incarnations that belong to the system: a decided fact, which any process may pass on.
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
    /// The data centers with an entry of the log about them.
    dcs: BTreeMap<DcId, Member>,
    cuts: Vec<Cut>,
}

impl Members {
    /// Returns the epoch, which counts the changes.
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Returns the newest incarnation of a data center.
    pub fn of(&self, dc: DcId) -> Member {
        self.dcs.get(&dc).copied().unwrap_or_default()
    }

    /// True if a data center's newest incarnation belongs to the system.
    pub fn is_in(&self, dc: DcId) -> bool {
        self.of(dc).standing == Standing::In
    }

    /// True if this incarnation was given up.
    pub fn is_over(&self, dc: DcId, incarnation: u32) -> bool {
        let member = self.of(dc);
        incarnation < member.incarnation
            || incarnation == member.incarnation && member.standing != Standing::In
    }

    /// Returns the data centers whose incarnation is later than the first.
    pub(crate) fn admitted(&self) -> Vec<(DcId, u32)> {
        let members = self.dcs.iter().map(|(dc, member)| (*dc, member.incarnation));
        members.filter(|(_, incarnation)| *incarnation > 0).collect()
    }

    /// Returns the final cut of an incarnation, if there is one.
    pub fn cut_of(&self, dc: DcId, incarnation: u32) -> Option<Timestamp> {
        self.bound_of(dc, incarnation).filter(|_| self.stands(dc, incarnation))
    }

    /// Returns the final cuts that are unknown to vectors of this epoch.
    pub fn cuts_after(&self, epoch: u32) -> impl Iterator<Item = &Cut> {
        self.bounds_after(epoch).filter(|cut| self.stands(cut.dc, cut.incarnation))
    }

    /// Like [`cut_of`](Self::cut_of), but includes a cut that is settling.
    pub(crate) fn bound_of(&self, dc: DcId, incarnation: u32) -> Option<Timestamp> {
        let mut cuts = self.cuts.iter();
        cuts.find(|cut| (cut.dc, cut.incarnation) == (dc, incarnation)).map(|cut| cut.at)
    }

    /// Like [`cuts_after`](Self::cuts_after), but includes cuts that are settling.
    pub(crate) fn bounds_after(&self, epoch: u32) -> impl Iterator<Item = &Cut> {
        self.cuts.iter().filter(move |cut| cut.epoch > epoch)
    }

    /// True if the cut of an incarnation is final.
    fn stands(&self, dc: DcId, incarnation: u32) -> bool {
        let member = self.of(dc);
        incarnation < member.incarnation || member.standing == Standing::Fenced
    }

    /// True if all data centers and epochs in it are possible.
    pub(crate) fn is_sound(&self, dc_count: u8) -> bool {
        let named = self.dcs.keys().chain(self.cuts.iter().map(|cut| &cut.dc));
        named.into_iter().all(|dc| dc.0 < dc_count && usize::from(dc.0) < DCS_MAX)
            && self.cuts.iter().all(|cut| cut.epoch <= self.epoch)
    }

    fn change(&mut self, dc: DcId, member: Member) {
        self.epoch += 1;
        self.dcs.insert(dc, member);
    }

    /// Sets the cut of an incarnation, or removes it.
    fn bound(&mut self, dc: DcId, incarnation: u32, at: Option<Timestamp>) {
        let epoch = self.epoch;
        self.cuts.retain(|cut| (cut.dc, cut.incarnation) != (dc, incarnation));
        self.cuts.extend(at.map(|at| Cut { dc, incarnation, at, epoch }));
    }
}

/// The full state of membership, computed from the log of the first partition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Membership {
    members: Members,
    /// The reports on data centers that are being fenced or are settling.
    reports: BTreeMap<DcId, Reports>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Reports {
    quorum: Quorum,
    /// Reports of epochs before this one do not count.
    since: u32,
    /// By reporting member; while the cut settles, only members that have reached it.
    known: BTreeMap<DcId, Timestamp>,
}

impl Membership {
    /// Returns the members.
    pub fn members(&self) -> &Members {
        &self.members
    }

    /// Continues from these members where no log is kept. The reports on each data center that is
    /// being fenced or is settling begin anew. A reporter then gives the same report as before or a
    /// lower one, since no data center accepts more of that incarnation.
    pub fn resume(members: Members, quorum: Quorum) -> Self {
        let is_awaited =
            |member: &Member| matches!(member.standing, Standing::Fencing | Standing::Settling);
        let awaited = members.dcs.iter().filter(|(_, member)| is_awaited(member));
        let (since, known) = (members.epoch, BTreeMap::new());
        let reports = awaited.map(|(dc, _)| (*dc, Reports { quorum, since, known: known.clone() }));
        Self { reports: reports.collect(), members }
    }

    /// Applies an entry of the log. Entries that are late or do not concern members have no effect.
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
        // The reporter drops everything above the cut.
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

    /// Removes the reports of a data center that is itself given up. If no other data center has
    /// reached a settling cut, the reports begin anew.
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

    /// True if the log already has the content of an entry, or the entry comes too late.
    pub fn has(&self, entry: &Entry) -> bool {
        match *entry {
            Entry::Fence { dc, incarnation, .. } => {
                let member = Member { incarnation, standing: Standing::In };
                self.members.of(dc) != member
            }
            Entry::Frozen { dc, incarnation, by, known, epoch } => {
                let bound = self.members.bound_of(dc, incarnation);
                // A reporter that was given up has lost its data; its successor does not count.
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

    /// A report in `epoch`.
    fn frozen_in(epoch: u32, by: u8, known: u64) -> Entry {
        Entry::Frozen { dc: D0, incarnation: 0, by: DcId(by), known: Timestamp(known), epoch }
    }

    /// One of five data centers is given up.
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
        // One report is too low, and the other reporter has reported before.
        for entry in [frozen_in(2, 2, 8), frozen_in(2, 1, 9)] {
            assert!(log.has(&entry));
            log.apply(&entry);
            assert_eq!((standing(&log), log.members().epoch()), (Standing::Settling, 2));
        }
        // A reporter that had more drops the excess.
        for entry in [frozen_in(2, 2, 9), frozen(4, 11)] {
            let mut log = log.clone();
            assert!(!log.has(&entry));
            log.apply(&entry);
            assert_eq!((standing(&log), log.members().epoch()), (Standing::Fenced, 3));
            assert_eq!(log.members().cut_of(D0, 0), Some(Timestamp(9)));
            // Vectors were clipped when the cut was set, one epoch earlier.
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
        // A report of an earlier epoch does not count: the reporter may have accepted more since.
        assert!(log.has(&frozen_in(3, 3, 7)));
        for entry in [frozen_in(3, 3, 7), frozen_in(4, 3, 8), frozen_in(4, 4, 8)] {
            log.apply(&entry);
        }
        assert_eq!(standing(&log), Standing::Fencing);
        // A data center that is given up itself does not report; its next incarnation may.
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
