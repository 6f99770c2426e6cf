//! Pipelines with one synchronisation point.
//!
//! The driver, tokio-postgres, sends a `Sync` after each statement. A server that meets an error skips what follows
//! up to the next `Sync`; so each statement behind one that failed is tried, fails too ("current transaction is
//! aborted"), and writes lines of its own to the server's log. One conflict in a commit of a hundred statements
//! would be two hundred lines.
//!
//! [`OneSync`] is therefore between the driver and the socket (above TLS) and edits the messages. A
//! pipeline is announced by a statement that is a comment, [`announcement`], and never reaches the
//! server. Of the requests behind it only the last keeps its `Sync`:
//!
//! ```text
//! driver  ──►  /* 3 */   BEGIN       Bind Execute Sync   COMMIT
//! server  ◄──            Bind Execute Bind Execute       Bind Execute Sync
//! server  ──►            C           C                   C Z              if all goes well
//! driver  ◄──  I Z       C Z         C Z                 C Z
//! server  ──►            C           E                   Z                if the second one fails
//! driver  ◄──  I Z       C Z         E Z                 E Z
//! ```
//!
//! The filter gives the driver the `ReadyForQuery` (Z) that it expects after each request, and an
//! error for each request that the server has skipped (25P02, the server's own code for this case).
//! A simple query, such as `BEGIN`, would be a synchronisation point of its own, so in a pipeline
//! it is sent as a prepared statement.
//!
//! After a failed pipeline the transaction stays open at the server, because the server has also
//! skipped its `COMMIT`: [`Lease::roll_back`](crate::pool::Lease::roll_back) ends it.
//!
//! Invariant: messages outside announced pipelines pass unchanged.

mod filter;
#[cfg(test)]
mod tests;

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, TlsStream};

pub use filter::announcement;
use filter::{Buffer, Filter};

/// The size of one read, in bytes.
const CHUNK: usize = 16 * 1024;

/// The number of bytes that may wait to be written before the driver has to wait.
const UNWRITTEN_MAX: usize = 1024 * 1024;

/// A stream to a server, with pipelines of one synchronisation point.
pub struct OneSync<S> {
    inner: S,
    filter: Filter,
    chunk: Box<[u8]>,
    /// Edited bytes for the server.
    unwritten: Buffer,
    /// Edited bytes for the driver.
    unread: Buffer,
}

impl<S> OneSync<S> {
    /// Creates the editor of a stream on which nothing was sent yet.
    pub fn new(inner: S) -> Self {
        let chunk = vec![0; CHUNK].into_boxed_slice();
        let (unwritten, unread) = (Buffer::default(), Buffer::default());
        Self { inner, filter: Filter::default(), chunk, unwritten, unread }
    }
}

impl<S: AsyncWrite + Unpin> OneSync<S> {
    fn poll_unwritten(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.unwritten.is_empty() {
            let written =
                ready!(Pin::new(&mut self.inner).poll_write(context, self.unwritten.bytes()))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.unwritten.consume(written);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for OneSync<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        while this.unread.is_empty() {
            let mut chunk = ReadBuf::new(&mut this.chunk);
            ready!(Pin::new(&mut this.inner).poll_read(context, &mut chunk))?;
            if chunk.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
            this.filter.receive(chunk.filled(), &mut this.unread);
        }
        let bytes = this.unread.bytes();
        let length = bytes.len().min(buffer.remaining());
        buffer.put_slice(&bytes[..length]);
        this.unread.consume(length);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for OneSync<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if this.unwritten.len() > UNWRITTEN_MAX {
            ready!(this.poll_unwritten(context))?;
        }
        this.filter.send(bytes, &mut this.unwritten, &mut this.unread);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_unwritten(context))?;
        Pin::new(&mut this.inner).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_unwritten(context))?;
        Pin::new(&mut this.inner).poll_shutdown(context)
    }
}

impl<S: TlsStream + Unpin> TlsStream for OneSync<S> {
    fn channel_binding(&self) -> ChannelBinding {
        self.inner.channel_binding()
    }
}
