//! Objects for the tables of a database.

use std::collections::{BTreeMap, BTreeSet};

use mingle_store_postgres::{ColumnDescription, ForeignKey, Reach, TableDescription};

use super::design::Kind;
pub use super::design::{Collection, Design, Field, Key, LeftOut, Object};
use super::enums::{Enum, Enums};
use super::indexes::{Index, indexes};
use super::join;
use super::names::{Taken, identifier, of_object};
use super::refs::Refs;

/// The object that a foreign key of one column refers to, by schema, table and column.
type Targets = BTreeMap<(String, String, String), String>;

/// The tables, and the objects among them.
pub struct Known<'a> {
    schema: &'a str,
    /// The objects whose keys are structs, with their tables.
    structs: Vec<(&'a TableDescription, String)>,
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
        let plain = self.plain(table, column)?;
        let is_own_key = table.key.len() == 1 && table.key[0] == column.name;
        match self.object(table, &column.name) {
            Some(_) if is_own_key && self.plain.contains(&table.name) => Ok(plain),
            Some(object) => Ok(format!("ref {object}")),
            None => Ok(plain),
        }
    }

    /// Returns the type of a column's values, without `option` and `ref`; or the reason why it has none.
    pub fn plain(
        &self,
        table: &TableDescription,
        column: &ColumnDescription,
    ) -> Result<String, String> {
        Ok(self.enums.declared(table, column, &column.fits.clone()?.to_string()))
    }

    /// Returns the object in a table whose key is a struct, with the table.
    pub fn of_struct(&self, schema: &str, table: &str) -> Option<(&TableDescription, &str)> {
        let mut structs = self.structs.iter().filter(|_| schema == self.schema);
        let (table, object) = structs.find(|(found, _)| found.name == table)?;
        Some((table, object))
    }
}

impl<'a> Known<'a> {
    /// Finds the objects whose keys are structs, and returns the sets and maps of join tables, by table. What others
    /// refer to has to be an object.
    fn find_structs(
        &mut self,
        tables: &'a [TableDescription],
        taken: &mut Taken,
    ) -> BTreeMap<&'a str, join::Join> {
        let mut joins = BTreeMap::new();
        for table in tables {
            if unfit(table).is_none() || table.name.contains('.') || table.obstacle.is_some() {
                continue;
            }
            let is_object = has_struct_key(table);
            let join = join::collections(table, self)
                .filter(|_| !is_object || !is_referred_to(self.schema, tables, &table.name));
            match join {
                Some(join) => drop(joins.insert(&*table.name, join)),
                None if is_object => {
                    self.structs.push((table, taken.take(of_object(&table.name))));
                }
                None => {}
            }
        }
        joins
    }
}

/// True if a foreign key of several columns refers to the table.
fn is_referred_to(schema: &str, tables: &[TableDescription], name: &str) -> bool {
    let mut keys = tables.iter().flat_map(|table| &table.foreign_keys);
    keys.any(|key| key.columns.len() > 1 && key.schema == schema && key.table == name)
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
        structs: Vec::new(),
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
    let mut joins = known.find_structs(tables, &mut taken);
    let mut design = Design {
        store: store.to_owned(),
        kind: Kind::Postgres,
        schema: schema.to_owned(),
        ..Design::default()
    };
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
        if let Some(join) = joins.remove(&*table.name) {
            let owner = design.objects.iter_mut().find(|object| object.name == join.owner);
            owner.expect("the owner is an object").add_all(join);
        } else if let Some((_, name)) = known.of_struct(schema, &table.name) {
            let mut object = object(table, &known, name.to_owned());
            object.key.declared = taken.take(object.key.declared);
            design.objects.push(object);
        } else {
            design.left_out.push(why);
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
    design.enums = known.enums.used(types).iter().map(Enum::text).collect();
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
    let refs = Refs::of(table, known, &mut taken);
    let (mut parts, mut fields, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
    for column in table.columns.iter().filter(|column| !refs.columns.contains(&column.name)) {
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
                    more: Vec::new(),
                    declared: if is_option { format!("option<{declared}>") } else { declared },
                    is_read_only: column.is_read_only,
                };
                if is_key { parts.push(field) } else { fields.push(field) }
            }
        }
    }
    fields.extend(refs.fields);
    let place = |part: &Field| table.key.iter().position(|column| *column == part.column);
    parts.sort_by_key(place);
    let key = match key_name {
        Some(key_name) => Key { name: key_name, declared: format!("{name}Key"), parts },
        None => {
            let part = parts.first().expect("the column of the key fits");
            Key { name: part.name.clone(), declared: part.declared.clone(), parts }
        }
    };
    let indexes = indexes(table, &fields).iter().map(Index::text).collect();
    Object {
        name,
        table: table.name.clone(),
        found: None,
        key,
        fields,
        collections: Vec::new(),
        indexes,
        left_out,
        remarks: [&table.remarks[..], &refs.remarks].concat(),
    }
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
    fn add_all(&mut self, join: join::Join) {
        for collection in join.collections {
            self.add(collection);
        }
    }
}
