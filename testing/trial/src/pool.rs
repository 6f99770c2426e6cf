//! A pool of connections to one data center, as an application has it: a write that was acknowledged on
//! one connection must be found by each later read on any other. Stale reads are counted.
//!
//! Each thread writes numbers that rise to a key of its own, and reads the keys of all threads, each time
//! on a connection of the pool that it draws. Before a read it notes the last number that was
//! acknowledged; a read that finds less is stale.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use clap::Args;
use mingle_model::random::Random;

use crate::center::Cluster;
use crate::client::{Client, Reply};

/// The time after which a reply counts as missing.
const PATIENCE: Duration = Duration::from_secs(20);

/// The options of the trial.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// The program mingled.
    #[arg(long, value_name = "FILE")]
    mingled: PathBuf,
    /// Reads that are compared with what was acknowledged before.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    reads: u64,
    /// Connections of the pool.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u16).range(2..=256))]
    connections: u16,
    /// Threads that use the pool.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=64))]
    threads: u16,
    /// Time at which commits are acknowledged: memory, disk or uniform.
    #[arg(long, default_value = "disk")]
    durability: String,
    /// Seed of the draws.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// One request in this many writes.
const WRITES_ONE_IN: usize = 10;

/// Runs the trial.
///
/// # Errors
///
/// The number of stale reads, or a request that failed.
pub fn run(options: &Options) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|error| format!("no folder: {error}"))?;
    let more = ["--durability", &options.durability];
    let cluster = Cluster::start(&options.mingled, folder.path(), 1, &more)?;
    let address = cluster.address(0).ok_or("d0 does not run")?;
    let began = Instant::now();
    let counted = use_pool(address, options);
    // The process is stopped in any case.
    let stopped = cluster.stop();
    let Counted { reads, writes, stale } = counted?;
    println!(
        "{reads} reads on {} connections beside {writes} writes: {stale} stale, in {:.1} s; seed {}",
        options.connections,
        began.elapsed().as_secs_f64(),
        options.seed
    );
    stopped?;
    if stale > 0 { Err(format!("{stale} stale reads, expected none")) } else { Ok(()) }
}

/// The requests so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Counted {
    reads: u64,
    writes: u64,
    stale: u64,
}

/// The pool, and what was acknowledged to its threads.
struct Pool {
    connections: Vec<Mutex<Client>>,
    /// The last acknowledged number of each thread's key.
    acknowledged: Vec<AtomicI64>,
    reads: AtomicU64,
    writes: AtomicU64,
    stale: AtomicU64,
}

fn use_pool(address: SocketAddr, options: &Options) -> Result<Counted, String> {
    let connect = |_| Client::connect(address, PATIENCE).map(Mutex::new);
    let connections: Result<Vec<_>, _> = (0..options.connections).map(connect).collect();
    let pool = Pool {
        connections: connections.map_err(|error| format!("{address}: {error}"))?,
        acknowledged: (0..options.threads).map(|_| AtomicI64::new(0)).collect(),
        reads: AtomicU64::new(0),
        writes: AtomicU64::new(0),
        stale: AtomicU64::new(0),
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..usize::from(options.threads))
            .map(|own| {
                let pool = &pool;
                scope.spawn(move || pool.work(own, options))
            })
            .collect();
        let ended = threads.into_iter().map(std::thread::ScopedJoinHandle::join);
        let ended = ended.map(|ended| ended.unwrap_or_else(|_| Err("a thread stopped".into())));
        ended.collect::<Result<(), String>>()
    })
    .map(|()| Counted {
        reads: pool.reads.load(Ordering::Relaxed),
        writes: pool.writes.load(Ordering::Relaxed),
        stale: pool.stale.load(Ordering::Relaxed),
    })
}

impl Pool {
    /// Writes and reads until all threads together have read often enough.
    fn work(&self, own: usize, options: &Options) -> Result<(), String> {
        let mut random = Random::new(options.seed ^ (own as u64 + 1).wrapping_mul(0x9e37_79b9));
        let mut number = 0;
        while self.reads.load(Ordering::Relaxed) < options.reads {
            if random.one_in(WRITES_ONE_IN) {
                number += 1;
                let reply = self.ask(&mut random, &format!("SET pool:{own} {number}"))?;
                if reply != Reply::Simple("OK".into()) {
                    return Err(format!("a SET has the reply '{reply}', expected OK"));
                }
                self.acknowledged[own].store(number, Ordering::SeqCst);
                self.writes.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            let of = random.below(self.acknowledged.len());
            let least = self.acknowledged[of].load(Ordering::SeqCst);
            let reply = self.ask(&mut random, &format!("GET pool:{of}"))?;
            let found = reply.number().ok_or_else(|| format!("a GET has the reply '{reply}'"))?;
            self.reads.fetch_add(1, Ordering::Relaxed);
            if found < least {
                self.stale.fetch_add(1, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    /// Sends a request on one of the connections.
    fn ask(&self, random: &mut Random, line: &str) -> Result<Reply, String> {
        let connection = random.pick(&self.connections);
        let mut connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
        connection.ask(line).map_err(|error| format!("{line}: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    fn options(connections: u16) -> Options {
        let mingled = PathBuf::new();
        let durability = "disk".to_owned();
        Options { mingled, reads: 200, connections, threads: 3, durability, seed: 1 }
    }

    /// Acknowledges each write, and finds in each read what this connection wrote last.
    fn serve(stream: TcpStream) {
        let mut out = stream.try_clone().expect("a second handle");
        let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
        let mut written = std::collections::BTreeMap::new();
        while let Some(count) = lines.next() {
            let count: usize = count[1..].parse().expect("a number of words");
            let words: Vec<String> = (0..count).filter_map(|_| lines.nth(1)).collect();
            let reply = if words[0] == "SET" {
                written.insert(words[1].clone(), words[2].clone());
                "+OK\r\n".to_owned()
            } else {
                let found = written.get(&words[1]).cloned().unwrap_or_else(|| "0".into());
                format!("${}\r\n{found}\r\n", found.len())
            };
            if out.write_all(reply.as_bytes()).is_err() {
                return;
            }
        }
    }

    #[test]
    fn connections_that_do_not_see_each_other_are_found() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                std::thread::spawn(move || serve(stream));
            }
        });
        let counted = use_pool(address, &options(4)).expect("it answers");
        assert!(counted.reads >= 200 && counted.writes > 0 && counted.stale > 0, "{counted:?}");
        // With one connection each write is seen.
        let alone = use_pool(address, &options(1)).expect("it answers");
        assert_eq!(alone.stale, 0, "{alone:?}");
    }
}
