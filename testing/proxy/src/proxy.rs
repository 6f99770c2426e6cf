//! The commands for tests.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mingle_model::random::{Random, mix};
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::delay::Delay;
use crate::fault::{Counts, Fault, Planned, Rates};
use crate::link;

/// The maximum number of connections that wait to be accepted.
const BACKLOG: u32 = 1024;

/// A proxy in front of one server. Dropping it closes all of its connections.
///
/// Its tasks run in the runtime that it was started in.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: tokio::sync::Mutex<Option<JoinHandle<()>>>,
    /// A second handle of the listener, to accept from it without waiting.
    waiting: Mutex<Option<std::net::TcpListener>>,
    /// Bound but never listening: it keeps the port reserved while connections are refused.
    _reserved: TcpSocket,
}

/// The state shared by all connections.
#[derive(Debug)]
pub(crate) struct Shared {
    seed: u64,
    settings: Mutex<Settings>,
    counts: Mutex<Counts>,
    /// Changes when all connections are to be cut.
    cuts: watch::Sender<u64>,
}

#[derive(Debug)]
struct Settings {
    upstream: SocketAddr,
    to_server: Delay,
    to_client: Delay,
    rates: Rates,
    planned: Vec<Planned>,
    hung_until: Instant,
}

impl Proxy {
    /// Listens at a free port of loopback, and passes connections on to `upstream`. Faults and
    /// delays are drawn from `seed`, separately for each connection.
    ///
    /// # Errors
    ///
    /// If no port is available.
    pub async fn start(upstream: SocketAddr, seed: u64) -> io::Result<Self> {
        let reserved = bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
        let address = reserved.local_addr()?;
        let settings = Settings {
            upstream,
            to_server: Delay::default(),
            to_client: Delay::default(),
            rates: Rates::default(),
            planned: Vec::new(),
            hung_until: Instant::now(),
        };
        let shared = Arc::new(Shared {
            seed,
            settings: Mutex::new(settings),
            counts: Mutex::default(),
            cuts: watch::Sender::new(0),
        });
        let accepting = tokio::sync::Mutex::new(None);
        let waiting = Mutex::new(None);
        let proxy = Self { address, shared, accepting, waiting, _reserved: reserved };
        proxy.up().await?;
        Ok(proxy)
    }

    /// Returns the address for clients; it stays the same.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sets the server for connections that are accepted from now on.
    pub fn set_upstream(&self, upstream: SocketAddr) {
        self.shared.settings().upstream = upstream;
    }

    /// Sets the delays of bytes in each direction from now on. Later bytes wait for earlier ones
    /// only to keep their order, so any amount can be under way at once (up to 64 MiB for each
    /// connection and direction).
    pub fn set_delays(&self, to_server: Delay, to_client: Delay) {
        let mut settings = self.shared.settings();
        (settings.to_server, settings.to_client) = (to_server, to_client);
    }

    /// Sets delays as [`Proxy::set_delays`] does: half of the round trip in each direction.
    pub fn set_round_trip(&self, round_trip: Delay) {
        self.set_delays(round_trip.half(), round_trip.half());
    }

    /// Sets the probabilities of random faults from now on.
    pub fn set_rates(&self, rates: Rates) {
        self.shared.settings().rates = rates;
    }

    /// Plans a fault for the next burst of any client. Each planned fault affects one burst; faults
    /// that match the same bursts occur in the order of their planning.
    pub fn once(&self, fault: Fault) {
        self.once_matching(|_| true, fault);
    }

    /// Plans a fault as [`Proxy::once`] does, for the next burst that contains these bytes.
    pub fn once_containing(&self, bytes: &[u8], fault: Fault) {
        let bytes = bytes.to_vec();
        let contains = move |burst: &[u8]| {
            bytes.is_empty() || burst.windows(bytes.len()).any(|part| part == bytes)
        };
        self.once_matching(contains, fault);
    }

    /// Plans a fault as [`Proxy::once`] does, for the next burst that `matches`.
    pub fn once_matching(&self, matches: impl Fn(&[u8]) -> bool + Send + 'static, fault: Fault) {
        let planned = Planned { matches: Box::new(matches), fault };
        self.shared.settings().planned.push(planned);
    }

    /// Returns the number of planned faults that have not occurred yet.
    pub fn planned(&self) -> usize {
        self.shared.settings().planned.len()
    }

    /// Closes all connections that clients have made; bytes under way in them are lost.
    pub fn cut(&self) {
        self.shared.cuts.send_modify(|cuts| *cuts += 1);
        // A client is connected before the proxy has accepted it.
        let waiting = self.waiting();
        while let Some(Ok(_)) = waiting.as_ref().map(std::net::TcpListener::accept) {
            self.shared.count(|counts| {
                counts.connections += 1;
                counts.connections_cut += 1;
            });
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Option<std::net::TcpListener>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes nothing on in any connection for this time; new connections are accepted.
    pub fn hang(&self, time: Duration) {
        let mut settings = self.shared.settings();
        settings.hung_until = settings.hung_until.max(Instant::now() + time);
    }

    /// Refuses new connections from now on, as if no process listened; open ones stay.
    pub async fn down(&self) {
        let mut accepting = self.accepting.lock().await;
        *self.waiting() = None;
        if let Some(task) = accepting.take() {
            task.abort();
            // The task ends with the error that it was aborted, and drops the listener.
            let _ = task.await;
        }
    }

    /// Accepts connections again.
    ///
    /// # Errors
    ///
    /// If the system does not allow listening.
    pub async fn up(&self) -> io::Result<()> {
        let mut accepting = self.accepting.lock().await;
        if accepting.is_none() {
            let listener = bind(self.address)?.listen(BACKLOG)?.into_std()?;
            *self.waiting() = Some(listener.try_clone()?);
            let listener = TcpListener::from_std(listener)?;
            *accepting = Some(tokio::spawn(accept(listener, self.shared.clone())));
        }
        Ok(())
    }

    /// Returns the counted events.
    pub fn counts(&self) -> Counts {
        *self.shared.counts()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        if let Some(task) = self.accepting.get_mut() {
            task.abort();
        }
        *self.waiting() = None;
        self.cut();
    }
}

/// Creates a socket that shares its address with others that do not listen.
fn bind(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    Ok(socket)
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        let Ok((client, _)) = listener.accept().await else {
            // The process may briefly have no free descriptor.
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        let number = shared.count(|counts| {
            counts.connections += 1;
            counts.connections
        });
        let cuts = shared.cuts.subscribe();
        tokio::spawn(link::serve(shared.clone(), client, number, cuts));
    }
}

impl Shared {
    fn settings(&self) -> MutexGuard<'_, Settings> {
        self.settings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the counts.
    pub fn count<T>(&self, change: impl FnOnce(&mut Counts) -> T) -> T {
        change(&mut self.counts())
    }

    pub fn upstream(&self) -> SocketAddr {
        self.settings().upstream
    }

    /// Returns the generator of one direction of a connection: other connections do not change its
    /// values.
    pub fn random(&self, stream: u64) -> Random {
        Random::new(mix(self.seed) ^ mix(stream))
    }

    /// Returns the delays to the server and to the client.
    pub fn delays(&self) -> (Delay, Delay) {
        let settings = self.settings();
        (settings.to_server, settings.to_client)
    }

    /// Returns the time until which all connections hang.
    pub fn hung_until(&self) -> Instant {
        self.settings().hung_until
    }

    /// Returns the fault of a burst: a planned one that matches, or else a random one.
    pub fn fault(&self, burst: &[u8], random: &mut Random) -> Option<Fault> {
        let mut settings = self.settings();
        // Drawn in either case, so that a plan does not change the faults of later bursts.
        let drawn = settings.rates.sample(random);
        let planned = settings.planned.iter().position(|planned| (planned.matches)(burst));
        planned.map(|index| settings.planned.remove(index).fault).or(drawn)
    }
}
