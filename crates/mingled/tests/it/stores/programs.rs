//! Programs with stores in a data center that is a process of its own, and is killed.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use mingle::{Binding, Database, Error, Session};
use serde_json::{Value as Json, json};

use super::block_on;

/// A transfer between the stores, with a rule, and operations that count.
pub const TEXT: &str = "store vault: linearizable; store wall: causal;
    object Box in vault { key name: string; value: int; }
    object Note in wall { key name: string; sum: counter; lines: log<string>; }
    transaction fill(box: ref Box, value: int) { box.value = value; }
    transaction take(box: ref Box, line: string) -> int {
        require box.value > 0 else \"empty\" as value;
        box.value -= 1;
        Note[box.name].sum.add(1);
        Note[box.name].lines.append(line);
        return box.value;
    }
    transaction left(box: ref Box) -> int { return box.value; }
    transaction note(name: string, line: string) { Note[name].lines.append(line); }
    transaction lines(name: string) -> list<string> { return Note[name].lines.to_list(); }
    transaction sum(name: string) -> int { return Note[name].sum.value(); }";

/// A data center, which is killed with the test, if it has not ended.
pub struct Center {
    child: Child,
    /// The address for programs.
    pub address: String,
    /// The first line with the address for clients, and that for programs.
    pub lines: [String; 2],
}

impl Center {
    pub fn start(folder: &Path, engine: &str) -> Self {
        Self::run(folder, engine, &[])
    }

    /// Starts one with more arguments, which come first.
    pub fn run(folder: &Path, engine: &str, more: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_mingled"))
            .args(more)
            .args(["--listen", "127.0.0.1:0", "--engine", engine, "--dir"])
            .arg(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let out = child.stdout.take().expect("the output is piped");
        let mut lines = BufReader::new(out).lines().map_while(Result::ok);
        let clients = lines.next().expect("it tells the address for clients");
        let programs = lines.find(|line| line.starts_with("programs of Mingle at "));
        let programs = programs.expect("it tells the address for programs");
        let mut words = programs.split([' ', ',']).skip(4);
        let address = words.next().expect("the address follows").to_owned();
        Self { child, address, lines: [clients, programs] }
    }

    pub fn kill(mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it runs");
    }
}

impl Drop for Center {
    fn drop(&mut self) {
        // By its id. It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Settings with which the leftovers of a killed process are taken over soon.
pub const RUNTIME: &str =
    "[runtime]\nhelp_after = \"100ms\"\nlease = \"4s\"\nsweep_every = \"200ms\"\n";

fn binding(address: &str) -> String {
    let store = |name| format!("[stores.{name}]\nengine = \"mingled\"\naddress = \"{address}\"\n");
    [RUNTIME.to_owned(), store("vault"), store("wall")].concat()
}

pub async fn open(text: &str, address: &str) -> Result<Database, String> {
    let program = mingle::compile(text).expect("the program compiles");
    let binding = Binding::parse(&binding(address)).expect("the binding is one");
    Database::open(program, &binding, None).await.map_err(|error| error.to_string())
}

pub async fn call(
    database: &Database,
    name: &str,
    arguments: &[(&str, &str)],
) -> Result<Json, Error> {
    let arguments = database.arguments(name, arguments.iter().copied()).expect("they fit");
    let report = database.call(name, arguments, Session::default()).await?;
    Ok(database.result_json(name, &report))
}

#[test]
fn a_transaction_over_two_stores_is_one_and_outlasts_kills() {
    let folder = tempfile::tempdir().expect("a folder");
    let center = Center::start(folder.path(), "127.0.0.1:0");
    block_on(async {
        let database = open(TEXT, &center.address).await.expect("it opens");
        let filled = call(&database, "fill", &[("box", "tea"), ("value", "2")]).await;
        assert_eq!(filled, Ok(json!(null)));
        for (line, left) in [("one", 1), ("two", 0)] {
            let taken = call(&database, "take", &[("box", "tea"), ("line", line)]).await;
            assert_eq!(taken, Ok(json!(left)));
        }
        let refused = call(&database, "take", &[("box", "tea"), ("line", "three")]).await;
        assert!(matches!(refused, Err(Error::Require { .. })), "{refused:?}");
        use mingle_runtime::stats::Counted;
        assert_eq!(database.runtime().stats().get(Counted::United), 2, "each take is one");
        call(&database, "note", &[("name", "tea"), ("line", "by itself")])
            .await
            .expect("it commits");
    });
    center.kill();
    let center = Center::start(folder.path(), "127.0.0.1:0");
    block_on(async {
        // Another process of the program, with a new object: the ids of the known ones stay.
        let more = format!("{TEXT} object Extra in vault {{ key name: string; value: int; }}");
        let database = open(&more, &center.address).await.expect("it opens");
        assert_eq!(call(&database, "left", &[("box", "tea")]).await, Ok(json!(0)));
        let lines = call(&database, "lines", &[("name", "tea")]).await;
        assert_eq!(lines, Ok(json!(["one", "two", "by itself"])));
        assert_eq!(call(&database, "sum", &[("name", "tea")]).await, Ok(json!(2)));
        // One that changes a declaration is refused.
        let other =
            TEXT.replace("sum: counter", "sum: set<int>").replace("Note[box.name].sum.add(1);", "");
        let other =
            other.replace("return Note[name].sum.value();", "return Note[name].sum.size();");
        let refused = open(&other, &center.address).await.map(|_| ()).expect_err("it is refused");
        assert!(refused.contains("sum") && refused.contains("counter"), "{refused}");
    });
}

/// Waits until clients were told of this many commits.
async fn reach(count: &AtomicUsize, least: usize) {
    let begin = Instant::now();
    while count.load(Ordering::Acquire) < least {
        assert!(begin.elapsed() < Duration::from_mins(1), "no {least} commits");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// While a data center is killed again and again, clients take from a box; each line that they were told is
/// written must be there, and as many lines and taken pieces as each other.
#[test]
fn kills_amid_commits_lose_and_double_nothing() {
    const FULL: i64 = 100_000;
    let folder = tempfile::tempdir().expect("a folder");
    let center = Center::start(folder.path(), "127.0.0.1:0");
    // The next start takes the same address.
    let address = center.address.clone();
    block_on(async {
        let database = Arc::new(open(TEXT, &address).await.expect("it opens"));
        let full = FULL.to_string();
        call(&database, "fill", &[("box", "tea"), ("value", &full)]).await.expect("it commits");
        let (is_over, count) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let clients: Vec<_> = (0..4)
            .map(|client| {
                let (database, is_over, count) = (database.clone(), is_over.clone(), count.clone());
                tokio::spawn(async move {
                    let (mut told, mut number) = (Vec::new(), 0);
                    while !is_over.load(Ordering::Acquire) {
                        number += 1;
                        let line = format!("{client}.{number}");
                        let taken =
                            call(&database, "take", &[("box", "tea"), ("line", &line)]).await;
                        if taken.is_ok() {
                            told.push(line);
                            count.fetch_add(1, Ordering::AcqRel);
                        }
                    }
                    told
                })
            })
            .collect();
        let mut center = Some(center);
        for round in 0..3 {
            reach(&count, (round + 1) * 5).await;
            center.take().expect("it runs").kill();
            center = Some(Center::start(folder.path(), &address));
        }
        reach(&count, 20).await;
        is_over.store(true, Ordering::Release);
        let mut told = Vec::new();
        for client in clients {
            told.extend(client.await.expect("no client panics"));
        }
        let begin = Instant::now();
        let lines = loop {
            match call(&database, "lines", &[("name", "tea")]).await {
                Ok(lines) => break lines,
                Err(error) => assert!(begin.elapsed() < Duration::from_mins(1), "{error}"),
            }
        };
        let lines: Vec<String> = serde_json::from_value(lines).expect("a list of texts");
        let mut sorted = lines.clone();
        sorted.sort();
        sorted.dedup();
        assert_eq!(sorted.len(), lines.len(), "a line is there twice");
        let missing: Vec<&String> = told.iter().filter(|line| !lines.contains(line)).collect();
        assert!(missing.is_empty(), "lost: {missing:?}");
        let taken = lines.len() as i64;
        assert_eq!(call(&database, "left", &[("box", "tea")]).await, Ok(json!(FULL - taken)));
        assert_eq!(call(&database, "sum", &[("name", "tea")]).await, Ok(json!(taken)));
    });
}

/// A process with users: a program signs in, and the listener for clients of Redis shows what was denied.
#[test]
fn a_process_serves_programs_with_its_users() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("users.acl");
    let users = "user shop on >secret ~vault ~wall +mingle\nuser operator on >root ~* +@all";
    std::fs::write(&file, users).expect("room");
    let more = ["--users", file.to_str().expect("a text")];
    let center = Center::run(&folder.path().join("data"), "127.0.0.1:0", &more);
    let [clients, programs] = &center.lines;
    assert!(programs.ends_with(", not encrypted, with users"), "{programs}");
    let clients = clients.split([' ', ',']).find_map(|word| word.parse().ok());
    let clients: std::net::SocketAddr = clients.expect("an address");
    let with = |user: &str, password: &str| {
        let keys = format!("user = \"{user}\"\npassword = \"{password}\"\n[stores.wall]");
        let text = binding(&center.address).replace("[stores.wall]", &keys);
        let program = mingle::compile(TEXT).expect("the program compiles");
        let binding =
            Binding::parse(&format!("{text}user = \"{user}\"\npassword = \"{password}\"\n"));
        let binding = binding.expect("the binding is one");
        async move { Database::open(program, &binding, None).await.map_err(|error| error.to_string()) }
    };
    block_on(async {
        let database = with("shop", "secret").await.expect("it opens");
        let filled = call(&database, "fill", &[("box", "tea"), ("value", "2")]).await;
        assert_eq!(filled, Ok(json!(null)));
        let error = with("shop", "guess").await.map(|_| ()).expect_err("it is refused");
        assert!(error.contains("(WRONGPASS)"), "{error}");
        // The file changes, and is read again by a client of Redis.
        std::fs::write(&file, users.replace(">secret", ">changed")).expect("room");
        let mut operator = crate::clients::Raw::connect(clients);
        operator.expect("AUTH operator root => +OK\nACL LOAD => +OK");
        let log = operator.ask("ACL LOG 1");
        assert!(log.contains("\"auth\"") && log.contains("\"mingle\""), "{log}");
        let error = with("shop", "secret").await.map(|_| ()).expect_err("it is refused");
        assert!(error.contains("(WRONGPASS)"), "{error}");
        let again = with("shop", "changed").await.expect("it opens");
        assert_eq!(call(&again, "left", &[("box", "tea")]).await, Ok(json!(2)));
    });
}
