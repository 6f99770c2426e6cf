//! The enumerations that a thread decodes, with the variants that occurred.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// The variants of an enumeration: all names, and the numbers that occurred.
#[derive(Clone, Debug)]
pub struct Seen {
    pub names: &'static [&'static str],
    pub met: BTreeSet<usize>,
}

thread_local! {
    static SEEN: RefCell<BTreeMap<(&'static str, usize), Seen>> = const { RefCell::new(BTreeMap::new()) };
}

/// Notes a decoded variant. Two enumerations of one name differ in their variants.
pub fn note(of: &'static str, names: &'static [&'static str], number: usize) {
    SEEN.with_borrow_mut(|seen| {
        let at = (of, names.as_ptr() as usize);
        let seen = seen.entry(at).or_insert_with(|| Seen { names, met: BTreeSet::new() });
        seen.met.insert(number);
    });
}

/// Takes the notes of this thread, by name and first variant.
pub fn take() -> BTreeMap<(&'static str, &'static str), Seen> {
    let seen = SEEN.with_borrow_mut(std::mem::take);
    let mut by_name: BTreeMap<(&'static str, &'static str), Seen> = BTreeMap::new();
    for ((of, _), one) in seen {
        let known = by_name.entry((of, one.names[0])).or_insert_with(|| one.clone());
        assert_eq!(known.names, one.names, "two enumerations are called {of}");
        known.met.extend(one.met);
    }
    by_name
}
