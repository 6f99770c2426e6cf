//! One suite for every journal, and tests of damaged folders.

mod damage;

use mingle_model::random::{Random, mix};

use super::simulated::Simulated;
use super::*;
use crate::memory::{Kept, MemoryJournal};
use crate::segment::Identity;

const SEGMENT: u64 = 700;

fn identity() -> Identity {
    Identity { cluster: 77, dc: mingle_geo::DcId(1), node: 0, incarnation: 2 }
}

fn open(folder: &Simulated, is_founding: bool, seed: u64) -> Result<Opened<Simulated>, OpenError> {
    Log::open(folder.clone(), identity(), is_founding, SEGMENT, seed)
}

/// A journal under test.
trait Tested {
    /// True if a replacement is safe when the call returns.
    const REPLACES_AT_ONCE: bool;

    /// Appends entries, and syncs; false if that failed.
    fn append(&mut self, entries: &[Vec<u8>], random: &mut Random) -> bool;

    /// Replaces all entries; false if that failed.
    fn replace(&mut self, entries: &[Vec<u8>]) -> bool;

    /// Crashes, and opens again; returns the entries.
    fn crash(&mut self, random: &mut Random) -> Vec<Vec<u8>>;
}

impl Tested for MemoryJournal {
    const REPLACES_AT_ONCE: bool = true;

    fn append(&mut self, entries: &[Vec<u8>], random: &mut Random) -> bool {
        for entry in entries {
            MemoryJournal::append(self, entry);
        }
        self.begin();
        let ends = !random.one_in(4);
        if ends {
            self.end();
        }
        ends
    }

    fn replace(&mut self, entries: &[Vec<u8>]) -> bool {
        MemoryJournal::replace(self, entries);
        true
    }

    fn crash(&mut self, random: &mut Random) -> Vec<Vec<u8>> {
        let torn = Kept::Torn(random.below(self.torn_most() + 1));
        let kept = [Kept::Nothing, torn, Kept::All][random.below(3)];
        MemoryJournal::crash(self, kept);
        self.recover().expect("only a tail is lost")
    }
}

/// A log over a simulated folder.
struct Simulation {
    folder: Simulated,
    log: Option<Log<Simulated>>,
    /// A checkpoint that is to be written later.
    checkpoint: Option<(Checkpoint<Simulated>, Vec<Vec<u8>>)>,
    starts: u64,
}

impl Simulation {
    fn new() -> Self {
        let folder = Simulated::default();
        let opened = open(&folder, true, 1).expect("the folder is empty");
        Self { folder, log: Some(opened.log), checkpoint: None, starts: 1 }
    }

    /// Opens the folder, with crashes on the way.
    fn open(&mut self, random: &mut Random) -> Vec<Vec<u8>> {
        loop {
            self.starts += 1;
            if random.one_in(3) {
                self.folder.fail_in(random.below(20) as u32);
            }
            match open(&self.folder, false, mix(self.starts)) {
                Ok(Opened { log, entries, .. }) => {
                    self.log = Some(log);
                    return entries;
                }
                Err(error) => assert!(self.folder.has_failed(), "{error}"),
            }
            self.folder.crash(random);
        }
    }
}

impl Tested for Simulation {
    const REPLACES_AT_ONCE: bool = false;

    fn append(&mut self, entries: &[Vec<u8>], random: &mut Random) -> bool {
        if random.one_in(6) {
            self.folder.fail_in(random.below(9) as u32);
        }
        let log = self.log.as_mut().expect("it is open");
        let mut is_safe = log.append(entries).is_ok();
        if let Some((checkpoint, entries)) = self.checkpoint.take_if(|_| random.one_in(2)) {
            is_safe &= checkpoint.write(&entries).is_ok();
        }
        is_safe
    }

    fn replace(&mut self, entries: &[Vec<u8>]) -> bool {
        let log = self.log.as_mut().expect("it is open");
        match (log.checkpoint(), self.checkpoint.take()) {
            (Ok(next), None) => self.checkpoint = Some((next, entries.to_vec())),
            // One at a time.
            (Ok(next), Some((earlier, of))) => {
                let is_done = earlier.write(&of).is_ok() && next.write(entries).is_ok();
                return is_done;
            }
            (Err(_), _) => return false,
        }
        true
    }

    fn crash(&mut self, random: &mut Random) -> Vec<Vec<u8>> {
        (self.log, self.checkpoint) = (None, None);
        self.folder.crash(random);
        self.open(random)
    }
}

/// Appends, replaces and crashes at random. After each crash the journal has a beginning of all
/// entries that includes everything safe: of those before the last replacement, or after it.
fn run<T: Tested>(journal: &mut T, seed: u64) {
    let random = &mut Random::new(mix(seed));
    // The entries since the last replacement that certainly took effect, and since the later one.
    let (mut candidates, mut safe) = (vec![Vec::<Vec<u8>>::new()], 0);
    let mut next = 0u32;
    for _ in 0..60 {
        match random.below(6) {
            0 => {
                let replaced = vec![next.to_le_bytes().to_vec(); random.below(4)];
                next += 1;
                let is_done = journal.replace(&replaced);
                // The safe entries of a candidate are counted from its end.
                let unsafe_count = candidates[0].len() - safe;
                assert_eq!(unsafe_count, 0, "seed {seed}: all are safe");
                if T::REPLACES_AT_ONCE {
                    (safe, candidates) = (replaced.len(), vec![replaced]);
                } else {
                    candidates.push(replaced);
                }
                if !is_done {
                    check(journal, &mut candidates, &mut safe, random, seed);
                }
            }
            1 if random.one_in(3) => check(journal, &mut candidates, &mut safe, random, seed),
            _ => {
                let count = 1 + random.below(5);
                let mut entries = Vec::new();
                for _ in 0..count {
                    let length = [1, 8, 30, 300, 1_500][random.below(5)];
                    entries.push(next.to_le_bytes().repeat(1 + length)[..4 + length].to_vec());
                    next += 1;
                }
                let is_safe = journal.append(&entries, random);
                for candidate in &mut candidates {
                    candidate.extend(entries.iter().cloned());
                }
                if is_safe {
                    safe = candidates[0].len();
                } else {
                    check(journal, &mut candidates, &mut safe, random, seed);
                }
            }
        }
    }
    check(journal, &mut candidates, &mut safe, random, seed);
}

fn check(
    journal: &mut impl Tested,
    candidates: &mut Vec<Vec<Vec<u8>>>,
    safe: &mut usize,
    random: &mut Random,
    seed: u64,
) {
    let found = journal.crash(random);
    let may_miss = candidates[0].len() - *safe;
    let fits =
        candidates.iter().any(|all| all.starts_with(&found) && found.len() + may_miss >= all.len());
    assert!(fits, "seed {seed}: {} entries are left, of {candidates:?}", found.len());
    (*safe, *candidates) = (found.len(), vec![found]);
}

#[test]
fn a_crash_of_the_journal_in_memory_leaves_all_that_is_safe() {
    for seed in 0..2_000 {
        run(&mut MemoryJournal::default(), seed);
    }
}

#[test]
fn a_crash_of_the_journal_in_files_leaves_all_that_is_safe() {
    for seed in 0..2_000 {
        run(&mut Simulation::new(), seed);
    }
}

#[test]
fn the_first_fault_is_final() {
    let folder = Simulated::default();
    let mut log = open(&folder, true, 1).expect("the folder is empty").log;
    log.append(&[b"one".to_vec()]).expect("no fault");
    folder.fail_in(1);
    let fault = log.append(&[b"two".to_vec()]).expect_err("the sync fails");
    assert_eq!((fault.action, fault.is_full()), ("sync", false));
    assert!(fault.to_string().contains("cannot sync log-0000000000000001.mgj"), "{fault}");
    folder.crash(&mut Random::new(1));
    // The disk works again, but the contents of its files are not known.
    assert_eq!(log.append(&[b"three".to_vec()]), Err(fault.clone()));
    assert_eq!(log.checkpoint().map(|_| ()), Err(fault.clone()));
    assert_eq!(log.fault(), Some(&fault));
    let opened = open(&folder, false, 2).expect("only the tail is lost");
    assert_eq!(opened.entries[0], b"one");
    assert_eq!(opened.boot, 2);
}

#[test]
fn a_full_disk_has_words_of_its_own() {
    let folder = Simulated::default();
    folder.leave_room(100);
    let refused = open(&folder, true, 1).unwrap_err().to_string();
    assert!(
        refused.contains("disk of the journal is full") && refused.contains("log-"),
        "{refused}"
    );
    folder.crash(&mut Random::new(3));
    let mut log = open(&folder, true, 1).expect("there is room").log;
    folder.leave_room(500);
    let fault = loop {
        if let Err(fault) = log.append(&[vec![7; 100]]) {
            break fault;
        }
    };
    assert!(fault.is_full(), "{fault}");
}

#[test]
fn each_start_has_a_number_and_only_the_founder_begins_without_a_journal() {
    let folder = Simulated::default();
    assert_eq!(open(&folder, false, 1).map(|_| ()), Err(OpenError::NotFounded));
    for boot in 1..5 {
        let mut opened = open(&folder, boot == 1, boot.into()).expect("the folder is sound");
        assert_eq!((opened.boot, opened.entries.len()), (boot, boot as usize - 1));
        opened.log.append(&[vec![1]]).expect("no fault");
        assert_eq!(open(&folder, true, 1).map(|_| ()), Err(OpenError::Founded { boot }));
    }
    // Each start leaves one checkpoint and one log.
    assert_eq!(folder.files().len(), 2);
}
