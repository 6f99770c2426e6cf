//! The bytes of a connection, encrypted or not.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use rustls::{ServerConnection, StreamOwned};

use super::Shared;
use crate::access::{AuditEvent, shake_hands};

/// A connection.
#[derive(Debug)]
pub enum Stream {
    /// Without encryption.
    Plain(TcpStream),
    /// With TLS.
    Tls(Box<StreamOwned<ServerConnection, TcpStream>>),
}

impl Stream {
    /// Begins a connection; with TLS, waits for the handshake.
    ///
    /// # Errors
    ///
    /// If the handshake fails, or is not complete in time.
    pub fn begin(shared: &Shared, stream: TcpStream, client: &str) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(shared.settings.write))?;
        let Some(tls) = &shared.settings.tls else { return Ok(Self::Plain(stream)) };
        let (configs, changed) = tls.configs();
        match changed {
            Some(Ok(())) => {
                shared.audit.note(
                    AuditEvent::Certificates,
                    "",
                    "",
                    "the certificates have changed",
                );
            }
            Some(Err(what)) => {
                // There may be no reader.
                let _ = writeln!(io::stderr(), "{what}");
                shared.audit.note(AuditEvent::Certificates, "", "", &what);
            }
            None => {}
        }
        let mut connection = ServerConnection::new(configs.accepted).map_err(io::Error::other)?;
        let mut tcp = stream;
        if let Err(error) = shake_hands(&mut connection, &mut tcp, shared.settings.request) {
            shared.audit.note(AuditEvent::Handshake, client, "", &error.to_string());
            return Err(error);
        }
        Ok(Self::Tls(Box::new(StreamOwned::new(connection, tcp))))
    }

    fn tcp(&self) -> &TcpStream {
        match self {
            Self::Plain(stream) => stream,
            Self::Tls(stream) => &stream.sock,
        }
    }

    /// Sets the time for which a read waits.
    pub fn set_read_timeout(&self, time: Option<Duration>) -> io::Result<()> {
        self.tcp().set_read_timeout(time)
    }

    /// Tells the client that nothing more comes.
    pub fn end_writing(&mut self) -> io::Result<()> {
        if let Self::Tls(stream) = self {
            stream.conn.send_close_notify();
            stream.flush()?;
        }
        self.tcp().shutdown(Shutdown::Write)
    }

    /// Closes the connection. The client may have closed it.
    pub fn close(&self) {
        let _ = self.tcp().shutdown(Shutdown::Both);
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.read(buffer),
            Self::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.write(bytes),
            Self::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(stream) => stream.flush(),
            Self::Tls(stream) => stream.flush(),
        }
    }
}
