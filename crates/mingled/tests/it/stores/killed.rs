//! Programs with stores in three data centers, each a process, which are killed and come back.

use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mingle::{Binding, Database, Error, Session};
use serde_json::{Value as Json, json};

use super::block_on;
use super::programs::{Center, RUNTIME, TEXT};

const FULL: i64 = 100_000;

/// The time after which a condition that must come is missed.
const PATIENCE: Duration = Duration::from_mins(2);

fn start(folder: &Path, dc: usize, peers: &[String], engine: &str) -> Center {
    let folder = folder.join(format!("d{dc}"));
    let (dc, peers) = (dc.to_string(), peers.join(","));
    Center::run(&folder, engine, &["serve", "--cluster", "5eed", "--dc", &dc, "--peers", &peers])
}

fn binding(centers: &[Option<Center>]) -> Binding {
    let named = centers.iter().flatten().enumerate();
    let servers: Vec<String> =
        named.map(|(dc, center)| format!("d{dc} = \"{}\"", center.address)).collect();
    let servers = servers.join(", ");
    let store =
        |name| format!("[stores.{name}]\nengine = \"mingled\"\nservers = {{ {servers} }}\n");
    let text = [RUNTIME.to_owned(), store("vault"), store("wall")].concat();
    Binding::parse(&text).expect("the binding is one")
}

async fn call(
    database: &Database,
    session: Session,
    name: &str,
    arguments: &[(&str, &str)],
) -> Result<Json, Error> {
    let arguments = database.arguments(name, arguments.iter().copied()).expect("they fit");
    let report = database.call(name, arguments, session).await?;
    Ok(database.result_json(name, &report))
}

/// Calls until the call succeeds.
async fn called(database: &Database, at: &str, name: &str, arguments: &[(&str, &str)]) -> Json {
    let begin = Instant::now();
    loop {
        match call(database, Session::at(at), name, arguments).await {
            Ok(found) => return found,
            Err(error) => assert!(begin.elapsed() < PATIENCE, "{name} at {at}: {error}"),
        }
    }
}

/// The lines that a client was told are written: with takes, and by themselves.
#[derive(Default)]
struct Told {
    takes: Vec<String>,
    notes: Vec<String>,
}

/// Takes from the box, and writes to the causal store alone, until it is told to end.
async fn client(
    database: Arc<Database>,
    at: String,
    number: usize,
    is_over: Arc<AtomicBool>,
) -> Told {
    let (mut told, mut n) = (Told::default(), 0);
    while !is_over.load(Ordering::Acquire) {
        n += 1;
        let line = format!("{at}.{number}.{n}");
        let (name, told) =
            if n % 2 == 0 { ("note", &mut told.notes) } else { ("take", &mut told.takes) };
        let of = if name == "note" { ("name", "notes") } else { ("box", "tea") };
        let done = call(&database, Session::at(&*at), name, &[of, ("line", &line)]).await;
        if done.is_ok() {
            told.push(line);
        } else {
            tokio::task::yield_now().await;
        }
    }
    told
}

/// While data centers are killed and come back, one after another, clients at each take from a box by strong
/// transactions over both stores, and write to the causal store alone.
#[test]
fn kills_of_data_centers_lose_and_double_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let reserve = || TcpListener::bind("127.0.0.1:0").expect("a free port");
    let reserved: Vec<TcpListener> = (0..3).map(|_| reserve()).collect();
    let address = |listener: &TcpListener| listener.local_addr().expect("it is bound").to_string();
    let peers: Vec<String> = reserved.iter().map(address).collect();
    drop(reserved);
    let start = |dc, engine: &str| start(folder.path(), dc, &peers, engine);
    let mut centers: Vec<Option<Center>> =
        (0..3).map(|dc| Some(start(dc, "127.0.0.1:0"))).collect();
    let binding = binding(&centers);
    block_on(async {
        let program = || mingle::compile(TEXT).expect("the program compiles");
        let begin = Instant::now();
        // They agree on the declarations once they are connected.
        let database = loop {
            match Database::open(program(), &binding, None).await {
                Ok(database) => break Arc::new(database),
                Err(error) => assert!(begin.elapsed() < PATIENCE, "{error}"),
            }
        };
        called(&database, "d0", "fill", &[("box", "tea"), ("value", &FULL.to_string())]).await;
        let is_over = Arc::new(AtomicBool::new(false));
        let clients: Vec<_> = (0..6)
            .map(|number| {
                let at = format!("d{}", number % 3);
                tokio::spawn(client(database.clone(), at, number, is_over.clone()))
            })
            .collect();
        for round in 0..3 {
            let dc = 2 - round;
            let killed = centers[dc].take().expect("it runs");
            let engine = killed.address.clone();
            killed.kill();
            // The other two go on.
            for other in (0..3).filter(|other| *other != dc) {
                let at = format!("d{other}");
                let line = format!("without d{dc} at d{other}");
                called(&database, &at, "note", &[("name", "notes"), ("line", &line)]).await;
                called(&database, &at, "left", &[("box", "tea")]).await;
            }
            let refused = call(&database, Session::at(format!("d{dc}")), "sum", &[("name", "tea")]);
            let refused = refused.await.expect_err("it is away").to_string();
            assert!(refused.contains(&format!("d{dc}")), "{refused}");
            centers[dc] = Some(start(dc, &engine));
            called(&database, &format!("d{dc}"), "left", &[("box", "tea")]).await;
        }
        is_over.store(true, Ordering::Release);
        let mut told = Told::default();
        for client in clients {
            let of = client.await.expect("no client panics");
            told.takes.extend(of.takes);
            told.notes.extend(of.notes);
        }
        assert!(told.takes.len() > 20 && told.notes.len() > 20, "{}", told.takes.len());
        check(&database, &told).await;
    });
}

/// Checks at each data center that all that was told is there, once, and that both stores agree.
async fn check(database: &Database, told: &Told) {
    for dc in ["d0", "d1", "d2"] {
        for (name, expected) in [("tea", &told.takes), ("notes", &told.notes)] {
            let begin = Instant::now();
            loop {
                let lines = called(database, dc, "lines", &[("name", name)]).await;
                let lines: Vec<String> = serde_json::from_value(lines).expect("a list of texts");
                let mut sorted = lines.clone();
                sorted.sort();
                sorted.dedup();
                assert_eq!(sorted.len(), lines.len(), "{dc}: a line is there twice");
                let missing = expected.iter().find(|line| !lines.contains(line));
                // What one data center has acknowledged arrives at the others.
                if missing.is_none() {
                    break;
                }
                assert!(begin.elapsed() < PATIENCE, "{dc} lost {missing:?}");
            }
        }
        let begin = Instant::now();
        loop {
            let left = called(database, dc, "left", &[("box", "tea")]).await;
            let sum = called(database, dc, "sum", &[("name", "tea")]).await;
            let both = left.as_i64().unwrap_or_default() + sum.as_i64().unwrap_or_default();
            if both == FULL {
                break;
            }
            assert!(begin.elapsed() < PATIENCE, "{dc}: {left} left, and {sum} noted");
        }
        let lines = called(database, dc, "lines", &[("name", "tea")]).await;
        let sum = called(database, dc, "sum", &[("name", "tea")]).await;
        assert_eq!(json!(lines.as_array().map(Vec::len)), sum, "{dc}");
    }
}
