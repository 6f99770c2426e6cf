//! State that a store keeps for each of its data centers: the gate where commits take turns, the
//! vector of committed transactions, and idle sessions for the next transactions.

use std::cmp::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use mingle_geo::{DcId, Vector};

use super::client::Client;
use super::gate::Gate;
use super::store::Shared;

/// The state of one data center.
#[derive(Default)]
pub struct Site {
    gate: Arc<Gate>,
    /// The incarnation of the data center, and the vector that clients of it have committed.
    last: Mutex<(u32, Vector)>,
    /// Sessions that no transaction uses.
    idle: Mutex<Vec<Client>>,
}

impl Shared {
    /// Takes an idle session of the current incarnation; ends sessions of earlier incarnations.
    pub(super) fn idle(&self, dc: DcId) -> Option<Client> {
        let incarnation = self.net.with(|inner| inner.incarnation(dc));
        let idle = &self.sites[usize::from(dc.0)].idle;
        let is_over = |client: &Client| client.incarnation() != incarnation;
        let (client, over) = {
            let mut idle = idle.lock().unwrap_or_else(PoisonError::into_inner);
            let over: Vec<Client> = idle.extract_if(.., |client| is_over(client)).collect();
            (idle.pop(), over)
        };
        drop(over);
        client
    }

    /// Ends all idle sessions.
    pub(super) fn drop_idle(&self) {
        for site in self.sites.iter() {
            let idle =
                std::mem::take(&mut *site.idle.lock().unwrap_or_else(PoisonError::into_inner));
            drop(idle);
        }
    }

    /// Keeps a session of the core for the next transaction.
    pub fn give_back(&self, mut client: Client) {
        client.rollback();
        client.enter(&self.space);
        // Another transaction would wait for a strong one to arrive.
        let is_ahead = self.is_mixed() && {
            let visible = self.net.with(|inner| inner.visible(client.dc()));
            client.past()[DcId::STRONG] > visible[DcId::STRONG]
        };
        if client.is_idle() && !is_ahead {
            let idle = &self.sites[usize::from(client.dc().0)].idle;
            idle.lock().unwrap_or_else(PoisonError::into_inner).push(client);
        }
    }

    /// Returns the gate where commits of a data center take turns.
    pub fn gate(&self, dc: DcId) -> Arc<Gate> {
        Arc::clone(&self.sites[usize::from(dc.0)].gate)
    }

    /// Returns the vector of all commits in the current incarnation of a data center.
    pub fn last(&self, dc: DcId) -> Vector {
        let incarnation = self.net.with(|inner| inner.incarnation(dc));
        let last = &self.sites[usize::from(dc.0)].last;
        let (of, last) = *last.lock().unwrap_or_else(PoisonError::into_inner);
        if of == incarnation { last } else { Vector::ZERO }
    }

    /// Notes a commit in a data center that is visible to all transactions there.
    pub fn committed(&self, dc: DcId, commit_vec: &Vector) {
        self.committed_in((dc, self.net.with(|inner| inner.incarnation(dc))), commit_vec);
    }

    /// Notes a commit of this client.
    pub fn committed_by(&self, client: &Client, commit_vec: &Vector) {
        self.committed_in((client.dc(), client.incarnation()), commit_vec);
    }

    /// Notes a commit vector for every data center, as if a transaction had committed in each.
    pub(super) fn committed_everywhere(&self, commit_vec: &Vector) {
        (0..self.sites.len() as u8).for_each(|dc| self.committed(DcId(dc), commit_vec));
    }

    fn committed_in(&self, (dc, incarnation): (DcId, u32), commit_vec: &Vector) {
        let last = &self.sites[usize::from(dc.0)].last;
        let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
        match incarnation.cmp(&last.0) {
            Ordering::Less => {}
            Ordering::Equal => last.1.join(commit_vec),
            Ordering::Greater => *last = (incarnation, *commit_vec),
        }
    }
}
