//! Commands on the connection and the server.

use super::client::{Client, Mode};
use super::execute::wall_us;
use super::failure::Failure;
use super::{Described, info, lock};
use crate::commands::{Fault, ServerCommand, all, find, parse_int};
use crate::resp::{Bytes, Protocol, Reply};

/// The version of Redis whose commands and replies this server follows.
pub const REDIS_VERSION: &str = "7.2.4";

/// The error of `HELLO` before a user has signed in, as Redis has it.
const SIGN_IN_FIRST: &str = "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH \
     <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same \
     time";

impl Client {
    /// Runs a command that neither reads nor writes items.
    pub(super) fn simple(&mut self, of: ServerCommand, args: &[Bytes]) -> Reply {
        use ServerCommand as Of;
        match of {
            Of::Ping => match args {
                [_] => Reply::Simple("PONG"),
                [_, text] => Reply::Bulk(text.clone()),
                _ => Fault::Arity("ping").reply(),
            },
            Of::Echo => Reply::Bulk(args[1].clone()),
            Of::Hello => self.hello(args),
            Of::Reset => self.reset(),
            Of::Quit => {
                self.is_closing = true;
                Reply::OK
            }
            Of::Auth => self.auth(args),
            Of::Acl => self.acl(args),
            Of::Select => match parse_int(&args[1]) {
                Some(0) => Reply::OK,
                Some(_) => {
                    Reply::Error("ERR DB index is out of range: there is database 0 only".into())
                }
                None => Reply::Error("ERR value is not an integer or out of range".into()),
            },
            Of::Time => {
                let now = wall_us();
                let parts = [now / 1_000_000, now % 1_000_000];
                Reply::array(parts.map(|part| Reply::text(part.to_string())))
            }
            Of::Client => self.client(args),
            Of::Command => command(args),
            Of::Config => self.config(args),
            Of::Info => Reply::Verbatim(info::info(&self.shared, &args[1..])),
            Of::DataCenters => self.data_centers(),
            Of::SlowLog => self.slow_log(args),
            _ => Reply::Error("ERR this command is not run here".into()),
        }
    }

    fn hello(&mut self, args: &[Bytes]) -> Reply {
        let mut protocol = self.protocol;
        let mut rest = &args[1..];
        if let [version, after @ ..] = rest {
            protocol = match parse_int(version) {
                Some(2) => Protocol::Two,
                Some(3) => Protocol::Three,
                Some(_) => return Reply::Error("NOPROTO unsupported protocol version".into()),
                None => {
                    let text = "Protocol version is not an integer or out of range";
                    return Fault::error(text).reply();
                }
            };
            rest = after;
        }
        let (mut name, mut user) = (None, None);
        while let [option, after @ ..] = rest {
            rest = match (option.to_ascii_lowercase().as_slice(), after) {
                (b"setname", [new, after @ ..]) => {
                    name = Some(new);
                    after
                }
                (b"auth", [new, password, after @ ..]) => {
                    user = Some((new, password));
                    after
                }
                _ => {
                    let option = option.escape_ascii();
                    return Fault::error(format!("Syntax error in HELLO option '{option}'"))
                        .reply();
                }
            };
        }
        if let Some((user, password)) = user
            && let Err(reply) = self.sign_in(user, password)
        {
            return reply;
        }
        if !self.signed_in.is_in() {
            return Reply::Error(SIGN_IN_FIRST.into());
        }
        if let Some(name) = name
            && let Err(fault) = self.set_name(name)
        {
            return fault.reply();
        }
        self.protocol = protocol;
        lock(&self.described).protocol = protocol;
        self.description()
    }

    /// Returns the answer of `HELLO`.
    fn description(&self) -> Reply {
        let protocol = self.protocol;
        let id = lock(&self.described).id as i64;
        let pairs = [
            ("server", Reply::text("mingled")),
            ("version", Reply::text(REDIS_VERSION)),
            ("proto", Reply::Integer(if protocol == Protocol::Three { 3 } else { 2 })),
            ("id", Reply::Integer(id)),
            ("mode", Reply::text("standalone")),
            ("role", Reply::text("master")),
            ("modules", Reply::Array(Vec::new())),
        ];
        Reply::Map(pairs.map(|(name, value)| (Reply::text(name), value)).into())
    }

    fn reset(&mut self) -> Reply {
        if let Err(error) = self.session.rollback() {
            return Failure::from(error).reply(false);
        }
        let durability = self.shared.settings.durability;
        if let Err(error) = self.session.set_durability(durability) {
            return Failure::from(error).reply(false);
        }
        self.durability = durability;
        self.mode = Mode::Single;
        self.watched.clear();
        self.protocol = Protocol::Two;
        self.sign_out();
        let mut described = lock(&self.described);
        described.name.clear();
        described.protocol = Protocol::Two;
        Reply::Simple("RESET")
    }

    fn set_name(&mut self, name: &[u8]) -> Result<(), Fault> {
        if !name.iter().all(|byte| (b'!'..=b'~').contains(byte)) {
            let text = "Client names cannot contain spaces, newlines or special characters.";
            return Err(Fault::error(text));
        }
        lock(&self.described).name = String::from_utf8_lossy(name).into_owned();
        Ok(())
    }

    fn client(&mut self, args: &[Bytes]) -> Reply {
        let word = args[1].to_ascii_lowercase();
        match (word.as_slice(), &args[2..]) {
            (b"id", []) => Reply::Integer(lock(&self.described).id as i64),
            (b"getname", []) => {
                let name = lock(&self.described).name.clone();
                if name.is_empty() { Reply::Null } else { Reply::text(name) }
            }
            (b"setname", [name]) => self.set_name(name).map_or_else(Fault::reply, |()| Reply::OK),
            (b"setinfo", [option, value]) => {
                let text = String::from_utf8_lossy(value).replace(['\r', '\n', ' '], "_");
                let mut described = lock(&self.described);
                match option.to_ascii_lowercase().as_slice() {
                    b"lib-name" => described.library = text,
                    b"lib-ver" => described.version = text,
                    other => {
                        let other = other.escape_ascii();
                        return Fault::error(format!("Unrecognized option '{other}'")).reply();
                    }
                }
                Reply::OK
            }
            (b"info", []) => Reply::Verbatim(line(&lock(&self.described))),
            (b"list", _) => {
                self.shared.reap();
                let connections = self.shared.connections();
                let lines: String =
                    connections.values().map(|it| line(&lock(&it.described)) + "\n").collect();
                Reply::Verbatim(lines)
            }
            (b"no-evict" | b"no-touch", [word])
                if word.eq_ignore_ascii_case(b"on") || word.eq_ignore_ascii_case(b"off") =>
            {
                Reply::OK
            }
            (b"reply", [word]) if word.eq_ignore_ascii_case(b"on") => Reply::OK,
            (other, _) => unknown_part("CLIENT", other),
        }
    }

    fn config(&mut self, args: &[Bytes]) -> Reply {
        if !args[1].eq_ignore_ascii_case(b"get") || args.len() < 3 {
            return unknown_part("CONFIG", &args[1]);
        }
        let settings = info::settings(&self.shared);
        let found = settings.into_iter().filter(|(name, _)| {
            args[2..].iter().any(|pattern| {
                crate::commands::matches(&pattern.to_ascii_lowercase(), name.as_bytes())
            })
        });
        let pairs = found.map(|(name, value)| (Reply::text(name), Reply::text(value)));
        Reply::Map(pairs.collect())
    }
}

fn unknown_part(command: &str, part: &[u8]) -> Reply {
    let part = part[..part.len().min(64)].escape_ascii();
    Fault::error(format!(
        "unknown subcommand or wrong number of arguments for '{part}'. {command} has the \
         subcommands of its line in the table of commands"
    ))
    .reply()
}

/// Returns the line of a connection in `CLIENT LIST`.
fn line(of: &Described) -> String {
    let Described { id, address, name, library, version, protocol, user, since, command } = of;
    let (age, version_number) =
        (since.elapsed().as_secs(), if *protocol == Protocol::Three { 3 } else { 2 });
    format!(
        "id={id} addr={address} name={name} age={age} db=0 cmd={command} user={user} \
         lib-name={library} lib-ver={version} resp={version_number}"
    )
}

/// Answers `COMMAND`.
fn command(args: &[Bytes]) -> Reply {
    let word = args.get(1).map(|word| word.to_ascii_lowercase());
    let Some(word) = word else { return Reply::array(all().map(info::description)) };
    let rest = &args[2..];
    match word.as_slice() {
        b"count" => Reply::count(all().count()),
        b"list" => Reply::array(all().map(|command| Reply::text(command.name))),
        b"info" if rest.is_empty() => Reply::array(all().map(info::description)),
        b"info" => Reply::array(
            rest.iter().map(|name| find(name).map_or(Reply::NullArray, info::description)),
        ),
        b"docs" if rest.is_empty() => Reply::Map(all().map(info::documentation).collect()),
        b"docs" => {
            Reply::Map(rest.iter().filter_map(|name| find(name)).map(info::documentation).collect())
        }
        b"getkeys" if !rest.is_empty() => {
            let Some(command) = find(&rest[0]) else {
                return Fault::error("Invalid command specified").reply();
            };
            if command.check_arity(rest).is_err() {
                return Fault::error("Invalid number of arguments specified for command").reply();
            }
            match command.keys(rest) {
                Ok(keys) if keys.is_empty() => {
                    Fault::error("The command has no key arguments").reply()
                }
                Ok(keys) => Reply::array(keys.into_iter().map(Reply::Bulk)),
                Err(fault) => fault.reply(),
            }
        }
        other => unknown_part("COMMAND", other),
    }
}
