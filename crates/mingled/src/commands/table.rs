//! The table of commands.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::number::parse_int;
use super::{Fault, Outcome, Work, hashes, keys, lists, server, sets, strings, zsets};
use crate::resp::Bytes;

/// The consistency of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// It only reads, at a causal snapshot.
    Read,
    /// A causal write that reads nothing.
    Blind,
    /// A causal write.
    Causal,
    /// A strong transaction.
    Strong,
}

/// The places of a command's keys among its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keys {
    /// It has none.
    None,
    /// From the first to the last place, in steps. A last place below 0 counts from the end.
    Range(usize, i64, usize),
    /// As many as the number in this place, after it.
    Counted(usize),
    /// The same, and the first argument.
    FirstAndCounted(usize),
}

impl Keys {
    /// The first argument.
    pub const FIRST: Self = Self::Range(1, 1, 1);
    /// The first two arguments.
    pub const TWO: Self = Self::Range(1, 2, 1);
    /// All arguments.
    pub const ALL: Self = Self::Range(1, -1, 1);
}

/// The group of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// Connections and the server.
    Server,
    /// Names of any type.
    Generic,
    /// Strings.
    String,
    /// Hashes.
    Hash,
    /// Sets.
    Set,
    /// Lists.
    List,
    /// Sorted sets.
    SortedSet,
    /// Transactions.
    Transaction,
}

/// The part of a server that runs a command.
#[derive(Clone, Copy, Debug)]
pub enum Run {
    /// The command itself, on items.
    Data(fn(&mut Work<'_>, &[Bytes]) -> Outcome),
    /// The connection.
    Server(ServerCommand),
}

/// A command that a connection runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the table describes each")]
pub enum ServerCommand {
    Abort,
    Acl,
    Admit,
    Auth,
    Backup,
    Barrier,
    Begin,
    Client,
    Command,
    Commit,
    Config,
    DataCenters,
    DbSize,
    Discard,
    Echo,
    Exec,
    Fence,
    Flush,
    Hello,
    Info,
    Keys,
    Multi,
    Outcome,
    Ping,
    Quit,
    RandomKey,
    Reset,
    Scan,
    Select,
    Session,
    SlowLog,
    Time,
    Unwatch,
    Wait,
    Watch,
}

/// A command.
#[derive(Clone, Copy, Debug)]
pub struct Command {
    /// Its name, in small letters.
    pub name: &'static str,
    /// The number of arguments, with the name; the least number if it is below 0.
    pub arity: i64,
    /// Its consistency, unless it depends on the arguments.
    pub class: Class,
    /// The consistency of a request, if it depends on the arguments.
    pub class_of: Option<fn(&[Bytes]) -> Class>,
    /// The places of its keys.
    pub keys: Keys,
    /// The part of the server that runs it.
    pub run: Run,
    /// Its group.
    pub group: Group,
    /// A sentence on it.
    pub summary: &'static str,
    /// How it differs from Redis, beyond its consistency; empty if it does not.
    pub difference: &'static str,
}

impl Command {
    /// Creates a command on items.
    pub(super) const fn data(
        name: &'static str,
        arity: i64,
        class: Class,
        keys: Keys,
        run: fn(&mut Work<'_>, &[Bytes]) -> Outcome,
        summary: &'static str,
    ) -> Self {
        let (run, group) = (Run::Data(run), Group::Generic);
        Self { name, arity, class, class_of: None, keys, run, group, summary, difference: "" }
    }

    /// Creates a command that the connection runs.
    pub(super) const fn server(
        name: &'static str,
        arity: i64,
        run: ServerCommand,
        summary: &'static str,
    ) -> Self {
        let (run, group) = (Run::Server(run), Group::Server);
        let (class, keys) = (Class::Read, Keys::None);
        Self { name, arity, class, class_of: None, keys, run, group, summary, difference: "" }
    }

    /// Notes a difference from Redis.
    pub(super) const fn differs(self, difference: &'static str) -> Self {
        Self { difference, ..self }
    }

    /// Notes that the class depends on the arguments.
    pub(super) const fn by(self, class_of: fn(&[Bytes]) -> Class) -> Self {
        Self { class_of: Some(class_of), ..self }
    }

    /// Returns the class of a request.
    pub fn class(&self, args: &[Bytes]) -> Class {
        self.class_of.map_or(self.class, |of| of(args))
    }

    /// True if it may write.
    pub fn writes(&self) -> bool {
        self.class != Class::Read
    }

    /// Checks the number of arguments, which include the name.
    ///
    /// # Errors
    ///
    /// [`Fault::Arity`].
    pub fn check_arity(&self, args: &[Bytes]) -> Result<(), Fault> {
        let (count, arity) = (args.len() as i64, self.arity);
        let fits = if arity < 0 { count >= -arity } else { count == arity };
        if fits { Ok(()) } else { Err(Fault::Arity(self.name)) }
    }

    /// Returns the keys of a request, as often as it has them.
    ///
    /// # Errors
    ///
    /// If the number of keys does not fit the arguments.
    pub fn keys(&self, args: &[Bytes]) -> Result<Vec<Bytes>, Fault> {
        match self.keys {
            Keys::None => Ok(Vec::new()),
            Keys::Range(first, last, step) => {
                let last = if last < 0 { args.len() as i64 + last } else { last };
                let places = (first..=last.max(0) as usize).step_by(step);
                Ok(places.filter_map(|place| args.get(place).cloned()).collect())
            }
            Keys::Counted(place) => counted(self.name, args, place),
            Keys::FirstAndCounted(place) => {
                let counted = counted(self.name, args, place)?;
                Ok(args.get(1).cloned().into_iter().chain(counted).collect())
            }
        }
    }
}

fn counted(name: &str, args: &[Bytes], place: usize) -> Result<Vec<Bytes>, Fault> {
    let count = args.get(place).and_then(|text| parse_int(text)).ok_or(Fault::NotInteger)?;
    if count <= 0 {
        let text = format!("at least 1 input key is needed for '{name}' command");
        return Err(Fault::error(if name.starts_with('z') && !name.ends_with("card") {
            text.as_str()
        } else {
            "numkeys should be greater than 0"
        }));
    }
    let keys = usize::try_from(count).ok();
    let keys =
        keys.and_then(|count| args.get(place + 1..place.checked_add(count)?.checked_add(1)?));
    match keys {
        Some(keys) => Ok(keys.to_vec()),
        None if name.ends_with("card") => {
            Err(Fault::error("Number of keys can't be greater than number of args"))
        }
        None => Err(Fault::Syntax),
    }
}

static TABLE: LazyLock<BTreeMap<&'static str, Command>> = LazyLock::new(|| {
    let groups = [
        (Group::Generic, keys::COMMANDS),
        (Group::String, strings::COMMANDS),
        (Group::Hash, hashes::COMMANDS),
        (Group::Set, sets::COMMANDS),
        (Group::List, lists::COMMANDS),
        (Group::SortedSet, zsets::COMMANDS),
        (Group::SortedSet, zsets::RANGE_COMMANDS),
        (Group::SortedSet, zsets::COMBINE_COMMANDS),
        (Group::Server, server::CONNECTION),
        (Group::Generic, server::NAMES),
        (Group::Transaction, server::TRANSACTIONS),
    ];
    let commands = groups.into_iter().flat_map(|(group, commands)| {
        commands.iter().map(move |command| (command.name, Command { group, ..*command }))
    });
    commands.collect()
});

/// Returns all commands, in the order of their names.
pub fn all() -> impl Iterator<Item = &'static Command> {
    TABLE.values()
}

/// Returns the command of this name, in any case.
pub fn find(name: &[u8]) -> Option<&'static Command> {
    let name = std::str::from_utf8(name).ok()?.to_ascii_lowercase();
    TABLE.get(name.as_str())
}
