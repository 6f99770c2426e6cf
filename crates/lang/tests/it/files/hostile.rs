//! Paths and files that a program should not have.

use std::collections::BTreeMap;

use mingle_lang::check_source;
use mingle_lang::files::{FILES_MAX, Sources, Unreadable, load, resolve};

use super::short;

#[test]
fn paths_that_are_none_are_refused() {
    for (path, expected) in [
        ("", "this one is empty"),
        ("/etc/passwd.mingle", "absolute"),
        ("a\\\\b.mingle", "expected `/`"),
        ("C:/a.mingle", "without `:`"),
        ("https://example.com/a.mingle", "without `:`"),
        ("a\\n.mingle", "control characters"),
        ("a", "ends with `.mingle`"),
        ("a.mingle/", "ends with `.mingle`"),
        (".mingle", "ends with `.mingle`"),
        ("..", "ends with `.mingle`"),
        ("shop.test.mingle", "a file of tests"),
    ] {
        let text = format!("import \"{path}\";\n");
        let said = super::human(&[("main.mingle", &text)]);
        assert!(said.contains("error[M0701]") && said.contains(expected), "{path}: {said}");
        assert_eq!(short(&[("main.mingle", &text)]).lines().count(), 1, "{path}");
    }
    // The lexer refuses U+0000 in a string.
    assert!(short(&[("main.mingle", "import \"a\0.mingle\";")]).contains("error[M0001]"));
}

#[test]
fn paths_are_resolved_from_the_folder_of_the_importing_file() {
    for (importer, path, expected) in [
        ("main.mingle", "a.mingle", "a.mingle"),
        ("x/main.mingle", "./y/.././a.mingle", "x/a.mingle"),
        ("x/main.mingle", "../a.mingle", "a.mingle"),
        ("main.mingle", "../../a.mingle", "../../a.mingle"),
        ("../main.mingle", "../a.mingle", "../../a.mingle"),
        ("/x/main.mingle", "../../../a.mingle", "/a.mingle"),
        ("x//y/main.mingle", "z///a.mingle", "x/y/z/a.mingle"),
        ("./main.mingle", "ü b.mingle", "ü b.mingle"),
    ] {
        assert_eq!(resolve(importer, path).as_deref(), Ok(expected), "{importer} {path}");
    }
}

/// Files under several paths, as with links.
struct Linked {
    files: BTreeMap<String, String>,
    reads: usize,
}

impl Sources for Linked {
    fn read(&mut self, path: &str) -> Result<String, Unreadable> {
        self.reads += 1;
        let identity = self.identity(path);
        let found = self.files.get(&identity).cloned();
        found.ok_or_else(|| Unreadable("there is no such file".into()))
    }

    fn identity(&mut self, path: &str) -> String {
        path.replace("loop/", "")
    }
}

#[test]
fn one_file_under_several_paths_is_one_file() {
    let files = [("a.mingle", "import \"loop/a.mingle\";"), ("b.mingle", "store s: causal;")];
    let files = files.map(|(path, text)| (path.to_owned(), text.to_owned()));
    let mut linked = Linked { files: files.into(), reads: 0 };
    let source =
        load("main.mingle", "import \"loop/loop/b.mingle\"; import \"b.mingle\";", &mut linked);
    assert_eq!((source.files.len(), linked.reads), (2, 1));
    let checked = check_source(load("main.mingle", "import \"loop/a.mingle\";", &mut linked));
    assert_eq!(checked.diagnostics[0].title, "\"loop/a.mingle\" is imported in a circle");
}

#[test]
fn the_number_of_files_is_bounded() {
    let mut reads = 0;
    // A chain without an end.
    let mut endless = |path: &str| {
        reads += 1;
        let number: usize = path.trim_end_matches(".mingle").parse().expect("a number");
        Ok(format!("import \"{}.mingle\";\n", number + 1))
    };
    let checked = check_source(load("0.mingle", "import \"1.mingle\";\n", &mut endless));
    assert_eq!(reads, FILES_MAX - 1);
    assert_eq!(checked.diagnostics.len(), 1);
    assert_eq!(checked.diagnostics[0].title, "the program has more than 1000 files");
    // Many imports of one file.
    let many: String = (0..10_000).map(|_| "import \"1.mingle\";\n").collect();
    let mut one = |_: &str| Ok("store s: causal;\n".to_owned());
    let source = load("0.mingle", many, &mut one);
    assert_eq!(source.files.len(), 2);
    assert!(!check_source(source).has_errors());
    // And of as many files.
    let many: Vec<_> = (0..10_000).map(|file| format!("import \"{file}.mingle\";\n")).collect();
    let mut none = |_: &str| Ok(String::new());
    let checked = check_source(load("main.mingle", many.concat(), &mut none));
    assert_eq!(checked.source.files.len(), FILES_MAX);
    assert!(checked.program.is_none());
}
