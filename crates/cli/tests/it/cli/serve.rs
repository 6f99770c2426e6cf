//! `mingle serve`: the process from its start to its end.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::cli::{folder, mingle};

/// A program in which the last store computes the result of `pay`.
const TEXT: &str = "store bank: linearizable; store feed: causal;
    object Account in bank { key owner: string; balance: int; }
    object Inbox in feed { key owner: string; unread: counter; }
    transaction pay(to: ref Account, inbox: ref Inbox) -> int {
        to.balance += 10;
        inbox.unread.add(1);
        return inbox.unread.value();
    }
    transaction balance(of: ref Account) -> int { return of.balance; }
    ";

const SERVE: [&str; 4] = ["serve", "bank.mingle", "--listen", "127.0.0.1:0"];

/// A server that ends with the test.
pub struct Serving {
    child: Child,
    address: String,
}

impl Serving {
    fn start(folder: &Path, args: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mingle"));
        Self::started(command.args(SERVE).args(args), folder)
    }

    /// Starts a server that ignores this signal.
    #[cfg(unix)]
    pub fn start_ignoring(folder: &Path, signal: &str) -> Self {
        let script = format!("trap '' {signal}; exec \"$@\"");
        let mut command = Command::new("sh");
        command.args(["-c", &script, "sh", env!("CARGO_BIN_EXE_mingle")]).args(SERVE);
        Self::started(&mut command, folder)
    }

    fn started(command: &mut Command, folder: &Path) -> Self {
        Self::started_with(command, folder, Stdio::null())
    }

    /// Starts a server that logs to `log`.
    fn started_with(command: &mut Command, folder: &Path, log: Stdio) -> Self {
        let mut child = command
            .current_dir(folder)
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .expect("the command starts");
        let out = child.stdout.take().expect("it is piped");
        let mut line = String::new();
        BufReader::new(out).read_line(&mut line).expect("it prints a line");
        let address = line.strip_prefix("listening on http://").map(|rest| rest.trim().to_owned());
        let address = address.unwrap_or_else(|| panic!("it prints {line:?}"));
        Self { child, address }
    }

    /// Returns the id of the process.
    #[cfg(target_os = "linux")]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns the complete answer to a request.
    #[cfg(target_os = "linux")]
    pub fn get(&self, path: &str) -> String {
        super::exchange(
            &self.address,
            &format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"),
        )
    }

    /// Returns the complete answer to a call.
    pub fn call(&self, transaction: &str, headers: &str, body: &str) -> String {
        super::call(&self.address, transaction, headers, body)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_call_again_after_the_server_was_killed_runs_once() {
    let folder = folder(&[("bank.mingle", TEXT)]);
    std::fs::write(folder.path().join("key"), [7; 32]).expect("it is written");
    let args = ["--session-key", "key"];
    let body = r#"{"to":"ana","inbox":"ana"}"#;
    let key = "idempotency-key: order-7\r\n";

    let mut first = Serving::start(folder.path(), &args);
    let answer = first.call("pay", key, body);
    assert!(answer.ends_with(r#"{"result":1}"#), "{answer}");
    let session = answer.lines().find(|line| line.starts_with("mingle-session: "));
    let session = format!("{}\r\n", session.expect("it gives a session"));
    first.child.kill().expect("it runs");
    first.child.wait().expect("it ends");

    let second = Serving::start(folder.path(), &args);
    let again = second.call("pay", &format!("{key}{session}"), body);
    assert!(again.contains("mingle-repeated: true\r\n"), "{again}");
    assert!(again.ends_with(r#"{"result":1}"#), "{again}");
    let balance = second.call("balance", "", r#"{"of":"ana"}"#);
    assert!(balance.ends_with(r#"{"result":10}"#), "{balance}");
}

#[cfg(unix)]
#[test]
fn a_signal_ends_it_and_nothing_is_left() {
    for signal in ["-TERM", "-INT"] {
        let folder = folder(&[("bank.mingle", TEXT)]);
        let mut serving = Serving::start(folder.path(), &[]);
        serving.call("pay", "", r#"{"to":"ana","inbox":"ana"}"#);
        let pid = serving.child.id().to_string();
        let told = Command::new("kill").args([signal, &pid]).status();
        assert!(told.expect("there is `kill`").success());
        let ended = serving.child.wait().expect("it ends");
        assert_eq!(ended.code(), Some(0), "{signal}");
        let left = mingle(folder.path(), &["recover", "bank.mingle", "--list"]);
        assert_eq!((left.code, left.stderr.as_str()), (Some(0), ""), "{}", left.stdout);
    }
}

#[test]
fn what_makes_no_sense_is_refused_before_it_listens() {
    let folder = folder(&[
        ("bank.mingle", TEXT),
        ("short", "not 32 bytes"),
        ("tokens.toml", "[[tokens]]\nname = \"a\"\nsha256 = \"x\""),
    ]);
    for (args, expected) in [
        (&["--listen", "0.0.0.0:0"][..], "without tokens everybody may call everything"),
        (&["--session-key", "short"], "short holds 12 bytes, and a session key is 32 bytes"),
        (&["--session-key", "none"], "cannot read none"),
        (&["--tokens", "tokens.toml"], "64 hexadecimal digits"),
        (&["--tokens", "none.toml"], "cannot read none.toml"),
        (&["--tls-cert", "short", "--tls-key", "short"], "short"),
        (&["--tls-cert", "short"], "--tls-key"),
        (&["--listen", "here"], "here"),
    ] {
        let run = mingle(folder.path(), &[&["serve", "bank.mingle"], args].concat());
        assert_eq!(run.code, Some(2), "{args:?}: {}", run.stderr);
        assert!(run.stderr.contains(expected), "{args:?}: {}", run.stderr);
        assert_eq!(run.stdout, "", "{args:?}");
    }
}

#[test]
fn a_program_is_run_beside_a_store_that_another_process_serves() {
    let served = folder(&[("bank.mingle", TEXT)]);
    let worker = Serving::start(served.path(), &["--worker"]);
    let binding = format!("[stores.feed]\n[stores.bank]\nworker = \"http://{}\"\n", worker.address);
    let here = folder(&[("bank.mingle", TEXT), ("mingle.toml", &binding)]);
    let pay = ["run", "bank.mingle", "pay", "to=ana", "inbox=ana"];
    let run = mingle(here.path(), &pay);
    assert_eq!((run.code, run.stdout.trim()), (Some(0), "1"), "{}", run.stderr);
    // The bank is at the worker, the feed is in this process.
    let answer = worker.call("balance", "", r#"{"of": "ana"}"#);
    assert!(answer.ends_with(r#"{"result":10}"#), "{answer}");
    let shown = mingle(here.path(), &["show", "bank.mingle", "Account", "ana"]);
    assert!(shown.stdout.contains("10"), "{} {}", shown.stdout, shown.stderr);

    let explained = mingle(here.path(), &["explain", "bank.mingle", "pay"]);
    let expected = "bank (linearizable), writes; 1 round trip, to the worker of its store";
    assert!(explained.stdout.contains(expected), "{}", explained.stdout);
    let explained = mingle(served.path(), &["explain", "bank.mingle", "pay"]);
    assert!(!explained.stdout.contains("worker"), "{}", explained.stdout);

    drop(worker);
    let run = mingle(here.path(), &pay);
    assert_eq!(run.code, Some(4), "{}", run.stderr);
    assert!(run.stderr.contains("the worker of store bank cannot be reached"), "{}", run.stderr);
}

/// Ends a server, and returns its log.
#[cfg(unix)]
fn logged(folder: &Path, args: &[&str], filter: Option<&str>) -> String {
    let log = folder.join("log");
    let mut command = Command::new(env!("CARGO_BIN_EXE_mingle"));
    command.args(SERVE).args(args).env_remove("RUST_LOG");
    if let Some(filter) = filter {
        command.env("RUST_LOG", filter);
    }
    let file = std::fs::File::create(&log).expect("it is made");
    let serving = Serving::started_with(&mut command, folder, file.into());
    let answer = serving.call("pay", "", r#"{"from":"ada","to":"bob","amount":"many"}"#);
    assert!(answer.starts_with("HTTP/1.1 4"), "{answer}");
    let answer = serving.call("balance", "", r#"{"of":"ada"}"#);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    drop(serving);
    std::fs::read_to_string(log).expect("it is text")
}

#[cfg(unix)]
#[test]
fn what_happens_is_logged_as_lines_of_json_unless_a_person_reads_them() {
    let folder = folder(&[("bank.mingle", TEXT)]);
    let lines = |log: &str| -> Vec<serde_json::Value> {
        let line =
            |line: &str| serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}"));
        log.lines().map(line).collect()
    };
    let usual = lines(&logged(folder.path(), &[], None));
    let listening = usual.iter().find(|line| line["message"] == "listening").expect("it says so");
    assert_eq!(listening["level"], "INFO");
    assert!(listening["url"].as_str().is_some_and(|url| url.starts_with("http://127.0.0.1:")));
    assert!(usual.iter().all(|line| line["message"] != "a call has ended"), "{usual:?}");

    for (args, filter) in [(&["--log", "debug"][..], None), (&[], Some("warn,mingle_server=debug"))]
    {
        let all = lines(&logged(folder.path(), args, filter));
        let call =
            all.iter().find(|line| line["message"] == "a call has ended").expect("each call");
        assert_eq!((&call["transaction"], &call["outcome"]), (&"balance".into(), &"ok".into()));
    }
    assert_eq!(logged(folder.path(), &["--log", "error"], Some("debug")), "", "the flag is first");
    let human = logged(folder.path(), &["--log-format", "human"], None);
    assert!(human.contains(" INFO ") && human.contains("listening"), "{human}");

    let run = mingle(folder.path(), &["serve", "bank.mingle", "--log", "mingle=loud"]);
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("--log") && run.stderr.contains("mingle=loud"), "{}", run.stderr);
}
