//! The list of scores that must not fall, and of mistakes that no test notices, with the reasons.

use std::collections::BTreeMap;
use std::fs;

use crate::run::{Outcome, root};

/// The path of the list.
pub const FILE: &str = "xtask/mutants.txt";

/// The reason of a survivor that `--bless` adds.
pub const NO_TEST: &str = "no test looks there yet";

const HEADER: &str = "\
# Mistakes of `cargo xtask mutants`, which plants them to see that a test fails.
#
# `score CRATE SAMPLE PERCENT`: of the crate's first SAMPLE mistakes so many percent are noticed, at least.
# `survives MISTAKE -- REASON`: no test notices this one.
#
# Scores only rise; `cargo xtask mutants --bless` writes what it found.
";

/// The list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct List {
    /// The sample and the percentage of each crate.
    pub scores: BTreeMap<String, (usize, usize)>,
    /// Mistakes that survive, with the reason.
    pub survivors: BTreeMap<String, String>,
}

impl List {
    /// Reads the list.
    ///
    /// # Errors
    ///
    /// When it cannot be read.
    pub fn read() -> Result<Self, String> {
        let path = root().join(FILE);
        let text = fs::read_to_string(path).map_err(|error| format!("{FILE}: {error}"))?;
        Self::parse(&text)
    }

    fn parse(text: &str) -> Result<Self, String> {
        let mut list = Self::default();
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let wrong = || {
                format!(
                    "{FILE}: expected `score CRATE SAMPLE PERCENT` or `survives MISTAKE -- REASON`, found \
                     `{line}`"
                )
            };
            if let Some(score) = line.strip_prefix("score ") {
                let words: Vec<&str> = score.split(' ').collect();
                let [name, sample, percent] = words[..] else { return Err(wrong()) };
                let number = |word: &str| word.parse().map_err(|_| wrong());
                list.scores.insert(name.to_owned(), (number(sample)?, number(percent)?));
            } else {
                let survivor = line.strip_prefix("survives ").ok_or_else(wrong)?;
                let (mistake, reason) = survivor.rsplit_once(" -- ").ok_or_else(wrong)?;
                list.survivors.insert(mistake.to_owned(), reason.to_owned());
            }
        }
        Ok(list)
    }

    fn print(&self) -> String {
        let scores = self.scores.iter();
        let scores =
            scores.map(|(name, (sample, percent))| format!("score {name} {sample} {percent}\n"));
        let survivors = self.survivors.iter();
        let survivors =
            survivors.map(|(mistake, reason)| format!("survives {mistake} -- {reason}\n"));
        let between = std::iter::once("\n".to_owned());
        let lines = scores.chain(between).chain(survivors);
        std::iter::once(format!("{HEADER}\n")).chain(lines).collect()
    }

    /// Writes the list.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn write(&self) -> Outcome {
        fs::write(root().join(FILE), self.print()).map_err(|error| format!("{FILE}: {error}"))
    }
}

/// The result of one mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trial {
    /// The mistake's name in the list.
    pub name: String,
    pub is_noticed: bool,
}

/// Returns the percentage of mistakes that were noticed, rounded down.
pub fn percent(trials: &[Trial]) -> usize {
    let noticed = trials.iter().filter(|trial| trial.is_noticed).count();
    if trials.is_empty() { 100 } else { noticed * 100 / trials.len() }
}

/// Returns the problems of a crate's trials with respect to the list. `sample` of its mistakes were
/// tried; `trials` has those of them that compile, in order, with their places in the sample.
pub fn judge(list: &List, name: &str, trials: &[(usize, Trial)]) -> Vec<String> {
    let Some((sample, at_least)) = list.scores.get(name) else { return Vec::new() };
    let first: Vec<Trial> =
        trials.iter().filter(|(place, _)| place < sample).map(|(_, trial)| trial.clone()).collect();
    let found = percent(&first);
    let mut problems = Vec::new();
    if found < *at_least {
        problems.push(format!("{name}: {found} % are noticed, {at_least} % at least"));
    }
    for trial in first {
        let is_listed = list.survivors.contains_key(&trial.name);
        if !trial.is_noticed && !is_listed {
            problems.push(format!("no test notices {}", trial.name));
        } else if trial.is_noticed && is_listed {
            problems.push(format!("is noticed now, take it out of {FILE}: {}", trial.name));
        }
    }
    problems
}

/// Updates the list with a crate's trials: the score may rise, and reasons stay.
pub fn bless(list: &mut List, name: &str, sample: usize, trials: &[(usize, Trial)]) {
    let all: Vec<Trial> = trials.iter().map(|(_, trial)| trial.clone()).collect();
    let found = percent(&all);
    let score = list.scores.entry(name.to_owned()).or_insert((sample, found));
    // A larger sample has a score of its own.
    *score = if sample > score.0 { (sample, found) } else { (score.0, score.1.max(found)) };
    for trial in all {
        if trial.is_noticed {
            list.survivors.remove(&trial.name);
        } else {
            list.survivors.entry(trial.name).or_insert_with(|| NO_TEST.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trials(all: &[(&str, bool)]) -> Vec<(usize, Trial)> {
        let trials = all
            .iter()
            .map(|(name, is_noticed)| Trial { name: (*name).to_owned(), is_noticed: *is_noticed });
        trials.enumerate().collect()
    }

    #[test]
    fn the_list_is_read_as_it_is_written() {
        let text =
            "# A list.\n\nscore a 20 90\nsurvives a/b.rs f: `x - 1` becomes `x + 1` -- no reason\n";
        let list = List::parse(text).expect("it is read");
        assert_eq!(list.scores["a"], (20, 90));
        assert_eq!(list.survivors["a/b.rs f: `x - 1` becomes `x + 1`"], "no reason");
        assert_eq!(List::parse(&list.print()), Ok(list));
        for wrong in ["score a 1", "score a b 1", "survives a", "other"] {
            let error = List::parse(wrong).expect_err(wrong);
            assert!(error.contains(&format!("found `{wrong}`")), "{error}");
        }
        assert!(List::read().is_ok(), "{:?}", List::read());
    }

    #[test]
    fn a_score_that_falls_and_a_new_survivor_are_problems() {
        let mut list = List::default();
        let before = trials(&[("a", true), ("b", false), ("c", true)]);
        assert!(judge(&list, "x", &before).is_empty());
        bless(&mut list, "x", 3, &before);
        assert_eq!((list.scores["x"], list.survivors.len()), ((3, 66), 1));
        assert!(judge(&list, "x", &before).is_empty());

        let worse = judge(&list, "x", &trials(&[("a", false), ("b", false), ("c", true)]));
        assert_eq!(worse, ["x: 33 % are noticed, 66 % at least", "no test notices a"]);
        let better = trials(&[("a", true), ("b", true), ("c", true), ("d", false)]);
        // The fourth is beyond the sample.
        assert_eq!(
            judge(&list, "x", &better),
            [format!("is noticed now, take it out of {FILE}: b")]
        );
        bless(&mut list, "x", 4, &better);
        assert_eq!((list.scores["x"], list.survivors.len()), ((4, 75), 1));
        // A smaller sample does not lower a score.
        bless(&mut list, "x", 2, &trials(&[("a", true), ("d", false)]));
        assert_eq!(list.scores["x"], (4, 75));
    }
}
