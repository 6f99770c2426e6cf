//! The interface between a store and the replicas of its data centers.
//!
//! The replicas are in this process ([`super::net`]), or they run elsewhere: a data center that is a
//! process of its own implements [`Cluster`] over the partitions that it has. The store above is the
//! same: objects, guards, witness rows, outcomes and sessions.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::Waker;

use mingle_geo::derive::{Derive, Entries, Span};
use mingle_geo::message::Message;
use mingle_geo::{
    Address, DcId, Envelope, Key, Members, Now, Outcome, Replica, Session, Timestamp, Vector,
};
use mingle_model::{Name, Stamp, TransactionId};
use mingle_store::World;

use super::config::{AGAIN_MARK, STRONG_NAME};

/// The data centers of a store.
pub trait Cluster: Send + Sync {
    /// Returns the clock, the tasks and the randomness of the process.
    fn world(&self) -> &Arc<dyn World>;

    /// Runs `work` once, with the replicas.
    fn run(&self, work: &mut dyn FnMut(&mut dyn Replicas));
}

impl dyn Cluster + '_ {
    /// Runs `work` with the replicas, and returns its result.
    pub(super) fn with<T>(&self, work: impl FnOnce(&mut dyn Replicas) -> T) -> T {
        let (mut work, mut result) = (Some(work), None);
        self.run(&mut |replicas| {
            if let Some(work) = work.take() {
                result = Some(work(replicas));
            }
        });
        result.expect("a cluster runs the work that it is given")
    }
}

/// The state of a data center.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It belongs to the store, and runs.
    Up,
    /// It belongs to the store, and was stopped.
    Down,
    /// It belongs to the store, and its data are gone, for this reason.
    Lost(String),
    /// It is being given up: the others have not all reported the data they have of it.
    BeingGivenUp,
    /// It was given up.
    GivenUp,
    /// It was admitted again, and this many of its partitions have copied the data of the others.
    ComingUp(u16),
}

/// The replicas of a store's data centers, as its transactions use them.
pub trait Replicas {
    /// Returns the time for the core.
    fn now(&self) -> Now;

    /// Adds a client, which can receive messages; returns its number.
    fn add_client(&mut self) -> u64;

    /// Removes a client.
    fn remove_client(&mut self, client: u64);

    /// Sends a message of a client.
    fn send(&mut self, from: Address, envelope: Envelope);

    /// Takes the next answer to a client.
    fn receive(&mut self, client: u64) -> Option<(Address, Message)>;

    /// True if there is an answer to a client, or no such client; if not, `waker` is woken once one
    /// arrives.
    fn has_mail(&mut self, client: u64, waker: &Waker) -> bool;

    /// Handles all inputs that arrive now.
    fn settle(&mut self);

    /// Notes that a transaction waits for the replicas: the next ticks come soon.
    fn stay_busy(&mut self);

    /// Lets the next transaction of a session see all that was acknowledged at an incarnation of a data
    /// center.
    fn start_above(&mut self, session: &mut Session, of: (DcId, u32));

    /// Notes a commit of a session at an incarnation of a data center, which is about to be acknowledged.
    fn raise_floor(&mut self, session: &Session, commit_vec: &Vector, of: (DcId, u32));

    /// Returns the names of the data centers, in order.
    fn names(&self) -> Vec<Name>;

    /// Returns the data center that is used here, if the others are processes of their own. Then only its replicas
    /// can be asked.
    fn here(&self) -> Option<DcId> {
        None
    }

    /// True if a data center runs.
    fn is_up(&self, dc: DcId) -> bool;

    /// Returns the current incarnation of a data center.
    fn incarnation(&self, dc: DcId) -> u32;

    /// True if a data center is still copying the data of the others.
    fn is_coming_up(&self, dc: DcId) -> bool;

    /// True if a new session in a data center sees all that it acknowledged before its start.
    fn is_ready(&self, dc: DcId) -> bool;

    /// Returns an upper bound of the timestamps that a data center had issued at its start.
    fn ready(&self, dc: DcId) -> Timestamp;

    /// Returns the state of a data center.
    fn phase(&self, dc: DcId) -> Phase;

    /// Returns the vector that every new session in a data center sees at least.
    fn visible(&self, dc: DcId) -> Vector;

    /// Returns the vector that every new strong transaction in a data center sees at least.
    fn strongly_visible(&self, dc: DcId) -> Vector;

    /// Returns the data centers that this one does not reach, if it reaches too few to commit a
    /// strong transaction; and the number it needs, itself included.
    fn lacking(&self, dc: DcId) -> Option<(Vec<DcId>, usize)>;

    /// Returns an upper bound of the running data centers' own commits that were acknowledged.
    fn acknowledged(&self) -> Vector;

    /// Returns the newest membership that any data center knows.
    fn members(&self) -> Members;

    /// Returns at most `most` names of items of a data center, from `first` on, that begin with
    /// `prefix`, in order; none if its process has stopped.
    fn items(&self, dc: DcId, first: &Key, prefix: &[u8], most: usize) -> Option<Vec<Key>>;

    /// Lets all replicas here keep an index from now on, also those that start later.
    fn derive(&mut self, by: Arc<dyn Derive>);

    /// Returns the entries of a part of an index at a data center, among which are all that hold at `snapshot`; none
    /// if its process has stopped, the snapshot is not complete there, or it is too old to be read.
    fn entries(&self, dc: DcId, span: &Span, snapshot: &Vector) -> Option<Entries>;

    /// Returns the outcome of a transaction of the core, if a data center remembers it, and true if
    /// the transaction may still be undecided there.
    fn ended(&self, dc: DcId, id: &TransactionId) -> (Option<Outcome>, bool);

    /// Returns how a transaction of a data center that was given up ended, as far as the others
    /// know.
    fn ended_elsewhere(&self, dc: DcId, id: &TransactionId) -> mingle_store::Outcome;

    /// Returns the data centers that run, in order.
    fn running(&self) -> Vec<DcId> {
        all(self.names().len()).filter(|dc| self.is_up(*dc)).collect()
    }

    /// Returns the timestamp at which an incarnation was cut off; none if it was not.
    fn cut(&self, dc: DcId, incarnation: u32) -> Option<Timestamp> {
        self.members().cut_of(dc, incarnation)
    }

    /// Returns the newest cut of each data center that was given up.
    fn cuts(&self) -> Vector {
        let mut cuts = Vector::ZERO;
        for cut in self.members().cuts_after(0) {
            cuts[cut.dc] = cuts[cut.dc].max(cut.at);
        }
        cuts
    }

    /// Returns the stamp that every new session in any data center sees at least; where the others are processes of
    /// their own, every one in the data center here. A data center that was given up is marked as ended once all
    /// others have its remaining data.
    fn everywhere(&self) -> Stamp {
        let names = self.names();
        let here = self.here();
        let alive = all(names.len()).filter(|dc| self.phase(*dc) != Phase::GivenUp);
        let asked = alive.filter(|dc| here.is_none_or(|here| here == *dc));
        let stamp = self.stamp(&meet(asked.map(|dc| self.visible(dc))));
        let members = self.members();
        let over = all(names.len()).zip(&names).flat_map(|(dc, name)| {
            let members = &members;
            let cuts = (0..=members.of(dc).incarnation).filter_map(move |incarnation| {
                Some((incarnation, members.cut_of(dc, incarnation)?))
            });
            cuts.map(|(incarnation, cut)| (stamp_name(name, incarnation), cut))
        });
        // Only once its remaining data are in every data center.
        let over = over.filter(|(name, cut)| stamp.of(name) >= cut.0);
        let ended = over.map(|(name, _)| (name, Stamp::ENDED));
        let rest = stamp.iter().map(|(name, at)| (name.clone(), at));
        rest.chain(ended).collect::<BTreeMap<Name, u64>>().into_iter().collect()
    }

    /// Converts a vector to a stamp, which has names; a data center that was given up and admitted
    /// again has one name per incarnation.
    fn stamp(&self, vector: &Vector) -> Stamp {
        self.stamp_of(vector, None)
    }

    /// Converts the vector of a client of this incarnation of a data center to a stamp.
    fn stamp_of(&self, vector: &Vector, home: Option<(DcId, u32)>) -> Stamp {
        let (mut own, members) = (Vec::new(), self.members());
        for (dc, name) in (0..).map(DcId).zip(self.names()) {
            let at = vector[dc];
            let home = home.filter(|home| home.0 == dc).map(|home| home.1);
            let newest = home.unwrap_or(members.of(dc).incarnation);
            let mut is_past = false;
            for incarnation in 0..newest {
                let cut = members.cut_of(dc, incarnation).unwrap_or_default();
                own.push((stamp_name(&name, incarnation), at.min(cut).0));
                is_past = at <= cut;
                if is_past {
                    break;
                }
            }
            if !is_past {
                own.push((stamp_name(&name, newest), at.0));
            }
        }
        // Without strong transactions the stamp has no entry for them.
        let strong = Some((Name::from(STRONG_NAME), vector[DcId::STRONG].0));
        own.into_iter().chain(strong.filter(|(_, at)| *at > 0)).collect()
    }

    /// Converts a stamp to a vector; unknown names and lost commits are left out.
    fn vector(&self, stamp: &Stamp) -> Vector {
        let (mut vector, members) = (Vector::ZERO, self.members());
        for (dc, name) in (0..).map(DcId).zip(self.names()) {
            for incarnation in 0..=members.of(dc).incarnation {
                let seen = Timestamp(stamp.of(&stamp_name(&name, incarnation)));
                let seen = members.cut_of(dc, incarnation).map_or(seen, |cut| seen.min(cut));
                vector[dc] = vector[dc].max(seen);
            }
        }
        vector[DcId::STRONG] = Timestamp(stamp.of(STRONG_NAME));
        vector
    }

    /// Returns the first data center of which the stamp names lost commits: its id, the timestamp
    /// seen there, and the timestamp up to which its commits are kept.
    fn lost_of(&self, stamp: &Stamp) -> Option<(DcId, Timestamp, Timestamp)> {
        let members = self.members();
        (0..).map(DcId).zip(self.names()).find_map(|(dc, name)| {
            (0..=members.of(dc).incarnation).find_map(|incarnation| {
                let cut = members.cut_of(dc, incarnation)?;
                let seen = Timestamp(stamp.of(&stamp_name(&name, incarnation)));
                (seen > cut).then_some((dc, seen, cut))
            })
        })
    }

    /// Returns the names that stamps have for incarnations that were cut off, with the time up to which the commits
    /// of each are kept.
    fn ends(&self) -> BTreeMap<Name, u64> {
        let (mut ends, members) = (BTreeMap::new(), self.members());
        for (dc, name) in (0..).map(DcId).zip(self.names()) {
            for incarnation in 0..=members.of(dc).incarnation {
                if let Some(cut) = members.cut_of(dc, incarnation) {
                    ends.insert(stamp_name(&name, incarnation), cut.0);
                }
            }
        }
        ends
    }

    /// Returns the stamp without lost commits.
    fn kept(&self, stamp: &Stamp) -> Stamp {
        stamp.kept(&self.ends())
    }

    /// True if a stamp can contain this name.
    fn is_known(&self, found: &str) -> bool {
        let members = self.members();
        let mut names = (0..).map(DcId).zip(self.names()).flat_map(|(dc, name)| {
            let incarnations = 0..=members.of(dc).incarnation;
            incarnations.map(move |incarnation| stamp_name(&name, incarnation))
        });
        found == STRONG_NAME || names.any(|known| *known == *found)
    }
}

/// Returns the name of an incarnation of a data center in stamps.
fn stamp_name(name: &Name, incarnation: u32) -> Name {
    match incarnation {
        0 => name.clone(),
        again => format!("{name}{AGAIN_MARK}{again}").into(),
    }
}

fn all(count: usize) -> impl Iterator<Item = DcId> {
    (0..count as u8).map(DcId)
}

/// Returns the vector that every new session in a data center with these replicas sees at least.
pub fn visible<'a>(dc: DcId, replicas: impl Iterator<Item = &'a Replica>) -> Vector {
    meet(replicas.map(|replica| {
        let stable = replica.stable_vec();
        let strong = stable[DcId::STRONG];
        let mut seen = replica.uniform_vec().with(dc, stable[dc]).with(DcId::STRONG, strong);
        // Data from a state transfer count although they are not known to be stable.
        seen.join(&replica.folded_vec());
        seen
    }))
}

/// Returns the vector that every new strong transaction in a data center with these replicas sees at
/// least.
pub fn strongly_visible<'a>(replicas: impl Iterator<Item = &'a Replica>) -> Vector {
    meet(replicas.map(|replica| {
        let strong = replica.stable_vec()[DcId::STRONG];
        let mut seen = replica.uniform_vec().with(DcId::STRONG, strong);
        seen.join(&replica.folded_vec());
        seen
    }))
}

/// Returns an upper bound of the timestamps of a data center's own commits that its replicas have
/// acknowledged.
pub fn acknowledged<'a>(dc: DcId, replicas: impl Iterator<Item = &'a Replica>) -> Timestamp {
    replicas.map(|replica| replica.known_vec()[dc]).max().unwrap_or_default()
}

/// Returns at most `most` names of items of these replicas, from `first` on, that begin with `prefix`,
/// in order.
pub fn items<'a>(
    replicas: impl Iterator<Item = &'a Replica>,
    first: &Key,
    prefix: &[u8],
    most: usize,
) -> Vec<Key> {
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

/// Returns the entries of a part of an index at all of these replicas together; none if one of them cannot serve the
/// snapshot.
pub fn entries<'a>(
    replicas: impl Iterator<Item = &'a Replica>,
    span: &Span,
    snapshot: &Vector,
) -> Option<Entries> {
    let mut all = Entries::default();
    for replica in replicas {
        let Entries { found, loose } = replica.entries(span, snapshot)?;
        all.found.extend(found);
        all.loose.extend(loose);
    }
    all.found.sort_unstable();
    if span.is_reversed {
        all.found.reverse();
    }
    all.found.truncate(span.most);
    all.loose.sort_unstable();
    Some(all)
}

/// Returns the outcome of a transaction of the core, if one of these replicas remembers it, and true if
/// the transaction may still be undecided.
pub fn ended<'a>(
    replicas: impl Iterator<Item = &'a Replica> + Clone,
    id: &TransactionId,
) -> (Option<Outcome>, bool) {
    let outcome = replicas.clone().find_map(|replica| replica.outcome(id));
    let mut replicas = replicas;
    (outcome, replicas.any(|replica| replica.prepared_count() + replica.waiting_count() > 0))
}

/// Returns the greatest vector that all of these cover.
pub(super) fn meet(vectors: impl Iterator<Item = Vector>) -> Vector {
    let least = vectors.reduce(|mut least, vector| {
        least.meet(&vector);
        least
    });
    least.unwrap_or(Vector::ZERO)
}
