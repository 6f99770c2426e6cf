//! Connections to a data center.

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use mingle_model::Name;
use mingle_store::Capabilities;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::config::{MingledConfig, OpenError};
use crate::limits::{IDLE_MAX, MESSAGE_BYTES_MAX};
use crate::security::{Credentials, TlsConfig, WrongKey, explain};
use crate::stream::Stream;
use crate::wire::{HELLO, Hello, PROTOCOL, Welcome, decode, framed};

/// The encryption of new connections: none, or the settings with the name of the data center.
type Encryption = Option<(TlsConnector, ServerName<'static>)>;

/// The first byte of a message of TLS that ends a connection, where a length of this protocol begins with 0.
const TLS_ALERT: u8 = 0x15;

/// Connections to one data center.
pub struct Link {
    config: MingledConfig,
    address: String,
    /// An error is that of the binding.
    encryption: Result<Encryption, WrongKey>,
    /// The name of the data center, if it is to be checked.
    name: Option<Name>,
    /// The declarations, as a message with its length, and their digest.
    program: (Vec<u8>, [u8; 32]),
    /// The cluster, once it is known; all connections of a program share it.
    cluster: Arc<OnceLock<u128>>,
    idle: Mutex<Vec<Stream>>,
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Link({})", self.address)
    }
}

/// The reason why there is no connection.
#[derive(Debug)]
pub enum Undialed {
    /// The data center does not answer, or not as one does.
    Away(String),
    /// A certificate, the encryption or the password is at fault.
    Untrusted(String),
}

impl Undialed {
    /// Returns the text.
    pub fn reason(self) -> String {
        match self {
            Self::Away(reason) | Self::Untrusted(reason) => reason,
        }
    }

    /// Returns the error of a connection, which may be that of TLS.
    fn of(error: &io::Error) -> Self {
        match (explain(error), error.kind()) {
            (Some(reason), _) => Self::Untrusted(reason),
            (None, io::ErrorKind::UnexpectedEof) => Self::Away("it closed the connection".into()),
            (None, _) => Self::Away(error.to_string()),
        }
    }
}

impl From<WrongKey> for Undialed {
    fn from(wrong: WrongKey) -> Self {
        Self::Untrusted(wrong.to_string())
    }
}

/// The reason why there is no answer.
#[derive(Debug)]
pub enum Failed {
    /// Nothing was sent.
    NotSent(String),
    /// The request may have arrived.
    Lost(String),
}

impl Failed {
    /// Returns the text.
    pub fn reason(self) -> String {
        match self {
            Self::NotSent(reason) | Self::Lost(reason) => reason,
        }
    }
}

/// A connection that is in use. Dropped during a request it is closed, and the data center ends its
/// transaction.
#[derive(Debug)]
pub struct Connection {
    link: Arc<Link>,
    stream: Stream,
}

impl Link {
    /// Creates the connections of a program with these declarations, to each data center.
    pub fn all(config: &MingledConfig, program: &(Vec<u8>, [u8; 32])) -> Vec<Arc<Self>> {
        let cluster = Arc::new(config.cluster.map(OnceLock::from).unwrap_or_default());
        let tls = config.tls.as_ref();
        let connector = tls.map(TlsConfig::connector).transpose();
        let encryption = |address: &str| match (tls, &connector) {
            (Some(tls), Ok(Some(connector))) => {
                Ok(Some((connector.clone(), tls.name_at(address)?)))
            }
            (_, Err(wrong)) => Err(wrong.clone()),
            _ => Ok(None),
        };
        let link = |(name, address): (Option<Name>, &str)| Self {
            config: config.clone(),
            address: address.to_owned(),
            encryption: encryption(address),
            name,
            program: program.clone(),
            cluster: Arc::clone(&cluster),
            idle: Mutex::default(),
        };
        config.addresses().map(|place| Arc::new(link(place))).collect()
    }

    /// Returns the address.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Returns the name of the data center, if there are several.
    pub fn name(&self) -> Option<&Name> {
        self.name.as_ref()
    }

    /// Connects, and returns the capabilities of the program's stores.
    pub async fn open(self: &Arc<Self>) -> Result<Vec<Capabilities>, OpenError> {
        let address = || self.address.clone();
        let unavailable = |reason| OpenError::Unavailable { address: address(), reason };
        let (stream, welcome) =
            self.dial(None).await.map_err(|undialed| self.undialed(undialed))?;
        match welcome {
            Welcome::Known { cluster, stores, .. } => {
                // The cluster that the data center was told, if it was told one.
                let _ = self.cluster.set(cluster);
                self.give_back(stream);
                Ok(stores)
            }
            Welcome::Refused { reason, may_come: true } => Err(unavailable(reason)),
            Welcome::Refused { reason, .. } => {
                Err(OpenError::Refused { address: address(), reason })
            }
            Welcome::Unknown { .. } => Err(unavailable("it does not take the declarations".into())),
        }
    }

    /// Connects without declarations, and returns the number of the cluster. The user must be allowed to have the
    /// store, if one is given.
    pub async fn probe(&self, store: Option<&Name>) -> Result<u128, OpenError> {
        let address = || self.address.clone();
        match self.dial(store).await {
            Ok((_, Welcome::Unknown { cluster, .. } | Welcome::Known { cluster, .. })) => {
                Ok(cluster)
            }
            Ok((_, Welcome::Refused { reason, .. })) => {
                Err(OpenError::Refused { address: address(), reason })
            }
            Err(undialed) => Err(self.undialed(undialed)),
        }
    }

    fn undialed(&self, undialed: Undialed) -> OpenError {
        let address = self.address.clone();
        match undialed {
            Undialed::Away(reason) => OpenError::Unavailable { address, reason },
            Undialed::Untrusted(reason) => OpenError::Untrusted { address, reason },
        }
    }

    /// Returns an idle connection, or a new one.
    pub async fn connect(self: &Arc<Self>) -> Result<Connection, String> {
        if let Some(stream) = self.take_idle() {
            return Ok(Connection { link: Arc::clone(self), stream });
        }
        match self.dial(None).await.map_err(Undialed::reason)? {
            (stream, Welcome::Known { .. }) => Ok(Connection { link: Arc::clone(self), stream }),
            (_, Welcome::Refused { reason, .. }) => Err(reason),
            (_, Welcome::Unknown { .. }) => Err("it does not take the declarations".into()),
        }
    }

    /// Takes an idle connection that the data center has not closed.
    fn take_idle(&self) -> Option<Stream> {
        let mut idle = self.idle();
        while let Some(stream) = idle.pop() {
            // Nothing is on its way to an idle program, so anything but silence is its end.
            if stream.is_silent() {
                return Some(stream);
            }
        }
        None
    }

    fn give_back(&self, stream: Stream) {
        let mut idle = self.idle();
        if idle.len() < IDLE_MAX {
            idle.push(stream);
        }
    }

    /// Closes the idle connections: their user has changed.
    pub fn forget_idle(&self) {
        self.idle().clear();
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Stream>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn dial(&self, examined: Option<&Name>) -> Result<(Stream, Welcome), Undialed> {
        let within = self.config.connect_timeout;
        let greeted = match timeout(within, self.greet(examined)).await {
            Ok(greeted) => greeted?,
            Err(_) => return Err(Undialed::Away(format!("no answer within {within:?}"))),
        };
        if let Welcome::Known { datacenter, .. } | Welcome::Unknown { datacenter, .. } = &greeted.1
            && let Some(expected) = self.name.as_ref().filter(|name| *name != datacenter)
        {
            return Err(Undialed::Away(format!(
                "it is data center {datacenter}, and the binding calls it {expected}"
            )));
        }
        Ok(greeted)
    }

    /// Connects, signs in, and declares the stores.
    async fn greet(&self, examined: Option<&Name>) -> Result<(Stream, Welcome), Undialed> {
        let encryption = self.encryption.as_ref().map_err(Clone::clone)?;
        // A password in a file may have changed.
        let user = self.config.credentials.as_ref().map(Credentials::sign_in).transpose()?;
        let away = |error: io::Error| Undialed::Away(error.to_string());
        let tcp = TcpStream::connect(&self.address).await.map_err(away)?;
        tcp.set_nodelay(true).map_err(away)?;
        let mut stream = match encryption {
            None => Stream::Plain(tcp),
            Some((connector, name)) => {
                let connected = Box::pin(connector.connect(name.clone(), tcp)).await;
                Stream::Tls(Box::new(connected.map_err(|error| Undialed::of(&error))?))
            }
        };
        let (program, digest) = &self.program;
        let cluster = self.cluster.get().copied();
        let examined = examined.cloned();
        let hello = Hello { protocol: PROTOCOL, cluster, program: *digest, user, examined };
        let hello = [HELLO.as_slice(), &framed(&hello)].concat();
        let mut welcome: Welcome = exchange(&mut stream, &hello).await?;
        if let Welcome::Unknown { .. } = welcome
            && !program.is_empty()
        {
            welcome = exchange(&mut stream, program).await?;
        }
        Ok((stream, welcome))
    }
}

impl Connection {
    /// Sends a request, and returns its answer and the connection.
    pub async fn ask<T: DeserializeOwned>(
        mut self,
        request: &impl Serialize,
    ) -> Result<(Self, T), Failed> {
        let frame = framed(request);
        if frame.len() > MESSAGE_BYTES_MAX {
            let length = frame.len();
            return Err(Failed::NotSent(format!(
                "a message of {length} bytes, and at most {MESSAGE_BYTES_MAX} are sent"
            )));
        }
        let within = self.link.config.answer_timeout;
        match timeout(within, exchange(&mut self.stream, &frame)).await {
            Ok(Ok(answer)) => Ok((self, answer)),
            Ok(Err(undialed)) => Err(Failed::Lost(undialed.reason())),
            Err(_) => Err(Failed::Lost(format!("no answer within {within:?}"))),
        }
    }

    /// Sends a request that has no answer, and keeps the connection for others.
    pub async fn tell(mut self, request: &impl Serialize) {
        // Otherwise it is closed, which has the same effect.
        let frame = framed(request);
        if self.stream.write_all(&frame).await.is_ok() && self.stream.flush().await.is_ok() {
            self.keep();
        }
    }

    /// Keeps the connection, which has no transaction, for others.
    pub fn keep(self) {
        let Self { link, stream } = self;
        link.give_back(stream);
    }
}

async fn exchange<T: DeserializeOwned>(stream: &mut Stream, frame: &[u8]) -> Result<T, Undialed> {
    let ended = |error: io::Error| Undialed::of(&error);
    stream.write_all(frame).await.map_err(ended)?;
    stream.flush().await.map_err(ended)?;
    let length = stream.read_u32().await.map_err(ended)?;
    if length.to_be_bytes()[0] == TLS_ALERT && matches!(stream, Stream::Plain(_)) {
        let reason = "it answers with TLS: set tls = true in the binding";
        return Err(Undialed::Untrusted(reason.into()));
    }
    if length as usize > MESSAGE_BYTES_MAX {
        let reason = "its answer is none of the protocol: is this its listener for programs?";
        return Err(Undialed::Away(reason.into()));
    }
    let mut answer = vec![0; length as usize];
    stream.read_exact(&mut answer).await.map_err(ended)?;
    let other = || Undialed::Away("its answer is of another version of the protocol".into());
    decode(&answer).ok_or_else(other)
}
