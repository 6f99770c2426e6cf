//! Mistakes planted in the crates, to see that a test fails: `cargo xtask mutants`.
//!
//! ```text
//!    a file ── lex ── functions ── generate ──► mistakes ── sample ──► some of them
//!                                                                        │ weave
//!                     a copy of the tree, each mistake behind a switch ◄─┘
//!                                    │ tree: one build; what does not compile is taken out
//!                                    ▼
//!     trial: each suite without a mistake (which switches does it come to?), and then
//!            each mistake with the suites that come to it, until a test fails
//!                                    │
//!                                    ▼ list: scores that must not fall, survivors with a reason
//! ```
//!
//! A crate is built once for all of its mistakes, so the cost of a mistake is the time of its
//! suites. A mistake that no suite reaches costs nothing: no test can notice it.

mod functions;
mod generate;
mod lex;
mod list;
mod operands;
mod plan;
mod sample;
mod tree;
mod trial;
mod weave;

use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use crate::artifacts::Artifacts;
use crate::run::Outcome;
use crate::servers::Servers;
use list::{List, Trial};
use plan::{CRATES, Crate};
use sample::{Mistake, Mistakes};
use tree::Built;
use trial::Ready;

/// The seed of the scores in the list.
const SEED: u64 = 35;

/// The number of mistakes per crate in the long run.
const SAMPLE: usize = 100;

/// The parsed arguments.
struct Options {
    crates: Vec<String>,
    sample: usize,
    seed: u64,
    jobs: usize,
    bless: bool,
    /// Uses only suites whose names contain this text.
    suite: Option<String>,
    /// Only lists the mistakes.
    list: bool,
}

impl Options {
    fn parse(args: &[&str]) -> Result<Self, String> {
        let mut options = Self {
            crates: Vec::new(),
            sample: SAMPLE,
            seed: SEED,
            jobs: 1,
            bless: false,
            suite: None,
            list: false,
        };
        let mut args = args.iter();
        while let Some(name) = args.next() {
            let mut value = || args.next().copied().ok_or_else(|| format!("{name} needs a value"));
            let number = |value: &str| {
                let number = value.parse::<u64>().ok();
                number.ok_or_else(|| format!("{name}: expected a number, found `{value}`"))
            };
            match *name {
                "--crate" => options.crates.push(value()?.to_owned()),
                "--sample" => options.sample = number(value()?)? as usize,
                "--seed" => options.seed = number(value()?)?,
                "--jobs" => options.jobs = number(value()?)?.max(1) as usize,
                "--bless" => options.bless = true,
                "--suite" => options.suite = Some(value()?.to_owned()),
                "--list" => options.list = true,
                other => return Err(format!("mutants has no option `{other}`")),
            }
        }
        let known: Vec<String> = CRATES.iter().map(Crate::name).collect();
        if let Some(unknown) = options.crates.iter().find(|name| !known.contains(name)) {
            return Err(format!("no crate `{unknown}`; there are {}", known.join(", ")));
        }
        if options.bless && !options.is_judged() {
            return Err(format!("the scores in {} are of seed {SEED} and all suites", list::FILE));
        }
        Ok(options)
    }

    /// True if the result can be compared with the list.
    fn is_judged(&self) -> bool {
        self.seed == SEED && self.suite.is_none()
    }
}

/// Plants mistakes in crates and reports those that no test notices.
///
/// # Errors
///
/// When a score is lower than listed, a survivor is not listed, or a suite fails without a mistake.
pub fn mutants(args: &[&str]) -> Outcome {
    let options = Options::parse(args)?;
    let (mut list, mut problems) = (List::read()?, Vec::new());
    println!("seed {}, {} mistakes of each crate", options.seed, options.sample);
    for planned in &CRATES {
        if !options.crates.is_empty() && !options.crates.contains(&planned.name()) {
            continue;
        }
        let mistakes = Mistakes::of(planned.folder)?;
        let sample = mistakes.sample(options.sample, options.seed);
        if options.list {
            println!("{}: {} of {}", planned.name(), sample.len(), mistakes.all.len());
            for mistake in &sample {
                println!("  {}", mistake.name);
            }
            continue;
        }
        let trials = match try_all(planned, &mistakes, &sample, &list, &options) {
            Ok(trials) => trials,
            Err(why) => {
                problems.push(format!("{}: {why}", planned.name()));
                continue;
            }
        };
        if options.bless {
            list::bless(&mut list, &planned.name(), sample.len(), &trials);
            list.write()?;
        } else if options.is_judged() {
            problems.extend(list::judge(&list, &planned.name(), &trials));
        }
    }
    for problem in &problems {
        eprintln!("{problem}");
    }
    if problems.is_empty() { Ok(()) } else { Err(format!("{} problems", problems.len())) }
}

/// Tries the mistakes of a crate; returns those that compile, with their places in the sample.
fn try_all(
    planned: &Crate,
    mistakes: &Mistakes,
    sample: &[Mistake],
    list: &List,
    options: &Options,
) -> Result<Vec<(usize, Trial)>, String> {
    let begun = Instant::now();
    tree::copy()?;
    let (artifacts, left) = build(planned, mistakes, sample)?;
    let servers = if planned.servers.is_empty() {
        Servers::default()
    } else {
        Servers::start_some(artifacts.binary("mingle-services")?, planned.servers)?
    };
    let mut suites = Vec::new();
    for suite in planned.suites {
        let mut ready = trial::ready(suite, &artifacts, &servers)?;
        if options.suite.as_ref().is_some_and(|part| !ready.name.contains(part)) {
            continue;
        }
        ready.measure()?;
        suites.push(ready);
    }
    let built = begun.elapsed();
    let found = run(sample, &left, &suites, options.jobs)?;
    let mut trials = Vec::new();
    for (number, by) in found {
        let mistake = &sample[number as usize];
        let is_noticed = matches!(by, Found::Noticed(_));
        if !is_noticed {
            let what = if by == Found::NotReached { ", no test gets there" } else { "" };
            let reason = list.survivors.get(&mistake.name);
            let reason = reason.map(|reason| format!(" -- {reason}")).unwrap_or_default();
            println!("    survives, line {}{what}: {}{reason}", mistake.line, mistake.name);
        }
        trials.push((number as usize, Trial { name: mistake.name.clone(), is_noticed }));
    }
    let all: Vec<Trial> = trials.iter().map(|(_, trial)| trial.clone()).collect();
    let noticed = all.iter().filter(|trial| trial.is_noticed).count();
    println!(
        "{}: {noticed} of {} are noticed ({} %), {} do not compile; {:.0} s, of which {:.0} s to build and to \
         measure",
        planned.name(),
        all.len(),
        list::percent(&all),
        sample.len() - left.len(),
        begun.elapsed().as_secs_f64(),
        built.as_secs_f64(),
    );
    Ok(trials)
}

/// Builds a crate with its mistakes; returns the numbers of those that compile.
fn build(
    planned: &Crate,
    mistakes: &Mistakes,
    sample: &[Mistake],
) -> Result<(Artifacts, Vec<u32>), String> {
    let mut left: Vec<u32> = (0..sample.len() as u32).collect();
    loop {
        let mut woven = BTreeMap::new();
        for (file, text) in &mistakes.texts {
            let here = left.iter().map(|number| (*number, &sample[*number as usize]));
            let here: Vec<_> = here
                .filter(|(_, mistake)| mistake.file == *file)
                .map(|(number, mistake)| (number, &mistake.mutation))
                .collect();
            let mut file_woven = weave::weave(text, &here);
            let is_root = ["lib.rs", "main.rs"]
                .iter()
                .any(|name| *file == format!("{}/src/{name}", planned.folder));
            if is_root {
                file_woven.text.push_str(&weave::switches(sample.len()));
            }
            tree::write(&tree::tree().join(file), file_woven.text.as_bytes())?;
            woven.insert(file.clone(), file_woven);
        }
        match tree::build(planned)? {
            Built::Well(artifacts) => return Ok((artifacts, left)),
            Built::Failed(places) => {
                let blamed = places.iter().filter_map(|(file, line, column)| {
                    woven.get(file).and_then(|woven| woven.blamed(*line, *column))
                });
                let blamed: Vec<u32> = blamed.collect();
                if blamed.is_empty() {
                    return Err(format!("does not build, because of no mistake: {places:?}"));
                }
                left.retain(|number| !blamed.contains(number));
            }
        }
    }
}

/// The result of a mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Found {
    /// By this suite.
    Noticed(String),
    NotReached,
    Survives,
}

/// Runs one mistake after another, several at once if there is more than one job.
fn run(
    sample: &[Mistake],
    left: &[u32],
    suites: &[Ready],
    jobs: usize,
) -> Result<Vec<(u32, Found)>, String> {
    let (next, found) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let lane = || {
        while let Some(number) = left.get(next.fetch_add(1, Ordering::Relaxed)) {
            let result = one(*number, suites);
            if let Ok(Found::Noticed(by)) = &result {
                println!("    noticed by {by}: {}", sample[*number as usize].name);
            }
            let _ = fs::remove_file(tree::folder().join(format!("mistake-{number}.log")));
            let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
            found.push((*number, result));
        }
    };
    thread::scope(|scope| (0..jobs).for_each(|_| drop(scope.spawn(lane))));
    let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    found.sort_by_key(|(number, _)| *number);
    found.into_iter().map(|(number, result)| Ok((number, result?))).collect()
}

fn one(mistake: u32, suites: &[Ready]) -> Result<Found, String> {
    let mut concerned = suites.iter().filter(|suite| suite.reaches.contains(&mistake)).peekable();
    if concerned.peek().is_none() {
        return Ok(Found::NotReached);
    }
    for suite in concerned {
        if suite.notices(mistake)? {
            return Ok(Found::Noticed(suite.name.clone()));
        }
    }
    Ok(Found::Survives)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_read() {
        let options = Options::parse(&["--crate", "mingle-lang", "--sample", "7", "--jobs", "2"]);
        let options = options.expect("they are right");
        assert_eq!((options.crates, options.sample), (vec!["mingle-lang".to_owned()], 7));
        assert_eq!((options.seed, options.jobs), (SEED, 2));
        for (wrong, why) in [
            (&["--crate", "other"][..], "no crate `other`"),
            (&["--sample", "x"], "found `x`"),
            (&["--sample"], "needs a value"),
            (&["--fast"], "no option `--fast`"),
            (&["--bless", "--seed", "1"], "are of seed"),
        ] {
            let error = Options::parse(wrong).err().expect("it is wrong");
            assert!(error.contains(why), "{error}");
        }
    }
}
