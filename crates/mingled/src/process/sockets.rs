//! Threads that wait for sockets.
//!
//! A reader has at most [`PIECES`] pieces of bytes with the driver, and a writer at most one, so a slow
//! driver slows its peers, and a slow peer fills the bounded queue of its connection.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use mingle_geo::DcId;

use super::driver::Event;

/// The maximum length of a piece of bytes.
const PIECE_BYTES: usize = 256 << 10;

/// The maximum number of pieces of a reader that the driver has not handled.
const PIECES: usize = 2;

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
pub fn listen(listener: TcpListener, events: Sender<Event>) -> io::Result<Listener> {
    let address = listener.local_addr()?;
    let is_over = Arc::new(AtomicBool::new(false));
    let ends = is_over.clone();
    let accept = move || {
        for stream in listener.incoming() {
            if ends.load(Ordering::Acquire) {
                return;
            }
            match stream {
                Ok(stream) => {
                    if events.send(Event::Accepted(stream)).is_err() {
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
pub fn dial(dc: DcId, address: SocketAddr, events: Sender<Event>) {
    let attempt = events.clone();
    let dialing = Builder::new().name(format!("dial {dc}")).spawn(move || {
        // The driver may have stopped.
        let _ = attempt.send(Event::Dialed(dc, TcpStream::connect_timeout(&address, DIAL)));
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
    /// Starts the threads of a connection, whose events name it by its number.
    pub fn start(stream: TcpStream, number: u64, events: &Sender<Event>) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        let (credits, allowed) = sync_channel(PIECES);
        for _ in 0..PIECES {
            let _ = credits.try_send(());
        }
        let (write, to_write) = channel();
        let (reading, writing) = (stream.try_clone()?, stream.try_clone()?);
        let (reads, writes) = (events.clone(), events.clone());
        Builder::new()
            .name("reader".into())
            .spawn(move || read_all(reading, number, &allowed, &reads))?;
        Builder::new()
            .name("writer".into())
            .spawn(move || write_all(writing, number, &to_write, &writes))?;
        Ok(Self { stream, credits, write, is_writing: false })
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

fn read_all(mut stream: TcpStream, number: u64, allowed: &Receiver<()>, events: &Sender<Event>) {
    let mut buffer = vec![0; PIECE_BYTES];
    while allowed.recv().is_ok() {
        let event = match stream.read(&mut buffer) {
            Ok(0) => Event::Lost(number, "the other end closed it".into()),
            Ok(count) => Event::Bytes(number, buffer[..count].to_vec()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                Event::Bytes(number, Vec::new())
            }
            Err(error) => Event::Lost(number, error.to_string()),
        };
        let is_over = matches!(event, Event::Lost(..));
        if events.send(event).is_err() || is_over {
            return;
        }
    }
}

fn write_all(
    mut stream: TcpStream,
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
