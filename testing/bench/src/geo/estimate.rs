//! The estimate from all rounds: their mean and its confidence interval.

/// The value of each round.
#[derive(Clone, Debug, Default)]
pub struct Estimate(Vec<f64>);

/// Student's t for 95 % on both sides, by degrees of freedom from 1.
const STUDENT: [f64; 12] =
    [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179];

impl Estimate {
    pub fn push(&mut self, value: f64) {
        self.0.push(value);
    }

    /// Returns the estimate of another quantity, computed from each round's value.
    pub fn map(&self, of: impl Fn(f64) -> f64) -> Self {
        Self(self.0.iter().map(|value| of(*value)).collect())
    }

    /// The mean of the rounds; not a number if there are none.
    pub fn mean(&self) -> f64 {
        self.0.iter().sum::<f64>() / self.0.len() as f64
    }

    /// Half of the 95 % confidence interval, by Student's t; not a number for fewer than two rounds.
    pub fn margin(&self) -> f64 {
        let count = self.0.len();
        if count < 2 {
            return f64::NAN;
        }
        let mean = self.mean();
        let squares: f64 = self.0.iter().map(|value| (value - mean).powi(2)).sum();
        let error = (squares / (count - 1) as f64 / count as f64).sqrt();
        error * STUDENT.get(count - 2).copied().unwrap_or(2.1)
    }

    /// The confidence interval; just the mean where there is none.
    pub fn interval(&self) -> (f64, f64) {
        let (mean, margin) = (self.mean(), self.margin());
        if margin.is_nan() { (mean, mean) } else { (mean - margin, mean + margin) }
    }

    /// Formats the estimate for tables, with `format` for each value: `12.3 ± 0.4`.
    pub fn shown(&self, format: impl Fn(f64) -> String) -> String {
        let margin = self.margin();
        if margin.is_nan() {
            return format(self.mean());
        }
        format!("{} ± {}", format(self.mean()), format(margin))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_students() {
        let mut estimate = Estimate::default();
        assert!(estimate.mean().is_nan());
        estimate.push(1.0);
        assert_eq!(estimate.interval(), (1.0, 1.0));
        estimate.push(2.0);
        estimate.push(3.0);
        // The standard error is 1/sqrt(3).
        assert!((estimate.margin() - 4.303 / 3.0_f64.sqrt()).abs() < 1e-3);
        assert_eq!(estimate.shown(|value| format!("{value:.1}")), "2.0 ± 2.5");
    }
}
