//! The histories in files.

use mingle_checker::{History, read_jsonl, read_text};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/histories");

/// Returns each file's name and text, in order of names.
#[expect(clippy::disallowed_methods, reason = "the tests read their own files")]
pub fn histories() -> Vec<(String, String)> {
    let entries = std::fs::read_dir(FOLDER).expect("the folder is there");
    let mut all: Vec<(String, String)> = entries
        .map(|entry| {
            let entry = entry.expect("it can be read");
            let text = std::fs::read_to_string(entry.path()).expect("it is text");
            (entry.file_name().to_string_lossy().into_owned(), text)
        })
        .collect();
    all.sort();
    all
}

/// Reads a history in either format.
pub fn read(body: &str) -> History {
    let read = if body.starts_with('{') { read_jsonl } else { read_text };
    read(body).expect("a history")
}

/// Returns the history in the file of that name.
pub fn named(name: &str) -> History {
    let found = histories().into_iter().find(|(other, _)| other == name);
    let (_, text) = found.expect("the file is there");
    let (_, rest) = text.split_once("\n\n").expect("a header and a history");
    let (body, _) = rest.split_once("---\n").expect("a history and counterexamples");
    read(body)
}

/// True if counterexamples are to be rewritten.
#[expect(clippy::disallowed_methods, reason = "only whoever runs the tests can say so")]
pub fn bless() -> bool {
    std::env::var_os("MINGLE_BLESS").is_some()
}

/// Replaces a file.
#[expect(clippy::disallowed_methods, reason = "the tests write their own files")]
pub fn write(name: &str, text: &str) {
    std::fs::write(format!("{FOLDER}/{name}"), text).expect("it can be written");
}
