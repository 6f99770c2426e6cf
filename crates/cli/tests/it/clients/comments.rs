//! Comments of programs that the tools of a language would take for something else.

use std::fs;
use std::path::Path;
use std::process::Command;

use mingle_gen::Runtime;
use mingle_gen::go::{self, Options};
use mingle_services::Checker;

/// The parts of lines with a meaning in comments of Go.
const PIECES: [&str; 30] = [
    "- ",
    "* ",
    "1. ",
    "2) ",
    "# ",
    "## ",
    "\t",
    "  ",
    "    ",
    "[a]: http://b",
    "[a]",
    "``",
    "''",
    "`a`",
    "*/",
    "/*",
    "//",
    "//go:build ignore",
    "go:embed x",
    "+build a",
    "line x:1",
    "Deprecated: ",
    "Heading",
    "word",
    "a word.",
    "\u{a0}",
    "\u{feff}",
    "\u{2028}",
    "\n",
    "\n\n",
];

/// The seed of the comments.
const SEED: u64 = 42;

/// A random generator of sufficient quality for this test (Knuth's MMIX constants).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % bound
    }
}

#[test]
fn gofmt_changes_no_comment() {
    let Some(words) = mingle_services::checker(Checker::Go) else { return };
    let folder = tempfile::tempdir().expect("a folder for the test");
    let mut random = Random(SEED);
    for at in 0..500 {
        let docs: String =
            (0..random.below(12)).map(|_| PIECES[random.below(PIECES.len())]).collect();
        write(folder.path(), at, &docs);
    }
    let go = fs::canonicalize(&words[0]).expect("the command is there");
    let mut format = Command::new(go.with_file_name("gofmt"));
    let output = format.arg("-d").arg(folder.path()).output().expect("it runs");
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && shown.is_empty(), "seed {SEED}: {shown}{errors}");
}

/// Writes the client of a program with this comment in every place that allows one.
fn write(folder: &Path, at: usize, docs: &str) {
    let docs: Vec<String> = docs.split('\n').map(|line| format!("/// {line}\n")).collect();
    let docs = docs.concat();
    let program = format!(
        "store s: causal;\n{docs}struct P {{\n{docs}x: int,\n}}\n{docs}object O in s {{\n{docs}key k: int;\n{docs}n: int;\n}}\n\
         {docs}transaction bump(o: ref O, p: P) {{ o.n += p.x; }}\n"
    );
    let options = Options { runtime: Runtime::Imported, ..Options::default() };
    let text = go::text_with(&mingle_lang::check(program), docs.trim(), &options);
    fs::write(folder.join(format!("{at}.go")), text.expect("it has no errors")).expect("a file");
}
