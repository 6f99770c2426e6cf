//! Tests of both directions, with messages cut into arbitrary pieces.

use super::filter::{Buffer, Filter, announcement};

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).expect("it is short");
    [&[kind][..], &length.to_be_bytes(), body].concat()
}

fn query(sql: &str) -> Vec<u8> {
    message(b'Q', format!("{sql}\0").as_bytes())
}

/// Returns the driver's messages for a prepared statement.
fn run(name: &str) -> Vec<u8> {
    [bind(name), message(b'E', &[0; 5]), message(b'S', b"")].concat()
}

fn bind(name: &str) -> Vec<u8> {
    message(b'B', &[b"\0", name.as_bytes(), b"\0", &[0; 6]].concat())
}

/// A connection whose startup is over, and which sends and receives pieces of so many bytes.
struct Both {
    filter: Filter,
    piece: usize,
}

impl Both {
    fn new(piece: usize) -> Self {
        let mut both = Self { filter: Filter::default(), piece };
        let startup = [0, 0, 0, 8, 0, 3, 0, 0];
        assert_eq!(both.send(&startup), (startup.to_vec(), Vec::new()));
        let ready = message(b'Z', b"I");
        assert_eq!(both.receive(&ready), ready);
        both
    }

    /// The bytes given to the server and to the driver.
    fn send(&mut self, bytes: &[u8]) -> (Vec<u8>, Vec<u8>) {
        let (mut server, mut driver) = (Buffer::default(), Buffer::default());
        for piece in bytes.chunks(self.piece) {
            self.filter.send(piece, &mut server, &mut driver);
        }
        (server.bytes().to_vec(), driver.bytes().to_vec())
    }

    fn receive(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut driver = Buffer::default();
        for piece in bytes.chunks(self.piece) {
            self.filter.receive(piece, &mut driver);
        }
        driver.bytes().to_vec()
    }
}

/// Returns the kinds of messages, in their order.
fn kinds(mut bytes: &[u8]) -> String {
    let mut kinds = String::new();
    while let [kind, rest @ ..] = bytes {
        kinds.push(char::from(*kind));
        let length = u32::from_be_bytes(*rest.first_chunk().expect("a length")) as usize;
        bytes = &rest[length..];
    }
    kinds
}

fn answer(kinds: &str) -> Vec<u8> {
    kinds.bytes().flat_map(|kind| message(kind, if kind == b'Z' { b"E" } else { b"" })).collect()
}

const PIECES: [usize; 4] = [1, 3, 7, 10_000];

#[test]
fn what_is_not_announced_passes_unchanged() {
    for piece in PIECES {
        let mut both = Both::new(piece);
        let sent = [query("BEGIN"), run("s1"), query("/* mingle */"), run("s2")].concat();
        assert_eq!(both.send(&sent), (sent.clone(), Vec::new()));
        let received = answer("CZ2DDCZIZ2NEZ");
        assert_eq!(both.receive(&received), received);
    }
}

fn pipeline() -> Vec<u8> {
    [query(&announcement(4)), query("BEGIN"), run("s1"), run("s2"), query("COMMIT")].concat()
}

#[test]
fn a_pipeline_has_one_synchronisation_point() {
    for piece in PIECES {
        let mut both = Both::new(piece);
        let (server, driver) = both.send(&pipeline());
        assert_eq!(kinds(&server), "PBEBEBEPBES");
        assert_eq!(kinds(&driver), "IZ", "the announcement is answered here");
        assert_eq!(kinds(&both.receive(&answer("12C2DC2C12CZ"))), "CZ2DCZ2CZCZ");
        // A statement that is prepared by now is not prepared again.
        assert_eq!(kinds(&both.send(&pipeline()).0), "BEBEBEBES");
        assert_eq!(kinds(&both.receive(&answer("2C2DNC2C2CZ"))), "CZ2DNCZ2CZCZ");
    }
}

#[test]
fn what_follows_a_failure_was_skipped() {
    for piece in PIECES {
        let mut both = Both::new(piece);
        both.send(&pipeline());
        assert_eq!(kinds(&both.receive(&answer("12C2DE"))), "CZ2DE", "more may come");
        assert_eq!(kinds(&both.receive(&answer("Z"))), "ZEZEZ");
        // The server has not prepared `COMMIT`.
        assert_eq!(kinds(&both.send(&pipeline()).0), "BEBEBEPBES");
        assert_eq!(
            kinds(&both.receive(&answer("2C2C2C12EZ"))),
            "CZ2CZ2CZEZ",
            "the last one failed"
        );
        assert_eq!(kinds(&both.send(&pipeline()).0), "BEBEBEBES");
    }
}

#[test]
fn an_announcement_waits_for_what_was_sent_before() {
    for piece in PIECES {
        let mut both = Both::new(piece);
        let (server, driver) = both.send(&[query("ROLLBACK"), pipeline()].concat());
        assert_eq!((kinds(&server).as_str(), kinds(&driver).as_str()), ("QPBEBEBEPBES", ""));
        assert_eq!(kinds(&both.receive(&answer("CZ"))), "CZIZ");
        assert_eq!(kinds(&both.receive(&answer("12C2C2C12CZ"))), "CZ2CZ2CZCZ");
    }
}

#[test]
fn statements_are_prepared_as_a_pipeline_too() {
    let parse =
        [message(b'P', b"s1\0X\0\0\0"), message(b'D', b"Ss1\0"), message(b'S', b"")].concat();
    let mut both = Both::new(10_000);
    let sent = [query(&announcement(3)), parse.clone(), parse.clone(), parse].concat();
    assert_eq!(kinds(&both.send(&sent).0), "PDPDPDS");
    assert_eq!(kinds(&both.receive(&answer("1tT1tn1tTZ"))), "1tTZ1tnZ1tTZ");
    both.send(&sent);
    assert_eq!(kinds(&both.receive(&answer("EZ"))), "EZEZEZ");
}

#[test]
fn a_server_that_ends_is_heard_as_it_spoke() {
    let mut both = Both::new(10_000);
    both.send(&pipeline());
    assert_eq!(
        kinds(&both.receive(&answer("12C2E"))),
        "CZ2E",
        "nothing is made up that it did not say"
    );
}

#[test]
fn the_same_text_twice_before_its_answer_is_prepared_once_by_name() {
    let mut both = Both::new(10_000);
    let twice = [query(&announcement(2)), query("SET x = 1"), query("SET x = 1")].concat();
    let (server, _) = both.send(&twice);
    assert_eq!(kinds(&server), "PBEPBES");
    let names = server.windows(7).filter(|bytes| bytes == b"mingle0").count();
    assert_eq!(names, 2, "one is prepared and bound by name, the other one without");
    both.receive(&answer("12C12CZ"));
    assert_eq!(kinds(&both.send(&twice).0), "BEBES");
}
