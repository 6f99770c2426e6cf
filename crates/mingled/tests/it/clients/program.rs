//! The command `mingled`, as processes.

use std::io::{BufRead as _, BufReader};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::status::{OF_OTHERS, get};
use super::{PATIENCE, Raw};

/// A process that is killed with the test, if it has not ended.
struct Program {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Program {
    fn start(arguments: &[&str], folder: &Path) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_mingled"))
            .args(arguments)
            .arg("--dir")
            .arg(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let out = child.stdout.take().expect("the output is piped");
        Self { child, lines: BufReader::new(out).lines() }
    }

    /// Returns the address in the next line.
    fn address(&mut self) -> SocketAddr {
        self.addresses()[0]
    }

    /// Returns the addresses in the next line, at least one.
    fn addresses(&mut self) -> Vec<SocketAddr> {
        let line = self.lines.next().expect("a line").expect("a text");
        let words = line.split([' ', ',', ';', '/']);
        let addresses: Vec<SocketAddr> = words.filter_map(|word| word.parse().ok()).collect();
        assert!(!addresses.is_empty(), "no address in {line:?}");
        addresses
    }

    fn kill(mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it runs");
    }

    /// Asks the process to stop, and returns true if it succeeds.
    fn stop(mut self) -> bool {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it runs");
        self.child.wait().expect("it runs").success()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // By its id. It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn acknowledged_writes_survive_a_kill() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let single = ["--listen", "127.0.0.1:0"];
    let mut program = Program::start(&single, &data);
    let mut client = Raw::connect(program.address());
    client.expect(
        r"
        SET a 1 => +OK
        RPUSH l x y => :2
        SETNX s strong => :1
        MULTI => +OK
        INCR a => +QUEUED
        HSET h f v => +QUEUED
        EXEC => [:2, :1]
        ",
    );
    program.kill();
    let mut program = Program::start(&single, &data);
    let address = program.address();
    until("a new connection sees the writes", || {
        let mut client = Raw::connect(address);
        client.ask("MGET a s") == "[\"2\", \"strong\"]"
            && client.ask("LRANGE l 0 -1") == "[\"x\", \"y\"]"
            && client.ask("HGET h f") == "\"v\""
    });
    assert!(program.stop(), "it ends without an error");
    TcpStream::connect(address).expect_err("it has ended");

    let other = Command::new(env!("CARGO_BIN_EXE_mingled"))
        .args(["--listen", "127.0.0.1:0", "--partitions", "5", "--dir"])
        .arg(&data)
        .output()
        .expect("it starts");
    let error = String::from_utf8_lossy(&other.stderr).into_owned();
    assert_eq!(other.status.code(), Some(1));
    assert!(error.contains("4 partitions, and this start is"), "{error}");
    assert!(error.contains("5 partitions: take another folder"), "{error}");
}

#[test]
fn a_cluster_is_three_processes_with_the_same_data() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut program = Program::start(&["cluster", "--dcs", "3", "--port", "0"], folder.path());
    let places = [(); 3].map(|()| program.addresses());
    let addresses = places.each_ref().map(|it| it[0]);
    let mut clients = addresses.map(Raw::connect);
    until("they are connected", || {
        clients[0].ask("DATACENTERS").matches("\"connected\"").count() == 2
    });
    for (dc, place) in places.iter().enumerate() {
        let (_, facts) = get(place[1], "/status.json");
        assert!(facts.contains(&format!("\"data_center\":\"d{dc}\"")), "{facts}");
        until("its page says so", || {
            let (_, facts) = get(place[1], "/status.json");
            facts.matches("\"state\":\"connected\"").count() == 2
        });
        for figure in OF_OTHERS {
            // The lag is known once something has arrived.
            until(figure, || get(place[1], "/metrics").1.contains(&format!("\n{figure}{{")));
        }
    }
    clients[0].expect("SET a 1 => +OK\nWAIT 0 0 => :2");
    until("the others see it", || clients[1..].iter_mut().all(|it| it.ask("GET a") == "\"1\""));
    for client in &mut clients {
        client.expect("INCR all => :1");
    }
    until("they converge", || clients.iter_mut().all(|it| it.ask("GET all") == "\"3\""));
    let taken = clients.iter_mut().filter_map(|client| {
        let reply = client.ask("SETNX lock me");
        (reply == ":1").then_some(())
    });
    assert_eq!(taken.count(), 1);
    drop(clients);
    assert!(program.stop(), "it ends without an error");
    for address in addresses {
        TcpStream::connect(address).expect_err("it has ended");
    }
}

#[test]
fn a_cluster_has_the_distance_that_was_asked_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let arguments = ["cluster", "--dcs", "3", "--port", "0", "--between", "300ms"];
    let mut program = Program::start(&arguments, folder.path());
    let addresses = [(); 3].map(|()| program.address());
    let mut clients = addresses.map(Raw::connect);
    until("they are connected", || {
        clients[0].ask("DATACENTERS").matches("\"connected\"").count() == 2
    });
    let begin = Instant::now();
    clients[0].expect("SET a 1 => +OK");
    until("another sees it", || clients[1].ask("GET a") == "\"1\"");
    let found = begin.elapsed();
    assert!(found >= Duration::from_millis(150), "no message is there after {found:?}");
    assert!(program.stop(), "it ends without an error");
}

#[test]
fn a_cluster_ends_with_its_parent() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut program = Program::start(&["cluster", "--dcs", "2", "--port", "0"], folder.path());
    let addresses = [(); 2].map(|()| program.address());
    program.kill();
    until("they end", || addresses.iter().all(|address| TcpStream::connect(address).is_err()));
}

#[test]
fn wrong_arguments_are_errors() {
    for (arguments, expected) in [
        (&["--listen", "0.0.0.0:0"][..], "is not on loopback"),
        (&["--listen", "127.0.0.1:0", "--status", "0.0.0.0:0"], "0.0.0.0:0 is not on loopback"),
        (&["--listen", "127.0.0.1:0", "--engine", "0.0.0.0:0"], "0.0.0.0:0 is not on loopback"),
        (&["--listen", "here"], "invalid value 'here' for '--listen <ADDRESS>'"),
        (&["cluster", "--dcs", "9"], "invalid value '9' for '--dcs <NUMBER>'"),
        (&["cluster", "--between", "40"], "expected a number with `us`, `ms` or `s`"),
        (&["cluster", "--between", "9s"], "expected at most 2s"),
        (
            &["serve", "--dir", "d", "--dc", "2", "--peers", "127.0.0.1:1", "--cluster", "1"],
            "--dc is 2, and --peers has 1 addresses",
        ),
        (
            &["serve", "--dir", "d", "--dc", "0", "--peers", "127.0.0.1:1", "--cluster", "x"],
            "--cluster is 'x', expected up to 32 hexadecimal digits",
        ),
    ] {
        let ended = Command::new(env!("CARGO_BIN_EXE_mingled"))
            .args(arguments)
            .output()
            .expect("it starts");
        let error = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert!(!ended.status.success() && error.contains(expected), "{error}");
    }
    let help =
        Command::new(env!("CARGO_BIN_EXE_mingled")).arg("--help").output().expect("it starts");
    assert!(String::from_utf8_lossy(&help.stdout).contains("cluster"), "the tasks are listed");
}
