//! Stores of Mingle's programs in a data center.

mod conformance;
mod guarded;
mod hostile;
mod indexes;
mod killed;
mod listener;
mod programs;
mod several;

use std::future::Future;

/// Runs a future, in a runtime as a program has one.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(2).enable_all().build().expect("a runtime");
    runtime.block_on(future)
}
