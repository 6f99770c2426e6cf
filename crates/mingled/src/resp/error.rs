//! Errors of requests that are not well formed.

use std::fmt;

/// The reason why a request is not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProtocolError {
    /// A length is no number, or out of its bounds.
    Length {
        /// The first byte of the line, which is its type.
        of: u8,
        /// The text found.
        found: String,
        /// The highest accepted length.
        most: u64,
    },
    /// A line is too long.
    Line {
        /// The maximum number of bytes.
        most: usize,
    },
    /// A line of an array ends with a line feed alone.
    LineEnd,
    /// A string is not followed by the end of a line.
    StringEnd {
        /// The two bytes found.
        found: [u8; 2],
    },
    /// A byte that begins no type.
    Type {
        /// The byte found.
        found: u8,
    },
    /// Arrays within arrays, too many levels of them.
    Depth {
        /// The maximum number of levels.
        most: usize,
    },
    /// An argument that is no string.
    NoString {
        /// The first byte of the argument, which is its type.
        found: u8,
    },
    /// An argument is too long.
    Argument {
        /// Its number of bytes.
        found: u64,
        /// The maximum number of bytes.
        most: u64,
    },
    /// The arguments of a request are too long together.
    Request {
        /// The maximum number of bytes.
        most: u64,
    },
    /// A line has an open quote, or a quote within a word.
    Quotes,
}

impl ProtocolError {
    /// True if the end of the request is not known, so that the connection must be closed.
    pub fn is_fatal(&self) -> bool {
        !matches!(
            self,
            Self::NoString { .. } | Self::Argument { .. } | Self::Request { .. } | Self::Quotes
        )
    }
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Protocol error: ")?;
        match self {
            Self::Length { of, found, most } => {
                let of = if *of == b'*' { "multibulk length" } else { "bulk length" };
                write!(f, "invalid {of}: found '{found}', expected a number of at most {most}")
            }
            Self::Line { most } => {
                write!(f, "too big inline request: found more than {most} bytes without an end")
            }
            Self::LineEnd => {
                f.write_str("found a line that ends with LF alone, expected CR and LF")
            }
            Self::StringEnd { found } => write!(
                f,
                "found '{}' after a string, expected CR and LF",
                found.as_slice().escape_ascii()
            ),
            Self::Type { found } => {
                write!(f, "expected '$', got '{}'", [*found].escape_ascii())
            }
            Self::Depth { most } => {
                write!(f, "found arrays of more than {most} levels, expected strings in an array")
            }
            Self::NoString { found } => {
                let found = [*found];
                write!(f, "expected '$', got '{}': arguments are strings", found.escape_ascii())
            }
            Self::Argument { found, most } => {
                write!(f, "found an argument of {found} bytes, at most {most} are accepted")
            }
            Self::Request { most } => {
                write!(f, "found a request with more than {most} bytes of arguments")
            }
            Self::Quotes => f.write_str("unbalanced quotes in request"),
        }
    }
}

impl std::error::Error for ProtocolError {}
