//! The file in which a folder keeps the data center that it belongs to.

use std::fs;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use mingled::server::Tokens;

use super::serve::Start;

/// The file with the number of a cluster and its partitions, beside the journal.
const FOUNDED: &str = "founded";

/// The word before the number of a later incarnation in that file.
const INCARNATION: &str = ", incarnation ";

/// The number of bytes of a new key.
const KEY_BYTES: usize = 32;

/// The journal of a data center to start.
#[derive(Debug)]
pub struct Found {
    pub is_founding: bool,
    pub incarnation: u32,
}

/// Returns a random number for a new cluster.
pub fn new_cluster() -> u128 {
    let half = || u128::from(mingled::random());
    half() << 64 | half()
}

fn known(folder: &Path) -> Result<Option<String>, String> {
    let file = folder.join(FOUNDED);
    match fs::read_to_string(&file) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("{} cannot be read: {error}", file.display())),
    }
}

/// Returns the number of the cluster that a folder belongs to; `None` if the folder is new.
pub fn known_cluster(folder: &Path) -> Result<Option<u128>, String> {
    let Some(text) = known(folder)? else { return Ok(None) };
    let word = text.split_whitespace().next().unwrap_or_default();
    let number = u128::from_str_radix(word, 16);
    number.map(Some).map_err(|_| {
        let file = folder.join(FOUNDED);
        format!("{} begins with '{word}', expected the number of a cluster", file.display())
    })
}

/// Returns the text for a data center of a cluster.
pub fn shape(cluster: u128, dc: u8, dcs: u8, partitions: u16) -> String {
    format!("{cluster:032x} data center {dc} of {dcs}, {partitions} partitions")
}

/// Checks that a folder is missing or empty.
pub fn check_empty(folder: &Path) -> Result<(), String> {
    let fault = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut files = match fs::read_dir(folder) {
        Ok(files) => files,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(fault(error)),
    };
    match files.next() {
        None => Ok(()),
        Some(file) => Err(format!(
            "{} is not empty, it has {}: take another folder",
            folder.display(),
            file.map_err(fault)?.file_name().display()
        )),
    }
}

/// Founds a folder whose journal was made, with the [shape].
pub fn found(folder: &Path, shape: &str) -> Result<(), String> {
    write(folder, shape, 0)
}

/// Compares a start with its folder, and founds the folder at the first start. The shape of a data center
/// cannot change later, and its incarnation can only grow: then the journal of the earlier one is set
/// aside.
pub fn open(start: &Start) -> Result<Found, String> {
    let Start { folder, dc, peers, cluster, partitions, .. } = start;
    let shape = shape(*cluster, *dc, peers.len().max(1) as u8, *partitions);
    let Some(text) = known(folder)? else {
        let incarnation = start.incarnation.unwrap_or(0);
        // The file is written first: a start that was interrupted founds again.
        write(folder, &shape, incarnation)?;
        return Ok(Found { is_founding: true, incarnation });
    };
    let text = text.trim();
    let (found, last) = text.split_once(INCARNATION).unwrap_or((text, "0"));
    let last: u32 = last.parse().map_err(|_| {
        let file = folder.join(FOUNDED);
        format!("{} ends with '{last}', expected the number of an incarnation", file.display())
    })?;
    if found != shape {
        return Err(format!(
            "{} belongs to {found}, and this start is {shape}: take another folder, or the same \
             settings",
            folder.display(),
        ));
    }
    let incarnation = start.incarnation.unwrap_or(last);
    if incarnation < last {
        return Err(format!(
            "{} has incarnation {last} of d{dc}, and this start is of incarnation {incarnation}, which \
             was given up",
            folder.display(),
        ));
    }
    if incarnation > last {
        set_aside(folder, last)?;
        write(folder, &shape, incarnation)?;
    }
    Ok(Found { is_founding: !journal(folder).is_dir(), incarnation })
}

/// Renames the journal of an earlier incarnation.
fn set_aside(folder: &Path, incarnation: u32) -> Result<(), String> {
    let (from, to) =
        (journal(folder), folder.join(format!("journal-of-incarnation-{incarnation}")));
    match fs::rename(&from, &to) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(format!("{} cannot be renamed to {}: {error}", from.display(), to.display()))
        }
        // It may have been renamed by a start that was interrupted.
        _ => Ok(()),
    }
}

fn write(folder: &Path, shape: &str, incarnation: u32) -> Result<(), String> {
    let last = if incarnation == 0 { String::new() } else { format!("{INCARNATION}{incarnation}") };
    let write = || {
        fs::create_dir_all(folder)?;
        let file = folder.join(FOUNDED);
        let mut new = fs::File::create(file.with_extension("new"))?;
        new.write_all(format!("{shape}{last}\n").as_bytes())?;
        new.sync_all()?;
        fs::rename(file.with_extension("new"), file)?;
        fs::File::open(folder)?.sync_all()
    };
    write().map_err(|error| format!("{}: {error}", folder.display()))
}

/// Returns the folder of the journal.
pub fn journal(folder: &Path) -> PathBuf {
    folder.join("journal")
}

/// Returns the key in a file.
pub fn key(file: &Path) -> Result<Vec<u8>, String> {
    let key = fs::read(file)
        .map_err(|error| format!("the key {} cannot be read: {error}", file.display()))?;
    let (found, least) = (key.len(), Tokens::KEY_BYTES_MIN);
    if found < least {
        let file = file.display();
        return Err(format!("the key {file} has {found} bytes, expected at least {least}"));
    }
    Ok(key)
}

/// Writes a new key into a file that is missing, which only its owner can read.
pub fn new_key(file: &Path) -> Result<(), String> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let key: Vec<u8> = (0..KEY_BYTES / 8).flat_map(|_| mingled::random().to_le_bytes()).collect();
    let write = || {
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder)?;
        }
        let new = file.with_extension("new");
        let _ = fs::remove_file(&new);
        let mut out = fs::File::options().write(true).create_new(true).mode(0o600).open(&new)?;
        out.write_all(&key)?;
        out.sync_all()?;
        fs::rename(&new, file)
    };
    if file.exists() {
        return Ok(());
    }
    write().map_err(|error| format!("the key {} cannot be written: {error}", file.display()))
}
