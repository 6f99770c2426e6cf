//! The thread of a connection.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use super::batch::Batch;
use super::client::Client;
use super::{Described, Shared, lock};
use crate::access::{Incoming, Stream};
use crate::resp::{Decoder, Limits, Protocol, Reply};

/// The number of bytes of replies after which they are sent even if more requests are here.
const REPLY_BYTES: usize = 64 << 10;

/// The number of bytes of one read.
const READ_BYTES: usize = 16 << 10;

/// The bounds of requests before a user has signed in.
const UNKNOWN: Limits = Limits {
    argument_bytes: 16 << 10,
    request_bytes: 64 << 10,
    arguments: 16,
    line_bytes: 16 << 10,
    depth: 1,
};

/// Serves a connection until its end.
pub fn serve(shared: &Arc<Shared>, described: &Arc<Mutex<Described>>, stream: TcpStream) {
    let client = Client::new(shared, described);
    let limits = if client.signed_in.is_in() { shared.settings.limits } else { UNKNOWN };
    let address = lock(described).address.to_string();
    // The table of connections has the stream, too: without this it stays open.
    let Ok(other) = stream.try_clone() else { return };
    let settings = &shared.settings;
    let incoming = Incoming {
        tls: settings.tls.as_deref(),
        audit: &shared.audit,
        write: settings.write,
        handshake: settings.request,
    };
    let Ok(stream) = Stream::begin(incoming, stream, &address) else {
        // The client may have closed it.
        let _ = other.shutdown(std::net::Shutdown::Both);
        return;
    };
    drop(other);
    let mut connection = Connection {
        decoder: Decoder::new(limits),
        is_limited: !client.signed_in.is_in(),
        client,
        shared,
        stream,
        out: Vec::new(),
        batch: Batch::default(),
        began: None,
    };
    // A connection that fails is closed; its client sees that.
    let _ = connection.run();
}

impl Drop for Connection<'_> {
    fn drop(&mut self) {
        // The table of connections has the stream, too.
        self.stream.close();
    }
}

struct Connection<'a> {
    shared: &'a Arc<Shared>,
    stream: Stream,
    decoder: Decoder,
    /// True if requests have the bounds of clients without a user.
    is_limited: bool,
    client: Client,
    out: Vec<u8>,
    batch: Batch,
    /// The time at which the request that is not complete began.
    began: Option<Instant>,
}

/// A reason to close a connection.
enum End {
    /// The client has closed it.
    Closed,
    /// The client gets this error first.
    Error(String),
}

impl Connection<'_> {
    fn run(&mut self) -> io::Result<()> {
        loop {
            if !self.requests()? {
                return self.linger();
            }
            self.flush()?;
            if self.shared.is_over.load(Ordering::Acquire) {
                return self.linger();
            }
            match self.receive() {
                Ok(()) => {}
                Err(End::Closed) => return Ok(()),
                Err(End::Error(text)) => {
                    self.put(&Reply::Error(text));
                    return self.linger();
                }
            }
        }
    }

    /// Runs the requests that are complete; returns false if the connection is to be closed.
    fn requests(&mut self) -> io::Result<bool> {
        loop {
            match self.decoder.next_request() {
                Ok(None) => {
                    self.answer_batch()?;
                    return Ok(true);
                }
                Ok(Some(request)) => {
                    self.began = None;
                    if let Some(entry) = self.client.entry(&request) {
                        if !self.batch.has_room_for(&entry) {
                            self.answer_batch()?;
                        }
                        self.batch.push(entry, request);
                        continue;
                    }
                    self.answer_batch()?;
                    let reply = self.client.run(request);
                    if self.is_limited && self.client.signed_in.is_in() {
                        self.is_limited = false;
                        self.decoder.set_limits(self.shared.settings.limits);
                    }
                    // The reply to HELLO is in the version that it chooses.
                    self.put(&reply);
                    if self.client.is_closing {
                        return Ok(false);
                    }
                }
                Err(error) => {
                    self.answer_batch()?;
                    self.client.refused();
                    self.put(&Reply::Error(format!("ERR {error}")));
                    if error.is_fatal() {
                        return Ok(false);
                    }
                }
            }
            if self.out.len() >= REPLY_BYTES {
                self.flush()?;
            }
        }
    }

    /// Answers the requests that have come together.
    fn answer_batch(&mut self) -> io::Result<()> {
        for reply in self.client.run_batch(std::mem::take(&mut self.batch)) {
            self.put(&reply);
            if self.out.len() >= REPLY_BYTES {
                self.flush()?;
            }
        }
        Ok(())
    }

    fn put(&mut self, reply: &Reply) {
        let protocol: Protocol = self.client.protocol;
        reply.put(protocol, &mut self.out);
    }

    fn flush(&mut self) -> io::Result<()> {
        if !self.out.is_empty() {
            self.stream.write_all(&self.out)?;
            self.stream.flush()?;
            self.out.clear();
            self.out.shrink_to(REPLY_BYTES);
        }
        Ok(())
    }

    /// Waits for bytes.
    fn receive(&mut self) -> Result<(), End> {
        let settings = &self.shared.settings;
        let mut buffer = [0; READ_BYTES];
        let is_within = self.decoder.is_within_request();
        let patience = if is_within {
            let began = *self.began.get_or_insert_with(Instant::now);
            let left = settings.request.checked_sub(began.elapsed());
            Some(left.filter(|left| !left.is_zero()).ok_or_else(|| self.unfinished())?)
        } else {
            self.began = None;
            settings.idle
        };
        self.stream.set_read_timeout(patience).map_err(|_| End::Closed)?;
        match self.stream.read(&mut buffer) {
            Ok(0) => Err(End::Closed),
            Ok(count) => {
                self.decoder.feed(&buffer[..count]);
                Ok(())
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(()),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                Err(if is_within { self.unfinished() } else { self.silent() })
            }
            Err(_) => Err(End::Closed),
        }
    }

    fn unfinished(&self) -> End {
        let most = self.shared.settings.request.as_millis();
        End::Error(format!(
            "ERR the request is not complete after {most} ms, so the connection is closed"
        ))
    }

    fn silent(&self) -> End {
        let most = self.shared.settings.idle.unwrap_or_default().as_millis();
        End::Error(format!("ERR no request came for {most} ms, so the connection is closed"))
    }

    /// Sends the last replies, and gives the client time to take them.
    fn linger(&mut self) -> io::Result<()> {
        self.flush()?;
        self.stream.linger()
    }
}
