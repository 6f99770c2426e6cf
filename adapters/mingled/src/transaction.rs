//! Transactions at one store.

use std::sync::Arc;

use mingle_model::Version;
use mingle_store::{
    Answer, BoxFuture, Commit, Committed, Read, Session, StoreError, Transaction, Write,
};

use crate::cluster::{CHANGED, Cluster, SIGN_INS_MAX};
use crate::link::{Connection, Failed};
use crate::wire::{Answered, Given, Opening, Request};

/// Returns the start of a transaction at this store.
pub fn opening(store: u16, session: &Session, is_united: bool) -> Opening {
    let (level, transaction) = (session.level, session.transaction.clone());
    Opening { store, session: session.clone(), level, transaction, is_united }
}

/// The requests of one transaction, on one connection.
pub struct Conversation {
    cluster: Arc<Cluster>,
    /// The store at which it began.
    first: u16,
    /// The place of the data center in the list of connections.
    pub(crate) place: usize,
    /// The start, until the first request.
    opening: Option<Opening>,
    connection: Option<Connection>,
    /// True if an answer was lost: the data center has ended the transaction.
    is_lost: bool,
}

/// The failure of a request.
pub enum Trouble {
    /// The data center reports it, or was not asked.
    Said(StoreError),
    /// The request may have been carried out.
    Lost(StoreError),
}

impl Trouble {
    /// Returns the error for a request that can be repeated.
    pub fn error(self) -> StoreError {
        match self {
            Self::Said(error) | Self::Lost(error) => error,
        }
    }
}

impl Conversation {
    /// Creates a transaction that has done nothing yet.
    pub fn new(cluster: Arc<Cluster>, (first, place): (u16, usize), opening: Opening) -> Self {
        Self { cluster, first, place, opening: Some(opening), connection: None, is_lost: false }
    }

    /// Returns the error for an answer that does not fit its request at a store.
    pub fn mixed_up(&self, store: u16) -> StoreError {
        self.cluster.mixed_up(store, self.place)
    }

    /// Returns the program's connection to the data center.
    pub fn cluster(&self) -> &Arc<Cluster> {
        &self.cluster
    }

    /// Sends a request with the start of the transaction, if it is the first one.
    pub async fn ask(
        &mut self,
        request: impl FnOnce(Option<Opening>) -> Request,
    ) -> Result<Given, Trouble> {
        let said = Trouble::Said;
        if self.is_lost {
            let reason = "an earlier answer was lost, and with it the transaction";
            return Err(said(self.cluster.unavailable(self.first, self.place, reason)));
        }
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.cluster.connect(self.first, self.place).await.map_err(said)?,
        };
        // Until the answer is here, a caller that stops waiting loses the transaction.
        self.is_lost = true;
        let opening = self.opening.take();
        // Nothing of the transaction is at the data center yet, so its first request can be sent again.
        let sends = if opening.is_some() { SIGN_INS_MAX } else { 1 };
        let request = request(opening);
        let error = |it: &Self, reason: &str| it.cluster.unavailable(it.first, it.place, reason);
        for send in 1..=sends {
            match connection.ask::<Answered>(&request).await {
                Ok((_, Ok(Given::Again))) => self.cluster.user_changed(self.place),
                Ok((connection, answered)) => {
                    self.connection = Some(connection);
                    self.is_lost = false;
                    return answered.map_err(Trouble::Said);
                }
                Err(Failed::NotSent(reason)) => return Err(said(error(self, &reason))),
                Err(Failed::Lost(reason)) => return Err(Trouble::Lost(error(self, &reason))),
            }
            if send == sends {
                break;
            }
            connection = self.cluster.connect(self.first, self.place).await.map_err(said)?;
        }
        Err(said(error(self, CHANGED)))
    }

    /// Ends the conversation after a request that has ended the transaction.
    pub fn end(&mut self) {
        if let Some(connection) = self.connection.take() {
            connection.keep();
        }
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            self.cluster.end(connection);
        }
    }
}

/// A transaction at one store.
pub struct MingledTransaction {
    conversation: Conversation,
    store: u16,
    /// The result of the commit, if the last reads have ended the transaction.
    ended: Option<Committed>,
    has_flushed: bool,
    /// The version of the last answer, if there is one.
    seen: Version,
}

impl MingledTransaction {
    /// Creates a transaction that has done nothing yet.
    pub fn new(cluster: Arc<Cluster>, at: (u16, usize), opening: Opening) -> Self {
        let (store, conversation) = (at.0, Conversation::new(cluster, at, opening));
        Self { conversation, store, ended: None, has_flushed: false, seen: Version(0) }
    }

    async fn read_now(&mut self, reads: &[Read], is_last: bool) -> Result<Vec<Answer>, StoreError> {
        let (store, reads) = (self.store, reads.to_vec());
        let count = reads.len();
        let request = |opening| Request::Read { opening, store, reads, is_last };
        match self.conversation.ask(request).await.map_err(Trouble::error)? {
            Given::Answers(answers) if answers.len() == count => {
                self.seen = answers.last().map_or(self.seen, |answer| answer.version);
                Ok(answers)
            }
            Given::Ended(answers, committed) if answers.len() == count => {
                self.ended = Some(committed);
                self.conversation.end();
                Ok(answers)
            }
            _ => Err(self.mixed_up()),
        }
    }

    fn mixed_up(&self) -> StoreError {
        self.conversation.mixed_up(self.store)
    }

    async fn flush_now(&mut self, writes: Vec<Write>) -> Result<(), StoreError> {
        self.has_flushed |= !writes.is_empty();
        let store = self.store;
        let request = |opening| Request::Flush { opening, store, writes };
        match self.conversation.ask(request).await.map_err(Trouble::error)? {
            Given::Nothing => Ok(()),
            _ => Err(self.mixed_up()),
        }
    }

    async fn commit_now(mut self, commit: Commit) -> Result<Committed, StoreError> {
        if let Some(committed) = self.ended.take().filter(|_| commit.is_empty()) {
            return Ok(committed);
        }
        let cluster = Arc::clone(self.conversation.cluster());
        let capabilities = cluster.capabilities(self.store);
        let is_one = capabilities.replicas.len() < 2;
        if commit.is_empty() && !self.has_flushed && !capabilities.serializable && is_one {
            // Nothing was written, nothing is validated, and one data center has no stamps.
            return Ok(Committed { version: self.seen, ..Committed::default() });
        }
        let id = commit.id;
        let may_have_written = !commit.writes.is_empty() || self.has_flushed;
        let (place, floors) = (self.conversation.place, cluster.floors(&commit.writes));
        let asked = self.conversation.ask(|opening| Request::Commit { opening, commit }).await;
        self.conversation.end();
        match asked {
            Ok(Given::Committed(committed)) => {
                cluster.tell_floors(self.store, place, floors);
                Ok(committed)
            }
            Err(Trouble::Said(error)) => Err(error),
            Ok(_) | Err(Trouble::Lost(_)) if may_have_written => {
                Err(StoreError::Unknown { store: cluster.name(self.store), id })
            }
            Ok(_) => Err(self.mixed_up()),
            Err(Trouble::Lost(error)) => Err(error),
        }
    }
}

impl Transaction for MingledTransaction {
    fn read<'a>(&'a mut self, reads: &'a [Read]) -> BoxFuture<'a, Result<Vec<Answer>, StoreError>> {
        Box::pin(self.read_now(reads, false))
    }

    fn read_last<'a>(
        &'a mut self,
        reads: &'a [Read],
    ) -> BoxFuture<'a, Result<Vec<Answer>, StoreError>> {
        Box::pin(self.read_now(reads, true))
    }

    fn flush(&mut self, writes: Vec<Write>) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(self.flush_now(writes))
    }

    fn commit(
        self: Box<Self>,
        commit: Commit,
    ) -> BoxFuture<'static, Result<Committed, StoreError>> {
        Box::pin(self.commit_now(commit))
    }
}
