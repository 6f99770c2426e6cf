//! The stream that hyper reads.

use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use super::chunks::Chunks;
use super::parse::{Framing, parse, wrong};
use super::{REFUSED, Refusal};
use crate::budget::Held;
use crate::limits::{DISCARDED_BYTES_MAX, DISCARDED_WITHIN, HEAD_BYTES_MAX, HEAD_INLINE_BYTES_MAX};
use crate::problem::{Code, Problem};

/// The number of bytes to read at once.
const READ_BYTES: usize = 16 << 10;

/// The element of the protocol that the next byte of a connection belongs to.
enum Stage {
    /// A head.
    Head,
    /// A body with this number of bytes left.
    Sized(u64),
    /// A body of chunks.
    Chunked(Chunks),
    /// Malformed chunks. hyper sees them too, and reads nothing after them.
    Broken,
    /// A refused request: no more heads or bodies are read.
    Refused,
}

/// A connection that shows hyper only correct heads, and the bodies that follow them.
pub(crate) struct Heads<S> {
    stream: S,
    stage: Stage,
    /// The bytes that were read; those from `start` on are not handed on yet.
    inbox: Vec<u8>,
    start: usize,
    /// The number of unread bytes that may be handed on.
    ready: usize,
    /// The number of bytes already examined without finding a complete head.
    looked: usize,
    refusal: Refusal,
    /// The share of the memory budget for a large head.
    held: Held,
    /// After a refusal: the timer and the number of bytes for which the rest of the request is
    /// still read.
    rest: Option<(Pin<Box<Sleep>>, usize)>,
}

impl<S> Heads<S> {
    pub(crate) fn new(stream: S, refusal: Refusal, held: Held) -> Self {
        Self {
            stream,
            stage: Stage::Head,
            inbox: Vec::new(),
            start: 0,
            ready: 0,
            looked: 0,
            refusal,
            held,
            rest: None,
        }
    }

    /// Examines the unread bytes and sets how many of them may be handed on.
    fn advance(&mut self) {
        let unread = &self.inbox[self.start..];
        match &mut self.stage {
            Stage::Refused => {}
            Stage::Broken => self.ready = unread.len(),
            Stage::Sized(left) => {
                self.ready = usize::try_from(*left).unwrap_or(usize::MAX).min(unread.len());
                *left -= self.ready as u64;
                if *left == 0 {
                    self.stage = Stage::Head;
                }
            }
            Stage::Chunked(chunks) => match chunks.read(unread) {
                Ok(count) => {
                    self.ready = count;
                    if chunks.has_ended() {
                        self.stage = Stage::Head;
                    }
                }
                Err(_) => {
                    self.ready = unread.len();
                    self.stage = Stage::Broken;
                }
            },
            Stage::Head => self.look_at_head(),
        }
    }

    fn look_at_head(&mut self) {
        let unread = &self.inbox[self.start..];
        // A large head is parsed once it is complete, not at each of its bytes.
        let from = self.looked.saturating_sub(3);
        self.looked = unread.len();
        let may_be_whole = unread.len() <= HEAD_INLINE_BYTES_MAX
            || has_empty_line(&unread[from.min(unread.len())..]);
        let parsed = if may_be_whole && !unread.is_empty() { parse(unread) } else { Ok(None) };
        match parsed {
            Ok(Some(head)) if head.len <= HEAD_BYTES_MAX => {
                self.ready = head.len;
                self.looked = 0;
                self.stage = match head.body {
                    Framing::Sized(0) => Stage::Head,
                    Framing::Sized(length) => Stage::Sized(length),
                    Framing::Chunked => Stage::Chunked(Chunks::default()),
                };
            }
            Ok(None) if unread.len() < HEAD_BYTES_MAX => {
                let count = unread.len();
                let large = if count > HEAD_INLINE_BYTES_MAX { count } else { 0 };
                if let Err(problem) = self.held.become_bytes(large) {
                    self.refuse(problem);
                }
            }
            Ok(_) => {
                let detail = format!("the head of a request has at most {HEAD_BYTES_MAX} bytes");
                self.refuse(Problem::new(Code::HeadTooLarge, detail).closing());
            }
            Err(problem) => self.refuse(problem),
        }
    }

    /// Replaces the unread bytes by the request that is answered with this problem.
    fn refuse(&mut self, problem: Problem) {
        self.refusal.set(problem);
        self.stage = Stage::Refused;
        self.inbox = REFUSED.to_vec();
        (self.start, self.ready) = (0, REFUSED.len());
        let _ = self.held.become_bytes(0);
    }

    /// Handles the end of input: the client sends nothing more.
    fn end(&mut self) {
        let unread = &self.inbox[self.start..];
        if matches!(self.stage, Stage::Head) && !unread.iter().all(u8::is_ascii_whitespace) {
            self.refuse(wrong("the head of the request broke off"));
        }
    }

    fn hand_on(&mut self, out: &mut ReadBuf<'_>) {
        let count = self.ready.min(out.remaining());
        out.put_slice(&self.inbox[self.start..self.start + count]);
        self.start += count;
        self.ready -= count;
        if self.start == self.inbox.len() {
            self.inbox.clear();
            self.start = 0;
            if self.inbox.capacity() > HEAD_INLINE_BYTES_MAX {
                self.inbox = Vec::new();
            }
            let _ = self.held.become_bytes(0);
        }
    }
}

/// True if `bytes` contain an empty line: a head can end only there.
fn has_empty_line(bytes: &[u8]) -> bool {
    bytes.windows(2).any(|pair| pair == b"\n\n") || bytes.windows(3).any(|ends| ends == b"\n\r\n")
}

impl<S: AsyncRead + Unpin> Heads<S> {
    /// Reads more bytes into the inbox; returns false at the end of input.
    fn poll_fill(&mut self, context: &mut Context<'_>) -> Poll<io::Result<bool>> {
        let mut bytes = [0; READ_BYTES];
        let mut read = ReadBuf::new(&mut bytes);
        ready!(Pin::new(&mut self.stream).poll_read(context, &mut read))?;
        self.inbox.drain(..self.start);
        self.start = 0;
        self.inbox.extend_from_slice(read.filled());
        Poll::Ready(Ok(!read.filled().is_empty()))
    }

    /// Reads and drops the rest of a refused request: if the connection were closed before that,
    /// the answer could be lost.
    fn poll_rest(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let (until, count) =
            self.rest.get_or_insert_with(|| (Box::pin(sleep(DISCARDED_WITHIN)), 0));
        loop {
            let mut bytes = [0; READ_BYTES];
            let mut read = ReadBuf::new(&mut bytes);
            match Pin::new(&mut self.stream).poll_read(context, &mut read) {
                Poll::Ready(Ok(()))
                    if !read.filled().is_empty() && *count < DISCARDED_BYTES_MAX =>
                {
                    *count += read.filled().len();
                }
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => return until.as_mut().poll(context),
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Heads<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        loop {
            if this.ready > 0 {
                this.hand_on(out);
                return Poll::Ready(Ok(()));
            }
            if matches!(this.stage, Stage::Refused) {
                return Poll::Ready(Ok(()));
            }
            // A long body is read directly into the caller's buffer, not through the inbox.
            if let Stage::Sized(left) = &mut this.stage
                && this.inbox.is_empty()
                && out.remaining() as u64 <= *left
            {
                let before = out.filled().len();
                ready!(Pin::new(&mut this.stream).poll_read(context, out))?;
                *left -= (out.filled().len() - before) as u64;
                if *left == 0 {
                    this.stage = Stage::Head;
                }
                return Poll::Ready(Ok(()));
            }
            if this.start < this.inbox.len() {
                this.advance();
                if this.ready > 0 {
                    continue;
                }
            }
            if !ready!(this.poll_fill(context))? {
                this.end();
                if this.ready == 0 {
                    return Poll::Ready(Ok(()));
                }
            }
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Heads<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_shutdown(context))?;
        if matches!(self.stage, Stage::Refused) {
            ready!(self.poll_rest(context));
        }
        Poll::Ready(Ok(()))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
