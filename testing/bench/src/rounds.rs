//! The values of a figure in all rounds.

/// The values of a figure, one for each round.
#[derive(Clone, Debug, Default)]
pub struct Rounds(Vec<f64>);

impl Rounds {
    pub fn push(&mut self, value: f64) {
        self.0.push(value);
    }

    /// Returns the median, the mean of the middle two of an even number; not a number if there are no
    /// values.
    pub fn median(&self) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let half = sorted.len() / 2;
        match sorted.len() {
            0 => f64::NAN,
            count if count % 2 == 1 => sorted[half],
            _ => f64::midpoint(sorted[half - 1], sorted[half]),
        }
    }

    /// Returns the least and the greatest value.
    pub fn interval(&self) -> (f64, f64) {
        let least = self.0.iter().copied().fold(f64::INFINITY, f64::min);
        let most = self.0.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        (least, most)
    }

    /// Returns the ratios to another figure, round by round.
    pub fn by(&self, other: &Self) -> Self {
        Self(self.0.iter().zip(&other.0).map(|(one, other)| one / other).collect())
    }

    /// Returns another figure, computed from each round's value.
    pub fn map(&self, of: impl Fn(f64) -> f64) -> Self {
        Self(self.0.iter().map(|value| of(*value)).collect())
    }

    /// Formats the median and the interval.
    pub fn shown(&self, format: impl Fn(f64) -> String) -> String {
        let (least, most) = self.interval();
        if self.0.len() < 2 {
            return format(self.median());
        }
        format!("{} ({} to {})", format(self.median()), format(least), format(most))
    }

    /// Formats ratios: `0.98 (0.95 to 1.01)`.
    pub fn as_ratio(&self) -> String {
        self.shown(|ratio| format!("{ratio:.2}"))
    }
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "these numbers are exact")]
mod tests {
    use super::*;

    #[test]
    fn medians_and_ratios_are_of_rounds() {
        let one = Rounds(vec![4.0, 1.0, 9.0]);
        let other = Rounds(vec![2.0, 2.0, 3.0]);
        assert_eq!((one.median(), one.interval()), (4.0, (1.0, 9.0)));
        assert_eq!(one.by(&other).median(), 2.0);
        assert_eq!(Rounds(vec![1.0, 2.0]).median(), 1.5);
        assert!(Rounds::default().median().is_nan());
        assert_eq!(one.shown(|value| format!("{value}")), "4 (1 to 9)");
        assert_eq!(one.as_ratio(), "4.00 (1.00 to 9.00)");
    }
}
