//! The runtime's permanent background tasks: signs of life, and sweeps.

use std::future::Future;
use std::sync::Arc;

use crate::mutants::Mutant;
use crate::recovery::Recovery;
use crate::recovery::sweeper::Swept;

impl Recovery {
    /// Starts the periodic sweeps for records that other origins have left, for as long as the
    /// runtime exists.
    pub(crate) fn start_sweeps(self: &Arc<Self>) {
        if self.stores.mutant == Mutant::NobodyHelps {
            return;
        }
        // Signs of life have a task of their own: a sweep may take long.
        self.now_and_then(|recovery| async move {
            recovery.in_flight.beat().await;
            let ended = recovery.in_flight.end_lease().await;
            recovery.stores.note_failed("removing the sign of life", &ended);
        });
        self.now_and_then(|recovery| async move {
            // Failed steps are tried again next time.
            let recovered = recovery.recover_own(false, &mut Swept::default()).await;
            recovery.stores.note_failed("finishing what is parked", &recovered);
            let swept = recovery.sweep_now(false, false).await;
            recovery.stores.note_failed("looking for what others have left", &swept);
        });
    }

    /// Repeats some work about as often as sweeps.
    fn now_and_then<F>(&self, work: impl Fn(Arc<Self>) -> F + Send + Sync + 'static)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (me, world, every) =
            (self.me.clone(), self.stores.world.clone(), self.stores.settings.sweep_every);
        self.stores.world.spawn(Box::pin(async move {
            loop {
                let parts = 768 + (world.random() % 512) as u32;
                world.sleep(every * parts / 1024).await;
                let Some(recovery) = me.upgrade() else { return };
                work(recovery).await;
            }
        }));
    }
}
