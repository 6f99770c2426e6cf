//! The chapter about clients: its program, and its examples in the order of the page.

use super::language::Language;
use super::served::Served;

const PAGE: &str = include_str!("../../../../../docs/clients.md");

/// The address in the examples, and the expression with which scripts find the test's server.
const ADDRESS: &str = "\"http://127.0.0.1:8080\"";

/// Returns the code blocks of the page in one language, joined.
fn blocks(language: &str) -> String {
    let parts = PAGE.split("\n```").skip(1).step_by(2);
    let texts = parts.filter_map(|part| part.strip_prefix(language)?.strip_prefix('\n'));
    texts.flat_map(|text| [text, "\n"]).collect()
}

/// Returns the program of the chapter.
pub fn program() -> String {
    blocks("mingle")
}

/// Returns the examples as scripts, with their names.
pub fn scripts(language: Language) -> Vec<(String, String)> {
    let (blocks, before, address, place) = match language {
        Language::TypeScript => {
            (blocks("ts"), "", "process.argv[2] ?? \"\"", ("./stall.js", "./clients/stall.js"))
        }
        Language::Python => {
            (blocks("python"), "import sys\n", "sys.argv[1]", ("from stall", "from clients.stall"))
        }
        Language::Go => (
            blocks("go"),
            GO_BEFORE,
            "os.Args[1]",
            ("shop.example/stall", "workshop/clients/stall"),
        ),
    };
    assert!(blocks.contains(ADDRESS) && blocks.contains(place.0), "{blocks}");
    let text = blocks.replace(ADDRESS, address).replace(place.0, place.1);
    let text = if language == Language::Go { in_a_function(&text) } else { text };
    vec![("book".to_owned(), format!("{before}{text}"))]
}

/// The beginning of a program in Go, before the imports of the examples.
const GO_BEFORE: &str = "// The examples of the book.\npackage main\n\nimport \"os\"\n\n";

/// The function of a program in Go that runs the examples.
const GO_MAIN: &str = "func main() {
\tif err := run(); err != nil {
\t\tpanic(err)
\t}
}
";

/// Puts the statements of the examples, which begin after their imports, into a function.
fn in_a_function(text: &str) -> String {
    let (imports, statements) = text.split_once("\n)\n").expect("the examples begin with imports");
    let lines = statements.trim().lines();
    let lines = lines.map(|line| format!("\t{line}").trim_end().to_owned() + "\n");
    let mut squeezed = String::new();
    for line in lines.filter(|line| line != "\n") {
        squeezed += &line;
    }
    format!("{imports}\n)\n\n{GO_MAIN}\nfunc run() error {{\n{squeezed}\treturn nil\n}}\n")
}

#[test]
fn the_examples_of_the_chapter_run() {
    for language in Language::ALL {
        let Some(workshop) = language.workshop() else { continue };
        let folder = tempfile::tempdir().expect("a folder for the test");
        let file = folder.path().join("stall.mingle");
        std::fs::write(&file, program()).expect("the program is written");
        let served = Served::start(&file, &folder.path().join("data"), &[]);
        let printed = workshop.run("book", &[&served.url]);
        let lines: Vec<&str> = printed.lines().collect();
        let [remark, sold, early, restocked] = lines.as_slice() else { panic!("{printed}") };
        assert!(remark.starts_with("ana at 20") && remark.ends_with(", and 1 left"), "{remark}");
        // Two seats were left, and bob bought the second.
        assert_eq!(sold.trim_end_matches('n'), "1");
        assert!(early.starts_with("sold out"), "{early}");
        assert_eq!(restocked.trim_end_matches('n'), "5");
    }
}
