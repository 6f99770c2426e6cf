//! `SESSION`: the place that a session has reached, and the time of its acknowledgements.

use super::client::Client;
use super::execute::wall_us;
use super::failure::Failure;
use crate::commands::Fault;
use crate::process::{AttachError, Durability};
use crate::resp::{Bytes, Reply};

/// The error without a key for tokens.
const NO_KEY: &str =
    "ERR there is no key for tokens: start all data centers with --token-key, or token_key_file";

impl Client {
    pub(super) fn session(&mut self, args: &[Bytes]) -> Reply {
        match (args[1].to_ascii_lowercase().as_slice(), &args[2..]) {
            (b"token", []) => self.token(),
            (b"attach", [token]) => self.attach(token),
            (b"durable", []) => Reply::text(self.durability.to_string()),
            (b"durable", [word]) => self.set_durable(word),
            (b"token" | b"attach" | b"durable", _) => Fault::Arity("session").reply(),
            (other, _) => {
                let other = other[..other.len().min(64)].escape_ascii();
                Reply::Error(format!("ERR found '{other}', expected TOKEN, ATTACH or DURABLE"))
            }
        }
    }

    fn token(&mut self) -> Reply {
        let settings = &self.shared.settings;
        let Some(tokens) = &settings.tokens else { return Reply::Error(NO_KEY.into()) };
        match self.session.mark() {
            Ok(mark) => Reply::text(tokens.token(settings.cluster, &mark, wall_us() / 1_000)),
            Err(error) => Failure::from(error).reply(false),
        }
    }

    /// Continues here where the session of a token has been, and where this one has been.
    fn attach(&mut self, token: &Bytes) -> Reply {
        let settings = &self.shared.settings;
        let Some(tokens) = &settings.tokens else { return Reply::Error(NO_KEY.into()) };
        let mark = match tokens.mark(settings.cluster, token, wall_us() / 1_000) {
            Ok(mark) => mark,
            Err(error) => return Reply::Error(error.to_string()),
        };
        if mark.token.dc.0 >= settings.dc_count {
            let (dc, last) = (mark.token.dc, settings.dc_count - 1);
            return Reply::Error(format!("BADTOKEN the token is of {dc}, expected d0 to d{last}"));
        }
        let own = match self.session.mark() {
            Ok(own) => own,
            Err(error) => return Failure::from(error).reply(false),
        };
        // If it fails, this connection's session goes on as before.
        match self.shared.process.attach(&[mark, own]) {
            Ok(session) => match session.set_durability(self.durability) {
                Ok(()) => {
                    self.session = session;
                    Reply::OK
                }
                Err(error) => Failure::from(error).reply(false),
            },
            Err(AttachError::Session(error)) => Failure::from(error).reply(false),
            Err(lost) => Reply::Error(format!("LOST {lost}")),
        }
    }

    fn set_durable(&mut self, word: &Bytes) -> Reply {
        let word = String::from_utf8_lossy(&word[..word.len().min(64)]);
        let durability = match word.parse::<Durability>() {
            Ok(durability) => durability,
            Err(why) => return Reply::Error(format!("ERR {why}")),
        };
        match self.session.set_durability(durability) {
            Ok(()) => {
                self.durability = durability;
                Reply::OK
            }
            Err(error) => Failure::from(error).reply(false),
        }
    }
}
