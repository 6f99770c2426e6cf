//! Commands on items, each in a transaction of its own or within one that runs.

use std::collections::BTreeSet;
use std::time::{SystemTime, UNIX_EPOCH};

use mingle_geo::pattern::matches;
use mingle_geo::types::item::{Item, ItemOp};
use mingle_geo::{Key, Kind, Op, Update};

use super::RUNS_MAX;
use super::client::Client;
use super::failure::Failure;
use crate::commands::{Class, Command, Fault, Run, States, Work};
use crate::process::{Committed, Durability, Found};
use crate::resp::{Bytes, Protocol, Reply};

/// The data of a command.
#[derive(Debug, Default)]
pub struct Data {
    /// The states of its items.
    pub states: States,
    /// The time of their snapshot, in microseconds.
    pub now_us: u64,
}

/// Returns the time of the machine, in microseconds since 1970.
pub fn wall_us() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.as_micros() as u64
}

/// Returns the key of the item of this name.
pub fn item_key(name: &Bytes) -> Key {
    Key { kind: Kind::Item, name: name.clone() }
}

fn updates(ops: Vec<(Bytes, ItemOp)>) -> Vec<Update> {
    let update = |(name, op)| Update { key: item_key(&name), op: Op::Item(op), id: None };
    ops.into_iter().map(update).collect()
}

impl Client {
    /// True if a request writes a key that only strong transactions write.
    pub fn is_upgraded(&self, command: &Command, names: &[Bytes]) -> bool {
        let patterns = &self.shared.settings.strong_only;
        command.writes()
            && names.iter().any(|name| patterns.iter().any(|pattern| matches(pattern, name)))
    }

    /// Reads items in the running transaction, or in one that this call begins and ends.
    pub fn data(&self, names: &[Bytes], is_once: bool) -> Result<Data, Failure> {
        if names.is_empty() {
            return Ok(Data::default());
        }
        let names: BTreeSet<&Bytes> = names.iter().collect();
        let keys: Vec<Key> = names.iter().map(|name| item_key(name)).collect();
        let found = if is_once { self.session.find_once(keys) } else { self.session.find(keys) };
        let Found { states, snapshot } = found?;
        let states = names.into_iter().cloned().zip(states).collect();
        Ok(Data { states, now_us: snapshot[self.shared.settings.dc].micros() })
    }

    /// Runs a command on its data.
    pub fn compute(
        &mut self,
        command: &Command,
        args: &[Bytes],
        data: &Data,
        is_strong: bool,
    ) -> Result<(Reply, Vec<Update>), Fault> {
        let Run::Data(run) = command.run else {
            return Err(Fault::error("the command does not run on items"));
        };
        let empty = Item::default();
        let mut work = Work::new(&data.states, &empty, &mut self.random);
        work.now_us = data.now_us;
        work.wall_us = wall_us();
        work.is_strong = is_strong;
        work.is_new_protocol = self.protocol == Protocol::Three;
        let reply = run(&mut work, args)?;
        let ops = work.take_updates();
        Ok((reply, updates(ops)))
    }

    /// Runs a command in a transaction of its own.
    pub fn alone(&mut self, command: &Command, args: &[Bytes]) -> Reply {
        let names = match command.keys(args) {
            Ok(names) => names,
            Err(fault) => return fault.reply(),
        };
        let mut class = command.class(args);
        if self.is_upgraded(command, &names) {
            class = Class::Strong;
        }
        if class != Class::Strong {
            match self.causal(command, args, &names, class) {
                Err(Failure::Fault(Fault::Upgrade)) => {}
                done => return self.replied(done, false),
            }
        }
        let done = self.strong(command, args, &names);
        self.replied(done, true)
    }

    fn causal(
        &mut self,
        command: &Command,
        args: &[Bytes],
        names: &[Bytes],
        class: Class,
    ) -> Result<Reply, Failure> {
        let data = match class {
            Class::Blind => Data::default(),
            class => self.data(names, class == Class::Read)?,
        };
        let computed = self.compute(command, args, &data, false);
        match computed {
            Ok((reply, updates)) if !updates.is_empty() => {
                let committed = self.session.commit_with(updates)?;
                self.check_uniform(&committed)?;
                Ok(reply)
            }
            other => {
                if class == Class::Causal {
                    self.session.rollback()?;
                }
                Ok(other?.0)
            }
        }
    }

    /// Checks that a commit that has written is as durable as this connection asks for.
    pub fn check_uniform(&self, committed: &Committed) -> Result<(), Failure> {
        let is_enough = committed.is_uniform || self.durability != Durability::Uniform;
        if is_enough { Ok(()) } else { Err(Failure::NotUniform(committed.id)) }
    }

    fn strong(
        &mut self,
        command: &Command,
        args: &[Bytes],
        names: &[Bytes],
    ) -> Result<Reply, Failure> {
        for _ in 0..RUNS_MAX {
            self.session.begin_strong()?;
            let data = self.data(names, false)?;
            let (reply, updates) = match self.compute(command, args, &data, true) {
                Ok(computed) => computed,
                Err(fault) => {
                    self.session.rollback()?;
                    return Err(fault.into());
                }
            };
            match self.session.commit_with(updates).map_err(Failure::from) {
                Ok(_) => return Ok(reply),
                Err(failure) if failure.is_conflict() => {}
                Err(failure) => return Err(failure),
            }
        }
        Err(Failure::Conflict)
    }

    /// Returns the reply of a transaction, and notes one whose outcome is unknown.
    pub fn replied(&mut self, done: Result<Reply, Failure>, is_strong: bool) -> Reply {
        done.unwrap_or_else(|failure| {
            match &failure {
                Failure::Unknown(id, _) => self.unknown = Some(*id),
                Failure::Session(_) => self.is_stale = true,
                _ => {}
            }
            failure.reply(is_strong)
        })
    }

    /// Runs a command within the transaction of the session.
    pub fn within(
        &mut self,
        command: &Command,
        args: &[Bytes],
        is_strong: bool,
    ) -> Result<Reply, Failure> {
        let names = command.keys(args)?;
        let class = command.class(args);
        if !is_strong && (class == Class::Strong || self.is_upgraded(command, &names)) {
            return Err(Fault::Upgrade.into());
        }
        let data = match class {
            Class::Blind => Data::default(),
            _ => self.data(&names, false)?,
        };
        let (reply, updates) = self.compute(command, args, &data, is_strong)?;
        if !updates.is_empty() {
            self.has_written = true;
            self.session.write_all(updates)?;
        }
        Ok(reply)
    }
}
