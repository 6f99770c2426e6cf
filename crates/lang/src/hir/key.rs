//! Keys of objects that a program creates.

use super::Expr;

/// The key of a `new` or `put`.
#[derive(Clone, Debug)]
pub enum NewKey {
    /// The program gives it.
    Given(Box<Expr>),
    /// A fresh text, drawn at this site.
    Fresh(u32),
    /// A number that the store draws by this operation; the site names the draw within its transaction.
    Drawn {
        /// The operation of the object's store.
        operation: u32,
        /// The site.
        site: u32,
    },
}

impl NewKey {
    /// Returns the expression that gives it.
    pub fn given(&self) -> Option<&Expr> {
        match self {
            Self::Given(key) => Some(key),
            Self::Fresh(_) | Self::Drawn { .. } => None,
        }
    }
}
