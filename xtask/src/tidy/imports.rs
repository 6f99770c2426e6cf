//! The imports between the top-level modules of a crate.
//!
//! A file belongs to the top-level module that its path names (`flow/rules.rs` to `flow`). It
//! imports the modules that its paths through `crate::…` name; a name that the crate's root
//! re-exports leads to the module it comes from. Tests inside files are not counted: they may
//! import any module.

use std::collections::{BTreeMap, BTreeSet};

/// Returns the top-level modules that take part in an import cycle; `sources` are paths below `src`
/// with their text.
pub fn in_cycles(sources: &[(&str, &str)]) -> BTreeSet<String> {
    let modules: BTreeSet<&str> = sources.iter().filter_map(|(path, _)| module_of(path)).collect();
    let root = sources.iter().find(|(path, _)| *path == "lib.rs" || *path == "main.rs");
    let exported = root.map(|(_, text)| exports(text)).unwrap_or_default();
    let mut edges: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (path, text) in sources {
        let Some(from) = module_of(path) else { continue };
        for name in imported(without_tests(text)) {
            let target = exported.get(&name).map_or(name.as_str(), String::as_str);
            if let Some(to) = modules.get(target).filter(|to| **to != from) {
                edges.entry(from).or_default().insert(to);
            }
        }
    }
    let is_in_cycle = |module: &&str| reaches(module, module, &edges);
    modules.iter().copied().filter(|module| is_in_cycle(module)).map(str::to_owned).collect()
}

/// Returns the top-level module of a file, by its path below `src`; none for the crate's root and
/// programs.
fn module_of(path: &str) -> Option<&str> {
    let first = path.split('/').next()?;
    let name = first.strip_suffix(".rs").unwrap_or(first);
    (!matches!(name, "lib" | "main" | "bin" | "tests")).then_some(name)
}

/// Returns the text up to the tests at its end.
fn without_tests(text: &str) -> &str {
    text.find("#[cfg(test)]\nmod ").map_or(text, |at| &text[..at])
}

/// Returns the names that follow `crate::` outside of comments, those in braces one by one.
fn imported(text: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let code: String = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .flat_map(|line| [line, "\n"])
        .collect();
    for (at, start) in code.match_indices("crate::") {
        let before = code[..at].chars().next_back();
        if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '$') {
            continue;
        }
        let rest = &code[at + start.len()..];
        match rest.strip_prefix('{') {
            Some(list) => names.extend(firsts(list)),
            None => names.extend(identifier(rest)),
        }
    }
    names
}

/// Returns the first identifier of each item of a list in braces that has been opened.
fn firsts(list: &str) -> Vec<String> {
    let (mut names, mut depth, mut start) = (Vec::new(), 1_usize, 0);
    for (at, c) in list.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 || (depth == 1 && c == ',') {
            names.extend(identifier(list[start..at].trim_start()));
            start = at + 1;
        }
        if depth == 0 {
            break;
        }
    }
    names
}

fn identifier(text: &str) -> Option<String> {
    let name: String = text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    (!name.is_empty()).then_some(name)
}

/// Returns the names that the crate's root re-exports, with the module that each comes from.
fn exports(text: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for statement in text.split("use ").skip(1) {
        let statement = statement.split(';').next().unwrap_or_default();
        let path = statement.trim().trim_start_matches("crate::").trim_start_matches("self::");
        let Some((module, rest)) = path.split_once("::") else { continue };
        let names = rest.split(|c: char| !c.is_alphanumeric() && c != '_');
        for name in names.filter(|name| !name.is_empty()) {
            found.entry(name.to_owned()).or_insert_with(|| module.to_owned());
        }
    }
    found
}

/// True if a path of at least one edge leads from `from` to `to`.
fn reaches(from: &str, to: &str, edges: &BTreeMap<&str, BTreeSet<&str>>) -> bool {
    let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(module) = open.pop() {
        for next in edges.get(module).into_iter().flatten() {
            if *next == to {
                return true;
            }
            if seen.insert(*next) {
                open.push(next);
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycles_are_found_through_lists_paths_and_the_root() {
        let sources = [
            ("lib.rs", "mod a;\nmod b;\nmod c;\nmod d;\npub use b::{Thing, other};\n"),
            ("a.rs", "use crate::Thing;\nuse crate::{\n    c::{x, y},\n    d,\n};\n"),
            ("b/mod.rs", "fn f() { crate::a::g() }\n"),
            ("c.rs", "// crate::a is only said here\n#[cfg(test)]\nmod tests { use crate::a; }\n"),
            ("d/inner.rs", "use crate::d::own;\n"),
        ];
        let found: Vec<String> = in_cycles(&sources).into_iter().collect();
        assert_eq!(found, ["a", "b"]);
    }
}
