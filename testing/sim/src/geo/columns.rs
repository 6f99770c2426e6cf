//! The numbers by which the checkers know data centers.
//!
//! A readmitted data center has a new number there, because its timestamps start anew. The store
//! distinguishes the two by the epoch of a vector ([`mingle_geo::members`]), so this module splits
//! vectors by incarnation.

use std::collections::BTreeMap;

use mingle_checker::geo::{Admission, Commit, FaultKind, Vector};
use mingle_geo::members::Cut;
use mingle_geo::{DcId, Timestamp};

use super::fault::{Event, Fault};

/// An incarnation of a data center.
pub(super) type Incarnation = (u8, u32);

/// An epoch newer than any that has been announced.
pub(super) const NEWEST: u32 = u32::MAX;

/// The incarnations that a run may have and those that it has had.
pub(super) struct Columns {
    /// The incarnations in order; the number of each is its index.
    all: Vec<Incarnation>,
    cuts: BTreeMap<Incarnation, Cut>,
    /// The admission time of each incarnation except the first.
    admitted: BTreeMap<Incarnation, u64>,
}

impl Columns {
    pub fn new(dc_count: u8, schedule: &[Event]) -> Self {
        let mut all: Vec<Incarnation> = (0..dc_count).map(|dc| (dc, 0)).collect();
        for event in schedule {
            if let Event::Fault { fault: Fault::Admit { dc, .. }, .. } = event {
                let before = all.iter().filter(|(of, _)| of == dc).count();
                all.push((*dc, before as u32));
            }
        }
        all.sort_unstable();
        Self { all, cuts: BTreeMap::new(), admitted: BTreeMap::new() }
    }

    pub fn count(&self) -> u8 {
        self.all.len() as u8
    }

    pub fn of(&self, incarnation: Incarnation) -> u8 {
        let place = self.all.binary_search(&incarnation);
        place.expect("what is admitted is in the schedule") as u8
    }

    pub fn cut(&mut self, cut: Cut) {
        self.cuts.insert((cut.dc.0, cut.incarnation), cut);
    }

    pub fn is_cut(&self, incarnation: Incarnation) -> bool {
        self.cuts.contains_key(&incarnation)
    }

    /// Records that an incarnation may produce data from this time on.
    pub fn admit(&mut self, incarnation: Incarnation, at_us: u64) {
        self.admitted.entry(incarnation).or_insert(at_us);
    }

    /// Converts a vector of this epoch to the checkers' form. `own` is the incarnation of the
    /// replica or transaction that the vector comes from.
    pub fn vector(
        &self,
        from: &mingle_geo::Vector,
        epoch: u32,
        own: Option<Incarnation>,
    ) -> Vector {
        let mut entries = Vec::new();
        for (dc, timestamp) in from.iter() {
            if dc == DcId::STRONG {
                entries.push((dc.0, timestamp.0));
            } else if timestamp > Timestamp::ZERO {
                self.entry((dc.0, timestamp), epoch, own, &mut entries);
            }
        }
        Vector::of(entries)
    }

    fn entry(
        &self,
        (dc, timestamp): (u8, Timestamp),
        epoch: u32,
        own: Option<Incarnation>,
        entries: &mut Vec<(u8, u64)>,
    ) {
        let mut incarnation = 0;
        loop {
            let cut = self.cuts.get(&(dc, incarnation)).filter(|cut| timestamp > cut.at);
            let is_past = match own {
                Some((own_dc, own)) if own_dc == dc => incarnation < own,
                _ => {
                    cut.is_some_and(|cut| cut.epoch <= epoch)
                        && self.admitted.contains_key(&(dc, incarnation + 1))
                }
            };
            let column = self.of((dc, incarnation));
            match cut.filter(|_| is_past) {
                Some(cut) => entries.push((column, cut.at.0)),
                None => return entries.push((column, timestamp.0)),
            }
            incarnation += 1;
        }
    }

    /// Returns the numbers of the earlier incarnations of the same data center.
    pub fn before(&self, column: u8) -> impl Iterator<Item = u8> + use<> {
        let of = self.all.get(usize::from(column)).copied();
        let earlier = of.map_or(0, |(_, incarnation)| incarnation as u8);
        column.saturating_sub(earlier)..column
    }

    /// Adds the entries of earlier incarnations to a vector that a session was given. A session
    /// gets only one number per data center; the commit record has the transaction's entries for
    /// the earlier incarnations.
    pub fn seen_before(&self, told: &mut Vector, commit: Option<Commit>) {
        let Some(commit) = commit else { return };
        for column in self.before(commit.origin) {
            *told = told.with(column, commit.commit_vec.get(column));
        }
    }

    /// Returns the admissions of the run, in the checkers' form.
    pub fn admissions(&self) -> Vec<Admission> {
        let later = self.all.iter().filter(|(_, incarnation)| *incarnation > 0);
        let admissions = later.map(|(dc, incarnation)| Admission {
            dc: self.of((*dc, *incarnation)),
            of: self.of((*dc, incarnation - 1)),
            at_us: self.admitted.get(&(*dc, *incarnation)).copied(),
        });
        admissions.collect()
    }

    fn each(&self, dc: u8) -> impl Iterator<Item = u8> {
        let all = self.all.iter().enumerate();
        all.filter(move |(_, (of, _))| *of == dc).map(|(column, _)| column as u8)
    }

    /// Applies a fault of a data center to each of its incarnations.
    pub fn kinds(&self, kind: &FaultKind) -> Vec<FaultKind> {
        match kind {
            FaultKind::Down { dc, partition } => {
                let partition = *partition;
                self.each(*dc).map(|dc| FaultKind::Down { dc, partition }).collect()
            }
            FaultKind::Disk { dc, partition } => {
                let partition = *partition;
                self.each(*dc).map(|dc| FaultKind::Disk { dc, partition }).collect()
            }
            FaultKind::Clock { dc, partition } => {
                let partition = *partition;
                self.each(*dc).map(|dc| FaultKind::Clock { dc, partition }).collect()
            }
            FaultKind::Link { from, to } => {
                let to = *to;
                let pairs =
                    self.each(*from).flat_map(|from| self.each(to).map(move |to| (from, to)));
                pairs.map(|(from, to)| FaultKind::Link { from, to }).collect()
            }
            FaultKind::Clients { dc } => {
                self.each(*dc).map(|dc| FaultKind::Clients { dc }).collect()
            }
            FaultKind::Noise => vec![FaultKind::Noise],
            FaultKind::Other { name, dcs } => {
                let dcs = dcs.iter().flat_map(|dc| self.each(*dc)).collect();
                vec![FaultKind::Other { name: name.clone(), dcs }]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vector_is_of_the_incarnations_that_its_epoch_knows() {
        let admit = Fault::Admit { dc: 1, asked: 0, is_early: false };
        let mut columns = Columns::new(3, &[Event::Fault { at_us: 9, lasts_us: 0, fault: admit }]);
        assert_eq!((columns.count(), columns.of((1, 1)), columns.of((2, 0))), (4, 2, 3));
        let seen = mingle_geo::Vector::ZERO
            .with(DcId(1), Timestamp(70))
            .with(DcId(2), Timestamp(5))
            .with(DcId::STRONG, Timestamp(3));
        let (old, new) =
            (Vector::of([(1, 70), (3, 5), (7, 3)]), [(1, 50), (2, 70), (3, 5), (7, 3)]);
        assert_eq!(columns.vector(&seen, NEWEST, None), old);
        columns.cut(Cut { dc: DcId(1), incarnation: 0, at: Timestamp(50), epoch: 2 });
        assert_eq!(columns.vector(&seen, NEWEST, None), old, "nothing of another can be there");
        columns.admit((1, 1), 9);
        assert_eq!(columns.vector(&seen, 1, None), old);
        assert_eq!(columns.vector(&seen, NEWEST, Some((1, 0))), old);
        assert_eq!(columns.vector(&seen, 2, None), Vector::of(new));
        assert_eq!(columns.vector(&seen, 0, Some((1, 1))), Vector::of(new));
        let below = seen.with(DcId(1), Timestamp(50));
        assert_eq!(columns.vector(&below, 2, None), Vector::of([(1, 50), (3, 5), (7, 3)]));
    }
}
