//! The editing of messages in both directions, without I/O.

use std::collections::{BTreeMap, VecDeque};
use std::mem::take;

use crate::limits::CONTROLS_MAX;

/// The beginning and the end of an announcement's text.
const ANNOUNCED: (&str, &str) = ("/* mingle: one pipeline of ", " */");

/// The server's message that it is ready for the next request; the driver ignores the transaction
/// state in it.
const READY: &[u8] = b"Z\0\0\0\x05T";

/// Returns the statement that announces a pipeline of `count` requests.
pub fn announcement(count: usize) -> String {
    format!("{}{count}{}", ANNOUNCED.0, ANNOUNCED.1)
}

/// A queue of bytes.
#[derive(Default)]
pub struct Buffer {
    all: Vec<u8>,
    taken: usize,
}

impl Buffer {
    pub fn bytes(&self) -> &[u8] {
        &self.all[self.taken..]
    }

    pub fn len(&self) -> usize {
        self.all.len() - self.taken
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn consume(&mut self, count: usize) {
        self.taken += count;
        if self.is_empty() {
            self.all.clear();
            self.taken = 0;
        } else if self.taken > self.all.len() / 2 {
            self.all.drain(..take(&mut self.taken));
        }
    }

    fn put(&mut self, bytes: &[u8]) {
        self.all.extend_from_slice(bytes);
    }

    fn message(&mut self, kind: u8, body: &[&[u8]]) {
        let length = 4 + body.iter().map(|part| part.len()).sum::<usize>();
        self.all.push(kind);
        self.put(&u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes());
        for part in body {
            self.put(part);
        }
    }

    /// Returns the length of the first message, once it is complete; `header` is the number of
    /// bytes before its length.
    fn first(&self, header: usize) -> Option<usize> {
        let length = self.bytes().get(header..header + 4)?.first_chunk()?;
        let length = header + (u32::from_be_bytes(*length) as usize).max(4);
        (self.len() >= length).then_some(length)
    }
}

/// A simple query that is sent as a prepared statement.
struct Control {
    sql: Vec<u8>,
    /// True if its `Parse` was sent with it and is not answered yet.
    is_asked: bool,
}

/// A request of the driver's that is not answered yet.
enum Request {
    /// It has a synchronisation point of its own.
    Own,
    /// The filter answers it.
    Announcement,
    /// A request of a pipeline; its answer ends with one of these messages.
    Held { ends: &'static [u8], control: Option<Control> },
    /// The last request of a pipeline.
    Last { control: Option<Control> },
}

/// The editor of both directions.
#[derive(Default)]
pub struct Filter {
    /// True if the first message, which has no kind, was sent.
    has_begun: bool,
    sent: Buffer,
    received: Buffer,
    /// Requests of the announced pipeline that are yet to be sent.
    announced: usize,
    requests: VecDeque<Request>,
    /// The kind of the last message since the last request ended.
    last_kind: u8,
    /// True if a request of the pipeline at the front has failed.
    has_failed: bool,
    /// The simple queries of pipelines: the number of each, and true if the server has prepared it.
    controls: BTreeMap<Vec<u8>, (usize, bool)>,
    next_control: usize,
}

impl Filter {
    /// Takes bytes from the driver; appends those for the server, and immediate answers for the
    /// driver.
    pub fn send(&mut self, bytes: &[u8], server: &mut Buffer, driver: &mut Buffer) {
        self.sent.put(bytes);
        loop {
            let header = usize::from(self.has_begun);
            let Some(length) = self.sent.first(header) else { return };
            let mut sent = take(&mut self.sent);
            let message = &sent.bytes()[..length];
            if self.has_begun {
                self.send_one(message, server, driver);
            } else {
                server.put(message);
                self.has_begun = true;
            }
            sent.consume(length);
            self.sent = sent;
        }
    }

    fn send_one(&mut self, message: &[u8], server: &mut Buffer, driver: &mut Buffer) {
        let (kind, body) = (message[0], &message[5..]);
        let is_last = self.announced == 1;
        match kind {
            b'Q' if self.announced == 0 => {
                self.announced = announced(body).unwrap_or(0);
                if self.announced == 0 {
                    server.put(message);
                    self.requests.push_back(Request::Own);
                } else {
                    self.requests.push_back(Request::Announcement);
                    self.answer_announcements(driver);
                }
            }
            b'Q' => {
                let control = Some(self.send_control(body, server));
                if is_last {
                    server.message(b'S', &[]);
                }
                self.end_request(b"CI", control);
            }
            b'S' if self.announced == 0 => {
                server.put(message);
                self.requests.push_back(Request::Own);
            }
            b'S' => {
                if is_last {
                    server.put(message);
                }
                let ends: &[u8] = match self.last_kind {
                    b'D' => b"Tn",
                    b'P' => b"1",
                    b'B' => b"2",
                    b'C' => b"3",
                    _ => b"CIs",
                };
                self.end_request(ends, None);
            }
            _ => {
                self.last_kind = kind;
                server.put(message);
            }
        }
    }

    fn end_request(&mut self, ends: &'static [u8], control: Option<Control>) {
        self.announced -= 1;
        self.requests.push_back(match self.announced {
            0 => Request::Last { control },
            _ => Request::Held { ends, control },
        });
    }

    /// Sends a simple query as a prepared statement.
    fn send_control(&mut self, body: &[u8], server: &mut Buffer) -> Control {
        let sql = body.strip_suffix(b"\0").unwrap_or(body);
        let known = self.controls.get(sql).copied();
        let (name, is_asked) = match known {
            Some((number, true)) => (name_of(number, sql), false),
            None if self.controls.len() < CONTROLS_MAX => {
                let number = self.next_control;
                self.next_control += 1;
                self.controls.insert(sql.to_owned(), (number, false));
                (name_of(number, sql), true)
            }
            // Its answer is still pending, or there are too many: the statement is not kept.
            _ => {
                server.message(b'P', &[b"\0", sql, b"\0\0\0"]);
                (String::new(), false)
            }
        };
        if is_asked {
            server.message(b'P', &[name.as_bytes(), b"\0", sql, b"\0\0\0"]);
        }
        server.message(b'B', &[b"\0", name.as_bytes(), b"\0", &[0; 6]]);
        server.message(b'E', &[&[0; 5]]);
        Control { sql: sql.to_owned(), is_asked }
    }

    /// Takes bytes from the server; appends those for the driver.
    pub fn receive(&mut self, bytes: &[u8], driver: &mut Buffer) {
        self.received.put(bytes);
        while let Some(length) = self.received.first(1) {
            let mut received = take(&mut self.received);
            self.receive_one(&received.bytes()[..length], driver);
            received.consume(length);
            self.received = received;
        }
    }

    fn receive_one(&mut self, message: &[u8], driver: &mut Buffer) {
        let kind = message[0];
        match self.requests.front_mut() {
            // The message is about the connection.
            _ if matches!(kind, b'N' | b'A' | b'S') => driver.put(message),
            None | Some(Request::Announcement) => driver.put(message),
            Some(Request::Own) => {
                driver.put(message);
                if kind == b'Z' {
                    self.pop(driver);
                }
            }
            Some(
                Request::Held { control: Some(control), .. }
                | Request::Last { control: Some(control) },
            ) if matches!(kind, b'1' | b'2') => {
                if kind == b'1'
                    && std::mem::take(&mut control.is_asked)
                    && let Some((_, is_prepared)) = self.controls.get_mut(&control.sql)
                {
                    *is_prepared = true;
                }
            }
            Some(Request::Held { ends, .. }) => match kind {
                b'Z' => self.skip(driver, message),
                _ => {
                    driver.put(message);
                    self.has_failed |= kind == b'E';
                    if ends.contains(&kind) {
                        driver.put(READY);
                        self.pop(driver);
                    }
                }
            },
            Some(Request::Last { .. }) => {
                driver.put(message);
                if kind == b'Z' {
                    self.pop(driver);
                }
            }
        }
    }

    /// Handles `ReadyForQuery` before the end of the pipeline: the server has skipped the requests
    /// behind the front one.
    fn skip(&mut self, driver: &mut Buffer, message: &[u8]) {
        if !take(&mut self.has_failed) {
            // A server does not send this. The driver, which expects an answer, will report the
            // mismatch.
            driver.put(message);
            return self.pop(driver);
        }
        driver.put(READY);
        self.pop(driver);
        loop {
            match self.requests.front() {
                Some(Request::Held { .. }) => {
                    skipped(driver);
                    driver.put(READY);
                    self.pop(driver);
                }
                Some(Request::Last { .. }) => {
                    skipped(driver);
                    driver.put(message);
                    return self.pop(driver);
                }
                _ => return,
            }
        }
    }

    /// Removes the answered request at the front.
    fn pop(&mut self, driver: &mut Buffer) {
        let ended = self.requests.pop_front();
        if let Some(Request::Held { control, .. } | Request::Last { control }) = ended
            && let Some(control) = control.filter(|control| control.is_asked)
        {
            // The request was skipped, so the server has not prepared it.
            self.controls.remove(&control.sql);
        }
        self.answer_announcements(driver);
    }

    fn answer_announcements(&mut self, driver: &mut Buffer) {
        while let Some(Request::Announcement) = self.requests.front() {
            driver.message(b'I', &[]);
            driver.put(READY);
            self.requests.pop_front();
        }
    }
}

/// Appends the error that the server would have sent for a skipped request.
fn skipped(driver: &mut Buffer) {
    let fields: [&[u8]; 5] = [
        b"SERROR\0",
        b"VERROR\0",
        b"C25P02\0",
        b"Mskipped, since a statement before it in the pipeline failed\0",
        b"\0",
    ];
    driver.message(b'E', &fields);
}

/// Returns the name of a prepared simple query: a number, and its first word, as a help to an
/// operator.
fn name_of(number: usize, sql: &[u8]) -> String {
    let word: Vec<u8> = sql.iter().copied().take_while(u8::is_ascii_alphabetic).take(16).collect();
    format!("mingle{number}_{}", String::from_utf8_lossy(&word))
}

/// Returns the number of requests that an announcement announces.
fn announced(body: &[u8]) -> Option<usize> {
    let text = body.strip_suffix(b"\0")?.strip_prefix(ANNOUNCED.0.as_bytes())?;
    std::str::from_utf8(text.strip_suffix(ANNOUNCED.1.as_bytes())?).ok()?.parse().ok()
}
