//! The rights of a connection: `AUTH`, `ACL`, and the check of each request.

use std::sync::Arc;

use super::client::Client;
use super::{Shared, lock};
use crate::access::{AuditEvent, Denied, PROGRAMS, User, in_category};
use crate::commands::{Command, Fault, find, parse_int};
use crate::resp::{Bytes, Reply};

/// The number of wrong passwords after which a connection is closed.
const ATTEMPTS_MAX: u32 = 5;

/// Commands that are noted in the audit log.
const NOTED: [&str; 5] = ["admit", "backup", "fence", "flushall", "flushdb"];

/// The largest number of bits of a generated password, and the usual one.
const PASSWORD_BITS: (i64, i64) = (4_096, 256);

/// The usual number of denials that `ACL LOG` returns.
const USUAL: usize = 10;

const NO_USERS: &str =
    "ERR AUTH called without any password configured: this server has no file of users";

/// The user of a connection.
#[derive(Debug)]
pub struct SignedIn {
    /// `None` before the first right password.
    user: Option<Arc<User>>,
    /// The generation of users at which it was looked up.
    generation: u64,
    attempts: u32,
}

impl SignedIn {
    /// Returns the user of a new connection: `default`, if it needs no password.
    pub fn new(shared: &Shared) -> Self {
        let (user, generation) = match &shared.settings.users {
            None => (Some(Arc::new(User::unrestricted())), 0),
            Some(users) => {
                let generation = users.generation();
                (users.get("default").filter(|it| it.needs_no_password()), generation)
            }
        };
        Self { user, generation, attempts: 0 }
    }

    /// Returns the name of the user, or no text before a password was given.
    pub fn name(&self) -> &str {
        self.user.as_ref().map_or("", |user| user.name())
    }

    /// True if the connection may send commands.
    pub fn is_in(&self) -> bool {
        self.user.is_some()
    }
}

/// True if a request asks for more of a backup, whose beginning is noted.
fn is_next_part(command: &Command, args: &[Bytes]) -> bool {
    command.name == "backup" && args[1].eq_ignore_ascii_case(b"next")
}

impl Client {
    /// Checks that a request may run.
    ///
    /// # Errors
    ///
    /// The reply with the reason.
    pub(super) fn admit_request(
        &mut self,
        command: &'static Command,
        args: &[Bytes],
    ) -> Result<(), Reply> {
        self.renew()?;
        match self.may(command, args) {
            Ok(()) => {
                if NOTED.contains(&command.name) && !is_next_part(command, args) {
                    self.note(AuditEvent::Ran, &words(args));
                }
                Ok(())
            }
            Err(reply) => {
                self.refused();
                Err(reply)
            }
        }
    }

    /// True if a request may run; nothing is noted.
    pub(super) fn is_allowed(&self, command: &Command, args: &[Bytes]) -> bool {
        let is_current = self
            .shared
            .settings
            .users
            .as_ref()
            .is_none_or(|users| users.generation() == self.signed_in.generation);
        let user = self.signed_in.user.as_ref();
        is_current && user.is_some_and(|user| user.check(command, args).is_ok())
    }

    /// Looks the user up again if the users have changed. A connection whose user has changed is closed.
    fn renew(&mut self) -> Result<(), Reply> {
        let Some(users) = &self.shared.settings.users else { return Ok(()) };
        let generation = users.generation();
        if self.signed_in.generation == generation {
            return Ok(());
        }
        self.signed_in.generation = generation;
        let Some(user) = &self.signed_in.user else {
            self.signed_in =
                SignedIn { attempts: self.signed_in.attempts, ..SignedIn::new(&self.shared) };
            return Ok(());
        };
        if users.get(user.name()).as_ref() == Some(user) {
            return Ok(());
        }
        let text = format!("NOAUTH the user {} was changed: connect again", user.name());
        self.is_closing = true;
        self.signed_in.user = None;
        Err(Reply::Error(text))
    }

    fn may(&self, command: &Command, args: &[Bytes]) -> Result<(), Reply> {
        let Some(user) = &self.signed_in.user else {
            if matches!(command.name, "auth" | "hello" | "quit" | "reset") {
                return Ok(());
            }
            return Err(Reply::Error("NOAUTH Authentication required.".into()));
        };
        user.check(command, args).map_err(|denied| {
            let (reason, object) = match &denied {
                Denied::Command(name) => ("command", name.clone()),
                Denied::Key(name) => ("key", shown(name)),
            };
            self.shared.audit.deny(reason, &object, user.name(), &self.address());
            no_permission(user.name(), &denied)
        })
    }

    fn address(&self) -> String {
        lock(&self.described).address.to_string()
    }

    fn note(&self, event: AuditEvent, what: &str) {
        self.shared.audit.note(event, &self.address(), self.signed_in.name(), what);
    }

    /// Answers `AUTH [user] password`.
    pub(super) fn auth(&mut self, args: &[Bytes]) -> Reply {
        let done = match &args[1..] {
            [password] => self.sign_in(b"default", password),
            [user, password] => self.sign_in(user, password),
            _ => return Fault::Arity("auth").reply(),
        };
        done.map_or_else(|error| error, |()| Reply::OK)
    }

    /// Signs a user in.
    ///
    /// # Errors
    ///
    /// The reply, if the name or the password is wrong. After some of them the connection is closed.
    pub(super) fn sign_in(&mut self, name: &[u8], password: &[u8]) -> Result<(), Reply> {
        let Some(users) = self.shared.settings.users.clone() else {
            return Err(Reply::Error(NO_USERS.into()));
        };
        let generation = users.generation();
        let Some(user) = users.authenticate(name, password) else {
            self.shared.audit.deny("auth", "AUTH", &shown(name), &self.address());
            self.signed_in.attempts += 1;
            self.is_closing |= self.signed_in.attempts >= ATTEMPTS_MAX;
            let text = "WRONGPASS invalid username-password pair or user is disabled.";
            return Err(Reply::Error(text.into()));
        };
        user.name().clone_into(&mut lock(&self.described).user);
        self.signed_in = SignedIn { user: Some(user), generation, attempts: 0 };
        self.note(AuditEvent::SignedIn, "AUTH");
        Ok(())
    }

    /// Returns to the user of a new connection.
    pub(super) fn sign_out(&mut self) {
        self.signed_in =
            SignedIn { attempts: self.signed_in.attempts, ..SignedIn::new(&self.shared) };
        self.signed_in.name().clone_into(&mut lock(&self.described).user);
    }

    /// Answers `ACL`.
    pub(super) fn acl(&mut self, args: &[Bytes]) -> Reply {
        let word = args[1].to_ascii_lowercase();
        match (word.as_slice(), &args[2..]) {
            (b"whoami", []) => Reply::text(self.signed_in.name()),
            (b"users", []) => {
                Reply::array(self.all_users().iter().map(|user| Reply::text(user.name())))
            }
            (b"list", []) => {
                Reply::array(self.all_users().iter().map(|user| Reply::text(user.line())))
            }
            (b"getuser", [name]) => {
                let all = self.all_users();
                let user = all.iter().find(|user| user.name().as_bytes() == &**name);
                user.map_or(Reply::Null, |user| described(user))
            }
            (b"cat", []) => {
                Reply::array(crate::access::CATEGORIES.iter().map(|name| Reply::text(&name[1..])))
            }
            (b"cat", [name]) => category(name),
            (b"genpass", []) => password(PASSWORD_BITS.1),
            (b"genpass", [bits]) => match parse_int(bits) {
                Some(bits) if (1..=PASSWORD_BITS.0).contains(&bits) => password(bits),
                _ => Fault::error("ACL GENPASS takes 1 to 4096 bits").reply(),
            },
            (b"load", []) => self.load(),
            (b"log", []) => self.denials(USUAL),
            (b"log", [count]) if count.eq_ignore_ascii_case(b"reset") => {
                self.shared.audit.reset();
                Reply::OK
            }
            (b"log", [count]) => match parse_int(count).and_then(|it| usize::try_from(it).ok()) {
                Some(count) => self.denials(count),
                None => Fault::error("ACL LOG takes a count or RESET").reply(),
            },
            (b"dryrun", [user, request @ ..]) if !request.is_empty() => self.dry_run(user, request),
            (b"setuser" | b"deluser" | b"save", _) => {
                let text = "users are kept in a file: change it, then call ACL LOAD";
                Fault::error(text).reply()
            }
            _ => Fault::error(
                "expected ACL with WHOAMI, USERS, LIST, GETUSER name, CAT [category], GENPASS [bits], LOAD, \
                 LOG [count|RESET] or DRYRUN user command …",
            )
            .reply(),
        }
    }

    fn all_users(&self) -> Vec<Arc<User>> {
        match &self.shared.settings.users {
            Some(users) => users.all(),
            None => vec![Arc::new(User::unrestricted())],
        }
    }

    fn load(&self) -> Reply {
        let Some(users) = &self.shared.settings.users else {
            return Fault::error("this server has no file of users: start it with one").reply();
        };
        match users.reload() {
            Ok(()) => {
                self.note(AuditEvent::Loaded, &format!("{} users", users.all().len()));
                Reply::OK
            }
            Err(error) => Reply::Error(format!("ERR {error}; nothing was changed")),
        }
    }

    fn denials(&self, most: usize) -> Reply {
        let now = super::execute::wall_us() / 1_000;
        Reply::array(self.shared.audit.denials(most).into_iter().map(|of| {
            let age = now.saturating_sub(of.last_ms) as f64 / 1_000.0;
            let pairs = [
                ("count", Reply::Integer(of.count as i64)),
                ("reason", Reply::text(of.reason)),
                ("context", Reply::text("toplevel")),
                ("object", Reply::text(of.object)),
                ("username", Reply::text(of.user)),
                ("age-seconds", Reply::text(format!("{age:.3}"))),
                ("client-info", Reply::text(format!("addr={}", of.client))),
                ("entry-id", Reply::Integer(of.id as i64)),
                ("timestamp-created", Reply::Integer(of.first_ms as i64)),
                ("timestamp-last-updated", Reply::Integer(of.last_ms as i64)),
            ];
            Reply::Map(pairs.map(|(name, value)| (Reply::text(name), value)).into())
        }))
    }

    fn dry_run(&self, name: &Bytes, request: &[Bytes]) -> Reply {
        let all = self.all_users();
        let Some(user) = all.iter().find(|user| user.name().as_bytes() == &**name) else {
            return Fault::error(format!("User '{}' not found", shown(name))).reply();
        };
        let checked = if request[0].eq_ignore_ascii_case(PROGRAMS.as_bytes()) {
            let stores: Vec<_> =
                request[1..].iter().map(|it| String::from_utf8_lossy(it)).collect();
            user.check_programs(stores.iter().map(|store| &**store))
        } else {
            let Some(command) = find(&request[0]) else {
                return Fault::error(format!("Command '{}' not found", shown(&request[0]))).reply();
            };
            if let Err(fault) = command.check_arity(request) {
                return fault.reply();
            }
            user.check(command, request)
        };
        match checked {
            Ok(()) => Reply::OK,
            Err(denied) => match no_permission(user.name(), &denied) {
                Reply::Error(text) => Reply::text(text.trim_start_matches("NOPERM ")),
                other => other,
            },
        }
    }
}

fn no_permission(user: &str, denied: &Denied) -> Reply {
    Reply::Error(match denied {
        Denied::Command(name) => {
            format!("NOPERM User {user} has no permissions to run the '{name}' command")
        }
        Denied::Key(_) => "NOPERM No permissions to access a key".into(),
    })
}

/// Returns the answer of `ACL GETUSER`.
fn described(user: &User) -> Reply {
    let texts = |of: Vec<String>| Reply::array(of.into_iter().map(Reply::text));
    let pairs = [
        ("flags", Reply::Set(user.flags().into_iter().map(Reply::text).collect())),
        ("passwords", texts(user.hashes())),
        ("commands", Reply::text(user.command_rules())),
        ("keys", Reply::text(user.patterns().join(" "))),
        ("channels", Reply::text("")),
        ("selectors", Reply::Array(Vec::new())),
    ];
    Reply::Map(pairs.map(|(name, value)| (Reply::text(name), value)).into())
}

fn category(name: &Bytes) -> Reply {
    let name = String::from_utf8_lossy(name).to_lowercase();
    match in_category(&name) {
        Some(commands) if name != "all" => {
            Reply::array(commands.into_iter().map(|command| Reply::text(command.name)))
        }
        _ => Fault::error(format!("Unknown category '{}'", shown(name.as_bytes()))).reply(),
    }
}

/// Returns a random password of so many bits, in hexadecimal digits.
fn password(bits: i64) -> Reply {
    let digits = usize::try_from(bits).unwrap_or_default().div_ceil(4);
    let mut text = String::new();
    while text.len() < digits {
        let Some(bytes) = crate::access::random_bytes() else {
            return Fault::error("the system gives no random bytes").reply();
        };
        text.push_str(&crate::access::digits(&bytes));
    }
    text.truncate(digits);
    Reply::text(text)
}

/// Returns the words of a request, cut to some length.
fn words(args: &[Bytes]) -> String {
    args.iter().take(4).map(|word| shown(word)).collect::<Vec<_>>().join(" ")
}

fn shown(bytes: &[u8]) -> String {
    bytes[..bytes.len().min(64)].escape_ascii().to_string()
}
