//! The rate at which this disk makes bytes safe.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

/// The number of bytes of an append, about those of a small write.
const BYTES: usize = 128;

/// Appends and syncs, one after the other, for some time; returns how often in a second.
pub fn appends_per_second(folder: &Path, time: Duration) -> Result<f64, String> {
    let path = folder.join("appends");
    let measure = || {
        let mut file = File::create(&path)?;
        let (begin, mut count) = (Instant::now(), 0_u32);
        while begin.elapsed() < time {
            file.write_all(&[7; BYTES])?;
            file.sync_data()?;
            count += 1;
        }
        let rate = f64::from(count) / begin.elapsed().as_secs_f64();
        std::fs::remove_file(&path)?;
        Ok(rate)
    };
    measure().map_err(|error: std::io::Error| format!("{}: {error}", path.display()))
}
