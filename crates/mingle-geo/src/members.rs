//! Which incarnation of which data center belongs to the system (`geo.md`, "Model").
//!
//! The unit of loss is the *incarnation* of a data center: what it was from when it was admitted until
//! it lost a disk, or was given up. [`Members`] is decided in the log of the first partition's group
//! ([`Entry::Fence`], [`Entry::Frozen`]), and every change of it begins a new *epoch*.
//!
//! An incarnation that is given up is *fenced* in two steps, each an epoch. While it is
//! [`Fencing`](Standing::Fencing) the others take nothing of it any more, and each reports up to where
//! it has its transactions, at all partitions, on disk. Once enough have reported, the highest report
//! is the *cut*: what lies above it is dropped everywhere, and nothing above it is ever accepted.
//!
//! Why that is right: a transaction is shown elsewhere only if it is uniform, so `f` data centers beside
//! its origin have it at all partitions and have said so. Of the `D - 1` others `D - f` report, which
//! leaves out `f - 1` at most: one that had it has reported. And each report is of whole transactions,
//! since it is the least of all partitions.
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

/// Who belongs to the system. A decided fact: anyone may hand it on.
///
/// # Examples
///
/// ```
/// use mingle_geo::certify::Entry;
/// use mingle_geo::members::{Membership, Standing};
/// use mingle_geo::{DcId, Timestamp};
///
/// let mut log = Membership::default();
/// let (dc, incarnation) = (DcId(0), 0);
/// log.apply(&Entry::Fence { dc, incarnation, reports: 2 });
/// for (by, known) in [(DcId(1), Timestamp(5)), (DcId(2), Timestamp(9))] {
///     assert_eq!(log.members().of(dc).standing, Standing::Fencing);
///     log.apply(&Entry::Frozen { dc, incarnation, by, known });
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

    /// Where an incarnation was cut off, if it was.
    pub fn cut_of(&self, dc: DcId, incarnation: u32) -> Option<Timestamp> {
        let mut cuts = self.cuts.iter();
        cuts.find(|cut| (cut.dc, cut.incarnation) == (dc, incarnation)).map(|cut| cut.at)
    }

    /// The cuts that vectors of this epoch do not know of.
    pub fn cuts_after(&self, epoch: u32) -> impl Iterator<Item = &Cut> {
        self.cuts.iter().filter(move |cut| cut.epoch > epoch)
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
}

/// What the log of the first partition says of members, in full.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Membership {
    members: Members,
    /// Of those that are being fenced.
    reports: BTreeMap<DcId, Reports>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Reports {
    /// So many are waited for.
    count: u8,
    /// By who reports.
    known: BTreeMap<DcId, Timestamp>,
}

impl Membership {
    /// Who belongs to the system.
    pub fn members(&self) -> &Members {
        &self.members
    }

    /// What goes on from these members where no log is kept: whoever is being fenced is reported on anew,
    /// by so many. A report that was given before is given again, or a lower one: nobody takes anything
    /// of that incarnation any more.
    pub fn resume(members: Members, reports: u8) -> Self {
        let fencing = members.dcs.iter().filter(|(_, member)| member.standing == Standing::Fencing);
        let count = reports.max(1);
        let empty = fencing.map(|(dc, _)| (*dc, Reports { count, known: BTreeMap::new() }));
        Self { reports: empty.collect(), members }
    }

    /// Follows an entry of the log. One that says nothing of members, or comes too late, has no effect.
    pub fn apply(&mut self, entry: &Entry) {
        match *entry {
            Entry::Fence { dc, incarnation, reports } => {
                let member = Member { incarnation, standing: Standing::In };
                if self.members.of(dc) == member {
                    let standing = Standing::Fencing;
                    self.members.change(dc, Member { standing, ..member });
                    let known = BTreeMap::new();
                    self.reports.insert(dc, Reports { count: reports.max(1), known });
                }
            }
            Entry::Frozen { dc, incarnation, by, known } => {
                self.report(dc, incarnation, by, known);
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

    fn report(&mut self, dc: DcId, incarnation: u32, by: DcId, known: Timestamp) {
        let is_awaited =
            self.members.of(dc).incarnation == incarnation && by != dc && self.members.is_in(by);
        let Some(reports) = self.reports.get_mut(&dc).filter(|_| is_awaited) else { return };
        reports.known.entry(by).or_insert(known);
        if reports.known.len() < usize::from(reports.count) {
            return;
        }
        let at = reports.known.values().copied().max().unwrap_or_default();
        self.reports.remove(&dc);
        self.members.change(dc, Member { incarnation, standing: Standing::Fenced });
        let epoch = self.members.epoch;
        self.members.cuts.push(Cut { dc, incarnation, at, epoch });
    }

    /// Whether the log has what an entry says, or that comes too late.
    pub fn has(&self, entry: &Entry) -> bool {
        match *entry {
            Entry::Fence { dc, incarnation, .. } => {
                let member = Member { incarnation, standing: Standing::In };
                self.members.of(dc) != member
            }
            Entry::Frozen { dc, incarnation, by, .. } => {
                let reports = self.reports.get(&dc);
                let is_awaited = self.members.of(dc).incarnation == incarnation
                    && reports.is_some_and(|reports| !reports.known.contains_key(&by));
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
        Entry::Fence { dc: D0, incarnation, reports: 2 }
    }

    fn frozen(by: u8, known: u64) -> Entry {
        Entry::Frozen { dc: D0, incarnation: 0, by: DcId(by), known: Timestamp(known) }
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
        let mut log = Membership::resume(before.members().clone(), 2);
        log.apply(&frozen(2, 7));
        assert_eq!(log.members().of(D0).standing, Standing::Fencing);
        log.apply(&frozen(1, 3));
        assert_eq!(log.members().cut_of(D0, 0), Some(Timestamp(7)));
        let resumed = Membership::resume(log.members().clone(), 2);
        assert_eq!(resumed, log, "there is nothing to be reported");
    }

    #[test]
    fn who_is_given_up_itself_does_not_report() {
        let other = Entry::Fence { dc: DcId(1), incarnation: 0, reports: 2 };
        let log = after(&[fence(0), other, frozen(1, 3), frozen(2, 4)]);
        assert_eq!(log.members().of(D0).standing, Standing::Fencing);
    }
}
