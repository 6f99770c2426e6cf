//! Objects for the tables of a database.

use std::collections::{BTreeMap, BTreeSet};

use mingle_store_postgres::{ColumnDescription, ForeignKey, Reach, TableDescription};

use super::enums::{Enum, Enums};
use super::indexes::{Index, indexes};
use super::join;
use super::names::{Taken, identifier, of_object};

/// The design of a program.
#[derive(Clone, Debug, Default)]
pub struct Design {
    /// The store.
    pub store: String,
    /// The schema of the tables.
    pub schema: String,
    /// The enumerations, in order of their names.
    pub enums: Vec<Enum>,
    /// The objects, in order of their tables' names.
    pub objects: Vec<Object>,
    /// The tables that are left out.
    pub left_out: Vec<LeftOut>,
}

/// A part of a schema that has no place in the program.
#[derive(Clone, Debug)]
pub struct LeftOut {
    /// A column, or the name of a table or view.
    pub name: String,
    /// The type of the column, or the kind of the relation.
    pub kind: String,
    /// The reason.
    pub why: String,
}

/// An object that is mapped to a table.
#[derive(Clone, Debug)]
pub struct Object {
    /// Its name.
    pub name: String,
    /// Its table.
    pub table: String,
    /// Its key.
    pub key: Key,
    /// Its registers.
    pub fields: Vec<Field>,
    /// Its sets and maps.
    pub collections: Vec<Collection>,
    /// Its indexes.
    pub indexes: Vec<Index>,
    /// The columns of its table that are left out.
    pub left_out: Vec<LeftOut>,
    /// Remarks on its table: a line each.
    pub remarks: Vec<String>,
}

/// The key of an object.
#[derive(Clone, Debug)]
pub struct Key {
    /// Its name.
    pub name: String,
    /// Its type.
    pub declared: String,
    /// Its columns. If there are several, its type is a struct of them.
    pub parts: Vec<Field>,
}

/// A register or part of a key, in a column.
#[derive(Clone, Debug)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Its column.
    pub column: String,
    /// Its type, `option` included.
    pub declared: String,
    /// True if only the database can set it.
    pub is_read_only: bool,
}

/// A set or map, in a table of its own.
#[derive(Clone, Debug)]
pub struct Collection {
    /// Its name.
    pub name: String,
    /// Its type.
    pub declared: String,
    /// The table.
    pub table: String,
    /// The column of the object's key.
    pub key: String,
    /// The column of a map's keys; none for a set.
    pub entry: Option<String>,
    /// The column of the elements or values.
    pub value: String,
    /// A remark on it.
    pub remark: Option<String>,
}

/// The object that a foreign key of one column refers to, by schema, table and column.
type Targets = BTreeMap<(String, String, String), String>;

/// The tables, and the objects among them.
pub struct Known<'a> {
    schema: &'a str,
    /// The objects, by schema, table and column of the key.
    targets: Targets,
    /// The tables whose keys stay plain: objects whose keys are refs to each other must not form a
    /// cycle.
    plain: BTreeSet<String>,
    /// The tables whose keys take capital letters for small ones.
    folding: BTreeSet<String>,
    /// The enumerations of the columns that list their values.
    enums: Enums,
}

impl Known<'_> {
    /// Returns the object that a column refers to, if the referenced table is an object whose key is compared like the
    /// column.
    pub fn object(&self, table: &TableDescription, column: &str) -> Option<&str> {
        let key = table.foreign_keys.iter().find(|key| is_over(key, column))?;
        let described = table.columns.iter().find(|described| described.name == column)?;
        if described.key_obstacle.is_some()
            || described.folds_case != self.folding.contains(&key.table)
        {
            return None;
        }
        let target = (key.schema.clone(), key.table.clone(), key.target[0].clone());
        self.targets.get(&target).map(String::as_str)
    }

    /// Returns the type of a column's values, without `option`; or the reason why it has none.
    pub fn declared(
        &self,
        table: &TableDescription,
        column: &ColumnDescription,
    ) -> Result<String, String> {
        let plain = self.enums.declared(table, column, &column.fits.clone()?.to_string());
        let is_own_key = table.key.len() == 1 && table.key[0] == column.name;
        match self.object(table, &column.name) {
            Some(_) if is_own_key && self.plain.contains(&table.name) => Ok(plain),
            Some(object) => Ok(format!("ref {object}")),
            None => Ok(plain),
        }
    }
}

fn is_over(key: &ForeignKey, column: &str) -> bool {
    key.columns.len() == 1 && key.columns[0] == column
}

/// Returns the reason why a table is not an object; none if it is an object or a collection.
fn unfit(table: &TableDescription) -> Option<LeftOut> {
    let left_out =
        |why: String| Some(LeftOut { name: table.name.clone(), kind: table.kind.to_owned(), why });
    if table.name.contains('.') {
        return left_out("a binding reads the dot in its name as the end of a schema's".into());
    }
    if table.kind != "table" {
        return left_out("only tables are mapped; a declared `query` can read it".into());
    }
    if let Some(why) = &table.obstacle {
        return left_out(why.clone());
    }
    match &table.key[..] {
        [] => left_out(
            "it has no primary key and no unique index without nulls, so its rows have no names; a declared `query` \
             or `command` can use it, and a column such as `id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY` would \
             make it an object"
                .into(),
        ),
        [key] => key_obstacle(table, key).and_then(left_out),
        several => {
            let why = several.iter().find_map(|key| key_obstacle(table, key));
            left_out(why.unwrap_or_else(|| {
                format!("its key is of several columns ({})", several.join(", "))
            }))
        }
    }
}

/// Returns the reason why a column cannot be part of its table's key; none if it can.
fn key_obstacle(table: &TableDescription, key: &str) -> Option<String> {
    let column = table.columns.iter().find(|column| column.name == key)?;
    let why = column.fits.as_ref().err().or(column.key_obstacle.as_ref())?;
    Some(format!("its key {key} is {}: {why}", column.sql_type))
}

/// True if a table's rows are objects whose keys are structs, unless it is a join table.
fn has_struct_key(table: &TableDescription) -> bool {
    let fits = |name: &String| key_obstacle(table, name).is_none();
    table.kind == "table" && table.key.len() > 1 && table.key.iter().all(fits)
}

/// Returns the tables with a key of one column that takes capital letters for small ones.
fn folding(tables: &[TableDescription]) -> BTreeSet<String> {
    let folds = |table: &&TableDescription| {
        let column = table.columns.iter().find(|column| table.key == [column.name.as_str()]);
        column.is_some_and(|column| column.folds_case)
    };
    tables.iter().filter(folds).map(|table| table.name.clone()).collect()
}

/// Designs the objects for tables.
pub fn design(store: &str, schema: &str, tables: &[TableDescription]) -> Design {
    let mut taken = Taken::default();
    taken.take(store.to_owned());
    let mut known = Known {
        schema,
        targets: Targets::new(),
        plain: BTreeSet::new(),
        folding: folding(tables),
        enums: Enums::default(),
    };
    for table in tables.iter().filter(|table| unfit(table).is_none()) {
        let target = (schema.to_owned(), table.name.clone(), table.key[0].clone());
        known.targets.insert(target, taken.take(of_object(&table.name)));
    }
    known.enums = Enums::of(tables, &mut taken);
    known.plain = circles(tables, &known);
    let mut design =
        Design { store: store.to_owned(), schema: schema.to_owned(), ..Design::default() };
    for table in tables.iter().filter(|table| unfit(table).is_none()) {
        let target = (schema.to_owned(), table.name.clone(), table.key[0].clone());
        design.objects.push(object(table, &known, known.targets[&target].clone()));
    }
    for table in tables {
        let Some(why) = unfit(table) else { continue };
        if table.name.contains('.') || table.obstacle.is_some() {
            design.left_out.push(why);
            continue;
        }
        match join::collections(table, &known) {
            Some(join) => {
                let owner = design.objects.iter_mut().find(|object| object.name == join.owner);
                owner.expect("the owner is an object").add(join);
            }
            None if has_struct_key(table) => {
                let name = taken.take(of_object(&table.name));
                let mut object = object(table, &known, name);
                object.key.declared = taken.take(object.key.declared);
                design.objects.push(object);
            }
            None => design.left_out.push(why),
        }
    }
    design.objects.sort_by(|a, b| a.table.cmp(&b.table));
    for object in &mut design.objects {
        let table = tables.iter().find(|table| table.name == object.table);
        object.note_reaches(schema, table.map_or(&[], |table| &table.reaches));
    }
    let types = design.objects.iter().flat_map(|object| {
        let fields = object.fields.iter().chain(&object.key.parts).map(|field| &*field.declared);
        fields.chain(object.collections.iter().map(|collection| &*collection.declared))
    });
    design.enums = known.enums.used(types);
    design
}

/// Returns the tables whose keys refer to each other in a cycle: their keys stay plain.
fn circles(tables: &[TableDescription], known: &Known<'_>) -> BTreeSet<String> {
    let next: BTreeMap<&str, &str> = tables
        .iter()
        .filter(|table| table.key.len() == 1 && known.object(table, &table.key[0]).is_some())
        .filter_map(|table| {
            let key = table.foreign_keys.iter().find(|key| is_over(key, &table.key[0]))?;
            (key.schema == known.schema).then_some((&*table.name, &*key.table))
        })
        .collect();
    let is_in_circle = |start: &&str| {
        let mut at = *start;
        for _ in 0..=next.len() {
            match next.get(at) {
                Some(to) if *to == *start => return true,
                Some(to) => at = to,
                None => return false,
            }
        }
        false
    };
    next.keys().filter(|start| is_in_circle(start)).map(|table| (*table).to_owned()).collect()
}

fn object(table: &TableDescription, known: &Known<'_>, name: String) -> Object {
    let is_struct = table.key.len() > 1;
    let mut taken = Taken::default();
    let key_name = is_struct.then(|| taken.take("key".into()));
    let (mut parts, mut fields, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
    for column in &table.columns {
        let column_name = &column.name;
        match known.declared(table, column) {
            Err(why) => {
                let is_needed = column.is_not_null && !column.has_default;
                let then = if is_needed {
                    "; a new row needs it, so none can be made unless a trigger fills it"
                } else {
                    ""
                };
                left_out.push(LeftOut {
                    name: column_name.clone(),
                    kind: column.sql_type.clone(),
                    why: format!("{why}{then}"),
                });
            }
            Ok(declared) => {
                let is_key = table.key.contains(column_name);
                let is_option = !column.is_not_null && !is_key;
                let field = Field {
                    name: taken.take(identifier(column_name, "column")),
                    column: column_name.clone(),
                    declared: if is_option { format!("option<{declared}>") } else { declared },
                    is_read_only: column.is_read_only,
                };
                if is_key { parts.push(field) } else { fields.push(field) }
            }
        }
    }
    let place = |part: &Field| table.key.iter().position(|column| *column == part.column);
    parts.sort_by_key(place);
    let key = match key_name {
        Some(key_name) => Key { name: key_name, declared: format!("{name}Key"), parts },
        None => {
            let part = parts.first().expect("the column of the key fits");
            Key { name: part.name.clone(), declared: part.declared.clone(), parts }
        }
    };
    let indexes = indexes(table, &fields);
    let (table, remarks) = (table.name.clone(), table.remarks.clone());
    Object { name, table, key, fields, collections: Vec::new(), indexes, left_out, remarks }
}

impl Object {
    /// Notes what the database does to other objects when one of these is deleted. The rows of an object's
    /// own collections go with it in any case.
    fn note_reaches(&mut self, schema: &str, reaches: &[Reach]) {
        let is_own = |reach: &&Reach| {
            let mut own = self.collections.iter().map(|collection| &collection.table);
            reach.schema == schema && own.any(|table| *table == reach.table)
        };
        let notes = reaches.iter().filter(|reach| !is_own(reach));
        let notes =
            notes.map(|reach| format!("when a row is deleted, the database {}", reach.text));
        self.remarks.extend(notes);
    }

    /// Adds the sets and maps of a join table.
    fn add(&mut self, join: join::Join) {
        let mut taken = Taken::default();
        taken.take(self.key.name.clone());
        for name in self.fields.iter().map(|field| &field.name) {
            taken.take(name.clone());
        }
        for name in self.collections.iter().map(|collection| &collection.name) {
            taken.take(name.clone());
        }
        for mut collection in join.collections {
            collection.name = taken.take(identifier(&collection.name, "rows"));
            self.collections.push(collection);
        }
    }
}
