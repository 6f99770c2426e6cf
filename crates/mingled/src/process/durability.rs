//! The time at which a commit is acknowledged.

use std::fmt;
use std::str::FromStr;

/// The time at which a causal commit is acknowledged to a client. A strong one is always on the disks of a
/// majority of the data centers first, and other data centers are never told of what is not on disk here.
///
/// # Examples
///
/// ```
/// use mingled::process::Durability;
///
/// assert_eq!("uniform".parse(), Ok(Durability::Uniform));
/// assert_eq!(Durability::default().to_string(), "disk");
/// assert!("often".parse::<Durability>().is_err());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// At once: a commit is lost if the process is killed in the next milliseconds.
    Memory,
    /// Once it is on disk in this data center.
    #[default]
    Disk,
    /// Once it survives the loss of as many data centers as the cluster tolerates.
    Uniform,
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Memory => "memory",
            Self::Disk => "disk",
            Self::Uniform => "uniform",
        })
    }
}

impl FromStr for Durability {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let all = [Self::Memory, Self::Disk, Self::Uniform];
        let found = all.into_iter().find(|it| text.eq_ignore_ascii_case(&it.to_string()));
        found.ok_or_else(|| {
            format!("found '{}', expected memory, disk or uniform", text.escape_default())
        })
    }
}
