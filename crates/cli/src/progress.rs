//! A progress indicator for work that takes longer than a second.

use std::io::IsTerminal;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// The time before the indicator appears.
const QUIET: Duration = Duration::from_secs(1);

/// The time between two pictures.
const TICK: Duration = Duration::from_millis(100);

/// An indicator of running work, on standard error if that is a terminal, until it is dropped.
pub struct Progress {
    /// Dropped first: that ends the thread.
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Progress {
    /// Starts the wait of one second.
    pub fn start(what: impl Into<String>) -> Self {
        if !std::io::stderr().is_terminal() {
            return Self { end: None, thread: None };
        }
        let what = what.into();
        let (end, ended) = channel();
        let thread = std::thread::spawn(move || {
            if ended.recv_timeout(QUIET) != Err(RecvTimeoutError::Timeout) {
                return;
            }
            let style = ProgressStyle::with_template("{spinner} {msg} ({elapsed})");
            let bar = ProgressBar::new_spinner().with_message(what);
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
            while ended.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                bar.tick();
            }
            bar.finish_and_clear();
        });
        Self { end: Some(end), thread: Some(thread) }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            // The thread only draws, so a failure of it is harmless.
            thread.join().ok();
        }
    }
}
