//! Programs of several files: which documents to check again, and with which files.

use std::collections::HashMap;

use gen_lsp_types::Uri;
use serde_json::json;

use super::Server;
use crate::diagnostics::of_file;
use crate::document::Root;
use crate::files::{Files, may_import};
use crate::rpc;

impl Server {
    /// Checks a document within its program, unless it is already checked.
    pub(super) fn check(&mut self, key: &str) {
        let Some(document) = self.documents.get(key).filter(|document| document.is_stale()) else {
            return;
        };
        let open = self.documents.values().map(|open| (open.path(), open.text()));
        let mut files = Files::new(open, self.disk);
        let root = match &document.root {
            Root::Unknown => files.root_of(document.path()).map_or(Root::Own, Root::Of),
            known => known.clone(),
        };
        let path = match &root {
            Root::Of(path) => Some(path.as_str()),
            Root::Own | Root::Unknown => None,
        };
        let source = files.program(document.path(), document.text(), path);
        let known = self.documents.values();
        let known: HashMap<String, Uri> =
            known.map(|open| (open.path().to_owned(), open.uri.clone())).collect();
        if let Some(document) = self.documents.get_mut(key) {
            document.root = root;
            document.check(source, &known);
        }
    }

    /// Has documents checked again after a change of one text. If its imports are others, so may be the
    /// files of programs.
    pub(super) fn text_changed(&mut self, has_same_imports: bool) {
        if !has_same_imports {
            self.files_changed();
            return;
        }
        for document in self.documents.values_mut().filter(|document| document.has_parts()) {
            document.touch();
        }
    }

    /// Has documents checked again after a change of the set of files, open or on disk.
    pub(super) fn files_changed(&mut self) {
        // Without imports each document is a program of its own.
        let mut documents = self.documents.values();
        if !documents.any(|open| open.has_parts() || may_import(open.text())) {
            return;
        }
        for document in self.documents.values_mut() {
            document.root = Root::Unknown;
            document.touch();
        }
    }

    /// Queues the diagnostics of the files that are not open, of the program of which a document is
    /// the root. A file that has none any longer gets an empty list.
    pub(super) fn publish_others(&mut self, key: &str) {
        let Some(document) = self.documents.get(key) else { return };
        if document.has_parts() && !document.is_root() && self.is_open(&document.root) {
            return;
        }
        let mut lists = Vec::new();
        for (file, uri) in document.others() {
            if self.documents.contains_key(uri.as_ref()) {
                self.foreign.remove(uri.as_ref());
                continue;
            }
            let found = of_file(document, file, self.explains);
            let is_new = !found.is_empty();
            if is_new || self.foreign.contains(uri.as_ref()) {
                lists.push((uri.clone(), found));
            }
        }
        for (uri, found) in lists {
            if found.is_empty() {
                self.foreign.remove(uri.as_ref());
            } else {
                self.foreign.insert(uri.as_ref().to_owned());
            }
            let params = json!({ "uri": uri, "diagnostics": found });
            self.outbox.push_back(rpc::notification("textDocument/publishDiagnostics", params));
        }
    }

    /// True if another document is the root, and is open: it then publishes for its files.
    fn is_open(&self, root: &Root) -> bool {
        let Root::Of(root) = root else { return false };
        self.documents.values().any(|open| open.path() == root)
    }

    /// Takes back the diagnostics of files that are not open: the documents that had them are closed.
    pub(super) fn forget_others(&mut self) {
        for uri in std::mem::take(&mut self.foreign) {
            let empty = json!({ "uri": uri, "diagnostics": [] });
            self.outbox.push_back(rpc::notification("textDocument/publishDiagnostics", empty));
        }
    }
}
