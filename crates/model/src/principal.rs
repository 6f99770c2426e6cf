//! Callers, by name.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Name;
use crate::limits::PRINCIPAL_BYTES_MAX;

/// The caller of a transaction, by the name under which an operator gives it rights.
///
/// # Examples
///
/// ```
/// use mingle_model::Principal;
///
/// assert_eq!(Principal::new("till").unwrap().as_str(), "till");
/// assert!(Principal::new("").is_err());
/// assert!(Principal::new("x".repeat(257)).is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Principal(Name);

impl Principal {
    /// The principal of this name.
    ///
    /// # Errors
    ///
    /// When the name is empty, or longer than [`PRINCIPAL_BYTES_MAX`].
    pub fn new(name: impl Into<Name>) -> Result<Self, NoPrincipal> {
        let name = name.into();
        if name.is_empty() || name.len() > PRINCIPAL_BYTES_MAX {
            return Err(NoPrincipal { bytes: name.len() });
        }
        Ok(Self(name))
    }

    /// Its name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for Principal {
    type Error = NoPrincipal;

    fn try_from(name: String) -> Result<Self, NoPrincipal> {
        Self::new(name)
    }
}

impl From<Principal> for String {
    fn from(principal: Principal) -> Self {
        principal.0.to_string()
    }
}

/// A text that names no principal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoPrincipal {
    /// Its length.
    bytes: usize,
}

impl fmt::Display for NoPrincipal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.bytes;
        write!(f, "the name of a principal has 1 to {PRINCIPAL_BYTES_MAX} bytes, found {bytes}")
    }
}

impl std::error::Error for NoPrincipal {}
