//! The files of a program: open documents, and behind them the disk.
//!
//! A document is checked within a program: that of the root that imports it. Of several roots the one
//! with the most files is taken; a document that no other file imports is a root itself. Roots are
//! searched for among the open documents, and among the files in the document's folder and in the
//! folder above it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use gen_lsp_types::Uri;
use mingle_lang::files::{Sources, Unreadable, load, normal};
use mingle_lang::syntax::{Source, lex};

/// The access of a server to files that are not open. Paths have `/` between folders.
#[derive(Clone, Copy, Debug)]
pub struct Disk {
    /// Reads a file.
    pub read: fn(&str) -> Result<String, Unreadable>,
    /// Returns the paths of the programs in a folder.
    pub list: fn(&str) -> Vec<String>,
}

impl Default for Disk {
    /// Returns a disk without files.
    fn default() -> Self {
        let read = |_: &str| Err(Unreadable("there is no such file".into()));
        Self { read, list: |_| Vec::new() }
    }
}

/// The maximum number of files that are searched for a root.
const SEARCHED_MAX: usize = 200;

const SCHEME: &str = "file://";

/// Returns the path of a file, or the whole address if it is none of a file.
pub(crate) fn path_of(uri: &Uri) -> String {
    match uri.as_ref().strip_prefix(SCHEME) {
        Some(path) => normal(&decoded(path)),
        None => uri.as_ref().to_owned(),
    }
}

/// Returns the address of a file.
pub(crate) fn uri_of(path: &str) -> Uri {
    let mut uri = String::from(SCHEME);
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            write!(uri, "%{byte:02X}").expect("a string takes it");
        }
    }
    Uri(uri)
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let code = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        if let (b'%', Some(code)) = (first, code) {
            bytes.push(code);
            rest = &after[2..];
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

/// True if a text may have imports.
pub(crate) fn may_import(text: &str) -> bool {
    text.contains("import")
}

/// Returns the lines of a text that may be imports.
pub(crate) fn import_lines(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| line.trim_start().starts_with("import"));
    lines.map(str::to_owned).collect()
}

/// The open documents and the disk.
pub(crate) struct Files<'a> {
    /// The texts of the open documents, by path; they win over the disk.
    open: BTreeMap<&'a str, &'a str>,
    disk: Disk,
}

impl<'a> Files<'a> {
    /// Takes the paths and texts of the open documents.
    pub(crate) fn new(open: impl Iterator<Item = (&'a str, &'a str)>, disk: Disk) -> Self {
        Self { open: open.collect(), disk }
    }

    /// Returns the program of a document.
    pub(crate) fn program(&mut self, path: &str, text: &str, root: Option<&str>) -> Source {
        if let Some(root) = root
            && let Ok(text) = self.read(root)
        {
            let source = load(root, text, self);
            if source.files.iter().any(|file| file.name == path) {
                return source;
            }
        }
        if may_import(text) { load(path, text, self) } else { lex(text) }
    }

    /// Returns the path of the root of the largest program that imports this file.
    pub(crate) fn root_of(&mut self, path: &str) -> Option<String> {
        let mut found: Option<(usize, String)> = None;
        for root in self.candidates(path) {
            let Ok(text) = self.read(&root) else { continue };
            if root == path || !may_import(&text) {
                continue;
            }
            let files = load(&root, text, self).files;
            let is_part = files.iter().any(|file| file.name == path);
            if is_part && found.as_ref().is_none_or(|(count, _)| files.len() > *count) {
                found = Some((files.len(), root));
            }
        }
        found.map(|(_, root)| root)
    }

    fn candidates(&self, path: &str) -> BTreeSet<String> {
        let mut found: BTreeSet<String> = self.open.keys().map(|path| (*path).to_owned()).collect();
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let above = folder.rsplit_once('/').map_or("", |(above, _)| above);
        let listed = [folder, above].into_iter().filter(|folder| !folder.is_empty());
        let listed = listed.flat_map(|folder| (self.disk.list)(folder));
        found.extend(listed.take(SEARCHED_MAX));
        found
    }
}

impl Sources for Files<'_> {
    fn read(&mut self, path: &str) -> Result<String, Unreadable> {
        match self.open.get(path) {
            Some(text) => Ok((*text).to_owned()),
            None => (self.disk.read)(path),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_lead_to_paths_and_back() {
        let path = "/a b/ü/c.mingle";
        let uri = uri_of(path);
        assert_eq!(uri.as_ref(), "file:///a%20b/%C3%BC/c.mingle");
        assert_eq!(path_of(&uri), path);
        assert_eq!(path_of(&Uri("untitled:x".into())), "untitled:x");
        assert_eq!(path_of(&Uri("file:///a%2".into())), "/a%2");
    }
}
