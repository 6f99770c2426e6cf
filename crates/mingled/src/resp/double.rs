//! Floating-point numbers as text.

/// The bound below which a whole number is written without an exponent.
const WHOLE: f64 = 4.5e18;

/// Returns the shortest text that reads back as the same number, in Redis's form: `3`, `0.5`, `1e+20`,
/// `inf`.
///
/// # Examples
///
/// ```
/// use mingled::resp::format_double;
///
/// assert_eq!(format_double(3.0), "3");
/// assert_eq!(format_double(0.1), "0.1");
/// assert_eq!(format_double(1e20), "1e+20");
/// assert_eq!(format_double(f64::NEG_INFINITY), "-inf");
/// ```
pub fn format_double(number: f64) -> String {
    if number.is_nan() {
        return "nan".into();
    }
    if number.is_infinite() {
        return if number > 0.0 { "inf".into() } else { "-inf".into() };
    }
    if number == 0.0 {
        return if number.is_sign_negative() { "-0".into() } else { "0".into() };
    }
    if number.fract() == 0.0 && number.abs() < WHOLE {
        return format!("{}", number as i64);
    }
    // The standard library's shortest form, such as `1.25e-7`.
    let text = format!("{:e}", number.abs());
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let sign = if number < 0.0 { "-" } else { "" };
    format!("{sign}{}", placed(&digits, exponent))
}

/// Writes digits whose first one counts `10^exponent`.
fn placed(digits: &str, exponent: i32) -> String {
    let length = digits.len() as i32;
    let last = exponent - length + 1;
    if last >= 0 && exponent < length + 7 {
        return format!("{digits}{}", "0".repeat(last as usize));
    }
    if last < 0 && (last > -7 || exponent.abs() < 4) {
        if exponent < 0 {
            return format!("0.{}{digits}", "0".repeat((-exponent - 1) as usize));
        }
        let (whole, part) = digits.split_at((exponent + 1) as usize);
        return format!("{whole}.{part}");
    }
    let (first, part) = digits.split_at(1);
    let point = if part.is_empty() { "" } else { "." };
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{first}{point}{part}e{sign}{}", exponent.abs())
}
