//! Points in time.

use std::fmt;

use ::time::OffsetDateTime;
use ::time::format_description::well_known::Rfc3339;
use serde::{Deserialize, Serialize};

/// A point in time: microseconds since 1970-01-01T00:00:00Z, as in PostgreSQL and Python.
///
/// The language counts in milliseconds (`int(time)`, `time + int`), and so does its clock.
///
/// ```
/// use mingle_model::Time;
///
/// let moment = Time::parse("2026-11-20T10:00:00.000250Z")?;
/// assert_eq!(moment.millis(), Time::parse("2026-11-20T10:00:00Z")?.millis());
/// assert_eq!(moment.to_string(), "2026-11-20T10:00:00.00025Z");
/// # Ok::<(), String>(())
/// ```
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Time(i64);

impl Time {
    /// The earliest point in time, in the year 290309 BC.
    pub const MIN: Self = Self(i64::MIN);
    /// The latest point in time, in the year 294247.
    pub const MAX: Self = Self(i64::MAX);

    /// Returns the point in time `micros` microseconds after the start of 1970.
    #[must_use]
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Returns the point in time `millis` milliseconds after the start of 1970, clamped to the
    /// range of [`Time`].
    #[must_use]
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis.saturating_mul(1_000))
    }

    /// Returns the microseconds since the start of 1970.
    #[must_use]
    pub const fn micros(self) -> i64 {
        self.0
    }

    /// Returns the milliseconds since the start of 1970, rounded down.
    #[must_use]
    pub const fn millis(self) -> i64 {
        self.0.div_euclid(1_000)
    }

    /// Adds milliseconds, which may be negative; the result is clamped to the range of [`Time`].
    #[must_use]
    pub const fn plus_millis(self, millis: i64) -> Self {
        let micros = self.0 as i128 + millis as i128 * 1_000;
        if micros > i64::MAX as i128 {
            Self::MAX
        } else if micros < i64::MIN as i128 {
            Self::MIN
        } else {
            Self(micros as i64)
        }
    }

    /// Returns the milliseconds from `earlier` to this time, rounded down.
    #[must_use]
    pub fn millis_since(self, earlier: Self) -> i64 {
        let micros = i128::from(self.0) - i128::from(earlier.0);
        // Two points are less than 2^64 microseconds apart.
        i64::try_from(micros.div_euclid(1_000)).unwrap_or(i64::MAX)
    }

    /// Reads an RFC 3339 date and time, or a date alone, which is its midnight in UTC; or microseconds or
    /// milliseconds since the start of 1970, such as `-5us` and `250ms`, for years that RFC 3339 does not cover.
    ///
    /// # Errors
    ///
    /// A description of the expected form, when `text` has none of these, or has digits beyond the
    /// microseconds.
    pub fn parse(text: &str) -> Result<Self, String> {
        let count = |suffix| text.strip_suffix(suffix).and_then(|n| n.parse::<i64>().ok());
        if let Some(micros) = count("us") {
            return Ok(Self(micros));
        }
        if let Some(micros) = count("ms").and_then(|ms| ms.checked_mul(1_000)) {
            return Ok(Self(micros));
        }
        let whole = if text.len() == 10 && text.as_bytes().get(4) == Some(&b'-') {
            OffsetDateTime::parse(&format!("{text}T00:00:00Z"), &Rfc3339)
        } else {
            OffsetDateTime::parse(text, &Rfc3339)
        };
        let moment = whole.map_err(|_| {
            format!("expected a time as in RFC 3339, such as 2026-11-20T10:00:00Z, found {text:?}")
        })?;
        let nanos = moment.unix_timestamp_nanos();
        if nanos % 1_000 != 0 {
            return Err(format!("expected a time in whole microseconds, found {text:?}"));
        }
        Ok(Self(
            i64::try_from(nanos / 1_000)
                .expect("RFC 3339 years have four digits, so microseconds fit"),
        ))
    }

    /// The RFC 3339 form, if the year has four digits.
    pub fn to_rfc3339(self) -> Option<String> {
        let moment = OffsetDateTime::from_unix_timestamp_nanos(i128::from(self.0) * 1_000).ok()?;
        moment.format(&Rfc3339).ok()
    }
}

/// RFC 3339; outside the years that it covers, the microseconds, such as `-99999999999999000us`.
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.to_rfc3339() {
            Some(text) => f.write_str(&text),
            None => write!(f, "{}us", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_read_back_as_they_show() {
        let shown = ["2026-11-20T10:00:00Z", "1969-12-31T23:59:59.999001Z", "2026-11-20"];
        for time in shown.map(Time::parse).into_iter().chain([
            Ok(Time::MIN),
            Ok(Time::MAX),
            Time::parse("0000-01-01T00:00:00Z"),
            Time::parse("9999-12-31T23:59:59.999999Z"),
        ]) {
            let time = time.expect("a time");
            assert_eq!(Time::parse(&time.to_string()), Ok(time), "{time}");
        }
        assert_eq!(Time::parse("-250ms"), Ok(Time::from_micros(-250_000)));
        assert!(Time::parse("yesterday").unwrap_err().contains("RFC 3339"));
        assert!(Time::parse("9223372036854775807ms").unwrap_err().contains("RFC 3339"));
        let fine = Time::parse("2026-11-20T10:00:00.0000001Z");
        assert!(fine.unwrap_err().contains("whole microseconds"));
    }

    #[test]
    fn milliseconds_are_cut_towards_the_past_and_stop_at_the_ends() {
        assert_eq!(Time::from_micros(-1).millis(), -1);
        assert_eq!(Time::from_micros(1_999).millis(), 1);
        assert_eq!(Time::MAX.plus_millis(1), Time::MAX);
        assert_eq!(Time::MIN.plus_millis(i64::MIN), Time::MIN);
        assert_eq!(Time::MAX.plus_millis(i64::MIN), Time::MIN);
        assert_eq!(Time::from_micros(7).plus_millis(-1), Time::from_micros(-993));
        assert_eq!(Time::MAX.millis_since(Time::MIN), i64::MAX / 500);
        assert_eq!(Time::from_micros(1).millis_since(Time::from_micros(2)), -1);
    }
}
