//! A user: passwords, commands and items.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use sha2::{Digest as _, Sha256};

use crate::commands::{Class, Command, all, matches};
use crate::resp::Bytes;

/// Commands that every connection may run.
const FREE: [&str; 4] = ["auth", "hello", "quit", "reset"];

/// The name of the right to have stores of a program of Mingle, as rules name a command. Clients of Redis have no
/// command of this name.
pub const PROGRAMS: &str = "mingle";

/// Commands whose first item is written, while the others are read.
const INTO_FIRST: [&str; 7] = [
    "sdiffstore",
    "sinterstore",
    "sunionstore",
    "zdiffstore",
    "zinterstore",
    "zrangestore",
    "zunionstore",
];

/// The rights to items whose names match a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KeyRule {
    pub(super) reads: bool,
    pub(super) writes: bool,
    pub(super) pattern: String,
}

impl KeyRule {
    pub(super) fn all() -> Self {
        Self { reads: true, writes: true, pattern: "*".into() }
    }
}

impl fmt::Display for KeyRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match (self.reads, self.writes) {
            (true, false) => "%R",
            (false, true) => "%W",
            _ => "",
        };
        write!(f, "{kind}~{}", self.pattern)
    }
}

/// The parts of a command that may be run, by its second word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Parts {
    All,
    Only(BTreeSet<String>),
    Except(BTreeSet<String>),
}

/// The reason for which a user may not run a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Denied {
    /// The command, or the part of it.
    Command(String),
    /// The item.
    Key(Bytes),
}

/// A user.
///
/// # Examples
///
/// ```
/// use mingled::access::User;
/// use mingled::commands::find;
///
/// let user = User::from_rules("app", "on >secret ~app:* +@read +set").unwrap();
/// assert!(user.has_password(b"secret") && !user.has_password(b"guess"));
/// let words = |line: &str| line.split(' ').map(|it| it.as_bytes().into()).collect::<Vec<_>>();
/// let set = find(b"set").unwrap();
/// assert!(user.check(set, &words("SET app:1 a")).is_ok());
/// assert!(user.check(set, &words("SET other a")).is_err());
/// assert!(user.check(find(b"del").unwrap(), &words("DEL app:1")).is_err());
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct User {
    pub(super) name: String,
    pub(super) is_on: bool,
    /// True if it needs no password.
    pub(super) is_open: bool,
    pub(super) passwords: BTreeSet<[u8; 32]>,
    pub(super) commands: BTreeMap<&'static str, Parts>,
    pub(super) keys: Vec<KeyRule>,
    /// The rules on commands, in order.
    pub(super) rules: Vec<String>,
}

impl fmt::Debug for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "User({})", self.name)
    }
}

impl User {
    /// Creates a user that is off and has no rights.
    pub(super) fn new(name: String) -> Self {
        Self {
            name,
            is_on: false,
            is_open: false,
            passwords: BTreeSet::new(),
            commands: BTreeMap::new(),
            keys: Vec::new(),
            rules: vec!["-@all".into()],
        }
    }

    /// Returns the user of a server without users: it needs no password and has all rights.
    pub fn unrestricted() -> Self {
        Self {
            is_on: true,
            is_open: true,
            commands: all()
                .map(|command| command.name)
                .chain([PROGRAMS])
                .map(|name| (name, Parts::All))
                .collect(),
            keys: vec![KeyRule::all()],
            rules: vec!["+@all".into()],
            ..Self::new("default".into())
        }
    }

    /// Creates a user from rules in Redis's syntax, with spaces between them.
    ///
    /// # Errors
    ///
    /// The first rule that is wrong, and the expected ones.
    pub fn from_rules(name: &str, rules: &str) -> Result<Self, String> {
        let mut user = Self::new(name.into());
        for rule in rules.split_ascii_whitespace() {
            super::rule::apply(&mut user, rule)?;
        }
        Ok(user)
    }

    /// Returns its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// True if it may connect.
    pub fn is_on(&self) -> bool {
        self.is_on
    }

    /// True if it may connect without a password.
    pub fn needs_no_password(&self) -> bool {
        self.is_on && self.is_open
    }

    /// True if this is one of its passwords, or it needs none. The time does not depend on the passwords.
    pub fn has_password(&self, password: &[u8]) -> bool {
        let given = hash(password);
        let mut is_found = false;
        for known in &self.passwords {
            let difference = known.iter().zip(&given).fold(0, |sum, (a, b)| sum | (a ^ b));
            is_found |= std::hint::black_box(difference) == 0;
        }
        is_found || self.is_open
    }

    /// Checks that the user may run a request.
    ///
    /// # Errors
    ///
    /// The command or the first item that is not allowed.
    pub fn check(&self, command: &Command, args: &[Bytes]) -> Result<(), Denied> {
        if FREE.contains(&command.name) {
            return Ok(());
        }
        self.check_command(command, args)?;
        let is_everything = |it: &KeyRule| it.reads && it.writes && it.pattern == "*";
        if self.keys.iter().any(is_everything) {
            return Ok(());
        }
        // A request without proper keys is refused when it runs.
        let names = command.keys(args).unwrap_or_default();
        for (place, name) in names.iter().enumerate() {
            let (reads, writes) = uses(command, args, place);
            let mut allowed = (!reads, !writes);
            for rule in self.keys.iter().filter(|it| matches(it.pattern.as_bytes(), name)) {
                allowed = (allowed.0 || rule.reads, allowed.1 || rule.writes);
            }
            if allowed != (true, true) {
                return Err(Denied::Key(name.clone()));
            }
        }
        Ok(())
    }

    /// Checks that the user may have the stores of these names in a program of Mingle: it needs the right
    /// [`PROGRAMS`], and each name must match a pattern for reading and writing.
    ///
    /// # Errors
    ///
    /// The right, or the first store that is not allowed.
    ///
    /// # Examples
    ///
    /// ```
    /// use mingled::access::{Denied, User};
    ///
    /// let user = User::from_rules("shop", "on >secret ~shop_* %R~feed +mingle").unwrap();
    /// assert!(user.check_programs(["shop_orders", "shop_stock"]).is_ok());
    /// assert_eq!(user.check_programs(["feed"]), Err(Denied::Key("feed".as_bytes().into())));
    /// let user = User::from_rules("cache", "on >secret ~* +@all -mingle").unwrap();
    /// assert_eq!(user.check_programs([]), Err(Denied::Command("mingle".into())));
    /// ```
    pub fn check_programs<'a>(
        &self,
        stores: impl IntoIterator<Item = &'a str>,
    ) -> Result<(), Denied> {
        if !self.commands.contains_key(PROGRAMS) {
            return Err(Denied::Command(PROGRAMS.into()));
        }
        let is_allowed = |store: &&str| {
            let fits = |it: &&KeyRule| matches(it.pattern.as_bytes(), store.as_bytes());
            let (mut reads, mut writes) = (false, false);
            for rule in self.keys.iter().filter(fits) {
                (reads, writes) = (reads || rule.reads, writes || rule.writes);
            }
            reads && writes
        };
        match stores.into_iter().find(|store| !is_allowed(store)) {
            Some(store) => Err(Denied::Key(store.as_bytes().into())),
            None => Ok(()),
        }
    }

    fn check_command(&self, command: &Command, args: &[Bytes]) -> Result<(), Denied> {
        let part = || args.get(1).map(|part| String::from_utf8_lossy(part).to_lowercase());
        match self.commands.get(command.name) {
            Some(Parts::All) => Ok(()),
            Some(Parts::Only(parts)) => match part() {
                Some(part) if parts.contains(&part) => Ok(()),
                Some(part) => Err(Denied::Command(shown(command, &part))),
                None => Err(Denied::Command(command.name.into())),
            },
            Some(Parts::Except(parts)) => match part() {
                Some(part) if parts.contains(&part) => Err(Denied::Command(shown(command, &part))),
                _ => Ok(()),
            },
            None => Err(Denied::Command(command.name.into())),
        }
    }

    /// Returns the line of `ACL LIST`: the passwords are hashes.
    pub fn line(&self) -> String {
        let mut words = vec!["user".to_owned(), self.name.clone()];
        words.push(if self.is_on { "on" } else { "off" }.into());
        if self.is_open {
            words.push("nopass".into());
        }
        words.extend(self.hashes().into_iter().map(|hash| format!("#{hash}")));
        words.extend(self.patterns());
        words.extend(self.rules.iter().cloned());
        words.join(" ")
    }

    /// Returns the hashes of its passwords.
    pub(crate) fn hashes(&self) -> Vec<String> {
        self.passwords.iter().map(|hash| super::digits(hash)).collect()
    }

    /// Returns the rules on items.
    pub(crate) fn patterns(&self) -> Vec<String> {
        self.keys.iter().map(ToString::to_string).collect()
    }

    /// Returns the rules on commands.
    pub(crate) fn command_rules(&self) -> String {
        self.rules.join(" ")
    }

    /// Returns the words for whether it is on, and whether it needs a password.
    pub(crate) fn flags(&self) -> Vec<&'static str> {
        let on = if self.is_on { "on" } else { "off" };
        if self.is_open { vec![on, "nopass"] } else { vec![on] }
    }
}

fn shown(command: &Command, part: &str) -> String {
    let part: String = part.chars().take(40).collect();
    format!("{}|{}", command.name, part.escape_default())
}

/// Returns whether a request reads and writes the item in this place among its keys.
fn uses(command: &Command, args: &[Bytes], place: usize) -> (bool, bool) {
    match (command.name, place) {
        (name, place) if INTO_FIRST.contains(&name) => (place > 0, place == 0),
        ("copy", place) => (place == 0, place == 1),
        _ => match command.class(args) {
            Class::Read => (true, false),
            Class::Blind => (false, true),
            Class::Causal | Class::Strong => (true, true),
        },
    }
}

/// Returns the hash of a password.
pub(super) fn hash(password: &[u8]) -> [u8; 32] {
    Sha256::digest(password).into()
}
