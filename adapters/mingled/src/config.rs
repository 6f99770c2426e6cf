//! The address of a data center, and the errors of opening its stores.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use mingle_model::Name;

use crate::limits::{ANSWER_WITHIN, CONNECT_WITHIN, ROUND_TRIP};
use crate::security::{Credentials, TlsConfig, WrongKey, is_loopback};

/// The addresses of a cluster.
///
/// # Examples
///
/// ```
/// use mingle_store_mingled::MingledConfig;
///
/// assert!(MingledConfig::at("127.0.0.1:6398").check_address().is_ok());
/// for wrong in ["127.0.0.1", ":6398", "oslo:99999", "redis://oslo:6398"] {
///     assert!(MingledConfig::at(wrong).check_address().is_err(), "{wrong}");
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MingledConfig {
    /// `host:port` of the listener for programs (`mingled --engine`) of the only data center; empty if
    /// there are several.
    pub address: String,
    /// The same of each data center by its name (`d0`, `d1`, …), if there are several.
    pub servers: BTreeMap<String, String>,
    /// The number of the cluster, if it is to be checked. After it has connected once, a program accepts
    /// no other cluster in any case.
    pub cluster: Option<u128>,
    /// The user and its password, if the data centers have users.
    pub credentials: Option<Credentials>,
    /// The encryption of connections; without it there is none.
    pub tls: Option<TlsConfig>,
    /// True if the password may go to other machines without encryption.
    pub plain_text: bool,
    /// The longest time to connect.
    pub connect_timeout: Duration,
    /// The longest wait for an answer.
    pub answer_timeout: Duration,
    /// The expected time of a round trip.
    pub round_trip: Duration,
}

impl MingledConfig {
    /// Returns the configuration of a data center at this address, with usual settings.
    pub fn at(address: impl Into<String>) -> Self {
        Self {
            address: address.into(),
            servers: BTreeMap::new(),
            cluster: None,
            credentials: None,
            tls: None,
            plain_text: false,
            connect_timeout: CONNECT_WITHIN,
            answer_timeout: ANSWER_WITHIN,
            round_trip: ROUND_TRIP,
        }
    }

    /// Returns the configuration of a cluster with the data centers at these addresses, with usual settings.
    ///
    /// # Examples
    ///
    /// ```
    /// use mingle_store_mingled::MingledConfig;
    ///
    /// let places = [("d0", "oslo:6398"), ("d1", "paris:6398")];
    /// let config = MingledConfig::of(places);
    /// assert_eq!(config.addresses().count(), 2);
    /// assert!(config.check_address().is_ok());
    /// ```
    pub fn of<N: Into<String>, A: Into<String>>(places: impl IntoIterator<Item = (N, A)>) -> Self {
        let servers = places.into_iter().map(|(name, address)| (name.into(), address.into()));
        Self { servers: servers.collect(), ..Self::at("") }
    }

    /// Returns the addresses, each with the name of its data center if there are several.
    pub fn addresses(&self) -> impl Iterator<Item = (Option<Name>, &str)> {
        let only = self.servers.is_empty().then_some((None, &*self.address));
        let several = self.servers.iter().map(|(name, at)| (Some(name.as_str().into()), &**at));
        only.into_iter().chain(several)
    }

    /// Checks the form of the addresses.
    ///
    /// # Errors
    ///
    /// The expected form, and the value found.
    pub fn check_address(&self) -> Result<(), String> {
        self.addresses().try_for_each(|(_, address)| check(address))
    }

    /// Checks all that can be checked without a data center: the form of the addresses, the password and the
    /// certificates, and that no password goes to another machine without encryption.
    ///
    /// # Errors
    ///
    /// The key of the binding that is wrong, and the reason.
    ///
    /// # Examples
    ///
    /// ```
    /// use mingle_store_mingled::{Credentials, MingledConfig, Password};
    ///
    /// let credentials = Credentials::new("shop", Password::Text("secret".into()));
    /// let near = MingledConfig { credentials: Some(credentials), ..MingledConfig::at("localhost:6398") };
    /// assert!(near.check().is_ok());
    /// let far = MingledConfig { address: "10.0.0.1:6398".into(), ..near };
    /// assert_eq!(far.check().unwrap_err().key, "tls");
    /// ```
    pub fn check(&self) -> Result<(), WrongKey> {
        let key = if self.servers.is_empty() { "address" } else { "servers" };
        self.check_address().map_err(|reason| WrongKey { key, reason })?;
        if let Some(tls) = &self.tls {
            tls.check(self.addresses().map(|(_, address)| address))?;
        }
        let Some(credentials) = &self.credentials else { return Ok(()) };
        credentials.check()?;
        let far = self.addresses().find(|(_, address)| !is_loopback(address));
        match far.filter(|_| self.tls.is_none() && !self.plain_text) {
            None => Ok(()),
            Some((_, address)) => Err(WrongKey {
                key: "tls",
                reason: format!(
                    "the password would cross the network to {address} as it is: expected tls = true, or \
                     plain_text = true where the network is trusted"
                ),
            }),
        }
    }
}

/// Checks the form of an address.
fn check(address: &str) -> Result<(), String> {
    let place = address.rsplit_once(':').filter(|(host, port)| {
        let is_host = !host.is_empty() && !host.contains(['/', '@', ' ']);
        is_host && port.parse::<u16>().is_ok_and(|port| port != 0)
    });
    place.map(|_| ()).ok_or_else(|| {
        format!("expected HOST:PORT of a data center's listener for programs, found {address:?}")
    })
}

/// The reason why a store cannot be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpenError {
    /// The binding is invalid.
    Config {
        /// The store.
        store: Name,
        /// The reason.
        reason: String,
    },
    /// The data center refuses the program's stores.
    Refused {
        /// The address.
        address: String,
        /// The reason.
        reason: String,
    },
    /// There is no connection to the data center that both ends trust: a certificate, the encryption or the password.
    Untrusted {
        /// The address.
        address: String,
        /// The reason.
        reason: String,
    },
    /// The data center cannot be reached.
    Unavailable {
        /// The address.
        address: String,
        /// The reason.
        reason: String,
    },
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config { store, reason } => write!(f, "stores.{store}: {reason}"),
            Self::Refused { address, reason } => {
                write!(f, "the data center at {address} refuses: {reason}")
            }
            Self::Untrusted { address, reason } => {
                write!(f, "no trusted connection to the data center at {address}: {reason}")
            }
            Self::Unavailable { address, reason } => {
                write!(f, "the data center at {address} cannot be reached: {reason}")
            }
        }
    }
}

impl std::error::Error for OpenError {}
