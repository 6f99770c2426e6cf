//! The witness rows of a whole store, which every read of it includes.
//!
//! Requests that arrive during a query share the next query, which starts when the first is over.
//! So no reader gets rows that were read before its request, and the nodes do not get the same
//! query from every reader.

use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::Shared;
use futures_util::lock::Mutex as AsyncMutex;
use mingle_store::BoxFuture;

use crate::error::Failed;
use crate::fetch::{Asked, Found, Part, fetch};
use crate::layout::ROWS;
use crate::store::Core;

/// The shared answer of one query.
type Answer = Shared<BoxFuture<'static, Result<Found, Failed>>>;

/// The queries at one replica.
#[derive(Default)]
pub struct Whole {
    /// The query that starts next.
    next: Mutex<Option<Answer>>,
    /// Held by the running query.
    turn: Arc<AsyncMutex<()>>,
}

impl Whole {
    fn next(&self) -> std::sync::MutexGuard<'_, Option<Answer>> {
        self.next.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Core {
    /// Returns the witness rows of the whole store, read at a replica after this was called.
    pub(crate) async fn whole_rows(self: &Arc<Self>, replica: usize) -> Result<Found, Failed> {
        let answer = {
            let mut next = self.whole[replica].next();
            next.get_or_insert_with(|| self.ask_whole(replica)).clone()
        };
        answer.await
    }

    fn ask_whole(self: &Arc<Self>, replica: usize) -> Answer {
        let (core, turn) = (Arc::downgrade(self), Arc::clone(&self.whole[replica].turn));
        let asking = async move {
            let _turn = turn.lock_owned().await;
            // A task that waits for this has the store open.
            let Some(core) = core.upgrade() else { return Ok(Found::default()) };
            // Later requests need a new query.
            core.whole[replica].next().take();
            let mut asked = Asked::default();
            asked.add(&core.layout.whole(), Part::Field(ROWS.to_owned()));
            fetch(&core.sites[replica], &core.layout, &asked).await
        };
        self.attended(asking)
    }
}
