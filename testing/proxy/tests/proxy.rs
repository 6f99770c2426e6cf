//! Tests of the client's and the server's view through a proxy with faults.

use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use mingle_proxy::{Delay, Fault, Proxy, Rates};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// The maximum wait in these tests, even on a slow machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// A server that answers each line with `NAME: LINE`, and keeps all bytes that it has read.
#[derive(Clone)]
struct LineServer {
    address: SocketAddr,
    read: Arc<Mutex<String>>,
}

impl LineServer {
    async fn start(name: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Self { address: listener.local_addr().unwrap(), read: Arc::default() };
        let read = server.read.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, name, read.clone()));
            }
        });
        server
    }

    fn has_read(&self) -> String {
        self.read.lock().unwrap().clone()
    }
}

async fn serve(stream: TcpStream, name: &str, seen: Arc<Mutex<String>>) -> io::Result<()> {
    let (from, mut to) = stream.into_split();
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    while from.read_until(b'\n', &mut line).await? > 0 {
        let text = String::from_utf8(std::mem::take(&mut line)).unwrap();
        seen.lock().unwrap().push_str(&text);
        if text == "leave\n" {
            return Ok(());
        }
        // A line without its end is no request.
        if text.ends_with('\n') && !text.starts_with("silence") {
            to.write_all(format!("{name}: {text}").as_bytes()).await?;
        }
    }
    Ok(())
}

struct Client {
    stream: BufReader<TcpStream>,
}

impl Client {
    async fn connect(proxy: &Proxy) -> io::Result<Self> {
        Ok(Self { stream: BufReader::new(TcpStream::connect(proxy.address()).await?) })
    }

    async fn send(&mut self, text: &str) {
        self.stream.get_mut().write_all(text.as_bytes()).await.unwrap();
    }

    /// Receives one line; `None` if the connection has ended, in order or not.
    async fn receive(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = tokio::time::timeout(PATIENCE, self.stream.read_line(&mut line));
        match read.await.expect("neither an answer nor an end") {
            Ok(1..) => Some(line),
            Ok(0) | Err(_) => None,
        }
    }

    async fn ask(&mut self, text: &str) -> Option<String> {
        self.send(text).await;
        self.receive().await
    }
}

async fn until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "in vain: {what}");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn without_faults_all_is_passed_on() {
    let server = LineServer::start("a").await;
    let proxy = Proxy::start(server.address, 1).await.unwrap();
    for _ in 0..3 {
        let mut client = Client::connect(&proxy).await.unwrap();
        for line in ["one\n", "two\n"] {
            assert_eq!(client.ask(line).await, Some(format!("a: {line}")));
        }
    }
    let counts = proxy.counts();
    assert_eq!((counts.connections, counts.bursts), (3, 6));
    assert_eq!((counts.requests_cut, counts.answers_lost, counts.hangs), (0, 0, 0));
}

#[tokio::test]
async fn much_goes_through_unchanged_and_each_side_may_end_first() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxy = Proxy::start(listener.local_addr().unwrap(), 1).await.unwrap();
    let echo = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let (mut from, mut to) = stream.into_split();
        tokio::io::copy(&mut from, &mut to).await.unwrap()
    });
    let sent: Vec<u8> =
        (0..20_000_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let (mut from, mut to) = TcpStream::connect(proxy.address()).await.unwrap().into_split();
    let expected = sent.clone();
    let sender = tokio::spawn(async move {
        to.write_all(&sent).await.unwrap();
        to.shutdown().await.unwrap();
    });
    let mut received = Vec::new();
    tokio::time::timeout(PATIENCE, from.read_to_end(&mut received)).await.unwrap().unwrap();
    assert!(received == expected, "{} bytes of {}", received.len(), expected.len());
    sender.await.unwrap();
    assert_eq!(echo.await.unwrap(), expected.len() as u64);
}

#[tokio::test]
async fn a_delay_is_one_of_time_and_not_of_throughput() {
    const LINES: usize = 50;
    let server = LineServer::start("a").await;
    let proxy = Proxy::start(server.address, 1).await.unwrap();
    let round_trip = Duration::from_millis(200);
    proxy.set_round_trip(Delay::new(round_trip, Duration::from_millis(20)));
    let mut client = Client::connect(&proxy).await.unwrap();
    let least = round_trip.checked_sub(Duration::from_millis(20)).unwrap();
    let begun = Instant::now();
    assert!(client.ask("one\n").await.is_some());
    assert!(begun.elapsed() >= least, "{:?}", begun.elapsed());

    let begun = Instant::now();
    for line in 0..LINES {
        client.send(&format!("{line}\n")).await;
        // Each line is a separate burst.
        until("the line is read", || proxy.counts().bursts == line as u64 + 2).await;
    }
    for line in 0..LINES {
        assert_eq!(client.receive().await, Some(format!("a: {line}\n")), "the order is kept");
    }
    assert!(begun.elapsed() >= least, "{:?}", begun.elapsed());
    // One after the other, they would take fifty round trips.
    assert!(begun.elapsed() < round_trip * LINES as u32 / 2, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn each_direction_has_its_delay() {
    let server = LineServer::start("a").await;
    let proxy = Proxy::start(server.address, 1).await.unwrap();
    let slow = Delay::new(Duration::from_millis(100), Duration::ZERO);
    for (to_server, to_client) in [(slow, Delay::default()), (Delay::default(), slow)] {
        proxy.set_delays(to_server, to_client);
        let mut is_read_early = false;
        // On a slow machine any round can be slow, but not every one.
        for _ in 0..20 {
            let mut client = Client::connect(&proxy).await.unwrap();
            let (begun, before) = (Instant::now(), server.has_read().len());
            client.send("one\n").await;
            until("the server has read", || server.has_read().len() > before).await;
            is_read_early |= begun.elapsed() < slow.mean;
            assert!(client.receive().await.is_some());
            assert!(begun.elapsed() >= slow.mean);
            if is_read_early {
                break;
            }
        }
        assert_eq!(is_read_early, to_client == slow);
    }
}

#[tokio::test]
async fn connections_are_refused_and_cut() {
    let server = LineServer::start("a").await;
    let proxy = Proxy::start(server.address, 1).await.unwrap();
    let mut open = Client::connect(&proxy).await.unwrap();
    assert!(open.ask("one\n").await.is_some());
    proxy.down().await;
    proxy.down().await;
    let refused = TcpStream::connect(proxy.address()).await.unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
    assert!(open.ask("two\n").await.is_some(), "those that are open stay");
    proxy.cut();
    assert_eq!(open.receive().await, None);
    assert_eq!(proxy.counts().connections_cut, 1);
    proxy.up().await.unwrap();
    proxy.up().await.unwrap();
    let mut again = Client::connect(&proxy).await.unwrap();
    assert!(again.ask("three\n").await.is_some());
    let address = proxy.address();
    drop(proxy);
    assert_eq!(again.receive().await, None);
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn a_server_that_moves_is_followed() {
    let (first, second) = (LineServer::start("a").await, LineServer::start("b").await);
    let proxy = Proxy::start(first.address, 1).await.unwrap();
    let mut client = Client::connect(&proxy).await.unwrap();
    assert_eq!(client.ask("one\n").await.unwrap(), "a: one\n");
    proxy.set_upstream(second.address);
    let mut other = Client::connect(&proxy).await.unwrap();
    assert_eq!(other.ask("one\n").await.unwrap(), "b: one\n");
    assert_eq!(client.ask("two\n").await.unwrap(), "a: two\n");

    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    proxy.set_upstream(nobody);
    let mut third = Client::connect(&proxy).await.unwrap();
    assert_eq!(third.receive().await, None);
    assert_eq!(proxy.counts().unreachable, 1);
}

#[tokio::test]
async fn a_request_is_cut_in_the_middle() {
    let request = "a line of some length\n";
    let mut lengths = BTreeSet::new();
    for seed in 0..20 {
        let server = LineServer::start("a").await;
        let proxy = Proxy::start(server.address, seed).await.unwrap();
        proxy.once_containing(b"of some", Fault::CutRequest);
        let mut client = Client::connect(&proxy).await.unwrap();
        assert!(client.ask("another\n").await.is_some());
        assert_eq!(client.ask(request).await, None);
        assert_eq!((proxy.counts().requests_cut, proxy.planned()), (1, 0));
        until("the server has read", || server.has_read().len() > "another\n".len()).await;
        let read = server.has_read().split_off("another\n".len());
        assert!(request.starts_with(&read) && !read.is_empty() && read != request, "{read:?}");
        lengths.insert(read.len());
        // The fault occurs only once.
        assert!(Client::connect(&proxy).await.unwrap().ask(request).await.is_some());
    }
    assert!(lengths.len() > 5, "{lengths:?}");
}

#[tokio::test]
async fn an_answer_is_lost() {
    let server = LineServer::start("a").await;
    let proxy = Proxy::start(server.address, 1).await.unwrap();
    proxy.once_matching(|burst| burst.starts_with(b"commit"), Fault::LoseAnswer);
    proxy.set_round_trip(Delay::new(Duration::from_millis(20), Duration::ZERO));
    let mut client = Client::connect(&proxy).await.unwrap();
    assert!(client.ask("begin\n").await.is_some());
    assert_eq!(client.ask("commit\n").await, None);
    assert_eq!(server.has_read(), "begin\ncommit\n");
    assert_eq!((proxy.counts().answers_lost, proxy.counts().never_answered), (1, 0));

    proxy.once(Fault::LoseAnswer);
    let mut client = Client::connect(&proxy).await.unwrap();
    assert_eq!(client.ask("silence\n").await, None);
    assert_eq!((proxy.counts().answers_lost, proxy.counts().never_answered), (1, 1));

    proxy.once(Fault::LoseAnswer);
    let mut client = Client::connect(&proxy).await.unwrap();
    assert_eq!(client.ask("leave\n").await, None);
    assert_eq!((proxy.counts().answers_lost, proxy.counts().never_answered), (1, 2));
}

#[tokio::test]
async fn a_connection_hangs_and_goes_on() {
    let server = LineServer::start("a").await;
    let proxy = Proxy::start(server.address, 1).await.unwrap();
    let time = Duration::from_millis(300);
    let mut other = Client::connect(&proxy).await.unwrap();
    assert!(other.ask("other\n").await.is_some());
    proxy.once_containing(b"one", Fault::Hang(time));
    let mut client = Client::connect(&proxy).await.unwrap();
    let begun = Instant::now();
    client.send("one\n").await;
    until("it hangs", || proxy.counts().hangs == 1).await;
    // Other connections do not hang, unless a slow machine slept through the hang.
    assert!(other.ask("other\n").await.is_some());
    if begun.elapsed() < time {
        assert!(!server.has_read().contains("one"));
    }
    assert_eq!(client.receive().await.unwrap(), "a: one\n");
    assert!(begun.elapsed() >= time);

    let begun = Instant::now();
    proxy.hang(time);
    for client in [&mut other, &mut client] {
        assert!(client.ask("all\n").await.is_some());
        assert!(begun.elapsed() >= time);
    }
    let mut last = Client::connect(&proxy).await.unwrap();
    proxy.hang(PATIENCE * 10);
    last.send("never\n").await;
    proxy.cut();
    assert_eq!(last.receive().await, None, "what hangs can be cut");
}

/// Sends lines, each on a connection that lasts until it breaks. Returns which were answered.
async fn answered(seed: u64, rates: Rates) -> (Vec<bool>, mingle_proxy::Counts) {
    let server = LineServer::start("a").await;
    let proxy = Proxy::start(server.address, seed).await.unwrap();
    proxy.set_rates(rates);
    let mut client = None;
    let mut answers = Vec::new();
    for line in 0..200 {
        let mut open = match client.take() {
            Some(open) => open,
            None => Client::connect(&proxy).await.unwrap(),
        };
        let answer = open.ask(&format!("{line}\n")).await;
        answers.push(answer.is_some());
        client = answer.map(|_| open);
    }
    (answers, proxy.counts())
}

#[tokio::test]
async fn faults_at_random_are_those_of_the_seed() {
    let hang_for = Duration::from_millis(1);
    let rates = Rates { cut_request: 0.1, lose_answer: 0.1, hang: 0.1, hang_for };
    let (answers, counts) = answered(42, rates).await;
    assert_eq!(answered(42, rates).await, (answers.clone(), counts));
    assert_ne!(answered(43, rates).await.0, answers);
    assert_eq!(counts.bursts, 200);
    let lost = answers.iter().filter(|answered| !**answered).count() as u64;
    assert_eq!(lost, counts.requests_cut + counts.answers_lost);
    assert_eq!(counts.never_answered, 0);
    for count in [counts.requests_cut, counts.answers_lost, counts.hangs] {
        assert!((5..50).contains(&count), "{counts:?}");
    }
}
