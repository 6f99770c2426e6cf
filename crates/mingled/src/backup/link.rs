//! A connection to a server, as a client of Redis's protocol, for an operator's command.

use std::fmt;
use std::io::{self, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

/// The time in which a connection must be made.
const DIAL: Duration = Duration::from_secs(10);

/// The time in which a reply must come.
const REPLY: Duration = Duration::from_mins(1);

/// The maximum length of a reply's line and of its bytes.
const LINE_BYTES_MAX: usize = 64 << 10;
const REPLY_BYTES_MAX: usize = 4 << 20;

/// The user and the encryption of a connection.
#[derive(Clone, Default)]
pub struct Access {
    /// The name of the user, and the password.
    pub user: Option<(String, String)>,
    /// The file of PEM with the roots of the server's certificate; with it the connection is encrypted.
    pub ca: Option<PathBuf>,
    /// The name in the server's certificate; without it, its address.
    pub name: Option<String>,
    /// The files of PEM with this client's certificate and its key.
    pub certificate: Option<(PathBuf, PathBuf)>,
}

/// The password is not shown.
impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let user = self.user.as_ref().map(|(name, _)| name);
        f.debug_struct("Access").field("user", &user).field("ca", &self.ca).finish_non_exhaustive()
    }
}

/// A reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A line.
    Line(String),
    /// Bytes.
    Bytes(Vec<u8>),
    /// Nothing.
    Nil,
}

trait Stream: Read + Write + Send {}

impl<T: Read + Write + Send> Stream for T {}

/// A connection.
pub struct Link {
    address: SocketAddr,
    stream: BufReader<Box<dyn Stream>>,
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("address", &self.address).finish_non_exhaustive()
    }
}

fn config(ca: &Path, certificate: Option<&(PathBuf, PathBuf)>) -> Result<ClientConfig, String> {
    let wrong = |file: &Path, why: &dyn fmt::Display| format!("{}: {why}", file.display());
    let certificates = |file: &Path| {
        let found =
            CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        found.map_err(|error| wrong(file, &error))
    };
    let mut roots = RootCertStore::empty();
    for root in certificates(ca)? {
        roots.add(root).map_err(|error| wrong(ca, &error))?;
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong(ca, &error))?
        .with_root_certificates(roots);
    let Some((certificate, key)) = certificate else { return Ok(builder.with_no_client_auth()) };
    let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| wrong(key, &error))?;
    let config = builder.with_client_auth_cert(certificates(certificate)?, secret);
    config.map_err(|error| wrong(certificate, &error))
}

impl Link {
    /// Connects to a server and signs in.
    ///
    /// # Errors
    ///
    /// If the server cannot be reached, has no right certificate, or refuses the user.
    pub fn open(address: SocketAddr, access: &Access) -> Result<Self, String> {
        let fault = |error: io::Error| format!("{address} cannot be reached: {error}");
        let tcp = TcpStream::connect_timeout(&address, DIAL).map_err(fault)?;
        tcp.set_nodelay(true).map_err(fault)?;
        tcp.set_read_timeout(Some(REPLY)).map_err(fault)?;
        tcp.set_write_timeout(Some(REPLY)).map_err(fault)?;
        let stream: Box<dyn Stream> = match &access.ca {
            None => Box::new(tcp),
            Some(ca) => {
                let config = Arc::new(config(ca, access.certificate.as_ref())?);
                let name = access.name.clone().unwrap_or_else(|| address.ip().to_string());
                let server = ServerName::try_from(name.clone());
                let server = server.map_err(|_| format!("{name} is no name of a server"))?;
                let connection = ClientConnection::new(config, server);
                let connection = connection.map_err(|error| format!("{address}: {error}"))?;
                Box::new(StreamOwned::new(connection, tcp))
            }
        };
        let mut link = Self { address, stream: BufReader::new(stream) };
        if let Some((user, password)) = &access.user {
            link.ask(&["AUTH", user, password])?;
        }
        Ok(link)
    }

    /// Sends a command, and returns its reply.
    ///
    /// # Errors
    ///
    /// The error that the server replies, or the end of the connection.
    pub fn ask(&mut self, words: &[&str]) -> Result<Answer, String> {
        let address = self.address;
        let fault = |error: io::Error| format!("{address}: {error}");
        let mut request = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            request.extend(format!("${}\r\n", word.len()).into_bytes());
            request.extend_from_slice(word.as_bytes());
            request.extend(b"\r\n");
        }
        let stream = self.stream.get_mut();
        stream.write_all(&request).and_then(|()| stream.flush()).map_err(fault)?;
        self.answer().map_err(fault)?.map_err(|refused| format!("{address}: {refused}"))
    }

    /// Reads a reply; the inner error is one that the server replies.
    fn answer(&mut self) -> io::Result<Result<Answer, String>> {
        let line = self.line()?;
        let unknown = || io::Error::other("the reply is not one of this server");
        let (mark, rest) = line.split_at_checked(1).ok_or_else(unknown)?;
        match mark {
            "+" | ":" => Ok(Ok(Answer::Line(rest.to_owned()))),
            "-" => Ok(Err(rest.to_owned())),
            "$" if rest == "-1" => Ok(Ok(Answer::Nil)),
            "$" => {
                let length: usize = rest.parse().map_err(|_| unknown())?;
                if length > REPLY_BYTES_MAX {
                    return Err(unknown());
                }
                let mut bytes = vec![0; length + 2];
                self.stream.read_exact(&mut bytes)?;
                bytes.truncate(length);
                Ok(Ok(Answer::Bytes(bytes)))
            }
            _ => Err(unknown()),
        }
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = Vec::new();
        let mut byte = [0];
        loop {
            self.stream.read_exact(&mut byte)?;
            match byte {
                [b'\n'] => break,
                [b'\r'] => {}
                [other] if line.len() < LINE_BYTES_MAX => line.push(other),
                _ => return Err(io::Error::other("the reply has a line that is too long")),
            }
        }
        String::from_utf8(line).map_err(|_| io::Error::other("the reply is no text"))
    }
}
