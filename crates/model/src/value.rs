//! Values that programs compute with.
//!
//! All values are immutable, cheap to clone, and totally ordered: sets and maps iterate in this
//! order at every store. Floats follow IEEE 754 in arithmetic; in comparisons NaN stands last and
//! equals itself, and the two zeros are equal.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::limits::{LIST_ITEMS_MAX, STRING_BYTES_MAX, VALUE_BYTES_MAX, VALUE_DEPTH_MAX};
use crate::{Date, Decimal, Document, Time};

/// A name in a program: of a store, an object, a field.
pub type Name = Arc<str>;

/// A value of the language.
///
/// # Examples
///
/// ```
/// use mingle_model::{Ref, Value};
///
/// let ana = Value::from(Ref::new("User", Value::from("ana")));
/// let bob = Value::from(Ref::new("User", Value::from("bob")));
/// assert!(ana < bob);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Value {
    /// `true` or `false`.
    Bool(bool),
    /// A 64-bit signed integer; arithmetic on it saturates.
    Int(i64),
    /// An IEEE 754 double with a total order.
    Float(Float),
    /// UTF-8 text without U+0000.
    String(Arc<str>),
    /// Raw bytes.
    Bytes(Arc<[u8]>),
    /// A point in time.
    Time(Time),
    /// A struct's fields, in the order of its declaration.
    Struct(Arc<[Value]>),
    /// `none`, or `some` of a value.
    Option(Option<Arc<Value>>),
    /// A list.
    List(Arc<[Value]>),
    /// A handle to an object, whether or not that exists.
    Ref(Ref),
    /// A day.
    Date(Date),
    /// An exact number.
    Decimal(Decimal),
    /// Any JSON document.
    Json(Document),
}

impl Value {
    /// The value `none`.
    pub const NONE: Self = Self::Option(None);

    /// `some(value)`.
    pub fn some(value: Self) -> Self {
        Self::Option(Some(Arc::new(value)))
    }

    /// The word for the level of an answer that did not come in time.
    pub const LATE: &str = "late";

    /// An answer of this level, as a value of type `rushed<T>`.
    pub fn answer(level: &str, value: Self) -> Self {
        Self::Struct(Arc::new([Self::from(level), Self::some(value)]))
    }

    /// The answer that did not come in time.
    pub fn late() -> Self {
        Self::Struct(Arc::new([Self::from(Self::LATE), Self::NONE]))
    }

    /// The level and the value of an answer; no value if it is late. `None` if this is no value of type
    /// `rushed<T>`.
    pub fn as_answer(&self) -> Option<(&str, Option<&Self>)> {
        let Self::Struct(parts) = self else { return None };
        let [Self::String(level), Self::Option(value)] = &**parts else { return None };
        Some((level, value.as_deref()))
    }

    /// A list of these items.
    pub fn list(items: impl IntoIterator<Item = Self>) -> Self {
        Self::List(items.into_iter().collect())
    }

    /// A rough count of the bytes of memory that this value holds, for budgets.
    pub fn weight(&self) -> usize {
        let inner = match self {
            Self::Bool(_)
            | Self::Int(_)
            | Self::Float(_)
            | Self::Time(_)
            | Self::Date(_)
            | Self::Decimal(_) => 0,
            Self::String(text) => text.len(),
            Self::Json(document) => document.as_str().len(),
            Self::Bytes(bytes) => bytes.len(),
            Self::Struct(values) | Self::List(values) => values.iter().map(Self::weight).sum(),
            Self::Option(value) => value.as_deref().map_or(0, Self::weight),
            Self::Ref(object) => object.key().weight(),
        };
        inner + size_of::<Self>()
    }

    /// True if this value is within the bounds on depth and weight. A shared part counts each time
    /// it occurs, as it would when written out; the count stops at the bound.
    pub fn is_within_bounds(&self) -> bool {
        self.fits(VALUE_DEPTH_MAX, &mut VALUE_BYTES_MAX.clone())
    }

    /// Checks a value from outside, including all nested values, against the bounds of the
    /// language.
    ///
    /// # Errors
    ///
    /// The violated bound: U+0000 in a string, or too much data.
    ///
    /// # Examples
    ///
    /// ```
    /// use mingle_model::Value;
    ///
    /// let value = Value::list([Value::from("a\0b")]);
    /// assert_eq!(value.check(), Err("a string holds no U+0000".to_owned()));
    /// ```
    pub fn check(&self) -> Result<(), String> {
        if !self.is_within_bounds() {
            return Err(format!(
                "a value holds at most {VALUE_BYTES_MAX} bytes, and {VALUE_DEPTH_MAX} levels of others"
            ));
        }
        self.check_parts()
    }

    fn check_parts(&self) -> Result<(), String> {
        let too_many = |what: &str, max: usize, found: usize| {
            if found <= max {
                return Ok(());
            }
            Err(format!("{what} at most {max}, found {found}"))
        };
        match self {
            Self::String(text) if text.contains('\0') => Err("a string holds no U+0000".into()),
            Self::String(text) => too_many("a string's bytes are", STRING_BYTES_MAX, text.len()),
            Self::Bytes(bytes) => too_many("bytes are", STRING_BYTES_MAX, bytes.len()),
            Self::List(items) => {
                too_many("a list's items are", LIST_ITEMS_MAX, items.len())?;
                items.iter().try_for_each(Self::check_parts)
            }
            Self::Struct(values) => values.iter().try_for_each(Self::check_parts),
            Self::Option(Some(value)) => value.check_parts(),
            Self::Ref(object) => object.key().check_parts(),
            _ => Ok(()),
        }
    }

    fn fits(&self, depth_left: usize, bytes_left: &mut usize) -> bool {
        let mut take = |bytes: usize| {
            let left = bytes_left.checked_sub(bytes);
            *bytes_left = left.unwrap_or(0);
            left.is_some()
        };
        let size = size_of::<Self>();
        match self {
            Self::String(text) => take(size + text.len()),
            Self::Json(document) => take(size + document.as_str().len()),
            Self::Bytes(bytes) => take(size + bytes.len()),
            // All items have one type, so they are as small as the first.
            Self::List(items) if items.first().is_some_and(Self::is_small) => {
                depth_left > 0 && take(size * (items.len() + 1))
            }
            Self::Struct(values) | Self::List(values) => {
                depth_left > 0
                    && take(size)
                    && values.iter().all(|value| value.fits(depth_left - 1, bytes_left))
            }
            Self::Option(Some(value)) => {
                depth_left > 0 && take(size) && value.fits(depth_left - 1, bytes_left)
            }
            Self::Ref(object) => take(size) && object.key().fits(depth_left, bytes_left),
            _ => take(size),
        }
    }

    fn is_small(&self) -> bool {
        matches!(
            self,
            Self::Bool(_)
                | Self::Int(_)
                | Self::Float(_)
                | Self::Time(_)
                | Self::Date(_)
                | Self::Decimal(_)
        )
    }

    /// The boolean, if this is one.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// The integer, if this is one.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Self::Int(value) => Some(*value),
            _ => None,
        }
    }

    /// The text, if this is a string.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(value) => Some(value),
            _ => None,
        }
    }

    /// The handle, if this is one.
    pub fn as_ref_value(&self) -> Option<&Ref> {
        match self {
            Self::Ref(value) => Some(value),
            _ => None,
        }
    }

    /// The items, if this is a list.
    pub fn as_list(&self) -> Option<&Arc<[Value]>> {
        match self {
            Self::List(items) => Some(items),
            _ => None,
        }
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Float(Float(value))
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::String(value.into())
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Self::String(value.into())
    }
}

impl From<Time> for Value {
    fn from(value: Time) -> Self {
        Self::Time(value)
    }
}

impl From<Date> for Value {
    fn from(value: Date) -> Self {
        Self::Date(value)
    }
}

impl From<Decimal> for Value {
    fn from(value: Decimal) -> Self {
        Self::Decimal(value)
    }
}

impl From<Document> for Value {
    fn from(value: Document) -> Self {
        Self::Json(value)
    }
}

impl From<Ref> for Value {
    fn from(value: Ref) -> Self {
        Self::Ref(value)
    }
}

/// A handle: it names the object of one kind with one key.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Ref(Arc<(Name, Value)>);

impl Ref {
    /// The handle of the object of `kind` with `key`.
    pub fn new(kind: impl Into<Name>, key: Value) -> Self {
        Self(Arc::new((kind.into(), key)))
    }

    /// The object's kind.
    pub fn kind(&self) -> &Name {
        &self.0.0
    }

    /// The object's key.
    pub fn key(&self) -> &Value {
        &self.0.1
    }
}

impl fmt::Debug for Ref {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{}]", self.kind(), self.key())
    }
}

impl fmt::Display for Ref {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{}]", self.kind(), self.key())
    }
}

/// Displays a value much as a program would write it; for messages, not for machines.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let many = |f: &mut fmt::Formatter<'_>, open: &str, items: &[Value], close: &str| {
            f.write_str(open)?;
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    f.write_str(", ")?;
                }
                write!(f, "{item}")?;
            }
            f.write_str(close)
        };
        match self {
            Self::Bool(value) => write!(f, "{value}"),
            Self::Int(value) => write!(f, "{value}"),
            Self::Float(value) => write!(f, "{value}"),
            Self::String(value) => write!(f, "{value:?}"),
            Self::Bytes(bytes) => write!(f, "b\"{}\"", bytes.escape_ascii()),
            Self::Time(value) => write!(f, "{value}"),
            Self::Date(value) => write!(f, "{value}"),
            Self::Decimal(value) => write!(f, "{value}"),
            Self::Json(value) => write!(f, "json {value}"),
            Self::Struct(values) => many(f, "{", values, "}"),
            Self::Option(None) => f.write_str("none"),
            Self::Option(Some(value)) => write!(f, "some({value})"),
            Self::List(items) => many(f, "[", items, "]"),
            Self::Ref(object) => write!(f, "{object}"),
        }
    }
}

impl Value {
    /// One representative for each class of equal values, so that equal elements and keys are one wherever they are
    /// kept: the two zeros are equal, and `0.0` stands for both; `1.50` and
    /// `1.5` are, and `1.5` stands for both.
    ///
    /// # Examples
    ///
    /// ```
    /// use mingle_model::Value;
    ///
    /// let zero = Value::list([Value::from(-0.0)]).canonical();
    /// assert_eq!(zero.to_string(), "[0.0]");
    /// ```
    #[must_use]
    pub fn canonical(&self) -> Self {
        match self {
            Self::Float(value) => Self::Float(Float(value.canonical())),
            Self::Decimal(value) => Self::Decimal(value.canonical()),
            Self::Struct(values) => Self::Struct(values.iter().map(Self::canonical).collect()),
            Self::List(items) => Self::List(items.iter().map(Self::canonical).collect()),
            Self::Option(Some(inner)) => Self::some(inner.canonical()),
            Self::Ref(object) => {
                Self::Ref(Ref::new(object.kind().clone(), object.key().canonical()))
            }
            other => other.clone(),
        }
    }
}

/// A double whose order is total: NaN stands last and equals itself, and `-0.0 == 0.0`.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Float(pub f64);

impl Float {
    /// One representative for each class of equal floats, so that equal floats hash and encode
    /// alike.
    pub fn canonical(self) -> f64 {
        if self.0.is_nan() {
            f64::NAN
        } else if self.0 == 0.0 {
            0.0
        } else {
            self.0
        }
    }
}

impl PartialEq for Float {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Float {}

impl PartialOrd for Float {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Float {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.partial_cmp(&other.0).unwrap_or_else(|| self.0.is_nan().cmp(&other.0.is_nan()))
    }
}

impl Hash for Float {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.canonical().to_bits().hash(state);
    }
}

/// Always shows a point or an exponent, so that it reads back as a float.
impl fmt::Display for Float {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_totally_ordered_with_nan_last() {
        let mut floats = [f64::NAN, 1.0, f64::INFINITY, -1.0, f64::NEG_INFINITY, 0.0].map(Float);
        floats.sort();
        assert_eq!(floats[0], Float(f64::NEG_INFINITY));
        assert!(floats[5].0.is_nan());
        assert_eq!(Float(f64::NAN), Float(-f64::NAN));
        assert_eq!(Float(0.0), Float(-0.0));
    }

    #[test]
    fn a_decimal_makes_no_value_larger() {
        assert_eq!(size_of::<Value>(), 24);
    }
}
