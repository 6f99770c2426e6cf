//! Errors of commands.

use crate::resp::Reply;

/// The reason why a command has no effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The item has another type.
    WrongType,
    /// The options do not fit together, or are unknown.
    Syntax,
    /// An argument or a value is no integer of 64 bits.
    NotInteger,
    /// An argument or a value is no number.
    NotFloat,
    /// The number of arguments does not fit the command.
    Arity(&'static str),
    /// Only a strong transaction can run it.
    Upgrade,
    /// Another reason, with its first word.
    Other(String),
}

/// The result of a command.
pub type Outcome = Result<Reply, Fault>;

impl Fault {
    /// Returns an error that begins with `ERR`.
    pub fn error(text: impl AsRef<str>) -> Self {
        Self::Other(format!("ERR {}", text.as_ref()))
    }

    /// Returns the reply.
    pub fn reply(self) -> Reply {
        Reply::Error(match self {
            Self::WrongType => {
                "WRONGTYPE Operation against a key holding the wrong kind of value".into()
            }
            Self::Syntax => "ERR syntax error".into(),
            Self::NotInteger => "ERR value is not an integer or out of range".into(),
            Self::NotFloat => "ERR value is not a valid float".into(),
            Self::Arity(name) => format!("ERR wrong number of arguments for '{name}' command"),
            Self::Upgrade => "ERR only a strong transaction can run this command".into(),
            Self::Other(text) => text,
        })
    }
}
