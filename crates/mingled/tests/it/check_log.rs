//! `mingled check-log`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use mingle_geo::record::Record;
use mingle_geo::{DcId, PartitionId};
use mingle_geo_node::segment::Identity;
use mingle_geo_node::{Journal as _, put_entry};
use mingled::check_log::{CheckError, check};
use mingled::{FileJournal, JournalSettings};

/// Writes a journal of some files, in two starts.
fn written(folder: &Path) {
    let identity = Identity { cluster: 5, dc: DcId(1), node: 0, incarnation: 0 };
    for is_founding in [true, false] {
        let usual = JournalSettings::new(folder, identity, is_founding);
        let settings = JournalSettings { segment_bytes: 4_000, ..usual };
        let (mut journal, _) = FileJournal::open(&settings, Box::new(|_| {})).expect("it opens");
        for number in 0..600 {
            let partition = PartitionId(u16::try_from(number % 3).expect("it is small"));
            journal.append(&put_entry(partition, &Record::AgeFloor(number)));
            if number % 50 == 0 {
                journal.sync();
            }
        }
        journal.sync();
    }
}

fn last_log(folder: &Path) -> PathBuf {
    let files =
        fs::read_dir(folder).expect("the folder").map(|entry| entry.expect("an entry").path());
    let log = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("log-"))
    };
    files.filter(log).max().expect("a log")
}

#[test]
fn a_sound_journal_is_counted_and_not_changed() {
    let folder = tempfile::tempdir().expect("a folder");
    written(folder.path());
    let before = bytes_of(folder.path());
    let report = check(folder.path()).expect("a journal");
    assert_eq!(report.verdict(), Ok(()));
    assert_eq!(report.records["age floors"].0, 1_200);
    assert_eq!(report.partitions.values().copied().collect::<Vec<u64>>(), [400; 3]);
    assert_eq!((report.boot, report.is_torn), (2, false));
    assert!(report.files.len() > 3, "{report}");
    assert!(report.to_string().ends_with("\nsound"), "{report}");

    // The end that a crash leaves.
    let last = last_log(folder.path());
    let mut bytes = fs::read(&last).expect("a log");
    let end = bytes.iter().rposition(|byte| *byte != 0).expect("entries");
    bytes.truncate(end - 3);
    fs::write(&last, &bytes).expect("room");
    let report = check(folder.path()).expect("a journal");
    assert!(report.is_torn && report.to_string().contains("torn bytes"), "{report}");
    assert_eq!((report.verdict(), report.records["age floors"].0), (Ok(()), 1_199));
    fs::write(&last, &before[&last]).expect("room");
    assert_eq!(bytes_of(folder.path()), before);
}

fn bytes_of(folder: &Path) -> std::collections::BTreeMap<PathBuf, Vec<u8>> {
    let paths =
        fs::read_dir(folder).expect("the folder").map(|entry| entry.expect("an entry").path());
    paths.map(|path| (path.clone(), fs::read(path).expect("a file"))).collect()
}

/// Every damage that a start refuses is refused here, with the same words.
#[test]
fn damage_is_told_as_a_start_tells_it() {
    let folder = tempfile::tempdir().expect("a folder");
    written(folder.path());
    let good = bytes_of(folder.path());
    let (mut refused, mut sound) = (0, 0);
    for (path, bytes) in &good {
        if path.extension().is_none_or(|extension| extension != "mgj") {
            continue;
        }
        for place in (0..bytes.len()).step_by(bytes.len() / 7 + 1).chain([0, 20]) {
            let mut damaged = bytes.clone();
            damaged[place] ^= 0x40;
            fs::write(path, damaged).expect("room");
            let told = match check(folder.path()) {
                Ok(report) => report.verdict(),
                Err(error) => Err(error.to_string()),
            };
            let copy = tempfile::tempdir().expect("a folder");
            for (path, bytes) in bytes_of(folder.path()) {
                fs::write(copy.path().join(path.file_name().expect("a name")), bytes)
                    .expect("room");
            }
            let identity = Identity { cluster: 5, dc: DcId(1), node: 0, incarnation: 0 };
            let settings = JournalSettings::new(copy.path(), identity, false);
            let started = FileJournal::open(&settings, Box::new(|_| {}));
            match (told, started) {
                (Ok(()), Ok(_)) => sound += 1,
                (Err(told), Err(error)) => {
                    refused += 1;
                    assert!(error.to_string().ends_with(&told), "{told} / {error}");
                }
                (told, started) => panic!("{}: {told:?} / {started:?}", path.display()),
            }
        }
        fs::write(path, bytes).expect("room");
    }
    assert!(refused > 10 && sound > 0, "{refused} refused, {sound} sound");
    fs::remove_file(last_log(folder.path())).expect("a log");
    let other = last_log(folder.path());
    fs::write(&other, "nothing").expect("room");
    let report = check(folder.path()).expect("a journal");
    assert!(report.to_string().contains("its header is damaged"), "{report}");
}

#[test]
fn the_command_prints_and_refuses() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let run = |folder: &Path| {
        let ran = Command::new(env!("CARGO_BIN_EXE_mingled")).arg("check-log").arg(folder).output();
        let ran = ran.expect("it starts");
        let text = [ran.stdout, ran.stderr].concat();
        (ran.status.code(), String::from_utf8_lossy(&text).into_owned())
    };
    let (code, text) = run(&data);
    assert!(code == Some(1) && text.contains("data: No such file"), "{text}");
    fs::create_dir_all(data.join("journal")).expect("room");
    let (code, text) = run(&data);
    assert!(
        code == Some(1) && text.contains("has no journal, expected files such as checkpoint-"),
        "{text}"
    );
    written(&data.join("journal"));
    let (code, text) = run(&data);
    assert!(code == Some(0) && text.contains("journal of process 0 of d1"), "{text}");
    assert!(text.contains("1200 age floors"), "{text}");
    let last = last_log(&data.join("journal"));
    let bytes = fs::read(&last).expect("a log");
    fs::write(&last, &bytes[..10]).expect("room");
    let (code, text) = run(&data);
    assert!(code == Some(1) && text.contains("a start would refuse this journal"), "{text}");
    fs::write(&last, bytes).expect("room");

    let identity = Identity { cluster: 5, dc: DcId(1), node: 0, incarnation: 0 };
    let settings = JournalSettings::new(&data.join("journal"), identity, false);
    let opened = FileJournal::open(&settings, Box::new(|_| {})).expect("it opens");
    let error = check(&data.join("journal")).expect_err("it is open");
    assert!(
        matches!(error, CheckError::Locked { process, .. } if process == std::process::id()),
        "{error}"
    );
    drop(opened);
    check(&data.join("journal")).expect("it is closed");
}
