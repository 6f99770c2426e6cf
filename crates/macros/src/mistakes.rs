//! The mistakes in a program, as errors and warnings of the Rust compiler.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote_spanned};

/// Returns an error from the token at `start` to the token at `end`.
pub(crate) fn error(start: Span, end: Span, message: &str) -> TokenStream {
    // The compiler marks from the first token of an invocation to its last.
    let path = quote_spanned! { start=> ::core::compile_error! };
    let message = quote_spanned! { end=> { #message } };
    quote_spanned! { start=> #path #message }
}

/// Returns a warning at a token. A macro cannot emit a warning itself, but it can use a deprecated
/// item.
pub(crate) fn warning(at: Span, index: usize, message: &str) -> TokenStream {
    let name: Ident = format_ident!("mingle_{}", index, span = at);
    quote_spanned! { at=>
        const _: () = {
            #[deprecated(note = #message)]
            #[allow(non_upper_case_globals)]
            const #name: () = ();
            #name
        };
    }
}
