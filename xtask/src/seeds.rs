//! Seeds of simulations that failed once in a long run: every short run runs them again.

use std::fs;

use crate::run::{Outcome, root};

/// The path of the list: one seed per line after its kind.
const FILE: &str = "xtask/recorded-seeds.txt";

/// The simulations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The simulation of programs over stores.
    Stores,
    /// The simulation of the geo-replicated store.
    Geo,
}

impl Kind {
    /// Returns the name in the list.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stores => "stores",
            Self::Geo => "geo",
        }
    }

    /// Returns the arguments that select this simulation.
    pub fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Stores => &[],
            Self::Geo => &["geo"],
        }
    }
}

/// Returns all recorded seeds.
///
/// # Errors
///
/// When the list cannot be read.
pub fn recorded() -> Result<Vec<(Kind, u64)>, String> {
    let text = fs::read_to_string(root().join(FILE)).map_err(|error| format!("{FILE}: {error}"))?;
    parse(&text)
}

fn parse(text: &str) -> Result<Vec<(Kind, u64)>, String> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let wrong = || format!("{FILE}: expected `stores SEED` or `geo SEED`, found `{line}`");
            let (kind, seed) = line.split_once(' ').ok_or_else(wrong)?;
            let kinds = [Kind::Stores, Kind::Geo];
            let kind = kinds.into_iter().find(|known| known.name() == kind).ok_or_else(wrong)?;
            Ok((kind, seed.parse().map_err(|_| wrong())?))
        })
        .collect()
}

/// Adds the failed seed that a simulation has printed to the list. Returns the seed, if there is
/// one.
///
/// # Errors
///
/// When the list cannot be read or written.
pub fn record(kind: Kind, output: &str) -> Result<Option<u64>, String> {
    let Some(seed) = output.lines().find_map(failed) else { return Ok(None) };
    if !recorded()?.contains(&(kind, seed)) {
        append(kind, seed)?;
    }
    Ok(Some(seed))
}

fn append(kind: Kind, seed: u64) -> Outcome {
    let path = root().join(FILE);
    let fail = |error: std::io::Error| format!("{FILE}: {error}");
    let text = fs::read_to_string(&path).map_err(fail)?;
    fs::write(&path, format!("{text}{} {seed}\n", kind.name())).map_err(fail)
}

/// Parses `seed 12: promise: how`, the line that a simulation prints for a failed seed.
fn failed(line: &str) -> Option<u64> {
    line.strip_prefix("seed ")?.split_once(": ")?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_read() {
        let text = "# Seeds.\n\nstores 12\ngeo 7\n";
        assert_eq!(parse(text), Ok(vec![(Kind::Stores, 12), (Kind::Geo, 7)]));
        for wrong in ["12", "stores x", "other 1"] {
            let error = parse(wrong).expect_err(wrong);
            assert!(error.contains(&format!("found `{wrong}`")), "{error}");
        }
        assert!(recorded().is_ok(), "{:?}", recorded());
    }

    #[test]
    fn a_seed_that_failed_is_found_in_the_output() {
        assert_eq!(failed("seed 12: P3: a transfer is lost"), Some(12));
        assert_eq!(failed("seeds 1 to 700: all held"), None);
        assert_eq!(failed("run again: cargo xtask sim --seed 12 --seeds 1"), None);
    }
}
