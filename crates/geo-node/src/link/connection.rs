//! One connection.

use std::collections::VecDeque;
use std::fmt;

use mingle_geo::wire::Hello;
use mingle_geo::{DcId, Now};
use mingle_model::random::mix;

use super::frame::{CONTENT_BYTES_MAX, Frame, Kind};
use super::refusal::{Code, Refused};

/// The bounds of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// A peer whose clock is further ahead is refused.
    pub clock_ahead_ms_max: u64,
    /// The maximum number of bytes that wait to be sent.
    pub queue_bytes_max: usize,
    /// The maximum length of a message in bytes.
    pub message_bytes_max: usize,
    /// A ping is sent if nothing else was for this time.
    pub ping_ms: u64,
    /// A connection on which nothing was heard for this time is closed.
    pub silent_ms: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            clock_ahead_ms_max: 1_000,
            queue_bytes_max: 128 << 20,
            message_bytes_max: 64 << 20,
            ping_ms: 500,
            silent_ms: 3_000,
        }
    }
}

/// The reason why a connection ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Closed {
    /// This process refuses the other one.
    Refuses(Refused),
    /// The other process refuses this one.
    Refused(Refused),
    /// The other end sent bytes that no process sends.
    Malformed(String),
    /// Frames are missing.
    Gap {
        /// The number of the frame.
        found: u64,
        /// The number of the next frame in order.
        expected: u64,
    },
    /// Nothing was heard for too long.
    Silent {
        /// The time in milliseconds.
        ms: u64,
    },
    /// Too many bytes wait to be sent.
    Overflow {
        /// The number of bytes with the next message.
        bytes: usize,
        /// The maximum.
        most: usize,
    },
}

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refuses(why) => write!(f, "the other process is refused: {why}"),
            Self::Refused(why) => write!(f, "the other process refuses this one: {why}"),
            Self::Malformed(why) => write!(f, "the other end does not speak the protocol: {why}"),
            Self::Gap { found, expected } => {
                write!(f, "frames are missing: found number {found}, expected {expected}")
            }
            Self::Silent { ms } => write!(f, "nothing was heard for {ms} ms"),
            Self::Overflow { bytes, most } => {
                write!(f, "{bytes} bytes wait to be sent, at most {most} may")
            }
        }
    }
}

impl std::error::Error for Closed {}

/// An event of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The HELLO of the other end fits. The process [accepts](Connection::accept) or
    /// [refuses](Connection::refuse) it.
    Hello(Hello),
    /// A message has arrived.
    Message(Vec<u8>),
}

/// The state of a connection.
#[derive(Clone, Debug)]
enum State {
    /// HELLO has not come.
    Waiting,
    /// It has come, and waits for the process.
    Met,
    Open,
    Closed(Closed),
}

/// One end of a connection.
#[derive(Clone, Debug)]
pub struct Connection {
    settings: Settings,
    own: Hello,
    /// The data center that was dialed; `None` if the other end dialed.
    dialed: Option<DcId>,
    state: State,
    /// The number that this end drew.
    draw: u64,
    /// The number of the connection.
    number: u64,
    /// Bytes that are no complete frame.
    arrived: Vec<u8>,
    /// The parts of a message.
    parts: Vec<u8>,
    received: u64,
    sent: u64,
    queue: VecDeque<Vec<u8>>,
    queue_bytes: usize,
    heard_us: u64,
    spoke_us: u64,
    /// The number of dropped frames of other connections, or that had been taken before.
    pub replayed: u64,
}

impl Connection {
    /// Begins a connection. `draw` is a random number, new for each connection; `dialed` is the data
    /// center that this end has dialed.
    pub fn new(settings: Settings, own: Hello, draw: u64, dialed: Option<DcId>, now: Now) -> Self {
        let mut connection = Self {
            settings,
            own: Hello { wall_us: now.wall_us, ..own },
            dialed,
            state: State::Waiting,
            draw,
            number: draw,
            arrived: Vec::new(),
            parts: Vec::new(),
            received: 0,
            sent: 0,
            queue: VecDeque::new(),
            queue_bytes: 0,
            heard_us: now.mono_us,
            spoke_us: now.mono_us,
            replayed: 0,
        };
        if dialed.is_some() {
            connection.say_hello();
        }
        connection
    }

    /// Returns the reason of its end, if it has ended. The driver closes it once the
    /// [queue](Self::take) is empty.
    pub fn closed(&self) -> Option<&Closed> {
        if let State::Closed(why) = &self.state { Some(why) } else { None }
    }

    /// True if messages can be sent.
    pub fn is_open(&self) -> bool {
        matches!(self.state, State::Open)
    }

    /// Takes the bytes that the driver is to write: at least one frame if there is one, and further
    /// ones up to this length.
    pub fn take(&mut self, most: usize) -> Vec<u8> {
        let mut bytes = self.queue.pop_front().unwrap_or_default();
        while let Some(next) = self.queue.front()
            && bytes.len() + next.len() <= most
        {
            bytes.append(&mut self.queue.pop_front().unwrap_or_default());
        }
        self.queue_bytes -= bytes.len();
        bytes
    }

    /// Handles bytes that have arrived.
    pub fn receive(&mut self, now: Now, bytes: &[u8], events: &mut Vec<Event>) {
        self.heard_us = now.mono_us;
        self.arrived.extend_from_slice(bytes);
        self.read(now, events);
    }

    /// Accepts the HELLO of the other end.
    pub fn accept(&mut self, now: Now, events: &mut Vec<Event>) {
        if matches!(self.state, State::Met) {
            if self.dialed.is_none() {
                self.own.wall_us = now.wall_us;
                self.say_hello();
            }
            self.state = State::Open;
            self.read(now, events);
        }
    }

    /// Refuses the HELLO of the other end, with a reason that is sent to it.
    pub fn refuse(&mut self, refused: Refused) {
        if self.closed().is_none() {
            let content = refused.to_bytes();
            self.put(Kind::Refused, &content);
            self.close(Closed::Refuses(refused));
        }
    }

    /// Sends a message; it is dropped while the connection is not open. Returns the length of a message
    /// that is too long to be sent at all.
    pub fn send(&mut self, now: Now, message: &[u8]) -> Result<(), usize> {
        if message.len() > self.settings.message_bytes_max {
            return Err(message.len());
        }
        if !self.is_open() {
            return Ok(());
        }
        let (bytes, most) = (self.queue_bytes + message.len(), self.settings.queue_bytes_max);
        if bytes > most {
            self.queue.clear();
            self.queue_bytes = 0;
            self.close(Closed::Overflow { bytes, most });
            return Ok(());
        }
        let mut rest = message;
        while rest.len() > CONTENT_BYTES_MAX {
            let (part, more) = rest.split_at(CONTENT_BYTES_MAX);
            self.put(Kind::Part, part);
            rest = more;
        }
        self.put(Kind::Message, rest);
        self.spoke_us = now.mono_us;
        Ok(())
    }

    /// Sends a ping if it is time, or ends a silent connection.
    pub fn tick(&mut self, now: Now) {
        let ms = now.mono_us.saturating_sub(self.heard_us) / 1_000;
        if self.closed().is_some() {
            return;
        }
        if ms >= self.settings.silent_ms {
            self.close(Closed::Silent { ms });
        } else if self.is_open() && now.mono_us >= self.spoke_us + self.settings.ping_ms * 1_000 {
            self.put(Kind::Ping, &[]);
            self.spoke_us = now.mono_us;
        }
    }

    fn close(&mut self, why: Closed) {
        (self.arrived, self.parts) = (Vec::new(), Vec::new());
        self.state = State::Closed(why);
    }

    fn say_hello(&mut self) {
        let mut content = Vec::new();
        self.own.put(&mut content);
        let connection = self.draw;
        self.enqueue(Frame { kind: Kind::Hello, connection, sequence: 0, content: &content });
    }

    fn put(&mut self, kind: Kind, content: &[u8]) {
        let (connection, sequence) = (self.number, self.sent);
        self.sent += 1;
        self.enqueue(Frame { kind, connection, sequence, content });
    }

    fn enqueue(&mut self, frame: Frame<'_>) {
        let bytes = frame.to_bytes();
        self.queue_bytes += bytes.len();
        self.queue.push_back(bytes);
    }

    /// Reads the frames that have arrived.
    fn read(&mut self, now: Now, events: &mut Vec<Event>) {
        let arrived = std::mem::take(&mut self.arrived);
        let mut rest = &arrived[..];
        while matches!(self.state, State::Waiting | State::Open) {
            match Frame::take(rest) {
                Ok(None) => break,
                Ok(Some((frame, length))) => {
                    rest = &rest[length..];
                    self.on_frame(now, frame, events);
                }
                Err(why) => self.close(Closed::Malformed(why.into())),
            }
        }
        if self.closed().is_none() {
            self.arrived = rest.to_vec();
        }
    }

    fn on_frame(&mut self, now: Now, frame: Frame<'_>, events: &mut Vec<Event>) {
        match (&self.state, frame.kind) {
            (State::Waiting, Kind::Hello) => self.on_hello(now, frame, events),
            (_, Kind::Refused) if matches!(self.state, State::Waiting) || self.is_next(frame) => {
                let why = Refused::take(frame.content).map_or_else(
                    || Closed::Malformed("a refusal of an unknown kind".into()),
                    Closed::Refused,
                );
                self.close(why);
            }
            (State::Open, Kind::Message | Kind::Part | Kind::Ping) if self.is_next(frame) => {
                self.received += 1;
                self.on_content(frame, events);
            }
            (State::Open, _) if frame.connection == self.number => {
                let (found, expected) = (frame.sequence, self.received);
                if found > expected {
                    self.close(Closed::Gap { found, expected });
                } else {
                    self.replayed += 1;
                }
            }
            (State::Open, _) => self.replayed += 1,
            _ => self.close(Closed::Malformed("a connection begins with HELLO".into())),
        }
    }

    fn is_next(&self, frame: Frame<'_>) -> bool {
        frame.connection == self.number && frame.sequence == self.received
    }

    fn on_hello(&mut self, now: Now, frame: Frame<'_>, events: &mut Vec<Event>) {
        let hello = match Hello::take(frame.content) {
            Ok(hello) => hello,
            Err(why) => return self.close(Closed::Malformed(why.to_string())),
        };
        let (dialer, acceptor) = match self.dialed {
            Some(_) => (self.draw, frame.connection),
            None => (frame.connection, self.draw),
        };
        self.number = mix(dialer ^ mix(acceptor));
        match self.check(&hello, now) {
            Ok(()) => {
                self.state = State::Met;
                events.push(Event::Hello(hello));
            }
            Err(refused) => self.refuse(refused),
        }
    }

    /// Checks that the HELLO is that of a peer.
    fn check(&self, hello: &Hello, now: Now) -> Result<(), Refused> {
        let own = &self.own;
        if hello.cluster != own.cluster {
            let (found, expected) = (hello.cluster, own.cluster);
            let why = format!(
                "the dialing and the dialed process are of different clusters: found cluster \
                 {found:032x}, expected {expected:032x}"
            );
            return Err(Refused::new(Code::Cluster, why));
        }
        if let Err(why) = own.versions.common(hello.versions) {
            return Err(Refused::new(Code::Version, why.to_string()));
        }
        if (hello.dc, hello.node) == (own.dc, own.node) {
            let why = format!("both processes are process {} of {}", own.node, own.dc);
            return Err(Refused::new(Code::Place, why));
        }
        if let Some(dialed) = self.dialed.filter(|dialed| *dialed != hello.dc) {
            let why = format!("{dialed} was dialed, and {} answers", hello.dc);
            return Err(Refused::new(Code::Place, why));
        }
        let is_known = hello.settings != 0 && own.settings != 0;
        if is_known && hello.settings != own.settings {
            let (found, expected) = (hello.settings, own.settings);
            let why = format!(
                "{} and {} differ in settings that all data centers share, such as the number of \
                 partitions, the keys that are strong only, and the labels that conflict: found digest \
                 {found:016x}, expected {expected:016x}",
                hello.dc, own.dc
            );
            return Err(Refused::new(Code::Settings, why));
        }
        let (ahead, most) =
            (hello.wall_us.saturating_sub(now.wall_us) / 1_000, self.settings.clock_ahead_ms_max);
        if ahead > most {
            let why = format!(
                "the clock of {} is {ahead} ms ahead of that of {}, at most {most} ms are accepted",
                hello.dc, own.dc
            );
            return Err(Refused::new(Code::Clock, why));
        }
        Ok(())
    }

    fn on_content(&mut self, frame: Frame<'_>, events: &mut Vec<Event>) {
        let (bytes, most) =
            (self.parts.len() + frame.content.len(), self.settings.message_bytes_max);
        if bytes > most {
            let why = format!("a message has more than {most} bytes");
            return self.close(Closed::Malformed(why));
        }
        match frame.kind {
            Kind::Part => self.parts.extend_from_slice(frame.content),
            Kind::Message if self.parts.is_empty() => {
                events.push(Event::Message(frame.content.to_vec()));
            }
            Kind::Message => {
                let mut message = std::mem::take(&mut self.parts);
                message.extend_from_slice(frame.content);
                events.push(Event::Message(message));
            }
            _ => {}
        }
    }
}
