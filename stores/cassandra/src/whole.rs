//! The witness rows of a whole store, which come with every read of it.
//!
//! Those who ask while somebody is being answered ask together, once that is over: nobody is given
//! what was read before he asked, and the nodes are not asked the same thing by everybody.

use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::Shared;
use futures_util::lock::Mutex as AsyncMutex;
use mingle_store::BoxFuture;

use crate::error::Failed;
use crate::fetch::{Asked, Found, Part, fetch};
use crate::layout::ROWS;
use crate::store::Core;

/// What all who ask together are answered.
type Answer = Shared<BoxFuture<'static, Result<Found, Failed>>>;

/// Who asks at one replica.
#[derive(Default)]
pub struct Whole {
    /// Those who will ask next.
    next: Mutex<Option<Answer>>,
    /// Whoever is being answered has it.
    turn: Arc<AsyncMutex<()>>,
}

impl Whole {
    fn next(&self) -> std::sync::MutexGuard<'_, Option<Answer>> {
        self.next.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Core {
    /// The witness rows of the whole store, read at a replica after this was called.
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
            // Whoever waits for this has the store open.
            let Some(core) = core.upgrade() else { return Ok(Found::default()) };
            // From here on those who come are too late.
            core.whole[replica].next().take();
            let mut asked = Asked::default();
            asked.add(&core.layout.whole(), Part::Field(ROWS.to_owned()));
            fetch(&core.sites[replica], &core.layout, &asked).await
        };
        self.attended(asking)
    }
}
