//! The runtime's permanent background tasks: signs of life, and sweeps.

use std::future::Future;
use std::sync::Arc;

use crate::mutants::Planted;
use crate::recovery::sweeper::Swept;
use crate::runtime::Runtime;

impl Runtime {
    /// Starts the periodic sweeps for records that other origins have left, for as long as the
    /// runtime exists.
    pub fn start_sweeps(self: &Arc<Self>) {
        if self.planted == Planted::NobodyHelps {
            return;
        }
        // Signs of life have a task of their own: a sweep may take long.
        self.now_and_then(|runtime| async move {
            runtime.beat().await;
            let ended = runtime.end_lease().await;
            runtime.note_failed("removing the sign of life", &ended);
        });
        self.now_and_then(|runtime| async move {
            // Failed steps are tried again next time.
            let recovered = runtime.recover_own(false, &mut Swept::default()).await;
            runtime.note_failed("finishing what is parked", &recovered);
            let swept = runtime.sweep_now(false, false).await;
            runtime.note_failed("looking for what others have left", &swept);
        });
    }

    /// Repeats some work about as often as sweeps.
    fn now_and_then<F>(&self, work: impl Fn(Arc<Self>) -> F + Send + Sync + 'static)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (me, world, every) = (self.me.clone(), self.world.clone(), self.settings.sweep_every);
        self.world.spawn(Box::pin(async move {
            loop {
                let parts = 768 + (world.random() % 512) as u32;
                world.sleep(every * parts / 1024).await;
                let Some(runtime) = me.upgrade() else { return };
                work(runtime).await;
            }
        }));
    }
}
