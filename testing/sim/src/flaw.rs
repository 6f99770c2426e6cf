//! The planted fault of a run.

use std::fmt;

use mingle_runtime::planted::Planted;

use crate::sabotage::Sabotage;

/// A fault that is planted to test that a checker detects it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flaw {
    /// No fault.
    #[default]
    None,
    /// A fault in the runtime.
    Runtime(Planted),
    /// A fault in a store.
    Store(Sabotage),
}

impl Flaw {
    /// Returns all planted faults.
    pub fn all() -> impl Iterator<Item = Self> {
        let planted = Planted::ALL.into_iter().map(Self::Runtime);
        planted.chain(Sabotage::ALL.into_iter().map(Self::Store))
    }

    /// Returns the fault of that name.
    ///
    /// # Errors
    ///
    /// The list of valid names.
    pub fn find(name: &str) -> Result<Self, String> {
        let of_outages = Planted::OF_OUTAGES.into_iter().map(Self::Runtime);
        Self::all().chain(of_outages).find(|flaw| flaw.to_string() == name).ok_or_else(|| {
            let names: Vec<String> = Self::all().map(|flaw| flaw.to_string()).collect();
            format!("no planted fault is called {name:?}; there are {}", names.join(", "))
        })
    }

    /// Returns the planted fault of the runtime.
    pub fn planted(self) -> Planted {
        match self {
            Self::Runtime(planted) => planted,
            _ => Planted::None,
        }
    }

    /// Returns the planted fault of a store.
    pub fn sabotage(self) -> Sabotage {
        match self {
            Self::Store(sabotage) => sabotage,
            _ => Sabotage::None,
        }
    }
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("None"),
            Self::Runtime(planted) => write!(f, "{planted:?}"),
            Self::Store(sabotage) => write!(f, "{sabotage:?}"),
        }
    }
}
