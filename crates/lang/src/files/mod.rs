//! Programs of several files: from a root file and its imports to one [`Source`].
//!
//! [`load`] reads the root's imports, the imports of these, and so on, each file once. Files are read
//! through [`Sources`]: a disk, the buffers of an editor, a map in a test. A file that cannot be
//! imported is a diagnostic (M0701) at its import; everything else of the program is still checked.
//!
//! The files stand in the order of their imports, each after the files that it imports and the root
//! last, as if each text stood in the place of its first import.
//!
//! # Examples
//!
//! ```
//! use mingle_lang::files::{Unreadable, load};
//!
//! let mut files = |path: &str| match path {
//!     "shop/items.mingle" => Ok("store shop: causal; object Item in shop { key id: int; n: int; }".into()),
//!     _ => Err(Unreadable("there is no such file".into())),
//! };
//! let root = "import \"items.mingle\"; transaction count(item: ref Item) { item.n += 1; }";
//! let checked = mingle_lang::check_source(load("shop/main.mingle", root, &mut files));
//! assert!(checked.program.is_some());
//!
//! let checked = mingle_lang::check_source(load("main.mingle", root, &mut files));
//! assert_eq!(checked.diagnostics[0].title, "\"items.mingle\" cannot be imported: there is no such file");
//! ```

mod path;

use std::collections::HashMap;

use crate::syntax::files::{Part, imported};
use crate::syntax::{self, Refused, Source};

pub use path::{normal, resolve};

/// The maximum number of files of a program.
pub const FILES_MAX: usize = 1_000;

/// The maximum size of a program of several files, in bytes; the compiler counts bytes in 32 bits.
pub const BYTES_MAX: usize = 1 << 30;

/// The reason why a file cannot be read, such as `there is no such file`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable(pub String);

/// The place that imported files come from.
pub trait Sources {
    /// Reads a file. The path has `/` between folders and begins like the name of the root file.
    ///
    /// # Errors
    ///
    /// The reason why the file cannot be read.
    fn read(&mut self, path: &str) -> Result<String, Unreadable>;

    /// Returns a text that is the same for all paths of one file: for a disk, the path with links
    /// followed.
    fn identity(&mut self, path: &str) -> String {
        path.to_owned()
    }
}

impl<F: FnMut(&str) -> Result<String, Unreadable>> Sources for F {
    fn read(&mut self, path: &str) -> Result<String, Unreadable> {
        self(path)
    }
}

/// Reads the files that a root file imports, directly or through others. Without imports the result is
/// that of [`syntax::lex`].
///
/// # Panics
///
/// When the root's text is longer than 4 GiB.
pub fn load(name: &str, text: impl Into<String>, sources: &mut dyn Sources) -> Source {
    let text = text.into();
    let paths = imported(&text);
    if paths.is_empty() {
        return syntax::lex(text);
    }
    let mut loader =
        Loader { sources, parts: Vec::new(), known: HashMap::new(), bytes: text.len() };
    loader.known.insert(loader.sources.identity(&normal(name)), State::Open);
    loader.run(Open { name: name.to_owned(), text, paths, imports: Vec::new(), identity: None });
    Source::of_files(loader.parts)
}

/// The state of a file that was met.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Its imports are being read.
    Open,
    /// It is part of the program.
    Done,
}

/// A file whose imports are being read.
struct Open {
    name: String,
    text: String,
    paths: Vec<String>,
    /// The results of the imports before the current one.
    imports: Vec<Result<(), Refused>>,
    /// Its identity; none for the root.
    identity: Option<String>,
}

struct Loader<'a> {
    sources: &'a mut dyn Sources,
    /// The files that are complete, in order.
    parts: Vec<Part>,
    known: HashMap<String, State>,
    /// The bytes of all files that were read.
    bytes: usize,
}

impl Loader<'_> {
    /// Reads depth first, without recursion: a chain of imports may be as long as the program.
    fn run(&mut self, root: Open) {
        let mut open = vec![root];
        while let Some(file) = open.last_mut() {
            let Some(path) = file.paths.get(file.imports.len()).cloned() else {
                let Open { name, text, imports, identity, .. } =
                    open.pop().expect("it is the last");
                self.parts.push(Part { name, text, imports });
                if let Some(identity) = identity {
                    self.known.insert(identity, State::Done);
                }
                continue;
            };
            let importer = file.name.clone();
            let found = self.find(&importer, &path, &open);
            // An import succeeds even if its own imports fail: those have their own diagnostics.
            let (result, next) = match found {
                Ok(next) => (Ok(()), next),
                Err(refused) => (Err(refused), None),
            };
            if let Some(file) = open.last_mut() {
                file.imports.push(result);
            }
            open.extend(next);
        }
    }

    /// Finds an imported file; none if it is already part of the program.
    fn find(&mut self, importer: &str, path: &str, open: &[Open]) -> Result<Option<Open>, Refused> {
        let name = resolve(importer, path).map_err(Refused::Path)?;
        let identity = self.sources.identity(&name);
        match self.known.get(&identity) {
            Some(State::Done) => return Ok(None),
            Some(State::Open) => return Err(Refused::Cycle(cycle(open, &identity))),
            None if self.known.len() >= FILES_MAX => {
                return Err(Refused::TooMany("files", FILES_MAX));
            }
            None => {}
        }
        let text = self
            .sources
            .read(&name)
            .map_err(|Unreadable(reason)| Refused::Unreadable(name.clone(), reason))?;
        if self.bytes + text.len() > BYTES_MAX {
            return Err(Refused::TooMany("bytes", BYTES_MAX));
        }
        self.bytes += text.len();
        self.known.insert(identity.clone(), State::Open);
        let paths = imported(&text);
        Ok(Some(Open { name, text, paths, imports: Vec::new(), identity: Some(identity) }))
    }
}

/// Returns the names of the files from the one with this identity to the importing one, and back.
fn cycle(open: &[Open], identity: &str) -> Vec<String> {
    let at = open.iter().position(|file| file.identity.as_deref() == Some(identity)).unwrap_or(0);
    let names = open[at..].iter().chain(&open[at..=at]);
    names.map(|file| file.name.clone()).collect()
}
