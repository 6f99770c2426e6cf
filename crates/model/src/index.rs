//! Reads of indexes: the objects of a kind whose fields hold given values, in order.
//!
//! A program declares `index by customer, placed;` in an object. For each number of leading fields that
//! are compared with a value, and for pages and counts, the compiler declares one query of the store;
//! [`IndexRead`] says what it asks, and stores answer it by their own means. An object is in an index while
//! it exists and each field of the index was written and is not `none`: as in SQL, nothing equals what
//! is not there.

use serde::{Deserialize, Serialize};

use crate::limits::{INDEX_COUNT_MAX, INDEX_PAGE_MAX};
use crate::{Name, Ref, Type, Value};

/// A query over an index.
///
/// ```
/// use mingle_model::{IndexRead, Value};
///
/// let read = IndexRead {
///     object: "Order".into(),
///     index: "by_customer".into(),
///     fields: vec!["customer".into()],
///     equal: 1,
///     counts: true,
///     is_unique: false,
/// };
/// let arguments = [Value::from("ada"), Value::NONE, Value::Int(10)];
/// let question = read.question(&arguments).unwrap();
/// assert_eq!((question.equal[0].clone(), question.most), (Value::from("ada"), 10));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexRead {
    /// The kind of object.
    pub object: Name,
    /// The name of the index, as programs read it.
    pub index: Name,
    /// The fields that it is ordered by; objects with the same values in all come in the order of their keys.
    pub fields: Vec<Name>,
    /// The number of leading fields that are compared with a value.
    pub equal: usize,
    /// True if it counts; otherwise it gives refs.
    pub counts: bool,
    /// True if no two objects in the index have the same values in all fields: it is a `unique`.
    pub is_unique: bool,
}

/// The question of one query over an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexQuestion<'a> {
    /// The values of the leading fields.
    pub equal: &'a [Value],
    /// The least value of the field after them, itself included.
    pub from: Option<&'a Value>,
    /// The end of the values of the field after them, itself not included.
    pub before: Option<&'a Value>,
    /// Only objects that come after this one; only where all fields are compared.
    pub after: Option<&'a Ref>,
    /// True if the objects come from the last to the first.
    pub is_reversed: bool,
    /// The maximum number of objects.
    pub most: usize,
}

impl IndexRead {
    /// True if the values of the field after the leading ones can have bounds.
    pub fn has_range(&self) -> bool {
        self.equal < self.fields.len()
    }

    /// Returns the names and types of the query's parameters; `types` are those of the index's fields.
    ///
    /// After the leading values: the two bounds, or the object after which to begin where all fields are compared;
    /// for refs, whether the order is reversed; last, the maximum number.
    pub fn parameters(&self, types: &[Type]) -> Vec<(Name, Type)> {
        let leading = self.fields.iter().zip(types).take(self.equal);
        let mut all: Vec<(Name, Type)> =
            leading.map(|(field, inner)| (field.clone(), inner.clone())).collect();
        let option = |inner: &Type| Type::Option(std::sync::Arc::new(inner.clone()));
        if self.has_range() {
            all.push(("from".into(), option(&types[self.equal])));
            all.push(("before".into(), option(&types[self.equal])));
        } else {
            all.push(("after".into(), option(&Type::Ref(self.object.clone()))));
        }
        if !self.counts {
            all.push(("reversed".into(), Type::Bool));
        }
        all.push(("most".into(), Type::Int));
        all
    }

    /// Returns the type of the query's result.
    pub fn result(&self) -> Type {
        if self.counts {
            Type::Int
        } else {
            Type::List(std::sync::Arc::new(Type::Ref(self.object.clone())))
        }
    }

    /// Reads the arguments of a query.
    ///
    /// # Errors
    ///
    /// When they are not those of [`IndexRead::parameters`].
    pub fn question<'a>(&self, arguments: &'a [Value]) -> Result<IndexQuestion<'a>, String> {
        let misfit =
            || format!("the arguments do not fit the index {}.{}", self.object, self.index);
        let (equal, rest) = arguments.split_at_checked(self.equal).ok_or_else(misfit)?;
        let bound = |value: &'a Value| match value {
            Value::Option(inner) => Ok(inner.as_deref()),
            _ => Err(misfit()),
        };
        let (from, before, after, rest) = match rest {
            [from, before, rest @ ..] if self.has_range() => {
                (bound(from)?, bound(before)?, None, rest)
            }
            [after, rest @ ..] if !self.has_range() => (None, None, bound(after)?, rest),
            _ => return Err(misfit()),
        };
        let after = match after {
            None => None,
            Some(Value::Ref(object)) => Some(object),
            Some(_) => return Err(misfit()),
        };
        let (is_reversed, most) = match rest {
            [Value::Bool(is_reversed), Value::Int(most)] if !self.counts => (*is_reversed, *most),
            [Value::Int(most)] if self.counts => (false, *most),
            _ => return Err(misfit()),
        };
        let limit = if self.counts { INDEX_COUNT_MAX } else { INDEX_PAGE_MAX };
        let most = usize::try_from(most).unwrap_or(0).min(limit);
        Ok(IndexQuestion { equal, from, before, after, is_reversed, most })
    }

    /// Returns the query's result, from the refs that it found or their number.
    pub fn answer(&self, found: Vec<Ref>) -> Value {
        if self.counts {
            Value::Int(i64::try_from(found.len()).unwrap_or(i64::MAX))
        } else {
            Value::list(found.into_iter().map(Value::Ref))
        }
    }
}

impl IndexQuestion<'_> {
    /// True if it asks for an object with these values of the index's fields.
    ///
    /// It is the plain meaning of the question; stores with many objects find them by an order.
    pub fn asks_for(&self, object: &Ref, values: &[&Value]) -> bool {
        let leads = self.equal.iter().zip(values).all(|(wanted, found)| wanted == *found);
        let next = values.get(self.equal.len());
        let is_inside = next.is_none_or(|next| {
            self.from.is_none_or(|from| *next >= from) && self.before.is_none_or(|end| *next < end)
        });
        let follows = self.after.is_none_or(|after| {
            if self.is_reversed { object.key() < after.key() } else { object.key() > after.key() }
        });
        leads && is_inside && follows
    }

    /// Answers the question over all objects, given with the values of the index's fields: the plain meaning.
    pub fn over<'v>(&self, all: impl Iterator<Item = (&'v Ref, Vec<&'v Value>)>) -> Vec<Ref> {
        let mut found: Vec<(Vec<&Value>, &Ref)> = all
            .filter(|(object, values)| self.asks_for(object, values))
            .map(|(object, values)| (values, object))
            .collect();
        found.sort();
        if self.is_reversed {
            found.reverse();
        }
        found.into_iter().take(self.most).map(|(_, object)| object.clone()).collect()
    }
}

/// A value of a `unique` that another object has already.
///
/// ```
/// use mingle_model::{Taken, Value};
///
/// let taken = Taken { object: "Order".into(), values: vec![("color".into(), Value::from("red"))] };
/// assert_eq!(taken.to_string(), r#"another Order has color "red""#);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Taken {
    /// The kind of object.
    pub object: Name,
    /// The fields of the `unique`, with the values that the other object has.
    pub values: Vec<(Name, Value)>,
}

impl std::fmt::Display for Taken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "another {} has", self.object)?;
        for (at, (field, value)) in self.values.iter().enumerate() {
            let comma = match at {
                0 => "",
                _ if at + 1 == self.values.len() => " and",
                _ => ",",
            };
            write!(f, "{comma} {field} {value}")?;
        }
        Ok(())
    }
}

/// Returns the value of a field in an index; none if an object with this value is not in the index.
pub fn indexed(value: &Value) -> Option<&Value> {
    match value {
        Value::Option(inner) => inner.as_deref(),
        value => Some(value),
    }
}

/// Returns the type of the values by which an index finds a field of this type.
pub fn indexed_type(field: &Type) -> &Type {
    match field {
        Type::Option(inner) => inner,
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(equal: usize, counts: bool) -> IndexRead {
        let fields = vec!["customer".into(), "placed".into()];
        IndexRead {
            object: "Order".into(),
            index: "by_customer_placed".into(),
            fields,
            equal,
            counts,
            is_unique: false,
        }
    }

    #[test]
    fn arguments_are_those_of_the_parameters() {
        let types = [Type::String, Type::Int];
        for (equal, counts) in [(0, false), (1, false), (2, false), (0, true), (1, true), (2, true)]
        {
            let read = read(equal, counts);
            let parameters = read.parameters(&types);
            let arguments: Vec<Value> = parameters
                .iter()
                .map(|(_, of)| match of {
                    Type::String => Value::from("x"),
                    Type::Bool => Value::Bool(false),
                    Type::Option(_) => Value::NONE,
                    _ => Value::Int(3),
                })
                .collect();
            assert_eq!(read.question(&arguments).map(|found| found.most), Ok(3));
            assert!(read.question(&arguments[1..]).is_err());
            assert!(read.question(&[&arguments[..], &[Value::Int(1)]].concat()).is_err());
        }
    }

    #[test]
    fn pages_and_counts_have_a_bound() {
        let page = [Value::NONE, Value::NONE, Value::Bool(false), Value::Int(i64::MAX)];
        assert_eq!(read(0, false).question(&page).unwrap().most, INDEX_PAGE_MAX);
        let count = [Value::NONE, Value::NONE, Value::Int(-1)];
        assert_eq!(read(0, true).question(&count).unwrap().most, 0);
    }

    #[test]
    fn the_plain_meaning_is_ordered_bounded_and_reversed() {
        let (ada, bob) = (Value::from("ada"), Value::from("bob"));
        let times: Vec<Value> = (0..4).map(Value::Int).collect();
        let refs: Vec<Ref> =
            ["d", "c", "b", "a"].map(|key| Ref::new("Order", Value::from(key))).into();
        let all = || {
            let customers = [&ada, &ada, &bob, &ada];
            refs.iter()
                .zip(customers)
                .zip(&times)
                .map(|((object, customer), at)| (object, vec![customer, at]))
        };
        let keys = |question: IndexQuestion<'_>| -> Vec<String> {
            question.over(all()).iter().map(|found| found.key().to_string()).collect()
        };
        let arguments = [ada.clone(), Value::NONE, Value::NONE, Value::Bool(false), Value::Int(9)];
        let read = read(1, false);
        let question = read.question(&arguments).unwrap();
        assert_eq!(keys(question), [r#""d""#, r#""c""#, r#""a""#]);
        assert_eq!(
            keys(IndexQuestion { is_reversed: true, most: 2, ..question }),
            [r#""a""#, r#""c""#]
        );
        let (from, before) = (Value::Int(1), Value::Int(3));
        let inside = IndexQuestion { from: Some(&from), before: Some(&before), ..question };
        assert_eq!(keys(inside), [r#""c""#]);
        let at = [ada.clone(), Value::Int(1)];
        let after = Ref::new("Order", Value::from("b"));
        let paged = IndexQuestion { equal: &at, after: Some(&after), ..question };
        assert_eq!(keys(paged), [r#""c""#]);
        assert_eq!(keys(IndexQuestion { is_reversed: true, ..paged }), [] as [&str; 0]);
    }
}
