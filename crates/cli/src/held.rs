//! The server that holds a data folder: other commands call it instead of opening the folder.
//!
//! `mingle serve` and `mingle dev` write their address to the file [`FILE`] in the folder. A command that
//! finds it, and a Mingle server at that address, sends its call there, because an embedded store belongs to one process.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use mingle::Listing;
use mingle_lang::Program;
use mingle_model::{Tree, Value, json};
use serde_json::Value as Json;

use crate::exit::{Exit, Failure};

/// The header of a session.
const SESSION: &str = "mingle-session";

/// The file with the address.
const FILE: &str = "served-at";

/// The time to connect to a server of this machine.
const CONNECT_MAX: Duration = Duration::from_secs(2);

/// The longest wait for an answer; the deadlines of calls are shorter.
const ANSWER_MAX: Duration = Duration::from_mins(10);

/// The sign that a server has the folder, until it is dropped.
pub struct Sign(Option<PathBuf>);

impl Sign {
    /// Writes the address of a server to a folder, if there is one.
    pub fn put(data: &Path, url: &str) -> Self {
        let file = data.join(FILE);
        // Without the file, other commands find the folder locked, as before.
        let is_put = data.is_dir() && fs::write(&file, url).is_ok();
        Self(is_put.then_some(file))
    }
}

impl Drop for Sign {
    fn drop(&mut self) {
        if let Some(file) = &self.0 {
            // A file that stays is found to lead nowhere.
            fs::remove_file(file).ok();
        }
    }
}

/// A server that holds a folder, and the session of the calls to it.
pub struct Holder {
    address: SocketAddr,
    session: Mutex<Option<String>>,
}

/// The reason why the server has not done as asked.
#[derive(Debug)]
pub struct Refused {
    /// The code of the error: that of the `require` that failed, or the error's own.
    pub code: String,
    /// True if it is the code of a `require`.
    pub is_require: bool,
    /// One line, without a full stop.
    pub message: String,
    /// The exit code for the caller.
    pub exit: Exit,
}

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Self {
        let Refused { code, is_require, message, exit } = refused;
        let message = if is_require { format!("{message} [{code}]") } else { message };
        Self { message, exit }
    }
}

impl Holder {
    /// Finds the server that holds a folder. None if there is none, or if it only speaks TLS.
    pub fn of(data: &Path) -> Option<Self> {
        let url = fs::read_to_string(data.join(FILE)).ok()?;
        let mut address: SocketAddr = url.trim().strip_prefix("http://")?.parse().ok()?;
        if address.ip().is_unspecified() {
            address.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
        }
        let holder = Self { address, session: Mutex::default() };
        // A server that was killed leaves the file, and another program may have its port.
        let (status, text) = holder.exchange("GET", "/healthz", "").ok()?;
        (status == 200 && text == "ok\n").then_some(holder)
    }

    /// Returns the server's address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Calls a transaction; returns its result.
    pub fn call(
        &self,
        program: &Program,
        transaction: &str,
        arguments: &[Value],
        until: Option<&str>,
    ) -> Result<Tree, Refused> {
        let params = program.plan(transaction).map_or(&[][..], |plan| plan.params.as_slice());
        let members = params.iter().zip(arguments).map(|((name, param_type), value)| {
            let value = json::to_text(program.schema(), value, param_type);
            format!("{}:{value}", Json::from(&**name))
        });
        let body = format!("{{{}}}", members.collect::<Vec<_>>().join(","));
        let until = until.map_or_else(String::new, |store| format!("?until={}", encoded(store)));
        let path = format!("/v1/transactions/{}{until}", encoded(transaction));
        let (status, answer) = self.request("POST", &path, &body)?;
        match code(status, &answer) {
            Some(code) => Err(self.refused(code, &answer.to_serde())),
            None => Ok(answer.member("result").cloned().unwrap_or(Tree::Null)),
        }
    }

    /// Returns an object's fields, or null if it does not exist. The program has this kind of objects.
    pub fn show(&self, kind: &str, key: &str, limit: usize) -> Result<Tree, Refused> {
        let path = format!("/v1/objects/{}/{}?limit={limit}", encoded(kind), encoded(key));
        let (status, answer) = self.request("GET", &path, "")?;
        match code(status, &answer) {
            Some("not-found") => Ok(Tree::Null),
            Some(code) => Err(self.refused(code, &answer.to_serde())),
            None => Ok(answer),
        }
    }

    /// Returns a page of the objects of a kind, as the server gives it. The program has this kind of objects.
    pub fn list(&self, listing: &Listing, limit: usize) -> Result<Tree, Refused> {
        let Listing { kind, after, most } = listing;
        let after =
            after.as_ref().map_or_else(String::new, |after| format!("&after={}", encoded(after)));
        let path = format!("/v1/objects/{}?count={most}&limit={limit}{after}", encoded(kind));
        let (status, answer) = self.request("GET", &path, "")?;
        match code(status, &answer) {
            Some(code) => Err(self.refused(code, &answer.to_serde())),
            None => Ok(answer),
        }
    }

    fn refused(&self, code: &str, problem: &Json) -> Refused {
        let require = problem["require_code"].as_str();
        let own = match code {
            "invalid-argument" | "not-found" => "misuse".to_owned(),
            other => other.replace('-', "_"),
        };
        Refused {
            code: require.map_or(own, str::to_owned),
            is_require: require.is_some(),
            message: message(problem, self.address),
            exit: exit(code),
        }
    }

    /// Makes a request; returns the status and the body, which is JSON.
    fn request(&self, method: &str, path: &str, body: &str) -> Result<(u16, Tree), Refused> {
        let fail = |why: String| Refused {
            message: format!("the server at {} holds the data, and {why}", self.address),
            code: "store".to_owned(),
            is_require: false,
            exit: Exit::Store,
        };
        let answered = self.exchange(method, path, body);
        let (status, text) = answered.map_err(|error| fail(format!("does not answer: {error}")))?;
        let answer = Tree::parse(text.as_bytes()).map_err(|_| fail("answers no JSON".into()))?;
        Ok((status, answer))
    }

    /// Makes a request; returns the status and the body of the answer.
    fn exchange(&self, method: &str, path: &str, body: &str) -> std::io::Result<(u16, String)> {
        let mut stream = TcpStream::connect_timeout(&self.address, CONNECT_MAX)?;
        stream.set_read_timeout(Some(ANSWER_MAX))?;
        stream.set_write_timeout(Some(ANSWER_MAX))?;
        let (address, length) = (self.address, body.len());
        let session = self.session.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let session = session.map_or_else(String::new, |token| format!("{SESSION}: {token}\r\n"));
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n{session}\
             content-type: application/json\r\ncontent-length: {length}\r\n\r\n"
        );
        stream.write_all(head.as_bytes())?;
        stream.write_all(body.as_bytes())?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        let answer = String::from_utf8_lossy(&answer);
        let wrong = || std::io::Error::other("this is no answer in HTTP");
        let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(wrong)?;
        let headers = head.lines().filter_map(|line| line.split_once(": "));
        let mut tokens = headers.filter(|(name, _)| name.eq_ignore_ascii_case(SESSION));
        if let Some((_, token)) = tokens.next() {
            *self.session.lock().unwrap_or_else(PoisonError::into_inner) = Some(token.to_owned());
        }
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        Ok((status.ok_or_else(wrong)?, body.to_owned()))
    }
}

/// Returns the code of an answer that is an error.
fn code(status: u16, answer: &Tree) -> Option<&str> {
    match answer.member("code") {
        Some(Tree::String(code)) if status != 200 => Some(code),
        _ => None,
    }
}

fn message(problem: &Json, address: SocketAddr) -> String {
    let detail = problem["detail"].as_str().unwrap_or("the call failed");
    match problem["code"].as_str() {
        Some("unauthenticated") => format!(
            "the server at {address} holds the data, and asks for a token: call it over HTTP, or stop it"
        ),
        _ => detail.to_owned(),
    }
}

/// Returns the exit code for a code of the server's problems, as a call in this process would have.
fn exit(code: &str) -> Exit {
    match code {
        "require"
        | "exists"
        | "taken"
        | "limit"
        | "deadline"
        | "constraint-conflict"
        | "constraint-violated" => Exit::Require,
        "conflict" | "waiting" | "overloaded" | "in-progress" => Exit::Conflict,
        "unknown" | "result-gone" => Exit::Unknown,
        "store" | "parked" | "incomplete" | "shutting-down" | "timeout" => Exit::Store,
        _ => Exit::Usage,
    }
}

/// Encodes a part of a path with percent signs.
fn encoded(text: &str) -> String {
    use std::fmt::Write as _;
    let mut encoded = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            write!(encoded, "%{byte:02X}").expect("writing to a string does not fail");
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_leads_nowhere_is_ignored() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(Holder::of(folder.path()).is_none(), "there is no file");
        // A port that was free a moment ago.
        let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let url = format!("http://{}", free.local_addr().expect("it has an address"));
        drop(free);
        for text in [url.as_str(), "https://127.0.0.1:1", "", "http://nowhere"] {
            let sign = Sign::put(folder.path(), text);
            assert!(Holder::of(folder.path()).is_none(), "{text}");
            drop(sign);
            assert!(!folder.path().join(FILE).exists());
        }
    }

    #[test]
    fn paths_are_encoded() {
        assert_eq!(encoded("a/b c?ä"), "a%2Fb%20c%3F%C3%A4");
    }
}
