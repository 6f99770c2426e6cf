//! A client of `mingle lsp`, over its pipes.

use std::io::{BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use mingle_lang::diagnostic::apply_edits;
use mingle_lang::syntax::lex;
use mingle_lsp::frame;
use serde_json::{Value, json};

/// The time limit for an answer on a busy machine.
const PATIENCE: Duration = Duration::from_mins(2);

pub const URI: &str = "file:///tmp/program.mingle";

/// A server and its pipes.
pub struct Client {
    child: Child,
    input: Option<ChildStdin>,
    messages: Receiver<Value>,
    next_id: i64,
}

impl Client {
    /// Starts a server.
    pub fn start() -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_mingle"))
            .arg("lsp")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command starts");
        let output = child.stdout.take().expect("it is piped");
        let (sender, messages) = channel();
        // The thread ends with the server's output.
        thread::spawn(move || {
            let mut output = BufReader::new(output);
            while let Ok(Some(body)) = frame::read(&mut output) {
                let message = serde_json::from_slice(&body).expect("the server sends JSON");
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let input = child.stdin.take();
        Self { child, input, messages, next_id: 0 }
    }

    /// Starts a server and performs the handshake.
    pub fn greeted() -> Self {
        let mut client = Self::start();
        client.ask("initialize", json!({ "capabilities": {} }));
        client.tell("initialized", json!({}));
        client
    }

    /// Sends bytes as they are.
    pub fn send_raw(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().expect("the input is open");
        input.write_all(bytes).and_then(|()| input.flush()).expect("the server reads");
    }

    pub fn send(&mut self, message: &Value) {
        let input = self.input.as_mut().expect("the input is open");
        frame::write(input, message).expect("the server reads");
    }

    pub fn tell(&mut self, method: &str, params: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    /// Returns the next message from the server.
    pub fn next(&mut self) -> Value {
        self.messages.recv_timeout(PATIENCE).expect("the server answers")
    }

    /// Returns the answer to a request; earlier messages are dropped.
    pub fn answer(&mut self, method: &str, params: Value) -> Value {
        self.next_id += 1;
        let id = self.next_id;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        loop {
            let message = self.next();
            if message["id"] == id {
                return message;
            }
        }
    }

    /// Returns the result of a request that succeeds.
    pub fn ask(&mut self, method: &str, params: Value) -> Value {
        let mut answer = self.answer(method, params);
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].take()
    }

    /// Opens the document and returns its diagnostics.
    pub fn open(&mut self, text: &str) -> Vec<Value> {
        let document = json!({ "uri": URI, "languageId": "mingle", "version": 1, "text": text });
        self.tell("textDocument/didOpen", json!({ "textDocument": document }));
        self.diagnostics()
    }

    /// Returns the diagnostics that are published next.
    pub fn diagnostics(&mut self) -> Vec<Value> {
        loop {
            let mut message = self.next();
            if message["method"] == "textDocument/publishDiagnostics" {
                let Value::Array(found) = message["params"]["diagnostics"].take() else {
                    panic!("diagnostics are a list");
                };
                return found;
            }
        }
    }

    /// Shuts the server down; returns the exit code.
    pub fn end(mut self) -> Option<i32> {
        self.ask("shutdown", Value::Null);
        self.tell("exit", Value::Null);
        self.wait()
    }

    /// Closes the input and waits for the end; returns the exit code.
    pub fn wait(mut self) -> Option<i32> {
        self.input.take();
        let status = self.child.wait().expect("the server ends");
        status.code()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // A server that has ended cannot be killed, and need not be.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Returns the position of a byte, in UTF-16.
pub fn position(text: &str, byte: usize) -> Value {
    let before = &text[..byte];
    let line = before.matches('\n').count();
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    json!({ "line": line, "character": before[start..].encode_utf16().count() })
}

/// Returns the byte at a position, in UTF-16.
pub fn byte(text: &str, position: &Value) -> usize {
    let line = position["line"].as_u64().expect("a number") as usize;
    let start: usize = text.split_inclusive('\n').take(line).map(str::len).sum();
    let units = position["character"].as_u64().expect("a number") as usize;
    let line: Vec<u16> = text[start..].encode_utf16().take(units).collect();
    start + String::from_utf16(&line).expect("whole characters").len()
}

/// Applies edits of the protocol to a text; the edits must not overlap.
pub fn edited(text: &str, edits: &Value) -> String {
    let edits = edits.as_array().expect("a list");
    let mut found: Vec<(usize, usize, &str)> = edits
        .iter()
        .map(|edit| {
            let range = &edit["range"];
            let new = edit["newText"].as_str().expect("text");
            (byte(text, &range["start"]), byte(text, &range["end"]), new)
        })
        .collect();
    found.sort_unstable();
    let mut text = text.to_owned();
    for (start, end, new) in found.into_iter().rev() {
        text.replace_range(start..end, new);
    }
    text
}

/// Returns the parameters of a request about a position.
pub fn at(text: &str, byte: usize) -> Value {
    json!({ "textDocument": { "uri": URI }, "position": position(text, byte) })
}

/// Applies a help of `mingle check` to a text.
pub fn helped(text: &str, help: &mingle_lang::diagnostic::Help) -> String {
    apply_edits(&lex(text), &help.edits)
}
