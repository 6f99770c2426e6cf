//! Backups while clients write.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use mingle_model::random::Random;

use super::{Raw, Serving, backup, done, fill, is_same, restore, seed, text, until};

/// The number of accounts, and the sum of all.
const ACCOUNTS: usize = 5;
const SUM: i64 = 500;

/// Clients that write until they are stopped.
struct Writers {
    is_over: Arc<AtomicBool>,
    writes: Arc<AtomicU64>,
    threads: Vec<JoinHandle<()>>,
}

impl Writers {
    fn start(serving: &Serving, seed: u64) -> Self {
        let (is_over, writes) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let mut threads = Vec::new();
        for dc in 0..3 {
            for (part, write) in [pairs, transfers].into_iter().enumerate() {
                let (mut client, random) =
                    (serving.client(dc), Random::new(seed + (2 * dc + part) as u64));
                let (is_over, writes) = (is_over.clone(), writes.clone());
                threads.push(std::thread::spawn(move || {
                    let (mut random, mut number) = (random, 0);
                    while !is_over.load(Ordering::Acquire) {
                        number += 1;
                        write(&mut client, dc, number, &mut random);
                        writes.fetch_add(1, Ordering::AcqRel);
                    }
                }));
            }
        }
        Self { is_over, writes, threads }
    }

    /// Waits until so many more writes were acknowledged.
    fn more(&self, count: u64) {
        let until_then = self.writes.load(Ordering::Acquire) + count;
        until("clients write", || self.writes.load(Ordering::Acquire) >= until_then);
    }

    fn stop(self) {
        self.is_over.store(true, Ordering::Release);
        for thread in self.threads {
            thread.join().expect("its writes succeed");
        }
    }
}

/// Writes a number to one item, then to a second one, and to two in one transaction.
fn pairs(client: &mut Raw, dc: usize, number: u64, _random: &mut Random) {
    client.expect(&format!("SET first:{dc} {number} => +OK\nSET second:{dc} {number} => +OK"));
    client.expect("MULTI => +OK");
    client.expect(&format!("SET one:{dc} {number} => +QUEUED\nSET other:{dc} {number} => +QUEUED"));
    client.expect("EXEC => [+OK, +OK]");
}

/// Moves an amount between accounts in a strong transaction.
fn transfers(client: &mut Raw, _dc: usize, number: u64, random: &mut Random) {
    let (from, amount) = (random.below(ACCOUNTS), number % 7);
    let to = (from + 1 + random.below(ACCOUNTS - 1)) % ACCOUNTS;
    client.expect("MULTI => +OK");
    client.expect(&format!("DECRBY account:{from} {amount} => +QUEUED"));
    client.expect(&format!("INCRBY account:{to} {amount} => +QUEUED"));
    let reply = client.ask("EXEC");
    let is_ended = reply.starts_with('[') || reply.starts_with("-CONFLICT");
    assert!(is_ended, "{reply}");
}

fn number(client: &mut Raw, key: &str) -> i64 {
    let reply = client.ask(&format!("GET {key}"));
    reply.trim_matches('"').parse().unwrap_or(0)
}

/// Checks what holds at every snapshot; returns the numbers of the pairs.
fn is_snapshot(client: &mut Raw) -> Vec<i64> {
    let mut numbers = Vec::new();
    for dc in 0..3 {
        let [first, second, one, other] =
            ["first", "second", "one", "other"].map(|key| number(client, &format!("{key}:{dc}")));
        assert!(first == second || first == second + 1, "d{dc}: {first} before {second}");
        assert_eq!(one, other, "a transaction is whole");
        assert!(second == one || second == one + 1, "d{dc}: {second} before {one}");
        numbers.push(first);
    }
    let sum: i64 = (0..ACCOUNTS).map(|of| number(client, &format!("account:{of}"))).sum();
    assert_eq!(sum, SUM, "transfers are whole");
    numbers
}

#[test]
fn a_cluster_under_load_is_restored_as_it_was_at_one_vector() {
    let seed = seed();
    println!("seed {seed}");
    let shared = ["--strong-only", "account:*"];
    let serving = Serving::started(3, &shared);
    let mut client = serving.client(0);
    for account in 0..ACCOUNTS {
        let set = format!("SET account:{account} {}", SUM / ACCOUNTS as i64);
        until("a majority answers", || client.ask(&set) == "+OK");
    }
    let before = fill(&mut client);
    assert_eq!(client.ask("BARRIER"), "+OK");
    let token = serving.client(1).ask("SESSION TOKEN");
    until("d1 has all", || number(&mut serving.client(1), "five") == 6);
    let writers = Writers::start(&serving, seed);
    let files =
        [0, 1, 2].map(|number| serving.folder(9).with_file_name(format!("backup-{number}")));
    let mut least = Vec::new();
    for (number, file) in files.iter().enumerate() {
        writers.more(60);
        let dc = number % 2 + 1;
        // All that was acknowledged here is in the backup.
        let mut client = serving.client(dc);
        least = (0..3).map(|of| self::number(&mut client, &format!("first:{of}"))).collect();
        let report = backup(serving.address(dc), file);
        assert!(report.contains(&format!("backup of d{dc}, incarnation 0")), "{report}");
    }
    writers.more(60);
    writers.stop();

    let file = &files[2];
    let mut restored = Serving::of("c2", 3, &shared);
    for dc in 0..3 {
        restore(file, &restored, dc, &["--dcs", "3", "--cluster", "c2"]);
    }
    for dc in 0..3 {
        restored.start(dc, &[]);
    }
    restored.connected();
    let mut clients = [0, 1, 2].map(|dc| restored.client(dc));
    let numbers = is_snapshot(&mut clients[0]);
    assert!(
        numbers.iter().zip(&least).all(|(found, least)| found >= least),
        "{numbers:?} {least:?}"
    );
    for client in &mut clients {
        assert_eq!(is_snapshot(client), numbers, "all have the same");
        is_same(client, &before);
    }
    let refused = clients[1].ask(&format!("SESSION ATTACH {}", token.trim_matches('"')));
    assert!(refused.starts_with("-BADTOKEN the token is of cluster"), "{refused}");

    // All of them accept writes, causal and strong ones, and converge.
    let writers = Writers::start(&restored, seed + 100);
    writers.more(60);
    writers.stop();
    until("a strong command", || clients[2].ask("SETNX fresh 1") == ":1");
    for (dc, client) in clients.iter_mut().enumerate() {
        let seen = 6 + dc as i64;
        until("the earlier ones arrive", || number(client, "five") == seen);
        let (set, next) = (format!("HSET hash from{dc} {dc} => :1"), seen + 1);
        client.expect(&format!("{set}\nINCR five => :{next}\nBARRIER => +OK"));
    }
    until("they converge", || {
        let all: Vec<Vec<String>> = clients
            .iter_mut()
            .map(|client| {
                let lines = ["GET five", "HLEN hash", "GET fresh", "MGET first:0 first:1 first:2"];
                lines.map(|line| client.ask(line)).to_vec()
            })
            .collect();
        all.iter().all(|one| *one == all[0]) && all[0][0] == "\"9\"" && all[0][1] == ":5"
    });
    for client in &mut clients {
        is_snapshot(client);
    }
    // Another start reads the journal that was restored.
    for dc in 0..3 {
        restored.kill(dc);
    }
    for dc in 0..3 {
        restored.start(dc, &[]);
    }
    let mut client = restored.client(1);
    until("it serves again", || client.ask("GET five") == "\"9\"");
    is_snapshot(&mut client);

    // The first two backups are snapshots as well; one data center is enough for them.
    for (name, file) in [("e1", &files[0]), ("e2", &files[1])] {
        let folder = file.with_file_name(name);
        done(&["restore", "--file", text(file), "--dir", text(&folder)]);
        let center = super::single(&folder, "4");
        let mut client = super::client_of(&center);
        is_snapshot(&mut client);
        is_same(&mut client, &before);
        client.expect("INCR five => :7\nDEL long => :1\nSETNX fresh 1 => :1\nEXISTS long => :0");
    }
}
