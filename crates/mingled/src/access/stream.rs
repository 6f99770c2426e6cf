//! The bytes of a connection, encrypted or not.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use rustls::{ServerConnection, StreamOwned};

use super::{Audit, AuditEvent, Tls, shake_hands};

/// The time in which the other end may take the last bytes before a connection is closed.
const LINGER: Duration = Duration::from_millis(200);

/// The number of bytes of one read of bytes that are not used.
const UNUSED_BYTES: usize = 16 << 10;

/// The settings of connections that are accepted.
#[derive(Clone, Copy, Debug)]
pub struct Incoming<'a> {
    /// The encryption; without it there is none.
    pub tls: Option<&'a Tls>,
    /// The log of handshakes that fail.
    pub audit: &'a Audit,
    /// The time in which the other end must take a piece of an answer.
    pub write: Duration,
    /// The time in which the handshake of TLS must be complete.
    pub handshake: Duration,
}

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
    pub fn begin(of: Incoming<'_>, stream: TcpStream, client: &str) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(of.write))?;
        let Some(tls) = of.tls else { return Ok(Self::Plain(stream)) };
        let (configs, changed) = tls.configs();
        match changed {
            Some(Ok(())) => {
                of.audit.note(AuditEvent::Certificates, "", "", "the certificates have changed");
            }
            Some(Err(what)) => {
                // There may be no reader.
                let _ = writeln!(io::stderr(), "{what}");
                of.audit.note(AuditEvent::Certificates, "", "", &what);
            }
            None => {}
        }
        let mut connection = ServerConnection::new(configs.accepted).map_err(io::Error::other)?;
        let mut tcp = stream;
        if let Err(error) = shake_hands(&mut connection, &mut tcp, of.handshake) {
            of.audit.note(AuditEvent::Handshake, client, "", &error.to_string());
            // The other end may have sent more than was read, and is told the reason all the same. It may be gone.
            let _ = Self::Plain(tcp).linger();
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
    ///
    /// # Errors
    ///
    /// If the time is zero, or the connection is closed.
    pub fn set_read_timeout(&self, time: Option<Duration>) -> io::Result<()> {
        self.tcp().set_read_timeout(time)
    }

    /// Tells the client that nothing more comes.
    fn end_writing(&mut self) -> io::Result<()> {
        if let Self::Tls(stream) = self {
            stream.conn.send_close_notify();
            stream.flush()?;
        }
        self.tcp().shutdown(Shutdown::Write)
    }

    /// Ends a connection whose last bytes were sent. The other end is given time to take them: a connection that is
    /// closed with unread bytes would discard them.
    ///
    /// # Errors
    ///
    /// If the other end has closed the connection.
    pub fn linger(&mut self) -> io::Result<()> {
        self.end_writing()?;
        self.set_read_timeout(Some(LINGER))?;
        let (mut buffer, until) = ([0; UNUSED_BYTES], Instant::now() + LINGER);
        while Instant::now() < until && self.read(&mut buffer)? > 0 {}
        Ok(())
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
