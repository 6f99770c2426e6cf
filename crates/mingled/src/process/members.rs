//! The data centers as an operator sees them, and changes of them.

use std::fmt;

use mingle_geo::{DcId, Refusal};

/// The state of a data center, as this process knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CenterState {
    /// It is this one.
    Here,
    /// It is this one, and copies the data of another one before it serves.
    ComingUp,
    /// It is connected with this one.
    Connected,
    /// There is no connection.
    Away,
    /// It is being given up.
    Fencing,
    /// It is given up.
    Fenced,
}

impl fmt::Display for CenterState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Here => "here",
            Self::ComingUp => "coming-up",
            Self::Connected => "connected",
            Self::Away => "away",
            Self::Fencing => "fencing",
            Self::Fenced => "fenced",
        })
    }
}

/// A data center, as this process knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Center {
    /// The data center.
    pub dc: DcId,
    /// Its state.
    pub state: CenterState,
    /// The time at which the state began, in milliseconds since 1970.
    pub since_ms: u64,
    /// The number of its incarnation.
    pub incarnation: u32,
    /// The age in milliseconds of the latest state of it that is here; 0 for this data center, `None` for
    /// one that is given up or of which nothing has come.
    pub lag_ms: Option<u64>,
    /// The reason why the last connection ended or could not be made, while there is none.
    pub why: Option<String>,
}

/// A data center that was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GivenUp {
    /// The data center.
    pub dc: DcId,
    /// Its incarnation.
    pub incarnation: u32,
    /// Its transactions up to this time, in milliseconds since 1970, are kept.
    pub cut_ms: u64,
}

/// The reason why a data center is not given up or admitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeError {
    /// There is no data center of this number.
    Unknown {
        /// The number.
        dc: DcId,
        /// The number of data centers.
        count: u8,
    },
    /// The data center is the one that was asked.
    Own(DcId),
    /// The data center is connected.
    Connected(DcId),
    /// The data center was given up already.
    GivenUp {
        /// The data center.
        dc: DcId,
        /// Its incarnation.
        incarnation: u32,
    },
    /// The data center was not given up, so it cannot be admitted.
    NotGivenUp(DcId),
    /// The data center is still being given up.
    BeingGivenUp(DcId),
    /// Too few data centers are connected to agree.
    TooFew {
        /// The data center.
        dc: DcId,
        /// The data centers that can agree, with this one.
        found: Vec<DcId>,
        /// The number of data centers that must agree.
        expected: usize,
    },
    /// This data center is itself given up.
    Over {
        /// This data center.
        dc: DcId,
        /// Its incarnation.
        incarnation: u32,
    },
    /// The group refuses the change.
    Refused(Refusal),
    /// The others have not agreed in time. The change may still be made.
    TimedOut {
        /// The data center.
        dc: DcId,
        /// The time that was waited for, in milliseconds.
        ms: u64,
    },
    /// Some data centers have not reported in time what they have of one that is being given up. The
    /// change is made once they do, or once they are given up as well.
    Unreported {
        /// The data center.
        dc: DcId,
        /// The data centers that are not connected.
        missing: Vec<DcId>,
        /// The time that was waited for, in milliseconds.
        ms: u64,
    },
    /// The process has stopped.
    Stopped,
}

impl fmt::Display for ChangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { dc, count: 1 } => {
                write!(f, "there is no data center {dc}: d0 is the only one")
            }
            Self::Unknown { dc, count } => {
                write!(f, "there is no data center {dc}, expected d0 to d{}", count - 1)
            }
            Self::Own(dc) => {
                write!(f, "{dc} is this data center: ask another one that is not lost")
            }
            Self::Connected(dc) => write!(
                f,
                "{dc} is connected, and would lose what the others do not have: stop it first, or use \
                 FENCE {dc} FORCE"
            ),
            Self::GivenUp { dc, incarnation } => {
                write!(f, "incarnation {incarnation} of {dc} was given up already")
            }
            Self::NotGivenUp(dc) => {
                write!(f, "{dc} was not given up: start its process, or use FENCE {dc} first")
            }
            Self::BeingGivenUp(dc) => write!(f, "{dc} is still being given up"),
            Self::TooFew { dc, found, expected } => {
                let found: Vec<String> = found.iter().map(ToString::to_string).collect();
                write!(
                    f,
                    "{expected} data centers other than {dc} must agree, and {} can: {}",
                    found.len(),
                    found.join(", ")
                )
            }
            Self::Over { dc, incarnation } => {
                write!(f, "incarnation {incarnation} of {dc}, which was asked, is given up")
            }
            Self::Refused(refusal) => refusal.fmt(f),
            Self::TimedOut { dc, ms } => write!(
                f,
                "the others have not agreed on {dc} within {ms} ms; the change may still be made"
            ),
            Self::Unreported { dc, missing, ms } => {
                let missing: Vec<String> = missing.iter().map(ToString::to_string).collect();
                write!(
                    f,
                    "{dc} is being given up, but within {ms} ms no report came of what {} had of it; the \
                     change is made once it comes, or once those are given up as well",
                    missing.join(", ")
                )
            }
            Self::Stopped => f.write_str("the process of this data center has stopped"),
        }
    }
}

impl std::error::Error for ChangeError {}
