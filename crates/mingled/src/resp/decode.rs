//! Requests from bytes.

use super::{Bytes, ProtocolError, inline};

/// The bounds of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The maximum number of bytes of an argument.
    pub argument_bytes: u64,
    /// The maximum number of bytes of all arguments of a request.
    pub request_bytes: u64,
    /// The maximum number of arguments of a request.
    pub arguments: u64,
    /// The maximum number of bytes of a line.
    pub line_bytes: usize,
    /// The maximum number of levels of arrays within a request.
    pub depth: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            argument_bytes: 8 << 20,
            request_bytes: 32 << 20,
            arguments: 1 << 20,
            line_bytes: 64 << 10,
            depth: 8,
        }
    }
}

/// The number of handled bytes after which the buffer is moved.
const MOVE_BYTES: usize = 64 << 10;

/// The decoder of one connection. It continues where it was when more bytes come.
///
/// # Examples
///
/// ```
/// use mingled::resp::{Decoder, Limits};
///
/// let mut decoder = Decoder::new(Limits::default());
/// decoder.feed(b"*2\r\n$3\r\nGET\r\n$1\r");
/// assert_eq!(decoder.next_request(), Ok(None));
/// decoder.feed(b"\na\r\nPING\r\n");
/// let request = decoder.next_request().unwrap().unwrap();
/// assert_eq!(request, [b"GET".as_slice(), b"a"].map(Into::into));
/// assert_eq!(decoder.next_request(), Ok(Some(vec![b"PING".as_slice().into()])));
/// ```
#[derive(Clone, Debug)]
pub struct Decoder {
    limits: Limits,
    buffer: Vec<u8>,
    /// The position of the first byte that is not handled.
    at: usize,
    /// No line ends between `at` and here.
    searched: usize,
    /// The numbers of missing elements of the open arrays.
    open: Vec<u64>,
    arguments: Vec<Bytes>,
    /// The sum of the lengths of the arguments.
    taken: u64,
    /// A string that is being received.
    string: Option<Incoming>,
    /// The first error of the request that does not hide its end.
    refused: Option<ProtocolError>,
    broken: Option<ProtocolError>,
}

/// A string whose length is known.
#[derive(Clone, Copy, Debug)]
struct Incoming {
    /// The number of bytes that have not come.
    missing: u64,
    kind: StringKind,
}

/// The use of a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StringKind {
    Argument,
    /// A text with a format of four bytes before it.
    Verbatim,
    /// It is not kept.
    Skipped,
}

type Step<T> = Result<Option<T>, ProtocolError>;

impl Decoder {
    /// Creates the decoder of a new connection.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            buffer: Vec::new(),
            at: 0,
            searched: 0,
            open: Vec::new(),
            arguments: Vec::new(),
            taken: 0,
            string: None,
            refused: None,
            broken: None,
        }
    }

    /// Changes the bounds of the requests that come next.
    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// Adds the next bytes of the connection.
    pub fn feed(&mut self, bytes: &[u8]) {
        if self.at == self.buffer.len() {
            self.buffer.clear();
            (self.at, self.searched) = (0, 0);
        } else if self.at > MOVE_BYTES {
            self.buffer.drain(..self.at);
            (self.at, self.searched) = (0, self.searched.saturating_sub(self.at));
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// Returns the number of bytes that it holds and has not handled, or not moved yet.
    #[cfg(test)]
    pub fn buffered(&self) -> usize {
        self.buffer.len()
    }

    /// True if a part of a request has come.
    pub fn is_within_request(&self) -> bool {
        self.at < self.buffer.len() || !self.open.is_empty()
    }

    /// Returns the next request, which has at least one argument; `None` if it is not complete.
    ///
    /// # Errors
    ///
    /// The reason why a request is not accepted. After a [fatal](ProtocolError::is_fatal) one, every
    /// call returns it again.
    pub fn next_request(&mut self) -> Result<Option<Vec<Bytes>>, ProtocolError> {
        if let Some(error) = &self.broken {
            return Err(error.clone());
        }
        let found = self.advance();
        if let Err(error) = &found
            && error.is_fatal()
        {
            self.broken = Some(error.clone());
            self.arguments = Vec::new();
            self.buffer = Vec::new();
            (self.at, self.searched) = (0, 0);
        }
        found
    }

    fn advance(&mut self) -> Step<Vec<Bytes>> {
        loop {
            if self.open.is_empty() {
                let Some(request) = self.begin()? else { return Ok(None) };
                if let Begun::Line(words) = request {
                    return Ok(Some(words));
                }
                continue;
            }
            if self.element()?.is_none() {
                return Ok(None);
            }
            self.close();
            if self.open.is_empty() {
                self.taken = 0;
                let arguments = std::mem::take(&mut self.arguments);
                return self.refused.take().map_or(Ok(Some(arguments)), Err);
            }
        }
    }

    /// Reads the beginning of a request.
    fn begin(&mut self) -> Step<Begun> {
        loop {
            let Some(first) = self.buffer.get(self.at).copied() else { return Ok(None) };
            let Some(line) = self.line()? else { return Ok(None) };
            if first == b'*' {
                let count = Self::length(&line, self.limits.arguments)?;
                if let Some(count) = count.filter(|count| *count > 0) {
                    self.open.push(count);
                    return Ok(Some(Begun::Array));
                }
                continue;
            }
            let line = line.strip_suffix(b"\r").unwrap_or(&line);
            let words = inline::split(line)?;
            if !words.is_empty() {
                return Ok(Some(Begun::Line(words)));
            }
        }
    }

    /// Reads one element, or the beginning of an array.
    fn element(&mut self) -> Step<()> {
        if self.string.is_none() {
            let Some(first) = self.buffer.get(self.at).copied() else { return Ok(None) };
            if !b"$=!+:,(-#_*~>%|".contains(&first) {
                return Err(ProtocolError::Type { found: first });
            }
            let Some(line) = self.line()? else { return Ok(None) };
            return self.begin_element(first, &line);
        }
        self.string()
    }

    fn begin_element(&mut self, first: u8, line: &[u8]) -> Step<()> {
        let is_nested = self.open.len() > 1;
        match first {
            b'$' | b'=' | b'!' => {
                let Some(length) = Self::length(line, i64::MAX as u64)? else {
                    self.refuse(ProtocolError::NoString { found: first });
                    return Ok(Some(()));
                };
                let kind = match first {
                    b'$' if !is_nested => StringKind::Argument,
                    b'=' if !is_nested && length >= 4 => StringKind::Verbatim,
                    _ => {
                        self.refuse(ProtocolError::NoString { found: first });
                        StringKind::Skipped
                    }
                };
                self.begin_string(length, kind);
                self.string()
            }
            b'*' | b'~' | b'>' | b'%' | b'|' => {
                self.refuse(ProtocolError::NoString { found: first });
                let count = Self::length(line, self.limits.arguments)?.unwrap_or(0);
                // An attribute comes before the element that it belongs to.
                let extra = u64::from(first == b'|');
                let count = if matches!(first, b'%' | b'|') { count * 2 + extra } else { count };
                if count == 0 {
                    return Ok(Some(()));
                }
                if self.open.len() >= self.limits.depth {
                    return Err(ProtocolError::Depth { most: self.limits.depth });
                }
                self.open.push(count);
                self.element()
            }
            _ => {
                let text = line.strip_suffix(b"\r").ok_or(ProtocolError::LineEnd)?;
                if is_nested || matches!(first, b'-' | b'#' | b'_') {
                    self.refuse(ProtocolError::NoString { found: first });
                } else {
                    let text = &text[1..];
                    self.begin_string(text.len() as u64, StringKind::Argument);
                    if self.string.take().is_some_and(|it| it.kind == StringKind::Argument) {
                        self.arguments.push(text.into());
                    }
                }
                Ok(Some(()))
            }
        }
    }

    /// Begins to receive a string, which is skipped if it is too long.
    fn begin_string(&mut self, length: u64, kind: StringKind) {
        let (one, all) = (self.limits.argument_bytes, self.limits.request_bytes);
        self.taken = self.taken.saturating_add(length);
        let mut kind = kind;
        if length > one {
            self.refuse(ProtocolError::Argument { found: length, most: one });
            kind = StringKind::Skipped;
        } else if self.taken > all {
            self.refuse(ProtocolError::Request { most: all });
            kind = StringKind::Skipped;
        }
        if self.refused.is_some() {
            kind = StringKind::Skipped;
        }
        self.string = Some(Incoming { missing: length, kind });
    }

    /// Reads a string and its end.
    fn string(&mut self) -> Step<()> {
        let Some(Incoming { missing, kind }) = self.string else { return Ok(Some(())) };
        let here = self.buffer.len() - self.at;
        if kind == StringKind::Skipped {
            let skipped = missing.min(here as u64);
            self.skip(skipped as usize);
            let missing = missing - skipped;
            self.string = Some(Incoming { missing, kind });
            if missing > 0 {
                return Ok(None);
            }
        }
        let length = if kind == StringKind::Skipped { 0 } else { missing as usize };
        let Some(bytes) = self.buffer.get(self.at..self.at + length + 2) else { return Ok(None) };
        let (content, end) = bytes.split_at(length);
        if end != b"\r\n" {
            return Err(ProtocolError::StringEnd { found: [end[0], end[1]] });
        }
        match kind {
            StringKind::Argument => self.arguments.push(content.into()),
            StringKind::Verbatim => self.arguments.push(content[4..].into()),
            StringKind::Skipped => {}
        }
        self.skip(length + 2);
        self.string = None;
        Ok(Some(()))
    }

    fn refuse(&mut self, error: ProtocolError) {
        self.refused.get_or_insert(error);
        self.arguments = Vec::new();
    }

    /// Counts an element, and the arrays that end with it.
    fn close(&mut self) {
        while let Some(missing) = self.open.last_mut() {
            *missing -= 1;
            if *missing > 0 {
                return;
            }
            self.open.pop();
        }
    }

    fn skip(&mut self, count: usize) {
        self.at += count;
        self.searched = self.searched.max(self.at);
    }

    /// Takes a line, without its line feed.
    fn line(&mut self) -> Step<Vec<u8>> {
        let most = self.limits.line_bytes;
        let from = self.searched.max(self.at);
        let end = self.buffer[from..].iter().position(|byte| *byte == b'\n').map(|end| from + end);
        let length = end.unwrap_or(self.buffer.len()) - self.at;
        if length > most {
            return Err(ProtocolError::Line { most });
        }
        let Some(end) = end else {
            self.searched = self.buffer.len();
            return Ok(None);
        };
        let line = self.buffer[self.at..end].to_vec();
        self.skip(line.len() + 1);
        Ok(Some(line))
    }

    /// Reads the length in a line such as `$5`; `None` for -1.
    fn length(line: &[u8], most: u64) -> Step<u64> {
        let (of, text) = line.split_first().unwrap_or((&b'$', b""));
        let text = text.strip_suffix(b"\r").ok_or(ProtocolError::LineEnd)?;
        let is_plain = match text {
            [b'0'] => true,
            [b'1'..=b'9', rest @ ..] => rest.iter().all(u8::is_ascii_digit),
            _ => false,
        };
        let number = std::str::from_utf8(text).ok().filter(|_| is_plain);
        let number = number.and_then(|text| text.parse().ok()).filter(|number| *number <= most);
        match number {
            _ if text == b"-1" => Ok(None),
            Some(number) => Ok(Some(number)),
            None => {
                let found = text[..text.len().min(32)].escape_ascii().to_string();
                Err(ProtocolError::Length { of: *of, found, most })
            }
        }
    }
}

/// The beginning of a request.
enum Begun {
    Array,
    Line(Vec<Bytes>),
}
