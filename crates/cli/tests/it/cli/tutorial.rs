//! Every command of the tutorial, run unchanged.
//!
//! `mingle` is run. The test itself does the work of `psql`, `redis-cli` and the old application,
//! because they are not installed on every machine.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use mingle_services::{Engine, Server};
use tempfile::TempDir;

use super::postgres::Database;
use crate::clients::language::Language;

const PAGE: &str = include_str!("../../../../../docs/tutorial.md");

macro_rules! example {
    ($name:literal) => {
        include_str!(concat!("../../../../../examples/shop_feed/", $name))
    };
}

/// Returns the code blocks of the page: the kind and the text of each.
fn blocks() -> Vec<(&'static str, String)> {
    let parts = PAGE.split("\n```").skip(1).step_by(2);
    let block = |part: &'static str| {
        let (info, text) = part.split_once('\n').expect("a block has lines");
        (info, format!("{text}\n"))
    };
    parts.map(block).collect()
}

#[test]
fn the_files_are_those_of_the_example() {
    let blocks = blocks();
    for (info, file) in [
        ("sql", example!("schema.sql")),
        ("sh", example!("buy.sh")),
        ("mingle", example!("shop.mingle")),
        ("toml", example!("mingle.toml")),
    ] {
        assert!(blocks.contains(&(info, file.to_owned())), "{info}: {blocks:#?}");
    }
}

/// Splits a line into words as a shell does, with quotation marks and variables.
pub fn words(line: &str, variables: &BTreeMap<&str, String>) -> Vec<String> {
    let (mut words, mut word, mut quoted) = (Vec::new(), None::<String>, None);
    for c in line.chars() {
        match (c, quoted) {
            ('"' | '\'', None) => {
                quoted = Some(c);
                word.get_or_insert_default();
            }
            (_, Some(end)) if c == end => quoted = None,
            (' ', None) => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    let expanded = |word: String| match word.strip_prefix('$') {
        Some(name) => variables.get(name).cloned().unwrap_or(word),
        None => word,
    };
    words.into_iter().map(expanded).collect()
}

/// A user that follows the tutorial.
struct Player {
    folder: TempDir,
    database: Database,
    redis: Server,
    variables: BTreeMap<&'static str, String>,
    background: Option<Child>,
    /// The address of the server in the background, where the page says `127.0.0.1:8080`.
    served: Option<String>,
}

/// The address of the server on the page.
const SERVED: &str = "127.0.0.1:8080";

impl Player {
    /// Returns the output of a command.
    fn run(&mut self, line: &str) -> String {
        let (is_crashing, line) = match line.strip_prefix("CRASH=1 ") {
            Some(rest) => (true, rest),
            None => (false, line),
        };
        let (is_background, line) = match line.strip_suffix(" &") {
            Some(rest) => (true, rest),
            None => (false, line),
        };
        let (line, file) = match line.split_once(" > ") {
            Some((line, file)) => (line, Some(file)),
            None => (line, None),
        };
        let words = words(line, &self.variables);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words[..] {
            ["mingle", ref args @ ..] if file.is_some() => {
                let text = self.mingle(args);
                write(self.folder.path(), file.expect("it was found"), &text);
                String::new()
            }
            ["mingle", "serve", ref args @ ..] if is_background => self.serve(args),
            ["kill", "$!"] => self.terminate(),
            ["curl", "-s", "--json", body, url] => self.post(url, body),
            ["npx", "tsx", script] => self.typescript(script),
            ["mingle", ref args @ ..] if is_background => self.begin(args),
            ["mingle", ref args @ ..] => self.mingle(args),
            ["kill", "-9", "$!"] => {
                let mut child = self.background.take().expect("something runs in the background");
                child.kill().and_then(|()| child.wait()).expect("it is killed");
                String::new()
            }
            ["psql", _, "-c", sql] => self.database.shown(sql),
            ["redis-cli", "-u", _, ref command @ ..] => self.redis(command),
            ["./buy.sh", customer, item, count] => self.buy(customer, item, count, is_crashing),
            _ => panic!("nobody knows how to run `{line}`"),
        }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mingle"));
        command.args(args).current_dir(self.folder.path()).stdin(Stdio::null());
        command.envs(&self.variables);
        command
    }

    fn mingle(&self, args: &[&str]) -> String {
        let output = self.command(args).output().expect("the command ends");
        let shown = [output.stdout, output.stderr].concat();
        without_id(&String::from_utf8(shown).expect("UTF-8"))
    }

    /// Starts `mingle` in the background; returns the first line that it prints.
    fn begin(&mut self, args: &[&str]) -> String {
        let mut child = self.command(args).stdout(Stdio::piped()).spawn().expect("it starts");
        let mut line = String::new();
        let out = child.stdout.as_mut().expect("it is piped");
        BufReader::new(out).read_line(&mut line).expect("it prints a line");
        self.background = Some(child);
        line
    }

    /// Starts a server at a free port; returns its line with the port of the page.
    fn serve(&mut self, args: &[&str]) -> String {
        let line = self
            .begin(&[&["serve"], args, &["--listen", "127.0.0.1:0", "--log", "error"]].concat());
        let address = line.trim().rsplit_once('/').expect("it prints its address").1.to_owned();
        let shown = line.replace(&address, SERVED);
        self.served = Some(address);
        shown
    }

    /// Ends the process in the background by a signal.
    fn terminate(&mut self) -> String {
        let mut child = self.background.take().expect("something runs in the background");
        let pid = child.id().to_string();
        let told = Command::new("kill").arg(&pid).status().expect("kill runs");
        assert!(told.success() && child.wait().expect("it ends").success());
        String::new()
    }

    /// Does the work of `curl` for a body of JSON.
    fn post(&self, url: &str, body: &str) -> String {
        let path = url.strip_prefix("http://").and_then(|rest| rest.strip_prefix(SERVED));
        let transaction = path.and_then(|path| path.strip_prefix("/v1/transactions/"));
        let transaction = transaction.expect("the page calls a transaction of its own server");
        let address = self.served.as_ref().expect("the server runs");
        let answer = super::call(address, transaction, "", body);
        answer.split_once("\r\n\r\n").expect("an answer in HTTP").1.to_owned()
    }

    /// Runs a script of the page, if the compiler of TypeScript was fetched; otherwise does its purchase, and
    /// returns its output as the page has it.
    fn typescript(&self, script: &str) -> String {
        let address = self.served.as_ref().expect("the server runs");
        match Language::TypeScript.workshop() {
            Some(workshop) => {
                let name = format!("tutorial_{}", script.trim_end_matches(".ts"));
                workshop.run_with(&name, &[], &[("MINGLE_SERVED", address)])
            }
            None => {
                eprintln!("{script} is not run: the compiler of TypeScript was not fetched");
                let output = blocks().into_iter().find(|(_, text)| text.contains(script));
                let (_, text) = output.expect("the page shows its output");
                let all = commands(&text);
                let shown = all.into_iter().find(|(command, _)| command.ends_with(script));
                shown.expect("the page shows its output").1
            }
        }
    }

    /// Does the work of `buy.sh`.
    fn buy(&self, customer: &str, item: &str, count: &str, is_crashing: bool) -> String {
        self.database.execute(&format!(
            "BEGIN; UPDATE items SET stock = stock - {count} WHERE sku = '{item}'; \
             INSERT INTO orders (customer, item, count) VALUES ('{customer}', '{item}', {count}); \
             COMMIT"
        ));
        if is_crashing {
            return "Killed\n".to_owned();
        }
        let line = format!("bought {count} of {item}");
        self.redis(&["RPUSH", &format!("feed:{customer}"), &line]);
        String::new()
    }

    /// Returns the output of `redis-cli` for a command.
    fn redis(&self, command: &[&str]) -> String {
        let patience = Some(Duration::from_secs(30));
        let stream = TcpStream::connect(self.redis.addresses()[0]).expect("the server listens");
        stream.set_read_timeout(patience).expect("a deadline can be set");
        let mut request = format!("*{}\r\n", command.len());
        request.extend(command.iter().map(|word| format!("${}\r\n{word}\r\n", word.len())));
        (&stream).write_all(request.as_bytes()).expect("it is sent");
        let shown = answer(&mut BufReader::new(&stream));
        assert!(!shown.starts_with('-'), "{command:?}: {shown}");
        shown
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        if let Some(mut child) = self.background.take() {
            // The process may have ended already.
            let _ = child.kill().and_then(|()| child.wait());
        }
    }
}

/// Returns one answer of Redis, with a line for each item.
fn answer(stream: &mut impl BufRead) -> String {
    let mut head = String::new();
    stream.read_line(&mut head).expect("an answer in time");
    let (kind, rest) = head.trim_end().split_at(1);
    match (kind, rest.parse::<usize>()) {
        ("*", Ok(0)) => "\n".to_owned(),
        ("*", Ok(count)) => (0..count).map(|_| answer(stream)).collect(),
        ("$", Ok(size)) => {
            let mut text = vec![0; size + 2];
            stream.read_exact(&mut text).expect("the rest of the answer");
            String::from_utf8(text).expect("UTF-8").replace("\r\n", "\n")
        }
        ("-", _) => head,
        _ => format!("{rest}\n"),
    }
}

/// Replaces the ids of transactions, which differ each time.
fn without_id(text: &str) -> String {
    let is_id = |word: &str| {
        let digits = word.split_once('-').map(|(origin, _)| origin);
        digits.is_some_and(|it| it.len() == 32 && it.chars().all(|c| c.is_ascii_hexdigit()))
    };
    let line = |line: &str| {
        let words = line.split(' ').map(|word| if is_id(word) { "ID" } else { word });
        words.collect::<Vec<_>>().join(" ")
    };
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// Removes blanks at the ends of lines, and empty lines at the end.
fn tidied(text: &str) -> String {
    let line = |line: &str| match line
        .split_once("began at: ")
        .and_then(|(_, rest)| rest.split_once(", "))
    {
        Some((_, time)) => line.trim_end().replace(time.trim_end(), "TIME"),
        None => line.trim_end().to_owned(),
    };
    let lines: Vec<String> = text.lines().map(line).collect();
    lines.join("\n").trim_end().to_owned()
}

/// Returns the commands of a block, each with its output.
fn commands(text: &str) -> Vec<(&str, String)> {
    let mut commands: Vec<(&str, String)> = Vec::new();
    for line in text.lines() {
        match (line.strip_prefix("$ "), commands.last_mut()) {
            (Some(command), _) => commands.push((command, String::new())),
            (None, Some((_, shown))) => shown.extend([line, "\n"]),
            (None, None) => panic!("{line:?} stands before any command"),
        }
    }
    commands
}

/// Returns the scripts of the page in TypeScript, for the workshop: the client stands elsewhere there, and
/// the server is where the environment says.
pub fn scripts() -> Vec<(&'static str, String)> {
    let found = blocks().into_iter().filter(|(info, _)| *info == "ts");
    let adapted = found.map(|(_, text)| {
        let text = text.replace("\"./shop.js\"", "\"./clients/shop.js\"");
        text.replace(&format!("\"http://{SERVED}\""), "`http://${process.env[\"MINGLE_SERVED\"]}`")
    });
    ["tutorial_buy.ts"].into_iter().zip(adapted).collect()
}

fn with_full_feed(program: &str) -> String {
    let before = "    require customer.exists() else \"no such customer\" as customer;\n";
    let more =
        "    require Feed[customer.email].lines.size() < 100 else \"the feed is full\" as full;\n";
    program.replace(before, &format!("{before}{more}"))
}

fn write(folder: &Path, file: &str, text: &str) {
    fs::write(folder.join(file), text).expect("the file is written");
}

#[test]
fn every_command_shows_what_the_page_says() {
    let Some(database) = Database::alone("shop", example!("schema.sql")) else { return };
    let tokio = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let tokio = tokio.expect("threads can be started");
    let Some(redis) = tokio.block_on(mingle_services::private(Engine::Redis)) else { return };
    let variables = BTreeMap::from([
        ("DATABASE_URL", database.url.clone()),
        ("REDIS_URL", redis.url().to_owned()),
    ]);
    let folder = tempfile::tempdir().expect("a folder for the test");
    let mut player = Player { folder, database, redis, variables, background: None, served: None };
    let mut played = 0;
    for (info, text) in blocks() {
        let folder = player.folder.path();
        match info {
            "mingle" => {
                write(folder, "shop.mingle", &text);
                write(folder, "wrong.mingle", &with_full_feed(&text));
            }
            "toml" => write(folder, "mingle.toml", &text),
            "text" => {
                for (command, expected) in commands(&text) {
                    let shown = player.run(command);
                    assert_eq!(tidied(&shown), tidied(&expected), "{command}");
                    played += 1;
                }
            }
            _ => {}
        }
    }
    assert!(played > 20, "only {played} commands");
}
