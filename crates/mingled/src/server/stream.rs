//! The bytes of a connection, encrypted or not.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use rustls::{ServerConnection, StreamOwned};

use super::Shared;
use crate::access::AuditEvent;

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
        let (config, changed) = tls.config();
        match changed {
            Some(Ok(())) => {
                shared.audit.note(
                    AuditEvent::Certificates,
                    "",
                    "",
                    "the certificates have changed",
                );
            }
            Some(Err(why)) => {
                let what =
                    format!("the changed certificates cannot be used, the last ones count: {why}");
                // There may be no reader.
                let _ = writeln!(io::stderr(), "{what}");
                shared.audit.note(AuditEvent::Certificates, "", "", &what);
            }
            None => {}
        }
        stream.set_read_timeout(Some(shared.settings.request))?;
        let mut connection = ServerConnection::new(config).map_err(io::Error::other)?;
        let mut tcp = stream;
        let done = handshake(&mut connection, &mut tcp);
        if let Err(error) = done {
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

/// Completes a handshake. After an error the client is told the reason as far as TLS has words for it.
fn handshake(connection: &mut ServerConnection, tcp: &mut TcpStream) -> io::Result<()> {
    while connection.is_handshaking() {
        if let Err(error) = connection.complete_io(tcp) {
            // The alert; the connection ends anyway.
            let _ = connection.write_tls(tcp);
            return Err(error);
        }
    }
    Ok(())
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
