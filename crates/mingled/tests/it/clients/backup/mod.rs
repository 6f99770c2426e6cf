//! Backups of data centers that run, and clusters that are restored from them.

mod damage;
mod load;
mod members;
mod printed;
mod programs;
mod rights;

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use super::serving::{Serving, until};
use super::{Raw, Started, seed};

/// Runs `mingled` with these arguments.
fn mingled<S: AsRef<std::ffi::OsStr>>(arguments: &[S]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_mingled")).args(arguments).output().expect("it runs")
}

/// The output of a command that must succeed.
fn done<S: AsRef<std::ffi::OsStr>>(arguments: &[S]) -> String {
    let output = mingled(arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("a text")
}

/// The error of a command that must fail.
fn refused<S: AsRef<std::ffi::OsStr>>(arguments: &[S]) -> String {
    let output = mingled(arguments);
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stderr).expect("a text")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a text")
}

/// Makes a backup of the data center at this address.
fn backup(address: SocketAddr, to: &Path) -> String {
    done(&["backup", "--from", &address.to_string(), "--to", text(to), "--verify"])
}

/// Restores a data center of a cluster that does not run.
fn restore(file: &Path, serving: &Serving, dc: usize, of: &[&str]) -> String {
    let folder = serving.folder(dc);
    let (dc, start) = (dc.to_string(), ["restore", "--file", text(file), "--dir", text(&folder)]);
    done(&[&start[..], &["--dc", &dc], of].concat())
}

/// A single data center as a process, which is killed with the test.
struct Single {
    child: Child,
    address: SocketAddr,
    /// The address for programs.
    programs: String,
}

impl Single {
    fn kill(mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it runs");
    }
}

impl Drop for Single {
    fn drop(&mut self) {
        // By its id. It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts a single data center, whose folder may have been restored.
fn single(folder: &Path, partitions: &str) -> Single {
    let mut child = Command::new(env!("CARGO_BIN_EXE_mingled"))
        .args(["--listen", "127.0.0.1:0", "--engine", "127.0.0.1:0"])
        .args(["--partitions", partitions, "--dir"])
        .arg(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let out = child.stdout.take().expect("the output is piped");
    let mut lines = BufReader::new(out).lines().map_while(Result::ok);
    let line = lines.next().expect("it tells the address for clients");
    let address = line.split([' ', ',']).find_map(|word| word.parse().ok());
    let address = address.unwrap_or_else(|| panic!("no address in {line:?}"));
    let programs = lines.next().expect("it tells the address for programs");
    let programs = programs.split([' ', ',']).find(|word| word.starts_with("127."));
    Single { child, address, programs: programs.expect("an address").to_owned() }
}

/// Connects to a single data center.
fn client_of(center: &Single) -> Raw {
    Raw::connect(center.address)
}

/// Writes items of all types, and returns requests with the replies that must stay.
fn fill(client: &mut Raw) -> Vec<(Vec<Vec<u8>>, String)> {
    let long = vec![b'x'; 3 << 20];
    let all: Vec<u8> = (0..=255).collect();
    let words = |words: &[&[u8]]| words.iter().map(|word| word.to_vec()).collect::<Vec<_>>();
    let mut written: Vec<Vec<Vec<u8>>> = vec![
        words(&[b"SET", b"text", b"a \"text\""]),
        words(&[b"SET", b"empty", b""]),
        words(&[b"SET", &all, &all]),
        words(&[b"SET", b"long", &long]),
        words(&[b"SET", b"most", b"9223372036854775807"]),
        words(&[b"INCRBY", b"least", b"-9223372036854775808"]),
        words(&[b"SET", b"five", b"5"]),
        words(&[b"INCR", b"five"]),
        words(&[b"SET", b"gone", b"1"]),
        words(&[b"DEL", b"gone"]),
        words(&[b"SET", b"later", b"1", b"PXAT", b"99999999999999"]),
        words(&[b"HSET", b"hash", b"a", b"1", b"b", b"two", b"", &all]),
        words(&[b"HINCRBY", b"hash", b"a", b"41"]),
        words(&[b"HDEL", b"hash", b"b"]),
        words(&[b"SADD", b"set", b"a", b"b", &all, b""]),
        words(&[b"SREM", b"set", b"b"]),
        words(&[b"ZADD", b"zset", b"1.5", b"a", b"-inf", b"low", b"+inf", &all, b"-0.25", b""]),
        words(&[b"ZINCRBY", b"zset", b"2", b"a"]),
        words(&[b"RPUSH", b"list", b"a", b"a", &all, b"", b"z"]),
        words(&[b"LPUSH", b"list", b"first"]),
        words(&[b"LREM", b"list", b"1", b"a"]),
        words(&[b"SETNX", b"once", b"me"]),
    ];
    // More items than one part has.
    for number in 0..1_500 {
        written.push(words(&[b"SET", format!("many:{number}").as_bytes(), b"x"]));
    }
    for words in &written {
        let reply = super::shown(&client.call(words));
        assert!(!reply.starts_with('-'), "{reply}");
    }
    let read: Vec<Vec<Vec<u8>>> = vec![
        words(&[b"MGET", b"text", b"empty", &all, b"most", b"least", b"five", b"gone", b"later"]),
        words(&[b"GET", b"long"]),
        words(&[b"PEXPIRETIME", b"later"]),
        words(&[b"HGETALL", b"hash"]),
        words(&[b"SMEMBERS", b"set"]),
        words(&[b"ZRANGE", b"zset", b"0", b"-1", b"WITHSCORES"]),
        words(&[b"LRANGE", b"list", b"0", b"-1"]),
        words(&[b"GET", b"once"]),
        words(&[b"GET", b"many:1499"]),
    ];
    let replied = read.into_iter().map(|words| {
        let reply = super::shown(&client.call(&words));
        assert!(!reply.starts_with('-'), "{reply}");
        (words, reply)
    });
    replied.collect()
}

/// Checks that requests have the same replies as before.
fn is_same(client: &mut Raw, before: &[(Vec<Vec<u8>>, String)]) {
    for (words, reply) in before {
        let found = super::shown(&client.call(words));
        assert!(found == *reply, "{}", String::from_utf8_lossy(&words.concat()));
    }
}

#[test]
fn a_single_data_center_is_restored_with_other_partitions() {
    let folder = tempfile::tempdir().expect("a folder");
    let [file, first, second] = ["file", "first", "second"].map(|name| folder.path().join(name));
    let center = single(&first, "3");
    let before = fill(&mut client_of(&center));
    let report = backup(center.address, &file);
    assert!(report.contains(" strings\n") && report.contains("complete; items: 151"), "{report}");
    assert_eq!(done(&["check-backup", text(&file)]), report);
    // A backup is not overwritten.
    let again = refused(&["backup", "--from", &center.address.to_string(), "--to", text(&file)]);
    assert!(again.contains("exists already"), "{again}");
    center.kill();

    let from = text(&file);
    done(&["restore", "--file", from, "--dir", text(&second), "--partitions", "5", "--verify"]);
    let again = refused(&["restore", "--file", from, "--dir", text(&second)]);
    assert!(again.contains("is not empty"), "{again}");
    let center = single(&second, "5");
    let mut client = client_of(&center);
    is_same(&mut client, &before);
    // New operations find what they replace, add to and remove.
    client.expect(
        "
        SET text new => +OK
        GET text => \"new\"
        INCR five => :7
        DEL most => :1
        EXISTS most => :0
        HDEL hash a => :1
        HEXISTS hash a => :0
        SREM set a => :1
        SISMEMBER set a => :0
        ZREM zset low => :1
        ZCARD zset => :3
        LPOP list => \"first\"
        LLEN list => :4
        SETNX once other => :0
        GETDEL once => \"me\"
        PERSIST later => :1
        TTL later => :-1
        ",
    );
    center.kill();
    let center = single(&second, "5");
    let mut client = client_of(&center);
    // Strong writes are shown once they are delivered again.
    let expected = "[\"new\", \"7\", nil, nil]";
    until("all is there again", || client.ask("MGET text five most once") == expected);
    client.expect("LLEN list => :4");
}

#[test]
fn a_restored_data_center_and_an_empty_one_do_not_go_together() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file");
    let mut started = Started::new();
    started.client().expect("SET a 1 => +OK");
    backup(started.address(), &file);
    started.stop();
    let mut serving = Serving::of("c2", 2, &[]);
    restore(&file, &serving, 0, &["--dcs", "2", "--cluster", "c2"]);
    serving.start(0, &[]);
    serving.start(1, &[]);
    until("the empty one stops", || {
        let (child, _) = serving.running[1].as_mut().expect("it was started");
        child.try_wait().expect("it is a child").is_some()
    });
    until("the other one goes on", || serving.client(0).ask("GET a") == "\"1\"");
}

#[test]
fn requests_that_do_not_fit_have_errors_of_their_own() {
    let mut started = Started::new();
    let mut client = started.client();
    client.expect(
        "
        BACKUP NEXT => -ERR BACKUP NEXT without BACKUP START
        BACKUP MAKE => -ERR BACKUP has the parts START, NEXT and STOP
        BACKUP STOP => +OK
        BEGIN => +OK
        BACKUP START => -ERR BACKUP is not allowed in a transaction
        ABORT => +OK
        ",
    );
    let mut other = started.client();
    assert!(client.ask("BACKUP START").starts_with("\"MINGLEBK"));
    assert!(other.ask("BACKUP START").starts_with("\"MINGLEBK"));
    let ended = client.ask("BACKUP NEXT");
    assert!(ended.starts_with("-NOBACKUP the snapshot is not held any more"), "{ended}");
    assert!(!other.ask("BACKUP NEXT").starts_with('-'));
    assert_eq!(other.ask("BACKUP NEXT"), "nil");
    assert_eq!(other.ask("BACKUP NEXT"), "-ERR BACKUP NEXT without BACKUP START");
    started.stop();
}
