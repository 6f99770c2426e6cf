//! The state of all stores, as plain maps.

use std::collections::{BTreeMap, BTreeSet};

use mingle_model::{FieldType, IndexRead, Name, Ref, Schema, Value};

use crate::hir::CollectionWrite;

/// All objects that were ever written.
#[derive(Clone, Debug, Default)]
pub struct State {
    objects: BTreeMap<Ref, ObjectState>,
    /// The greatest number drawn for each kind of object; two states with the same objects are equal.
    drawn: BTreeMap<Name, i64>,
}

impl PartialEq for State {
    fn eq(&self, other: &Self) -> bool {
        self.objects == other.objects
    }
}

impl Eq for State {}

/// One object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectState {
    /// Its written fields, by index.
    pub fields: BTreeMap<u16, FieldState>,
}

/// One field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldState {
    /// A register.
    Register(Value),
    /// A counter's exact sum.
    Counter(i128),
    /// A set.
    Set(BTreeSet<Value>),
    /// A map.
    Map(BTreeMap<Value, Value>),
    /// A log.
    Log(Vec<Value>),
}

impl State {
    /// Returns the objects that exist.
    pub fn objects(&self) -> impl Iterator<Item = (&Ref, &ObjectState)> {
        self.objects.iter()
    }

    /// Draws a number for the key of an object of this kind: one that was not drawn before, and that no object has.
    pub fn draw(&mut self, kind: &Name) -> i64 {
        let last = self.drawn.entry(kind.clone()).or_default();
        loop {
            *last += 1;
            let object = Ref::new(kind.clone(), Value::Int(*last));
            if !self.objects.contains_key(&object) {
                return *last;
            }
        }
    }

    /// True if an object exists.
    pub fn exists(&self, object: &Ref) -> bool {
        self.objects.contains_key(object)
    }

    /// Returns a field, if it was written.
    pub fn field(&self, object: &Ref, field: u16) -> Option<&FieldState> {
        self.objects.get(object)?.fields.get(&field)
    }

    /// Answers a query over an index.
    ///
    /// # Panics
    ///
    /// When the arguments do not fit the query: the compiler checks them.
    pub fn indexed(&self, schema: &Schema, read: &IndexRead, arguments: &[Value]) -> Value {
        let question = read.question(arguments).expect("the compiler checked the arguments");
        let declared = &schema.objects[&read.object];
        let fields: Vec<u16> = read
            .fields
            .iter()
            .map(|name| declared.field_index(name).expect("the compiler knows the field") as u16)
            .collect();
        let all = self.objects.iter().filter(|(object, _)| *object.kind() == read.object);
        let entries = all.filter_map(|(object, state)| {
            let values = fields.iter().map(|field| match state.fields.get(field) {
                Some(FieldState::Register(value)) => mingle_model::index::indexed(value),
                _ => None,
            });
            Some((object, values.collect::<Option<Vec<&Value>>>()?))
        });
        read.answer(question.over(entries))
    }

    /// Makes an object exist.
    pub fn create(&mut self, object: &Ref) {
        self.objects.entry(object.clone()).or_default();
    }

    /// Removes an object.
    pub fn delete(&mut self, object: &Ref) {
        self.objects.remove(object);
    }

    /// Writes a register.
    pub fn assign(&mut self, object: &Ref, field: u16, value: Value) {
        let object = self.objects.entry(object.clone()).or_default();
        object.fields.insert(field, FieldState::Register(value));
    }

    /// Adds to a counter.
    pub fn add(&mut self, object: &Ref, field: u16, amount: i128) {
        if let FieldState::Counter(sum) = self.collection(object, field, &FieldType::Counter) {
            *sum = sum.saturating_add(amount);
        }
    }

    /// Returns the state of a collection, empty if it was never written; the object exists from now
    /// on.
    pub fn collection(
        &mut self,
        object: &Ref,
        field: u16,
        field_type: &FieldType,
    ) -> &mut FieldState {
        let object = self.objects.entry(object.clone()).or_default();
        object.fields.entry(field).or_insert_with(|| match field_type {
            FieldType::Counter => FieldState::Counter(0),
            FieldType::Set(_) => FieldState::Set(BTreeSet::new()),
            FieldType::Map(..) => FieldState::Map(BTreeMap::new()),
            _ => FieldState::Log(Vec::new()),
        })
    }

    /// Changes a collection.
    pub fn change(
        &mut self,
        object: &Ref,
        field: u16,
        field_type: &FieldType,
        write: CollectionWrite,
        args: Vec<Value>,
    ) {
        let state = self.collection(object, field, field_type);
        let mut args = args.into_iter();
        let mut arg = || args.next().expect("a write has its arguments");
        match (state, write) {
            (FieldState::Counter(sum), CollectionWrite::Add) => {
                *sum = sum.saturating_add(arg().as_int().expect("an amount is an int").into());
            }
            (FieldState::Set(elements), CollectionWrite::Insert) => {
                elements.insert(arg().canonical());
            }
            (FieldState::Set(elements), CollectionWrite::Remove) => {
                elements.remove(&arg());
            }
            (FieldState::Set(elements), CollectionWrite::Clear) => elements.clear(),
            (FieldState::Map(entries), CollectionWrite::Put) => {
                let key = arg().canonical();
                entries.insert(key, arg());
            }
            (FieldState::Map(entries), CollectionWrite::Erase) => {
                entries.remove(&arg());
            }
            (FieldState::Map(entries), CollectionWrite::Clear) => entries.clear(),
            (FieldState::Log(lines), CollectionWrite::Append) => lines.push(arg()),
            (FieldState::Log(lines), CollectionWrite::Clear) => lines.clear(),
            (state, write) => {
                panic!("{write:?} does not apply to {state:?}: the program was not checked")
            }
        }
    }

    /// Returns this state with only the objects of some kinds.
    pub fn only(&self, keep: impl Fn(&str) -> bool) -> Self {
        let kept = self.objects.iter().filter(|(object, _)| keep(object.kind()));
        let objects = kept.map(|(object, state)| (object.clone(), state.clone())).collect();
        Self { objects, drawn: self.drawn.clone() }
    }

    /// Adds the objects of another state, which must have no object in common with this one.
    pub fn join(&mut self, other: Self) {
        self.objects.extend(other.objects);
    }

    /// Returns this state without the traces of empty collections, which no read can see.
    pub fn normal(&self) -> Self {
        let mut normal = self.clone();
        for object in normal.objects.values_mut() {
            object.fields.retain(|_, field| match field {
                FieldState::Register(_) => true,
                FieldState::Counter(sum) => *sum != 0,
                FieldState::Set(elements) => !elements.is_empty(),
                FieldState::Map(entries) => !entries.is_empty(),
                FieldState::Log(lines) => !lines.is_empty(),
            });
        }
        normal
    }
}
