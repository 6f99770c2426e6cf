//! Deadlines in arguments.

use super::number::int;
use super::{Fault, Work};

/// The unit and the start of a time in an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit {
    /// The number of microseconds.
    pub micros: i64,
    /// True if the time counts from 1970, false if from now.
    pub is_absolute: bool,
}

impl Unit {
    /// Returns the unit of an option such as `EX`.
    pub fn of_option(name: &[u8]) -> Option<Self> {
        let (micros, is_absolute) = match name.to_ascii_lowercase().as_slice() {
            b"ex" => (1_000_000, false),
            b"px" => (1_000, false),
            b"exat" => (1_000_000, true),
            b"pxat" => (1_000, true),
            _ => return None,
        };
        Some(Self { micros, is_absolute })
    }

    /// Returns the unit of a command such as `PEXPIRE`.
    pub fn of_command(name: &[u8]) -> Self {
        let name = name.to_ascii_lowercase();
        let micros = if name.starts_with(b"p") { 1_000 } else { 1_000_000 };
        Self { micros, is_absolute: name.ends_with(b"at") || name.ends_with(b"time") }
    }

    /// Reads a time; it may lie in the past.
    pub fn any(self, work: &Work<'_>, text: &[u8], command: &str) -> Result<i64, Fault> {
        let number = int(text)?;
        let base = if self.is_absolute { 0 } else { work.base_us() as i64 };
        let time = number.checked_mul(self.micros).and_then(|time| time.checked_add(base));
        time.ok_or_else(|| invalid(command))
    }

    /// Reads a time whose number is above 0.
    pub fn positive(self, work: &Work<'_>, text: &[u8], command: &str) -> Result<u64, Fault> {
        if int(text)? <= 0 {
            return Err(invalid(command));
        }
        self.any(work, text, command).map(i64::unsigned_abs)
    }
}

fn invalid(command: &str) -> Fault {
    Fault::error(format!("invalid expire time in '{command}' command"))
}
