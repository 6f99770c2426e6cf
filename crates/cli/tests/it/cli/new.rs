//! `mingle new`, `mingle dev` and `mingle check --watch`: from nothing to a program that runs.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use mingle_services::Engine;

use super::postgres::Database;
use super::{folder, mingle, tutorial};

const TEMPLATES: [&str; 4] = ["shop", "feed", "bank", "bare"];

/// Sets the addresses of servers that are never asked.
fn mingle_bound(folder: &Path, args: &[&str], urls: (&str, &str)) -> (Option<i32>, String) {
    let ended = Command::new(env!("CARGO_BIN_EXE_mingle"))
        .args(args)
        .current_dir(folder)
        .env("DATABASE_URL", urls.0)
        .env("REDIS_URL", urls.1)
        .output()
        .expect("the command starts");
    let (out, err) = (ended.stdout, ended.stderr);
    (
        ended.status.code(),
        format!("{}{}", String::from_utf8_lossy(&out), String::from_utf8_lossy(&err)),
    )
}

#[test]
fn each_template_is_a_good_program_whose_readme_is_right() {
    let outer = folder(&[]);
    for template in TEMPLATES {
        let name = format!("my-{template}_1");
        let made = mingle(outer.path(), &["new", &name, "--template", template]);
        assert_eq!((made.code, made.stderr.as_str()), (Some(0), ""), "{template}");
        let inner = outer.path().join(&name);
        let program = format!("{name}.mingle");
        for args in [&["check", program.as_str()][..], &["fmt", "--check", &program]] {
            let run = mingle(&inner, args);
            assert_eq!(
                (run.code, run.stdout.as_str(), run.stderr.as_str()),
                (Some(0), "", ""),
                "{template}"
            );
        }
        let tested = mingle(&inner, &["test"]);
        assert_eq!((tested.code, tested.stderr.as_str()), (Some(0), ""), "{}", tested.stdout);
        assert!(tested.stdout.contains("crashes)"), "{}", tested.stdout);
        let production = ["check", "--config", "production.toml", &program];
        let urls = ("postgres://x@127.0.0.1:1/x", "redis://127.0.0.1:1");
        assert_eq!(mingle_bound(&inner, &production, urls), (Some(0), String::new()), "{template}");

        let readme = fs::read_to_string(inner.join("README.md")).expect("it is there");
        assert!(!readme.contains("NAME"), "{readme}");
        let lines = readme
            .lines()
            .filter(|line| line.starts_with("mingle run ") || line.starts_with("mingle show "));
        let mut ran = 0;
        for line in lines {
            let words = tutorial::words(line, &BTreeMap::new());
            let args: Vec<&str> = words[1..].iter().map(String::as_str).collect();
            let run = mingle(&inner, &args);
            assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{line}");
            assert_ne!(run.stdout, "null\n", "{line}");
            ran += 1;
        }
        assert_eq!(ran, 2, "{readme}");
    }
}

#[test]
fn names_are_checked_and_nothing_is_overwritten() {
    let outer = folder(&[("file", "")]);
    for (name, expected) in [
        ("a b", "a name has letters"),
        ("-a", "unexpected argument"),
        ("", "a name has letters"),
        ("..", "a name has letters"),
        ("file", "cannot make file"),
    ] {
        let run = mingle(outer.path(), &["new", name]);
        assert_eq!(run.code, Some(2), "{name}");
        assert!(run.stderr.contains(expected), "{name}: {}", run.stderr);
    }
    let inner = outer.path().join("inner/shop");
    fs::create_dir_all(&inner).expect("it is made");
    assert_eq!(
        mingle(outer.path(), &["new", "inner/shop"]).code,
        Some(0),
        "an empty folder will do"
    );
    fs::write(inner.join("shop.mingle"), "mine").expect("it is written");
    let again = mingle(outer.path(), &["new", "inner/shop"]);
    assert_eq!(again.code, Some(2));
    assert!(again.stderr.contains("is there and has files"), "{}", again.stderr);
    let kept = fs::read_to_string(inner.join("shop.mingle")).expect("it is there");
    assert_eq!(kept, "mine");
}

#[test]
fn the_shop_runs_over_servers() {
    let Some(database) = Database::new("") else { return };
    let tokio = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let tokio = tokio.expect("threads can be started");
    let Some(redis) = tokio.block_on(mingle_services::private(Engine::Redis)) else { return };
    let urls = (database.url.as_str(), redis.url());
    let outer = folder(&[]);
    assert_eq!(mingle(outer.path(), &["new", "shop"]).code, Some(0));
    let inner = outer.path().join("shop");
    let run = |args: &[&str], expected: &str| {
        let config = ["--config", "production.toml"];
        let (code, shown) = mingle_bound(&inner, &[args, &config].concat(), urls);
        assert_eq!(code, Some(0), "{args:?}: {shown}");
        assert!(shown.contains(expected), "{args:?}: {shown}");
    };
    run(&["migrate", "shop.mingle", "--apply"], "");
    let item =
        ["run", "shop.mingle", "stock_item", "sku=tea", "title=Green tea", "price=350", "stock=3"];
    run(&item, "\"tea\"");
    run(&["run", "shop.mingle", "buy", "customer=ana", "item=tea", "count=2"], "\"");
    run(
        &["run", "shop.mingle", "read_feed", "customer=ana", "limit=5"],
        "[\"bought 2 of Green tea\"]",
    );
    run(&["show", "shop.mingle", "Item", "tea"], "\"stock\":1");
}

/// A command that runs until the test ends, and the lines that it prints.
pub struct Background {
    child: Child,
    lines: Receiver<String>,
    seen: String,
}

impl Background {
    pub fn start(folder: &Path, args: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_mingle"))
            .args(args)
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command starts");
        let (tell, lines) = channel();
        let outs: [Box<dyn Read + Send>; 2] = [
            Box::new(child.stdout.take().expect("it is piped")),
            Box::new(child.stderr.take().expect("it is piped")),
        ];
        for out in outs {
            let tell = tell.clone();
            std::thread::spawn(move || {
                let lines = BufReader::new(out).lines().map_while(Result::ok);
                lines.for_each(|line| tell.send(line).unwrap_or_default());
            });
        }
        Self { child, lines, seen: String::new() }
    }

    /// Waits for a line with this text, and returns the line.
    pub fn expect(&mut self, text: &str) -> String {
        self.expect_all(&[text])
    }

    /// Waits for lines with these texts, in any order: standard output and standard error have none
    /// between them. Returns the line with the last text.
    fn expect_all(&mut self, texts: &[&str]) -> String {
        let until = Instant::now() + Duration::from_mins(1);
        let (mut left, mut last) = (texts.to_vec(), String::new());
        while !left.is_empty() {
            let wait = until.saturating_duration_since(Instant::now());
            let Ok(line) = self.lines.recv_timeout(wait) else {
                panic!("no line with {left:?} in:\n{}", self.seen)
            };
            left.retain(|text| !line.contains(text));
            self.seen.push_str(&line);
            self.seen.push('\n');
            if texts.last().is_some_and(|text| line.contains(text)) {
                last = line;
            }
        }
        last
    }

    /// Ends it as a user does.
    #[cfg(unix)]
    fn interrupt(&mut self) -> Option<i32> {
        let pid = self.child.id().to_string();
        let told = Command::new("kill").args(["-INT", &pid]).status().expect("kill runs");
        assert!(told.success());
        self.child.wait().expect("it ends").code()
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const ONE: &str = "store s: linearizable;
object Item in s { key sku: string; count: int; }
transaction add(item: ref Item) -> int { item.count += 1; return item.count; }
transaction refuse(item: ref Item) { require item.count < 0 else \"never\" as never; item.count = 0; }
";

fn call(address: &str, transaction: &str) -> String {
    super::call(address, transaction, "", r#"{"item":"tea"}"#)
}

#[test]
fn dev_serves_each_good_version_and_keeps_the_data() {
    let folder = folder(&[("one.mingle", ONE)]);
    let write = |text: &str| {
        fs::write(folder.path().join("one.mingle"), text).expect("it is written");
    };
    let args = [
        "dev",
        "--listen",
        "127.0.0.1:0",
        "--client",
        "typescript=client.ts",
        "--client",
        "go=client.go",
    ];
    let mut dev = Background::start(folder.path(), &args);
    let line = dev.expect("listening on http://");
    let address = line.trim_start_matches("listening on http://").to_owned();
    assert!(call(&address, "add").ends_with("{\"result\":1}"));
    let client = |name| fs::read_to_string(folder.path().join(name)).expect("it was written");
    assert!(client("client.ts").contains("add(") && client("client.go").contains(" Add("));

    // A transaction more: the data and the address stay, and the client follows.
    write(&format!(
        "{ONE}transaction twice(item: ref Item) -> int {{ item.count += 2; return item.count; }}\n"
    ));
    dev.expect("serving one.mingle anew");
    assert!(call(&address, "twice").ends_with("{\"result\":3}"));
    assert!(client("client.ts").contains("twice(") && client("client.go").contains(" Twice("));

    // Other commands call the server, which holds the data.
    let run = mingle(folder.path(), &["run", "one.mingle", "twice", "item=cup"]);
    assert_eq!((run.code, run.stdout.as_str(), run.stderr.as_str()), (Some(0), "2\n", ""));
    let shown = mingle(folder.path(), &["show", "one.mingle", "Item", "cup"]);
    assert_eq!(shown.stdout, "{\"sku\":\"cup\",\"count\":2}\n");
    assert_eq!(mingle(folder.path(), &["show", "one.mingle", "Item", "none"]).stdout, "null\n");
    let listed = mingle(folder.path(), &["show", "one.mingle", "Item"]);
    let both = "{\"sku\":\"cup\",\"count\":2}\n{\"sku\":\"tea\",\"count\":3}\n";
    assert_eq!(listed.stdout, both);
    for (args, code, expected) in [
        (&["show", "one.mingle", "Thing"][..], 2, "no object is called \"Thing\""),
        (&["run", "one.mingle", "twice"], 2, "twice needs item"),
        (&["run", "one.mingle", "nothing"], 2, "no transaction is called \"nothing\""),
        (&["show", "one.mingle", "Thing", "x"], 2, "no object is called \"Thing\""),
        (&["run", "one.mingle", "refuse", "item=cup"], 3, "never [never]"),
        (&["show", "one.mingle", "Item", "cup", "--at", "r1"], 2, "leave out --at"),
    ] {
        let run = mingle(folder.path(), args);
        assert_eq!(run.code, Some(code), "{args:?}: {}", run.stderr);
        assert!(run.stderr.contains(expected), "{args:?}: {}", run.stderr);
    }

    // A mistake is shown, and the program as it was goes on.
    write(&ONE.replace("count += 1", "cuont += 1"));
    dev.expect("no field of `Item` is called `cuont`");
    dev.expect("goes on");
    assert!(call(&address, "twice").ends_with("{\"result\":5}"));

    // A change that does not fit the data: nothing is lost unless the user says so.
    let changed = ONE.replace("count: int", "count: string").replace("count += 1", "count = \"1\"");
    let changed = changed
        .replace("item.count < 0", "item.count == \"\"")
        .replace("item.count = 0", "item.count = \"\"");
    let changed = changed.replace("-> int", "-> string");
    write(&changed);
    dev.expect("Item.count");
    dev.expect("start with --reset");
    dev.expect("goes on as it was");
    assert!(call(&address, "twice").ends_with("{\"result\":7}"));

    #[cfg(unix)]
    assert_eq!(dev.interrupt(), Some(0));
    drop(dev);
    // Without the server, the folder is opened.
    let shown = mingle(folder.path(), &["status", "one.mingle"]);
    assert_ne!(shown.code, Some(0), "the program does not fit the data: {}", shown.stdout);
    let mut dev = Background::start(folder.path(), &["dev", "--listen", "127.0.0.1:0", "--reset"]);
    let line = dev.expect_all(&["the data is now in ", "listening on http://"]);
    let address = line.trim_start_matches("listening on http://").to_owned();
    assert!(call(&address, "add").ends_with("{\"result\":\"1\"}"));
    assert!(folder.path().join(".mingle/one.before-1").is_dir(), "the data is kept aside");
}

#[test]
fn dev_says_what_is_missing() {
    let empty = folder(&[]);
    for (args, expected) in [
        (&["dev"][..], "no program in this folder"),
        (&["dev", "a.mingle", "--listen", "0.0.0.0:0"], "`mingle serve` serves others"),
        (&["dev", "a.mingle", "--client", "cobol=a"], "there is no client in \"cobol\""),
        (&["dev", "a.mingle", "--client", "python"], "expected LANGUAGE=FILE"),
    ] {
        let run = mingle(empty.path(), args);
        assert_eq!(run.code, Some(2), "{args:?}");
        assert!(run.stderr.contains(expected), "{args:?}: {}", run.stderr);
    }
    let two = folder(&[("a.mingle", ONE), ("b.mingle", ONE), ("a.test.mingle", "")]);
    let run = mingle(two.path(), &["dev"]);
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("which program? There are a.mingle, b.mingle"), "{}", run.stderr);
    // A program with a mistake at the start is waited for.
    let wrong = folder(&[("a.mingle", "store s: strong;")]);
    let mut dev = Background::start(wrong.path(), &["dev", "--listen", "127.0.0.1:0"]);
    dev.expect("no level is called `strong`");
    dev.expect("waiting for changes");
    fs::write(wrong.path().join("a.mingle"), ONE).expect("it is written");
    dev.expect("listening on http://");
}

const ROOT: &str = "import \"parts/item.mingle\";
transaction add(item: ref Item) -> int { item.count += 1; return item.count; }
";
const PART: &str = "store s: linearizable;\nobject Item in s { key sku: string; count: int; }\n";

#[test]
fn dev_follows_every_file_of_a_program() {
    let folder = folder(&[("main.mingle", ROOT), ("parts/item.mingle", PART)]);
    let write = |name: &str, text: &str| {
        fs::write(folder.path().join(name), text).expect("it is written");
    };
    let args = ["dev", "--listen", "127.0.0.1:0", "--client", "python=client.py"];
    let mut dev = Background::start(folder.path(), &args);
    let line = dev.expect("listening on http://");
    let address = line.trim_start_matches("listening on http://").to_owned();
    assert!(call(&address, "add").ends_with("{\"result\":1}"));
    let twice =
        "transaction twice(item: ref Item) -> int { item.count += 2; return item.count; }\n";
    write("parts/item.mingle", &format!("{PART}{twice}"));
    dev.expect("serving main.mingle anew");
    assert!(call(&address, "twice").ends_with("{\"result\":3}"));
    let client = fs::read_to_string(folder.path().join("client.py")).expect("it was written");
    assert!(client.contains("def twice("), "{client}");
    // An import of a file that comes later.
    write(
        "main.mingle",
        &ROOT.replace("transaction add", "import \"more.mingle\";\ntransaction add"),
    );
    dev.expect("\"more.mingle\" cannot be imported: there is no such file");
    dev.expect("goes on");
    write("more.mingle", "fn one() -> int { 1 }\n");
    dev.expect("serving main.mingle anew");
    assert!(call(&address, "add").ends_with("{\"result\":4}"));
}

#[test]
fn check_watches() {
    let folder = folder(&[("a.mingle", ONE)]);
    let mut check = Background::start(folder.path(), &["check", "--watch", "a.mingle"]);
    check.expect("no errors; waiting for changes");
    fs::write(folder.path().join("a.mingle"), "store s: strong;").expect("it is written");
    let texts = ["a.mingle changed", "no level is called `strong`", "errors; waiting for changes"];
    check.expect_all(&texts);
    fs::write(folder.path().join("a.mingle"), ONE).expect("it is written");
    check.expect("no errors; waiting for changes");
    let stdin = mingle(folder.path(), &["check", "--watch", "-"]);
    assert_eq!(stdin.code, Some(2));
    assert!(stdin.stderr.contains("standard input cannot be watched"), "{}", stdin.stderr);
}
