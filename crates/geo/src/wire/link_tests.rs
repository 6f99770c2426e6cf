use mingle_model::Value;
use mingle_model::random::Random;

use super::super::sessions::SESSIONS_MAX;
use super::*;
use crate::floors::Raised;
use crate::key::Key;
use crate::message::Ask;
use crate::types::{Kind, Op, Update};

fn transaction(random: &mut Random, sessions: usize, at: Timestamp, origin: DcId) -> Transaction {
    let key = Key::new(Kind::Register, format!("key:{}", random.below(1_000)));
    let op = Op::Write(Value::Bytes(vec![1; 64].into()));
    let snapshot_own = Timestamp::new(at.micros() - 3_000, PartitionId(random.below(4) as u16));
    let mut commit_vec = Vector::ZERO.with(origin, at);
    for other in (0..3).map(DcId).filter(|other| *other != origin) {
        // The uniform part, which changes now and then.
        commit_vec[other] = Timestamp::new(at.micros() / 5_000 * 5_000 - 9_000, PartitionId(1));
    }
    let session = Origin(u128::MAX / 3 + random.below(sessions) as u128);
    Transaction {
        id: TransactionId { origin: session, sequence: 1_000 + random.below(9) as u64 },
        begun_us: at.micros() - 200,
        origin,
        commit_vec,
        snapshot_own,
        updates: vec![Update { key, op, id: None }],
    }
}

/// Generates batches as they are replicated, mixed with heartbeats, vectors and other messages.
pub fn messages(random: &mut Random, sessions: usize, rounds: u16) -> Vec<(PartitionId, Message)> {
    let (mut micros, mut messages) = (1_700_000_000_000_000, Vec::new());
    let mut from = [Timestamp::ZERO; 4];
    for round in 0..rounds {
        let partition = PartitionId(round % 4);
        let origin = DcId(if random.one_in(5) { 2 } else { 0 });
        let transactions = (0..random.below(30)).map(|_| {
            micros += 1 + random.below(200) as u64;
            let at = Timestamp::new(micros, partition);
            Arc::new(transaction(random, sessions, at, origin))
        });
        let transactions = transactions.collect();
        let to = Timestamp::new(micros + 5, partition);
        let raised = Raised { origin: Origin(7), sequence: 3, at: to };
        let floors = if random.one_in(20) { vec![raised] } else { Vec::new() };
        let start = std::mem::replace(&mut from[usize::from(partition.0)], to);
        let (sender, from) = (DcId(0), start);
        let replicate = Replicate { epoch: 0, sender, origin, from, to, transactions, floors };
        messages.push((partition, Message::Replicate(replicate)));
        let known_vec = Vector::ZERO.with(DcId(0), to).with(DcId(1), Timestamp(to.0 - 9_999_999));
        let stable_vec = known_vec.with(DcId(0), start);
        let vecs = SiblingVecs { epoch: 1, dc: DcId(0), known_vec, stable_vec };
        messages.push((partition, Message::SiblingVecs(vecs)));
        if random.one_in(10) {
            let ask = Ask { epoch: 0, dc: DcId(0), origin, known: start };
            messages.push((partition, Message::Ask(ask)));
        }
    }
    messages
}

fn frames(messages: &[(PartitionId, Message)], each: usize) -> Vec<Vec<u8>> {
    let mut encoder = Encoder::default();
    let frames = messages.chunks(each).map(|chunk| {
        let mut frame = Vec::new();
        for (partition, message) in chunk {
            encoder.put(*partition, message, &mut frame);
        }
        frame
    });
    frames.collect()
}

#[test]
fn what_is_sent_arrives() {
    // One case has more sessions than are remembered.
    for sessions in [3, SESSIONS_MAX * 2] {
        let messages = messages(&mut Random::new(1), sessions, 200);
        let (mut decoder, mut arrived) = (Decoder::default(), Vec::new());
        for frame in frames(&messages, 7) {
            let each = |partition, message| arrived.push((partition, message));
            decoder.take(&frame, each).expect("it is sound");
        }
        assert_eq!(arrived, messages);
    }
}

#[test]
fn a_transaction_takes_few_bytes_beside_its_key_and_value() {
    let messages = messages(&mut Random::new(2), 100, 200);
    let (mut count, mut payload) = (0, 0);
    for (_, message) in &messages {
        let Message::Replicate(replicate) = message else { continue };
        for transaction in &replicate.transactions {
            count += 1;
            payload += transaction.updates[0].key.name.len() + 64;
        }
    }
    let bytes: usize = frames(&messages, 8).iter().map(Vec::len).sum();
    let metadata = (bytes - payload) as f64 / f64::from(count);
    assert!(metadata < 25.0, "{metadata} bytes for each of {count} transactions");
}

#[test]
fn bytes_that_no_encoder_wrote_are_refused_and_do_no_harm() {
    let mut random = Random::new(3);
    let frames = frames(&messages(&mut random, 20, 200), 4);
    let mut refused = 0;
    for _ in 0..3_000 {
        let mut frame = frames[random.below(frames.len())].clone();
        for _ in 0..=random.below(4) {
            let place = random.below(frame.len());
            frame[place] = random.bits() as u8;
        }
        frame.truncate(random.below(frame.len() + 1));
        refused += u32::from(Decoder::default().take(&frame, |_, _| {}).is_err());
    }
    assert!(refused > 1_000, "{refused}");
    assert!(Decoder::default().take(&[9, 0], |_, _| {}).is_err());
}
