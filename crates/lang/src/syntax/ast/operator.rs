//! Operators.

/// A binary operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum BinaryOp {
    Coalesce,
    Or,
    And,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

impl BinaryOp {
    /// Returns the operator's text.
    pub fn text(self) -> &'static str {
        match self {
            Self::Coalesce => "??",
            Self::Or => "||",
            Self::And => "&&",
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessEqual => "<=",
            Self::Greater => ">",
            Self::GreaterEqual => ">=",
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Remainder => "%",
        }
    }

    /// Returns the operator's precedence; a higher number binds closer.
    pub fn precedence(self) -> u8 {
        match self {
            Self::Coalesce => 1,
            Self::Or => 2,
            Self::And => 3,
            Self::Add | Self::Subtract => 5,
            Self::Multiply | Self::Divide | Self::Remainder => 6,
            _ => 4,
        }
    }

    /// True if it is a comparison.
    pub fn is_comparison(self) -> bool {
        self.precedence() == 4
    }
}
