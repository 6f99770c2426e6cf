//! Notes on what concerns security.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;

/// The maximum number of denials that are kept for `ACL LOG`; the oldest goes first.
const DENIALS_MAX: usize = 128;

/// The time, in milliseconds, within which equal denials are one entry, as in Redis.
const SAME_MS: u64 = 60_000;

/// A kind of event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AuditEvent {
    /// A client has given a right password.
    SignedIn,
    /// A client has given a wrong password or name.
    Refused,
    /// A user asked for what it may not do.
    Denied,
    /// A command of operators was run.
    Ran,
    /// The users were read again.
    Loaded,
    /// The certificates were read again.
    Certificates,
    /// A connection was closed before it was encrypted.
    Handshake,
}

/// A denial, for `ACL LOG`.
#[derive(Clone, Debug)]
pub struct Denial {
    /// Its number.
    pub id: u64,
    /// The number of equal ones.
    pub count: u64,
    /// `auth`, `command` or `key`.
    pub reason: &'static str,
    /// The command or the item.
    pub object: String,
    /// The user.
    pub user: String,
    /// The address of the client.
    pub client: String,
    /// The times of the first and the last one, in milliseconds since 1970.
    pub first_ms: u64,
    /// See `first_ms`.
    pub last_ms: u64,
}

/// A line of the file.
#[derive(Serialize)]
struct Line<'a> {
    time: String,
    event: AuditEvent,
    client: &'a str,
    user: &'a str,
    what: &'a str,
}

/// The log: a file with a line of JSON for each event, and the last denials.
#[derive(Debug, Default)]
pub struct Audit {
    file: Option<(PathBuf, Mutex<File>)>,
    denials: Mutex<VecDeque<Denial>>,
    noted: AtomicU64,
    denied: AtomicU64,
    wrong: AtomicU64,
    failed: AtomicU64,
}

impl Audit {
    /// Opens a log that adds to a file, which only its owner can read if it is new.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub fn open(path: &Path) -> io::Result<Self> {
        use std::os::unix::fs::OpenOptionsExt as _;
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
        Ok(Self { file: Some((path.to_owned(), Mutex::new(file))), ..Self::default() })
    }

    /// Notes an event in the file. An event that cannot be written is counted and printed.
    pub fn note(&self, event: AuditEvent, client: &str, user: &str, what: &str) {
        let Some((path, file)) = &self.file else { return };
        let line = Line { time: now_text(), event, client, user, what };
        let mut text = serde_json::to_vec(&line).unwrap_or_default();
        text.push(b'\n');
        // One call for each line: lines of several threads do not mix.
        if let Err(error) = lock(file).write_all(&text)
            && self.failed.fetch_add(1, Ordering::Relaxed) == 0
        {
            // There may be no reader.
            let path = path.display();
            let _ = writeln!(io::stderr(), "the audit log {path} cannot be written: {error}");
        }
    }

    /// Notes a denial, in the file and for `ACL LOG`.
    pub fn deny(&self, reason: &'static str, object: &str, user: &str, client: &str) {
        let event = if reason == "auth" { AuditEvent::Refused } else { AuditEvent::Denied };
        let count = if reason == "auth" { &self.wrong } else { &self.denied };
        count.fetch_add(1, Ordering::Relaxed);
        let what = format!("{reason} {object}");
        self.note(event, client, user, &what);
        let mut denials = lock(&self.denials);
        let now = now_ms();
        let is_same = |it: &&mut Denial| {
            (it.reason, &*it.object, &*it.user, &*it.client) == (reason, object, user, client)
                && now.saturating_sub(it.last_ms) < SAME_MS
        };
        if let Some(same) = denials.iter_mut().find(is_same) {
            same.count += 1;
            same.last_ms = now;
            return;
        }
        let id = self.noted.fetch_add(1, Ordering::Relaxed);
        denials.truncate(DENIALS_MAX - 1);
        denials.push_front(Denial {
            id,
            count: 1,
            reason,
            object: object.to_owned(),
            user: user.to_owned(),
            client: client.to_owned(),
            first_ms: now,
            last_ms: now,
        });
    }

    /// Returns the last denials, the latest first.
    pub fn denials(&self, most: usize) -> Vec<Denial> {
        lock(&self.denials).iter().take(most).cloned().collect()
    }

    /// Forgets the denials.
    pub fn reset(&self) {
        lock(&self.denials).clear();
    }

    /// Returns the number of wrong passwords.
    pub fn wrong_passwords(&self) -> u64 {
        self.wrong.load(Ordering::Relaxed)
    }

    /// Returns the number of requests that were denied.
    pub fn denied(&self) -> u64 {
        self.denied.load(Ordering::Relaxed)
    }

    /// Returns the number of events that could not be written.
    pub fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64
}

fn now_text() -> String {
    mingle_model::Time::from_micros(now_ms() as i64 * 1_000).to_string()
}
