//! The starts of a process, by which it knows its own past.
//!
//! A token of a session names the start that made it. A folder that was restored from an old copy lacks the
//! starts since then, and so it is found out that its data are another continuation than the token's.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;

/// The file, beside the journal: a line for each start, with its number and its random number.
const STARTS: &str = "starts";

/// The maximum number of starts that are kept, the latest ones.
const STARTS_MAX: usize = 10_000;

/// The starts of a process, with the random number of each.
#[derive(Clone, Debug, Default)]
pub struct Starts(BTreeMap<u32, u64>);

impl Starts {
    /// Reads the starts of the process in a folder, and adds this one.
    pub fn add(folder: &Path, boot: u32, process: u64) -> io::Result<Self> {
        let file = folder.join(STARTS);
        let text = match fs::read_to_string(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error),
        };
        let line = |line: &str| {
            let (boot, process) = line.split_once(' ')?;
            Some((boot.parse().ok()?, u64::from_str_radix(process, 16).ok()?))
        };
        // A line that is torn or damaged makes its start an unknown one.
        let mut starts: BTreeMap<u32, u64> = text.lines().filter_map(line).collect();
        starts.insert(boot, process);
        while starts.len() > STARTS_MAX {
            starts.pop_first();
        }
        let lines: Vec<String> =
            starts.iter().map(|(boot, process)| format!("{boot} {process:016x}\n")).collect();
        let new = file.with_extension("new");
        let mut out = File::create(&new)?;
        out.write_all(lines.concat().as_bytes())?;
        out.sync_all()?;
        fs::rename(&new, &file)?;
        File::open(folder)?.sync_all()?;
        Ok(Self(starts))
    }

    /// True if the process was started with these numbers.
    pub fn has(&self, boot: u32, process: u64) -> bool {
        self.0.get(&boot) == Some(&process)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_of_the_folder_has_another_continuation() {
        let folders = tempfile::tempdir().expect("a folder");
        let [first, copy] = ["first", "copy"].map(|name| folders.path().join(name));
        fs::create_dir(&first).expect("a folder");
        Starts::add(&first, 1, 0xa).expect("it is written");
        fs::create_dir(&copy).expect("a folder");
        fs::copy(first.join(STARTS), copy.join(STARTS)).expect("it is there");
        let one = Starts::add(&first, 2, 0xb).expect("it is written");
        let other = Starts::add(&copy, 2, 0xc).expect("it is written");
        assert!(one.has(1, 0xa) && one.has(2, 0xb) && !one.has(2, 0xc));
        assert!(other.has(1, 0xa) && other.has(2, 0xc) && !other.has(2, 0xb));
    }
}
