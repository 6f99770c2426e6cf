//! The journal over real files.

use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use mingle_geo::DcId;
use mingle_geo_node::Journal as _;
use mingle_geo_node::folder::Fault;
use mingle_geo_node::segment::Identity;
use mingle_model::random::{Random, mix};
use mingled::{FileJournal, JournalSettings, OpenError, Restored};

use super::child::{Running, part, tell};

type Ends = Receiver<Result<(), Fault>>;

fn settings(folder: &Path, is_founding: bool) -> JournalSettings {
    let identity = Identity { cluster: 5, dc: DcId(1), node: 0, incarnation: 0 };
    let usual = JournalSettings::new(folder, identity, is_founding);
    JournalSettings { segment_bytes: 20_000, ..usual }
}

fn open(settings: &JournalSettings) -> Result<(FileJournal, Restored, Ends), OpenError> {
    let (ended, ends) = channel();
    let ended = Mutex::new(ended);
    let report = move |end| {
        let ended = ended.lock().expect("no test panics here");
        // The receiver may be gone at the end of a test.
        let _ = ended.send(end);
    };
    let (journal, restored) = FileJournal::open(settings, Box::new(report))?;
    Ok((journal, restored, ends))
}

fn end(ends: &Ends) -> Result<(), Fault> {
    ends.recv_timeout(Duration::from_mins(1)).expect("a sync ends")
}

/// The entry with this number; the lengths differ.
fn entry(number: u64) -> Vec<u8> {
    let mut entry = number.to_le_bytes().to_vec();
    entry.resize(8 + (mix(number) % 900) as usize, number as u8);
    entry
}

fn number_of(entry: &[u8]) -> u64 {
    u64::from_le_bytes(*entry.first_chunk().expect("an entry begins with its number"))
}

/// Checks that the entries continue the numbers from the first one; returns the number after them.
fn in_order(entries: &[Vec<u8>]) -> u64 {
    let first = entries.first().map_or(0, |first| number_of(first));
    for (number, found) in (first..).zip(entries) {
        assert_eq!(*found, entry(number), "entry {number}");
    }
    first + entries.len() as u64
}

#[test]
fn entries_come_back_after_each_start_and_checkpoint() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut next, mut random) = (0, Random::new(1));
    for boot in 1..12 {
        let (mut journal, restored, ends) =
            open(&settings(folder.path(), boot == 1)).expect("the folder is sound");
        assert_eq!((restored.boot, restored.was_torn), (boot, false));
        assert_eq!(in_order(&restored.entries), next);
        assert_eq!(journal.length(), restored.entries.len());
        for _ in 0..20 {
            for _ in 0..=random.below(5) {
                journal.append(&entry(next));
                next += 1;
            }
            journal.sync();
            end(&ends).expect("no fault");
            if random.one_in(15) && journal.length() > 0 {
                // The last entries stand for all.
                journal.replace((next - 3..next).map(entry).collect());
            }
        }
    }
    let files = fs::read_dir(folder.path()).expect("it is there").count();
    assert!(files < 30, "{files} files: earlier ones are removed");
}

#[test]
fn a_folder_has_one_process_at_a_time_and_the_error_names_it() {
    let folder = tempfile::tempdir().expect("a folder");
    if let Some(folder) = part() {
        let opened = open(&settings(folder.as_ref(), true)).expect("the folder is empty");
        tell("opened");
        // Until it is killed.
        std::thread::park();
        drop(opened);
        return;
    }
    let mut running = Running::start(&folder.path().display().to_string());
    assert_eq!(running.line().as_deref(), Some("opened"));
    let refused = open(&settings(folder.path(), false)).map(|_| ()).unwrap_err();
    let path = folder.path().display().to_string();
    assert_eq!(refused, OpenError::Locked { path, process: Some(running.id()) });
    assert!(refused.to_string().contains(&running.id().to_string()), "{refused}");
    running.kill();
    let (_, restored, _) = open(&settings(folder.path(), false)).expect("the process is dead");
    assert_eq!(restored.boot, 2);
}

/// Appends and replaces entries for ever, and tells each number that is safe.
fn append_for_ever(folder: &Path) -> ! {
    let is_founding = !folder.exists();
    let (mut journal, restored, ends) = open(&settings(folder, is_founding)).expect("it is sound");
    let mut next = in_order(&restored.entries);
    tell(&format!("found {next}"));
    let mut random = Random::new(next);
    loop {
        for _ in 0..=random.below(8) {
            journal.append(&entry(next));
            next += 1;
        }
        journal.sync();
        // These belong to the next sync.
        let more = random.below(3) as u64;
        (next..next + more).for_each(|number| journal.append(&entry(number)));
        end(&ends).expect("no fault");
        tell(&format!("safe {next}"));
        next += more;
        if more == 0 && random.one_in(10) && journal.length() > 0 {
            journal.replace((next.saturating_sub(5)..next).map(entry).collect());
        }
    }
}

#[test]
fn nothing_that_was_reported_safe_is_lost_when_the_process_is_killed() {
    if let Some(folder) = part() {
        append_for_ever(folder.as_ref());
    }
    let parent = tempfile::tempdir().expect("a folder");
    let folder = parent.path().join("journal");
    let mut random = Random::new(7);
    let mut safe = 0;
    for kill in 0..25 {
        let mut running = Running::start(&folder.display().to_string());
        let found = running.line().expect("it starts");
        let found: u64 =
            found.strip_prefix("found ").expect("it says so").parse().expect("a number");
        assert!(found >= safe, "kill {kill}: {found} are left of {safe}");
        let mut last = None;
        for _ in 0..random.below(60) {
            last = running.line();
        }
        let told = running.kill();
        for line in last.iter().chain(&told) {
            let number = line.strip_prefix("safe ").expect("it says so");
            safe = number.parse().expect("a number");
        }
    }
    assert!(safe > 100, "{safe}");
    let (_, restored, _) = open(&settings(&folder, false)).expect("it is sound");
    assert!(in_order(&restored.entries) >= safe);
}

#[test]
fn a_disk_without_room_stops_the_journal_with_words_of_its_own() {
    let folder = tempfile::tempdir().expect("a folder");
    if let Some(folder) = part() {
        let large = JournalSettings { segment_bytes: 1 << 10, ..settings(folder.as_ref(), true) };
        let (mut journal, _, ends) = open(&large).expect("there is room for a little");
        for number in 0.. {
            // One entry is longer than the process may write.
            let length = if number == 5 { 1 << 20 } else { 100 };
            journal.append(&vec![number; length]);
            journal.sync();
            if let Err(fault) = end(&ends) {
                assert!(fault.is_full(), "{fault}");
                tell(&fault.to_string());
                // Nothing is done any more, and nothing panics.
                journal.append(&[1]);
                journal.sync();
                return;
            }
        }
    }
    // Files of at most 100 blocks; the signal is ignored, so that the write fails.
    let script = "trap '' XFSZ; ulimit -f 100; exec \"$@\"";
    let mut running = Running::start_by(script, &folder.path().display().to_string());
    let told = running.line().expect("it finds no room");
    assert!(told.starts_with("the disk of the journal is full: cannot write log-"), "{told}");
    drop(running);
    let (_, restored, _) = open(&settings(folder.path(), false)).expect("the rest is sound");
    assert_eq!(restored.entries, (0..5).map(|number| vec![number; 100]).collect::<Vec<_>>());
    assert!(restored.was_torn);
}

#[test]
fn a_folder_that_cannot_be_used_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file");
    fs::write(&file, "not a folder").expect("a file");
    let refused = open(&settings(&file, true)).map(|_| ()).unwrap_err().to_string();
    assert!(refused.contains(&file.display().to_string()), "{refused}");
    let refused = open(&settings(folder.path(), false)).map(|_| ()).unwrap_err().to_string();
    assert!(refused.contains("has no journal"), "{refused}");
    drop(open(&settings(folder.path(), true)).expect("it is founded"));
    let refused = open(&settings(folder.path(), true)).map(|_| ()).unwrap_err().to_string();
    assert!(refused.contains("started 1 times"), "{refused}");
    let mut other = settings(folder.path(), false);
    other.identity.cluster = 0xabc;
    let refused = open(&other).map(|_| ()).unwrap_err().to_string();
    assert!(
        refused.contains("00abc") && refused.contains("log-") | refused.contains("checkpoint-")
    );
    // A damaged file is named, and stays as it is.
    let name = fs::read_dir(folder.path()).expect("it is there").find_map(|entry| {
        let name = entry.ok()?.file_name().into_string().ok()?;
        name.starts_with("checkpoint-").then_some(name)
    });
    let damaged = folder.path().join(name.as_ref().expect("there is one"));
    fs::write(&damaged, "").expect("it is ours");
    let refused = open(&settings(folder.path(), false)).map(|_| ()).unwrap_err().to_string();
    assert!(refused.contains(&name.expect("there is one")), "{refused}");
    assert_eq!(fs::read(&damaged).expect("it is there"), b"");
}
