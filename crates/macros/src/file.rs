//! A program in a separate file.

use std::path::{Path, PathBuf};

use mingle_lang::diagnostic::{Diagnostic, Severity, render_human};
use mingle_lang::files::{Sources, Unreadable, load};
use mingle_lang::syntax::Source;
use proc_macro2::{Span, TokenStream, TokenTree};
use quote::quote_spanned;

use crate::mistakes::{error, warning};

/// The file named in a macro call.
pub(crate) struct Named {
    /// The path as written.
    path: String,
    span: Span,
}

impl Named {
    /// Reads `"path"`, with a comma after it or without; none if the input is something else.
    pub(crate) fn parse(input: &TokenStream) -> Option<Self> {
        let mut tokens = input.clone().into_iter();
        let TokenTree::Literal(literal) = unwrapped(tokens.next()?) else { return None };
        let span = literal.span();
        let syn::Lit::Str(path) = syn::Lit::new(literal) else { return None };
        let is_end = match tokens.next() {
            None => true,
            Some(TokenTree::Punct(comma)) => comma.as_char() == ',' && tokens.next().is_none(),
            Some(_) => false,
        };
        is_end.then(|| Self { path: path.value(), span })
    }

    pub(crate) fn expand(&self) -> TokenStream {
        let whole = self.whole_path();
        let mut disk = Disk { folder: folder(), read: Vec::new() };
        let text = match read(&whole) {
            Ok(text) => text,
            Err(reason) => {
                let message = format!("cannot read {}: {reason}", whole.display());
                return error(self.span, self.span, &message);
            }
        };
        let mut items = self.expand_source(load(&self.path, text, &mut disk));
        // This makes the compiler depend on the files, so it compiles again after a change.
        for whole in std::iter::once(&whole).chain(&disk.read).filter_map(|file| file.to_str()) {
            items.extend(quote_spanned! { self.span=>
                const _: &[u8] = ::core::include_bytes!(#whole);
            });
        }
        items
    }

    fn expand_source(&self, source: Source) -> TokenStream {
        let checked = mingle_lang::check_source(source);
        let mistakes = checked.diagnostics.iter().enumerate().map(|(index, found)| {
            let message = self.message(&checked.source, found);
            match found.severity() {
                Severity::Error => error(self.span, self.span, &message),
                Severity::Warning => warning(self.span, index, &message),
            }
        });
        let mut items: TokenStream = mistakes.collect();
        let name = Path::new(&self.path).file_name().unwrap_or_default().to_string_lossy();
        items.extend(mingle_gen::rust::items(&checked, &format!("`{name}`")));
        items
    }

    /// Returns the text that `mingle check` shows, without colour; the compiler adds whether it is
    /// an error.
    fn message(&self, source: &Source, found: &Diagnostic) -> String {
        let shown = render_human(source, &self.path, std::slice::from_ref(found), false);
        let shown = shown.trim_end();
        shown.strip_prefix(found.severity().name()).unwrap_or(shown).to_owned()
    }

    /// Paths are relative to the folder of the crate that is compiled.
    fn whole_path(&self) -> PathBuf {
        folder().join(&self.path)
    }
}

/// Returns the folder of the crate that is compiled.
fn folder() -> PathBuf {
    std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default().into()
}

/// The files that a program imports.
struct Disk {
    folder: PathBuf,
    /// The files that were read.
    read: Vec<PathBuf>,
}

impl Sources for Disk {
    fn read(&mut self, path: &str) -> Result<String, Unreadable> {
        let whole = self.folder.join(path);
        let is_file = std::fs::metadata(&whole).map_or(true, |found| found.is_file());
        if !is_file {
            return Err(Unreadable("it is not a regular file".into()));
        }
        let text = read(&whole).map_err(Unreadable)?;
        self.read.push(whole);
        Ok(text)
    }

    fn identity(&mut self, path: &str) -> String {
        let whole = self.folder.join(path);
        std::fs::canonicalize(&whole).unwrap_or(whole).to_string_lossy().into_owned()
    }
}

/// Removes the invisible group that a declarative macro may put around its argument.
fn unwrapped(token: TokenTree) -> TokenTree {
    match token {
        TokenTree::Group(group) if group.delimiter() == proc_macro2::Delimiter::None => {
            let mut inner = group.stream().into_iter();
            match (inner.next(), inner.next()) {
                (Some(only), None) => unwrapped(only),
                _ => TokenTree::Group(group),
            }
        }
        token => token,
    }
}

fn read(path: &Path) -> Result<String, String> {
    let bytes = std::fs::read(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => "there is no such file".to_owned(),
        _ => error.to_string(),
    })?;
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let line = mingle_lang::syntax::line_starts(&error.as_bytes()[..at]).count() + 1;
        format!("it is not UTF-8: see line {line}")
    })
}
