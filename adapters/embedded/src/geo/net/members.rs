//! Membership of data centers: giving one up, and admitting it again.
//!
//! A store that certifies agrees on membership by consensus, like a system of servers does. A store
//! without certification has no log to agree in; there this process, which has all data centers,
//! applies the same entries itself, and requires reports from as many data centers.

use mingle_geo::certify::Entry;
use mingle_geo::members::{Membership, Quorum, Standing};
use mingle_geo::message::{Admit, Fence, MembersReply, Message};
use mingle_geo::{
    Address, DcId, Envelope, Input, Members, PartitionId, Record, Refusal, Timestamp, Vector,
};
use mingle_model::TransactionId;
use mingle_store::Outcome;

use super::Inner;
use super::site::Site;
use crate::geo::cluster::{Phase, Replicas};

/// The partition whose replicas agree on membership.
const FIRST: PartitionId = PartitionId(0);

/// A change that is asked of the remaining data centers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Give up this incarnation.
    GiveUp(DcId, u32),
    /// Admit this incarnation.
    Admit(DcId, u32),
}

impl Inner {
    /// Restores the membership from the replicas' records when the store is opened.
    pub(super) fn recall_members(&mut self) {
        let replicas = self.sites.iter().flat_map(|site| &site.replicas);
        let newest = replicas.map(|replica| replica.members()).max_by_key(|it| it.epoch());
        self.members = newest.cloned().unwrap_or_default();
        if !self.config.is_certifying() {
            self.agreed = Some(Membership::resume(self.members.clone(), self.quorum()));
        }
        for (dc, site) in (0..).map(DcId).zip(&mut self.sites) {
            let member = self.members.of(dc);
            let is_member =
                (member.incarnation, member.standing) == (site.incarnation, Standing::In);
            if site.incarnation < member.incarnation {
                site.lost.get_or_insert("its disk is that of one that was given up".into());
            }
            site.is_up &= is_member && site.lost.is_none();
        }
    }

    /// Returns the quorum for giving up a data center.
    fn quorum(&self) -> Quorum {
        let settings = self.sites[0].replicas[0].config();
        Quorum::of(settings.dc_count, settings.f)
    }

    /// Returns the newest membership that any data center knows.
    pub fn members(&self) -> &Members {
        &self.members
    }

    /// Returns how a transaction of a data center that was given up ended, as far as the others
    /// know.
    pub fn ended_elsewhere(&self, dc: DcId, id: &TransactionId) -> Outcome {
        let others = self.others_of(dc).into_iter();
        let mut ended = others.filter_map(|(other, _)| Replicas::ended(self, other, id).0);
        match ended.next() {
            Some(mingle_geo::Outcome::Committed(_)) => Outcome::Committed,
            Some(mingle_geo::Outcome::Aborted) => Outcome::NotCommitted,
            None => Outcome::Unknown,
        }
    }

    /// Returns the current incarnation of a data center.
    pub fn incarnation(&self, dc: DcId) -> u32 {
        self.sites[usize::from(dc.0)].incarnation
    }

    /// True if a data center is still copying the data of the others.
    pub fn is_coming_up(&self, dc: DcId) -> bool {
        let site = &self.sites[usize::from(dc.0)];
        site.incarnation > 0 && site.come_up() < self.config.partitions
    }

    /// Returns the state of a data center.
    pub fn phase(&self, dc: DcId) -> Phase {
        let site = &self.sites[usize::from(dc.0)];
        match (self.members.of(dc).standing, &site.lost) {
            (Standing::Fencing | Standing::Settling, _) => Phase::BeingGivenUp,
            (Standing::Fenced, _) => Phase::GivenUp,
            (Standing::In, Some(why)) => Phase::Lost(why.clone()),
            (Standing::In, None) if !site.is_up => Phase::Down,
            (Standing::In, None) if self.is_coming_up(dc) => Phase::ComingUp(site.come_up()),
            (Standing::In, None) => Phase::Up,
        }
    }

    /// Returns the other members that run, each with the members that it reaches.
    fn others_of(&self, dc: DcId) -> Vec<(DcId, Vec<DcId>)> {
        let others: Vec<DcId> =
            self.running().filter(|other| *other != dc && self.members.is_in(*other)).collect();
        let reached = |from: &DcId| {
            (*from, others.iter().copied().filter(|to| self.reaches(*from, *to)).collect())
        };
        others.iter().map(reached).collect()
    }

    /// Returns the speaker for a change of a data center: another member that reaches the most
    /// members, with these (itself included); and the number of members that the change needs.
    fn speaker(&self, dc: DcId) -> (Option<(DcId, Vec<DcId>)>, usize) {
        let reports = usize::from(self.quorum().reports);
        let majority = self.sites.len() / 2 + 1;
        let needed = if self.config.is_certifying() { reports.max(majority) } else { reports };
        let others = self.others_of(dc).into_iter();
        (others.rev().max_by_key(|(_, reached)| reached.len()), needed)
    }

    /// Returns the members that can take part in a change of a data center, if they are too few,
    /// and the number that the change needs.
    pub fn too_few_without(&self, dc: DcId) -> Option<(Vec<DcId>, usize)> {
        let (speaker, needed) = self.speaker(dc);
        let reached = speaker.map_or_else(Vec::new, |(_, reached)| reached);
        (reached.len() < needed).then_some((reached, needed))
    }

    /// Returns the members that do not run or cannot be reached, if a data center is being given up and
    /// its cut may wait for their reports.
    pub fn awaited_for(&self, dc: DcId) -> Vec<DcId> {
        if !matches!(self.members.of(dc).standing, Standing::Fencing | Standing::Settling) {
            return Vec::new();
        }
        let reached = self.speaker(dc).0.map_or_else(Vec::new, |(_, reached)| reached);
        let others = (0..self.sites.len()).map(|other| DcId(other as u8));
        let is_awaited =
            |other: &DcId| *other != dc && self.members.is_in(*other) && !reached.contains(other);
        others.filter(is_awaited).collect()
    }

    /// Asks for a change; the caller repeats this until the change is made.
    pub fn ask(&mut self, client: u64, change: Change) {
        let (Change::GiveUp(dc, incarnation) | Change::Admit(dc, incarnation)) = change;
        self.stay_busy();
        let quorum = self.quorum();
        if let Some(agreed) = &mut self.agreed {
            agreed.apply(&match change {
                Change::GiveUp(..) => Entry::Fence { dc, incarnation, quorum },
                Change::Admit(..) => Entry::Admit { dc, incarnation },
            });
            return self.agree();
        }
        let (Some((speaker, _)), _) = self.speaker(dc) else { return };
        let message = match change {
            Change::GiveUp(..) => Message::Fence(Fence { request: 0, dc, incarnation }),
            Change::Admit(..) => Message::Admit(Admit { request: 0, dc, incarnation }),
        };
        let to = Address::Replica(speaker, FIRST);
        self.send(Address::Client(client), Envelope { to, message });
    }

    /// Returns why a change was refused, if that answer has arrived.
    pub fn refused(&mut self, client: u64) -> Option<Refusal> {
        while let Some((_, message)) = self.receive(client) {
            if let Message::MembersReply(MembersReply { result: Err(refusal), .. }) = message {
                return Some(refusal);
            }
        }
        None
    }

    /// Without certification: collects reports, and tells replicas the new membership.
    pub(super) fn agree(&mut self) {
        let Some(mut agreed) = self.agreed.take() else { return };
        if agreed.members().epoch() == 0 {
            self.agreed = Some(agreed);
            return;
        }
        let given_up = (0..self.sites.len()).map(|dc| DcId(dc as u8));
        let given_up = given_up.filter(|dc| !agreed.members().is_in(*dc)).collect::<Vec<_>>();
        // They reach each other, or they are the speaker and the data centers it reaches.
        let reached = match given_up.first() {
            Some(dc) => self.speaker(*dc).0.map_or_else(Vec::new, |(_, reached)| reached),
            None => self.running().collect(),
        };
        for by in reached {
            let replica = &self.sites[usize::from(by.0)].replicas[0];
            let epoch = replica.members().epoch();
            for (dc, incarnation, known) in replica.frozen() {
                agreed.apply(&Entry::Frozen { dc, incarnation, by, known, epoch });
            }
            if epoch < agreed.members().epoch() {
                let input = Input::Members(agreed.members().clone());
                self.local.push_back((by, FIRST, input));
            }
        }
        self.agreed = Some(agreed);
    }

    /// Replaces an incarnation that was given up by a new one, with empty disks and stopped.
    ///
    /// # Errors
    ///
    /// The reason why the core rejects the settings.
    pub fn renew(&mut self, dc: DcId) -> Result<(), String> {
        let incarnation = self.members.of(dc).incarnation + 1;
        let record = Record::Members(self.members.clone());
        let records = std::slice::from_ref(&record);
        let new = Site::new(dc, &self.config, incarnation, records);
        let mut new = new.map_err(|error| error.message)?;
        self.indexes.iter().for_each(|by| new.derive(by));
        self.set_up(dc, false);
        self.sites[usize::from(dc.0)] = Site { is_up: false, ..new };
        // Messages from and to the earlier incarnation are dropped.
        let is_of_dc = |address: Address| matches!(address, Address::Replica(of, _) if of == dc);
        self.travelling
            .retain(|_, on_the_way| !is_of_dc(on_the_way.from) && !is_of_dc(on_the_way.to));
        self.local.retain(|(of, ..)| *of != dc);
        self.with_disk(|disk, _| disk.renew(dc, incarnation, record));
        Ok(())
    }

    /// Returns the number of queued and of finished writes; zeros without a disk.
    pub fn written(&mut self) -> (u64, u64) {
        self.with_disk(|disk, _| disk.progress()).unwrap_or_default()
    }

    /// True if all running data centers that the speaker reaches know all changes of membership.
    pub fn have_heard(&self, dc: DcId) -> bool {
        let (Some((_, reached)), _) = self.speaker(dc) else { return false };
        reached.iter().all(|by| {
            let replicas = &self.sites[usize::from(by.0)].replicas;
            replicas.iter().all(|replica| replica.members().epoch() >= self.members.epoch())
        })
    }

    /// Returns the number of transactions that only a cut-off data center had, if it still has its
    /// data: no other data center will ever receive them.
    pub fn lost_with(&self, dc: DcId, cut: Timestamp) -> Option<usize> {
        let site = &self.sites[usize::from(dc.0)];
        if site.lost.is_some() {
            return None;
        }
        let mut lost: Vec<_> = Vec::new();
        for replica in &site.replicas {
            for record in replica.checkpoint() {
                let Record::Install(install) = record else { continue };
                let above = install.suffix.iter().chain(&install.forward);
                let above = above.filter(|it| it.origin == dc && it.timestamp() > cut);
                lost.extend(above.map(|transaction| transaction.timestamp()));
            }
        }
        lost.sort_unstable();
        lost.dedup();
        Some(lost.len())
    }

    /// Returns the join of the vectors visible in the remaining data centers.
    pub fn shown_by_others(&self, dc: DcId) -> Vector {
        let (speaker, _) = self.speaker(dc);
        let mut shown = Vector::ZERO;
        for other in speaker.map_or_else(Vec::new, |(_, reached)| reached) {
            shown.join(&self.visible(other));
        }
        shown
    }
}
