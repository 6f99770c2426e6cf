//! Operations on decimals: exact, or rounded to a stated number of digits. A result of too many digits is an error, as
//! is any value that is larger than the language allows.

use mingle_model::{Decimal, Value};

use super::{Op, TooLarge, mismatch};

/// Computes an operation whose first argument is a decimal.
pub(super) fn apply(op: &Op, args: &[Value]) -> Result<Value, TooLarge> {
    let exact = |found: Option<Decimal>| found.map(Value::Decimal).ok_or(TooLarge::Decimal);
    match (op, args) {
        (Op::AddDecimal, [Value::Decimal(a), Value::Decimal(b)]) => exact(a.checked_add(*b)),
        (Op::SubtractDecimal, [Value::Decimal(a), Value::Decimal(b)]) => exact(a.checked_sub(*b)),
        (Op::MultiplyDecimal, [Value::Decimal(a), Value::Decimal(b)]) => exact(a.checked_mul(*b)),
        (Op::DivideDecimal, [Value::Decimal(a), Value::Decimal(b), Value::Int(digits)]) => {
            match scale(*digits) {
                Some(digits) if !b.is_zero() => exact(a.divide(*b, digits)).map(Value::some),
                _ => Ok(Value::NONE),
            }
        }
        (Op::RoundDecimal, [Value::Decimal(a), Value::Int(digits)]) => {
            let digits = (*digits).clamp(0, Decimal::SCALE_MAX.into());
            exact(a.round(scale(digits).unwrap_or_default()))
        }
        (Op::NegateDecimal, [Value::Decimal(a)]) => Ok(Value::Decimal(a.negated())),
        (Op::AbsDecimal, [Value::Decimal(a)]) => Ok(Value::Decimal(a.abs())),
        (Op::IntFromDecimal, [Value::Decimal(a)]) => Ok(Value::Int(a.to_int())),
        (Op::FloatFromDecimal, [Value::Decimal(a)]) => Ok(Value::from(a.to_float())),
        (Op::ToString, [Value::Decimal(a)]) => Ok(Value::from(a.to_string())),
        _ => mismatch(op, args),
    }
}

/// Returns a number of digits after the point, if a decimal can have so many.
fn scale(digits: i64) -> Option<u8> {
    u8::try_from(digits).ok().filter(|digits| *digits <= Decimal::SCALE_MAX)
}
