//! The golden files: bytes of version 1 that later builds must read and write in the same way.
//!
//! `MINGLE_BLESS=1` writes them. Once a version has been released, its files are never written again:
//! a change of the encoding gets a version and files of its own.

use std::fmt::{Debug, Write as _};
use std::path::PathBuf;

use mingle_model::random::Random;
use omnipaxos::messages::Message as PaxosMessage;
use omnipaxos::messages::sequence_paxos::PaxosMsg;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::super::*;
use super::generate::{generate, generate_variant};
use super::{MESSAGES, RECORDS};
use crate::certify::Entry;
use crate::codec::{Reader, put_value, trace};
use crate::message::{Address, Message};
use crate::record::Record;
use crate::timestamp::DcId;

/// The samples of each variant.
const SAMPLES: usize = 3;

/// The number of kinds of messages of the consensus library.
const LIBRARY: u32 = 12;

/// The samples are at most this long, so that the files can be read.
const BYTES_MAX: usize = 400;

fn path(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "golden", "v1", name].iter().collect()
}

#[expect(clippy::disallowed_methods, reason = "the tests write their own files on request")]
fn is_blessed() -> bool {
    std::env::var_os("MINGLE_BLESS").is_some()
}

#[expect(clippy::disallowed_methods, reason = "the tests write their own files on request")]
fn write_file(name: &str, text: &str) {
    let path = path(name);
    std::fs::create_dir_all(path.parent().expect("it is in a folder")).expect("it is made");
    std::fs::write(&path, text).expect("it is written");
}

#[expect(clippy::disallowed_methods, reason = "the tests read their own files")]
fn read_file(name: &str) -> String {
    std::fs::read_to_string(path(name)).expect("the golden file is there")
}

/// Compares a text with a golden file, or writes the file.
fn check(name: &str, text: &str) {
    if is_blessed() {
        write_file(name, text);
    }
    assert!(
        read_file(name) == text,
        "{name} differs: the bytes of version 1 have changed. A change needs a new version of the encoding"
    );
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a text takes it");
        text
    })
}

fn unhex(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok();
    digits.map(|pair| byte(pair).expect("two digits")).collect()
}

/// Draws short samples of each variant, as a golden text: bytes, and the value below.
fn draw<T: DeserializeOwned + Debug>(
    count: u32,
    write: impl Fn(&mut Vec<u8>, &T),
    read: impl Fn(&[u8]) -> T,
) -> String {
    let mut text = String::new();
    for number in 0..count {
        let mut random = Random::new(u64::from(number) + 1);
        let samples = std::iter::repeat_with(|| {
            let value: Option<T> = generate_variant(&mut random, number);
            let mut bytes = Vec::new();
            if let Some(value) = &value {
                write(&mut bytes, value);
            }
            bytes
        });
        let short = samples.take(20_000).filter(|bytes| (1..BYTES_MAX).contains(&bytes.len()));
        for bytes in short.take(SAMPLES) {
            writeln!(text, "{}\n    {:?}", hex(&bytes), read(&bytes)).expect("a text takes it");
        }
    }
    text
}

/// Reads each sample of a golden file, and checks that the value is the same and writes the same
/// bytes.
fn compare<T: Debug>(
    name: &str,
    drawn: impl FnOnce() -> String,
    write: impl Fn(&mut Vec<u8>, &T),
    read: impl Fn(&[u8]) -> T,
) {
    if is_blessed() {
        write_file(name, &drawn());
    }
    let golden = read_file(name);
    let lines: Vec<&str> = golden.lines().collect();
    assert!(
        !lines.is_empty() && lines.len().is_multiple_of(2),
        "{name} has bytes and values in turn"
    );
    for pair in lines.chunks(2) {
        let bytes = unhex(pair[0]);
        let value = read(&bytes);
        assert_eq!(format!("{value:?}"), pair[1].trim_start(), "{name}: {}", pair[0]);
        let mut again = Vec::new();
        write(&mut again, &value);
        assert_eq!(hex(&again), pair[0], "{name}: {value:?}");
    }
}

fn put<T: Serialize>(out: &mut Vec<u8>, value: &T) {
    put_value(out, value);
}

fn value<T: DeserializeOwned>(bytes: &[u8]) -> T {
    let mut reader = Reader::new(bytes, VERSION);
    let value = reader.value().expect("the golden bytes are sound");
    reader.end().expect("it is all of the bytes");
    value
}

#[test]
fn messages_and_records_keep_their_bytes() {
    compare::<Message>("messages.txt", || draw::<Message>(MESSAGES, put, value), put, value);
    let read = |bytes: &[u8]| take_record(bytes).expect("the golden bytes are sound");
    compare::<Record>("records.txt", || draw(RECORDS, put_record, read), put_record, read);
}

/// The messages of the consensus library travel as bytes in a message: a later version of the
/// library must keep them.
#[test]
fn messages_of_the_consensus_library_keep_their_bytes() {
    let drawn = || draw::<PaxosMsg<Entry>>(LIBRARY, put, value);
    compare::<PaxosMsg<Entry>>("consensus.txt", drawn, put, value);
    let drawn = || draw::<PaxosMessage<Entry>>(2, put, value);
    compare::<PaxosMessage<Entry>>("consensus_envelopes.txt", drawn, put, value);
}

#[test]
fn hello_and_addresses_keep_their_bytes() {
    let hello = Hello {
        versions: Versions { least: 1, most: 1 },
        cluster: 0x0123_4567_89ab_cdef_0123_4567_89ab_cdef,
        dc: DcId(2),
        node: 0,
        incarnation: 3,
        boot: 7,
        process: 0xfedc_ba98_7654_3210,
        wall_us: 1_795_132_800_000_000,
        settings: 0,
    };
    let mut text = String::new();
    for (name, settings) in [("HELLO", 0), ("HELLO with settings", 0xfedc_ba98)] {
        let mut frame = Vec::new();
        Hello { settings, ..hello }.put(&mut frame);
        writeln!(text, "{name} {}", hex(&frame)).expect("a text takes it");
    }
    let mut random = Random::new(1);
    for number in [0, 1, 0, 1] {
        let address: Address = generate_variant(&mut random, number).expect("its parts fit");
        let mut bytes = Vec::new();
        put_value(&mut bytes, &address);
        assert_eq!(value::<Address>(&bytes), address);
        writeln!(text, "{address:?} {}", hex(&bytes)).expect("a text takes it");
    }
    check("addresses.txt", &text);
}

/// The frames of a link depend on all earlier ones, so the file holds a whole connection.
#[test]
fn a_link_keeps_its_bytes() {
    let messages = super::super::link::tests::messages(&mut Random::new(9), 5, 24);
    let (mut encoder, mut text) = (Encoder::default(), String::new());
    for (partition, message) in &messages {
        let mut frame = Vec::new();
        encoder.put(*partition, message, &mut frame);
        writeln!(text, "{}", hex(&frame)).expect("a text takes it");
    }
    check("link.txt", &text);
    let (mut decoder, mut taken) = (Decoder::default(), Vec::new());
    for line in text.lines() {
        let frame = unhex(line);
        decoder.take(&frame, |partition, message| taken.push((partition, message))).expect("sound");
    }
    assert_eq!(taken, messages);
}

/// All enumerations that messages and records contain, with the numbers of their variants.
#[test]
fn variants_keep_their_numbers() {
    let mut random = Random::new(5);
    let _earlier = trace::take();
    for _ in 0..3_000 {
        for number in 0..MESSAGES {
            if let Some(message) = generate_variant::<Message>(&mut random, number) {
                let mut bytes = Vec::new();
                put_value(&mut bytes, &message);
                let _: Message = value(&bytes);
            }
        }
        if let Some(record) = generate::<Record>(&mut random) {
            let mut bytes = Vec::new();
            put_record(&mut bytes, &record);
            take_record(&bytes).expect("it was written");
        }
    }
    for number in (0..2_000).map(|number| number % LIBRARY) {
        let message: PaxosMsg<Entry> =
            generate_variant(&mut random, number).expect("its parts fit");
        let mut bytes = Vec::new();
        put_value(&mut bytes, &message);
        let _: PaxosMsg<Entry> = value(&bytes);
    }
    let mut text = String::new();
    for ((of, _), seen) in trace::take() {
        let missing: Vec<_> = (0..seen.names.len()).filter(|at| !seen.met.contains(at)).collect();
        assert!(missing.is_empty(), "variants {missing:?} of {of} never occurred");
        writeln!(text, "{of}").expect("a text takes it");
        for (number, name) in seen.names.iter().enumerate() {
            writeln!(text, "    {number} {name}").expect("a text takes it");
        }
    }
    check("numbers.txt", &text);
}
