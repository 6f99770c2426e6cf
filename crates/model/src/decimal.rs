//! Exact decimal numbers.
//!
//! A decimal is an integer, its *coefficient*, divided by a power of ten, whose exponent is its *scale*: the number
//! of digits after the point. `1.50` and `1.5` are equal, but each keeps its scale, as `numeric` does in PostgreSQL.
//!
//! | operation | scale of the result |
//! | --- | --- |
//! | `a + b`, `a - b` | the greater one of both |
//! | `a * b` | the sum of both |
//! | `a.divide(b, digits)`, `a.round(digits)` | `digits`; the last digit is rounded, half away from zero |
//!
//! Sums and products are exact. A result whose digits do not fit loses zeros at its end, which changes its scale only;
//! if it does not fit then either, there is none.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Ten to the power of [`Decimal::DIGITS_MAX`]: all coefficients are below it.
const BOUND: u128 = 10_u128.pow(Decimal::DIGITS_MAX);

/// An exact decimal number of at most 38 digits, of which at most 38 stand after the point.
///
/// # Examples
///
/// ```
/// use mingle_model::Decimal;
///
/// let price = Decimal::parse("19.90")?;
/// let three = price.checked_mul(Decimal::from(3));
/// assert_eq!(three, Some(Decimal::parse("59.7")?));
/// assert_eq!(three.map(|sum| sum.to_string()), Some("59.70".to_owned()));
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Decimal {
    // Bytes, so that a decimal makes no `Value` larger: an `i128` is aligned to 16 bytes.
    coefficient: [u8; 16],
    scale: u8,
}

impl Decimal {
    /// The largest number of digits, without zeros in front.
    pub const DIGITS_MAX: u32 = 38;
    /// The largest number of digits after the point.
    pub const SCALE_MAX: u8 = 38;
    /// The number of bytes of [`Self::ordered_bytes`].
    pub const ORDERED_BYTES: usize = 32;

    /// Returns `coefficient` divided by ten to the power of `scale`; none beyond the bounds on digits.
    #[must_use]
    pub fn new(coefficient: i128, scale: u8) -> Option<Self> {
        let fits = coefficient.unsigned_abs() < BOUND && scale <= Self::SCALE_MAX;
        fits.then_some(Self { coefficient: coefficient.to_ne_bytes(), scale })
    }

    /// Returns the number without its point.
    #[must_use]
    pub const fn coefficient(self) -> i128 {
        i128::from_ne_bytes(self.coefficient)
    }

    /// Returns the number of digits after the point.
    #[must_use]
    pub const fn scale(self) -> u8 {
        self.scale
    }

    /// True for 0, of any scale.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.coefficient() == 0
    }

    /// Returns the number with a sign and magnitude that may lose zeros at its end.
    fn fit(is_negative: bool, mut magnitude: u128, mut scale: u32) -> Option<Self> {
        while scale > 0
            && (magnitude >= BOUND || scale > u32::from(Self::SCALE_MAX))
            && magnitude.is_multiple_of(10)
        {
            magnitude /= 10;
            scale -= 1;
        }
        let coefficient = i128::try_from(magnitude).ok()?;
        let coefficient = if is_negative { -coefficient } else { coefficient };
        Self::new(coefficient, u8::try_from(scale).ok()?)
    }

    /// Reads digits, with a point between two of them and a sign before them if need be: `-19.90`.
    ///
    /// # Errors
    ///
    /// A description of the expected form, when `text` has another one or too many digits.
    pub fn parse(text: &str) -> Result<Self, String> {
        let shown = || text.chars().take(60).collect::<String>();
        let (is_negative, plain) = match text.strip_prefix('-') {
            Some(plain) => (true, plain),
            None => (false, text),
        };
        let (whole, part) = plain.split_once('.').unwrap_or((plain, "0"));
        let are_digits =
            |digits: &str| !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
        if !are_digits(whole) || !are_digits(part) {
            return Err(format!("expected a decimal such as -19.90, found {:?}", shown()));
        }
        let part = if plain.contains('.') { part } else { "" };
        // Zeros at the end that are too many are dropped.
        let kept = part.trim_end_matches('0').len().max(part.len().min(Self::SCALE_MAX.into()));
        let (whole, part) = (whole.trim_start_matches('0'), &part[..kept]);
        let digits = whole.len() + part.len();
        let too_many = || {
            let most = Self::DIGITS_MAX;
            format!("expected a decimal of at most {most} digits, found {:?}", shown())
        };
        // One digit more than fit may end in zeros; more than twice as many do not.
        if digits > 2 * Self::DIGITS_MAX as usize {
            return Err(too_many());
        }
        let mut magnitude: u128 = 0;
        let mut scale = 0;
        let significant = part.trim_end_matches('0').len();
        for (at, digit) in whole.bytes().chain(part.bytes()).enumerate() {
            let after = (at + 1).saturating_sub(whole.len());
            // Zeros at the end stay as long as there is room.
            let next = magnitude.checked_mul(10).map(|tens| tens + u128::from(digit - b'0'));
            match next.filter(|next| *next < BOUND) {
                Some(next) => magnitude = next,
                None if after > significant => break,
                None => return Err(too_many()),
            }
            scale = after as u32;
        }
        Self::fit(is_negative, magnitude, scale).ok_or_else(too_many)
    }

    /// Returns the sum; none if it has more digits than a decimal holds.
    #[must_use]
    pub fn checked_add(self, other: Self) -> Option<Self> {
        sum(self, other).or_else(|| sum(self.canonical(), other.canonical()))
    }

    /// Returns the difference; none if it has more digits than a decimal holds.
    #[must_use]
    pub fn checked_sub(self, other: Self) -> Option<Self> {
        self.checked_add(other.negated())
    }

    /// Returns the product; none if it has more digits than a decimal holds.
    #[must_use]
    pub fn checked_mul(self, other: Self) -> Option<Self> {
        let is_negative = (self.coefficient() < 0) != (other.coefficient() < 0);
        let (mut a, mut b) =
            (self.coefficient().unsigned_abs(), other.coefficient().unsigned_abs());
        let mut scale = u32::from(self.scale) + u32::from(other.scale);
        loop {
            let product = a.checked_mul(b);
            let fitting = product.and_then(|product| Self::fit(is_negative, product, scale));
            if fitting.is_some() || scale == 0 {
                return fitting;
            }
            // The product would end in a zero if a factor does, or if one is even and five divides the other.
            let (by_a, by_b) = [(10, 1), (1, 10), (2, 5), (5, 2)]
                .into_iter()
                .find(|(by_a, by_b)| a.is_multiple_of(*by_a) && b.is_multiple_of(*by_b))?;
            (a, b, scale) = (a / by_a, b / by_b, scale - 1);
        }
    }

    /// Returns the quotient with `scale` digits after the point, rounded, half away from zero; none if `by` is 0, or
    /// if the quotient has more digits than a decimal holds.
    #[must_use]
    pub fn divide(self, by: Self, scale: u8) -> Option<Self> {
        if by.is_zero() || scale > Self::SCALE_MAX {
            return None;
        }
        let is_negative = (self.coefficient() < 0) != (by.coefficient() < 0);
        let (a, b) = (self.coefficient().unsigned_abs(), by.coefficient().unsigned_abs());
        let more = i32::from(scale) + i32::from(by.scale) - i32::from(self.scale);
        // A divisor too large for 128 bits is more than twice the dividend: the quotient rounds to 0.
        let Some(b) =
            10_u128.checked_pow((-more).max(0) as u32).and_then(|tens| b.checked_mul(tens))
        else {
            return Self::new(0, scale);
        };
        let (mut quotient, mut rest) = (a / b, a % b);
        for _ in 0..more {
            let (digit, left) = next_digit(rest, b);
            quotient = quotient.checked_mul(10)? + digit;
            rest = left;
            if quotient >= BOUND {
                return None;
            }
        }
        if rest >= b - rest {
            quotient += 1;
        }
        let quotient = i128::try_from(quotient).ok()?;
        Self::new(if is_negative { -quotient } else { quotient }, scale)
    }

    /// Returns the number with `scale` digits after the point, rounded, half away from zero; none if it has more digits
    /// than a decimal holds.
    #[must_use]
    pub fn round(self, scale: u8) -> Option<Self> {
        self.divide(Self::from(1), scale)
    }

    /// Returns the number with the other sign.
    #[must_use]
    pub fn negated(self) -> Self {
        Self::new(-self.coefficient(), self.scale).expect("the digits are the same")
    }

    /// Returns the number without a sign.
    #[must_use]
    pub fn abs(self) -> Self {
        if self.coefficient() < 0 { self.negated() } else { self }
    }

    /// Returns the one form of all equal numbers: without zeros at the end of the digits after the point.
    #[must_use]
    pub fn canonical(self) -> Self {
        let (mut coefficient, mut scale) = (self.coefficient(), self.scale);
        while scale > 0 && coefficient % 10 == 0 {
            coefficient /= 10;
            scale -= 1;
        }
        Self::new(coefficient, scale).expect("there are fewer digits than before")
    }

    /// Returns the whole part, clamped to the range of an `int`.
    #[must_use]
    pub fn to_int(self) -> i64 {
        let whole = self.coefficient() / 10_i128.pow(self.scale.into());
        i64::try_from(whole).unwrap_or(if whole < 0 { i64::MIN } else { i64::MAX })
    }

    /// Returns the nearest float.
    #[must_use]
    pub fn to_float(self) -> f64 {
        self.to_string().parse().expect("a decimal has the form of a float")
    }

    /// Returns the greatest integer that is not above the number, and the part above it in units of ten to the power
    /// of -38.
    fn split(self) -> (i128, u128) {
        let unit = 10_i128.pow(self.scale.into());
        let (whole, part) =
            (self.coefficient().div_euclid(unit), self.coefficient().rem_euclid(unit));
        let missing = Self::SCALE_MAX - self.scale;
        (whole, part.unsigned_abs() * 10_u128.pow(missing.into()))
    }

    /// Returns bytes that compare as numbers do: equal numbers have one form.
    #[must_use]
    pub fn ordered_bytes(self) -> [u8; Self::ORDERED_BYTES] {
        let (whole, part) = self.split();
        let mut bytes = [0; Self::ORDERED_BYTES];
        bytes[..16].copy_from_slice(&(whole.cast_unsigned() ^ (1 << 127)).to_be_bytes());
        bytes[16..].copy_from_slice(&part.to_be_bytes());
        bytes
    }

    /// Returns the number in its canonical form that has these [`Self::ordered_bytes`]; none if no number has.
    #[must_use]
    pub fn from_ordered_bytes(bytes: [u8; Self::ORDERED_BYTES]) -> Option<Self> {
        let (whole, part) = bytes.split_first_chunk::<16>()?;
        let whole = (u128::from_be_bytes(*whole) ^ (1 << 127)).cast_signed();
        let mut part = u128::from_be_bytes(part.try_into().ok()?);
        let mut scale = Self::SCALE_MAX;
        while scale > 0 && part.is_multiple_of(10) {
            part /= 10;
            scale -= 1;
        }
        let above = whole.checked_mul(10_i128.pow(scale.into()))?;
        let number = Self::new(above.checked_add(i128::try_from(part).ok()?)?, scale)?;
        (number.ordered_bytes() == bytes).then_some(number)
    }
}

/// Returns the sum at the greater scale of both.
fn sum(a: Decimal, b: Decimal) -> Option<Decimal> {
    let scale = a.scale.max(b.scale);
    let scaled = |one: Decimal| {
        let by = 10_u128.pow(u32::from(scale - one.scale));
        Some((one.coefficient() < 0, one.coefficient().unsigned_abs().checked_mul(by)?))
    };
    let ((a_negative, a), (b_negative, b)) = (scaled(a)?, scaled(b)?);
    let (is_negative, magnitude) = if a_negative == b_negative {
        (a_negative, a.checked_add(b)?)
    } else if a >= b {
        (a_negative, a - b)
    } else {
        (b_negative, b - a)
    };
    Decimal::fit(is_negative, magnitude, scale.into())
}

/// Returns ten times `rest` divided by `by`, and the new rest. Both stay below twice `by`, where ten times `rest` may
/// be beyond 128 bits.
fn next_digit(rest: u128, by: u128) -> (u128, u128) {
    let (mut digit, mut left) = (0, 0);
    for _ in 0..10 {
        left += rest;
        if left >= by {
            left -= by;
            digit += 1;
        }
    }
    (digit, left)
}

impl From<i64> for Decimal {
    fn from(value: i64) -> Self {
        Self::new(value.into(), 0).expect("an int has at most 19 digits")
    }
}

impl FromStr for Decimal {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::parse(text)
    }
}

impl TryFrom<String> for Decimal {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text)
    }
}

impl From<Decimal> for String {
    fn from(value: Decimal) -> Self {
        value.to_string()
    }
}

impl PartialEq for Decimal {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Decimal {}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        self.split().cmp(&other.split())
    }
}

impl Hash for Decimal {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.split().hash(state);
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sign, digits) = (self.coefficient() < 0, self.coefficient().unsigned_abs());
        let unit = 10_u128.pow(self.scale.into());
        write!(f, "{}{}", if sign { "-" } else { "" }, digits / unit)?;
        if self.scale > 0 {
            write!(f, ".{:0width$}", digits % unit, width = usize::from(self.scale))?;
        }
        Ok(())
    }
}

impl fmt::Debug for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests;
