//! The slowest requests, for `SLOWLOG`.
//!
//! Redis measures the execution alone. Here a request ends when its reply is ready, so its time has
//! what a client waits for: the data, the disk, and other data centers.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::client::Client;
use super::execute::wall_us;
use super::lock;
use crate::commands::{Fault, parse_int};
use crate::resp::{Bytes, Reply};

/// The maximum number of entries; the oldest goes first.
pub const ENTRIES_MAX: usize = 128;

/// The maximum number of words of an entry, and of bytes of a word.
const WORDS_MAX: usize = 32;
const WORD_BYTES: usize = 128;

/// The usual number of entries that `SLOWLOG GET` returns.
const USUAL: usize = 10;

/// A slow request.
#[derive(Clone, Debug)]
struct Entry {
    id: u64,
    at_s: u64,
    took: Duration,
    words: Vec<Vec<u8>>,
    address: String,
    name: String,
}

/// The last slow requests.
#[derive(Debug, Default)]
pub struct SlowLog {
    entries: Mutex<VecDeque<Entry>>,
    noted: AtomicU64,
}

impl SlowLog {
    /// Returns the number of all slow requests so far.
    pub fn noted(&self) -> u64 {
        self.noted.load(Ordering::Relaxed)
    }

    /// Adds an entry.
    fn note(&self, entry: impl FnOnce(u64) -> Entry) {
        let mut entries = lock(&self.entries);
        let entry = entry(self.noted.fetch_add(1, Ordering::Relaxed));
        entries.truncate(ENTRIES_MAX - 1);
        entries.push_front(entry);
    }
}

/// Returns the words of a request as far as an entry keeps them. `more` is the number of requests that
/// ran with it.
fn kept(args: &[Bytes], more: usize) -> Vec<Vec<u8>> {
    // A token is as good as a password.
    let name = args.first().map(|name| name.to_ascii_lowercase()).unwrap_or_default();
    let secret = match name.as_slice() {
        b"auth" => 1,
        b"session" | b"hello" | b"acl" => 2,
        _ => usize::MAX,
    };
    let word = |(place, word): (usize, &Bytes)| match word.len() {
        _ if place >= secret => b"(redacted)".to_vec(),
        length if length > WORD_BYTES => {
            let mut cut = word[..WORD_BYTES].to_vec();
            cut.extend(format!("... ({} more bytes)", length - WORD_BYTES).into_bytes());
            cut
        }
        _ => word.to_vec(),
    };
    let most = if args.len() > WORDS_MAX { WORDS_MAX - 1 } else { args.len() };
    let mut words: Vec<Vec<u8>> = args.iter().take(most).enumerate().map(word).collect();
    if args.len() > most {
        words.push(format!("... ({} more arguments)", args.len() - most).into_bytes());
    }
    if more > 0 {
        words.push(format!("... (with {more} more requests of its pipeline)").into_bytes());
    }
    words
}

impl Client {
    /// Notes a request, and the number of those that ran with it, if that took long.
    pub(super) fn note_time(&self, args: &[Bytes], more: usize, took: Duration) {
        if self.shared.settings.slow.is_none_or(|slow| took < slow) {
            return;
        }
        let (address, name) = {
            let described = lock(&self.described);
            (described.address.to_string(), described.name.clone())
        };
        let (at_s, words) = (wall_us() / 1_000_000, kept(args, more));
        self.shared.slow.note(|id| Entry { id, at_s, took, words, address, name });
    }

    /// Answers `SLOWLOG`.
    pub(super) fn slow_log(&self, args: &[Bytes]) -> Reply {
        let word = args[1].to_ascii_lowercase();
        match (word.as_slice(), &args[2..]) {
            (b"len", []) => Reply::count(lock(&self.shared.slow.entries).len()),
            (b"reset", []) => {
                lock(&self.shared.slow.entries).clear();
                Reply::OK
            }
            (b"get", []) => self.slow_entries(USUAL),
            (b"get", [count]) => match parse_int(count) {
                Some(-1) => self.slow_entries(ENTRIES_MAX),
                Some(count) if count >= 0 => {
                    self.slow_entries(usize::try_from(count).unwrap_or(ENTRIES_MAX))
                }
                _ => Fault::error("count should be greater than or equal to -1").reply(),
            },
            _ => Fault::error("expected SLOWLOG GET [count], SLOWLOG LEN or SLOWLOG RESET").reply(),
        }
    }

    /// Returns this many entries, the latest first.
    fn slow_entries(&self, count: usize) -> Reply {
        let entries: Vec<Entry> =
            lock(&self.shared.slow.entries).iter().take(count).cloned().collect();
        Reply::array(entries.into_iter().map(|entry| {
            Reply::array([
                Reply::Integer(entry.id as i64),
                Reply::Integer(entry.at_s as i64),
                Reply::Integer(i64::try_from(entry.took.as_micros()).unwrap_or(i64::MAX)),
                Reply::array(entry.words.into_iter().map(|word| Reply::Bulk(word.into()))),
                Reply::text(entry.address),
                Reply::text(entry.name),
            ])
        }))
    }
}
