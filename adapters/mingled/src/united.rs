//! Transactions over several stores of a cluster.

use std::sync::Arc;

use mingle_model::Name;
use mingle_store::{
    Answer, BoxFuture, Commit, Committed, Read, StoreError, Transaction, United, UnitedCommit,
    Write,
};

use crate::cluster::Cluster;
use crate::transaction::{Conversation, Trouble};
use crate::wire::{Given, Opening, Request};

/// A transaction over several stores.
pub struct UnitedTransaction {
    part: Part,
    /// The store at which it began.
    first: u16,
}

/// The transaction as one of its stores sees it.
struct Part {
    conversation: Conversation,
    /// The store that is read and written.
    store: u16,
    has_flushed: bool,
}

impl UnitedTransaction {
    /// Creates a transaction that has done nothing yet.
    pub fn new(cluster: Arc<Cluster>, at: (u16, usize), opening: Opening) -> Self {
        let (first, conversation) = (at.0, Conversation::new(cluster, at, opening));
        let part = Part { conversation, store: first, has_flushed: false };
        Self { part, first }
    }

    fn number(&self, store: &str) -> Result<u16, StoreError> {
        let cluster = self.part.conversation.cluster();
        cluster.number(store).ok_or_else(|| StoreError::Refused {
            store: cluster.name(self.first),
            reason: format!("its engine has no store {store}"),
        })
    }

    async fn commit_now(mut self, commit: UnitedCommit) -> Result<Committed, StoreError> {
        let id = commit.id;
        let may_have_written =
            self.part.has_flushed || commit.parts.iter().any(|(_, part)| !part.writes.is_empty());
        let parts: Result<Vec<(u16, Commit)>, StoreError> = commit
            .parts
            .into_iter()
            .map(|(store, part)| Ok((self.number(&store)?, part)))
            .collect();
        let parts = parts?;
        let cluster = Arc::clone(self.part.conversation.cluster());
        let raised = parts.iter().map(|(store, part)| (*store, cluster.floors(&part.writes)));
        let raised: Vec<_> = raised.collect();
        let place = self.part.conversation.place;
        let request = |opening| Request::CommitUnited { opening, id, parts };
        let asked = self.part.conversation.ask(request).await;
        self.part.conversation.end();
        match asked {
            Ok(Given::Committed(committed)) => {
                for (store, floors) in raised {
                    cluster.tell_floors(store, place, floors);
                }
                Ok(committed)
            }
            Err(Trouble::Said(error)) => Err(error),
            Ok(_) | Err(Trouble::Lost(_)) if may_have_written => {
                Err(StoreError::Unknown { store: cluster.name(self.first), id })
            }
            Ok(_) => Err(self.part.conversation.mixed_up(self.first)),
            Err(Trouble::Lost(error)) => Err(error),
        }
    }
}

impl Part {
    async fn read_now(&mut self, reads: &[Read]) -> Result<Vec<Answer>, StoreError> {
        let (store, reads) = (self.store, reads.to_vec());
        let count = reads.len();
        let request = |opening| Request::Read { opening, store, reads, is_last: false };
        match self.conversation.ask(request).await.map_err(Trouble::error)? {
            Given::Answers(answers) if answers.len() == count => Ok(answers),
            _ => Err(self.conversation.mixed_up(store)),
        }
    }

    async fn flush_now(&mut self, writes: Vec<Write>) -> Result<(), StoreError> {
        self.has_flushed |= !writes.is_empty();
        let store = self.store;
        let request = |opening| Request::Flush { opening, store, writes };
        match self.conversation.ask(request).await.map_err(Trouble::error)? {
            Given::Nothing => Ok(()),
            _ => Err(self.conversation.mixed_up(store)),
        }
    }
}

impl Transaction for Part {
    fn read<'a>(&'a mut self, reads: &'a [Read]) -> BoxFuture<'a, Result<Vec<Answer>, StoreError>> {
        Box::pin(self.read_now(reads))
    }

    fn flush(&mut self, writes: Vec<Write>) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(self.flush_now(writes))
    }

    fn commit(self: Box<Self>, _: Commit) -> BoxFuture<'static, Result<Committed, StoreError>> {
        let reason = "a part of a transaction over several stores cannot end alone".to_owned();
        let store = self.conversation.cluster().name(self.store);
        Box::pin(std::future::ready(Err(StoreError::Refused { store, reason })))
    }
}

impl United for UnitedTransaction {
    fn part<'a>(
        &'a mut self,
        store: &'a Name,
    ) -> BoxFuture<'a, Result<&'a mut dyn Transaction, StoreError>> {
        let part = self.number(store).map(|number| {
            self.part.store = number;
            &mut self.part as &mut dyn Transaction
        });
        Box::pin(std::future::ready(part))
    }

    fn commit(
        self: Box<Self>,
        commit: UnitedCommit,
    ) -> BoxFuture<'static, Result<Committed, StoreError>> {
        Box::pin(self.commit_now(commit))
    }
}
