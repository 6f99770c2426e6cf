//! What data centers have, for whoever begins there and for who watches.

use mingle_geo::{DcId, Key, Timestamp, Vector};
use mingle_model::{Name, Stamp, TransactionId};

use super::Inner;
use crate::geo::config::STRONG_NAME;

impl Inner {
    /// Whether a data center has found together since the store was opened: what it acknowledged
    /// before is seen by whoever begins there.
    pub fn is_ready(&self, dc: DcId) -> bool {
        self.visible(dc).covers(&self.sites[usize::from(dc.0)].ready)
    }

    /// Above all that a data center had given out when the store was opened.
    pub fn ready(&self, dc: DcId) -> Timestamp {
        self.sites[usize::from(dc.0)].ready[dc]
    }

    /// What whoever begins in a data center is sure to see.
    pub fn visible(&self, dc: DcId) -> Vector {
        let replicas = self.sites[usize::from(dc.0)].replicas.iter();
        let seen = replicas.map(|replica| {
            let stable = replica.stable_vec();
            let strong = stable[DcId::STRONG];
            let mut seen = replica.uniform_vec().with(dc, stable[dc]).with(DcId::STRONG, strong);
            // What a state transfer brought need not be known to be stable.
            seen.join(&replica.folded_vec());
            seen
        });
        meet(seen)
    }

    /// What a strong transaction that begins in a data center is sure to see.
    pub fn strongly_visible(&self, dc: DcId) -> Vector {
        let replicas = self.sites[usize::from(dc.0)].replicas.iter();
        meet(replicas.map(|replica| {
            let strong = replica.stable_vec()[DcId::STRONG];
            let mut seen = replica.uniform_vec().with(DcId::STRONG, strong);
            seen.join(&replica.folded_vec());
            seen
        }))
    }

    /// Whether two data centers run, and messages pass both ways.
    pub fn reaches(&self, one: DcId, other: DcId) -> bool {
        let are_linked = one == other || self.is_linked(one, other) && self.is_linked(other, one);
        self.is_up(one) && self.is_up(other) && are_linked
    }

    /// Those that a data center does not reach, if it reaches too few to commit a strong
    /// transaction; and how many it needs, itself included.
    pub fn lacking(&self, dc: DcId) -> Option<(Vec<DcId>, usize)> {
        let all = (0..self.sites.len()).map(|dc| DcId(dc as u8));
        let away: Vec<DcId> = all.filter(|to| !self.reaches(dc, *to)).collect();
        let f = usize::from(self.sites[0].replicas[0].config().f);
        let needed = (self.sites.len() / 2 + 1).max(f + 1);
        (self.sites.len() - away.len() < needed).then_some((away, needed))
    }

    /// What whoever begins in any data center is sure to see.
    pub fn visible_everywhere(&self) -> Vector {
        meet((0..self.sites.len()).map(|dc| self.visible(DcId(dc as u8))))
    }

    /// Beyond this, none of the running data centers has acknowledged anything of its own.
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

    /// What a vector says, by name.
    pub fn stamp(&self, vector: &Vector) -> Stamp {
        let sites = (0..).zip(&self.sites);
        let own = sites.map(|(dc, site)| (site.name.clone(), vector[DcId(dc)].0));
        // Without strong transactions there is nothing to say of them.
        let strong = Some((Name::from(STRONG_NAME), vector[DcId::STRONG].0));
        own.chain(strong.filter(|(_, at)| *at > 0)).collect()
    }

    /// The vector that a stamp says; names of others are left out.
    pub fn vector(&self, stamp: &Stamp) -> Vector {
        let mut vector = Vector::ZERO;
        for (dc, site) in (0..).zip(&self.sites) {
            vector[DcId(dc)] = Timestamp(stamp.of(&site.name));
        }
        vector[DcId::STRONG] = Timestamp(stamp.of(STRONG_NAME));
        vector
    }

    /// The names of items of a data center from `first` on as long as they begin with `prefix`,
    /// in order: at most so many.
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

    /// How a transaction of the core ended, if a data center remembers; whether it may still end
    /// there otherwise.
    pub fn ended(&self, dc: DcId, id: &TransactionId) -> (Option<mingle_geo::Outcome>, bool) {
        let replicas = &self.sites[usize::from(dc.0)].replicas;
        let outcome = replicas.iter().find_map(|replica| replica.outcome(id));
        let is_open = replicas.iter().any(|r| r.prepared_count() + r.waiting_count() > 0);
        (outcome, is_open)
    }
}

fn meet(vectors: impl Iterator<Item = Vector>) -> Vector {
    let least = vectors.reduce(|mut least, vector| {
        least.meet(&vector);
        least
    });
    least.unwrap_or(Vector::ZERO)
}
