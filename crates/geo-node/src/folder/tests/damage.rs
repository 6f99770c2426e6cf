//! Folders whose files are damaged, missing, copied or of another process.

use std::collections::BTreeMap;

use super::*;
use crate::folder::name::Name;

type Files = BTreeMap<String, Vec<u8>>;

/// Six logs behind a checkpoint; returns the files and the entries, of which the last batch has two.
fn written() -> (Files, Vec<Vec<u8>>) {
    let folder = Simulated::default();
    let mut opened = open(&folder, true, 5).expect("the folder is empty");
    let mut all = Vec::new();
    for batch in 0..12u8 {
        let entries = [vec![batch + 1; 150], vec![batch + 101; 40]];
        opened.log.append(&entries).expect("no fault");
        all.extend(entries);
        if batch == 3 {
            let checkpoint = opened.log.checkpoint().expect("no fault");
            checkpoint.write(&all).expect("no fault");
        }
    }
    (folder.files(), all)
}

fn recovered(files: &Files) -> Result<Recovered, RecoverError> {
    recover(identity(), files.keys().cloned(), |name| Ok(files[name].clone()))
}

/// Checks that all entries but those of the last sync are found, or that an error names the file.
fn sound_or_named(files: &Files, all: &[Vec<u8>], file: &str, what: &str) {
    match recovered(files) {
        Ok(found) => {
            assert!(all.starts_with(&found.entries), "{what}: no beginning");
            assert!(found.entries.len() + 2 >= all.len(), "{what}: {}", found.entries.len());
        }
        Err(error) => assert!(error.to_string().contains(file), "{what}: {error}"),
    }
}

fn last_log(files: &Files) -> String {
    files.keys().rfind(|name| name.starts_with("log-")).expect("there are logs").clone()
}

#[test]
fn a_flipped_bit_is_found_wherever_it_is() {
    let (files, all) = written();
    assert_eq!(recovered(&files).expect("nothing is damaged").entries, all);
    assert!(files.len() > 4, "{:?}", files.keys());
    for (file, bytes) in &files {
        for place in 0..bytes.len() {
            let mut damaged = files.clone();
            damaged.get_mut(file).expect("it is there")[place] ^= 1 << (place % 8);
            sound_or_named(&damaged, &all, file, &format!("byte {place} of {file}"));
        }
    }
}

#[test]
fn a_file_of_any_length_is_sound_or_named() {
    let (files, all) = written();
    let last = last_log(&files);
    for (file, bytes) in &files {
        for length in 0..bytes.len() {
            let mut damaged = files.clone();
            damaged.insert(file.clone(), bytes[..length].to_vec());
            if *file == last && length >= crate::segment::HEADER_BYTES {
                // No later file says how far the last log had come.
                let found = recovered(&damaged).expect("a torn tail");
                assert!(all.starts_with(&found.entries), "{length} bytes");
                continue;
            }
            sound_or_named(&damaged, &all, file, &format!("{length} bytes of {file}"));
        }
    }
}

#[test]
fn a_missing_file_is_named_unless_it_is_the_last() {
    let (files, all) = written();
    let last = last_log(&files);
    for file in files.keys().filter(|file| **file != last) {
        let mut damaged = files.clone();
        damaged.remove(file);
        let refused = recovered(&damaged).unwrap_err().to_string();
        assert!(refused.contains("missing"), "{file}: {refused}");
        // A checkpoint has the number of a log.
        let number = Name::parse(file).expect("it is a file of the journal").number();
        assert!(refused.contains(&number.to_string()), "{file}: {refused}");
    }
    let mut damaged = files;
    damaged.remove(&last);
    assert!(all.starts_with(&recovered(&damaged).expect("not noticed").entries));
}

#[test]
fn a_copy_of_a_file_under_another_name_is_named() {
    let (files, _) = written();
    for (file, bytes) in &files {
        for other in files.keys().filter(|other| *other != file) {
            let mut damaged = files.clone();
            damaged.insert(other.clone(), bytes.clone());
            let refused = recovered(&damaged).unwrap_err().to_string();
            assert!(refused.contains(other) && refused.contains(file), "{refused}");
        }
        let mut damaged = files.clone();
        let next = Name::Log(99).to_string();
        damaged.insert(next.clone(), bytes.clone());
        assert!(recovered(&damaged).is_err(), "{file} as {next}");
    }
}

#[test]
fn files_of_another_process_are_refused() {
    let (files, _) = written();
    let expected = identity();
    for found in [
        Identity { cluster: 1, ..expected },
        Identity { dc: mingle_geo::DcId(0), ..expected },
        Identity { node: 1, ..expected },
        Identity { incarnation: 3, ..expected },
    ] {
        let folder = Simulated::default();
        let opened = Log::open(folder.clone(), found, true, SEGMENT, 5).expect("it is empty");
        drop(opened);
        let other = folder.files();
        let refused = recovered(&other).unwrap_err().to_string();
        assert!(refused.contains(&found.to_string()), "{refused}");
        assert!(refused.contains(&expected.to_string()), "{refused}");
        // One of its logs among ours.
        let mut mixed = files.clone();
        let last = last_log(&files);
        mixed.insert(last.clone(), other.values().next_back().expect("it has files").clone());
        let refused = recovered(&mixed).unwrap_err().to_string();
        assert!(refused.contains(&last), "{refused}");
    }
}

#[test]
fn a_log_of_an_earlier_life_of_the_process_is_refused() {
    // The same process, founded twice in two folders.
    let (files, _) = written();
    let folder = Simulated::default();
    let mut log = open(&folder, true, 9).expect("the folder is empty").log;
    for _ in 0..12 {
        log.append(&[vec![3; 170], vec![3; 40]]).expect("no fault");
    }
    let last = last_log(&files);
    let mut mixed = files.clone();
    mixed.insert(last.clone(), folder.files()[&last].clone());
    let refused = recovered(&mixed).unwrap_err().to_string();
    assert!(refused.contains("log-"), "{refused}");
}

#[test]
fn foreign_files_are_left_alone_and_files_in_our_names_are_named() {
    let (mut files, all) = written();
    let foreign = ["lost+found", "log-1.mgj", "notes.txt", "lock", "log-0000000000000001.mgj.old"];
    files.extend(foreign.map(|name| (name.to_owned(), b"anything".to_vec())));
    files.insert(Name::Log(3).incomplete(), Vec::new());
    let found = recovered(&files).expect("foreign files mean nothing");
    assert_eq!(found.entries, all);
    assert_eq!(found.stale, [Name::Log(3).incomplete()]);
    for content in [Vec::new(), b"anything".to_vec(), vec![0; 4_096]] {
        let number = found.number + 1;
        for name in [Name::Log(number), Name::Checkpoint(number)] {
            let mut damaged = files.clone();
            damaged.insert(name.to_string(), content.clone());
            let refused = recovered(&damaged).unwrap_err().to_string();
            assert!(refused.contains(&name.to_string()), "{refused}");
        }
    }
}

#[test]
fn a_later_version_is_refused_with_both_versions() {
    let (files, _) = written();
    for file in files.keys() {
        let mut later = files.clone();
        later.get_mut(file).expect("it is there")[4] = 9;
        let refused = recovered(&later).unwrap_err().to_string();
        assert!(refused.contains(file) && refused.contains("version 9"), "{refused}");
        assert!(refused.contains("version 2"), "{refused}");
    }
}
