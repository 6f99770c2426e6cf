//! The names of a journal's files.

use std::fmt;

/// The name of a file of the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Name {
    /// A log with this number.
    Log(u64),
    /// A checkpoint with this number.
    Checkpoint(u64),
}

/// The end of the name of a file that is not complete.
const INCOMPLETE: &str = ".tmp";

impl Name {
    /// Reads a complete file's name; `None` for the names of other files.
    pub fn parse(name: &str) -> Option<Self> {
        let (kind, number) = name.strip_suffix(".mgj")?.split_once('-')?;
        let is_number = number.len() == 16 && number.bytes().all(|digit| digit.is_ascii_digit());
        let number = number.parse().ok().filter(|_| is_number)?;
        match kind {
            "log" => Some(Self::Log(number)),
            "checkpoint" => Some(Self::Checkpoint(number)),
            _ => None,
        }
    }

    /// True if this is the name of an incomplete file.
    pub fn is_incomplete(name: &str) -> bool {
        name.strip_suffix(INCOMPLETE).and_then(Self::parse).is_some()
    }

    /// Returns the name that the file has while it is not complete.
    pub fn incomplete(self) -> String {
        format!("{self}{INCOMPLETE}")
    }

    /// Returns the number.
    pub fn number(self) -> u64 {
        let (Self::Log(number) | Self::Checkpoint(number)) = self;
        number
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Log(number) => write!(f, "log-{number:016}.mgj"),
            Self::Checkpoint(number) => write!(f, "checkpoint-{number:016}.mgj"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_the_journal_are_read() {
        for name in [Name::Log(7), Name::Checkpoint(u64::from(u32::MAX))] {
            assert_eq!(Name::parse(&name.to_string()), Some(name));
            assert_eq!(Name::parse(&name.incomplete()), None);
            assert!(Name::is_incomplete(&name.incomplete()));
        }
        for foreign in
            ["lock", "log-7.mgj", "log-+000000000000007.mgj", "log-0000000000000007.mgj.bak", ""]
        {
            assert_eq!(Name::parse(foreign), None, "{foreign}");
            assert!(!Name::is_incomplete(foreign), "{foreign}");
        }
    }
}
