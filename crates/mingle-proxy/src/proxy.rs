//! What a test commands.

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

/// How many connections may wait to be taken.
const BACKLOG: u32 = 1024;

/// A proxy in front of one server. Dropping it closes all of its connections.
///
/// Its tasks run in the runtime that it was started in.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: tokio::sync::Mutex<Option<JoinHandle<()>>>,
    /// The listener once more, to take from it without a wait.
    waiting: Mutex<Option<std::net::TcpListener>>,
    /// Bound and never listening: the port stays ours while connections are refused.
    _reserved: TcpSocket,
}

/// What all connections look at.
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
    /// delays are drawn from `seed`, for each connection apart.
    ///
    /// # Errors
    ///
    /// If no port can be had.
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

    /// Where clients connect; it stays the same.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where the connections that are taken from now on lead.
    pub fn set_upstream(&self, upstream: SocketAddr) {
        self.shared.settings().upstream = upstream;
    }

    /// How long bytes take from now on in each direction. Those behind are not held up by those
    /// before them but to keep their order, so any amount can be under way at once (up to
    /// 64 MiB for each connection and direction).
    pub fn set_delays(&self, to_server: Delay, to_client: Delay) {
        let mut settings = self.shared.settings();
        (settings.to_server, settings.to_client) = (to_server, to_client);
    }

    /// As [`Proxy::set_delays`], one half of a round trip in each direction.
    pub fn set_round_trip(&self, round_trip: Delay) {
        self.set_delays(round_trip.half(), round_trip.half());
    }

    /// Which faults happen to bursts at random from now on.
    pub fn set_rates(&self, rates: Rates) {
        self.shared.settings().rates = rates;
    }

    /// Lets a fault happen to the next burst, of whichever client. Several that are planned happen to
    /// one burst each, in this order where they match the same.
    pub fn once(&self, fault: Fault) {
        self.once_matching(|_| true, fault);
    }

    /// As [`Proxy::once`], for the next burst that contains these bytes.
    pub fn once_containing(&self, bytes: &[u8], fault: Fault) {
        let bytes = bytes.to_vec();
        let contains = move |burst: &[u8]| {
            bytes.is_empty() || burst.windows(bytes.len()).any(|part| part == bytes)
        };
        self.once_matching(contains, fault);
    }

    /// As [`Proxy::once`], for the next burst that `matches`.
    pub fn once_matching(&self, matches: impl Fn(&[u8]) -> bool + Send + 'static, fault: Fault) {
        let planned = Planned { matches: Box::new(matches), fault };
        self.shared.settings().planned.push(planned);
    }

    /// How many of the faults that were planned have not happened yet.
    pub fn planned(&self) -> usize {
        self.shared.settings().planned.len()
    }

    /// Closes all connections that clients have made; what was under way in them is lost.
    pub fn cut(&self) {
        self.shared.cuts.send_modify(|cuts| *cuts += 1);
        // A client is connected before we have taken it.
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

    /// For so long from now nothing is passed on, in any connection; new ones are taken.
    pub fn hang(&self, time: Duration) {
        let mut settings = self.shared.settings();
        settings.hung_until = settings.hung_until.max(Instant::now() + time);
    }

    /// Refuses new connections from now on, as if nobody listened; those that are open stay.
    pub async fn down(&self) {
        let mut accepting = self.accepting.lock().await;
        *self.waiting() = None;
        if let Some(task) = accepting.take() {
            task.abort();
            // It ends with an error, that it was aborted, and takes the listener with it.
            let _ = task.await;
        }
    }

    /// Takes connections again.
    ///
    /// # Errors
    ///
    /// If the system does not let us listen.
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

    /// What happened so far.
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

/// A socket that shares its address with others that do not listen.
fn bind(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    Ok(socket)
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        let Ok((client, _)) = listener.accept().await else {
            // There may be no descriptor left for a moment.
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

    /// The generator of one direction of a connection: what others do does not change what it
    /// gives.
    pub fn random(&self, stream: u64) -> Random {
        Random::new(mix(self.seed) ^ mix(stream))
    }

    /// The delays to the server and to the client.
    pub fn delays(&self) -> (Delay, Delay) {
        let settings = self.settings();
        (settings.to_server, settings.to_client)
    }

    /// Until when all connections hang.
    pub fn hung_until(&self) -> Instant {
        self.settings().hung_until
    }

    /// What happens to a burst: what is planned for it, or else what chance says.
    pub fn fault(&self, burst: &[u8], random: &mut Random) -> Option<Fault> {
        let mut settings = self.settings();
        // Drawn in either case, so that a plan does not change what happens to later bursts.
        let drawn = settings.rates.sample(random);
        let planned = settings.planned.iter().position(|planned| (planned.matches)(burst));
        planned.map(|index| settings.planned.remove(index).fault).or(drawn)
    }
}
