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
//! A data center that was lost and admitted again since may lack what its previous incarnation
//! counted for. So `D - f` of the reports must come from data centers that are still in their first
//! incarnation, or all that are left must report: if no more than `f` were lost, one of them has it.
//! The data center for which a cut still waits may be given up itself. So giving one up may also
//! begin the epochs of cuts of others.
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

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::certify::Entry;
use crate::flaw::{Flaw, Planted};
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
    /// The number of data centers that must have everything up to the cut before it is final, but
    /// no more than `reports`.
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
        Self { reports, holders: f.clamp(1, others) }
    }

    /// Returns the number of data centers besides the one to be given up.
    fn others(self) -> usize {
        (usize::from(self.reports) + usize::from(self.holders)).saturating_sub(1)
    }

    /// Returns the number of holders after which a cut is final.
    fn settled(self) -> usize {
        usize::from(self.holders.min(self.reports))
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

    /// Returns the number of reports after which `dc` is cut off if these members report; `by` names
    /// each of them once.
    ///
    /// # Examples
    ///
    /// Once the last of five data centers was lost and admitted again, its report does not count as
    /// one of the three, unless no other data center is left:
    ///
    /// ```
    /// use mingle_geo::DcId;
    /// use mingle_geo::certify::Entry;
    /// use mingle_geo::members::{Membership, Quorum};
    ///
    /// let (quorum, lost) = (Quorum::of(5, 2), DcId(4));
    /// let mut log = Membership::default();
    /// log.apply(&Entry::Fence { dc: lost, incarnation: 0, quorum });
    /// for by in [DcId(0), DcId(1), DcId(2)] {
    ///     let known = Default::default();
    ///     log.apply(&Entry::Frozen { dc: lost, incarnation: 0, by, known, epoch: 1 });
    /// }
    /// log.apply(&Entry::Admit { dc: lost, incarnation: 1 });
    /// let needed = |by: [u8; 3]| log.members().needed(DcId(1), quorum, by.map(DcId));
    /// assert_eq!((needed([0, 2, 3]), needed([0, 3, 4])), (3, 4));
    /// ```
    pub fn needed(&self, dc: DcId, quorum: Quorum, by: impl IntoIterator<Item = DcId>) -> usize {
        let reports = usize::from(quorum.reports);
        let later = by.into_iter().filter(|by| self.of(*by).incarnation > 0).count();
        let is_out =
            |(other, member): &(&DcId, &Member)| **other != dc && member.standing != Standing::In;
        let left = quorum.others().saturating_sub(self.dcs.iter().filter(is_out).count());
        (reports + later).min(left).max(reports)
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
        self.apply_with(entry, Planted::default());
    }

    /// Like [`apply`](Self::apply), with a mistake that may be planted.
    pub(crate) fn apply_with(&mut self, entry: &Entry, planted: Planted) {
        match *entry {
            Entry::Fence { dc, incarnation, quorum } => {
                let member = Member { incarnation, standing: Standing::In };
                if self.members.of(dc) == member {
                    let standing = Standing::Fencing;
                    self.members.change(dc, Member { standing, ..member });
                    self.leave_out(dc);
                    let (since, known) = (self.members.epoch, BTreeMap::new());
                    self.reports.insert(dc, Reports { quorum, since, known });
                    let awaited: Vec<DcId> = self.reports.keys().copied().collect();
                    for dc in awaited {
                        self.decide(dc, planted);
                    }
                }
            }
            Entry::Frozen { dc, by, known, .. } if !self.has(entry) => {
                self.report(dc, by, known);
                self.decide(dc, planted);
            }
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
        // The reporter drops everything above the cut.
        let bound = self.members.bound_of(dc, self.members.of(dc).incarnation);
        reports.known.insert(by, known.min(bound.unwrap_or(known)));
    }

    /// Cuts off a data center once enough have reported, and makes the cut final once enough have
    /// reached it.
    fn decide(&mut self, dc: DcId, planted: Planted) {
        let Some(reports) = self.reports.get_mut(&dc) else { return };
        let member = self.members.of(dc);
        let is_cut = member.standing == Standing::Settling;
        let needed = if planted.is(Flaw::SuccessorReports) {
            usize::from(reports.quorum.reports)
        } else {
            self.members.needed(dc, reports.quorum, reports.known.keys().copied())
        };
        if !is_cut && reports.known.len() < needed {
            return;
        }
        let at = reports.known.values().copied().max().unwrap_or_default();
        reports.known.retain(|_, known| *known == at);
        let standing = if reports.known.len() < reports.quorum.settled() {
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
