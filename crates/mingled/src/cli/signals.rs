//! Signals that end the process.

use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals of a process that is to stop: SIGTERM, and SIGINT of Ctrl-C.
#[derive(Debug)]
pub struct Signals {
    runtime: Runtime,
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// Catches the signals from now on.
    pub fn catch() -> Result<Self, String> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| format!("signals cannot be caught: {error}"))?;
        let caught = runtime.block_on(async {
            Ok((signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?))
        });
        let (terminate, interrupt) =
            caught.map_err(|error: std::io::Error| format!("signals cannot be caught: {error}"))?;
        Ok(Self { runtime, terminate, interrupt })
    }

    /// Waits for a signal; returns true if one has come in this time.
    pub fn wait(&mut self, time: Duration) -> bool {
        let (terminate, interrupt) = (&mut self.terminate, &mut self.interrupt);
        self.runtime.block_on(async {
            tokio::select! {
                _ = terminate.recv() => true,
                _ = interrupt.recv() => true,
                () = tokio::time::sleep(time) => false,
            }
        })
    }
}
