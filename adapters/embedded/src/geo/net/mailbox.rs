//! Mailboxes of clients: queues for the answers of replicas.

use std::collections::VecDeque;
use std::task::Waker;

use mingle_geo::message::Message;
use mingle_geo::session::Floor;
use mingle_geo::{Address, DcId};

use super::Inner;

/// The queue of answers to one client.
#[derive(Default)]
pub struct Mailbox {
    pub queue: VecDeque<(Address, Message)>,
    pub waker: Option<Waker>,
}

impl Inner {
    /// Adds a client, which can receive messages.
    pub fn add_client(&mut self) -> u64 {
        self.next += 1;
        self.clients.insert(self.next, Mailbox::default());
        self.next
    }

    /// Returns what was acknowledged at an incarnation of a data center.
    pub fn floor(&mut self, dc: DcId, incarnation: u32) -> &mut Floor {
        self.floors.entry((dc, incarnation)).or_default()
    }

    /// Removes a client.
    pub fn remove_client(&mut self, client: u64) {
        self.clients.remove(&client);
    }

    /// Takes the next answer to a client.
    pub fn receive(&mut self, client: u64) -> Option<(Address, Message)> {
        self.clients.get_mut(&client)?.queue.pop_front()
    }

    /// True if there is an answer to a client, or no such client; if not, `waker` is woken once one
    /// arrives.
    pub fn has_mail(&mut self, client: u64, waker: &Waker) -> bool {
        let Some(mailbox) = self.clients.get_mut(&client) else { return true };
        mailbox.waker = Some(waker.clone());
        !mailbox.queue.is_empty()
    }

    /// Wakes all clients, so that they look again.
    pub(super) fn wake_clients(&mut self) {
        for mailbox in self.clients.values_mut() {
            if let Some(waker) = mailbox.waker.take() {
                waker.wake();
            }
        }
    }
}
