//! Imports.

use super::super::token::Span;

/// `import "billing.mingle";`
#[derive(Clone, Debug, PartialEq)]
pub struct Import {
    /// The place of the path: one token.
    pub path: Span,
    /// Its place.
    pub span: Span,
}
