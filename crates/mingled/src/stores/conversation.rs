//! The requests of a connection, carried out by the program's stores.

use mingle_store::{
    Answer, Commit, Committed, DataStore as _, Read, Session, StoreError, Transaction, United,
    UnitedCommit, Write,
};
use mingle_store_mingled::wire::{Answered, Given, Opening, Progress, Request};

use super::listener::Opened;

/// The state of a connection.
pub struct Conversation {
    stores: Opened,
    open: Open,
}

/// The transaction of a connection.
enum Open {
    None,
    One(u16, Box<dyn Transaction>),
    United(Box<dyn United>),
}

impl Conversation {
    /// Creates the state of a connection of a program with these stores.
    pub fn new(stores: Opened) -> Self {
        Self { stores, open: Open::None }
    }

    /// Carries out a request; none is the answer to one that has none.
    pub async fn answer(&mut self, request: Request) -> Option<Answered> {
        match request {
            Request::Drop => {
                self.open = Open::None;
                None
            }
            request => Some(self.carry_out(request).await),
        }
    }

    async fn carry_out(&mut self, request: Request) -> Answered {
        match request {
            Request::Read { opening, store, reads, is_last } => {
                self.begin(opening).await?;
                self.read(store, &reads, is_last).await
            }
            Request::Flush { opening, store, writes } => {
                self.begin(opening).await?;
                self.flush(store, writes).await
            }
            Request::Commit { opening, commit } => {
                self.begin(opening).await?;
                self.commit(commit).await.map(Given::Committed)
            }
            Request::CommitUnited { opening, id, parts } => {
                self.begin(opening).await?;
                let named = parts.into_iter().map(|(store, part)| Ok((self.name(store)?, part)));
                let parts = named.collect::<Result<_, StoreError>>()?;
                match std::mem::replace(&mut self.open, Open::None) {
                    Open::United(united) => {
                        united.commit(UnitedCommit { id, parts }).await.map(Given::Committed)
                    }
                    _ => Err(self.misused("there is no transaction over several stores")),
                }
            }
            Request::Outcome(store, id) => {
                let store = self.store(store)?;
                store.outcome(id).await.map(Given::Outcome)
            }
            Request::Everywhere(store) => {
                let store = self.store(store)?;
                let seen = store.everywhere().await?;
                let ((epoch, ends), departed) = (store.ends(), store.departed());
                let departed = departed.into_iter().collect();
                Ok(Given::Everywhere(Progress { seen, epoch, ends, departed }))
            }
            Request::Floors(store, floors) => {
                self.store(store)?.raise_floors(&floors);
                Ok(Given::Nothing)
            }
            Request::Drop => Ok(Given::Nothing),
        }
    }

    /// Begins a transaction, if the request is its first one. An earlier one is given up.
    async fn begin(&mut self, opening: Option<Opening>) -> Result<(), StoreError> {
        let Some(Opening { store, session, level, transaction, is_united }) = opening else {
            return Ok(());
        };
        self.open = Open::None;
        let session = Session { level, transaction, ..session };
        let begun = self.store(store)?;
        self.open = if is_united {
            Open::United(begun.begin_united(&session).await?)
        } else {
            Open::One(store, begun.begin(&session).await?)
        };
        Ok(())
    }

    async fn read(&mut self, store: u16, reads: &[Read], is_last: bool) -> Answered {
        if is_last
            && let Open::One(at, transaction) = &mut self.open
            && *at == store
        {
            let answers = transaction.read_last(reads).await?;
            return self.end_after(answers).await;
        }
        self.part(store).await?.read(reads).await.map(Given::Answers)
    }

    /// Ends a transaction that only read.
    async fn end_after(&mut self, answers: Vec<Answer>) -> Answered {
        let committed = self.commit(Commit::default()).await?;
        Ok(Given::Ended(answers, committed))
    }

    async fn flush(&mut self, store: u16, writes: Vec<Write>) -> Answered {
        self.part(store).await?.flush(writes).await.map(|()| Given::Nothing)
    }

    async fn commit(&mut self, commit: Commit) -> Result<Committed, StoreError> {
        match std::mem::replace(&mut self.open, Open::None) {
            Open::One(_, transaction) => transaction.commit(commit).await,
            _ => Err(self.misused("there is no transaction of one store")),
        }
    }

    /// Returns the transaction as a store sees it.
    async fn part(&mut self, store: u16) -> Result<&mut dyn Transaction, StoreError> {
        let name = self.name(store)?;
        let misused = self.misused("there is no transaction at this store");
        match &mut self.open {
            Open::One(at, transaction) if *at == store => Ok(&mut **transaction),
            Open::United(united) => {
                // The name lives as long as the part.
                let stores = self.stores.as_slice();
                let known = stores.iter().map(|store| &store.capabilities().store);
                let name = known.into_iter().find(|known| **known == name).ok_or(misused)?;
                united.part(name).await
            }
            _ => Err(misused),
        }
    }

    fn store(
        &self,
        number: u16,
    ) -> Result<std::sync::Arc<mingle_store_embedded::GeoStore>, StoreError> {
        let found = self.stores.get(usize::from(number)).cloned();
        found.ok_or_else(|| self.misused("the program has no store of this number"))
    }

    fn name(&self, number: u16) -> Result<mingle_model::Name, StoreError> {
        self.store(number).map(|store| store.capabilities().store.clone())
    }

    fn misused(&self, reason: &str) -> StoreError {
        let first = self.stores.first().map(|store| store.capabilities().store.clone());
        let store = first.unwrap_or_else(|| "mingled".into());
        StoreError::Refused { store, reason: reason.to_owned() }
    }
}
