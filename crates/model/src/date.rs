//! Days of the calendar.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Time;

const DAY_US: i64 = 86_400_000_000;
/// The days of 400 years, after which the Gregorian calendar repeats.
const CYCLE_DAYS: i64 = 146_097;
/// Days from 0000-03-01 to 1970-01-01.
const EPOCH_FROM_MARCH: i64 = 719_468;

/// A day of the Gregorian calendar, also before that was in use: days since 1970-01-01, without a time zone.
///
/// Its text is that of ISO 8601: `2026-01-31`; a year outside 0000 to 9999 has a sign, such as `+12026-01-31`, and the
/// year before 0001 is 0000.
///
/// ```
/// use mingle_model::Date;
///
/// let day = Date::parse("2026-01-31")?;
/// assert_eq!(day.plus_days(1).to_string(), "2026-02-01");
/// assert_eq!(day.days_since(Date::parse("2026-01-01")?), 30);
/// # Ok::<(), String>(())
/// ```
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Date(i32);

impl Date {
    /// The first day, in the year -5877641.
    pub const MIN: Self = Self(i32::MIN);
    /// The last day, in the year 5881580.
    pub const MAX: Self = Self(i32::MAX);

    /// Returns the day `days` days after 1970-01-01.
    #[must_use]
    pub const fn from_days(days: i32) -> Self {
        Self(days)
    }

    /// Returns the days since 1970-01-01.
    #[must_use]
    pub const fn days(self) -> i32 {
        self.0
    }

    /// Adds days, which may be negative; the result is clamped to the range of [`Date`].
    #[must_use]
    pub fn plus_days(self, days: i64) -> Self {
        Self::clamped(i64::from(self.0).saturating_add(days))
    }

    /// Returns the days from `earlier` to this day.
    #[must_use]
    pub fn days_since(self, earlier: Self) -> i64 {
        i64::from(self.0) - i64::from(earlier.0)
    }

    /// Returns the day in UTC of a point in time.
    #[must_use]
    pub fn of(time: Time) -> Self {
        Self::clamped(time.micros().div_euclid(DAY_US))
    }

    /// Returns the first moment of this day in UTC, clamped to the range of [`Time`].
    #[must_use]
    pub fn midnight(self) -> Time {
        Time::from_micros(i64::from(self.0).saturating_mul(DAY_US))
    }

    fn clamped(days: i64) -> Self {
        let days = days.clamp(i32::MIN.into(), i32::MAX.into());
        Self(i32::try_from(days).expect("the days were clamped"))
    }

    /// Reads a date in the form of ISO 8601, year, month and day; years of more than four digits have a sign.
    ///
    /// # Errors
    ///
    /// A description of the expected form, when `text` has another one, or when there is no such day.
    pub fn parse(text: &str) -> Result<Self, String> {
        Self::read(text)
            .ok_or_else(|| format!("expected a date such as 2026-01-31, found {text:?}"))
    }

    fn read(text: &str) -> Option<Self> {
        let (sign, plain) = match text.as_bytes().first()? {
            b'+' => (1, &text[1..]),
            b'-' => (-1, &text[1..]),
            _ => (0, text),
        };
        let mut parts = plain.split('-');
        let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
        let are_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        let year_fits = match sign {
            0 => year.len() == 4,
            1 => (5..=7).contains(&year.len()) && !year.starts_with('0'),
            _ => (4..=7).contains(&year.len()) && (year.len() == 4 || !year.starts_with('0')),
        };
        let has_form = year_fits
            && month.len() == 2
            && day.len() == 2
            && parts.next().is_none()
            && [year, month, day].into_iter().all(are_digits);
        if !has_form || (sign < 0 && year == "0000") {
            return None;
        }
        let year: i64 = year.parse().ok()?;
        let year = if sign < 0 { -year } else { year };
        let (month, day): (i64, i64) = (month.parse().ok()?, day.parse().ok()?);
        if !(1..=12).contains(&month) || !(1..=days_in(year, month)).contains(&day) {
            return None;
        }
        i32::try_from(days_from_civil(year, month, day)).ok().map(Self)
    }

    /// Returns the year, month and day; the year before 1 is 0.
    #[must_use]
    pub fn civil(self) -> (i64, i64, i64) {
        let day = i64::from(self.0) + EPOCH_FROM_MARCH;
        let (cycle, of_cycle) = (day.div_euclid(CYCLE_DAYS), day.rem_euclid(CYCLE_DAYS));
        // Leap days are the last days of years that begin in March.
        let years = (of_cycle - of_cycle / 1_460 + of_cycle / 36_524 - of_cycle / 146_096) / 365;
        let of_year = of_cycle - (365 * years + years / 4 - years / 100);
        let from_march = (5 * of_year + 2) / 153;
        let day = of_year - (153 * from_march + 2) / 5 + 1;
        let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
        (cycle * 400 + years + i64::from(month <= 2), month, day)
    }
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Returns the days from 1970-01-01 to a day.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (cycle, of_cycle) = (year.div_euclid(400), year.rem_euclid(400));
    let from_march = (month + 9) % 12;
    let of_year = (153 * from_march + 2) / 5 + day - 1;
    cycle * CYCLE_DAYS + of_cycle * 365 + of_cycle / 4 - of_cycle / 100 + of_year - EPOCH_FROM_MARCH
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = self.civil();
        let sign = match year {
            ..0 => "-",
            0..=9_999 => "",
            _ => "+",
        };
        write!(f, "{sign}{:04}-{month:02}-{day:02}", year.abs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_read_back_as_they_show() {
        for (text, days) in [
            ("1970-01-01", 0),
            ("1969-12-31", -1),
            ("2000-02-29", 11_016),
            ("2026-01-31", 20_484),
            ("0001-01-01", -719_162),
            ("0000-02-29", -719_469),
            ("-0001-12-31", -719_529),
            ("9999-12-31", 2_932_896),
            ("+10000-01-01", 2_932_897),
            ("-5877641-06-23", i32::MIN),
            ("+5881580-07-11", i32::MAX),
        ] {
            let day = Date::from_days(days);
            assert_eq!(day.to_string(), text);
            assert_eq!(Date::parse(text), Ok(day));
        }
    }

    #[test]
    fn each_day_follows_the_one_before_it() {
        for start in [-800_000, -100, 10_900, 2_932_000, i32::MIN, i32::MAX - 400] {
            for days in start..start + 400 {
                let (today, before) =
                    (Date::from_days(days), Date::from_days(days.max(i32::MIN + 1) - 1));
                assert_eq!(Date::parse(&today.to_string()), Ok(today));
                let ((year, month, day), (_, _, yesterday)) = (today.civil(), before.civil());
                assert!(day == yesterday + 1 || day == 1 || days == i32::MIN, "{today}");
                assert!((1..=days_in(year, month)).contains(&day), "{today}");
            }
        }
    }

    #[test]
    fn other_texts_are_no_dates() {
        for text in [
            "",
            "-",
            "+",
            "2026-1-31",
            "2026-02-29",
            "1900-02-29",
            "2026-13-01",
            "2026-00-01",
            "2026-01-00",
            "2026-01-32",
            "+2026-01-31",
            "+02026-01-31",
            "-0000-01-01",
            "20260131",
            "2026-01-31T00:00:00Z",
            "+5881580-07-12",
            "-5877641-06-22",
            "99999-01-01",
            "2026-01-31-",
            "２０２６-01-31",
            "é026-01-31",
        ] {
            assert!(Date::parse(text).is_err_and(|why| why.contains("2026-01-31")), "{text:?}");
        }
    }

    #[test]
    fn days_and_moments_stop_at_the_ends() {
        assert_eq!(Date::MAX.plus_days(1), Date::MAX);
        assert_eq!(Date::MIN.plus_days(i64::MIN), Date::MIN);
        assert_eq!(Date::MAX.plus_days(-1).days_since(Date::MIN), i64::from(u32::MAX) - 1);
        assert_eq!(Date::of(Time::from_micros(-1)), Date::from_days(-1));
        assert_eq!(Date::of(Time::MAX).days_since(Date::of(Time::MIN)), 213_503_983);
        assert_eq!(Date::MAX.midnight(), Time::MAX);
        assert_eq!(Date::from_days(1).midnight(), Time::from_micros(DAY_US));
    }
}
