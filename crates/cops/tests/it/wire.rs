//! The encoding of frames. Every packet of the scripts is encoded and decoded.

use mingle_cops::clock::{NodeId, Timestamp};
use mingle_cops::column::{Cell, Column, Content};
use mingle_cops::deps::Dep;
use mingle_cops::message::{Frame, Message, Packet};
use mingle_cops::wire::{put_frame, size, sized, take_frame};
use mingle_model::random::Random;

/// Encodes and decodes the content of a packet.
pub fn check(packet: &Packet) {
    let mut bytes = Vec::new();
    put_frame(&mut bytes, packet.time, &packet.frame);
    assert_eq!(take_frame(&bytes).as_ref(), Ok(&(packet.time, packet.frame.clone())));
    for end in 0..bytes.len() {
        assert!(take_frame(&bytes[..end]).is_err(), "{end} bytes of {packet:?}");
    }
}

/// A frame with a value, a deleted column, a negative sum and dependencies.
fn slice_result() -> Frame {
    let dep = Dep { key: 300, ts: Timestamp::new(1 << 40, NodeId::new(3, 16_383)) };
    let contents = [Content::Value(sized(5, 20)), Content::Deleted, Content::Sum(i64::MIN)];
    let cells = contents.into_iter().enumerate().map(|(name, content)| {
        let column = Column { super_column: u32::MAX, name: name as u32 };
        Cell { column, content, ts: dep.ts, deps: vec![dep, dep] }
    });
    let (request, part, evt, lvt) = (u64::MAX, 3, 7, 1 << 33);
    let message =
        Message::SliceResult { request, part, cells: cells.collect(), evt, lvt, is_pending: true };
    Frame::Numbered(9, message)
}

#[test]
fn a_value_takes_its_size() {
    assert_eq!([0, 1, 128, 4_096].map(|bytes| size(sized(77, bytes))), [0, 1, 128, 4_096]);
    let length = |bytes| {
        let (value, deps, nearest) = (sized(1, bytes), Vec::new(), Vec::new());
        let message = Message::WriteAfter { request: 1, key: 1, value, deps, nearest };
        let mut out = Vec::new();
        put_frame(&mut out, 1, &Frame::Plain(message));
        out.len()
    };
    assert_eq!(length(4_000) - length(1_000), 3_000);
}

#[test]
fn damaged_frames_are_errors_or_other_frames() {
    let mut bytes = Vec::new();
    put_frame(&mut bytes, 4, &slice_result());
    assert_eq!(take_frame(&bytes), Ok((4, slice_result())));
    let mut random = Random::new(11);
    let mut errors = 0;
    for _ in 0..20_000 {
        let mut damaged = bytes.clone();
        for _ in 0..=random.below(3) {
            let place = random.below(damaged.len());
            damaged[place] = random.bits() as u8;
        }
        // It must not panic, nor take much memory.
        errors += u64::from(take_frame(&damaged).is_err());
    }
    assert!(errors > 1_000, "{errors}");
}
