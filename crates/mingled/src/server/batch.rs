//! Requests of a pipeline that run together: their reads at one snapshot, and their writes in one commit.
//!
//! A request on its own passes to the driver and back once for its data and once for its commit, and
//! waits for the disk. A client that sends requests without waiting for replies has all of that once for
//! many of them:
//!
//! ```text
//! SET a 1 · INCR b · GET c · INCR b      one snapshot with b and c, one commit of a and b, three replies;
//!                                        the second INCR b begins another batch, since b was written
//! ```
//!
//! Each request keeps its own reply, and its own error. What it may read or write, no earlier request of
//! the batch has written, so it sees all writes before it. Strong commands and all but commands on items
//! run by themselves.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::client::{Client, Mode};
use super::execute::Data;
use super::failure::Failure;
use super::lock;
use crate::commands::{Class, Command, Fault, Run, find};
use crate::process::CommitError;
use crate::resp::{Bytes, Reply};

/// The maximum number of requests of a batch.
const REQUESTS_MAX: usize = 64;

/// The maximum number of words of a request that runs with others.
const WORDS_MAX: usize = 64;

/// The maximum number of bytes of the requests of a batch.
const BYTES_MAX: usize = 64 << 10;

/// A request that can run with others.
#[derive(Debug)]
pub struct Entry {
    command: &'static Command,
    class: Class,
    names: Vec<Bytes>,
    bytes: usize,
}

/// Requests that have come together and have no replies yet.
#[derive(Debug, Default)]
pub struct Batch {
    requests: Vec<(Entry, Vec<Bytes>)>,
    /// The items that they may write.
    written: BTreeSet<Bytes>,
    bytes: usize,
}

impl Batch {
    /// True if a request can be added.
    pub fn has_room_for(&self, entry: &Entry) -> bool {
        self.requests.len() < REQUESTS_MAX
            && self.bytes + entry.bytes <= BYTES_MAX
            && !entry.names.iter().any(|name| self.written.contains(name))
    }

    /// Adds a request.
    pub fn push(&mut self, entry: Entry, args: Vec<Bytes>) {
        self.bytes += entry.bytes;
        if entry.class != Class::Read {
            self.written.extend(entry.names.iter().cloned());
        }
        self.requests.push((entry, args));
    }

    /// The items whose states its requests need.
    fn needed(&self) -> Vec<Bytes> {
        let needs = self.requests.iter().filter(|(entry, _)| entry.class != Class::Blind);
        needs.flat_map(|(entry, _)| entry.names.iter().cloned()).collect()
    }
}

impl Client {
    /// Returns the entry of a request, if it can run with others.
    pub fn entry(&self, args: &[Bytes]) -> Option<Entry> {
        let is_between =
            matches!(self.mode, Mode::Single) && self.unknown.is_none() && !self.is_stale;
        if !is_between || args.len() > WORDS_MAX {
            return None;
        }
        let command = find(args.first()?)?;
        let is_fit = matches!(command.run, Run::Data(_)) && command.check_arity(args).is_ok();
        let class = command.class(args);
        if !is_fit || class == Class::Strong || !self.is_allowed(command, args) {
            return None;
        }
        let names = command.keys(args).ok()?;
        let bytes = args.iter().map(|word| word.len()).sum();
        let is_strong = self.is_upgraded(command, &names);
        (!is_strong && bytes <= BYTES_MAX).then_some(Entry { command, class, names, bytes })
    }

    /// Runs the requests of a batch; returns their replies in order.
    pub fn run_batch(&mut self, batch: Batch) -> Vec<Reply> {
        // After a failure each request is told of its own.
        let is_sound = self.unknown.is_none() && !self.is_stale;
        let is_shared = is_sound && batch.requests.len() > 1;
        let together = if is_shared { self.together(&batch) } else { None };
        together.unwrap_or_else(|| {
            // Each runs by itself, and finds its own reasons.
            batch.requests.into_iter().map(|(_, args)| self.run(args)).collect()
        })
    }

    /// Runs the requests at one snapshot, with one commit. None if they have had no effect and must run
    /// one by one.
    fn together(&mut self, batch: &Batch) -> Option<Vec<Reply>> {
        let (begun, needed) = (Instant::now(), batch.needed());
        let may_write = !batch.written.is_empty();
        let data = self.data(&needed, !may_write);
        // A session that refused the call may still run the transaction.
        self.is_stale |= data.is_err();
        let data = data.ok()?;
        let is_begun = may_write && !needed.is_empty();
        let (none, mut replies, mut updates) = (Data::default(), Vec::new(), Vec::new());
        for (entry, args) in &batch.requests {
            let data = if entry.class == Class::Blind { &none } else { &data };
            match self.compute(entry.command, args, data, false) {
                Ok((reply, more)) => {
                    replies.push((reply, !more.is_empty()));
                    updates.extend(more);
                }
                Err(Fault::Upgrade) => {
                    self.is_stale |= is_begun && self.session.rollback().is_err();
                    return None;
                }
                Err(fault) => replies.push((fault.reply(), false)),
            }
        }
        let has_writes = !updates.is_empty();
        let done = if has_writes {
            match self.session.commit_with(updates) {
                Ok(committed) => self.check_uniform(&committed),
                Err(CommitError::Aborted(_)) => return None,
                Err(error) => Err(error.into()),
            }
        } else {
            self.is_stale |= is_begun && self.session.rollback().is_err();
            Ok(())
        };
        let count = batch.requests.len() as u64;
        self.shared.requests.fetch_add(count, Ordering::Relaxed);
        if let [(_, first), .., (last, _)] = batch.requests.as_slice() {
            lock(&self.described).command = last.command.name;
            self.note_time(first, batch.requests.len() - 1, begun.elapsed());
        }
        Some(self.ended(replies, done))
    }

    /// The replies of a batch; those of its writes are the error of the commit, if it has one.
    fn ended(&mut self, replies: Vec<(Reply, bool)>, done: Result<(), Failure>) -> Vec<Reply> {
        let mut ended = Vec::with_capacity(replies.len());
        for (reply, has_written) in replies {
            ended.push(match &done {
                Err(failure) if has_written => self.replied(Err(failure.clone()), false),
                _ => reply,
            });
        }
        ended
    }
}
