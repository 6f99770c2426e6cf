//! A connection of a program: the user, the declarations, and then requests.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mingle_model::Name;
use mingle_store::{DataStore as _, StoreError};
use mingle_store_mingled::limits::{HELLO_BYTES_MAX, MESSAGE_BYTES_MAX};
use mingle_store_mingled::schema::{digest, schemas};
use mingle_store_mingled::wire::{
    Answered, Given, HELLO, Hello, PROTOCOL, Program, Request, Welcome, decode, framed, version,
};
use serde::Serialize;

use super::conversation::Conversation;
use super::listener::{Opened, Shared, Standing, State};
use super::sign_in::SignedIn;
use crate::access::{AuditEvent, Incoming, Stream};

/// The time in which a program must take an answer.
const WRITE: Duration = Duration::from_secs(30);

/// The number of bytes of a message for which memory is taken at once.
const PIECE_BYTES: usize = 64 << 10;

/// The first byte of a connection with TLS.
const TLS_HANDSHAKE: u8 = 0x16;

/// The error for a sender of TLS; it is no message of TLS, which tells the sender.
const NO_TLS: &[u8] = b"-ERR this listener for Mingle's programs has no TLS\r\n";

/// The error for a client of Redis.
const NO_REDIS: &[u8] =
    b"-ERR this is the listener for Mingle's programs, not for clients of Redis\r\n";

/// A connection of a program.
pub(super) struct Connection {
    shared: Arc<Shared>,
    stream: Stream,
    standing: Standing,
    /// The address of the program.
    client: String,
}

/// The reason why a program is not served.
enum Refused {
    /// The connection has failed.
    Failed(io::Error),
    /// The answer that says why.
    Told(Welcome),
}

impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

impl From<String> for Refused {
    fn from(reason: String) -> Self {
        Self::Told(Welcome::Refused { reason, may_come: false })
    }
}

/// Serves a connection until its end.
pub(super) fn serve(shared: Arc<Shared>, standing: Standing, tcp: TcpStream) -> io::Result<()> {
    let until = Instant::now() + shared.settings.sign_in;
    let client = tcp.peer_addr()?.to_string();
    let settings = &shared.settings;
    if settings.tls.is_some() && begins_plain(&tcp, until)? {
        settings.audit.note(AuditEvent::Handshake, &client, "", "a program without TLS");
        let reason = "it accepts only TLS: set tls = true in the binding".into();
        let mut stream = Stream::Plain(tcp);
        stream.write_all(&framed(&Welcome::Refused { reason, may_come: false }))?;
        return stream.linger();
    }
    let incoming = Incoming {
        tls: settings.tls.as_deref(),
        audit: &settings.audit,
        write: WRITE,
        handshake: until.saturating_duration_since(Instant::now()),
    };
    let stream = Stream::begin(incoming, tcp, &client)?;
    let mut connection = Connection { shared, stream, standing, client };
    let (opened, signed_in) = match connection.greet(until) {
        Ok(greeted) => greeted,
        Err(Refused::Told(refused)) => {
            connection.send(&refused)?;
            return connection.stream.linger();
        }
        Err(Refused::Failed(error)) => return Err(error),
    };
    connection.converse(opened, signed_in)
}

/// True if a connection begins without TLS, and as a program does.
fn begins_plain(tcp: &TcpStream, until: Instant) -> io::Result<bool> {
    tcp.set_read_timeout(Some(left(until)?))?;
    let mut first = [0];
    Ok(tcp.peek(&mut first)? > 0 && first[0] == HELLO[0])
}

/// Returns the time that is left.
fn left(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(left) }
}

fn is_late(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

impl Connection {
    /// Returns the stores of the program, and its user.
    fn greet(&mut self, until: Instant) -> Result<(Opened, SignedIn), Refused> {
        let shared = Arc::clone(&self.shared);
        let frame = self.first(until).map_err(|refused| self.explained(refused))?;
        let Hello { program, cluster: wanted, user, examined, .. } = self.hello(&frame)?;
        let signed_in = shared.settings.sign_in(user.as_ref(), &self.client)?;
        if !self.standing.turn(State::Stranger, State::Known) {
            return Err(self.too_many());
        }
        shared.settings.check(&signed_in, examined.as_slice(), &self.client)?;
        let (cluster, datacenter) = self.place();
        if let Some(wanted) = wanted.filter(|wanted| *wanted != cluster) {
            let why =
                format!("it is of cluster {cluster:032x}, and the program expects {wanted:032x}");
            return Err(why.into());
        }
        let stores = match shared.known(&program) {
            Some(stores) => stores,
            None => {
                self.send(&Welcome::Unknown { cluster, datacenter: datacenter.clone() })?;
                self.declared(program, &signed_in)?
            }
        };
        let names: Vec<Name> = stores.iter().map(|it| it.capabilities().store.clone()).collect();
        shared.settings.check(&signed_in, &names, &self.client)?;
        let stores_of = stores.iter().map(|store| store.capabilities().clone()).collect();
        self.send(&Welcome::Known { cluster, datacenter, stores: stores_of })?;
        Ok((stores, signed_in))
    }

    /// Receives the first message.
    fn first(&mut self, until: Instant) -> Result<Vec<u8>, Refused> {
        let mut hello = [0; HELLO.len()];
        self.read_by(&mut hello[..1], until)?;
        if hello[0] == TLS_HANDSHAKE {
            self.stream.write_all(NO_TLS)?;
            self.stream.linger()?;
            return Err(io::Error::from(ErrorKind::InvalidData).into());
        }
        self.read_by(&mut hello[1..], until)?;
        if hello != *HELLO {
            self.stream.write_all(NO_REDIS)?;
            self.stream.linger()?;
            return Err(io::Error::from(ErrorKind::InvalidData).into());
        }
        let mut length = [0; 4];
        self.read_by(&mut length, until)?;
        let length = u32::from_be_bytes(length) as usize;
        if length > HELLO_BYTES_MAX {
            return Err(format!(
                "the first message has {length} bytes, and at most {HELLO_BYTES_MAX} are accepted"
            )
            .into());
        }
        let mut frame = vec![0; length];
        self.read_by(&mut frame, until)?;
        Ok(frame)
    }

    /// Returns the reason why a first message did not come, as the program is told it.
    fn explained(&self, refused: Refused) -> Refused {
        match refused {
            _ if self.standing.is(State::Dropped) => self.too_many(),
            Refused::Failed(error) if is_late(&error) => {
                let most = self.shared.settings.sign_in.as_millis();
                format!("the first message is not complete after {most} ms").into()
            }
            refused => refused,
        }
    }

    fn hello(&self, frame: &[u8]) -> Result<Hello, Refused> {
        let strange = || Refused::from("the first message is none of the protocol".to_owned());
        match version(frame).ok_or_else(strange)? {
            PROTOCOL => decode(frame).ok_or_else(strange),
            other => {
                let mut why = format!(
                    "it speaks version {PROTOCOL} of the protocol, and the program version {other}: use one version \
                     of Mingle at both"
                );
                if self.shared.settings.users.is_some() && other < PROTOCOL {
                    why += "; it needs a user and a password (NOAUTH), which the program's version cannot send";
                }
                Err(why.into())
            }
        }
    }

    /// Receives the declarations of a program, and opens its stores.
    fn declared(&mut self, program: [u8; 32], signed_in: &SignedIn) -> Result<Opened, Refused> {
        let frame = self.receive(Some(Instant::now() + self.shared.settings.request))?;
        if digest(&frame) != program {
            return Err("the declarations are not those of the digest".to_owned().into());
        }
        let Some(declared) = decode::<Program>(&frame) else {
            let why = "the declarations are of another version of the protocol";
            return Err(why.to_owned().into());
        };
        let schemas = schemas(declared)?;
        let names: Vec<Name> = schemas.iter().map(|schema| schema.store.clone()).collect();
        self.shared.settings.check(signed_in, &names, &self.client)?;
        self.shared.open(program, schemas).map_err(Refused::Told)
    }

    /// Answers requests until the connection ends.
    fn converse(&mut self, stores: Opened, mut signed_in: SignedIn) -> io::Result<()> {
        let first = stores.first().map(|store| store.capabilities().store.clone());
        let mut conversation = Conversation::new(stores);
        loop {
            let frame = match self.receive(None) {
                Err(error) if error.kind() == ErrorKind::FileTooLarge => {
                    let why = format!("a request has more than {MESSAGE_BYTES_MAX} bytes");
                    return self.break_off(first, why);
                }
                Err(error) if is_late(&error) => {
                    let most = self.shared.settings.request.as_millis();
                    let why = format!("a request has begun, and no more of it came for {most} ms");
                    return self.break_off(first, why);
                }
                received => received?,
            };
            let Some(request) = decode::<Request>(&frame) else {
                return self.break_off(first, "a request is none of the protocol".into());
            };
            if !self.shared.settings.is_current(&mut signed_in) {
                drop(conversation);
                if !matches!(request, Request::Drop) {
                    self.send(&Answered::Ok(Given::Again))?;
                }
                return self.stream.linger();
            }
            let world = self.shared.stores.world();
            if let Some(answered) = world.wait_for(conversation.answer(request)) {
                self.send(&answered)?;
            }
        }
    }

    /// Ends the connection of a sender that does not keep to the protocol.
    fn break_off(&mut self, store: Option<Name>, reason: String) -> io::Result<()> {
        let store = store.unwrap_or_else(|| "mingled".into());
        self.send(&Answered::Err(StoreError::Refused { store, reason }))?;
        self.stream.linger()
    }

    /// Returns the number of the cluster and the name of the data center.
    fn place(&self) -> (u128, Name) {
        let stores = &self.shared.stores;
        (stores.cluster(), stores.datacenter().to_string().into())
    }

    fn send(&mut self, message: &impl Serialize) -> io::Result<()> {
        self.stream.write_all(&framed(message))?;
        self.stream.flush()
    }

    /// Receives a message. Without a time it may begin at any time, and its bytes must go on coming.
    fn receive(&mut self, until: Option<Instant>) -> io::Result<Vec<u8>> {
        let mut length = [0; 4];
        if let Some(until) = until {
            self.read_by(&mut length, until)?;
        } else {
            self.stream.set_read_timeout(None)?;
            self.stream.read_exact(&mut length[..1])?;
            self.stream.set_read_timeout(Some(self.shared.settings.request))?;
            self.stream.read_exact(&mut length[1..])?;
        }
        let length = u32::from_be_bytes(length) as usize;
        if length > MESSAGE_BYTES_MAX {
            return Err(ErrorKind::FileTooLarge.into());
        }
        // Memory is taken as the bytes arrive.
        let mut frame = Vec::new();
        while frame.len() < length {
            let start = frame.len();
            frame.resize(length.min(start + PIECE_BYTES), 0);
            match until {
                Some(until) => self.read_by(&mut frame[start..], until)?,
                None => self.stream.read_exact(&mut frame[start..])?,
            }
        }
        Ok(frame)
    }

    /// Reads bytes that must all be there at a time.
    fn read_by(&mut self, mut bytes: &mut [u8], until: Instant) -> io::Result<()> {
        while !bytes.is_empty() {
            self.stream.set_read_timeout(Some(left(until)?))?;
            match self.stream.read(bytes) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) => bytes = &mut bytes[count..],
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn too_many(&self) -> Refused {
        let most = self.shared.settings.strangers_max;
        let reason = format!(
            "more than {most} connections have not signed in, and the oldest of them was closed"
        );
        Refused::Told(Welcome::Refused { reason, may_come: true })
    }
}
