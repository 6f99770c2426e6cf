//! Every type that leaves a process comes back as it was, and bytes that no build wrote do no harm.

mod generate;
mod golden;
mod hostile;

use std::sync::Arc;

use mingle_model::random::Random;
use serde::de::DeserializeOwned;

use super::*;
use crate::codec::{Reader, put_number, put_value};
use crate::message::{Address, Message};
use crate::record::Record;
use crate::timestamp::{DcId, PartitionId};
use generate::{generate, generate_variant};

/// The numbers of variants of messages and of records.
const MESSAGES: u32 = 32;
const RECORDS: u32 = 14;

const SEED: u64 = 41;

fn bytes_of(message: &Message) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_value(&mut bytes, message);
    bytes
}

fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, WireError> {
    let mut reader = Reader::new(bytes, VERSION);
    let value = reader.value()?;
    reader.end().map(|()| value)
}

#[test]
fn every_message_comes_back() {
    let mut random = Random::new(SEED);
    for number in 0..MESSAGES {
        let mut count = 0;
        for _ in 0..400 {
            let Some(message) = generate_variant::<Message>(&mut random, number) else { continue };
            assert_eq!(read(&bytes_of(&message)), Ok(message), "variant {number}, seed {SEED}");
            count += 1;
        }
        assert!(count > 200, "variant {number}: {count} values");
    }
    let Err(WireError::Variant { of: "Message", found: 32, known, .. }) =
        read::<Message>(&[MESSAGES as u8])
    else {
        panic!("a number beyond the last variant is refused")
    };
    assert_eq!(known, u64::from(MESSAGES), "a variant was added: count it here");
}

#[test]
fn every_record_comes_back() {
    let mut random = Random::new(SEED);
    for number in 0..RECORDS {
        let mut count = 0;
        for _ in 0..400 {
            let Some(record) = generate_variant::<Record>(&mut random, number) else { continue };
            let mut bytes = Vec::new();
            put_record(&mut bytes, &record);
            assert_eq!(take_record(&bytes), Ok(record), "variant {number}, seed {SEED}");
            count += 1;
        }
        assert!(count > 200, "variant {number}: {count} values");
    }
    let Err(WireError::Variant { of: "Record", known, .. }) = read::<Record>(&[RECORDS as u8])
    else {
        panic!("a number beyond the last variant is refused")
    };
    assert_eq!(known, u64::from(RECORDS), "a variant was added: count it here");
}

#[test]
fn every_message_comes_back_over_a_link() {
    let (mut random, mut encoder, mut decoder) =
        (Random::new(SEED), Encoder::default(), Decoder::default());
    for _ in 0..5_000 {
        let number = random.below(MESSAGES as usize) as u32;
        let Some(message) = generate_variant::<Message>(&mut random, number) else { continue };
        let (partition, mut frame) = (PartitionId(random.below(9) as u16), Vec::new());
        encoder.put(partition, &message, &mut frame);
        let mut taken = Vec::new();
        decoder.take(&frame, |partition, message| taken.push((partition, message))).expect("sound");
        assert_eq!(taken, [(partition, message)], "seed {SEED}");
    }
}

/// Bytes that were cut off, changed or put together differently are refused or are other messages.
#[test]
fn changed_bytes_do_no_harm() {
    let (mut random, mut refused, mut count) = (Random::new(SEED), 0, 0);
    for round in 0..20_000 {
        let Some(message) = generate_variant::<Message>(&mut random, round % MESSAGES) else {
            continue;
        };
        let mut bytes = bytes_of(&message);
        for _ in 0..=random.below(4) {
            let place = random.below(bytes.len());
            match random.below(3) {
                0 => bytes[place] ^= 1 << random.below(8),
                1 => bytes[place] = random.bits() as u8,
                _ => bytes.truncate(place.max(1)),
            }
        }
        count += 1;
        let outcome: Result<Message, WireError> = read(&bytes);
        refused += u32::from(outcome.is_err());
        let mut record = vec![0xd6, VERSION as u8];
        record.extend(&bytes);
        let _may_be_another: Result<Record, WireError> = take_record(&record);
    }
    assert!(refused > count / 4, "{refused} of {count}, seed {SEED}");
}

/// Every proper prefix of a message is refused: nothing is read beyond the end.
#[test]
fn a_part_of_a_message_is_refused() {
    let mut random = Random::new(SEED);
    for number in 0..MESSAGES {
        let drawn = std::iter::repeat_with(|| generate_variant::<Message>(&mut random, number));
        let messages = drawn.flatten().map(|message| bytes_of(&message));
        for bytes in messages.filter(|bytes| bytes.len() < 2_000).take(5) {
            for length in 0..bytes.len() {
                assert!(read::<Message>(&bytes[..length]).is_err(), "{length} of {bytes:?}");
            }
        }
    }
}

/// A claimed length reserves no memory for elements that cannot be there.
#[test]
fn a_length_beyond_the_end_is_refused() {
    let mut bytes = Vec::new();
    put_number(&mut bytes, u64::MAX / 2);
    bytes.extend([0; 16]);
    let refused = WireError::Malformed("a length reaches beyond the end");
    assert_eq!(read::<Vec<u64>>(&bytes), Err(refused.clone()));
    assert_eq!(read::<Vec<(u64, Arc<[u8]>)>>(&bytes), Err(refused.clone()));
    assert_eq!(read::<String>(&bytes), Err(refused));
}

#[test]
fn reserved_fields_are_refused_unless_they_are_0() {
    let address = |bytes: &[u8]| read::<Address>(bytes);
    assert_eq!(address(&[0, 0, 0, 9]), Ok(Address::Client(9)));
    let refused = address(&[0, 3, 2, 9]).unwrap_err().to_string();
    assert!(refused.contains("process 3 at its start 2"), "{refused}");
    assert_eq!(address(&[1, 0, 2, 9]), Ok(Address::Replica(DcId(2), PartitionId(9))));
    assert!(address(&[1, 1, 2, 9]).is_err());
    let mut handout = Vec::new();
    put_value(&mut handout, &crate::message::Handout::default());
    assert!(read::<crate::message::Handout>(&handout).is_ok());
    let end = handout.len();
    (handout[end - 2], handout[end - 1]) = (4, 6);
    let refused = read::<crate::message::Handout>(&handout).unwrap_err().to_string();
    assert!(refused.contains("6 partitions of placement 4"), "{refused}");
}

#[test]
fn hello_comes_back_and_later_fields_are_skipped_only_in_length() {
    let hello = Hello {
        versions: VERSIONS,
        cluster: 1 << 127,
        dc: DcId(1),
        node: 0,
        incarnation: 0,
        boot: 300,
        process: u64::MAX,
        wall_us: 1_795_132_800_000_000,
        settings: 5,
    };
    // An earlier build does not send the last field.
    let earlier = Hello { settings: 0, ..hello };
    let (mut frame, mut shorter) = (Vec::new(), Vec::new());
    hello.put(&mut frame);
    earlier.put(&mut shorter);
    assert_eq!((Hello::take(&frame), Hello::take(&shorter)), (Ok(hello), Ok(earlier)));
    assert_eq!(shorter.len() + 1, frame.len());
    // A later version adds a field.
    let mut later = frame.clone();
    later[4] += 1;
    later.push(9);
    assert_eq!(Hello::take(&later), Ok(hello));
    for length in 0..frame.len() {
        assert!(Hello::take(&frame[..length]).is_err());
    }
    assert!(Hello::take(b"GET / HTTP/1.1\r\n\r\n").is_err());
    let mut random = Random::new(SEED);
    let any: Hello = generate(&mut random).expect("its parts fit");
    let mut frame = Vec::new();
    any.put(&mut frame);
    assert_eq!(Hello::take(&frame), Ok(any));
}

#[test]
fn a_record_of_a_later_version_or_without_one_is_refused() {
    let mut bytes = Vec::new();
    put_record(&mut bytes, &Record::AgeFloor(7));
    bytes.push(0);
    assert!(take_record(&bytes).is_err(), "more follows");
    bytes.pop();
    bytes[1] = 2;
    let refused = take_record(&bytes);
    assert_eq!(refused, Err(WireError::Version { of: "a record", found: 2 }));
    assert!(take_record(&[1, 7]).is_err());
    let unknown = take_record(&[0xd6, 1, 14, 0]).unwrap_err().to_string();
    assert!(
        unknown.contains("Record has no variant 14") && unknown.contains("version 1"),
        "{unknown}"
    );
}
