//! Words about objects that break the promise of a `unique`.

use mingle_model::{IndexRead, Ref, Value};

/// Returns the reason why a store is not opened for a program with a `unique`: two of its objects have the same
/// values.
///
/// ```
/// use mingle_model::{IndexRead, Ref, Value};
///
/// let read = IndexRead {
///     object: "Item".into(),
///     index: "by_color".into(),
///     fields: vec!["color".into()],
///     equal: 1,
///     counts: false,
///     is_unique: true,
/// };
/// let [one, other] = ["a", "b"].map(|key| Ref::new("Item", Value::from(key)));
/// let reason = mingle_store::unique::twice(&read, &[Value::from("red")], (&one, &other));
/// assert!(reason.starts_with(r#"Item["a"] and Item["b"] have the same color: "red"."#), "{reason}");
/// ```
pub fn twice(read: &IndexRead, values: &[Value], (one, other): (&Ref, &Ref)) -> String {
    let fields: Vec<&str> = read.fields.iter().map(|field| &**field).collect();
    let values: Vec<String> = values.iter().map(ToString::to_string).collect();
    let (fields, values) = (fields.join(", "), values.join(", "));
    format!(
        "{one} and {other} have the same {fields}: {values}. The program declares `unique {fields}` in {}; change or \
         delete one of them with a program that does not",
        read.object
    )
}
