//! Threads that wait for sockets.
//!
//! A reader has at most [`PIECES`] pieces of bytes with the driver, and a writer at most one, so a slow
//! driver slows its peers, and a slow peer fills the bounded queue of its connection.
//!
//! For trials on one machine, what is read can be held back as if it came from far away.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use mingle_geo::DcId;

use super::driver::Event;
use super::wire::{Reader, Wire, Writer};
use crate::access::Tls;

/// The maximum length of a piece of bytes.
const PIECE_BYTES: usize = 256 << 10;

/// The maximum number of pieces of a reader that the driver has not handled.
const PIECES: usize = 2;

/// The maximum number of pieces that are held back on a connection.
const HELD_PIECES: usize = 4_096;

/// The maximum number of handshakes at a time.
const HANDSHAKES_MAX: usize = 16;

/// The maximum time of an attempt to connect.
const DIAL: Duration = Duration::from_secs(2);

/// The thread that accepts connections.
#[derive(Debug)]
pub struct Listener {
    address: SocketAddr,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Accepts connections until the result is dropped.
pub fn listen(
    listener: TcpListener,
    tls: Option<Arc<Tls>>,
    dc_count: u8,
    events: Sender<Event>,
) -> io::Result<Listener> {
    let address = listener.local_addr()?;
    let is_over = Arc::new(AtomicBool::new(false));
    let ends = is_over.clone();
    let shaking = Arc::new(AtomicUsize::new(0));
    let accept = move || {
        for stream in listener.incoming() {
            if ends.load(Ordering::Acquire) {
                return;
            }
            match stream {
                Ok(stream) => {
                    let is_sent = match &tls {
                        None => events.send(Event::Accepted(Wire::plain(stream))).is_ok(),
                        Some(tls) => accept_tls(stream, tls, dc_count, &shaking, &events),
                    };
                    if !is_sent {
                        return;
                    }
                }
                // Too many open files, for example: the peers try again.
                Err(_) => std::thread::sleep(Duration::from_millis(50)),
            }
        }
    };
    let thread = Some(Builder::new().name("listener".into()).spawn(accept)?);
    Ok(Listener { address, is_over, thread })
}

/// Waits for a handshake in a thread of its own, so that others are accepted meanwhile; returns false if the
/// driver has stopped.
fn accept_tls(
    stream: TcpStream,
    tls: &Arc<Tls>,
    dc_count: u8,
    shaking: &Arc<AtomicUsize>,
    events: &Sender<Event>,
) -> bool {
    let address = stream.peer_addr().map_or_else(|_| "?".into(), |it| it.to_string());
    if shaking.fetch_add(1, Ordering::AcqRel) >= HANDSHAKES_MAX {
        shaking.fetch_sub(1, Ordering::AcqRel);
        let why = format!("{address} is one too many, {HANDSHAKES_MAX} have no certificate yet");
        return events.send(Event::Refused(why)).is_ok();
    }
    let (tls, done, of) = (tls.clone(), events.clone(), shaking.clone());
    let wait = move || {
        let (configs, changed) = tls.configs();
        tell(changed, &done);
        let event = match Wire::accept(stream, configs, dc_count) {
            Ok(wire) => Event::Accepted(wire),
            Err(error) => Event::Refused(format!("{address} has no right certificate: {error}")),
        };
        of.fetch_sub(1, Ordering::AcqRel);
        // The driver may have stopped.
        let _ = done.send(event);
    };
    if let Err(error) = Builder::new().name("handshake".into()).spawn(wait) {
        shaking.fetch_sub(1, Ordering::AcqRel);
        return events.send(Event::Refused(format!("no thread for a handshake: {error}"))).is_ok();
    }
    true
}

/// Tells the driver of certificates that cannot be used.
fn tell(changed: Option<Result<(), String>>, events: &Sender<Event>) {
    if let Some(Err(why)) = changed {
        // The driver may have stopped.
        let _ = events.send(Event::Refused(why));
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        let mut address = self.address;
        if address.ip().is_unspecified() {
            address.set_ip(match address {
                SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
                SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
            });
        }
        // A connection wakes the thread. If there can be none, it ends with the process.
        if TcpStream::connect_timeout(&address, DIAL).is_ok()
            && let Some(thread) = self.thread.take()
        {
            let _ = thread.join();
        }
    }
}

/// Connects to a data center.
pub fn dial(dc: DcId, address: SocketAddr, tls: Option<Arc<Tls>>, events: Sender<Event>) {
    let attempt = events.clone();
    let dialing = Builder::new().name(format!("dial {dc}")).spawn(move || {
        let stream = TcpStream::connect_timeout(&address, DIAL);
        let wire = stream.and_then(|stream| match tls {
            None => Ok(Wire::plain(stream)),
            Some(tls) => {
                let (configs, changed) = tls.configs();
                tell(changed, &attempt);
                Wire::dial(stream, configs, dc)
            }
        });
        // The driver may have stopped.
        let _ = attempt.send(Event::Dialed(dc, wire));
    });
    if let Err(error) = dialing {
        let _ = events.send(Event::Dialed(dc, Err(error)));
    }
}

/// The threads of a connection.
#[derive(Debug)]
pub struct Socket {
    stream: TcpStream,
    /// Each item allows the reader one more piece.
    credits: SyncSender<()>,
    write: Sender<Vec<u8>>,
    /// True while the writer has bytes.
    pub is_writing: bool,
}

impl Socket {
    /// Starts the threads of a connection, whose events name it by its number. What arrives is held
    /// back for `delay`.
    pub fn start(
        wire: Wire,
        number: u64,
        delay: Duration,
        events: &Sender<Event>,
    ) -> io::Result<Self> {
        wire.tcp.set_nodelay(true)?;
        let (credits, allowed) = sync_channel(PIECES);
        for _ in 0..PIECES {
            let _ = credits.try_send(());
        }
        let (write, to_write) = channel();
        let (reading, writing) = wire.split()?;
        let (reads, writes) = (events.clone(), events.clone());
        let hand_over = move |event: Event| {
            let is_over = matches!(event, Event::Lost(..));
            let is_allowed = is_over || allowed.recv().is_ok();
            is_allowed && reads.send(event).is_ok() && !is_over
        };
        let reader = Builder::new().name("reader".into());
        if delay.is_zero() {
            reader.spawn(move || read_all(reading, number, hand_over))?;
        } else {
            let (hold, held) = sync_channel(HELD_PIECES);
            let hold = move |event| hold.send((Instant::now() + delay, event)).is_ok();
            reader.spawn(move || read_all(reading, number, hold))?;
            let holder = Builder::new().name("delay".into());
            holder.spawn(move || hand_over_later(&held, hand_over))?;
        }
        Builder::new()
            .name("writer".into())
            .spawn(move || write_all(writing, number, &to_write, &writes))?;
        Ok(Self { stream: wire.tcp, credits, write, is_writing: false })
    }

    /// Allows the reader one more piece.
    pub fn allow(&self) {
        // The reader may have ended.
        let _ = self.credits.try_send(());
    }

    /// Gives bytes to the writer, which has none.
    pub fn write(&mut self, bytes: Vec<u8>) {
        self.is_writing = true;
        let _ = self.write.send(bytes);
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // It wakes both threads. The other end may have closed it.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

/// Reads until the end of the connection, or until `hand_over` returns false.
fn read_all(mut stream: Reader, number: u64, hand_over: impl Fn(Event) -> bool) {
    let mut buffer = vec![0; PIECE_BYTES];
    loop {
        let event = match stream.read(&mut buffer) {
            Ok(0) => Event::Lost(number, "the other end closed it".into()),
            Ok(count) => Event::Bytes(number, buffer[..count].to_vec()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                Event::Bytes(number, Vec::new())
            }
            Err(error) => Event::Lost(number, error.to_string()),
        };
        let is_over = matches!(event, Event::Lost(..));
        if !hand_over(event) || is_over {
            return;
        }
    }
}

/// Hands over each event when its time has come.
fn hand_over_later(held: &Receiver<(Instant, Event)>, hand_over: impl Fn(Event) -> bool) {
    while let Ok((due, event)) = held.recv() {
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        if !hand_over(event) {
            return;
        }
    }
}

fn write_all(
    mut stream: Writer,
    number: u64,
    to_write: &Receiver<Vec<u8>>,
    events: &Sender<Event>,
) {
    while let Ok(bytes) = to_write.recv() {
        let written = stream.write_all(&bytes);
        let is_over = written.is_err();
        let event = match written {
            Ok(()) => Event::Written(number),
            Err(error) => Event::Lost(number, error.to_string()),
        };
        if events.send(event).is_err() || is_over {
            return;
        }
    }
}
