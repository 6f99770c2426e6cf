//! Starting again after a crash that a call has asked for.
//!
//! The process replaces itself with a new one of the same program: memory, threads, connections and locks
//! are gone at once, as after a kill. The terminal, the arguments and the process id stay, and so do the
//! address and the key of sessions, so that clients can go on.

use std::fmt::Write;
use std::net::SocketAddr;
#[cfg(unix)]
use std::sync::{Arc, Mutex, PoisonError};

#[cfg(unix)]
use mingle_server::Crash;

use crate::exit::Failure;

/// The variable of the environment with the state that stays.
const VARIABLE: &str = "MINGLE_DEV_AGAIN";

/// The length of a key, in bytes.
const KEY_BYTES: usize = 32;

/// The state that stays after a crash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Where the server listens.
    pub address: SocketAddr,
    /// The key that signs sessions.
    pub key: [u8; KEY_BYTES],
    /// The number of crashes so far.
    pub crashes: u32,
}

impl Kept {
    /// Returns the state that the process before this one has left, if there was one.
    pub fn of_former() -> Result<Option<Self>, Failure> {
        let Ok(text) = std::env::var(VARIABLE) else { return Ok(None) };
        Self::parse(&text).map(Some).ok_or_else(|| {
            let message = format!(
                "the variable {VARIABLE} is set by `mingle dev` alone, as ADDRESS KEY COUNT; unset it"
            );
            Failure::usage(message)
        })
    }

    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(' ');
        let address = parts.next()?.parse().ok()?;
        let digits =
            parts.next().filter(|digits| digits.len() == 2 * KEY_BYTES && digits.is_ascii())?;
        let crashes = parts.next()?.parse().ok()?;
        let mut key = [0; KEY_BYTES];
        for (index, byte) in key.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&digits[2 * index..2 * index + 2], 16).ok()?;
        }
        parts.next().is_none().then_some(Self { address, key, crashes })
    }

    fn text(&self) -> String {
        let mut text = format!("{} ", self.address);
        for byte in self.key {
            let _ = write!(text, "{byte:02x}");
        }
        let _ = write!(text, " {}", self.crashes);
        text
    }
}

/// Returns the crash of this process, after which it starts again with the state that is then kept. Only on Unix can a
/// process replace itself.
#[cfg(unix)]
pub fn crash(kept: &Arc<Mutex<Kept>>) -> Crash {
    use std::os::unix::process::CommandExt;
    use std::process::{Command, abort};

    let kept = Arc::clone(kept);
    Crash::new(move || {
        let mut next = kept.lock().unwrap_or_else(PoisonError::into_inner).clone();
        next.crashes += 1;
        eprintln!("crash {}: a call has asked for it", next.crashes);
        let program = std::env::current_exe().unwrap_or_else(|_| "mingle".into());
        let arguments = std::env::args_os().skip(1);
        let error = Command::new(program).args(arguments).env(VARIABLE, next.text()).exec();
        eprintln!("error: the command does not start again: {error}");
        abort()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_is_read_as_it_was_written() {
        let key = std::array::from_fn(|index| index as u8 * 8);
        for address in ["127.0.0.1:8080", "[::1]:1"] {
            let kept = Kept { address: address.parse().expect("an address"), key, crashes: 3 };
            let text = kept.text();
            assert_eq!(Kept::parse(&text), Some(kept), "{text}");
            for wrong in [
                "",
                "127.0.0.1:8080",
                &text[..text.len() - 1],
                &format!("{text} 1"),
                &text.replace("08", "0é"),
            ] {
                assert_eq!(Kept::parse(wrong), None, "{wrong}");
            }
        }
    }
}
