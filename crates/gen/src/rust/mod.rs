//! A program as Rust: objects are typed handles, structs are structs, transactions are methods.
//!
//! - `names`: names of the program as names of Rust;
//! - `types`: its types, owned or borrowed;
//! - `data`: handles and structs, with their conversions;
//! - `database`: the program over its stores, with a method for each transaction.
//!
//! All paths are absolute, so the surrounding code cannot change their meaning. They lead to items
//! in `mingle::typed`.

mod data;
mod database;
mod names;
mod types;

use mingle_lang::syntax::ast::{Enum, Object, Struct};
use mingle_lang::{Checked, Program};
use proc_macro2::TokenStream;
use quote::quote;

use crate::declared::Declared;
use crate::lines::doc_lines;
use names::Names;

/// The program data that the generator uses.
struct Context<'a> {
    program: &'a Program,
    /// Objects and structs as written, with their doc comments.
    objects: Vec<(&'a str, &'a Object)>,
    structs: Vec<(&'a str, &'a Struct)>,
    enums: Vec<(&'a str, &'a Enum)>,
    /// Names of objects and structs, which share one namespace.
    types: Names,
    /// The name of the program in messages and comments.
    origin: &'a str,
}

impl<'a> Context<'a> {
    fn new(declared: Declared<'a>, origin: &'a str) -> Self {
        let types = Names::of_types(declared.type_names());
        let Declared { program, objects, structs, enums } = declared;
        Self { program, objects, structs, enums, types, origin }
    }
}

/// Returns the items generated for a program; none if it has errors. `origin` says where the
/// program comes from, for doc comments.
///
/// # Examples
///
/// ```
/// let text = "store accounts: linearizable;
///     object Account in accounts { key owner: string; balance: int; }
///     transaction balance(of: ref Account) -> int { return of.balance; }";
/// let items = mingle_gen::rust::items(&mingle_lang::check(text), "bank.mingle").unwrap();
/// assert!(items.to_string().contains("fn balance (& self , of : & Account)"));
/// ```
pub fn items(checked: &Checked, origin: &str) -> Option<TokenStream> {
    let context = Context::new(Declared::of(checked)?, origin);
    let objects = context.objects.iter().map(|(docs, object)| context.handle(docs, object));
    let structs = context.structs.iter().map(|(docs, declared)| context.record(docs, declared));
    let enums = context.enums.iter().map(|(docs, declared)| context.enumeration(docs, declared));
    let database = context.database();
    Some(quote! { #database #(#objects)* #(#structs)* #(#enums)* })
}

/// Returns the items of [`items`], laid out as a file.
///
/// # Panics
///
/// If they are not valid Rust.
#[cfg(feature = "text")]
pub fn text(items: TokenStream) -> String {
    let file = syn::parse2(items).expect("what is generated is Rust");
    prettyplease::unparse(&file)
}

/// Returns the lint exceptions of generated items: the host does not decide whether all items are
/// used, or how the program's names are written.
fn allowed() -> TokenStream {
    quote! {
        #[allow(
            dead_code, non_snake_case, non_camel_case_types, clippy::all, clippy::pedantic
        )]
    }
}

/// Returns a doc comment, or `otherwise` if there is none.
fn doc(text: &str, otherwise: &str) -> TokenStream {
    let text = if text.is_empty() { otherwise } else { text };
    let lines = doc_lines(text).into_iter().map(|line| format!(" {line}"));
    quote! { #(#[doc = #lines])* }
}
