//! Ratios of rounds.

/// The ratio of each round.
#[derive(Clone, Debug, Default)]
pub struct Ratios(Vec<f64>);

impl Ratios {
    pub fn push(&mut self, ratio: f64) {
        self.0.push(ratio);
    }

    /// The median; NaN if there are no ratios.
    pub fn median(&self) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        match sorted.len() {
            0 => f64::NAN,
            count if count % 2 == 1 => sorted[middle],
            _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
        }
    }

    /// The lowest and the highest.
    pub fn spread(&self) -> (f64, f64) {
        let lowest = self.0.iter().copied().fold(f64::INFINITY, f64::min);
        (lowest, self.0.iter().copied().fold(f64::NEG_INFINITY, f64::max))
    }

    /// The text for a table: `0.98 (0.95 to 1.01)`.
    pub fn shown(&self) -> String {
        let (low, high) = self.spread();
        format!("{:.2} ({low:.2} to {high:.2})", self.median())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_spreads() {
        assert!(Ratios::default().median().is_nan());
        let mut ratios = Ratios(vec![3.0, 1.0, 2.0]);
        assert!((ratios.median() - 2.0).abs() < 1e-9);
        ratios.push(10.0);
        assert_eq!(ratios.shown(), "2.50 (1.00 to 10.00)");
    }
}
