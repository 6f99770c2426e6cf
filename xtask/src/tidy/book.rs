//! The book in `docs/`, and the links of all documents.
//!
//! - Every relative link leads to a file that exists, and its anchor to a heading there. Links of the
//!   book's pages stay inside the book, so that it can be published on its own.
//! - Every page is in `SUMMARY.md`, once, and every entry there is a page.
//! - Every image has a text that stands for it, and every picture is shown ([`pictures`]).
//! - The page of examples shows the files in `examples/` as they are.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use super::{markdown, pictures};
use crate::run::{Outcome, root};

const FOLDER: &str = "docs/";
const SUMMARY: &str = "docs/SUMMARY.md";
const PAGE_OF_EXAMPLES: &str = "docs/examples.md";
const EXAMPLES: &str = "examples/";

/// Checks the documents among all files, given by path and text; with `bless`, writes the examples
/// into their page.
pub fn check(files: &[(String, String)], bless: bool, problems: &mut Vec<String>) -> Outcome {
    let root = root();
    // Some crates include a page by a symbolic link; its links belong to the page's own place.
    let files: BTreeMap<&str, &str> = files
        .iter()
        .filter(|(path, _)| !root.join(path).is_symlink())
        .map(|(path, text)| (path.as_str(), text.as_str()))
        .collect();
    links(&files, &|path| root.join(path).exists(), problems);
    summary(&files, problems);
    pictures::check(&files, problems);
    let page = examples(&files, problems);
    if bless && let Some(page) = page {
        fs::write(root.join(PAGE_OF_EXAMPLES), page)
            .map_err(|error| format!("{PAGE_OF_EXAMPLES}: {error}"))?;
        problems.retain(|problem| !problem.ends_with(DIFFERS));
    }
    Ok(())
}

/// Checks every link of every document; `exists` tells if there is a file or folder of a path.
fn links(files: &BTreeMap<&str, &str>, exists: &dyn Fn(&str) -> bool, problems: &mut Vec<String>) {
    for (path, text) in files.iter().filter(|(path, _)| is_page(path)) {
        for link in markdown::links(text) {
            let mut complain = |what: &str| {
                problems.push(format!("{path}:{}: {what}: {}", link.line, link.target));
            };
            if link.alt.as_deref() == Some("") {
                complain("an image without a text that stands for it");
            }
            if let Err(what) = follow(files, exists, path, &link.target) {
                complain(what);
            }
        }
    }
}

/// Follows a link from a page.
fn follow(
    files: &BTreeMap<&str, &str>,
    exists: &dyn Fn(&str) -> bool,
    from: &str,
    target: &str,
) -> Result<(), &'static str> {
    if is_absolute(target) {
        return Ok(());
    }
    let (file, anchor) = match target.split_once('#') {
        Some((file, anchor)) => (file, Some(anchor)),
        None => (target, None),
    };
    let path = if file.is_empty() {
        from.to_owned()
    } else {
        join(from, file).ok_or("a link that leaves the repository")?
    };
    if from.starts_with(FOLDER) && !path.starts_with(FOLDER) {
        return Err("a link that leaves the book");
    }
    if !exists(&path) {
        return Err("a link to a file that does not exist");
    }
    let folder = format!("{}/", path.trim_end_matches('/'));
    if from.starts_with(FOLDER) && files.keys().any(|path| path.starts_with(&folder)) {
        return Err("a link to a folder, which the book does not show");
    }
    let Some(anchor) = anchor else { return Ok(()) };
    let page = files.get(path.as_str()).filter(|_| is_page(&path));
    let page = page.ok_or("an anchor in a file that is no page")?;
    if markdown::anchors(page).contains(anchor) {
        Ok(())
    } else {
        Err("a link to a heading that does not exist")
    }
}

/// True if a target names a scheme, such as `https:`.
fn is_absolute(target: &str) -> bool {
    let scheme = target.split_once(':').map(|(scheme, _)| scheme);
    scheme.is_some_and(|scheme| scheme.chars().all(|c| c.is_ascii_alphanumeric() || c == '+'))
}

/// Returns the path, below the root, of a target that a page names relative to its folder; `None` if
/// it lies outside. A folder's path ends with `/` if the target's does.
fn join(from: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            ".." => drop(parts.pop()?),
            "." => {}
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

fn is_page(path: &str) -> bool {
    path.rsplit('.').next() == Some("md")
}

/// Compares the pages of the book with its summary.
fn summary(files: &BTreeMap<&str, &str>, problems: &mut Vec<String>) {
    let text = files.get(SUMMARY).copied().unwrap_or_default();
    let mut listed = BTreeSet::new();
    for link in markdown::links(text) {
        let path = format!("{FOLDER}{}", link.target);
        let mut complain =
            |what: &str| problems.push(format!("{SUMMARY}:{}: {what}: {}", link.line, link.target));
        if !is_page(&path) || !files.contains_key(path.as_str()) {
            complain("an entry that is no page");
        }
        if !listed.insert(path) {
            complain("a page that is listed already");
        }
    }
    let pages = files.keys().filter(|path| path.starts_with(FOLDER) && is_page(path));
    for path in pages.filter(|path| **path != SUMMARY && !listed.contains(**path)) {
        problems.push(format!("{path}: a page that {SUMMARY} does not list"));
    }
}

const DIFFERS: &str = "differs from the file: run `cargo xtask tidy --bless`";

/// Compares the page of examples with the files in `examples/`; returns the page with the text of the
/// files if they differ.
///
/// A file stands in the block that follows a line with its path, as code, and a colon.
fn examples(files: &BTreeMap<&str, &str>, problems: &mut Vec<String>) -> Option<String> {
    let page = files.get(PAGE_OF_EXAMPLES)?;
    let (mut shown, mut mended, mut at) = (BTreeSet::new(), String::new(), 0);
    for block in markdown::blocks(page) {
        let path = block.above.strip_prefix('`').and_then(|path| path.strip_suffix("`:"));
        let Some(path) = path.filter(|path| path.starts_with(EXAMPLES)) else { continue };
        let place = format!("{PAGE_OF_EXAMPLES}:{}", block.line);
        let Some(text) = files.get(path) else {
            problems.push(format!("{place}: {path} does not exist"));
            continue;
        };
        shown.insert(path);
        mended.push_str(&page[at..block.range.start]);
        mended.push_str(text);
        at = block.range.end;
        if page[block.range] != **text {
            problems.push(format!("{place}: {path} {DIFFERS}"));
        }
    }
    mended.push_str(&page[at..]);
    for path in files.keys() {
        let name = path.strip_prefix(EXAMPLES);
        if name.is_some_and(|name| !name.contains('/')) && !shown.contains(path) {
            problems.push(format!("{PAGE_OF_EXAMPLES}: {path} is not shown"));
        }
    }
    (mended != **page).then_some(mended)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOOK: &[(&str, &str)] = &[
        ("README.md", "[book](docs/README.md#one), [folder](docs), [file](LICENSE)"),
        ("docs/README.md", "# One\n[two](in/two.md#a-b) [self](#one) [picture](a.svg)"),
        ("docs/SUMMARY.md", "[One](README.md)\n- [Two](in/two.md)\n"),
        ("docs/in/two.md", "## A b\n[one](../README.md) [web](https://example.org/a.md#no)"),
    ];

    /// Checks the book with one page replaced or added.
    fn check(path: &str, text: &str) -> Vec<String> {
        let mut files: BTreeMap<&str, &str> = BOOK.iter().copied().collect();
        files.insert(path, text);
        let exists = |path: &str| {
            let others =
                ["LICENSE", "docs", "docs/in", "docs/in/", "docs/a.svg", "examples/a.mingle"];
            files.contains_key(path) || others.contains(&path)
        };
        let mut problems = Vec::new();
        links(&files, &exists, &mut problems);
        summary(&files, &mut problems);
        problems
    }

    fn expect(path: &str, text: &str, expected: &[&str]) {
        assert_eq!(check(path, text), expected);
    }

    #[test]
    fn the_book_of_this_repository_is_right() {
        let (root, mut paths, mut problems) = (root(), Vec::new(), Vec::new());
        crate::tidy::walk(&root, &mut paths).expect("the folders can be read");
        let files = crate::tidy::read(&root, &paths).expect("the files can be read");
        super::check(&files, false, &mut problems).expect("nothing is written");
        assert_eq!(problems, Vec::<String>::new());
    }

    #[test]
    fn a_right_book_has_no_problems() {
        expect("README.md", "", &[]);
        expect("README.md", BOOK[0].1, &[]);
    }

    #[test]
    fn links_lead_somewhere() {
        let page = "docs/in/two.md";
        for (target, what) in [
            ("three.md", "a link to a file that does not exist"),
            ("README.md", "a link to a file that does not exist"),
            ("../README.md#two", "a link to a heading that does not exist"),
            ("#one", "a link to a heading that does not exist"),
            ("../a.svg#a-b", "an anchor in a file that is no page"),
            ("../../examples/a.mingle", "a link that leaves the book"),
            ("../../README.md", "a link that leaves the book"),
            ("../../../README.md", "a link that leaves the repository"),
            ("../in/", "a link to a folder, which the book does not show"),
            ("../in", "a link to a folder, which the book does not show"),
        ] {
            let problem = format!("{page}:2: {what}: {target}");
            expect(page, &format!("# A b\n[a]({target})"), &[&problem]);
        }
        expect(
            "README.md",
            "[a](b.md)",
            &["README.md:1: a link to a file that does not exist: b.md"],
        );
    }

    #[test]
    fn images_need_a_text() {
        let problem = "README.md:1: an image without a text that stands for it: docs/a.svg";
        expect("README.md", "![ ](docs/a.svg)", &[problem]);
        expect("README.md", "![a picture](docs/a.svg)", &[]);
    }

    #[test]
    fn the_summary_is_complete() {
        expect("docs/new.md", "", &["docs/new.md: a page that docs/SUMMARY.md does not list"]);
        let found =
            check("docs/SUMMARY.md", "[One](README.md)\n- [Two](README.md)\n- [A](a.svg)\n");
        let expected = [
            "docs/SUMMARY.md:2: a page that is listed already: README.md",
            "docs/SUMMARY.md:3: an entry that is no page: a.svg",
            "docs/in/two.md: a page that docs/SUMMARY.md does not list",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn examples_are_shown_as_they_are() {
        let page = "`examples/a.mingle`:\n\n```mingle\nstore a;\n```\n\nend\n";
        let check = |page: &str, extra: &[(&'static str, &'static str)]| {
            let mut files =
                BTreeMap::from([(PAGE_OF_EXAMPLES, page), ("examples/a.mingle", "store a;\n")]);
            files.extend(extra.iter().copied());
            let mut problems = Vec::new();
            let mended = examples(&files, &mut problems);
            (problems, mended)
        };
        assert_eq!(check(page, &[("examples/folder/b.mingle", "")]), (vec![], None));
        let (problems, mended) = check(&page.replace("store a", "store b"), &[]);
        assert_eq!(problems, [format!("{PAGE_OF_EXAMPLES}:3: examples/a.mingle {DIFFERS}")]);
        assert_eq!(mended.as_deref(), Some(page));
        let (problems, _) = check(page, &[("examples/b.mingle", "")]);
        assert_eq!(problems, [format!("{PAGE_OF_EXAMPLES}: examples/b.mingle is not shown")]);
        let (problems, _) = check(&page.replace("a.mingle", "c.mingle"), &[]);
        assert_eq!(problems.len(), 2, "{problems:?}");
    }
}
