//! The page in a headless Chromium, if one is installed. The test speaks the browser's debugging
//! protocol over two pipes.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};
use tempfile::TempDir;

use crate::http::client::{Served, TEXT};

/// The names of the browser's program in different packages.
const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];

/// The time after which a step counts as hanging.
const PATIENCE: Duration = Duration::from_mins(2);

fn chromium() -> Option<PathBuf> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&folders)
        .flat_map(|folder| NAMES.map(|name| folder.join(name)))
        .find(|path| path.is_file());
    if found.is_none() {
        println!("SKIPPED: no {} on this machine (Debian: chromium)", NAMES.join(", "));
    }
    found
}

/// A browser with one page; it ends with the test.
struct Browser {
    child: Child,
    to: File,
    from: Receiver<Json>,
    next: u64,
    session: Option<String>,
    _folder: TempDir,
}

impl Browser {
    fn open(chromium: &Path, url: &str) -> Self {
        let folder = tempfile::tempdir().expect("there is a folder");
        let pipes = [folder.path().join("to"), folder.path().join("from")];
        let made = Command::new("mkfifo").args(&pipes).status().expect("there is `mkfifo`");
        assert!(made.success());
        let [to, from] = pipes;
        // A pipe opened for reading and writing does not wait for its other end.
        let writer = OpenOptions::new().read(true).write(true).open(&to).expect("it is there");
        let script = "to=$1 from=$2; shift 2; exec \"$@\" 3<\"$to\" 4>\"$from\"";
        let child = Command::new("sh")
            .args(["-c", script, "sh"])
            .args([&to, &from])
            .arg(chromium)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
            .args(["--no-first-run", "--remote-debugging-pipe"])
            .arg(format!("--user-data-dir={}", folder.path().join("profile").display()))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            let reader = BufReader::new(File::open(&from).expect("it is there"));
            for message in reader.split(0) {
                let Ok(Ok(json)) = message.map(|bytes| serde_json::from_slice(&bytes)) else {
                    break;
                };
                if sender.send(json).is_err() {
                    break;
                }
            }
        });
        let mut browser =
            Self { child, to: writer, from: receiver, next: 0, session: None, _folder: folder };
        let target = browser.ask("Target.createTarget", json!({ "url": url }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let attached = browser.ask("Target.attachToTarget", attach);
        browser.session = attached["sessionId"].as_str().map(str::to_owned);
        browser
    }

    fn ask(&mut self, method: &str, params: Json) -> Json {
        self.next += 1;
        let mut message = json!({ "id": self.next, "method": method, "params": params });
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.to.write_all(&bytes).expect("it listens");
        let until = Instant::now() + PATIENCE;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let answer = self.from.recv_timeout(left);
            let answer = answer.unwrap_or_else(|error| panic!("{method}: {error}"));
            if answer["id"] == self.next {
                assert_eq!(answer["error"], Json::Null, "{method}");
                return answer["result"].clone();
            }
        }
    }

    /// Returns the value of an expression on the page.
    fn value(&mut self, expression: &str) -> Json {
        let params = json!({ "expression": expression, "returnByValue": true });
        let result = self.ask("Runtime.evaluate", params);
        assert_eq!(result["exceptionDetails"], Json::Null, "{expression}");
        result["result"]["value"].clone()
    }

    /// Waits until an expression is true.
    fn wait_for(&mut self, expression: &str) {
        let until = Instant::now() + PATIENCE;
        while self.value(expression) != json!(true) {
            if Instant::now() > until {
                let page = self.value("document.body.innerText");
                panic!("{expression} does not come true: {page}");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Fills in a form and sends it, as a person would.
    fn submit(&mut self, card: &str, fields: &[(&str, &str)]) {
        for (name, value) in fields {
            let field = format!("document.querySelector('#{card} input[name=\"{name}\"]')");
            self.value(&format!("{field}.value = {}", json!(value)));
        }
        self.value(&format!("document.querySelector('#{card} .answer').textContent = ''"));
        self.value(&format!("document.querySelector('#{card} button').click()"));
        self.wait_for(&format!("document.querySelector('#{card} .answer').textContent !== ''"));
    }

    fn text(&mut self, selector: &str) -> String {
        let text = self.value(&format!(
            "[...document.querySelectorAll('{selector}')].map((found) => found.textContent).join('|')"
        ));
        text.as_str().expect("it is text").to_owned()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_person_can_read_the_program_call_it_and_see_its_phases() {
    let Some(chromium) = chromium() else { return };
    let served = Served::with(TEXT, "[stores.feed]\ndistance = \"5ms\"", |_| {});
    served.ok("add", &json!({ "item": "tea", "count": 5 }));
    let mut page = Browser::open(&chromium, &format!("http://{}/", served.address));
    page.wait_for("document.body?.dataset.ready === 'true'");
    assert_eq!(page.text("#program"), TEXT);
    assert!(page.text("#transaction-buy .docs").contains("Sells items, and tells whoever"));
    assert!(page.text("#object-Item .docs").contains("What is sold."));
    assert_eq!(page.text("#transaction-buy li strong"), "stock (linearizable)|feed (causal)");

    let buy = [("param-item", "tea"), ("param-count", "2"), ("param-buyer", "ana")];
    page.submit("transaction-buy", &buy);
    let answer = page.text("#transaction-buy .answer");
    assert!(answer.starts_with("3  (") && answer.ends_with(" ms)"), "{answer}");
    let live = page.text("#transaction-buy li[data-state=\"committed\"] .live");
    let phases: Vec<&str> = live.split('|').collect();
    assert_eq!(phases.len(), 2, "{live}");
    assert!(phases.iter().all(|phase| phase.starts_with("committed in ")), "{live}");
    assert!(phases[1].contains("1 attempt, "), "{live}");
    assert_eq!(served.ok("count", &json!({ "item": "tea" })), json!(3));

    page.submit("transaction-buy", &[("param-count", "9")]);
    assert_eq!(
        page.text("#transaction-buy .answer[data-ok=\"false\"]").split("  (").next(),
        Some("require: sold out")
    );
    assert_eq!(
        page.value(
            "document.querySelectorAll('#transaction-buy li[data-state=\"failed\"]').length"
        ),
        1
    );

    page.submit("object-Item", &[("key", "tea")]);
    assert!(page.text("#object-Item .answer").contains("\"count\": 3"));
}
