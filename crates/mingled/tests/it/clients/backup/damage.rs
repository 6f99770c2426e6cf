//! Files that are no complete backup.

use std::fs;
use std::path::Path;

use mingle_model::random::Random;
use mingled::backup::{Damage, FRAME_BYTES_MAX, FileError, check};

use super::{Started, backup, refused, seed, text};

/// The bytes before the first frame, of a frame's head, and of a header.
const PREAMBLE: usize = 12;
const HEAD: usize = 17;

/// Makes a small backup of several frames.
fn made(file: &Path, value: char) -> Vec<u8> {
    let mut started = Started::new();
    let mut client = started.client();
    for number in 0..3 {
        let long = value.to_string().repeat(700_000);
        assert_eq!(
            super::super::shown(&client.call(&["SET", &format!("k{number}"), &long])),
            "+OK"
        );
    }
    backup(started.address(), file);
    started.stop();
    fs::read(file).expect("the backup")
}

/// Returns the places of the frames.
fn frames(bytes: &[u8]) -> Vec<std::ops::Range<usize>> {
    let (mut frames, mut at) = (Vec::new(), PREAMBLE);
    while at < bytes.len() {
        let length = bytes[at + 9..at + 13].try_into().expect("four bytes");
        let end = at + HEAD + u32::from_le_bytes(length) as usize;
        frames.push(at..end);
        at = end;
    }
    frames
}

fn checked(file: &Path, bytes: &[u8]) -> Result<(), FileError> {
    fs::write(file, bytes).expect("room");
    check(file).map(drop)
}

#[test]
fn files_that_are_cut_off_damaged_or_foreign_are_refused() {
    let seed = seed();
    println!("seed {seed}");
    let folder = tempfile::tempdir().expect("a folder");
    let [good, bad] = ["good", "bad"].map(|name| folder.path().join(name));
    let bytes = made(&good, 'a');
    assert_eq!(checked(&bad, &bytes), Ok(()));
    let frames = frames(&bytes);
    assert!(frames.len() > 4, "{frames:?}");
    assert!(frames.iter().all(|frame| frame.len() <= FRAME_BYTES_MAX), "{frames:?}");

    let mut random = Random::new(seed);
    let ends = frames.iter().flat_map(|frame| [frame.start, frame.start + 1, frame.end - 1]);
    let cuts = (0..40).map(|_| random.below(bytes.len())).collect::<Vec<_>>();
    for cut in ends.chain(0..PREAMBLE + 2).chain(cuts) {
        let error = checked(&bad, &bytes[..cut]).expect_err("it is cut off");
        let expected = if cut < 8 { Damage::Foreign } else { Damage::CutOff };
        assert_eq!(error.damage, expected, "cut at {cut}");
    }
    for _ in 0..200 {
        // Half of them in the heads, where they matter most.
        let frame = &frames[random.below(frames.len())];
        let place = if random.below(2) == 0 {
            frame.start + random.below(HEAD.min(frame.len()))
        } else {
            random.below(bytes.len())
        };
        let mut damaged = bytes.clone();
        damaged[place] ^= 1 << random.below(8);
        assert!(checked(&bad, &damaged).is_err(), "byte {place}");
    }
    // Frames that are left out, repeated, or of another backup.
    let [first, second] = [&frames[1], &frames[2]];
    let without = [&bytes[..first.start], &bytes[first.end..]].concat();
    let twice = [&bytes[..first.end], &bytes[first.clone()], &bytes[first.end..]].concat();
    let swapped = [
        &bytes[..first.start],
        &bytes[second.clone()],
        &bytes[first.clone()],
        &bytes[second.end..],
    ]
    .concat();
    let other = made(&folder.path().join("other"), 'b');
    let others = [&bytes[..first.start], &other[first.clone()], &bytes[first.end..]].concat();
    for (name, bytes, number) in [
        ("without", without, 1),
        ("twice", twice, 2),
        ("swapped", swapped, 1),
        ("others", others, 1),
    ] {
        let error = checked(&bad, &bytes).expect_err("it is damaged");
        assert_eq!(error.damage, Damage::Frame(number), "{name}");
    }
    let more = [&bytes[..], b"x"].concat();
    assert_eq!(checked(&bad, &more).unwrap_err().damage, Damage::More);
    let mut later = bytes.clone();
    later[8] = 2;
    let error = checked(&bad, &later).unwrap_err();
    assert!(
        error.to_string().ends_with("it has version 2 of backups, and this build reads version 1")
    );
    assert_eq!(checked(&bad, b"").unwrap_err().damage, Damage::Foreign);
}

#[test]
fn nothing_is_restored_from_a_damaged_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let [file, to] = ["file", "to"].map(|name| folder.path().join(name));
    let bytes = made(&file, 'a');
    let arguments = ["restore", "--file", text(&file), "--dir", text(&to)];
    for (bytes, expected) in [
        (&bytes[..bytes.len() - 1], "it is cut off"),
        (&[&bytes[..5_000], b"?", &bytes[5_001..]].concat(), "it is damaged: frame 1 at byte"),
        (b"something else", "it is no backup of mingled"),
    ] {
        fs::write(&file, bytes).expect("room");
        let error = refused(&arguments);
        assert!(error.contains(expected), "{error}");
        assert!(!to.exists());
        let error = refused(&["check-backup", text(&file)]);
        assert!(error.contains(expected), "{error}");
    }
    fs::write(&file, &bytes).expect("room");
    // The number of the cluster of these tests, and that of a cluster without one.
    for (more, expected) in [
        (["--cluster", "7"].as_slice(), "is the cluster of the backup"),
        (&["--dcs", "3"], "--cluster is missing"),
        (&["--dcs", "3", "--dc", "3", "--cluster", "8"], "--dc is 3, expected less than --dcs, 3"),
        (&["--cluster", "x"], "--cluster is 'x', expected up to 32 hexadecimal digits"),
    ] {
        let error = refused(&[&arguments[..], more].concat());
        assert!(error.contains(expected), "{error}");
        assert!(!to.exists());
    }
}
