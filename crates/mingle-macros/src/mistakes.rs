//! The mistakes in a program, as errors and warnings of the Rust compiler.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote_spanned};

/// An error from the token at `start` to that at `end`.
pub(crate) fn error(start: Span, end: Span, message: &str) -> TokenStream {
    // The compiler marks from the first token of an invocation to its last.
    let path = quote_spanned! { start=> ::core::compile_error! };
    let message = quote_spanned! { end=> { #message } };
    quote_spanned! { start=> #path #message }
}

/// A warning at a token. A macro cannot give one of its own, but may use what is deprecated.
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
