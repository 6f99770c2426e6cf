//! Clients that call `mingle serve`.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};

use super::language::Language;
use super::{mingle, root};

/// A server of a program; dropping it ends the server.
pub struct Served {
    server: Child,
    pub url: String,
}

impl Served {
    /// Serves a program at a free port, with its data in a folder.
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
        let program = root().join("crates/gen/tests/odd.mingle");
        let served = Served::start(&program, folder.path(), &[]);
        workshop.run("values", &[&served.url]);
    }
}

#[test]
fn calls_take_effect_once_and_sessions_see_them() {
    for language in Language::ALL {
        let Some(workshop) = language.workshop() else { continue };
        let folder = tempfile::tempdir().expect("a folder for the test");
        let path = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]);
        let made = made.expect("a certificate");
        // The digest is the SHA-256 of the token `till`.
        let tokens = "[[tokens]]\nname = \"till\"\ntransactions = [\"*\"]\nobjects = [\"*\"]\n\
                      sha256 = \"a64e98ff18a83009e15ef5bf714722bffd0a669d9c2700cf7ccd9ee625dc5733\"\n";
        for (name, text) in [
            ("tokens.toml", tokens),
            ("cert.pem", &made.cert.pem()),
            ("key.pem", &made.signing_key.serialize_pem()),
        ] {
            std::fs::write(path(name), text).expect("the file is written");
        }
        let (tokens, cert, key) = (path("tokens.toml"), path("cert.pem"), path("key.pem"));
        let words = ["--tokens", &tokens, "--tls-cert", &cert, "--tls-key", &key];
        let program = root().join("examples/bank.mingle");
        let served = Served::start(&program, &folder.path().join("data"), &words);
        assert!(served.url.starts_with("https://127.0.0.1:"), "{}", served.url);
        // Node and OpenSSL each have a variable for trusted certificates.
        let trusted = [("NODE_EXTRA_CA_CERTS", &*cert), ("SSL_CERT_FILE", &*cert)];
        workshop.run_with("served", &[&served.url, "till"], &trusted);
    }
}
