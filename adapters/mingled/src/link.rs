//! Connections to a data center.

use std::io;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use mingle_model::Name;
use mingle_store::Capabilities;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::config::{MingledConfig, OpenError};
use crate::limits::{IDLE_MAX, MESSAGE_BYTES_MAX};
use crate::wire::{HELLO, Hello, PROTOCOL, Welcome, decode, framed};

/// Connections to one data center.
#[derive(Debug)]
pub struct Link {
    config: MingledConfig,
    address: String,
    /// The name of the data center, if it is to be checked.
    name: Option<Name>,
    /// The declarations, as a message with its length, and their digest.
    program: (Vec<u8>, [u8; 32]),
    /// The cluster, once it is known; all connections of a program share it.
    cluster: Arc<OnceLock<u128>>,
    idle: Mutex<Vec<TcpStream>>,
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
    stream: TcpStream,
}

impl Link {
    /// Creates the connections of a program with these declarations, to each data center.
    pub fn all(config: &MingledConfig, program: &(Vec<u8>, [u8; 32])) -> Vec<Arc<Self>> {
        let cluster = Arc::new(config.cluster.map(OnceLock::from).unwrap_or_default());
        let link = |(name, address): (Option<Name>, &str)| Self {
            config: config.clone(),
            address: address.to_owned(),
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
        let (stream, welcome) = self.dial().await.map_err(unavailable)?;
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

    /// Connects without declarations, and returns the number of the cluster.
    pub async fn probe(&self) -> Result<u128, OpenError> {
        let address = || self.address.clone();
        match self.dial().await {
            Ok((_, Welcome::Unknown { cluster, .. } | Welcome::Known { cluster, .. })) => {
                Ok(cluster)
            }
            Ok((_, Welcome::Refused { reason, .. })) => {
                Err(OpenError::Refused { address: address(), reason })
            }
            Err(reason) => Err(OpenError::Unavailable { address: address(), reason }),
        }
    }

    /// Returns an idle connection, or a new one.
    pub async fn connect(self: &Arc<Self>) -> Result<Connection, String> {
        if let Some(stream) = self.take_idle() {
            return Ok(Connection { link: Arc::clone(self), stream });
        }
        match self.dial().await? {
            (stream, Welcome::Known { .. }) => Ok(Connection { link: Arc::clone(self), stream }),
            (_, Welcome::Refused { reason, .. }) => Err(reason),
            (_, Welcome::Unknown { .. }) => Err("it does not take the declarations".into()),
        }
    }

    /// Takes an idle connection that the data center has not closed.
    fn take_idle(&self) -> Option<TcpStream> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(stream) = idle.pop() {
            // Nothing is on its way to an idle program, so anything but this is its end.
            let found = stream.try_read(&mut [0]);
            if found.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock) {
                return Some(stream);
            }
        }
        None
    }

    fn give_back(&self, stream: TcpStream) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE_MAX {
            idle.push(stream);
        }
    }

    async fn dial(&self) -> Result<(TcpStream, Welcome), String> {
        let within = self.config.connect_timeout;
        let address = &self.address;
        let greeted = timeout(within, async {
            let mut stream =
                TcpStream::connect(address).await.map_err(|error| error.to_string())?;
            stream.set_nodelay(true).map_err(|error| error.to_string())?;
            let (program, digest) = &self.program;
            let cluster = self.cluster.get().copied();
            let hello = Hello { protocol: PROTOCOL, cluster, program: *digest };
            let hello = [HELLO.as_slice(), &framed(&hello)].concat();
            let mut welcome: Welcome = exchange(&mut stream, &hello).await?;
            if let Welcome::Unknown { .. } = welcome
                && !program.is_empty()
            {
                welcome = exchange(&mut stream, program).await?;
            }
            Ok::<_, String>((stream, welcome))
        });
        let greeted = match greeted.await {
            Ok(greeted) => greeted?,
            Err(_) => return Err(format!("no answer within {within:?}")),
        };
        if let Welcome::Known { datacenter, .. } | Welcome::Unknown { datacenter, .. } = &greeted.1
            && let Some(expected) = self.name.as_ref().filter(|name| *name != datacenter)
        {
            return Err(format!(
                "it is data center {datacenter}, and the binding calls it {expected}"
            ));
        }
        Ok(greeted)
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
            Ok(Err(reason)) => Err(Failed::Lost(reason)),
            Err(_) => Err(Failed::Lost(format!("no answer within {within:?}"))),
        }
    }

    /// Sends a request that has no answer, and keeps the connection for others.
    pub async fn tell(mut self, request: &impl Serialize) {
        // Otherwise it is closed, which has the same effect.
        if self.stream.write_all(&framed(request)).await.is_ok() {
            self.keep();
        }
    }

    /// Keeps the connection, which has no transaction, for others.
    pub fn keep(self) {
        let Self { link, stream } = self;
        link.give_back(stream);
    }
}

async fn exchange<T: DeserializeOwned>(stream: &mut TcpStream, frame: &[u8]) -> Result<T, String> {
    let ended = |error: io::Error| match error.kind() {
        io::ErrorKind::UnexpectedEof => "it closed the connection".to_owned(),
        _ => error.to_string(),
    };
    stream.write_all(frame).await.map_err(ended)?;
    let length = stream.read_u32().await.map_err(ended)?;
    if length as usize > MESSAGE_BYTES_MAX {
        return Err("its answer is none of the protocol: is this its listener for programs?".into());
    }
    let mut answer = vec![0; length as usize];
    stream.read_exact(&mut answer).await.map_err(ended)?;
    decode(&answer).ok_or_else(|| "its answer is of another version of the protocol".into())
}
