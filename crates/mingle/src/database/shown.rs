//! Results of calls and fields of objects as JSON.

use std::fmt::Write as _;

use mingle_lang::Program;
use mingle_model::{FieldType, ObjectType, Ref, json};
use mingle_runtime::{CallReport, Error, Session};
use mingle_store::{Address, Data, Listing, Read};
use serde_json::{Map, Value as Json};

use super::Database;

impl Database {
    /// The result of a call as JSON; null if there is none.
    pub fn result_json(&self, transaction: &str, report: &CallReport) -> Json {
        let result_type = self.program().plan(transaction).and_then(|plan| plan.result.clone());
        match (&report.result, result_type) {
            (Some(value), Some(result_type)) => {
                json::to_json(self.program().schema(), value, &result_type)
            }
            _ => Json::Null,
        }
    }

    /// The result of a call as JSON text, which rounds no number of a `json`; `null` if there is none.
    ///
    /// # Examples
    ///
    /// ```
    /// use mingle::{Binding, Database};
    ///
    /// # tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(async {
    /// let text = "store notes: causal; transaction echo(found: json) -> json { return found; }";
    /// let program = mingle::compile(text).unwrap();
    /// let database = Database::open(program, &Binding::default(), None).await.unwrap();
    /// let arguments = database.arguments("echo", [("found", "1e22")]).unwrap();
    /// let report = database.call("echo", arguments, Default::default()).await.unwrap();
    /// assert_eq!(database.result_text("echo", &report), "10000000000000000000000");
    /// # });
    /// ```
    pub fn result_text(&self, transaction: &str, report: &CallReport) -> String {
        let result_type = self.program().plan(transaction).and_then(|plan| plan.result.clone());
        match (&report.result, result_type) {
            (Some(value), Some(result_type)) => {
                json::to_text(self.program().schema(), value, &result_type)
            }
            _ => "null".to_owned(),
        }
    }

    /// An object's fields as JSON; null if the object does not exist. A collection is cut to its first
    /// `limit` elements, a log to its last `limit`.
    ///
    /// # Errors
    ///
    /// When its store fails.
    pub async fn show(&self, object: &Ref, session: &Session, limit: usize) -> Result<Json, Error> {
        let (exists, fields) = self.show_fields(object, session, limit).await?;
        Ok(if exists { Json::Object(fields) } else { Json::Null })
    }

    /// Returns true if an object exists, and its fields as JSON: the defaults if it does not.
    ///
    /// # Errors
    ///
    /// When the object's store fails.
    ///
    /// # Panics
    ///
    /// When the program has no such kind of object.
    pub async fn show_fields(
        &self,
        object: &Ref,
        session: &Session,
        limit: usize,
    ) -> Result<(bool, Map<String, Json>), Error> {
        let (exists, data) = self.read_all(object, session, limit).await?;
        let program = self.program();
        let (schema, declared) = (program.schema(), declared_of(program, object));
        let mut shown = Map::new();
        shown.insert(
            declared.key_name.to_string(),
            json::to_json(schema, object.key(), &declared.key_type),
        );
        for (field, data) in declared.fields.iter().zip(data) {
            let shown_field = field_json(program, declared, &field.name, data, limit);
            shown.insert(field.name.to_string(), shown_field);
        }
        Ok((exists, shown))
    }

    /// An object's fields as JSON text, which rounds no number of a `json`; none if the object does not exist. A
    /// collection is cut as in [`Database::show`].
    ///
    /// # Errors
    ///
    /// When the object's store fails.
    ///
    /// # Panics
    ///
    /// When the program has no such kind of object.
    pub async fn show_text(
        &self,
        object: &Ref,
        session: &Session,
        limit: usize,
    ) -> Result<Option<String>, Error> {
        let (exists, data) = self.read_all(object, session, limit).await?;
        if !exists {
            return Ok(None);
        }
        let mut text = String::new();
        self.write_object(object, data, limit, &mut text);
        Ok(Some(text))
    }

    /// Appends an object's fields as JSON text.
    fn write_object(&self, object: &Ref, data: Vec<Data>, limit: usize, text: &mut String) {
        let program = self.program();
        let (schema, declared) = (program.schema(), declared_of(program, object));
        // Writing to a text cannot fail.
        let _ = write!(text, "{{{}:", Json::from(&*declared.key_name));
        json::write(schema, object.key(), &declared.key_type, text);
        for (field, data) in declared.fields.iter().zip(data) {
            let _ = write!(text, ",{}:", Json::from(&*field.name));
            write_field(program, declared, &field.name, data, limit, text);
        }
        text.push('}');
    }

    /// A page of the objects of a kind as JSON text: `{"objects": [{…}, …], "next": "…"}`, where `next` is the cursor
    /// of the next page, or null. Each collection is cut as in [`Database::show`]. An object that is deleted while the
    /// page is read is left out.
    ///
    /// # Errors
    ///
    /// When the store fails, cannot list its objects, or the cursor is none of its own.
    ///
    /// # Panics
    ///
    /// When the program has no such kind of object.
    ///
    /// # Examples
    ///
    /// ```
    /// use mingle::{Binding, Database, Listing, Session};
    ///
    /// # tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(async {
    /// let text = "store notes: linearizable; object Note in notes { key id: int; text: string; }
    ///     transaction add(id: int) { put Note { id: id, text: \"hi\" }; }";
    /// let database = Database::open(mingle::compile(text).unwrap(), &Binding::default(), None).await.unwrap();
    /// for id in ["1", "2"] {
    ///     let arguments = database.arguments("add", [("id", id)]).unwrap();
    ///     database.call("add", arguments, Session::default()).await.unwrap();
    /// }
    /// let first = Listing { kind: "Note".into(), after: None, most: 1 };
    /// let page = database.list_text(&first, &Session::default(), 3).await.unwrap();
    /// assert!(page.starts_with(r#"{"objects":[{"id":1,"text":"hi"}],"next":""#));
    /// # });
    /// ```
    pub async fn list_text(
        &self,
        listing: &Listing,
        session: &Session,
        limit: usize,
    ) -> Result<String, Error> {
        let store = self.store_of(&listing.kind);
        let listed = self.runtime.list(store, session, listing).await?;
        let found = self.read_many(&listed.objects, session, limit).await?;
        let mut text = "{\"objects\":[".to_owned();
        let mut separator = "";
        for (object, (exists, data)) in listed.objects.iter().zip(found) {
            if exists {
                text.push_str(std::mem::replace(&mut separator, ","));
                self.write_object(object, data, limit, &mut text);
            }
        }
        // Writing to a text cannot fail.
        let _ = write!(text, "],\"next\":{}}}", Json::from(listed.next));
        Ok(text)
    }

    /// Reads an object's fields from its store, and whether the object exists.
    async fn read_all(
        &self,
        object: &Ref,
        session: &Session,
        limit: usize,
    ) -> Result<(bool, Vec<Data>), Error> {
        let found = self.read_many(std::slice::from_ref(object), session, limit).await?;
        Ok(found.into_iter().next().unwrap_or_default())
    }

    /// Does the same for several objects of one kind, in one round trip.
    async fn read_many(
        &self,
        objects: &[Ref],
        session: &Session,
        limit: usize,
    ) -> Result<Vec<(bool, Vec<Data>)>, Error> {
        let Some(first) = objects.first() else { return Ok(Vec::new()) };
        let declared = declared_of(self.program(), first);
        let mut reads = Vec::new();
        for object in objects {
            reads.push(Read::Exists(object.clone()));
            reads.extend(declared.fields.iter().enumerate().map(|(index, field)| {
                let address = Address { object: object.clone(), field: index as u16 };
                match &field.field_type {
                    FieldType::Register(_) => Read::Register(address),
                    FieldType::Counter => Read::Counter(address),
                    FieldType::Set(_) => Read::Elements(address),
                    FieldType::Map(..) => Read::Entries(address),
                    FieldType::Log(_) => Read::LogLast(address, limit as u64),
                }
            }));
        }
        let answers = self.runtime.read(self.store_of(first.kind()), session, &reads).await?;
        let mut answers = answers.into_iter();
        let of_one = |_: &Ref| {
            let exists = matches!(answers.next(), Some(Data::Bool(true)));
            (exists, answers.by_ref().take(declared.fields.len()).collect())
        };
        Ok(objects.iter().map(of_one).collect())
    }

    /// Returns the store of a kind of object.
    fn store_of(&self, kind: &str) -> mingle_lang::hir::StoreId {
        let objects = &self.program().checked.objects;
        let found = objects.iter().find(|known| *known.declared.name == *kind);
        found.expect("every object of the schema is one of the program").store
    }
}

/// Returns the fields of an object that does not exist, as JSON: the key and the defaults.
///
/// # Panics
///
/// When the program has no such kind of object.
///
/// # Examples
///
/// ```
/// use mingle_model::{Ref, Value};
///
/// let text = "store s: causal; object O in s { key k: int; n: counter; tags: set<string>; }";
/// let program = mingle::compile(text).unwrap();
/// let fields = mingle::database::absent_fields(&program, &Ref::new("O", Value::Int(7)));
/// assert_eq!(serde_json::Value::from(fields).to_string(), r#"{"k":7,"n":0,"tags":[]}"#);
/// ```
pub fn absent_fields(program: &Program, object: &Ref) -> Map<String, Json> {
    let (schema, declared) = (program.schema(), declared_of(program, object));
    let key = json::to_json(schema, object.key(), &declared.key_type);
    let mut fields = Map::from_iter([(declared.key_name.to_string(), key)]);
    for field in &declared.fields {
        let none = match &field.field_type {
            FieldType::Register(_) => Data::Register(None),
            FieldType::Counter => Data::Counter(0),
            FieldType::Set(_) | FieldType::Log(_) => Data::Values(Vec::new()),
            FieldType::Map(..) => Data::Entries(Vec::new()),
        };
        fields.insert(field.name.to_string(), field_json(program, declared, &field.name, none, 0));
    }
    fields
}

fn field_json(
    program: &Program,
    declared: &ObjectType,
    name: &str,
    data: Data,
    limit: usize,
) -> Json {
    let schema = program.schema();
    let field = &declared.fields[declared.field_index(name).expect("the field was listed")];
    match (&field.field_type, data) {
        (FieldType::Register(value_type), Data::Register(value)) => {
            json::to_json(schema, value.as_ref().unwrap_or(&field.default), value_type)
        }
        (FieldType::Counter, Data::Counter(sum)) => {
            let objects = &program.checked.objects;
            let kind = objects.iter().find(|known| known.declared.name == declared.name);
            let kind = kind.expect("every object of the schema is one of the program");
            let at = declared.field_index(name).expect("the field was listed");
            json::int_to_json(kind.counted(at as u16, sum))
        }
        (FieldType::Set(inner) | FieldType::Log(inner), Data::Values(values)) => Json::Array(
            values.iter().take(limit).map(|value| json::to_json(schema, value, inner)).collect(),
        ),
        (FieldType::Map(key, value), Data::Entries(entries)) => {
            let shown = entries.len().min(limit);
            json::entries_to_json(schema, &entries[..shown], key, value)
        }
        (_, other) => unreachable!("{other:?} is no answer to a read of {name}"),
    }
}

/// Appends a field as JSON text.
fn write_field(
    program: &Program,
    declared: &ObjectType,
    name: &str,
    data: Data,
    limit: usize,
    text: &mut String,
) {
    let schema = program.schema();
    let field = &declared.fields[declared.field_index(name).expect("the field was listed")];
    match (&field.field_type, &data) {
        (FieldType::Register(value_type), Data::Register(value)) => {
            json::write(schema, value.as_ref().unwrap_or(&field.default), value_type, text);
        }
        (FieldType::Set(inner) | FieldType::Log(inner), Data::Values(values)) => {
            text.push('[');
            for (index, value) in values.iter().take(limit).enumerate() {
                if index > 0 {
                    text.push(',');
                }
                json::write(schema, value, inner, text);
            }
            text.push(']');
        }
        (FieldType::Map(key, value), Data::Entries(entries)) => {
            let shown = &entries[..entries.len().min(limit)];
            text.push_str(&json::entries_to_text(schema, shown, key, value));
        }
        _ => text.push_str(&field_json(program, declared, name, data, limit).to_string()),
    }
}

/// Returns the declaration of an object's kind.
fn declared_of<'p>(program: &'p Program, object: &Ref) -> &'p ObjectType {
    let found = program.schema().objects.get(object.kind());
    found.expect("the object was found in the schema")
}
