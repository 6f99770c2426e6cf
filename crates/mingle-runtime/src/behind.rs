//! What a runtime does behind its callers' backs for as long as it is there: signs of life, and sweeps.

use std::future::Future;
use std::sync::Arc;

use crate::planted::Planted;
use crate::runtime::Runtime;
use crate::sweep::Swept;

impl Runtime {
    /// Starts to look, now and then, for what others have left behind, for as long as the runtime
    /// is there.
    pub fn start_sweeps(self: &Arc<Self>) {
        if self.planted == Planted::NobodyHelps {
            return;
        }
        // Signs of life wait for nothing else: a sweep may take long.
        self.now_and_then(|runtime| async move {
            runtime.beat().await;
            let ended = runtime.end_lease().await;
            runtime.note_failed("removing the sign of life", &ended);
        });
        self.now_and_then(|runtime| async move {
            // What fails is tried again next time.
            let recovered = runtime.recover_own(false, &mut Swept::default()).await;
            runtime.note_failed("finishing what is parked", &recovered);
            let swept = runtime.sweep_now(false, false).await;
            runtime.note_failed("looking for what others have left", &swept);
        });
    }

    /// Does something again and again, about as often as sweeps are.
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
