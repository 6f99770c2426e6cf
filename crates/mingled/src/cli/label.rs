//! Labels of strong transactions, as arguments declare them.

use std::str::FromStr;

use mingle_geo::certify::{Conflicts, Label};

/// A label, and those with which it conflicts on the same item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declared {
    pub name: String,
    pub conflicts: Vec<String>,
}

/// Reads `withdraw=withdraw,audit`.
impl FromStr for Declared {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, others) = text.split_once('=').unwrap_or((text, ""));
        let others = others.split(',').filter(|other| !other.is_empty()).map(str::to_owned);
        let declared = Self { name: name.to_owned(), conflicts: others.collect() };
        let is_name = |name: &&String| !name.is_empty() && !name.contains([' ', '\r', '\n']);
        let mut names = std::iter::once(&declared.name).chain(&declared.conflicts);
        if names.all(|name| is_name(&name)) {
            Ok(declared)
        } else {
            Err("expected a name without spaces, such as `withdraw` or `withdraw=withdraw`".into())
        }
    }
}

/// Returns the labels and the conflicts between them.
pub fn conflicts(all: &[Declared]) -> (Vec<Label>, Conflicts) {
    let pairs = all.iter().flat_map(|declared| {
        let name = declared.name.as_str();
        declared.conflicts.iter().map(move |other| (name, other.as_str()))
    });
    let labels = all.iter().map(|declared| declared.name.as_str().into());
    (labels.collect(), Conflicts::new(pairs))
}

/// Returns the argument that declares a label.
pub fn shown(declared: &Declared) -> String {
    let Declared { name, conflicts } = declared;
    if conflicts.is_empty() { name.clone() } else { format!("{name}={}", conflicts.join(",")) }
}
