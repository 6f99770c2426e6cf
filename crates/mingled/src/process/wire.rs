//! The bytes of a connection between two data centers, encrypted or not.
//!
//! A reader and a writer use a connection at the same time. With TLS they share its state, which is locked while
//! bytes are encrypted or decrypted, and never while a socket is waited for.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mingle_geo::DcId;
use rustls::client::verify_server_name;
use rustls::pki_types::ServerName;
use rustls::server::ParsedCertificate;
use rustls::{ClientConnection, Connection, ServerConnection};

use crate::access::{Configs, shake_hands};

/// The time in which a handshake must be complete.
const HANDSHAKE: Duration = Duration::from_secs(5);

/// The number of bytes that are encrypted at once.
const CHUNK_BYTES: usize = 64 << 10;

/// A connection whose handshake is complete.
#[derive(Debug)]
pub struct Wire {
    pub tcp: TcpStream,
    tls: Option<Arc<Mutex<Connection>>>,
    /// The data centers that its certificate names; `None` without TLS.
    pub names: Option<Vec<DcId>>,
}

impl Wire {
    /// Returns a connection without encryption.
    pub fn plain(tcp: TcpStream) -> Self {
        Self { tcp, tls: None, names: None }
    }

    /// Waits for the handshake of a connection that was accepted. The other end must have a certificate.
    ///
    /// # Errors
    ///
    /// If the handshake fails, or takes too long.
    pub fn accept(mut tcp: TcpStream, configs: Configs, dc_count: u8) -> io::Result<Self> {
        let connection = ServerConnection::new(configs.accepted).map_err(io::Error::other)?;
        let mut connection = connection;
        shake_hands(&mut connection, &mut tcp, HANDSHAKE)?;
        let certificate = connection.peer_certificates().and_then(|chain| chain.first());
        let names = certificate.map(|certificate| {
            let parsed = ParsedCertificate::try_from(certificate).ok();
            let has = |dc: &DcId| {
                let name = ServerName::try_from(dc.to_string()).ok();
                let pair = parsed.as_ref().zip(name.as_ref());
                pair.is_some_and(|(parsed, name)| verify_server_name(parsed, name).is_ok())
            };
            (0..dc_count).map(DcId).filter(has).collect()
        });
        Self::of(tcp, connection.into(), names.unwrap_or_default())
    }

    /// Waits for the handshake of a connection to a data center, whose certificate must have its name, such as
    /// `d1`.
    ///
    /// # Errors
    ///
    /// If the handshake fails, or takes too long.
    pub fn dial(mut tcp: TcpStream, configs: Configs, dc: DcId) -> io::Result<Self> {
        let Some(config) = configs.dialed else {
            return Err(io::Error::other("there are no roots for certificates of data centers"));
        };
        let name = ServerName::try_from(dc.to_string()).map_err(io::Error::other)?;
        let mut connection = ClientConnection::new(config, name).map_err(io::Error::other)?;
        shake_hands(&mut connection, &mut tcp, HANDSHAKE)?;
        Self::of(tcp, connection.into(), vec![dc])
    }

    fn of(tcp: TcpStream, mut connection: Connection, names: Vec<DcId>) -> io::Result<Self> {
        connection.set_buffer_limit(None);
        tcp.set_read_timeout(None)?;
        Ok(Self { tcp, tls: Some(Arc::new(Mutex::new(connection))), names: Some(names) })
    }

    /// Returns the ends for a reader and a writer.
    ///
    /// # Errors
    ///
    /// If the operating system gives no other handle.
    pub fn split(&self) -> io::Result<(Reader, Writer)> {
        let reader = Reader {
            tcp: self.tcp.try_clone()?,
            tls: self.tls.clone(),
            taken: if self.tls.is_some() { vec![0; CHUNK_BYTES] } else { Vec::new() },
            at: 0,
            end: 0,
        };
        Ok((reader, Writer { tcp: self.tcp.try_clone()?, tls: self.tls.clone() }))
    }
}

fn lock(connection: &Mutex<Connection>) -> MutexGuard<'_, Connection> {
    connection.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The end of a reader.
#[derive(Debug)]
pub struct Reader {
    tcp: TcpStream,
    tls: Option<Arc<Mutex<Connection>>>,
    /// Bytes of the socket, from `at` to `end`, that are not decrypted yet.
    taken: Vec<u8>,
    at: usize,
    end: usize,
}

impl Reader {
    /// Waits for bytes; returns their number, which is 0 at the end of the connection.
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(tls) = &self.tls else { return self.tcp.read(buffer) };
        loop {
            {
                let mut connection = lock(tls);
                match connection.reader().read(buffer) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    done => return done,
                }
                if self.at < self.end {
                    let mut bytes = &self.taken[self.at..self.end];
                    self.at += connection.read_tls(&mut bytes)?;
                    connection.process_new_packets().map_err(io::Error::other)?;
                    continue;
                }
            }
            match self.tcp.read(&mut self.taken)? {
                0 => return Ok(0),
                count => (self.at, self.end) = (0, count),
            }
        }
    }
}

/// The end of a writer.
#[derive(Debug)]
pub struct Writer {
    tcp: TcpStream,
    tls: Option<Arc<Mutex<Connection>>>,
}

impl Writer {
    /// Writes bytes.
    pub fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(tls) = &self.tls else { return self.tcp.write_all(bytes) };
        let mut encrypted = Vec::with_capacity(CHUNK_BYTES + CHUNK_BYTES / 8);
        for chunk in bytes.chunks(CHUNK_BYTES) {
            encrypted.clear();
            {
                let mut connection = lock(tls);
                connection.writer().write_all(chunk)?;
                while connection.wants_write() {
                    connection.write_tls(&mut encrypted)?;
                }
            }
            self.tcp.write_all(&encrypted)?;
        }
        Ok(())
    }
}
