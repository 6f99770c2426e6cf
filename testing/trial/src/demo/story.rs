//! The timeline that is printed.

use std::fmt::Display;
use std::time::Instant;

/// A timeline.
#[derive(Debug)]
pub struct Story {
    begin: Instant,
}

impl Story {
    /// Begins at 0 s.
    pub fn begin() -> Self {
        Self { begin: Instant::now() }
    }

    /// Prints an event that has happened now.
    pub fn tell(&self, happened: impl Display) {
        println!("{:6.1} s  {happened}", self.begin.elapsed().as_secs_f64());
    }
}
