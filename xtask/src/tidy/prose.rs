//! Figures of prose and structure, for each crate: a ratchet against `xtask/prose.txt`.
//!
//! - *pronouns*: indirect pronouns (who, whoever, what, whatever, somebody, nobody, anybody) per 1,000
//!   words of comments. A sentence that uses them usually hides its actor.
//! - *summaries*: the share of doc summaries that begin with What, Whether, Who, Of, So, How or
//!   Where, in per cent. A summary is a noun phrase or a verb.
//! - *cycles*: the number of top-level modules of a crate that take part in an import cycle.
//!
//! The documents are measured together, as `documents`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::imports;
use crate::run::{Outcome, root};

const LIST: &str = "xtask/prose.txt";

const HEADER: &str = "\
# crate, indirect pronouns per 1,000 words, summaries that begin with What, Whether, Who, Of, So,
# How or Where in per cent, top-level modules in an import cycle.
# The figures may only shrink: `cargo xtask tidy --bless` writes smaller ones.
";

const PRONOUNS: [&str; 7] = ["who", "whoever", "what", "whatever", "somebody", "nobody", "anybody"];

const OPENINGS: [&str; 7] = ["What", "Whether", "Who", "Of", "So", "How", "Where"];

/// The goals that the documents state, for the table that is printed.
const PRONOUNS_MAX: f64 = 4.0;
const SUMMARIES_MAX: f64 = 2.0;
const MAP_WORDS_MAX: usize = 2_000;

/// The counts of one crate, or of all documents.
#[derive(Default, Clone, PartialEq, Debug)]
struct Counts {
    words: usize,
    pronouns: usize,
    summaries: usize,
    indirect: usize,
    cycles: usize,
}

impl Counts {
    /// Indirect pronouns per 1,000 words, rounded up to a tenth.
    fn pronouns_per_mille(&self) -> f64 {
        rounded(self.pronouns * 1_000, self.words)
    }

    /// The share of indirect summaries in per cent, rounded up to a tenth.
    fn indirect_percent(&self) -> f64 {
        rounded(self.indirect * 100, self.summaries)
    }
}

/// Returns `part` divided by `whole`, rounded up to a tenth.
fn rounded(part: usize, whole: usize) -> f64 {
    if whole == 0 {
        return 0.0;
    }
    let tenths = (part * 10).div_ceil(whole);
    f64::from(u32::try_from(tenths).unwrap_or(u32::MAX)) / 10.0
}

/// The figures of one line of the list.
type Figures = (f64, f64, usize);

/// Measures the files and compares them with the list; with `bless`, writes smaller figures.
pub fn check(files: &[(String, String)], bless: bool, problems: &mut Vec<String>) -> Outcome {
    let counts = measure(files);
    let list = root().join(LIST);
    let listed = match fs::read_to_string(&list) {
        Ok(text) => parse(&text)?,
        Err(_) if bless => BTreeMap::new(),
        Err(error) => return Err(format!("{LIST}: {error}")),
    };
    if bless {
        let lines = counts.iter().map(|(name, counts)| {
            let (pronouns, indirect, cycles) = figures(counts);
            let (allowed, share, most) =
                listed.get(name).copied().unwrap_or((f64::MAX, f64::MAX, usize::MAX));
            let (pronouns, indirect) = (pronouns.min(allowed), indirect.min(share));
            format!("{name} {pronouns:.1} {indirect:.1} {}\n", cycles.min(most))
        });
        let text: String = std::iter::once(HEADER.to_owned()).chain(lines).collect();
        fs::write(&list, &text).map_err(|error| format!("{LIST}: {error}"))?;
        compare(&counts, &parse(&text)?, problems);
    } else {
        compare(&counts, &listed, problems);
    }
    Ok(())
}

/// Prints the table of all figures, with the goals.
pub fn print(files: &[(String, String)]) {
    let counts = measure(files);
    println!(
        "{:<24} {:>8} {:>10} {:>10} {:>11} {:>7}",
        "", "words", "pronouns", "docs", "summaries", "cycles"
    );
    println!(
        "{:<24} {:>8} {:>10} {:>10} {:>11} {:>7}",
        "", "", "per 1,000", "", "indirect, %", "modules"
    );
    let mut total = Counts::default();
    for (name, counts) in &counts {
        line(name, counts);
        total.words += counts.words;
        total.pronouns += counts.pronouns;
        total.summaries += counts.summaries;
        total.indirect += counts.indirect;
        total.cycles += counts.cycles;
    }
    line("together", &total);
    println!(
        "{:<24} {:>8} {PRONOUNS_MAX:>10.1} {:>10} {SUMMARIES_MAX:>11.1} {:>7}",
        "goal, at most", "", "", 0
    );
    let map = files.iter().find(|(path, _)| path == "ARCHITECTURE.md");
    let words = map.map_or(0, |(_, text)| text.split_whitespace().count());
    println!("\nARCHITECTURE.md: {words} words; goal: at most {MAP_WORDS_MAX}");
}

fn line(name: &str, counts: &Counts) {
    let (pronouns, indirect, cycles) = figures(counts);
    let (words, summaries) = (counts.words, counts.summaries);
    println!("{name:<24} {words:>8} {pronouns:>10.1} {summaries:>10} {indirect:>11.1} {cycles:>7}");
}

fn figures(counts: &Counts) -> Figures {
    (counts.pronouns_per_mille(), counts.indirect_percent(), counts.cycles)
}

/// Returns the counts of each crate.
fn measure(files: &[(String, String)]) -> BTreeMap<String, Counts> {
    let mut all: BTreeMap<String, Counts> = BTreeMap::new();
    let mut sources: BTreeMap<String, Vec<(&str, &str)>> = BTreeMap::new();
    for (path, text) in files {
        let Some(part) = part_of(path) else { continue };
        let counts = all.entry(part.clone()).or_default();
        if has_extension(path, "md") {
            document(text, counts);
        } else {
            comments(text, counts);
            if let Some((_, inner)) = path.split_once("/src/") {
                sources.entry(part).or_default().push((inner, text));
            }
        }
    }
    for (part, sources) in &sources {
        if let Some(counts) = all.get_mut(part) {
            counts.cycles = imports::in_cycles(sources).len();
        }
    }
    all
}

/// Returns the crate that a file belongs to, or `documents`; none if its prose is not measured.
fn part_of(path: &str) -> Option<String> {
    let mut folders = path.split('/');
    let (first, second) = (folders.next()?, folders.next());
    if has_extension(path, "rs") {
        return match (first, second) {
            ("xtask", _) => Some("xtask".to_owned()),
            (_, Some(name)) => Some(name.trim_start_matches("mingle-").to_owned()),
            _ => None,
        };
    }
    // The changelog describes the past in the words of its time.
    let is_document = has_extension(path, "md") && (second.is_none() || first == "docs");
    (is_document && path != "CHANGELOG.md").then(|| "documents".to_owned())
}

/// Counts the words of a document outside code.
fn document(text: &str, counts: &mut Counts) {
    let mut in_code = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        } else if !in_code {
            count_words(line, counts);
        }
    }
}

/// Counts the words and summaries of a Rust file's comments.
fn comments(text: &str, counts: &mut Counts) {
    let (mut in_code, mut was_doc) = (false, false);
    for line in text.lines() {
        let line = line.trim_start();
        let doc = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
        let Some(words) = doc.or_else(|| line.strip_prefix("//")) else {
            (in_code, was_doc) = (false, false);
            continue;
        };
        if words.trim_start().starts_with("```") {
            in_code = !in_code;
        } else if !in_code {
            count_words(words, counts);
            if doc.is_some() && !was_doc {
                counts.summaries += 1;
                let first = words.split_whitespace().next().unwrap_or_default();
                counts.indirect += usize::from(OPENINGS.contains(&first));
            }
        }
        was_doc = doc.is_some();
    }
}

/// Counts words, and pronouns among them, outside of `code`.
fn count_words(line: &str, counts: &mut Counts) {
    for part in line.split('`').step_by(2) {
        let words = part.split(|c: char| !c.is_alphanumeric() && c != '\'');
        for word in words.filter(|word| !word.is_empty()) {
            counts.words += 1;
            let is_pronoun = PRONOUNS.iter().any(|pronoun| word.eq_ignore_ascii_case(pronoun));
            counts.pronouns += usize::from(is_pronoun);
        }
    }
}

fn parse(text: &str) -> Result<BTreeMap<String, Figures>, String> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let wrong = || format!("{LIST}: `{line}`: expected a crate and three figures");
            let mut parts = line.split(' ');
            let name = parts.next().ok_or_else(wrong)?;
            let mut next = || parts.next().ok_or_else(wrong);
            let pronouns = next()?.parse().map_err(|_| wrong())?;
            let indirect = next()?.parse().map_err(|_| wrong())?;
            let cycles = next()?.parse().map_err(|_| wrong())?;
            Ok((name.to_owned(), (pronouns, indirect, cycles)))
        })
        .collect()
}

/// Reports a figure that is larger than listed. A figure may be a tenth smaller before the list
/// must say so, because every added sentence changes it.
fn compare(
    counts: &BTreeMap<String, Counts>,
    listed: &BTreeMap<String, Figures>,
    problems: &mut Vec<String>,
) {
    for (name, counts) in counts {
        let (pronouns, indirect, cycles) = figures(counts);
        let (allowed, share, most) =
            listed.get(name).copied().unwrap_or((PRONOUNS_MAX, SUMMARIES_MAX, 0));
        if pronouns > allowed.max(PRONOUNS_MAX) {
            problems.push(format!(
                "{name}: {pronouns:.1} indirect pronouns (who, what, somebody …) per 1,000 words, \
                 {:.1} at most: name the actors of what was added",
                allowed.max(PRONOUNS_MAX)
            ));
        }
        if indirect > share.max(SUMMARIES_MAX) {
            problems.push(format!(
                "{name}: {indirect:.1} % of doc summaries begin with What, Whether, Who, Of, So, How \
                 or Where, {:.1} % at most: begin with a noun or a verb",
                share.max(SUMMARIES_MAX)
            ));
        }
        if cycles > most {
            problems.push(format!(
                "{name}: {cycles} top-level modules import each other in a circle, {most} at most: {}",
                "see `cargo xtask tidy --figures`"
            ));
        }
    }
    let gone: BTreeSet<&String> =
        listed.keys().filter(|name| !counts.contains_key(*name)).collect();
    for name in gone {
        problems.push(format!("{LIST}: no crate {name}: run `cargo xtask tidy --bless`"));
    }
}

/// True if the prose of this file is measured.
pub fn is_measured(path: &str) -> bool {
    (has_extension(path, "rs") || has_extension(path, "md")) && part_of(path).is_some()
}

fn has_extension(path: &str, extension: &str) -> bool {
    Path::new(path).extension().is_some_and(|found| found == extension)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(text: &str) -> Counts {
        let mut counts = Counts::default();
        comments(text, &mut counts);
        counts
    }

    #[test]
    fn comments_are_counted_and_code_is_not() {
        let text = "\
//! The crate. `who` is code.
//! ```
//! let what = 1;
//! ```

/// What it is, and nobody knows.
fn what() {}
/// A noun.
///
/// Whether it stands here does not count as a summary.
struct A; // trailing comments are not looked at
// Somebody.
";
        let counts = counted(text);
        assert_eq!((counts.pronouns, counts.summaries, counts.indirect), (3, 3, 1));
        assert!((counts.indirect_percent() - 33.4).abs() < 1e-9);
    }

    #[test]
    fn the_figures_only_shrink() {
        let counts = |pronouns, indirect, cycles| Counts {
            words: 1_000,
            pronouns,
            summaries: 100,
            indirect,
            cycles,
        };
        let listed = parse("# list\nlang 10.0 5.0 2\n").expect("a list");
        for (found, expected) in [
            (counts(10, 5, 2), 0),
            (counts(11, 5, 2), 1),
            (counts(10, 6, 2), 1),
            (counts(10, 5, 3), 1),
            (counts(2, 0, 0), 0),
        ] {
            let mut problems = Vec::new();
            compare(&BTreeMap::from([("lang".to_owned(), found)]), &listed, &mut problems);
            assert_eq!(problems.len(), expected, "{problems:?}");
        }
        let mut problems = Vec::new();
        compare(
            &BTreeMap::from([("new".to_owned(), counts(5, 0, 0))]),
            &BTreeMap::new(),
            &mut problems,
        );
        assert_eq!(problems.len(), 1, "a new crate has the goals: {problems:?}");
        assert!(parse("lang 1.0").is_err());
    }
}
