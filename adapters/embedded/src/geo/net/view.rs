//! The data visible in each data center, for new sessions and for monitoring; and the replicas of
//! this process as a [`Cluster`].

use std::sync::Arc;
use std::task::Waker;

use mingle_geo::derive::{Derive, Entries, Span};
use mingle_geo::message::Message;
use mingle_geo::{Address, DcId, Envelope, Key, Members, Now, Replica, Session, Timestamp, Vector};
use mingle_model::{Name, TransactionId};
use mingle_store::World;

use super::{Inner, Net};
use crate::geo::cluster::{self, Cluster, Phase, Replicas};

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

    fn replicas(&self, dc: DcId) -> impl Iterator<Item = &Replica> + Clone {
        self.sites[usize::from(dc.0)].replicas.iter().map(|node| &**node)
    }

    /// Returns the vector that every new session in a data center sees at least.
    pub fn visible(&self, dc: DcId) -> Vector {
        cluster::visible(dc, self.replicas(dc))
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
}

impl Cluster for Net {
    fn world(&self) -> &Arc<dyn World> {
        &self.world
    }

    fn run(&self, work: &mut dyn FnMut(&mut dyn Replicas)) {
        self.with(|inner| work(inner));
    }
}

impl Replicas for Inner {
    fn now(&self) -> Now {
        Self::now(self)
    }

    fn add_client(&mut self) -> u64 {
        Self::add_client(self)
    }

    fn remove_client(&mut self, client: u64) {
        Self::remove_client(self, client);
    }

    fn send(&mut self, from: Address, envelope: Envelope) {
        Self::send(self, from, envelope);
    }

    fn receive(&mut self, client: u64) -> Option<(Address, Message)> {
        Self::receive(self, client)
    }

    fn has_mail(&mut self, client: u64, waker: &Waker) -> bool {
        Self::has_mail(self, client, waker)
    }

    fn settle(&mut self) {
        Self::settle(self);
    }

    fn stay_busy(&mut self) {
        Self::stay_busy(self);
    }

    fn start_above(&mut self, session: &mut Session, (dc, incarnation): (DcId, u32)) {
        session.start_above(self.floor(dc, incarnation));
    }

    fn raise_floor(
        &mut self,
        session: &Session,
        commit_vec: &Vector,
        (dc, incarnation): (DcId, u32),
    ) {
        self.floor(dc, incarnation).raise(session, commit_vec);
    }

    fn names(&self) -> Vec<Name> {
        self.sites.iter().map(|site| site.name.clone()).collect()
    }

    fn is_up(&self, dc: DcId) -> bool {
        Self::is_up(self, dc)
    }

    fn incarnation(&self, dc: DcId) -> u32 {
        Self::incarnation(self, dc)
    }

    fn is_coming_up(&self, dc: DcId) -> bool {
        Self::is_coming_up(self, dc)
    }

    fn is_ready(&self, dc: DcId) -> bool {
        Self::is_ready(self, dc)
    }

    fn ready(&self, dc: DcId) -> Timestamp {
        Self::ready(self, dc)
    }

    fn phase(&self, dc: DcId) -> Phase {
        Self::phase(self, dc)
    }

    fn visible(&self, dc: DcId) -> Vector {
        Self::visible(self, dc)
    }

    fn strongly_visible(&self, dc: DcId) -> Vector {
        cluster::strongly_visible(self.replicas(dc))
    }

    fn lacking(&self, dc: DcId) -> Option<(Vec<DcId>, usize)> {
        Self::lacking(self, dc)
    }

    fn acknowledged(&self) -> Vector {
        let mut acknowledged = Vector::ZERO;
        for dc in Self::running(self) {
            acknowledged[dc] = cluster::acknowledged(dc, self.replicas(dc));
        }
        acknowledged
    }

    fn members(&self) -> Members {
        Self::members(self).clone()
    }

    fn items(&self, dc: DcId, first: &Key, prefix: &[u8], most: usize) -> Option<Vec<Key>> {
        Some(cluster::items(self.replicas(dc), first, prefix, most))
    }

    fn derive(&mut self, by: Arc<dyn Derive>) {
        for site in &mut self.sites {
            site.derive(&by);
        }
        self.indexes.push(by);
    }

    fn entries(&self, dc: DcId, span: &Span, snapshot: &Vector) -> Option<Entries> {
        cluster::entries(self.replicas(dc), span, snapshot)
    }

    fn ended(&self, dc: DcId, id: &TransactionId) -> (Option<mingle_geo::Outcome>, bool) {
        cluster::ended(self.replicas(dc), id)
    }

    fn ended_elsewhere(&self, dc: DcId, id: &TransactionId) -> mingle_store::Outcome {
        Self::ended_elsewhere(self, dc, id)
    }
}
