//! Transactions of several commands.

use super::client::{Client, Mode, Queued};
use super::failure::Failure;
use super::{QUEUE_MAX, RUNS_MAX, WATCHED_MAX};
use crate::commands::{Class, Command, Fault, Run, ServerCommand, States};
use crate::process::CommitError;
use crate::resp::{Bytes, Reply};

/// The result of one run of the queued commands.
enum Ran {
    /// All have replies, and the transaction is committed.
    Committed(Vec<Reply>),
    /// A watched item has changed.
    Changed,
    /// A command needs a strong transaction.
    Upgrade,
}

/// The number of changes of a watched item, and true if it exists.
fn seen(states: &States, name: &Bytes, now_us: u64) -> (u64, bool) {
    let Some(state) = states.get(name) else { return (0, false) };
    let exists = state.as_item().is_some_and(|item| item.at(now_us).exists());
    (state.changes(), exists)
}

/// True if a command may run within a transaction.
fn fits(command: &Command) -> bool {
    use ServerCommand as Of;
    match command.run {
        Run::Data(_) => true,
        Run::Server(of) => matches!(
            of,
            Of::Ping
                | Of::Echo
                | Of::Time
                | Of::Select
                | Of::Client
                | Of::Command
                | Of::Config
                | Of::Info
        ),
    }
}

impl Client {
    pub(super) fn multi(&mut self) -> Reply {
        self.mode = Mode::Queueing { queue: Vec::new(), is_refused: false };
        Reply::OK
    }

    pub(super) fn watch(&mut self, args: &[Bytes]) -> Reply {
        let names: Vec<Bytes> =
            args[1..].iter().filter(|name| !self.watched.contains_key(*name)).cloned().collect();
        if self.watched.len() + names.len() > WATCHED_MAX {
            return Reply::Error(format!("ERR too many watched keys: at most {WATCHED_MAX}"));
        }
        let data = match self.data(&names, true) {
            Ok(data) => data,
            Err(failure) => return failure.reply(false),
        };
        for name in names {
            let seen = seen(&data.states, &name, data.now_us);
            self.watched.insert(name, seen);
        }
        Reply::OK
    }

    pub(super) fn unwatch(&mut self) -> Reply {
        self.watched.clear();
        Reply::OK
    }

    /// Handles a request between `MULTI` and `EXEC`.
    pub(super) fn queue(&mut self, command: &'static Command, args: Vec<Bytes>) -> Reply {
        use ServerCommand as Of;
        let refuse = |client: &mut Self, text: String| {
            client.refused();
            Reply::Error(text)
        };
        match command.run {
            Run::Server(Of::Exec) => return self.exec(),
            Run::Server(Of::Discard) => {
                self.mode = Mode::Single;
                self.watched.clear();
                return Reply::OK;
            }
            Run::Server(of @ (Of::Quit | Of::Reset)) => return self.simple(of, &args),
            Run::Server(Of::Multi) => {
                return Reply::Error("ERR MULTI calls can not be nested".into());
            }
            Run::Server(Of::Watch) => {
                return Reply::Error("ERR WATCH inside MULTI is not allowed".into());
            }
            Run::Server(Of::Unwatch) => return Reply::Simple("QUEUED"),
            _ if !fits(command) => {
                let name = command.name.to_uppercase();
                return refuse(self, format!("ERR {name} is not allowed in a transaction"));
            }
            _ => {}
        }
        if let Err(fault) = command.keys(&args) {
            self.refused();
            return fault.reply();
        }
        let Mode::Queueing { queue, .. } = &mut self.mode else { return Reply::OK };
        if queue.len() >= QUEUE_MAX {
            return refuse(self, format!("ERR too many queued commands: at most {QUEUE_MAX}"));
        }
        queue.push((command, args));
        Reply::Simple("QUEUED")
    }

    fn exec(&mut self) -> Reply {
        let Mode::Queueing { queue, is_refused } = std::mem::take(&mut self.mode) else {
            return Reply::Error("ERR EXEC without MULTI".into());
        };
        let watched = std::mem::take(&mut self.watched);
        if is_refused {
            let text = "EXECABORT Transaction discarded because of previous errors.";
            return Reply::Error(text.into());
        }
        let mut is_strong = !watched.is_empty()
            || queue.iter().any(|(command, args)| {
                let names = command.keys(args).unwrap_or_default();
                command.class(args) == Class::Strong || self.is_upgraded(command, &names)
            });
        let watched: Vec<(Bytes, (u64, bool))> = watched.into_iter().collect();
        for _ in 0..RUNS_MAX {
            match self.exec_once(&queue, &watched, is_strong) {
                Ok(Ran::Committed(replies)) => return Reply::Array(replies),
                Ok(Ran::Changed) => return Reply::NullArray,
                Ok(Ran::Upgrade) => is_strong = true,
                Err(failure) if failure.is_conflict() => {}
                Err(failure) => return self.replied(Err(failure), is_strong),
            }
        }
        Failure::Conflict.reply(is_strong)
    }

    fn exec_once(
        &mut self,
        queue: &[Queued],
        watched: &[(Bytes, (u64, bool))],
        is_strong: bool,
    ) -> Result<Ran, Failure> {
        if is_strong {
            self.session.begin_strong()?;
        }
        let names: Vec<Bytes> = watched.iter().map(|(name, _)| name.clone()).collect();
        let data = self.data(&names, false)?;
        let is_same =
            |(name, then): &(Bytes, (u64, bool))| seen(&data.states, name, data.now_us) == *then;
        if !watched.iter().all(is_same) {
            self.session.rollback()?;
            return Ok(Ran::Changed);
        }
        let (mut replies, mut is_begun) = (Vec::new(), is_strong);
        self.has_written = false;
        for (command, args) in queue {
            let Run::Data(_) = command.run else {
                let Run::Server(of) = command.run else { continue };
                replies.push(self.simple(of, args));
                continue;
            };
            is_begun = true;
            match self.within(command, args, is_strong) {
                Ok(reply) => replies.push(reply),
                Err(Failure::Fault(Fault::Upgrade)) => {
                    self.session.rollback()?;
                    return Ok(Ran::Upgrade);
                }
                Err(Failure::Fault(fault)) => replies.push(fault.reply()),
                Err(failure) => {
                    self.session.rollback()?;
                    return Err(failure);
                }
            }
        }
        if is_begun {
            match self.session.commit() {
                // No command got as far as the session.
                Err(CommitError::Session(error)) if is_nothing(&error) => {}
                committed => {
                    let committed = committed?;
                    if self.has_written {
                        self.check_uniform(&committed)?;
                    }
                }
            }
        }
        Ok(Ran::Committed(replies))
    }

    pub(super) fn begin(&mut self, args: &[Bytes]) -> Reply {
        let is_strong = match args.get(1).map(|word| word.to_ascii_lowercase()).as_deref() {
            None | Some(b"causal") => false,
            Some(b"strong") => true,
            Some(other) => {
                let other = other[..other.len().min(64)].escape_ascii();
                return Reply::Error(format!("ERR found '{other}', expected CAUSAL or STRONG"));
            }
        };
        let begun = match args.get(2..).unwrap_or_default() {
            [] if is_strong => self.session.begin_strong(),
            [] => Ok(()),
            [word, label] if is_strong && word.eq_ignore_ascii_case(b"label") => {
                let found = String::from_utf8_lossy(label);
                let Some(label) = self.shared.settings.labels.get(&*found).cloned() else {
                    return self.unknown_label(&found);
                };
                self.session.begin_labelled(label)
            }
            [word, _] if word.eq_ignore_ascii_case(b"label") => {
                let text = "ERR only strong transactions have a label: use BEGIN STRONG LABEL";
                return Reply::Error(text.into());
            }
            _ => return Fault::Syntax.reply(),
        };
        if let Err(error) = begun {
            return Failure::from(error).reply(true);
        }
        self.has_written = false;
        self.mode = Mode::Open { is_strong, is_begun: is_strong, is_lost: false };
        Reply::OK
    }

    fn unknown_label(&self, found: &str) -> Reply {
        let labels: Vec<&str> = self.shared.settings.labels.iter().map(|it| &**it).collect();
        let expected = if labels.is_empty() {
            "and none is declared".to_owned()
        } else {
            format!("expected {}", labels.join(", "))
        };
        let found: String = found.chars().take(64).collect();
        Reply::Error(format!("ERR found label '{}', {expected}", found.escape_default()))
    }

    /// Handles a request between `BEGIN` and `COMMIT`.
    pub(super) fn open(&mut self, command: &'static Command, args: &[Bytes]) -> Reply {
        use ServerCommand as Of;
        let Mode::Open { is_strong, is_lost, .. } = self.mode else { return Reply::OK };
        match command.run {
            Run::Server(Of::Commit) => self.commit(),
            Run::Server(Of::Abort) => {
                self.mode = Mode::Single;
                match self.session.rollback() {
                    Ok(()) => Reply::OK,
                    Err(error) => Failure::from(error).reply(is_strong),
                }
            }
            Run::Server(of @ (Of::Quit | Of::Reset)) => self.simple(of, args),
            _ if !fits(command) => {
                let name = command.name.to_uppercase();
                Reply::Error(format!("ERR {name} is not allowed in a transaction"))
            }
            Run::Server(of) => self.simple(of, args),
            Run::Data(_) if is_lost => lost(),
            Run::Data(_) => self.step(command, args, is_strong),
        }
    }

    fn step(&mut self, command: &'static Command, args: &[Bytes], is_strong: bool) -> Reply {
        match self.within(command, args, is_strong) {
            Ok(reply) => {
                if let Mode::Open { is_begun, .. } = &mut self.mode {
                    *is_begun = true;
                }
                reply
            }
            Err(Failure::Fault(Fault::Upgrade)) => {
                let name = command.name.to_uppercase();
                Reply::Error(format!(
                    "ERR this {name} is strong, and the transaction is causal: use BEGIN STRONG"
                ))
            }
            Err(Failure::Fault(fault)) => fault.reply(),
            Err(failure) => {
                if let Mode::Open { is_lost, .. } = &mut self.mode {
                    *is_lost = true;
                }
                self.is_stale = self.session.rollback().is_err();
                self.replied(Err(failure), is_strong)
            }
        }
    }

    fn commit(&mut self) -> Reply {
        let Mode::Open { is_strong, is_begun, is_lost } = std::mem::take(&mut self.mode) else {
            return Reply::OK;
        };
        if is_lost {
            return lost();
        }
        if !is_begun {
            return Reply::OK;
        }
        let done = match self.session.commit() {
            Err(CommitError::Session(error)) if is_nothing(&error) => Ok(Reply::OK),
            committed => committed.map_err(Failure::from).and_then(|committed| {
                if self.has_written {
                    self.check_uniform(&committed)?;
                }
                Ok(Reply::OK)
            }),
        };
        self.replied(done, is_strong)
    }

    pub(super) fn outcome(&mut self, args: &[Bytes]) -> Reply {
        let asked = String::from_utf8_lossy(&args[1]).into_owned();
        let Some(id) = self.unknown.filter(|id| id.to_string() == asked) else {
            return Reply::Error(format!(
                "ERR no unknown outcome of {asked} on this connection: ask before the next command"
            ));
        };
        match self.session.ask() {
            Ok(_) => {
                self.unknown = None;
                Reply::Simple("COMMITTED")
            }
            Err(CommitError::Aborted(_)) => {
                self.unknown = None;
                Reply::Simple("ABORTED")
            }
            Err(CommitError::Unknown(..)) => {
                Reply::Error(format!("UNKNOWN {id} the outcome is not known yet"))
            }
            Err(CommitError::Session(error)) => Failure::from(error).reply(false),
        }
    }
}

fn is_nothing(error: &crate::process::SessionError) -> bool {
    use crate::process::SessionError as Error;
    matches!(error, Error::Call(mingle_geo::session::CallError::Nothing))
}

fn lost() -> Reply {
    Reply::Error("CONFLICT the transaction was given up after an error; nothing was written".into())
}
