//! A program as Rust: objects are typed handles, structs are structs, transactions are methods.
//!
//! - `names`: names of the program as names of Rust;
//! - `types`: its types, owned or borrowed;
//! - `data`: handles and structs, with their conversions;
//! - `database`: the program over its stores, with a method for each transaction.
//!
//! All paths are absolute, so that nothing where the code stands can change what they mean; what
//! they lead to is in `mingle::typed`.

mod data;
mod database;
mod names;
mod types;

use mingle_lang::syntax::ast::{Object, Struct};
use mingle_lang::{Checked, Program};
use proc_macro2::TokenStream;
use quote::quote;

use crate::declared::Declared;
use crate::lines::doc_lines;
use names::Names;

/// What the generator knows of a program.
struct Context<'a> {
    program: &'a Program,
    /// Objects and structs as they are written, with their doc comments.
    objects: Vec<(&'a str, &'a Object)>,
    structs: Vec<(&'a str, &'a Struct)>,
    /// Names of objects and structs, which share one namespace.
    types: Names,
    /// What the program is called in messages and comments.
    origin: &'a str,
}

impl<'a> Context<'a> {
    fn new(declared: Declared<'a>, origin: &'a str) -> Self {
        let types = Names::of_types(declared.type_names());
        let Declared { program, objects, structs } = declared;
        Self { program, objects, structs, types, origin }
    }
}

/// The items that stand for a program; none if it has errors. `origin` says where the program
/// comes from, for doc comments.
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
    let database = context.database();
    Some(quote! { #database #(#objects)* #(#structs)* })
}

/// Items as [`items`] gives them, laid out as a file.
///
/// # Panics
///
/// When they are something else, and no Rust.
#[cfg(feature = "text")]
pub fn text(items: TokenStream) -> String {
    let file = syn::parse2(items).expect("what is generated is Rust");
    prettyplease::unparse(&file)
}

/// What generated items need not keep to: whether all of them are used, and how the program's names
/// are written, is not up to the host.
fn allowed() -> TokenStream {
    quote! {
        #[allow(
            dead_code, non_snake_case, non_camel_case_types, clippy::all, clippy::pedantic
        )]
    }
}

/// A doc comment, or `otherwise` where there is none.
fn doc(text: &str, otherwise: &str) -> TokenStream {
    let text = if text.is_empty() { otherwise } else { text };
    let lines = doc_lines(text).into_iter().map(|line| format!(" {line}"));
    quote! { #(#[doc = #lines])* }
}
