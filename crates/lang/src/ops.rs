//! Local operations: they compute a value from values alone.
//!
//! All of them are total (language reference, "Arithmetic is total"); the only failure is a result
//! that is larger than a value may be.

use std::sync::Arc;

use mingle_model::limits::{LIST_ITEMS_MAX, STRING_BYTES_MAX, VALUE_BYTES_MAX, VALUE_DEPTH_MAX};
use mingle_model::random::mix;
use mingle_model::{Date, Decimal, Float, LevelId, Name, Ref, Value};

mod decimal;

/// A local operation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Op {
    Not,
    And,
    Or,
    /// `if c { a } else { b }` over three values.
    Select,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    NegateInt,
    AddInt,
    SubtractInt,
    MultiplyInt,
    /// The result is an option.
    DivideInt,
    /// The result is an option.
    RemainderInt,
    /// Division by a literal other than 0.
    DivideIntBy,
    /// Remainder by a literal other than 0.
    RemainderIntBy,
    CheckedAdd,
    CheckedSubtract,
    CheckedMultiply,
    AbsInt,
    NegateFloat,
    AddFloat,
    SubtractFloat,
    MultiplyFloat,
    DivideFloat,
    RemainderFloat,
    AbsFloat,
    Min,
    Max,
    /// Time plus milliseconds.
    AddTime,
    /// Time minus milliseconds.
    SubtractMs,
    /// Time minus time, in milliseconds.
    SubtractTime,
    /// Date plus days.
    AddDate,
    /// Date minus days.
    SubtractDays,
    /// Date minus date, in days.
    SubtractDate,
    NegateDecimal,
    AddDecimal,
    SubtractDecimal,
    MultiplyDecimal,
    /// A quotient with so many digits after the point: dividend, divisor, digits. The result is an option.
    DivideDecimal,
    /// A number with so many digits after the point: number, digits.
    RoundDecimal,
    AbsDecimal,
    ConcatString,
    StringSize,
    StringContains,
    BytesSize,
    ConcatList,
    MakeList,
    ListSize,
    ListGet,
    ListContains,
    Some,
    IsSome,
    /// The value in an option that is known to hold one.
    Unwrap,
    /// `option<T> ?? T`
    OrValue,
    /// `option<T> ?? option<T>`
    OrOption,
    /// A struct from values in the order of its fields.
    MakeStruct,
    StructField(u16),
    /// A ref from a key.
    MakeRef(Name),
    KeyOf,
    ToString,
    IntFromFloat,
    IntFromString,
    IntFromTime,
    IntFromDate,
    IntFromDecimal,
    FloatFromDecimal,
    DecimalFromInt,
    /// The result is an option.
    DecimalFromString,
    /// The day in UTC.
    DateFromTime,
    /// The result is an option.
    DateFromString,
    /// Midnight in UTC.
    TimeFromDate,
    FloatFromInt,
    FloatFromString,
    /// True if a counter with this least value has an amount to take: value, amount.
    MayTake(Option<i64>),
    /// True if a counter with this greatest value has room for an amount: value, amount.
    MayGive(Option<i64>),
    /// True if an answer is of one of these levels.
    IsOfLevel(Arc<[Name]>),
    /// The value of an answer that is known to be of this level at least.
    AnswerOf(LevelId),
}

/// A value that would be larger than the language allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TooLarge {
    /// A string of this many bytes.
    String(usize),
    /// A list of this many items.
    List(usize),
    /// A decimal of more digits than there are.
    Decimal,
    /// A value that is nested too deeply, or contains too many values.
    Value,
}

impl std::fmt::Display for TooLarge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::String(size) => {
                write!(f, "a string of {size} bytes, the limit is {STRING_BYTES_MAX}")
            }
            Self::List(size) => write!(f, "a list of {size} items, the limit is {LIST_ITEMS_MAX}"),
            Self::Decimal => {
                write!(f, "a decimal of more than {} digits", Decimal::DIGITS_MAX)
            }
            Self::Value => write!(
                f,
                "a value that is nested more than {VALUE_DEPTH_MAX} deep, or holds more than \
                 {VALUE_BYTES_MAX} bytes"
            ),
        }
    }
}

/// Computes an operation over arguments of the types that the checker saw.
///
/// # Errors
///
/// When the result would be too large.
///
/// # Panics
///
/// When an argument is not of the type that the operation takes; checked programs never do this.
///
/// # Examples
///
/// ```
/// use mingle_lang::ops::{Op, apply};
/// use mingle_model::Value;
///
/// let sum = apply(&Op::AddInt, &[Value::Int(i64::MAX), Value::Int(1)]).unwrap();
/// assert_eq!(sum, Value::Int(i64::MAX));
/// let quotient = apply(&Op::DivideInt, &[Value::Int(1), Value::Int(0)]).unwrap();
/// assert_eq!(quotient, Value::NONE);
/// ```
pub fn apply(op: &Op, args: &[Value]) -> Result<Value, TooLarge> {
    use Value::{Bool, Int};
    Ok(match (op, args) {
        (Op::Not, [Bool(a)]) => Bool(!a),
        (Op::And, [Bool(a), Bool(b)]) => Bool(*a && *b),
        (Op::Or, [Bool(a), Bool(b)]) => Bool(*a || *b),
        (Op::Select, [Bool(condition), a, b]) => if *condition { a } else { b }.clone(),
        (Op::Equal, [a, b]) => Bool(a == b),
        (Op::NotEqual, [a, b]) => Bool(a != b),
        (Op::Less, [a, b]) => Bool(a < b),
        (Op::LessEqual, [a, b]) => Bool(a <= b),
        (Op::Greater, [a, b]) => Bool(a > b),
        (Op::GreaterEqual, [a, b]) => Bool(a >= b),
        (Op::Min, [a, b]) => a.min(b).clone(),
        (Op::Max, [a, b]) => a.max(b).clone(),
        (Op::Some, [value]) => within_bounds(Value::some(value.clone()))?,
        (Op::IsSome, [Value::Option(value)]) => Bool(value.is_some()),
        (Op::Unwrap, [Value::Option(Some(value))]) => (**value).clone(),
        (Op::OrValue, [Value::Option(value), other]) => value.as_deref().unwrap_or(other).clone(),
        (Op::OrOption, [Value::Option(value), other]) => {
            if value.is_some() {
                args[0].clone()
            } else {
                other.clone()
            }
        }
        (Op::MakeList, items) => {
            check_list(items.len())?;
            within_bounds(Value::List(items.into()))?
        }
        (Op::MakeStruct, values) => within_bounds(Value::Struct(values.into()))?,
        (Op::StructField(index), [Value::Struct(values)]) => values[usize::from(*index)].clone(),
        (Op::IsOfLevel(levels), [answer]) => {
            let answered = answer.as_answer().and_then(|(level, value)| value.map(|_| level));
            Bool(answered.is_some_and(|level| levels.iter().any(|known| **known == *level)))
        }
        (Op::AnswerOf(_), [answer]) => match answer.as_answer() {
            Some((_, Some(value))) => value.clone(),
            _ => mismatch(op, args),
        },
        (Op::MakeRef(kind), [key]) => Value::Ref(Ref::new(kind.clone(), key.clone())),
        (Op::KeyOf, [Value::Ref(object)]) => object.key().clone(),
        (Op::IntFromTime, [Value::Time(time)]) => Int(time.millis()),
        (Op::DateFromTime, [Value::Time(time)]) => Value::Date(Date::of(*time)),
        (Op::AddTime, [Value::Time(a), Int(b)]) => Value::Time(a.plus_millis(*b)),
        (Op::SubtractMs, [Value::Time(a), Int(b)]) => {
            Value::Time(a.plus_millis(b.saturating_neg()))
        }
        (Op::SubtractTime, [Value::Time(a), Value::Time(b)]) => Int(a.millis_since(*b)),
        (_, [Int(..), ..]) => int_op(op, args),
        (_, [Value::Date(..), ..]) => date_op(op, args),
        (_, [Value::Decimal(..), ..]) => return decimal::apply(op, args),
        (_, [Value::Float(..), ..]) => float_op(op, args),
        _ => return text_or_list_op(op, args),
    })
}

fn mismatch(op: &Op, args: &[Value]) -> ! {
    panic!("{op:?} does not apply to {args:?}: the program was not checked")
}

fn int_op(op: &Op, args: &[Value]) -> Value {
    use Value::Int;
    let option = |value: Option<i64>| value.map_or(Value::NONE, |value| Value::some(Int(value)));
    match (op, args) {
        (Op::NegateInt, [Int(a)]) => Int(a.saturating_neg()),
        (Op::AbsInt, [Int(a)]) => Int(a.saturating_abs()),
        (Op::AddInt, [Int(a), Int(b)]) => Int(a.saturating_add(*b)),
        (Op::SubtractInt, [Int(a), Int(b)]) => Int(a.saturating_sub(*b)),
        (Op::MultiplyInt, [Int(a), Int(b)]) => Int(a.saturating_mul(*b)),
        (Op::DivideInt, [Int(a), Int(b)]) => option((*b != 0).then(|| a.saturating_div(*b))),
        (Op::RemainderInt, [Int(a), Int(b)]) => option((*b != 0).then(|| a.wrapping_rem(*b))),
        (Op::DivideIntBy, [Int(a), Int(b)]) => Int(a.saturating_div(*b)),
        (Op::RemainderIntBy, [Int(a), Int(b)]) => Int(a.wrapping_rem(*b)),
        (Op::CheckedAdd, [Int(a), Int(b)]) => option(a.checked_add(*b)),
        (Op::CheckedSubtract, [Int(a), Int(b)]) => option(a.checked_sub(*b)),
        (Op::CheckedMultiply, [Int(a), Int(b)]) => option(a.checked_mul(*b)),
        (Op::DecimalFromInt, [Int(a)]) => Value::Decimal(Decimal::from(*a)),
        (Op::FloatFromInt, [Int(a)]) => Value::from(*a as f64),
        (Op::ToString, [Int(a)]) => Value::from(a.to_string()),
        (Op::MayTake(min), [Int(value), Int(n)]) => {
            let left = i128::from(*value) - i128::from(*n);
            Value::Bool(*n >= 1 && min.is_none_or(|min| left >= min.into()))
        }
        (Op::MayGive(max), [Int(value), Int(n)]) => {
            let full = i128::from(*value) + i128::from(*n);
            Value::Bool(*n >= 1 && max.is_none_or(|max| full <= max.into()))
        }
        _ => mismatch(op, args),
    }
}

fn date_op(op: &Op, args: &[Value]) -> Value {
    use Value::Int;
    match (op, args) {
        (Op::AddDate, [Value::Date(a), Int(b)]) => Value::Date(a.plus_days(*b)),
        (Op::SubtractDays, [Value::Date(a), Int(b)]) => {
            Value::Date(a.plus_days(b.saturating_neg()))
        }
        (Op::SubtractDate, [Value::Date(a), Value::Date(b)]) => Int(a.days_since(*b)),
        (Op::IntFromDate, [Value::Date(a)]) => Int(a.days().into()),
        (Op::TimeFromDate, [Value::Date(a)]) => Value::Time(a.midnight()),
        (Op::ToString, [Value::Date(a)]) => Value::from(a.to_string()),
        _ => mismatch(op, args),
    }
}

fn float_op(op: &Op, args: &[Value]) -> Value {
    let value = match (op, args) {
        (Op::NegateFloat, [Value::Float(Float(a))]) => -a,
        (Op::AbsFloat, [Value::Float(Float(a))]) => a.abs(),
        (Op::AddFloat, [Value::Float(Float(a)), Value::Float(Float(b))]) => a + b,
        (Op::SubtractFloat, [Value::Float(Float(a)), Value::Float(Float(b))]) => a - b,
        (Op::MultiplyFloat, [Value::Float(Float(a)), Value::Float(Float(b))]) => a * b,
        (Op::DivideFloat, [Value::Float(Float(a)), Value::Float(Float(b))]) => a / b,
        (Op::RemainderFloat, [Value::Float(Float(a)), Value::Float(Float(b))]) => a % b,
        // The conversion saturates, and NaN becomes 0, as with `as` in Rust.
        (Op::IntFromFloat, [Value::Float(Float(a))]) => return Value::Int(*a as i64),
        (Op::ToString, [Value::Float(a)]) => return Value::from(a.to_string()),
        _ => mismatch(op, args),
    };
    Value::from(value)
}

/// Checks a value that contains others. Without this check, a program that repeatedly builds a
/// value holding another one twice would exceed all memory in a few steps.
fn within_bounds(value: Value) -> Result<Value, TooLarge> {
    if value.is_within_bounds() { Ok(value) } else { Err(TooLarge::Value) }
}

fn text_or_list_op(op: &Op, args: &[Value]) -> Result<Value, TooLarge> {
    Ok(match (op, args) {
        (Op::ConcatString, [Value::String(a), Value::String(b)]) => {
            let size = a.len() + b.len();
            if size > STRING_BYTES_MAX {
                return Err(TooLarge::String(size));
            }
            Value::String(Arc::from([&**a, &**b].concat()))
        }
        (Op::StringSize, [Value::String(a)]) => Value::Int(a.chars().count() as i64),
        (Op::StringContains, [Value::String(a), Value::String(b)]) => Value::Bool(a.contains(&**b)),
        (Op::BytesSize, [Value::Bytes(a)]) => Value::Int(a.len() as i64),
        (Op::ConcatList, [Value::List(a), Value::List(b)]) => {
            check_list(a.len() + b.len())?;
            within_bounds(Value::List(a.iter().chain(b.iter()).cloned().collect()))?
        }
        (Op::ListSize, [Value::List(items)]) => Value::Int(items.len() as i64),
        (Op::ListGet, [Value::List(items), Value::Int(index)]) => {
            let item = usize::try_from(*index).ok().and_then(|index| items.get(index));
            item.map_or(Value::NONE, |item| Value::some(item.clone()))
        }
        (Op::ListContains, [Value::List(items), item]) => Value::Bool(items.contains(item)),
        (Op::ToString, [Value::Bool(a)]) => Value::from(a.to_string()),
        (Op::ToString, [Value::String(_)]) => args[0].clone(),
        (Op::ToString, [Value::Time(a)]) => Value::from(a.to_string()),
        (Op::DecimalFromString, [Value::String(text)]) => {
            Decimal::parse(text).map_or(Value::NONE, |decimal| Value::some(Value::Decimal(decimal)))
        }
        (Op::DateFromString, [Value::String(text)]) => {
            Date::parse(text).map_or(Value::NONE, |date| Value::some(Value::Date(date)))
        }
        (Op::IntFromString, [Value::String(text)]) => {
            text.parse::<i64>().map_or(Value::NONE, |value| Value::some(Value::Int(value)))
        }
        (Op::FloatFromString, [Value::String(text)]) => {
            text.parse::<f64>().map_or(Value::NONE, |value| Value::some(Value::from(value)))
        }
        _ => mismatch(op, args),
    })
}

/// Returns the number of extra steps that an operation costs beyond one: operations that read whole
/// texts and lists cost more for longer ones.
pub fn extra_steps(op: &Op, args: &[Value]) -> u64 {
    let reads_all = matches!(
        op,
        Op::Equal
            | Op::NotEqual
            | Op::ConcatString
            | Op::StringSize
            | Op::StringContains
            | Op::ConcatList
            | Op::ListContains
            | Op::Less
            | Op::LessEqual
            | Op::Greater
            | Op::GreaterEqual
            | Op::Min
            | Op::Max
            | Op::Some
            | Op::MakeList
            | Op::MakeStruct
            | Op::IntFromString
            | Op::FloatFromString
            | Op::DateFromString
            | Op::DecimalFromString
    );
    if !reads_all {
        return 0;
    }
    let sizes = args.iter().map(|arg| match arg {
        Value::String(text) => text.len() / 256,
        Value::List(items) => items.len() / 8,
        _ => 0,
    });
    sizes.sum::<usize>() as u64
}

/// Checks the size of a list.
///
/// # Errors
///
/// When it has more items than a list may have.
pub fn check_list(items: usize) -> Result<(), TooLarge> {
    if items > LIST_ITEMS_MAX { Err(TooLarge::List(items)) } else { Ok(()) }
}

/// Returns a fresh id: a function of the transaction's seed, the place in the program, and the
/// indices of the loops around it, so that each repetition of the run draws the same id.
pub fn unique(seed: u128, site: u32, loops: &[u64]) -> Value {
    let (mut high, mut low) = ((seed >> 64) as u64, seed as u64);
    for part in
        std::iter::once(u64::from(site) << 32 | loops.len() as u64).chain(loops.iter().copied())
    {
        high = mix(high ^ part).wrapping_add(low);
        low = mix(low.rotate_left(23) ^ high);
    }
    let mut bits = (u128::from(high) << 64) | u128::from(low);
    let mut text = [0; 26];
    for digit in &mut text {
        *digit = b"0123456789abcdefghjkmnpqrstvwxyz"[(bits % 32) as usize];
        bits /= 32;
    }
    Value::from(std::str::from_utf8(&text).expect("the digits are ASCII"))
}
