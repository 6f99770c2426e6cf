//! Numbers in arguments and values.

use mingle_model::Value;

use super::Fault;
use crate::resp::{Bytes, format_double};

/// Scores up to this bound are stored as integers if they are whole.
const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;

/// Reads an integer in its shortest form, as Redis does: no sign `+`, no leading zeros or spaces.
pub fn parse_int(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let is_plain = match digits {
        [b'0'] => text.len() == 1,
        [b'1'..=b'9', rest @ ..] => rest.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    std::str::from_utf8(text).ok().filter(|_| is_plain)?.parse().ok()
}

/// Reads an integer argument.
pub fn int(text: &[u8]) -> Result<i64, Fault> {
    parse_int(text).ok_or(Fault::NotInteger)
}

/// Reads a number that is not NaN.
pub fn parse_float(text: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(text).ok()?;
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
    if is_number {
        return text.parse().ok().filter(|number: &f64| number.is_finite());
    }
    match text.to_ascii_lowercase().as_str() {
        "inf" | "+inf" | "infinity" | "+infinity" => Some(f64::INFINITY),
        "-inf" | "-infinity" => Some(f64::NEG_INFINITY),
        _ => None,
    }
}

/// Reads a number as an argument.
pub fn float(text: &[u8]) -> Result<f64, Fault> {
    parse_float(text).ok_or(Fault::NotFloat)
}

/// Returns the stored form of a string: an integer, if the string is one.
pub fn value(text: &Bytes) -> Value {
    parse_int(text).map_or_else(|| member(text), Value::Int)
}

/// Returns the stored form of a member, a field name or an element.
pub fn member(text: &Bytes) -> Value {
    Value::Bytes(text.clone())
}

/// Returns the text of a stored value.
pub fn text(value: &Value) -> Bytes {
    match value {
        Value::Bytes(bytes) => bytes.clone(),
        Value::Int(number) => number.to_string().into_bytes().into(),
        Value::Float(number) => format_double(number.0).into_bytes().into(),
        // No command stores another one.
        other => other.to_string().into_bytes().into(),
    }
}

/// Returns the stored form of a score.
pub fn score_value(score: f64) -> Value {
    if score.fract() == 0.0 && score.abs() <= WHOLE_MAX {
        return Value::Int(score as i64);
    }
    Value::from(score)
}

/// Returns the number of a stored score.
pub fn score(value: &Value) -> f64 {
    match value {
        Value::Int(number) => *number as f64,
        Value::Float(number) => number.0,
        _ => 0.0,
    }
}

/// True if a number can be added to a stored score without rounding.
pub fn is_whole(number: f64) -> bool {
    number.fract() == 0.0 && number.abs() <= WHOLE_MAX
}

/// Adds two numbers in text, as `INCRBYFLOAT` does. Decimal fractions are added exactly as far as they
/// fit 128 bits, so that 0.1 and 0.2 give 0.3.
pub fn add_floats(one: &[u8], other: &[u8]) -> Result<Bytes, Fault> {
    let sum = float(one)? + float(other)?;
    if !sum.is_finite() {
        return Err(Fault::error("increment would produce NaN or Infinity"));
    }
    let exact = Decimal::parse(one).zip(Decimal::parse(other));
    let exact = exact.and_then(|(one, other)| one.sum(other)).map(Decimal::format);
    let text = exact.unwrap_or_else(|| plain(sum));
    Ok(text.into_bytes().into())
}

/// Writes a number without an exponent.
fn plain(number: f64) -> String {
    let text = format!("{number}");
    if text == "-0" { "0".into() } else { text }
}

/// The number `digits / 10^scale`.
#[derive(Clone, Copy, Debug)]
struct Decimal {
    digits: i128,
    scale: u32,
}

impl Decimal {
    /// Reads a number of at most 20 digits, 17 of them after the point.
    fn parse(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?.to_ascii_lowercase();
        let (text, exponent) = match text.split_once('e') {
            Some((text, exponent)) => (text.to_owned(), exponent.parse::<i32>().ok()?),
            None => (text, 0),
        };
        let (sign, rest) = match text.strip_prefix('-') {
            Some(rest) => (-1, rest),
            None => (1, text.strip_prefix('+').unwrap_or(&text)),
        };
        let (whole, part) = rest.split_once('.').unwrap_or((rest, ""));
        let digits = format!("{whole}{part}");
        if digits.is_empty() || digits.len() > 20 || !digits.bytes().all(|it| it.is_ascii_digit()) {
            return None;
        }
        let number = digits.parse::<i128>().ok()? * sign;
        let scale = (part.len() as i32).checked_sub(exponent)?;
        if !(-17..=17).contains(&scale) {
            return None;
        }
        let factor = 10i128.checked_pow(scale.min(0).unsigned_abs())?;
        Some(Self { digits: number.checked_mul(factor)?, scale: scale.max(0).unsigned_abs() })
    }

    fn sum(self, other: Self) -> Option<Self> {
        let scale = self.scale.max(other.scale);
        let scaled = |it: Self| it.digits.checked_mul(10i128.checked_pow(scale - it.scale)?);
        let digits = scaled(self)?.checked_add(scaled(other)?)?;
        // Redis computes with 64 bits, and so with about 19 digits.
        (digits.unsigned_abs() < 10u128.pow(20)).then_some(Self { digits, scale })
    }

    fn format(self) -> String {
        let sign = if self.digits < 0 { "-" } else { "" };
        let scale = self.scale as usize;
        let digits = format!("{:0>width$}", self.digits.unsigned_abs(), width = scale + 1);
        let (whole, part) = digits.split_at(digits.len() - scale);
        let part = part.trim_end_matches('0');
        let point = if part.is_empty() { "" } else { "." };
        format!("{sign}{whole}{point}{part}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_shortest_form_is_an_integer() {
        for (text, expected) in [
            ("0", Some(0)),
            ("-1", Some(-1)),
            ("9223372036854775807", Some(i64::MAX)),
            ("-9223372036854775808", Some(i64::MIN)),
            ("9223372036854775808", None),
            ("-0", None),
            ("+1", None),
            ("01", None),
            (" 1", None),
            ("1 ", None),
            ("", None),
            ("-", None),
            ("1.0", None),
        ] {
            assert_eq!(parse_int(text.as_bytes()), expected, "{text:?}");
        }
    }

    #[test]
    fn sums_of_fractions_are_those_of_decimal_numbers() {
        for (one, other, expected) in [
            ("10.50", "0.1", "10.6"),
            ("0.1", "0.2", "0.3"),
            ("3", "-5", "-2"),
            ("5.0e3", "2.0e2", "5200"),
            ("-0.5", "0.5", "0"),
            ("9223372036854775807", "0.5", "9223372036854775807.5"),
            ("9223372036854775807", "1e2", "9223372036854775907"),
            ("1.5e-3", "1", "1.0015"),
            ("1e30", "1", "1000000000000000000000000000000"),
        ] {
            let sum = add_floats(one.as_bytes(), other.as_bytes()).expect("they are numbers");
            assert_eq!(String::from_utf8_lossy(&sum), expected, "{one} + {other}");
        }
        let error = add_floats(b"1e308", b"1e308").expect_err("it is too large");
        assert_eq!(error, Fault::error("increment would produce NaN or Infinity"));
    }
}
