//! Clients call `mingle serve`.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};

use super::language::Language;
use super::{mingle, root};

/// A server of a program; it ends when this is dropped.
pub struct Served {
    server: Child,
    pub url: String,
}

impl Served {
    /// Serves a program at a port that is free, its data in a folder.
    pub fn start(program: &Path, data: &Path, more: &[&str]) -> Self {
        let mut command = mingle();
        command.arg("serve").arg(program).args(["--listen", "127.0.0.1:0", "--data"]).arg(data);
        command.args(more).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut server = command.spawn().expect("the server starts");
        let mut line = String::new();
        let out = server.stdout.as_mut().expect("it is piped");
        BufReader::new(out).read_line(&mut line).expect("it prints a line");
        let url = line.trim_end().strip_prefix("listening on ").unwrap_or_default().to_owned();
        let served = Self { server, url };
        assert!(served.url.starts_with("http"), "{line:?}");
        served
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.server.kill().and_then(|()| self.server.wait()).expect("the server can be ended");
    }
}

#[test]
fn values_come_back_as_they_went() {
    for language in Language::ALL {
        let Some(workshop) = language.workshop() else { continue };
        let folder = tempfile::tempdir().expect("a folder for the test");
        let program = root().join("crates/mingle-gen/tests/odd.mingle");
        let served = Served::start(&program, folder.path(), &[]);
        workshop.run("values", &[&served.url]);
    }
}

#[test]
fn calls_take_effect_once_and_sessions_see_them() {
    for language in Language::ALL {
        let Some(workshop) = language.workshop() else { continue };
        let folder = tempfile::tempdir().expect("a folder for the test");
        // The SHA-256 of `till`.
        let tokens = "[[tokens]]\nname = \"till\"\ntransactions = [\"*\"]\nobjects = [\"*\"]\nsha256 = \
                      \"a64e98ff18a83009e15ef5bf714722bffd0a669d9c2700cf7ccd9ee625dc5733\"\n";
        let file = folder.path().join("tokens.toml");
        std::fs::write(&file, tokens).expect("the tokens are written");
        let program = root().join("examples/bank.mingle");
        let words = ["--tokens", file.to_str().expect("UTF-8")];
        let served = Served::start(&program, &folder.path().join("data"), &words);
        workshop.run("served", &[&served.url, "till"]);
    }
}
