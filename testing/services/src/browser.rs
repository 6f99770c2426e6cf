//! A headless Chromium for tests of pages, if one is installed. It speaks the browser's debugging protocol
//! over two pipes.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};
use tempfile::TempDir;

/// The names of the browser's program in different packages.
const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];

/// The time after which a step counts as hanging.
const PATIENCE: Duration = Duration::from_mins(2);

/// The time between two looks at a page.
const LOOK_EVERY: Duration = Duration::from_millis(20);

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

/// A browser with one page; it ends when this value is dropped.
///
/// # Examples
///
/// ```no_run
/// use mingle_services::Browser;
///
/// let Some(mut page) = Browser::open("http://127.0.0.1:8080/") else { return };
/// page.wait_for("document.body?.dataset.ready === 'true'");
/// assert_eq!(page.text("h1"), "shop");
/// ```
#[derive(Debug)]
pub struct Browser {
    child: Child,
    to: File,
    from: Receiver<Json>,
    next: u64,
    session: Option<String>,
    /// The exceptions that the page's scripts have thrown.
    thrown: Vec<String>,
    _folder: TempDir,
}

impl Browser {
    /// Opens a page. None if no browser is installed; the test is then skipped, and says so.
    ///
    /// # Panics
    ///
    /// If the browser does not start.
    pub fn open(url: &str) -> Option<Self> {
        let mut browser = Self::start(&chromium()?);
        let target = browser.ask("Target.createTarget", json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let attached = browser.ask("Target.attachToTarget", attach);
        browser.session = attached["sessionId"].as_str().map(str::to_owned);
        browser.ask("Runtime.enable", json!({}));
        browser.ask("Page.navigate", json!({ "url": url }));
        Some(browser)
    }

    fn start(chromium: &Path) -> Self {
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
            .args(["--no-first-run", "--disable-background-networking", "--disable-sync"])
            .arg("--remote-debugging-pipe")
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
        let (to, from) = (writer, receiver);
        Self { child, to, from, next: 0, session: None, thrown: Vec::new(), _folder: folder }
    }

    /// Sends a command of the debugging protocol; returns its result.
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
            if answer["method"] == "Runtime.exceptionThrown" {
                self.thrown.push(answer["params"]["exceptionDetails"].to_string());
            }
            if answer["id"] == self.next {
                assert_eq!(answer["error"], Json::Null, "{method}");
                return answer["result"].clone();
            }
        }
    }

    /// Returns the value of an expression on the page.
    ///
    /// # Panics
    ///
    /// If it throws, or if a script of the page has thrown.
    pub fn value(&mut self, expression: &str) -> Json {
        let params = json!({ "expression": expression, "returnByValue": true });
        let result = self.ask("Runtime.evaluate", params);
        assert_eq!(result["exceptionDetails"], Json::Null, "{expression}");
        assert!(self.thrown.is_empty(), "the page has thrown {:?}", self.thrown);
        result["result"]["value"].clone()
    }

    /// Waits until an expression is true.
    ///
    /// # Panics
    ///
    /// If it does not become true in two minutes; the message has the text of the page.
    pub fn wait_for(&mut self, expression: &str) {
        let until = Instant::now() + PATIENCE;
        while self.value(expression) != json!(true) {
            if Instant::now() > until {
                let page = self.value("document.body.innerText");
                panic!("{expression} does not come true: {page}");
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Returns the texts of all elements that a selector of CSS finds, separated by `|`.
    pub fn text(&mut self, selector: &str) -> String {
        let text = self.value(&format!(
            "[...document.querySelectorAll({})].map((found) => found.textContent).join('|')",
            json!(selector)
        ));
        text.as_str().unwrap_or_default().to_owned()
    }

    /// Types a value into the first field that a selector finds.
    pub fn fill(&mut self, selector: &str, value: &str) {
        self.value(&format!(
            "document.querySelector({}).value = {}",
            json!(selector),
            json!(value)
        ));
    }

    /// Clicks on the first element that a selector finds.
    pub fn click(&mut self, selector: &str) {
        self.value(&format!("document.querySelector({}).click()", json!(selector)));
    }

    /// Sets the size of the window, in pixels.
    pub fn resize(&mut self, width: u32, height: u32) {
        let size =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.ask("Emulation.setDeviceMetricsOverride", size);
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
