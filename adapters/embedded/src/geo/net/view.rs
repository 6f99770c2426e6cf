//! The data visible in each data center, for new sessions and for monitoring.

use std::collections::BTreeMap;

use mingle_geo::{DcId, Key, Timestamp, Vector};
use mingle_model::{Name, Stamp, TransactionId};

use super::{Inner, Phase};
use crate::geo::config::{AGAIN_MARK, STRONG_NAME};

impl Inner {
    /// True if a data center has caught up since the store was opened: a new session there sees all
    /// that the data center acknowledged before.
    pub fn is_ready(&self, dc: DcId) -> bool {
        !self.is_coming_up(dc) && self.visible(dc).covers(&self.sites[usize::from(dc.0)].ready)
    }

    /// Returns an upper bound of the timestamps that a data center had issued when the store was
    /// opened.
    pub fn ready(&self, dc: DcId) -> Timestamp {
        self.sites[usize::from(dc.0)].ready[dc]
    }

    /// Returns the vector that every new session in a data center sees at least.
    pub fn visible(&self, dc: DcId) -> Vector {
        let replicas = self.sites[usize::from(dc.0)].replicas.iter();
        let seen = replicas.map(|replica| {
            let stable = replica.stable_vec();
            let strong = stable[DcId::STRONG];
            let mut seen = replica.uniform_vec().with(dc, stable[dc]).with(DcId::STRONG, strong);
            // Data from a state transfer count although they are not known to be stable.
            seen.join(&replica.folded_vec());
            seen
        });
        meet(seen)
    }

    /// Returns the vector that every new strong transaction in a data center sees at least.
    pub fn strongly_visible(&self, dc: DcId) -> Vector {
        let replicas = self.sites[usize::from(dc.0)].replicas.iter();
        meet(replicas.map(|replica| {
            let strong = replica.stable_vec()[DcId::STRONG];
            let mut seen = replica.uniform_vec().with(DcId::STRONG, strong);
            seen.join(&replica.folded_vec());
            seen
        }))
    }

    /// True if both data centers run, and messages pass both ways.
    pub fn reaches(&self, one: DcId, other: DcId) -> bool {
        let are_linked = one == other || self.is_linked(one, other) && self.is_linked(other, one);
        self.is_up(one) && self.is_up(other) && are_linked
    }

    /// Returns the data centers that this one does not reach, if it reaches too few to commit a
    /// strong transaction; and the number it needs, itself included.
    pub fn lacking(&self, dc: DcId) -> Option<(Vec<DcId>, usize)> {
        let all = (0..self.sites.len()).map(|dc| DcId(dc as u8));
        let away: Vec<DcId> = all.filter(|to| !self.reaches(dc, *to)).collect();
        let f = usize::from(self.sites[0].replicas[0].config().f);
        let needed = (self.sites.len() / 2 + 1).max(f + 1);
        (self.sites.len() - away.len() < needed).then_some((away, needed))
    }

    /// Returns the stamp that every new session in any data center sees at least. A data center
    /// that was given up is marked as ended once all others have its remaining data.
    pub fn everywhere(&self) -> Stamp {
        let all = (0..self.sites.len()).map(|dc| DcId(dc as u8));
        let alive = all.filter(|dc| self.phase(*dc) != Phase::GivenUp);
        let visible: Vec<Vector> = alive.map(|dc| self.visible(dc)).collect();
        let stamp = self.stamp(&meet(visible.into_iter()));
        let over = (0..).map(DcId).zip(&self.sites).flat_map(|(dc, site)| {
            let cuts = (0..=self.members.of(dc).incarnation)
                .filter_map(move |incarnation| Some((incarnation, self.cut(dc, incarnation)?)));
            cuts.map(|(incarnation, cut)| (stamp_name(&site.name, incarnation), cut))
        });
        // Only once its remaining data are in every data center.
        let over = over.filter(|(name, cut)| stamp.of(name) >= cut.0);
        let names = over.map(|(name, _)| (name, Stamp::ENDED));
        let rest = stamp.iter().map(|(name, at)| (name.clone(), at));
        rest.chain(names).collect::<BTreeMap<Name, u64>>().into_iter().collect()
    }

    /// Returns an upper bound of the running data centers' own commits that were acknowledged.
    pub fn acknowledged(&self) -> Vector {
        let mut acknowledged = Vector::ZERO;
        for dc in self.running() {
            for replica in &self.sites[usize::from(dc.0)].replicas {
                let known = replica.known_vec()[dc];
                acknowledged[dc] = acknowledged[dc].max(known);
            }
        }
        acknowledged
    }

    /// Converts a vector to a stamp, which has names; a data center that was given up and admitted
    /// again has one name per incarnation.
    pub fn stamp(&self, vector: &Vector) -> Stamp {
        self.stamp_of(vector, None)
    }

    /// Converts the vector of a client of this incarnation of a data center to a stamp.
    pub fn stamp_of(&self, vector: &Vector, home: Option<(DcId, u32)>) -> Stamp {
        let mut own = Vec::new();
        for (dc, site) in (0..).map(DcId).zip(&self.sites) {
            let at = vector[dc];
            let home = home.filter(|home| home.0 == dc).map(|home| home.1);
            let newest = home.unwrap_or(self.members.of(dc).incarnation);
            let cuts = (0..newest).map(|incarnation| (incarnation, self.cut(dc, incarnation)));
            let mut is_past = false;
            for (incarnation, cut) in cuts {
                let cut = cut.unwrap_or_default();
                own.push((stamp_name(&site.name, incarnation), at.min(cut).0));
                is_past = at <= cut;
                if is_past {
                    break;
                }
            }
            if !is_past {
                own.push((stamp_name(&site.name, newest), at.0));
            }
        }
        // Without strong transactions the stamp has no entry for them.
        let strong = Some((Name::from(STRONG_NAME), vector[DcId::STRONG].0));
        own.into_iter().chain(strong.filter(|(_, at)| *at > 0)).collect()
    }

    /// Converts a stamp to a vector; unknown names and lost commits are left out.
    pub fn vector(&self, stamp: &Stamp) -> Vector {
        let mut vector = Vector::ZERO;
        for (dc, site) in (0..).map(DcId).zip(&self.sites) {
            for incarnation in 0..=self.members.of(dc).incarnation {
                let seen = Timestamp(stamp.of(&stamp_name(&site.name, incarnation)));
                let seen = self.cut(dc, incarnation).map_or(seen, |cut| seen.min(cut));
                vector[dc] = vector[dc].max(seen);
            }
        }
        vector[DcId::STRONG] = Timestamp(stamp.of(STRONG_NAME));
        vector
    }

    /// Returns the first data center of which the stamp names lost commits: its id, the timestamp
    /// seen there, and the timestamp up to which its commits are kept.
    pub fn lost_of(&self, stamp: &Stamp) -> Option<(DcId, Timestamp, Timestamp)> {
        let sites = (0..).map(DcId).zip(&self.sites);
        sites.into_iter().find_map(|(dc, site)| {
            (0..=self.members.of(dc).incarnation).find_map(|incarnation| {
                let cut = self.cut(dc, incarnation)?;
                let seen = Timestamp(stamp.of(&stamp_name(&site.name, incarnation)));
                (seen > cut).then_some((dc, seen, cut))
            })
        })
    }

    /// Returns the stamp without lost commits.
    pub fn kept(&self, stamp: &Stamp) -> Stamp {
        let sites = (0..).map(DcId).zip(&self.sites);
        let mut most = BTreeMap::new();
        for (dc, site) in sites {
            for incarnation in 0..=self.members.of(dc).incarnation {
                if let Some(cut) = self.cut(dc, incarnation) {
                    most.insert(stamp_name(&site.name, incarnation), cut.0);
                }
            }
        }
        let kept = stamp
            .iter()
            .map(|(name, at)| (name.clone(), most.get(name).map_or(at, |most| at.min(*most))));
        kept.collect()
    }

    /// True if a stamp can contain this name.
    pub fn is_known(&self, name: &str) -> bool {
        let sites = (0..).map(DcId).zip(&self.sites);
        let mut names = sites.flat_map(|(dc, site)| {
            let incarnations = 0..=self.members.of(dc).incarnation;
            incarnations.map(|incarnation| stamp_name(&site.name, incarnation))
        });
        name == STRONG_NAME || names.any(|known| *known == *name)
    }

    /// Returns at most `most` names of items of a data center, from `first` on, that begin with
    /// `prefix`, in order.
    pub fn items(&self, dc: DcId, first: &Key, prefix: &[u8], most: usize) -> Vec<Key> {
        let replicas = self.sites[usize::from(dc.0)].replicas.iter();
        let mut found: Vec<Key> = Vec::new();
        for replica in replicas {
            let keys = replica.keys_from(first);
            let fits = |key: &&Key| key.kind == first.kind && key.name.starts_with(prefix);
            found.extend(keys.take_while(fits).take(most).cloned());
        }
        found.sort_unstable();
        found.truncate(most);
        found
    }

    /// Returns the outcome of a transaction of the core, if a data center remembers it, and true if
    /// the transaction may still be undecided there.
    pub fn ended(&self, dc: DcId, id: &TransactionId) -> (Option<mingle_geo::Outcome>, bool) {
        let replicas = &self.sites[usize::from(dc.0)].replicas;
        let outcome = replicas.iter().find_map(|replica| replica.outcome(id));
        let is_open = replicas.iter().any(|r| r.prepared_count() + r.waiting_count() > 0);
        (outcome, is_open)
    }
}

/// Returns the name of an incarnation of a data center in stamps.
fn stamp_name(name: &Name, incarnation: u32) -> Name {
    match incarnation {
        0 => name.clone(),
        again => format!("{name}{AGAIN_MARK}{again}").into(),
    }
}

fn meet(vectors: impl Iterator<Item = Vector>) -> Vector {
    let least = vectors.reduce(|mut least, vector| {
        least.meet(&vector);
        least
    });
    least.unwrap_or(Vector::ZERO)
}
