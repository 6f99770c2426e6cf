//! The life cycle of a connection: messages in, messages out, from `initialize` to `exit`.

mod capabilities;
mod programs;
mod requests;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use gen_lsp_types::{
    DidCloseTextDocumentParams, DidOpenTextDocumentParams, MessageType, Uri,
    VersionedTextDocumentIdentifier,
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::diagnostics::publish;
use crate::document::{Change, Document};
use crate::files::{Disk, import_lines};
use crate::rpc::{self, ErrorCode, Failure, Incoming};
use crate::text::Encoding;

/// The parameters of `textDocument/didChange`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Changed {
    text_document: VersionedTextDocumentIdentifier,
    content_changes: Vec<Change>,
}

/// The state of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Before `initialize`.
    New,
    Running,
    /// After `shutdown`.
    Stopping,
    /// After `exit`; true if `shutdown` came before.
    Ended(bool),
}

/// A language server.
///
/// # Examples
///
/// ```
/// let mut server = mingle_lsp::Server::default();
/// server.receive(br#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{}}}"#);
/// let answer = server.poll().unwrap();
/// assert_eq!(answer["result"]["serverInfo"]["name"], "mingle");
/// assert!(server.poll().is_none());
/// ```
#[derive(Debug)]
pub struct Server {
    state: State,
    /// Messages that are not processed yet.
    queue: VecDeque<Incoming>,
    /// Messages for the client.
    outbox: VecDeque<Value>,
    documents: BTreeMap<String, Document>,
    encoding: Encoding,
    /// True if the client shows pages that explain codes.
    explains: bool,
    /// The files that are not open.
    disk: Disk,
    /// The addresses of files that are not open and for which the client has diagnostics.
    foreign: BTreeSet<String>,
}

impl Default for Server {
    fn default() -> Self {
        Self {
            state: State::New,
            queue: VecDeque::new(),
            outbox: VecDeque::new(),
            documents: BTreeMap::new(),
            encoding: Encoding::default(),
            explains: false,
            disk: Disk::default(),
            foreign: BTreeSet::new(),
        }
    }
}

impl Server {
    /// Creates a server that reads imported files which are not open from a disk.
    pub fn with_disk(disk: Disk) -> Self {
        Self { disk, ..Self::default() }
    }

    /// Takes the body of a message. A caller with several messages should pass all of them before
    /// the next [`Self::poll`]: a cancelled request then costs nothing, and after several edits
    /// only the last version is checked.
    pub fn receive(&mut self, body: &[u8]) {
        match rpc::read(body) {
            Ok(Incoming::Response) => {}
            Ok(Incoming::Notification { method, params }) if method == "$/cancelRequest" => {
                self.cancel(&params["id"]);
            }
            Ok(message) => self.queue.push_back(message),
            Err(answer) => self.outbox.push_back(answer),
        }
    }

    /// Returns the next message for the client; none when there is nothing left to do.
    pub fn poll(&mut self) -> Option<Value> {
        loop {
            if let Some(message) = self.outbox.pop_front() {
                return Some(message);
            }
            match self.queue.pop_front() {
                Some(message) => self.handle(message),
                None => return self.next_diagnostics(),
            }
        }
    }

    /// Returns the exit code of the process, once the client has asked it to end.
    pub fn exit_code(&self) -> Option<u8> {
        match self.state {
            State::Ended(was_shut_down) => Some(u8::from(!was_shut_down)),
            _ => None,
        }
    }

    fn cancel(&mut self, cancelled: &Value) {
        let is_it =
            |message: &Incoming| matches!(message, Incoming::Request { id, .. } if id == cancelled);
        // A request that was already answered is ignored.
        if let Some(at) = self.queue.iter().position(is_it) {
            self.queue.remove(at);
            let failure = Failure::new(ErrorCode::RequestCancelled, "the client took it back");
            self.outbox.push_back(rpc::response(cancelled.clone(), Err(failure)));
        }
    }

    fn handle(&mut self, message: Incoming) {
        match message {
            Incoming::Request { id, method, params } => {
                let answer = self.answer(&method, params);
                self.outbox.push_back(rpc::response(id, answer));
            }
            Incoming::Notification { method, params } => {
                if let Err(failure) = self.notice(&method, params) {
                    self.log(&format!("{method}: {}", failure.message));
                }
            }
            Incoming::Response => {}
        }
    }

    fn answer(&mut self, method: &str, params: Value) -> rpc::Answer {
        match (self.state, method) {
            (State::New, "initialize") => {
                let params = rpc::params(params)?;
                self.state = State::Running;
                Ok(self.initialize(&params))
            }
            (State::New, _) => Err(Failure::new(
                ErrorCode::ServerNotInitialized,
                "expected `initialize` before anything else",
            )),
            (_, "initialize") => {
                Err(Failure::new(ErrorCode::InvalidRequest, "the server is initialized already"))
            }
            (State::Running, "shutdown") => {
                self.state = State::Stopping;
                Ok(Value::Null)
            }
            (State::Running, _) => self.request(method, params),
            (State::Stopping | State::Ended(_), _) => Err(Failure::new(
                ErrorCode::InvalidRequest,
                "the server is shut down and only waits for `exit`",
            )),
        }
    }

    /// Handles a notification. Unknown notifications, and those before `initialize`, are dropped,
    /// as the protocol requires.
    fn notice(&mut self, method: &str, params: Value) -> Result<(), Failure> {
        if method == "exit" {
            self.state = State::Ended(self.state == State::Stopping);
            return Ok(());
        }
        if self.state != State::Running {
            return Ok(());
        }
        match method {
            "textDocument/didOpen" => {
                let DidOpenTextDocumentParams { text_document: opened } = rpc::params(params)?;
                let (uri, version) = (opened.uri, opened.version);
                let key = uri.as_ref().to_owned();
                let document = Document::new(uri, version, opened.text, self.encoding);
                self.documents.insert(key, document);
                self.files_changed();
            }
            "textDocument/didChange" => {
                let params: Changed = rpc::params(params)?;
                let document = self.document(&params.text_document.text_document_identifier.uri)?;
                document.version = params.text_document.version;
                let before = import_lines(document.text());
                for change in params.content_changes {
                    document.change(change);
                }
                let is_same = before == import_lines(document.text());
                self.text_changed(is_same);
            }
            "textDocument/didSave" | "workspace/didChangeWatchedFiles" => self.files_changed(),
            "textDocument/didClose" => {
                let params: DidCloseTextDocumentParams = rpc::params(params)?;
                let uri = params.text_document.uri;
                self.document(&uri)?;
                self.documents.remove(uri.as_ref());
                self.forget_others();
                self.files_changed();
                let empty = json!({ "uri": uri, "diagnostics": [] });
                self.outbox.push_back(rpc::notification("textDocument/publishDiagnostics", empty));
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns an open document.
    fn document(&mut self, uri: &Uri) -> Result<&mut Document, Failure> {
        self.documents.get_mut(uri.as_ref()).ok_or_else(|| {
            let message = format!("no document `{}` is open", uri.as_ref());
            Failure::new(ErrorCode::InvalidParams, message)
        })
    }

    fn log(&mut self, message: &str) {
        let params = json!({ "type": MessageType::Error, "message": message });
        self.outbox.push_back(rpc::notification("window/logMessage", params));
    }

    /// Returns the diagnostics of a document whose newest version the client does not have.
    fn next_diagnostics(&mut self) -> Option<Value> {
        if self.state != State::Running {
            return None;
        }
        let mut documents = self.documents.iter();
        let (key, _) = documents.find(|(_, document)| !document.is_published)?;
        let key = key.clone();
        self.check(&key);
        let document = self.documents.get_mut(&key)?;
        document.is_published = true;
        let params = publish(document, self.explains);
        self.publish_others(&key);
        Some(rpc::notification("textDocument/publishDiagnostics", params))
    }
}
