//! Senders at the listener for programs that send what they must not, or nothing at all.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use mingle_model::random::Random;
use mingle_model::{BuiltinQuery, Level, Ref, Value};
use mingle_store::conformance::schema::{NUMBER, TEXT, at, store_schema};
use mingle_store::{Commit, Data, DataStore, Read, Session, StoreError, Write};
use mingle_store_mingled::schema::{declared, digest};
use mingle_store_mingled::wire::{
    Answered, HELLO, Hello, PROTOCOL, Program, SignIn, Welcome, decode, framed,
};
use mingled::access::{Tls, TlsFiles, Users};
use mingled::stores::ProgramSettings;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::block_on;
use super::conformance::Place;
use super::indexes::indexed;
use crate::clients::tls::Authority;

/// The time after which an answer that must come is missed.
const PATIENCE: Duration = Duration::from_mins(1);

/// A short time for what a sender must do soon.
const SOON: Duration = Duration::from_secs(1);

/// Starts a data center with a user `app`, whose password is `secret`.
fn with_user(settings: ProgramSettings) -> Place {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("users.acl");
    fs::write(&file, "user app on >secret ~* +mingle").expect("room");
    let users = Some(Arc::new(Users::open(file).expect("users")));
    Place::guarded(ProgramSettings { users, ..settings })
}

fn connect(to: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(to).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("it is connected");
    stream
}

/// Returns all that comes until the end of the connection.
fn rest(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    match stream.read_to_end(&mut bytes) {
        Ok(_) => {}
        // The end may be a reset, if it has not read everything.
        Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => {}
        Err(error) => panic!("no end: {error}"),
    }
    bytes
}

/// Sends bytes and nothing more, and returns all that comes until the end of the connection.
fn answer(to: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut stream = connect(to);
    // It may have closed the connection already.
    let _ = stream.write_all(bytes);
    rest(&mut stream)
}

fn message<T: DeserializeOwned>(stream: &mut TcpStream) -> T {
    let mut length = [0; 4];
    stream.read_exact(&mut length).expect("a message");
    let mut frame = vec![0; u32::from_be_bytes(length) as usize];
    stream.read_exact(&mut frame).expect("a message");
    decode(&frame).expect("a message of the protocol")
}

/// Returns the reason of an answer that refuses.
fn reason(bytes: &[u8]) -> (String, bool) {
    match bytes.get(4..).and_then(decode) {
        Some(Welcome::Refused { reason, may_come }) => (reason, may_come),
        other => panic!("{other:?} in {bytes:?}"),
    }
}

fn begin(hello: &impl Serialize) -> Vec<u8> {
    [HELLO.as_slice(), &framed(hello)].concat()
}

fn hello(user: Option<(&str, &str)>, program: [u8; 32]) -> Hello {
    let sign_in = |(user, password): (&str, &str)| SignIn {
        user: user.to_owned(),
        password: password.to_owned(),
    };
    let user = user.map(sign_in);
    Hello { protocol: PROTOCOL, cluster: None, program, user, examined: None }
}

/// Checks that a program is served; it may be too slow for a short time at first.
fn is_served(place: &Place) {
    block_on(async { read(&*served(place).await).await });
}

/// Opens a store.
async fn served(place: &Place) -> Arc<dyn DataStore> {
    let begin = Instant::now();
    loop {
        match place.try_open(store_schema(Level::Causal), Some(("app", "secret"))).await {
            Ok(store) => return store,
            Err(error) => assert!(begin.elapsed() < PATIENCE, "{error}"),
        }
    }
}

async fn read(store: &dyn DataStore) {
    let mut begun = store.begin(&Session::default()).await.expect("it serves");
    begun.read(&[Read::Register(at("x", NUMBER))]).await.expect("it answers");
    begun.commit(Commit::default()).await.expect("it only read");
}

/// The first message of version 2.
#[derive(Serialize)]
struct Older {
    protocol: u32,
    cluster: Option<u128>,
    program: [u8; 32],
}

#[test]
fn an_older_program_is_told_what_it_lacks() {
    let older = begin(&Older { protocol: 2, cluster: None, program: [1; 32] });
    let plain = Place::found(&[]);
    let (told, may_come) = reason(&answer(plain.address(), &older));
    let expected =
        format!("it speaks version {PROTOCOL} of the protocol, and the program version 2");
    assert!(told.starts_with(&expected) && !told.contains("password") && !may_come, "{told}");
    let newer = begin(&(PROTOCOL + 7, "more"));
    let (told, _) = reason(&answer(plain.address(), &newer));
    assert!(told.contains(&format!("the program version {}", PROTOCOL + 7)), "{told}");
    plain.stop();
    let guarded = with_user(ProgramSettings::default());
    let (told, _) = reason(&answer(guarded.address(), &older));
    assert!(told.starts_with(&expected), "{told}");
    assert!(told.ends_with(
        "it needs a user and a password (NOAUTH), which the program's version cannot send"
    ));
    guarded.stop();
}

#[test]
fn a_malformed_beginning_is_refused_with_the_reason() {
    let place = with_user(ProgramSettings { sign_in: SOON, ..ProgramSettings::default() });
    let to = place.address();
    let unframed = |bytes: &[u8]| [HELLO.as_slice(), bytes].concat();
    let good = begin(&hello(Some(("app", "secret")), [3; 32]));
    let late = "the first message is not complete after 1000 ms";
    for (bytes, expected) in [
        (
            unframed(&[0xff; 4]),
            "the first message has 4294967295 bytes, and at most 4096 are accepted",
        ),
        (unframed(&[0, 0, 0x10, 1]), "the first message has 4097 bytes"),
        (unframed(&[0, 0, 0, 0]), "the first message is none of the protocol"),
        (unframed(&[0, 0, 0, 1, 0x80]), "the first message is none of the protocol"),
        (unframed(&[0, 0, 0, 2, PROTOCOL as u8, 9]), "the first message is none of the protocol"),
        // Bytes after the message, within it.
        (begin(&(hello(None, [3; 32]), 7_u8)), "the first message is none of the protocol"),
        // Parts, after which nothing comes.
        (good[..5].to_vec(), late),
        (good[..10].to_vec(), late),
        (good[..good.len() - 1].to_vec(), late),
        (Vec::new(), late),
    ] {
        let (told, may_come) = reason(&answer(to, &bytes));
        assert!(told.starts_with(expected) && !may_come, "{told}, expected {expected}");
    }
    // A sender that goes away amid the message.
    for length in [0, 5, 10, good.len() - 1] {
        drop(connect(to).write_all(&good[..length]));
    }
    let redis = answer(to, b"*1\r\n$4\r\nPING\r\n");
    assert!(redis.starts_with(b"-ERR this is the listener for Mingle's programs"), "{redis:?}");
    let tls = answer(to, &[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3]);
    assert!(tls.starts_with(b"-ERR this listener for Mingle's programs has no TLS"), "{tls:?}");
    is_served(&place);
    place.stop();
}

#[test]
fn a_listener_with_tls_ends_what_is_none() {
    let folder = tempfile::tempdir().expect("a folder");
    Authority::new().issue(folder.path(), "server", "localhost");
    let path = |name: &str| folder.path().join(name);
    let files =
        TlsFiles { certificate: path("server.pem"), key: path("server.key"), client_ca: None };
    let tls = Some(Arc::new(Tls::open(files).expect("the files fit")));
    let place =
        Place::guarded(ProgramSettings { tls, sign_in: SOON, ..ProgramSettings::default() });
    let to = place.address();
    let good = begin(&hello(None, [3; 32]));
    let (told, may_come) = reason(&answer(to, &good));
    assert_eq!((&*told, may_come), ("it accepts only TLS: set tls = true in the binding", false));
    for bytes in [
        b"*1\r\n$4\r\nPING\r\n".as_slice(),
        // Beginnings of a handshake that do not go on, or cannot be.
        &[0x16],
        &[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3],
        &[0x16, 3, 1, 0xff, 0xff],
        &[0x16; 4_000],
        &[],
    ] {
        let found = answer(to, bytes);
        // An alert of TLS, or nothing.
        assert!(found.is_empty() || found.starts_with(&[0x15, 3]), "{found:?}");
    }
    place.stop();
}

#[test]
fn strangers_do_not_keep_out_programs() {
    let most = 5;
    let settings = ProgramSettings {
        strangers_max: most,
        sign_in: PATIENCE * 10,
        ..ProgramSettings::default()
    };
    let place = with_user(settings);
    let mut strangers: Vec<TcpStream> = Vec::new();
    for round in 0..60 {
        let mut stranger = connect(place.address());
        // Some are silent, and some send a part.
        stranger.write_all(&HELLO[..round % 3]).expect("it reads");
        strangers.push(stranger);
    }
    // They are there, and a program signs in all the same, again and again.
    for _ in 0..3 {
        is_served(&place);
    }
    // The older ones got the reason, although their time is not over.
    for stranger in &mut strangers[..50] {
        let (told, may_come) = reason(&rest(stranger));
        let expected =
            "more than 5 connections have not signed in, and the oldest of them was closed";
        assert!(told == expected && may_come, "{told}");
    }
    // The last one is still awaited.
    let last = strangers.last_mut().expect("there are some");
    last.write_all(&HELLO[59 % 3..]).expect("it reads");
    last.write_all(&framed(&hello(Some(("app", "secret")), [3; 32]))).expect("it reads");
    assert!(matches!(message(last), Welcome::Unknown { .. }));
    place.stop();
}

#[test]
fn many_wrong_passwords_are_counted_and_change_nothing() {
    let settings = ProgramSettings::default();
    let audit = settings.audit.clone();
    let place = with_user(settings);
    for attempt in 0..150 {
        let wrong = format!("guess {attempt}");
        let user = if attempt % 2 == 0 { "app" } else { "other" };
        let (told, may_come) =
            reason(&answer(place.address(), &begin(&hello(Some((user, &wrong)), [3; 32]))));
        assert!(told.contains("(WRONGPASS)") && !told.contains(&wrong) && !may_come, "{told}");
    }
    assert_eq!(audit.wrong_passwords(), 150);
    let denials = audit.denials(1_000);
    assert!(denials.len() <= 128 && denials[0].object == "mingle", "{}", denials.len());
    is_served(&place);
    place.stop();
}

#[test]
fn requests_that_are_none_end_the_connection_with_the_reason() {
    let place = with_user(ProgramSettings { request: SOON, ..ProgramSettings::default() });
    let program: Program = vec![declared(&store_schema(Level::Causal))];
    let program = framed(&program);
    let signed_in = || {
        let mut stream = connect(place.address());
        let hello = hello(Some(("app", "secret")), digest(&program[4..]));
        stream.write_all(&begin(&hello)).expect("it reads");
        match message(&mut stream) {
            Welcome::Known { .. } => {}
            Welcome::Unknown { .. } => {
                stream.write_all(&program).expect("it reads");
                assert!(matches!(message(&mut stream), Welcome::Known { .. }));
            }
            refused @ Welcome::Refused { .. } => panic!("{refused:?}"),
        }
        stream
    };
    for (bytes, expected) in [
        (vec![0, 0, 0, 1, 0xff], "a request is none of the protocol"),
        (vec![0, 0, 0, 0], "a request is none of the protocol"),
        (vec![0xff; 8], "a request has more than 67108864 bytes"),
        (vec![0, 0, 0], "a request has begun, and no more of it came for 1000 ms"),
        (vec![0, 0, 0, 9, 1, 2], "a request has begun, and no more of it came for 1000 ms"),
    ] {
        let mut stream = signed_in();
        stream.write_all(&bytes).expect("it reads");
        let answered: Answered = message(&mut stream);
        let Err(StoreError::Refused { reason, .. }) = answered else { panic!("{answered:?}") };
        assert_eq!(reason, expected);
        assert!(rest(&mut stream).is_empty(), "nothing follows");
    }
    // Declarations that do not come.
    let mut stream = connect(place.address());
    stream.write_all(&begin(&hello(Some(("app", "secret")), [9; 32]))).expect("it reads");
    assert!(matches!(message(&mut stream), Welcome::Unknown { .. }));
    stream.write_all(&[0, 0]).expect("it reads");
    assert!(rest(&mut stream).is_empty(), "it is closed after some time");
    is_served(&place);
    place.stop();
}

#[test]
fn random_bytes_neither_stop_the_listener_nor_a_program() {
    let seed = std::env::var("MINGLE_SEED").map_or(1, |text| text.parse().expect("a number"));
    println!("seed {seed}");
    let mut random = Random::new(seed);
    let place = with_user(ProgramSettings { sign_in: SOON, request: SOON, ..Default::default() });
    let pieces: [Vec<u8>; 5] = [
        HELLO.to_vec(),
        framed(&hello(Some(("app", "secret")), [3; 32])),
        framed(&hello(None, [3; 32])),
        framed(&7_u32),
        vec![0, 0, 0, 40],
    ];
    block_on(async {
        let store = served(&place).await;
        for _ in 0..150 {
            let mut bytes = if random.one_in(2) { HELLO.to_vec() } else { Vec::new() };
            for _ in 0..random.below(5) {
                if random.one_in(2) {
                    let count = random.below(50);
                    bytes.extend((0..count).map(|_| random.bits() as u8));
                } else {
                    bytes.extend_from_slice(random.pick::<Vec<u8>>(&pieces));
                }
            }
            let mut stream = connect(place.address());
            // It may have closed the connection already.
            let _ = stream.write_all(&bytes);
            read(&*store).await;
        }
    });
    place.stop();
}

/// Sends declarations, and returns the reason for which they are refused.
fn declare(place: &Place, program: &Program) -> Option<String> {
    let program = framed(program);
    let mut stream = connect(place.address());
    let hello = hello(Some(("app", "secret")), digest(&program[4..]));
    stream.write_all(&begin(&hello)).expect("it reads");
    match message(&mut stream) {
        Welcome::Unknown { .. } => {}
        other => panic!("{other:?}"),
    }
    stream.write_all(&program).expect("it reads");
    match message(&mut stream) {
        Welcome::Refused { reason, .. } => Some(reason),
        _ => None,
    }
}

#[test]
fn declarations_of_no_index_are_refused_with_the_reason() {
    let place = with_user(ProgramSettings::default());
    let good = indexed(Level::Causal, &[&["text", "number"]]);
    for (from, to, expected) in [
        ("Thing", "Nothing", "the index Nothing.text_number is of no object of store suite"),
        ("number", "count", "needs a register count, which Thing has not"),
        ("number", "text", "the index Thing.text_number has field text twice"),
    ] {
        let mut wrong = good.clone();
        for operation in wrong.operations.values_mut() {
            let Some(BuiltinQuery::Index(read)) = &mut operation.builtin else { continue };
            let turned = |name: &str| if name == from { to.into() } else { name.into() };
            read.object = turned(&read.object);
            read.fields.iter_mut().for_each(|field| *field = turned(field));
        }
        let refused = declare(&place, &vec![declared(&wrong)]).expect("it is refused");
        assert!(refused.contains(expected), "{refused}");
    }
    // Fewer bytes than a message has, and bytes that were changed on their way.
    let seed = std::env::var("MINGLE_SEED").map_or(2, |text| text.parse().expect("a number"));
    println!("seed {seed}");
    let mut random = Random::new(seed);
    let whole = framed(&vec![declared(&good)]).split_off(4);
    for round in 0..120 {
        let mut bytes = whole.clone();
        if random.one_in(3) {
            bytes.truncate(random.below(bytes.len()));
        } else {
            // The indexes come last.
            let at = bytes.len() - 1 - random.below(40);
            bytes[at] = random.bits() as u8;
        }
        let mut stream = connect(place.address());
        let hello = hello(Some(("app", "secret")), digest(&bytes));
        stream.write_all(&begin(&hello)).expect("it reads");
        if let Welcome::Unknown { .. } = message(&mut stream) {
            let length = u32::try_from(bytes.len()).expect("a few").to_be_bytes();
            stream.write_all(&[&length[..], &bytes].concat()).expect("it reads");
            let welcome: Welcome = message(&mut stream);
            assert!(!matches!(welcome, Welcome::Unknown { .. }), "round {round}");
        }
    }
    is_served(&place);
    place.stop();
}

/// Values of other types than those that are declared, as arguments of an index and in its fields.
#[test]
fn questions_and_values_that_fit_no_index_do_no_harm() {
    let place = with_user(ProgramSettings::default());
    let deep = (0..90).fold(Value::Int(1), |inner, _| Value::some(inner));
    let strange = [
        Value::NONE,
        Value::Bool(true),
        Value::list([Value::Int(1), Value::from("")]),
        Value::Struct([Value::NONE].into()),
        Value::Ref(Ref::new("Thing", Value::from("a"))),
        Value::Bytes([0, 255, 0].as_slice().into()),
        deep,
    ];
    block_on(async {
        for level in [Level::Causal, Level::Linearizable] {
            let mut schema = indexed(level, &[&["text"], &["text", "number"]]);
            let name = if level == Level::Causal { "weak" } else { "strong" };
            for object in Arc::make_mut(&mut schema.schema).objects.values_mut() {
                Arc::make_mut(object).store = name.into();
            }
            schema.store = name.into();
            let user = Some(("app", "secret"));
            let store =
                place.try_open(schema, user).await.unwrap_or_else(|error| panic!("{error}"));
            let ask = async |operation: &str, arguments: Vec<Value>| {
                let mut begun = store.begin(&Session::default()).await?;
                let query = Read::Query { operation: operation.into(), arguments };
                let answers = begun.read(&[query]).await?;
                Ok::<Data, StoreError>(answers[0].data.clone())
            };
            let fitting = |first: Value| vec![first, Value::NONE, Value::Bool(true), Value::Int(9)];
            for value in &strange {
                for field in [TEXT, NUMBER] {
                    let writes = vec![Write::Assign(at("odd", field), value.clone())];
                    let begun = store.begin(&Session::default()).await.expect("it serves");
                    let _ = begun.commit(Commit { writes, ..Commit::default() }).await;
                }
                ask("text", fitting(value.clone())).await.expect("it answers");
                for place in 0..4 {
                    let mut arguments = fitting("a".into());
                    arguments[place] = value.clone();
                    let _ = ask("text", arguments.clone()).await;
                    arguments.insert(1, value.clone());
                    let _ = ask("text_number", arguments).await;
                }
            }
            for wrong in [vec![], vec![Value::Int(1)], vec![Value::NONE; 9]] {
                let refused = ask("text", wrong).await;
                let is_refused = matches!(&refused, Err(StoreError::Refused { .. }));
                assert!(is_refused, "{refused:?}");
            }
            let refused = ask("count", fitting("a".into())).await;
            assert!(matches!(&refused, Err(StoreError::Refused { .. })), "{refused:?}");
            let begun = store.begin(&Session::default()).await.expect("it serves");
            let writes = vec![Write::Assign(at("odd", TEXT), "red".into())];
            begun.commit(Commit { writes, ..Commit::default() }).await.expect("it commits");
            let found = ask("text", fitting("red".into())).await.expect("it answers");
            let expected = Value::list([Value::Ref(at("odd", 0).object)]);
            assert_eq!(found, Data::Result(expected));
        }
    });
    place.stop();
}
