//! The state of a connection between requests.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use mingle_model::TransactionId;
use mingle_model::random::Random;

use super::acl::SignedIn;
use super::{Described, Shared, lock};
use crate::backup::Backup;
use crate::commands::{Command, Run, ServerCommand, find, refusal};
use crate::process::{Durability, Session};
use crate::resp::{Bytes, Protocol, Reply};

/// The number of bytes of a client that an error quotes.
const QUOTED: usize = 64;

/// A request that waits for `EXEC`.
pub type Queued = (&'static Command, Vec<Bytes>);

/// The transaction of a connection.
#[derive(Debug, Default)]
pub enum Mode {
    /// There is none: each command is one.
    #[default]
    Single,
    /// Commands wait for `EXEC`.
    Queueing {
        /// The commands.
        queue: Vec<Queued>,
        /// True if a command was refused, so that `EXEC` is, too.
        is_refused: bool,
    },
    /// `BEGIN` was called.
    Open {
        /// True if it is strong.
        is_strong: bool,
        /// True if a command has begun the session's transaction.
        is_begun: bool,
        /// True if the data center has given it up.
        is_lost: bool,
    },
}

/// The client of one connection.
#[derive(Debug)]
pub struct Client {
    pub(super) shared: Arc<Shared>,
    pub(super) described: Arc<Mutex<Described>>,
    pub(super) session: Session,
    /// The time at which its causal commits are acknowledged.
    pub(super) durability: Durability,
    pub(super) protocol: Protocol,
    pub(super) random: Random,
    pub(super) mode: Mode,
    /// The watched items: the number of changes, and true if it existed.
    pub(super) watched: BTreeMap<Bytes, (u64, bool)>,
    /// The last commit, if its outcome is unknown.
    pub(super) unknown: Option<TransactionId>,
    /// The names of items, by position, for the next step of a scan.
    pub(super) names: Option<Vec<(u64, Bytes)>>,
    /// True if the session may still run a transaction that failed: it refused the call.
    pub(super) is_stale: bool,
    /// True if the running transaction has written.
    pub(super) has_written: bool,
    /// The user.
    pub(super) signed_in: SignedIn,
    /// The backup that is under way.
    pub(super) backup: Option<Box<Backup>>,
    /// True if the connection ends after the reply.
    pub(super) is_closing: bool,
}

impl Client {
    /// Creates the client of a new connection.
    pub fn new(shared: &Arc<Shared>, described: &Arc<Mutex<Described>>) -> Self {
        let signed_in = SignedIn::new(shared);
        signed_in.name().clone_into(&mut lock(described).user);
        Self {
            shared: shared.clone(),
            described: described.clone(),
            session: shared.process.session(),
            durability: shared.settings.durability,
            protocol: Protocol::Two,
            random: Random::new(crate::random()),
            mode: Mode::Single,
            watched: BTreeMap::new(),
            unknown: None,
            names: None,
            is_stale: false,
            has_written: false,
            signed_in,
            backup: None,
            is_closing: false,
        }
    }

    /// Runs a request, which has at least one argument.
    pub fn run(&mut self, args: Vec<Bytes>) -> Reply {
        self.shared.requests.fetch_add(1, Ordering::Relaxed);
        let Some(name) = args.first() else { return Reply::Error("ERR no command".into()) };
        let Some(command) = find(name) else {
            self.refused();
            return unknown(&args);
        };
        lock(&self.described).command = command.name;
        if let Err(fault) = command.check_arity(&args) {
            self.refused();
            return fault.reply();
        }
        if let Err(reply) = self.admit_request(command, &args) {
            return reply;
        }
        let begun = Instant::now();
        let reply = match self.mode {
            Mode::Queueing { .. } => return self.queue(command, args),
            Mode::Open { .. } => self.open(command, &args),
            Mode::Single => self.single(command, &args),
        };
        self.note_time(&args, 0, begun.elapsed());
        reply
    }

    /// Notes that a request was refused: `EXEC` is refused then.
    pub fn refused(&mut self) {
        if let Mode::Queueing { is_refused, .. } = &mut self.mode {
            *is_refused = true;
        }
    }

    /// Runs a request outside of transactions.
    pub fn single(&mut self, command: &'static Command, args: &[Bytes]) -> Reply {
        let is_outcome = matches!(command.run, Run::Server(ServerCommand::Outcome));
        if !is_outcome && self.unknown.take().is_some() {
            // The session goes on without the outcome.
            if let Err(error) = self.session.leave_unanswered() {
                return Reply::Error(format!("ERR {error}"));
            }
        }
        if self.is_stale {
            // The next call says why, if it fails again.
            self.is_stale = self.session.rollback().is_err();
        }
        match command.run {
            Run::Data(_) => self.alone(command, args),
            Run::Server(of) => self.server(of, args),
        }
    }

    fn server(&mut self, of: ServerCommand, args: &[Bytes]) -> Reply {
        use ServerCommand as Of;
        match of {
            Of::Multi => self.multi(),
            Of::Exec => Reply::Error("ERR EXEC without MULTI".into()),
            Of::Discard => Reply::Error("ERR DISCARD without MULTI".into()),
            Of::Watch => self.watch(args),
            Of::Unwatch => self.unwatch(),
            Of::Begin => self.begin(args),
            Of::Commit | Of::Abort => {
                let name = String::from_utf8_lossy(&args[0]).to_uppercase();
                Reply::Error(format!("ERR {name} without BEGIN"))
            }
            Of::Outcome => self.outcome(args),
            Of::Keys => self.keys(args),
            Of::Scan => self.scan(args),
            Of::DbSize => self.db_size(),
            Of::RandomKey => self.random_key(),
            Of::Flush => self.flush(args),
            Of::Barrier | Of::Wait => self.barrier(of),
            Of::Fence => self.fence(args),
            Of::Admit => self.admit(args),
            Of::Backup => self.backup(args),
            Of::Session => self.session(args),
            of => self.simple(of, args),
        }
    }
}

/// Returns the error for a command that does not exist here.
pub fn unknown(args: &[Bytes]) -> Reply {
    let quoted = |bytes: &Bytes| bytes[..bytes.len().min(QUOTED)].escape_ascii().to_string();
    let name = quoted(&args[0]);
    if let Some(reason) = refusal(&args[0]) {
        let name = name.to_uppercase();
        return Reply::Error(format!("ERR {name} is not supported: {reason}"));
    }
    let rest: Vec<String> =
        args[1..].iter().take(3).map(|it| format!("'{}' ", quoted(it))).collect();
    let rest = rest.concat();
    Reply::Error(format!("ERR unknown command '{name}', with args beginning with: {rest}"))
}
