//! From text to a syntax tree: tokens, the tree, and the parser.
//!
//! The parser sees only tokens, and a [`Span`] counts tokens, not bytes. So a program may come from
//! a file or from the tokens of a macro: the producer of the tokens keeps the table from token to
//! place (see [`Places`]).

pub mod ast;
pub(crate) mod files;
pub mod lexer;
mod lookalike;
pub mod parser;
pub mod token;

pub use files::{File, Refused};
pub use lexer::lex;
pub use parser::parse;
pub use token::{
    Places, Position, Source, Span, TextPlaces, Token, TokenKind, Trivia, line_starts,
};
