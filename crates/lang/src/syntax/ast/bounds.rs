//! The bounds of a counter.

/// The bounds of a counter; none where it has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Bounds {
    /// The least value.
    pub min: Option<i64>,
    /// The greatest value.
    pub max: Option<i64>,
}

impl Bounds {
    /// True if it has a bound.
    pub fn is_bounded(self) -> bool {
        self.min.is_some() || self.max.is_some()
    }

    /// Returns the value before the first write: the bound nearest to 0, or 0 within the bounds.
    pub fn start(self) -> i64 {
        0.max(self.min.unwrap_or(0)).min(self.max.unwrap_or(i64::MAX))
    }
}

impl std::fmt::Display for Bounds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("counter")?;
        self.min.map_or(Ok(()), |min| write!(f, " min {min}"))?;
        self.max.map_or(Ok(()), |max| write!(f, " max {max}"))
    }
}
