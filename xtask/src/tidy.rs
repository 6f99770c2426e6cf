//! Rules that the compiler does not check: the lengths of files and functions, and text that must
//! not be left behind.
//!
//! Files and functions that are too long already are listed with their lengths. The list may only
//! shrink: a greater length than listed is an error, and so is a smaller one, until the list is
//! updated.

mod book;
mod imports;
mod length;
mod markdown;
mod pictures;
mod prose;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::run::{Outcome, root};

const EXCEPTIONS: &str = "xtask/tidy-exceptions.txt";

const HEADER: &str = "\
# Files and functions that are too long, with their length in lines.
# This list may only shrink: `cargo xtask tidy --bless` takes out what is no longer needed.
";

/// The extensions of the files that are checked.
const TEXT: [&str; 8] = ["rs", "md", "toml", "mingle", "yml", "sh", "txt", "svg"];

/// Text that must not be left in Rust code. It is written in two parts so that the check does not
/// find itself.
const LEFTOVERS: [[&str; 2]; 4] =
    [["db", "g!("], ["tod", "o!("], ["unimplemen", "ted!("], ["#[ign", "ore"]];

/// Paths of a developer's machine.
const MACHINE: [[&str; 2]; 4] = [["/ho", "me/"], ["/ro", "ot/"], ["/wo", "rk/"], ["/Use", "rs/"]];

/// Checks all files; with `bless`, shrinks the exceptions instead of complaining about them.
pub fn tidy(bless: bool) -> Outcome {
    let root = root();
    let mut paths = Vec::new();
    walk(&root, &mut paths)?;
    paths.sort();
    let (mut problems, mut lengths) = (Vec::new(), BTreeMap::new());
    let files = read(&root, &paths)?;
    for (shown, text) in &files {
        look_at(shown, text, &mut problems);
        if is_rust(shown) {
            lengths.extend(length::too_long(shown, text));
        }
    }
    book::check(&files, bless, &mut problems)?;
    let measured: Vec<_> = files.into_iter().filter(|(path, _)| prose::is_measured(path)).collect();
    prose::check(&measured, bless, &mut problems)?;
    let list = root.join(EXCEPTIONS);
    let listed = fs::read_to_string(&list).ok();
    let exceptions = parse(listed.as_deref().unwrap_or_default())?;
    if bless {
        let shrunk = shrink(exceptions, &lengths, listed.is_none());
        fs::write(&list, print(&shrunk)).map_err(|error| format!("{EXCEPTIONS}: {error}"))?;
        problems.extend(compare(&shrunk, &lengths));
    } else {
        problems.extend(compare(&exceptions, &lengths));
    }
    if problems.is_empty() {
        return Ok(());
    }
    for problem in &problems {
        eprintln!("{problem}");
    }
    Err(format!("{} problems", problems.len()))
}

/// Prints the figures of prose and structure, crate by crate.
pub fn figures() -> Outcome {
    let root = root();
    let mut paths = Vec::new();
    walk(&root, &mut paths)?;
    paths.sort();
    let files: Vec<_> =
        read(&root, &paths)?.into_iter().filter(|(path, _)| prose::is_measured(path)).collect();
    prose::print(&files);
    Ok(())
}

/// Reads the texts of all files, by their paths below the root.
fn read(root: &Path, paths: &[PathBuf]) -> Result<Vec<(String, String)>, String> {
    let texts = paths.iter().map(|path| {
        let shown = path.strip_prefix(root).unwrap_or(path).to_string_lossy().replace('\\', "/");
        let text = fs::read_to_string(path).map_err(|error| format!("{shown}: {error}"))?;
        Ok((shown, text))
    });
    texts.collect()
}

fn walk(folder: &Path, paths: &mut Vec<PathBuf>) -> Outcome {
    let fail = |error: std::io::Error| format!("{}: {error}", folder.display());
    for entry in fs::read_dir(folder).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        let (path, name) = (entry.path(), entry.file_name());
        let kind = entry.file_type().map_err(fail)?;
        if kind.is_dir() {
            let skipped = name == "target" || name == ".git" || name == ".mingle";
            if !skipped {
                walk(&path, paths)?;
            }
        } else if path.extension().is_some_and(|ext| TEXT.iter().any(|text| ext == *text)) {
            paths.push(path);
        }
    }
    Ok(())
}

fn is_rust(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|ext| ext == "rs")
}

/// Checks one file for text that it must not contain.
fn look_at(path: &str, text: &str, problems: &mut Vec<String>) {
    let is_rust = is_rust(path);
    for (index, line) in text.lines().enumerate() {
        let mut complain = |what: &str| problems.push(format!("{path}:{}: {what}", index + 1));
        if line.trim_end() != line {
            complain("blanks at the end of the line");
        }
        if is_rust && LEFTOVERS.iter().any(|parts| line.contains(&parts.concat())) {
            complain("a leftover of debugging or unfinished work");
        }
        if MACHINE.iter().any(|parts| line.contains(&parts.concat())) {
            complain("a path of somebody's machine");
        }
    }
    if !text.is_empty() && !text.ends_with('\n') {
        problems.push(format!("{path}: no line break at the end"));
    }
    let is_entry = path.ends_with("src/lib.rs") || path.ends_with("src/main.rs");
    if is_entry && !text.starts_with("//!") {
        problems.push(format!("{path}: the crate does not say what it is"));
    }
}

fn parse(list: &str) -> Result<BTreeMap<String, usize>, String> {
    let lines = list.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let parts = line.rsplit_once(' ');
            let (name, length) = parts.ok_or_else(|| format!("{EXCEPTIONS}: `{line}`"))?;
            let length = length.parse().map_err(|error| format!("{EXCEPTIONS}: {error}"))?;
            Ok((name.to_owned(), length))
        })
        .collect()
}

fn print(exceptions: &BTreeMap<String, usize>) -> String {
    let lines = exceptions.iter().map(|(name, length)| format!("{name} {length}\n"));
    std::iter::once(HEADER.to_owned()).chain(lines).collect()
}

/// Returns the exceptions that are still needed; all of them for a new list.
fn shrink(
    exceptions: BTreeMap<String, usize>,
    lengths: &BTreeMap<String, usize>,
    is_new: bool,
) -> BTreeMap<String, usize> {
    if is_new {
        return lengths.clone();
    }
    let needed = exceptions.into_iter().filter_map(|(name, allowed)| {
        let length = lengths.get(&name)?;
        Some((name, allowed.min(*length)))
    });
    needed.collect()
}

fn compare(exceptions: &BTreeMap<String, usize>, lengths: &BTreeMap<String, usize>) -> Vec<String> {
    let mut problems = Vec::new();
    for (name, length) in lengths {
        match exceptions.get(name) {
            None => problems.push(format!("{name}: {length} lines are too many: split it")),
            Some(allowed) if length > allowed => {
                problems.push(format!("{name}: {length} lines, {allowed} at most: split it"));
            }
            Some(_) => {}
        }
    }
    for (name, allowed) in exceptions {
        if lengths.get(name).is_none_or(|length| length < allowed) {
            problems.push(format!("{name}: shorter than listed: run `cargo xtask tidy --bless`"));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(entries: &[(&str, usize)]) -> BTreeMap<String, usize> {
        entries.iter().map(|(name, length)| ((*name).to_owned(), *length)).collect()
    }

    #[test]
    fn the_list_only_shrinks() {
        let listed = map(&[("a", 600), ("b", 700), ("c", 800)]);
        let found = map(&[("a", 650), ("b", 550), ("d", 501)]);
        assert_eq!(shrink(listed.clone(), &found, false), map(&[("a", 600), ("b", 550)]));
        let problems = compare(&listed, &found);
        assert_eq!(problems.len(), 4, "{problems:?}");
        assert_eq!(parse(&print(&listed)), Ok(listed));
        assert!(parse("a").is_err());
    }

    #[test]
    fn leftovers_are_found() {
        let mut problems = Vec::new();
        for parts in LEFTOVERS.iter().chain(&MACHINE) {
            look_at("src/a.rs", &format!("{}\n", parts.concat()), &mut problems);
        }
        look_at("src/a.rs", "let a = 1; \nlet b", &mut problems);
        look_at("src/lib.rs", "mod a;\n", &mut problems);
        assert_eq!(problems.len(), LEFTOVERS.len() + MACHINE.len() + 3, "{problems:?}");
    }
}
