//! The results of tests, as text and as JSON.

use std::fmt::Write as _;

use mingle_lang::syntax::{Places, Source, Span, TextPlaces};
use serde_json::{Value as Json, json};

use super::play::Fault;

/// The result of a test.
pub struct Ended {
    /// Its name.
    pub name: String,
    /// The number of seeds with which it ran.
    pub seeds: u64,
    /// The number of places at which the process crashed.
    pub crashes: u64,
    /// The failure, if it failed.
    pub failed: Option<Failed>,
}

/// A failure.
pub struct Failed {
    /// The seed of the run.
    pub seed: u64,
    /// The fault.
    pub fault: Fault,
}

const GREEN: &str = "\x1b[32m";
const RED: &str = "\x1b[31m";
const PLAIN: &str = "\x1b[0m";

/// Returns the results of a file's tests as text.
pub fn file(name: &str, source: &Source, all: &[Ended], color: bool) -> String {
    let mut text = format!("{name}\n");
    for ended in all {
        write_test(&mut text, name, source, ended, color)
            .expect("writing to a string does not fail");
    }
    text
}

fn write_test(
    text: &mut String,
    file: &str,
    source: &Source,
    ended: &Ended,
    color: bool,
) -> std::fmt::Result {
    let paint = |paint, word| if color { format!("{paint}{word}{PLAIN}") } else { word };
    let Some(Failed { seed, fault }) = &ended.failed else {
        let word = paint(GREEN, "ok".to_owned());
        return writeln!(text, "  {word}    {}{}", ended.name, counts(ended));
    };
    let word = paint(RED, "FAIL".to_owned());
    writeln!(text, "  {word}  {}", ended.name)?;
    let message = &fault.message;
    match fault.span {
        Some(span) => {
            writeln!(text, "        {}: {message}", place(file, source, span))?;
            writeln!(text, "            {}", step(source, span))?;
        }
        None => writeln!(text, "        {file}: {message}")?,
    }
    for line in &fault.details {
        writeln!(text, "        {line}")?;
    }
    if let Some(crash) = &fault.crash {
        writeln!(text, "        after {crash}")?;
    }
    writeln!(text, "        again: mingle test {file} --only {:?} --seed {seed}", ended.name)
}

/// Returns the numbers of runs of a test, where there are several.
fn counts(ended: &Ended) -> String {
    let mut parts = Vec::new();
    if ended.seeds > 1 {
        parts.push(format!("{} seeds", ended.seeds));
    }
    if ended.crashes > 0 {
        parts.push(format!("{} crashes", ended.crashes));
    }
    if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) }
}

/// Returns the place of a step: `file:line:column`.
fn place(file: &str, source: &Source, span: Span) -> String {
    let (start, _) = TextPlaces::new(source).place(span);
    format!("{file}:{}:{}", start.line, start.column)
}

/// Returns the text of a step in one line.
fn step(source: &Source, span: Span) -> String {
    let tokens = &source.tokens[span.start as usize..span.end as usize];
    let (Some(first), Some(last)) = (tokens.first(), tokens.last()) else { return String::new() };
    let text = &source.text[first.start as usize..last.end as usize];
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the last line.
pub fn summary(all: usize, failed: usize) -> String {
    let word = if all == 1 { "test" } else { "tests" };
    match failed {
        0 => format!("{all} {word} passed\n"),
        _ => format!("{failed} of {all} {word} failed\n"),
    }
}

/// Returns the results of all files as JSON.
pub fn json(all: &[(String, Source, Vec<Ended>)]) -> String {
    let mut tests = Vec::new();
    for (file, source, ended) in all {
        tests.extend(ended.iter().map(|ended| test_json(file, source, ended)));
    }
    format!("{}\n", json!({ "tests": tests }))
}

fn test_json(file: &str, source: &Source, ended: &Ended) -> Json {
    let failure = ended.failed.as_ref().map(|Failed { seed, fault }| {
        json!({
            "place": fault.span.map(|span| place(file, source, span)),
            "message": fault.message,
            "details": fault.details,
            "crash": fault.crash,
            "seed": seed,
        })
    });
    json!({
        "file": file,
        "name": ended.name,
        "passed": ended.failed.is_none(),
        "seeds": ended.seeds,
        "crashes": ended.crashes,
        "failure": failure,
    })
}
