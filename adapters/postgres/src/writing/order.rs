//! The order of a commit's writes to existing tables, in which their foreign keys hold after each statement.
//!
//! A foreign key that is not deferred must hold after each statement, and a program does not write in that order: it puts a
//! new object into a set of an older one, or deletes one and then takes it out of a set. The writes are moved only as far
//! as the keys ask.
//!
//! # Parts
//!
//! A write that changes an object's row is one part with all other changes of this row: they are one statement. Each
//! change of a collection is a part of its own. A deletion is a part for each collection, and one for the row. These stay in
//! their order:
//!
//! 1. the parts of one row, and those of one collection; a row comes before its collections;
//! 2. a part with a ref, after the row of its target;
//! 3. a part that writes a foreign key, after the parts that write rows of the table to which it leads;
//! 4. a part that removes rows, after those that remove or overwrite foreign keys to their table.
//!
//! Tables that refer to each other in a circle, or a table to itself, have no order. There point 3 does not hold, and point 4 only
//! for foreign keys that are overwritten. Where the points form a circle the program's order counts.
//!
//! Parts of one table keep their order where points 1 to 4 allow it: one may free the unique value that the next one takes.
//!
//! Commands stay where they are, as they see the writes before them.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use mingle_model::{Ref, Value};
use mingle_store::{Address, Write};

use crate::layout::{Layout, Place};
use crate::mapping::{Mapped, MappedField, Reference, Rows};

/// A part of a commit.
struct Part<'w> {
    /// The writes, by index.
    writes: Vec<usize>,
    what: What,
    /// The object, if it is in an existing table.
    object: Option<&'w Ref>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    /// The changes of a row; it is new where the transaction creates it, or has deleted it before.
    Row { is_new: bool },
    /// One change of a collection.
    Collection,
    /// The removal of a collection whose object is deleted. The part of the deletion is so many places later.
    Emptied { field: u16, deletion: usize },
    /// The deletion of a row.
    Deletion,
    /// Any other write.
    Other,
}

/// The parts and what each waits for. A table is a place to wait at: parts come before it, and others after it.
#[derive(Default)]
struct Graph<'w> {
    parts: Vec<Part<'w>>,
    /// The followers of each part, then those of each table.
    after: BTreeMap<Node<'w>, Vec<Node<'w>>>,
    /// The number of predecessors that are not done.
    waits: BTreeMap<Node<'w>, usize>,
    /// The part before each part, and after it, in the same table.
    earlier: BTreeMap<Node<'w>, Node<'w>>,
    later: BTreeMap<Node<'w>, Node<'w>>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Node<'w> {
    /// All rows that are written to this table are there.
    Written(&'w str),
    /// No row of other tables refers any more to rows of this table that are removed.
    Released(&'w str),
    /// A part.
    Part(usize),
}

/// Returns the writes in an order that the foreign keys of existing tables allow.
pub(super) fn ordered<'w>(layout: &'w Layout, writes: &'w [Write]) -> Cow<'w, [Write]> {
    let is_mapped = |write: &&Write| write.object().is_some_and(|o| mapped(layout, o).is_some());
    let Some(first) = writes.iter().find(is_mapped).and_then(Write::object) else {
        return Cow::Borrowed(writes);
    };
    if writes.iter().filter(is_mapped).all(|write| write.object() == Some(first)) {
        return Cow::Borrowed(writes);
    }
    let is_command = |write: &Write| matches!(write, Write::Command { .. });
    let segments: Vec<Option<Vec<Write>>> = writes
        .split_inclusive(is_command)
        .map(|segment| Graph::of(layout, segment).moved(segment))
        .collect();
    if segments.iter().all(Option::is_none) {
        return Cow::Borrowed(writes);
    }
    let given = writes.split_inclusive(is_command);
    let all = segments.into_iter().zip(given);
    Cow::Owned(all.flat_map(|(moved, given)| moved.unwrap_or_else(|| given.to_vec())).collect())
}

fn mapped<'w>(layout: &'w Layout, object: &Ref) -> Option<&'w Mapped> {
    match &layout.kinds.get(object.kind())?.place {
        Place::Mapped(mapped) => Some(mapped),
        Place::Own { .. } => None,
    }
}

impl<'w> Graph<'w> {
    fn of(layout: &'w Layout, writes: &'w [Write]) -> Self {
        let mut graph = Self::default();
        let rows = graph.divide(layout, writes);
        let mut last = BTreeMap::new();
        for index in 0..graph.parts.len() {
            graph.refer(writes, index, &rows);
            let Some(table) = graph.tables(layout, writes, index) else { continue };
            if let Some(earlier) = last.insert(table, Node::Part(index)) {
                graph.earlier.insert(Node::Part(index), earlier);
                graph.later.insert(earlier, Node::Part(index));
            }
        }
        graph
    }

    /// Divides the writes into parts; returns the last row of each object that is not deleted after it.
    fn divide(&mut self, layout: &Layout, writes: &'w [Write]) -> BTreeMap<&'w Ref, usize> {
        let mut rows: BTreeMap<&Ref, usize> = BTreeMap::new();
        // The last part of each object's deletion, and of each collection.
        let mut deleted: BTreeMap<&Ref, usize> = BTreeMap::new();
        let mut collections: BTreeMap<Address, usize> = BTreeMap::new();
        for (index, write) in writes.iter().enumerate() {
            let object = write.object().filter(|object| mapped(layout, object).is_some());
            let Some(object) = object else {
                self.part(What::Other, None, vec![index]);
                continue;
            };
            if let Write::Delete(_) = write {
                let collections = &mut collections;
                let part = self.deletion(layout, object, index, rows.remove(object), collections);
                if let Some(earlier) = deleted.insert(object, part) {
                    self.edge(Node::Part(earlier), Node::Part(part));
                }
                continue;
            }
            let row = *rows.entry(object).or_insert_with(|| {
                let what = What::Row { is_new: deleted.contains_key(object) };
                let part = self.part(what, Some(object), Vec::new());
                if let Some(deletion) = deleted.get(object) {
                    self.edge(Node::Part(*deletion), Node::Part(part));
                }
                part
            });
            let Some(collection) = collection(write) else {
                if let (Write::Create(_), What::Row { is_new }) = (write, &mut self.parts[row].what)
                {
                    *is_new = true;
                }
                self.parts[row].writes.push(index);
                continue;
            };
            let part = self.part(What::Collection, Some(object), vec![index]);
            let earlier = collections.insert(collection.clone(), part).unwrap_or(row);
            self.edge(Node::Part(earlier), Node::Part(part));
            self.edge(Node::Part(row), Node::Part(part));
        }
        rows
    }

    /// Adds the parts of a deletion, after the parts of the object's row and collections; returns that of the row.
    fn deletion(
        &mut self,
        layout: &Layout,
        object: &'w Ref,
        write: usize,
        row: Option<usize>,
        collections: &mut BTreeMap<Address, usize>,
    ) -> usize {
        let fields = mapped(layout, object).map(|mapped| &mapped.fields[..]).unwrap_or_default();
        let emptied: Vec<u16> =
            (0_u16..).zip(fields).filter_map(|(field, kept)| kept.rows().map(|_| field)).collect();
        let part = self.parts.len() + emptied.len();
        for (place, field) in emptied.iter().enumerate() {
            let what = What::Emptied { field: *field, deletion: emptied.len() - place };
            let emptied = self.part(what, Some(object), vec![write]);
            let address = Address { object: object.clone(), field: *field };
            for earlier in collections.remove(&address).into_iter().chain(row) {
                self.edge(Node::Part(earlier), Node::Part(emptied));
            }
            self.edge(Node::Part(emptied), Node::Part(part));
        }
        if let Some(earlier) = row {
            self.edge(Node::Part(earlier), Node::Part(part));
        }
        self.part(What::Deletion, Some(object), vec![write])
    }

    fn part(&mut self, what: What, object: Option<&'w Ref>, writes: Vec<usize>) -> usize {
        self.parts.push(Part { writes, what, object });
        self.parts.len() - 1
    }

    fn edge(&mut self, before: Node<'w>, after: Node<'w>) {
        if before != after {
            self.after.entry(before).or_default().push(after);
            *self.waits.entry(after).or_default() += 1;
        }
    }

    /// A part with refs comes after the rows of their targets.
    fn refer(&mut self, writes: &'w [Write], index: usize, rows: &BTreeMap<&'w Ref, usize>) {
        let part = &self.parts[index];
        let mut targets = BTreeSet::new();
        if let (What::Row { .. }, Some(object)) = (part.what, part.object) {
            refs(object.key(), &mut targets);
        }
        for write in part.writes.iter().map(|index| &writes[*index]) {
            match write {
                Write::Assign(_, value) | Write::Insert(_, value) | Write::Append(_, value) => {
                    refs(value, &mut targets);
                }
                Write::Put(_, entry, value) => {
                    refs(entry, &mut targets);
                    refs(value, &mut targets);
                }
                _ => {}
            }
        }
        for target in targets {
            if let Some(row) = rows.get(target) {
                self.edge(Node::Part(*row), Node::Part(index));
            }
        }
    }

    /// A part that writes rows comes after those that write the tables to which it has foreign keys, and one that
    /// removes rows after those that let go of them. Returns the table of the part.
    fn tables(&mut self, layout: &'w Layout, writes: &'w [Write], index: usize) -> Option<&'w str> {
        let part = &self.parts[index];
        let mapped = mapped(layout, part.object?)?;
        let own: Vec<&Write> = part.writes.iter().map(|index| &writes[*index]).collect();
        let field = match part.what {
            What::Emptied { field, .. } => Some(field),
            _ => own.iter().find_map(|write| Some(collection(write)?.field)),
        };
        let field = field.and_then(|field| mapped.fields.get(usize::from(field)));
        let rows = field.and_then(MappedField::rows).unwrap_or(&mapped.rows);
        let (bound, released) = (part.binds(mapped, rows, &own), part.releases(mapped, rows, &own));
        let (node, removes_rows) = (Node::Part(index), part.removes_rows(&own));
        if removes_rows {
            self.edge(Node::Released(&rows.table), node);
        } else {
            self.edge(node, Node::Written(&rows.table));
        }
        for reference in bound.filter(|reference| !reference.is_circle) {
            self.edge(Node::Written(&reference.table), node);
        }
        for reference in released {
            self.edge(node, Node::Released(&reference.table));
        }
        Some(&rows.table)
    }

    /// Returns the writes in order, or none if they are in order.
    fn moved(mut self, writes: &[Write]) -> Option<Vec<Write>> {
        let order = self.sort();
        if order.is_sorted() {
            return None;
        }
        let mut moved = Vec::with_capacity(writes.len() + 1);
        for (at, part) in order.iter().enumerate() {
            let Part { writes: own, what, object } = &self.parts[*part];
            match (what, object) {
                (What::Row { .. }, Some(object)) if own.is_empty() => {
                    moved.push(Write::Create((*object).clone()));
                }
                // The deletion itself removes the collections, where nothing comes between.
                (What::Emptied { deletion, .. }, _)
                    if (1..=*deletion).all(|next| order.get(at + next) == Some(&(part + next))) => {
                }
                (What::Emptied { field, .. }, Some(object)) => {
                    moved.push(Write::Clear(Address { object: (*object).clone(), field: *field }));
                }
                _ => moved.extend(own.iter().map(|index| writes[*index].clone())),
            }
        }
        Some(moved)
    }

    /// Returns the parts in order: always the first one that waits for nothing, else the first that waits only for an earlier
    /// part of its table, else the first of all.
    fn sort(&mut self) -> Vec<usize> {
        let mut left: BTreeSet<Node<'_>> = (0..self.parts.len()).map(Node::Part).collect();
        left.extend(self.waits.keys().chain(self.after.keys()));
        let is_free = |node: &&Node<'_>| !self.waits.contains_key(node);
        let mut free: BTreeSet<Node<'_>> = left.iter().filter(is_free).copied().collect();
        let mut ready = free.clone();
        ready.retain(|node| !self.earlier.contains_key(node));
        let mut order = Vec::with_capacity(self.parts.len());
        // Tables are before parts in the order of nodes.
        let first_part = |nodes: &BTreeSet<Node<'w>>| nodes.range(Node::Part(0)..).next().copied();
        loop {
            let next = ready.first().copied().or_else(|| first_part(&free));
            let Some(node) = next.or_else(|| first_part(&left)).or(left.first().copied()) else {
                return order;
            };
            for nodes in [&mut ready, &mut free, &mut left] {
                nodes.remove(&node);
            }
            if let Node::Part(index) = node {
                order.push(index);
            }
            for next in self.after.remove(&node).unwrap_or_default() {
                let Some(waits) = self.waits.get_mut(&next) else { continue };
                *waits -= 1;
                if *waits == 0 && left.contains(&next) {
                    free.insert(next);
                    if self.earlier.get(&next).is_none_or(|earlier| !left.contains(earlier)) {
                        ready.insert(next);
                    }
                }
            }
            if let Some(next) = self.later.get(&node).filter(|next| free.contains(next)) {
                ready.insert(*next);
            }
        }
    }
}

impl Part<'_> {
    fn removes_rows(&self, writes: &[&Write]) -> bool {
        let is_removal = |write: &&Write| {
            matches!(write, Write::Remove(..) | Write::Erase(..) | Write::Clear(_))
        };
        matches!(self.what, What::Emptied { .. } | What::Deletion) || writes.iter().any(is_removal)
    }

    /// Returns the foreign keys by which rows refer to others after this part, and perhaps not before.
    fn binds<'w>(
        &self,
        mapped: &'w Mapped,
        rows: &'w Rows,
        writes: &[&'w Write],
    ) -> impl Iterator<Item = &'w Reference> + use<'w> {
        let removes_rows = self.removes_rows(writes);
        let is_row = matches!(self.what, What::Row { .. });
        let keys: BTreeSet<&str> = rows.keys.iter().map(|key| &*key.name).collect();
        let written = assigned(mapped, writes, |value| *value != Value::NONE);
        let is_written = move |column: &String| {
            !is_row || keys.contains(&**column) || written.contains(&**column)
        };
        rows.references
            .iter()
            .filter(move |reference| !removes_rows && reference.columns.iter().any(&is_written))
    }

    /// Returns the foreign keys by which rows refer to others before this part, and perhaps not afterwards.
    fn releases<'w>(
        &self,
        mapped: &'w Mapped,
        rows: &'w Rows,
        writes: &[&'w Write],
    ) -> impl Iterator<Item = &'w Reference> + use<'w> {
        let what = self.what;
        let removes_rows = self.removes_rows(writes);
        let keys: BTreeSet<&str> = rows.keys.iter().map(|key| &*key.name).collect();
        let written = assigned(mapped, writes, |_| true);
        let is_put = writes.iter().any(|write| matches!(write, Write::Put(..)));
        rows.references.iter().filter(move |reference| {
            let mut columns = reference.columns.iter().map(|column| &**column);
            match what {
                // Nothing says which of two deleted rows refers to the other.
                What::Deletion => !reference.is_circle,
                What::Emptied { .. } => true,
                What::Row { is_new } => !is_new && columns.any(|column| written.contains(column)),
                // The object's own row is removed after its collections anyway.
                What::Collection => {
                    (removes_rows || is_put) && columns.any(|column| !keys.contains(column))
                }
                What::Other => false,
            }
        })
    }
}

/// Returns the columns to which a value is assigned.
fn assigned<'w>(
    mapped: &'w Mapped,
    writes: &[&Write],
    counts: impl Fn(&Value) -> bool,
) -> BTreeSet<&'w str> {
    let field = |write: &&Write| match write {
        Write::Assign(address, value) if counts(value) => {
            mapped.fields.get(usize::from(address.field))
        }
        _ => None,
    };
    let columns = writes.iter().filter_map(field).flat_map(MappedField::written);
    columns.map(|column| &*column.name).collect()
}

/// Returns the collection that a write changes.
fn collection(write: &Write) -> Option<&Address> {
    match write {
        Write::Insert(address, _)
        | Write::Remove(address, _)
        | Write::Put(address, ..)
        | Write::Erase(address, _)
        | Write::Append(address, _)
        | Write::Clear(address) => Some(address),
        _ => None,
    }
}

/// Adds the refs in a value.
fn refs<'v>(value: &'v Value, found: &mut BTreeSet<&'v Ref>) {
    match value {
        Value::Ref(object) => {
            found.insert(object);
            refs(object.key(), found);
        }
        Value::Option(Some(inner)) => refs(inner, found),
        Value::Struct(values) | Value::List(values) => {
            values.iter().for_each(|value| refs(value, found));
        }
        _ => {}
    }
}
