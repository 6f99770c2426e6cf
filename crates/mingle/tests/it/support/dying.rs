//! A process that dies at one of its store calls: from then on it receives no answer from its stores.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use mingle_store::wrap::layer::{Layer, Layered, Request, Work};
use mingle_store::{DataStore, StoreError};

/// The number of the store call at which the process dies.
pub struct Life {
    calls: AtomicU64,
    last: u64,
    arrives: bool,
}

impl Life {
    /// Creates a process that dies at call number `last`, counted from 0; `arrives` says if the store gets it.
    pub fn until(last: u64, arrives: bool) -> Arc<Self> {
        Arc::new(Self { calls: AtomicU64::new(0), last, arrives })
    }

    pub fn is_over(&self) -> bool {
        self.calls.load(Ordering::Acquire) > self.last
    }
}

/// The layer of a process that dies.
#[derive(Clone)]
pub struct Dying {
    life: Arc<Life>,
}

impl Dying {
    pub fn within(inner: Arc<dyn DataStore>, life: Arc<Life>) -> Arc<dyn DataStore> {
        Layered::around(inner, Self { life })
    }
}

impl Layer for Dying {
    /// Makes a call if the process is alive, and returns the answer if the process is still alive then.
    async fn call<T: Send>(
        &self,
        request: Request<'_>,
        work: Work<'_, T>,
    ) -> Result<T, StoreError> {
        if matches!(request, Request::Begin) {
            // No round trip, so the process does not die here.
            return work().await;
        }
        let Life { calls, last, arrives } = &*self.life;
        let number = calls.fetch_add(1, Ordering::AcqRel);
        if number < *last {
            return work().await;
        }
        if number == *last && *arrives {
            drop(work().await);
        }
        std::future::pending().await
    }
}
