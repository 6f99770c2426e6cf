//! One connection through the proxy.
//!
//! In each direction a reader stamps the bytes that it reads with the time when they are due, and a
//! writer waits for that time. All four run in one task. It ends, and both sockets close, when the
//! first of them fails or decides to close.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mingle_model::random::Random;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::{Instant, sleep_until, timeout};

use crate::fault::Fault;
use crate::proxy::Shared;

/// The size of one read from a socket, in bytes.
const CHUNK: usize = 64 * 1024;

/// The maximum length of a burst, in bytes.
const BURST_MAX: usize = 1024 * 1024;

/// The maximum number of chunks or bursts under way in one direction: 64 MiB of either.
const CHUNKS_UNDER_WAY: usize = 1024;
const BURSTS_UNDER_WAY: usize = 64;

/// The maximum wait for an answer that is to be lost.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// Bytes under way.
struct Parcel {
    due: Instant,
    bytes: Vec<u8>,
    then: Then,
}

/// The action after bytes have been passed on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Then {
    GoOn,
    Close,
    LoseAnswer,
}

/// The state shared by the four parts of a link.
struct Link {
    shared: Arc<Shared>,
    hung_until: Mutex<Instant>,
    is_answer_lost: AtomicBool,
    lost: Notify,
}

impl Link {
    /// Returns the time from which this link may pass on bytes.
    fn hung_until(&self) -> Instant {
        let own = *self.hung_until.lock().unwrap_or_else(PoisonError::into_inner);
        own.max(self.shared.hung_until())
    }

    /// Waits until no hang is active; a new hang may begin during the wait.
    async fn awake(&self) {
        loop {
            let until = self.hung_until();
            if until <= Instant::now() {
                return;
            }
            sleep_until(until).await;
        }
    }
}

/// Passes on bytes of a client and the server until a socket fails, both have ended, a fault closes
/// the link, or all connections are cut.
pub(crate) async fn serve(
    shared: Arc<Shared>,
    client: TcpStream,
    number: u64,
    mut cuts: watch::Receiver<u64>,
) {
    let through = async {
        let Ok(server) = TcpStream::connect(shared.upstream()).await else {
            shared.count(|counts| counts.unreachable += 1);
            return;
        };
        // If the option cannot be set, the socket is treated as closed.
        if client.set_nodelay(true).and_then(|()| server.set_nodelay(true)).is_ok() {
            // Both sockets close now, regardless of the cause.
            let _ = pass(&shared, client, server, number).await;
        }
    };
    tokio::select! {
        () = through => {}
        // This also happens when the proxy itself is dropped.
        _ = cuts.changed() => shared.count(|counts| counts.connections_cut += 1),
    }
}

async fn pass(
    shared: &Arc<Shared>,
    client: TcpStream,
    server: TcpStream,
    number: u64,
) -> io::Result<()> {
    let link = Link {
        shared: shared.clone(),
        hung_until: Mutex::new(Instant::now()),
        is_answer_lost: AtomicBool::new(false),
        lost: Notify::new(),
    };
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let (requests, requests_due) = mpsc::channel(BURSTS_UNDER_WAY);
    let (answers, answers_due) = mpsc::channel(CHUNKS_UNDER_WAY);
    tokio::try_join!(
        read_client(&link, from_client, requests, shared.random(2 * number)),
        write(&link, to_server, requests_due),
        read_server(&link, from_server, answers, shared.random(2 * number + 1)),
        write(&link, to_client, answers_due),
    )?;
    Ok(())
}

/// Reads the available bytes, up to `max`; returns none if the other side has ended.
async fn read(from: &OwnedReadHalf, max: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    loop {
        if bytes.is_empty() {
            from.readable().await?;
        }
        let length = bytes.len();
        bytes.resize(length + CHUNK, 0);
        let read = from.try_read(&mut bytes[length..]);
        bytes.truncate(length + *read.as_ref().unwrap_or(&0));
        match read {
            // The bytes before the stream's end are a burst; the next read finds the end again.
            Ok(0) => return Ok(bytes),
            Ok(_) if bytes.len() + CHUNK > max => return Ok(bytes),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if !bytes.is_empty() {
                    return Ok(bytes);
                }
            }
            Err(error) => return Err(error),
        }
    }
}

async fn read_client(
    link: &Link,
    from: OwnedReadHalf,
    requests: mpsc::Sender<Parcel>,
    mut random: Random,
) -> io::Result<()> {
    let mut last = Instant::now();
    loop {
        link.awake().await;
        let mut bytes = read(&from, BURST_MAX).await?;
        if bytes.is_empty() {
            return Ok(());
        }
        let delay = link.shared.delays().0.sample(&mut random);
        last = last.max(Instant::now() + delay);
        link.shared.count(|counts| counts.bursts += 1);
        let then = match link.shared.fault(&bytes, &mut random) {
            None => Then::GoOn,
            Some(Fault::CutRequest) => {
                bytes.truncate(proper_prefix(bytes.len(), &mut random));
                Then::Close
            }
            Some(Fault::LoseAnswer) => Then::LoseAnswer,
            Some(Fault::Hang(time)) => {
                link.shared.count(|counts| counts.hangs += 1);
                let mut until = link.hung_until.lock().unwrap_or_else(PoisonError::into_inner);
                *until = (*until).max(Instant::now() + time);
                Then::GoOn
            }
        };
        if requests.send(Parcel { due: last, bytes, then }).await.is_err() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        if then != Then::GoOn {
            // The writer closes the link; bytes that the client sends meanwhile are lost.
            return std::future::pending().await;
        }
    }
}

/// Returns a random prefix length: less than the whole, and not 0 unless the length is 1.
fn proper_prefix(length: usize, random: &mut Random) -> usize {
    if length < 2 { 0 } else { 1 + random.below(length - 1) }
}

async fn read_server(
    link: &Link,
    from: OwnedReadHalf,
    answers: mpsc::Sender<Parcel>,
    mut random: Random,
) -> io::Result<()> {
    let mut last = Instant::now();
    loop {
        link.awake().await;
        let read = read(&from, CHUNK).await;
        if link.is_answer_lost.load(Ordering::Relaxed) {
            if matches!(&read, Ok(bytes) if !bytes.is_empty()) {
                // The writer closes the link; later bytes of the server are ignored.
                link.lost.notify_one();
                return std::future::pending().await;
            }
            // The server has ended its stream, and will not answer any more.
            link.shared.count(|counts| counts.never_answered += 1);
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        let bytes = read?;
        if bytes.is_empty() {
            return Ok(());
        }
        let delay = link.shared.delays().1.sample(&mut random);
        last = last.max(Instant::now() + delay);
        if answers.send(Parcel { due: last, bytes, then: Then::GoOn }).await.is_err() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
    }
}

async fn write(
    link: &Link,
    mut to: OwnedWriteHalf,
    mut parcels: mpsc::Receiver<Parcel>,
) -> io::Result<()> {
    while let Some(Parcel { due, bytes, then }) = parcels.recv().await {
        if due > Instant::now() {
            sleep_until(due).await;
        }
        link.awake().await;
        if then == Then::LoseAnswer {
            // This is set before the server can answer.
            link.is_answer_lost.store(true, Ordering::Relaxed);
        }
        to.write_all(&bytes).await?;
        match then {
            Then::GoOn => {}
            Then::Close => {
                link.shared.count(|counts| counts.requests_cut += 1);
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
            Then::LoseAnswer => {
                let answered = timeout(ANSWER_WITHIN, link.lost.notified()).await.is_ok();
                link.shared.count(|counts| {
                    let kind = if answered {
                        &mut counts.answers_lost
                    } else {
                        &mut counts.never_answered
                    };
                    *kind += 1;
                });
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
        }
    }
    to.shutdown().await
}
