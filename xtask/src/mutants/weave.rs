//! All mistakes of a file within one text, each behind a switch.
//!
//! A crate is built once for all of its mistakes. The environment of a process selects the mistake
//! that it makes, if any: this technique is known as mutant schemata (Untch, Offutt and Harrold,
//! 1993). The copies of a text contain no further switches, because a process makes at most one
//! mistake.

use std::ops::Range;

use super::generate::{Mutation, Place};

/// The variable with the number of the mistake that a process makes.
pub const ACTIVE: &str = "MINGLE_MUTANT";

/// The variable with the file to which a process adds the numbers of the switches that it reaches.
pub const REACHED: &str = "MINGLE_MUTANTS_REACHED";

/// A file with switches.
pub struct Woven {
    pub text: String,
    /// The ranges of the mistakes in the text, with their numbers.
    spans: Vec<(u32, Range<usize>)>,
}

/// Adds mistakes, given with their numbers, to a file.
pub fn weave(text: &str, mutations: &[(u32, &Mutation)]) -> Woven {
    let mut sorted = mutations.to_vec();
    sorted.sort_by_key(|(_, mutation)| {
        (mutation.range.start, std::cmp::Reverse(mutation.range.end), mutation.place)
    });
    let mut woven = Woven { text: String::new(), spans: Vec::new() };
    woven.add(text, 0..text.len(), &sorted);
    woven
}

/// True if two mistakes can be in one text: one within the other, or apart.
pub fn fit(one: &Mutation, other: &Mutation) -> bool {
    let (a, b) = (&one.range, &other.range);
    let within = |a: &Range<usize>, b: &Range<usize>| b.start <= a.start && a.end <= b.end;
    within(a, b) || within(b, a) || a.end <= b.start || b.end <= a.start
}

impl Woven {
    fn add(&mut self, text: &str, range: Range<usize>, mutations: &[(u32, &Mutation)]) {
        let (mut at, mut rest) = (range.start, mutations);
        while let [(number, mutation), others @ ..] = rest {
            let Range { start, end } = mutation.range;
            self.text.push_str(&text[at..start]);
            let inside = others.iter().take_while(|(_, other)| other.range.start < end).count();
            let begin = self.text.len();
            let switch = format!("if crate::mutant_switch::on({number})");
            let becomes = &mutation.becomes;
            let opening = match mutation.place {
                Place::Body => format!("{switch} {{ return {becomes}; }}"),
                Place::Statement => format!("{switch} {{ {becomes} }} else {{ "),
                Place::Expression => format!("({switch} {{ {becomes} }} else {{ "),
            };
            self.text.push_str(&opening);
            self.add(text, start..end, &others[..inside]);
            self.text.push_str(match mutation.place {
                Place::Body => "",
                Place::Statement => " }",
                Place::Expression => " })",
            });
            self.spans.push((*number, begin..self.text.len()));
            (at, rest) = (end, &others[inside..]);
        }
        self.text.push_str(&text[at..range.end]);
    }

    /// Returns the mistake that causes an error at a line and column, counted from one: the
    /// narrowest mistake around the place, else the nearest before it, else the first.
    pub fn blamed(&self, line: usize, column: usize) -> Option<u32> {
        let before: usize = self.text.split_inclusive('\n').take(line - 1).map(str::len).sum();
        let at = before + column - 1;
        let around = self.spans.iter().filter(|(_, span)| span.start <= at && at <= span.end);
        let narrowest = around.min_by_key(|(_, span)| span.len());
        let nearest = || self.spans.iter().filter(|(_, span)| span.end <= at);
        let found = narrowest.or_else(|| nearest().max_by_key(|(_, span)| span.end));
        found.or(self.spans.first()).map(|(number, _)| *number)
    }
}

/// Returns the module with the switches, for the root of a crate with `count` mistakes.
pub fn switches(count: usize) -> String {
    format!(
        "
/// Switches of mistakes.
#[allow(warnings, clippy::all, clippy::pedantic)]
pub mod mutant_switch {{
    use std::io::Write;
    use std::sync::OnceLock;
    use std::sync::atomic::{{AtomicBool, Ordering}};

    static SETTING: OnceLock<(u32, Option<std::ffi::OsString>)> = OnceLock::new();
    static SEEN: [AtomicBool; {count}] = [const {{ AtomicBool::new(false) }}; {count}];

    /// True if this process makes the mistake.
    pub fn on(number: u32) -> bool {{
        let (active, reached) = SETTING.get_or_init(|| {{
            let active = std::env::var(\"{ACTIVE}\").ok().and_then(|active| active.parse().ok());
            (active.unwrap_or(u32::MAX), std::env::var_os(\"{REACHED}\"))
        }});
        if let Some(file) = reached {{
            if !SEEN[number as usize].swap(true, Ordering::Relaxed) {{
                let file = std::fs::OpenOptions::new().append(true).create(true).open(file);
                if let Ok(mut file) = file {{
                    let _ = file.write_all(format!(\"{{number}}\\n\").as_bytes());
                }}
            }}
        }}
        *active == number
    }}
}}
"
    )
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::{Command, Stdio};

    use super::super::generate::mutations;
    use super::*;
    use crate::run::root;

    fn woven(text: &str) -> Woven {
        let (found, _) = mutations(text).expect("it is read");
        let mut chosen: Vec<(u32, &Mutation)> = Vec::new();
        for mutation in &found {
            if chosen.iter().all(|(_, other)| fit(mutation, other)) {
                chosen.push((chosen.len() as u32, mutation));
            }
        }
        weave(text, &chosen)
    }

    #[test]
    fn mistakes_stand_behind_switches() {
        let woven = woven("fn f(a: u8) -> bool { g(); a < 1 && b }");
        let on = |number: u32| format!("if crate::mutant_switch::on({number})");
        let expected = format!(
            "fn f(a: u8) -> bool {{{} {{ return true; }}{} {{ return false; }} {} {{  }} else {{ g(); }} \
             ({} {{ a < 1 || b }} else {{ ({} {{ a <= 1 }} else {{ a < 1 }}) && b }}) }}",
            on(0),
            on(1),
            on(2),
            on(4),
            on(3)
        );
        assert_eq!(woven.text, expected);
        let column = |part: &str| woven.text.find(part).expect("it is there") + 1;
        assert_eq!(woven.blamed(1, column("a <= 1")), Some(3));
        assert_eq!(woven.blamed(1, column("a < 1 || b")), Some(4));
        assert_eq!(woven.blamed(1, 1), Some(0));
        assert_eq!(woven.blamed(1, woven.text.len()), Some(4));
    }

    /// The formatter can parse the woven text of every file of this crate.
    #[test]
    fn what_is_woven_is_a_program() {
        let mut folders = vec![root().join("xtask/src"), root().join("crates/runtime/src")];
        let (mut files, mut count) = (0, 0);
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).expect("the folder is there") {
                let path = entry.expect("the folder is read").path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|extension| extension == "rs") {
                    let text = std::fs::read_to_string(&path).expect("the file is there");
                    let woven = woven(&text);
                    count += woven.spans.len();
                    files += 1;
                    assert!(is_program(&woven.text), "{}", path.display());
                }
            }
        }
        assert!(files > 60 && count > 1000, "{count} mistakes in {files} files");
    }

    fn is_program(text: &str) -> bool {
        // Types joined by `+` look like a sum: the compiler rejects those mistakes, so they are
        // dropped.
        let mut formatter = Command::new("rustfmt");
        formatter.args(["--edition", "2024", "--emit", "stdout", "--config", "max_width=1000"]);
        formatter.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut running = formatter.spawn().expect("rustfmt is there");
        let mut input = running.stdin.take().expect("it is piped");
        input.write_all(text.as_bytes()).expect("it reads");
        drop(input);
        running.wait().expect("it ends").success()
    }
}
