//! The only body of declared operations in this store: `builtin:size`.
//!
//! It is the same as in the embedded engine: the number of elements, entries or lines in a
//! collection, or a counter's value, by key. It sees all updates that any replica has acknowledged,
//! delivered or not.

use std::collections::BTreeMap;

use mingle_model::{FieldType, Name, ObjectType, Ref, Type, Value};
use mingle_store::{Address, Answer, Data, Read, StoreOperation, StoreSchema};

use crate::fit::Fit;
use crate::reading::answer;
use crate::state::State;

/// The operations of a store, by name, with the field whose size each returns.
#[derive(Clone, Debug)]
pub struct Sizes(BTreeMap<Name, Target>);

/// A field of a kind.
#[derive(Clone, Debug)]
struct Target {
    kind: Name,
    field: u16,
    field_type: FieldType,
}

impl Sizes {
    /// Parses all operations of a store.
    ///
    /// # Errors
    ///
    /// When an operation has another body, or none.
    pub fn new(schema: &StoreSchema, fit: &Fit) -> Result<Self, String> {
        let target = |(name, operation): (&Name, &StoreOperation)| {
            let target = Target::of(operation, fit);
            let target = target.map_err(|why| format!("operation {name}: {why}"))?;
            Ok((name.clone(), target))
        };
        Ok(Self(schema.operations.iter().map(target).collect::<Result<_, String>>()?))
    }

    /// Returns the result of a query in a state.
    ///
    /// # Errors
    ///
    /// When there is no such query, or it has other arguments.
    pub fn answer(
        &self,
        operation: &Name,
        arguments: &[Value],
        state: &State,
    ) -> Result<Answer, String> {
        let target = self.0.get(operation);
        let target = target.ok_or_else(|| format!("no operation {operation} is declared"))?;
        let [key] = arguments else {
            return Err(format!("takes 1 argument, not {}", arguments.len()));
        };
        let object = match key {
            Value::Ref(object) if *object.kind() == target.kind => object.clone(),
            key => Ref::new(target.kind.clone(), key.clone()),
        };
        let address = Address { object, field: target.field };
        let read = match target.field_type {
            FieldType::Set(_) => Read::SetSize(address),
            FieldType::Map(..) => Read::MapSize(address),
            FieldType::Log(_) => Read::LogSize(address),
            FieldType::Counter | FieldType::Register(_) => Read::Counter(address),
        };
        let found = answer(state, &read);
        let size = match found.data {
            Data::Count(count) => i64::try_from(count).unwrap_or(i64::MAX),
            Data::Counter(sum) => sum.clamp(i64::MIN.into(), i64::MAX.into()) as i64,
            other => unreachable!("the size of a field is {other:?}"),
        };
        let witnesses = state.rows(None).cloned().collect();
        Ok(Answer { data: Data::Result(Value::Int(size)), version: found.version, witnesses })
    }
}

impl Target {
    fn of(operation: &StoreOperation, fit: &Fit) -> Result<Self, String> {
        const FORMS: &str = "this store understands `builtin:size KIND.FIELD` alone";
        let body = operation.body.as_deref().unwrap_or_default();
        let words: Vec<&str> = body.split_whitespace().collect();
        let (kind, field) = match (&words[..], operation.is_command) {
            (["builtin:size", target], false) => match target.split_once('.') {
                Some((kind, field)) => (Name::from(kind), Some(field)),
                None => return Err(format!("{FORMS}, not `{body}`")),
            },
            (["builtin:size"], false) => match operation.parameters.first() {
                Some((_, Type::Ref(kind))) => (kind.clone(), None),
                _ => return Err(format!("{FORMS}; only a `ref KIND` tells the object")),
            },
            _ => return Err(format!("{FORMS}, not `{body}`")),
        };
        let declared = fit.kind(&kind)?;
        check_parameters(operation, declared)?;
        let fields = declared.fields.iter().enumerate();
        let mut fitting = fields.filter(|(_, known)| {
            !matches!(known.field_type, FieldType::Register(_))
                && field.is_none_or(|field| *known.name == *field)
        });
        match (fitting.next(), fitting.next()) {
            (Some((index, found)), None) => Ok(Self {
                field: u16::try_from(index).map_err(|_| "has too many fields".to_owned())?,
                field_type: found.field_type.clone(),
                kind,
            }),
            (None, _) => Err(format!("no field of {kind} fits: {FORMS}")),
            (Some(_), Some(_)) => Err(format!("several fields of {kind} fit: {FORMS}")),
        }
    }
}

fn check_parameters(operation: &StoreOperation, kind: &ObjectType) -> Result<(), String> {
    let wanted = [kind.key_type.clone(), Type::Ref(kind.name.clone())];
    match &operation.parameters[..] {
        [(_, given)] if wanted.contains(given) => Ok(()),
        _ => Err(format!("takes one parameter, a {} or {}", wanted[0], wanted[1])),
    }
}
