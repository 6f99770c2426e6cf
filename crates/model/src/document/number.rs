//! Numbers of JSON as decimal texts.

use serde_json::{Number, Value as Json};

use crate::limits::JSON_DIGITS_MAX;

/// Appends the canonical form of a number, which is written as JSON allows.
///
/// # Errors
///
/// If it has too many digits.
pub(super) fn write(number: &str, text: &mut String) -> Result<(), String> {
    let (is_negative, rest) = match number.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, number),
    };
    let (mantissa, exponent) = rest.split_once(['e', 'E']).unwrap_or((rest, "0"));
    let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = [whole, part].concat();
    let leading = digits.len() - digits.trim_start_matches('0').len();
    let digits = digits.trim_matches('0');
    if digits.is_empty() {
        text.push('0');
        return Ok(());
    }
    let too_long = || {
        let shown: String = number.chars().take(40).collect();
        format!(
            "a number in a json value has at most {JSON_DIGITS_MAX} digits before the point and \
             {JSON_DIGITS_MAX} after it, found {shown}"
        )
    };
    // An exponent with more digits than an `i64` moves the point too far.
    let exponent: i64 = exponent.parse().map_err(|_| too_long())?;
    // The number of digits before the point; below 0, of zeros after it.
    let point = (whole.len() as i64 - leading as i64).checked_add(exponent).ok_or_else(too_long)?;
    let count = digits.len() as i64;
    let most = JSON_DIGITS_MAX as i64;
    if point > most || point < count - most {
        return Err(too_long());
    }
    if is_negative {
        text.push('-');
    }
    let zeros = |count: i64| (0..count).map(|_| '0');
    if point <= 0 {
        text.push_str("0.");
        text.extend(zeros(-point));
        text.push_str(digits);
    } else if point >= count {
        text.push_str(digits);
        text.extend(zeros(point - count));
    } else {
        let (before, after) = digits.split_at(point as usize);
        text.extend([before, ".", after]);
    }
    Ok(())
}

/// Returns a number as `serde_json` keeps it, rounded to an `f64` unless it is an integer of 64 bits; beyond the range
/// of an `f64`, its text.
pub(crate) fn to_serde(number: &str) -> Json {
    if let Ok(whole) = number.parse::<i64>() {
        return whole.into();
    }
    if let Ok(whole) = number.parse::<u64>() {
        return whole.into();
    }
    let float = number.parse().ok().and_then(Number::from_f64);
    float.map_or_else(|| Json::String(number.to_owned()), Json::Number)
}
