//! What is broken on purpose in a run.

use std::fmt;

use mingle_runtime::planted::Planted;

use crate::sabotage::Sabotage;

/// A fault that is planted to see that a checker notices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flaw {
    /// Nothing.
    #[default]
    None,
    /// In the runtime.
    Runtime(Planted),
    /// In a store.
    Store(Sabotage),
}

impl Flaw {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        let planted = Planted::ALL.into_iter().map(Self::Runtime);
        planted.chain(Sabotage::ALL.into_iter().map(Self::Store))
    }

    /// The fault of that name.
    ///
    /// # Errors
    ///
    /// The names that there are.
    pub fn find(name: &str) -> Result<Self, String> {
        let of_outages = Planted::OF_OUTAGES.into_iter().map(Self::Runtime);
        Self::all().chain(of_outages).find(|flaw| flaw.to_string() == name).ok_or_else(|| {
            let names: Vec<String> = Self::all().map(|flaw| flaw.to_string()).collect();
            format!("no planted fault is called {name:?}; there are {}", names.join(", "))
        })
    }

    /// What is broken in the runtime.
    pub fn planted(self) -> Planted {
        match self {
            Self::Runtime(planted) => planted,
            _ => Planted::None,
        }
    }

    /// What is broken in a store.
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
