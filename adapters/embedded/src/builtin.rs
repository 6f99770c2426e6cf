//! The bodies of declared operations that this engine provides.
//!
//! | body | parameters | gives |
//! | --- | --- | --- |
//! | `builtin:size KIND.FIELD` | key | elements, entries or lines; a counter's value |
//! | `builtin:value KIND.FIELD` | key | a register's value, a counter's, a set's or log's list |
//! | `builtin:exists KIND` | key | whether the object exists |
//! | `builtin:keys KIND` | | the keys of all objects of the kind, in order |
//! | `builtin:append KIND.FIELD` | key, value | a command: appends to a log |
//! | `builtin:add KIND.FIELD` | key, int | a command: adds to a counter |
//!
//! Where the first parameter is a `ref KIND` and only one field of the kind fits, the body may be
//! the verb alone: `builtin:size`. A key may be given as a `ref KIND` too. Queries are strong: at a
//! replicated store they see all updates that any replica has acknowledged, delivered or not.

use std::collections::BTreeMap;

use mingle_model::{BuiltinQuery, FieldType, IndexRead, Name, Ref, Type, Value};
use mingle_store::{Address, Data, Read, StoreOperation, Write};

use crate::index::Indexed;
use crate::layout::{Layout, Shape};
use crate::limits::KEYS_MAX;

/// The operations of one store, by name. `None` stands for an operation without a body.
pub type Builtins = BTreeMap<Name, Option<Builtin>>;

/// One operation with a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Builtin {
    verb: Verb,
    kind: Name,
    /// Index of the field, for the verbs that have one.
    field: u16,
    arity: usize,
    /// The index that it reads; then nothing else of this counts.
    index: Option<Indexed>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verb {
    Size,
    Value,
    Exists,
    Keys,
    Append,
    Add,
    /// No body names it.
    Draw,
}

/// The question that a query asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Question {
    /// A read whose answer gives the result.
    Read(Read),
    /// The keys of a kind.
    Keys(Name),
    /// A read of an index, with its arguments.
    Index(Indexed, Vec<Value>),
    /// A number for the key of a new object of this kind.
    Draw(Name),
}

const FORMS: &str = "`builtin:size KIND.FIELD`, `builtin:value KIND.FIELD`, `builtin:exists KIND`, `builtin:keys KIND`, `builtin:append KIND.FIELD` or `builtin:add KIND.FIELD`";

impl Builtin {
    /// Parses the body of a declared operation.
    ///
    /// # Errors
    ///
    /// When it is no such body, or fits neither the declaration nor the objects.
    pub fn parse(operation: &StoreOperation, body: &str, layout: &Layout) -> Result<Self, String> {
        let words: Vec<&str> = body.split_whitespace().collect();
        let (verb, target) = match words[..] {
            [verb, target] => (verb, Some(target)),
            [verb] => (verb, None),
            _ => return Err(format!("expected {FORMS}, found `{body}`")),
        };
        let verb = match verb {
            "builtin:size" => Verb::Size,
            "builtin:value" => Verb::Value,
            "builtin:exists" => Verb::Exists,
            "builtin:keys" => Verb::Keys,
            "builtin:append" => Verb::Append,
            "builtin:add" => Verb::Add,
            _ => return Err(format!("expected {FORMS}, found `{body}`")),
        };
        let is_command = matches!(verb, Verb::Append | Verb::Add);
        if is_command != operation.is_command {
            let (is, declared) =
                if is_command { ("command", "query") } else { ("query", "command") };
            return Err(format!("`{body}` is a {is}, but is declared as a {declared}"));
        }
        let (kind, field) = match target {
            Some(target) => parse_target(verb, target, layout)?,
            None => infer_target(verb, operation, layout)?,
        };
        let arity = operation.parameters.len();
        let builtin = Self { verb, kind, field, arity, index: None };
        builtin.check_parameters(operation, layout)?;
        Ok(builtin)
    }

    /// Creates the query that reads an index.
    ///
    /// # Errors
    ///
    /// When its object or one of its fields does not live here.
    pub fn of_index(
        operation: &StoreOperation,
        read: &IndexRead,
        layout: &Layout,
    ) -> Result<Self, String> {
        let index = Some(Indexed::new(read, layout)?);
        let (kind, arity) = (read.object.clone(), operation.parameters.len());
        Ok(Self { verb: Verb::Keys, kind, field: 0, arity, index })
    }

    /// Creates the query that draws keys for a kind of object.
    ///
    /// # Errors
    ///
    /// When the object does not live here.
    pub fn of_draw(
        operation: &StoreOperation,
        kind: &Name,
        layout: &Layout,
    ) -> Result<Self, String> {
        layout.kind(kind)?;
        let arity = operation.parameters.len();
        Ok(Self { verb: Verb::Draw, kind: kind.clone(), field: 0, arity, index: None })
    }

    /// Returns the index that it reads.
    pub fn index(&self) -> Option<&Indexed> {
        self.index.as_ref()
    }

    fn check_parameters(&self, operation: &StoreOperation, layout: &Layout) -> Result<(), String> {
        let kind = layout.kind(&self.kind)?;
        let mut wanted = match self.verb {
            Verb::Keys => vec![],
            _ => vec![kind.key_type.clone()],
        };
        match self.verb {
            Verb::Add => wanted.push(Type::Int),
            Verb::Append => {
                if let FieldType::Log(inner) = &kind.fields[usize::from(self.field)].field_type {
                    wanted.push(inner.clone());
                }
            }
            _ => {}
        }
        let given: Vec<&Type> = operation.parameters.iter().map(|(_, t)| t).collect();
        let fits = given.len() == wanted.len()
            && given.iter().zip(&wanted).enumerate().all(|(index, (given, wanted))| {
                *given == wanted || (index == 0 && **given == Type::Ref(self.kind.clone()))
            });
        if fits {
            return Ok(());
        }
        let show = |types: Vec<String>| format!("({})", types.join(", "));
        Err(format!(
            "the body takes {}, but the declaration says {}",
            show(wanted.iter().map(ToString::to_string).collect()),
            show(given.iter().map(ToString::to_string).collect())
        ))
    }

    /// Returns the question of a query with these arguments.
    ///
    /// # Errors
    ///
    /// When it is a command, or the arguments are too few.
    pub fn question(&self, arguments: &[Value], layout: &Layout) -> Result<Question, String> {
        self.check_arity(arguments)?;
        if let Some(index) = &self.index {
            return Ok(Question::Index(index.clone(), arguments.to_vec()));
        }
        if self.verb == Verb::Draw {
            return Ok(Question::Draw(self.kind.clone()));
        }
        if self.verb == Verb::Keys {
            return Ok(Question::Keys(self.kind.clone()));
        }
        let object = self.object(arguments)?;
        if self.verb == Verb::Exists {
            return Ok(Question::Read(Read::Exists(object)));
        }
        let address = self.address(object);
        let field = &layout.kind(&self.kind)?.fields[usize::from(self.field)];
        let shape = Shape::of(&field.field_type);
        Ok(Question::Read(match (self.verb, shape) {
            (Verb::Size, Shape::Set) => Read::SetSize(address),
            (Verb::Size, Shape::Map) => Read::MapSize(address),
            (Verb::Size, Shape::Log) => Read::LogSize(address),
            (Verb::Size | Verb::Value, Shape::Counter) => Read::Counter(address),
            (Verb::Value, Shape::Register) => Read::Register(address),
            (Verb::Value, Shape::Set) => Read::Elements(address),
            (Verb::Value, Shape::Log) => Read::LogLast(address, u64::MAX),
            _ => return Err("is a command, not a query".into()),
        }))
    }

    /// Returns the result of a query, from the answer to its read.
    pub fn result(&self, data: Data, layout: &Layout) -> Value {
        let int = |value: i128| {
            let clamped = value.clamp(i64::MIN.into(), i64::MAX.into());
            Value::Int(i64::try_from(clamped).expect("clamped to the ends of i64"))
        };
        match data {
            Data::Bool(value) => Value::Bool(value),
            Data::Register(Some(value)) => value,
            Data::Register(None) => {
                layout.kinds[&self.kind].fields[usize::from(self.field)].default.clone()
            }
            Data::Counter(sum) => int(sum),
            Data::Count(count) => int(count.into()),
            Data::Values(values) => Value::list(values),
            Data::Entries(entries) => Value::list(entries.into_iter().map(|(key, _)| key)),
            Data::Result(value) => value,
            Data::Record(_) | Data::Records(_) | Data::Witnesses(_) => {
                unreachable!("no question reads the runtime's own rows")
            }
        }
    }

    /// Returns the write of a command with these arguments.
    ///
    /// # Errors
    ///
    /// When it is a query, or the arguments do not fit.
    pub fn write(&self, arguments: &[Value]) -> Result<Write, String> {
        self.check_arity(arguments)?;
        let address = self.address(self.object(arguments)?);
        match (self.verb, arguments) {
            (Verb::Append, [_, line]) => Ok(Write::Append(address, line.clone())),
            (Verb::Add, [_, Value::Int(amount)]) => Ok(Write::Add(address, (*amount).into())),
            _ => Err("is a query, not a command, or its arguments do not fit".into()),
        }
    }

    fn check_arity(&self, arguments: &[Value]) -> Result<(), String> {
        if arguments.len() == self.arity {
            return Ok(());
        }
        let (given, wanted) = (arguments.len(), self.arity);
        Err(format!("takes {wanted} arguments, not {given}"))
    }

    fn object(&self, arguments: &[Value]) -> Result<Ref, String> {
        match arguments.first() {
            Some(Value::Ref(object)) if *object.kind() == self.kind => Ok(object.clone()),
            Some(key) => Ok(Ref::new(self.kind.clone(), key.clone())),
            None => Err("needs the object's key".into()),
        }
    }

    fn address(&self, object: Ref) -> Address {
        Address { object, field: self.field }
    }
}

impl Verb {
    /// The shapes of fields that it works on; none if it works on objects.
    fn shapes(self) -> &'static [Shape] {
        match self {
            Self::Exists | Self::Keys | Self::Draw => &[],
            Self::Size => &[Shape::Set, Shape::Map, Shape::Log, Shape::Counter],
            Self::Value => &[Shape::Register, Shape::Counter, Shape::Set, Shape::Log],
            Self::Append => &[Shape::Log],
            Self::Add => &[Shape::Counter],
        }
    }
}

/// The object that the first parameter is a ref to, and its only field that fits.
fn infer_target(
    verb: Verb,
    operation: &StoreOperation,
    layout: &Layout,
) -> Result<(Name, u16), String> {
    let Some((_, Type::Ref(kind))) = operation.parameters.first() else {
        return Err(format!(
            "expected {FORMS}: only a first parameter of type `ref KIND` tells the object"
        ));
    };
    let declared = layout.kind(kind)?;
    let allowed = verb.shapes();
    if allowed.is_empty() {
        return Ok((kind.clone(), 0));
    }
    let fields = declared.fields.iter().enumerate();
    let fitting: Vec<usize> = fields
        .filter(|(_, field)| allowed.contains(&Shape::of(&field.field_type)))
        .map(|(index, _)| index)
        .collect();
    match fitting[..] {
        [only] => Ok((kind.clone(), u16::try_from(only).expect("the catalog gave it a 16-bit id"))),
        [] => Err(format!("no field of {kind} fits: expected {FORMS}")),
        _ => {
            let names: Vec<String> = fitting
                .iter()
                .map(|index| format!("{kind}.{}", declared.fields[*index].name))
                .collect();
            Err(format!("expected {FORMS}: {} would all fit", names.join(", ")))
        }
    }
}

fn parse_target(verb: Verb, target: &str, layout: &Layout) -> Result<(Name, u16), String> {
    let (kind, field) = match target.split_once('.') {
        Some((kind, field)) => (kind, Some(field)),
        None => (target, None),
    };
    let (name, declared) = layout
        .kinds
        .get_key_value(kind)
        .ok_or_else(|| format!("no object {kind} lives in this store"))?;
    let allowed = verb.shapes();
    match field {
        None if allowed.is_empty() => Ok((name.clone(), 0)),
        None => Err(format!("needs a field: `{kind}.FIELD`")),
        Some(_) if allowed.is_empty() => Err(format!("takes an object without a field: `{kind}`")),
        Some(field) => {
            let index = declared
                .fields
                .iter()
                .position(|known| *known.name == *field)
                .ok_or_else(|| format!("object {kind} has no field {field}"))?;
            let field_type = &declared.fields[index].field_type;
            if !allowed.contains(&Shape::of(field_type)) {
                return Err(format!("cannot be used on {kind}.{field}, a {field_type}"));
            }
            let index = u16::try_from(index).expect("the catalog gave it a 16-bit id");
            Ok((name.clone(), index))
        }
    }
}

/// Parses the bodies of all operations of a store.
///
/// # Errors
///
/// The first operation whose body does not fit, and why.
pub fn parse_all(
    operations: &BTreeMap<Name, StoreOperation>,
    layout: &Layout,
) -> Result<Builtins, (Name, String)> {
    let parse = |(name, operation): (&Name, &StoreOperation)| {
        let builtin = match (&operation.builtin, &operation.body) {
            (Some(BuiltinQuery::Index(read)), _) => {
                Some(Builtin::of_index(operation, read, layout))
            }
            (Some(BuiltinQuery::Draw(kind)), _) => Some(Builtin::of_draw(operation, kind, layout)),
            (None, Some(body)) => Some(Builtin::parse(operation, body, layout)),
            (None, None) => None,
        };
        let builtin = builtin.transpose().map_err(|why| (name.clone(), why))?;
        Ok((name.clone(), builtin))
    };
    operations.iter().map(parse).collect()
}

/// The operation called `name`.
///
/// # Errors
///
/// When there is none, or it has no body.
pub fn find<'a>(builtins: &'a Builtins, name: &Name) -> Result<&'a Builtin, String> {
    match builtins.get(name) {
        Some(Some(builtin)) => Ok(builtin),
        Some(None) => Err(format!(
            "operation {name} has no body; give it one in the store's binding: {FORMS}"
        )),
        None => Err(format!("no operation {name} is declared")),
    }
}

/// Says that there are more keys than `builtin:keys` gives.
pub fn too_many_keys(kind: &Name) -> String {
    format!("there are more than {KEYS_MAX} objects {kind}, too many for `builtin:keys`")
}
