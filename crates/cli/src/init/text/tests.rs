//! The text of files from an untrusted schema: with any names, the files hold the design and
//! no more.

use mingle_model::Type;
use mingle_store_postgres::{ColumnDescription, Enumeration, ForeignKey, Reach, TableDescription};

use super::{Next, next, program};
use crate::init::hostile::Random;
use crate::init::objects::design;
use crate::init::postgres::binding;

fn column(name: String, fits: Result<Type, String>) -> ColumnDescription {
    let sql_type = fits.as_ref().map_or_else(Clone::clone, ToString::to_string);
    ColumnDescription {
        name,
        sql_type,
        fits,
        enumeration: None,
        key_obstacle: None,
        folds_case: false,
        is_not_null: true,
        has_default: false,
        is_read_only: false,
    }
}

fn table(name: String, columns: Vec<ColumnDescription>, keys: usize) -> TableDescription {
    let key = columns.iter().take(keys).map(|column| column.name.clone()).collect();
    let (foreign_keys, obstacle, remarks) = (Vec::new(), None, Vec::new());
    let (indexes, reaches) = (Vec::new(), Vec::new());
    TableDescription {
        name,
        kind: "table",
        columns,
        key,
        foreign_keys,
        indexes,
        uniques: Vec::new(),
        reaches,
        obstacle,
        remarks,
    }
}

/// An object, one with a struct as its key, a join table with something left out, a table without a key.
fn tables(random: &mut Random) -> Vec<TableDescription> {
    let odd = random.name("odd type");
    let item = table(
        random.name("items"),
        vec![
            column(random.name("id"), Ok(Type::Int)),
            ColumnDescription {
                enumeration: Some(Enumeration {
                    name: Some(random.name("kind")),
                    labels: (0..3)
                        .map(|at| random.name(&format!("{at}")).replace('\0', ""))
                        .collect(),
                }),
                ..column(random.name("title"), Ok(Type::String))
            },
            column(random.name("shape"), Err(odd)),
        ],
        1,
    );
    let place = table(
        random.name("places"),
        vec![
            column(random.name("x"), Ok(Type::Int)),
            column(random.name("y"), Ok(Type::Int)),
            column(random.name("n"), Ok(Type::Int)),
        ],
        2,
    );
    let mut tags = table(
        random.name("tags"),
        vec![
            column(random.name("item"), Ok(Type::Int)),
            column(random.name("tag"), Ok(Type::String)),
        ],
        2,
    );
    let more =
        ColumnDescription { is_not_null: false, ..column(random.name("note"), Ok(Type::String)) };
    tags.columns.push(more);
    tags.foreign_keys.push(ForeignKey {
        columns: vec![tags.key[0].clone()],
        schema: "public".into(),
        table: item.name.clone(),
        target: item.key.clone(),
    });
    let mut item = item;
    item.indexes.push(vec![item.columns[1].name.clone(), item.columns[0].name.clone()]);
    item.uniques.push(vec![item.columns[1].name.clone()]);
    let text = random.name("deletes rows");
    item.reaches.push(Reach { schema: "public".into(), table: place.name.clone(), text });
    let mut place = place;
    place
        .indexes
        .extend([vec![place.columns[2].name.clone()], vec![place.columns[1].name.clone()]]);
    let loose = table(random.name("loose"), vec![column(random.name("a"), Ok(Type::Int))], 0);
    vec![item, place, tags, loose]
}

#[test]
fn hostile_names_add_nothing() {
    let mut random = Random(1);
    for round in 0..2_000 {
        let tables = tables(&mut random);
        let design = design("shop", "public", &tables);
        assert_eq!(design.objects.len(), 2, "{tables:?}");
        let text = program(&design);
        let checked = mingle_lang::check(&*text);
        assert!(!checked.has_errors(), "round {round}: {:?}\n{text}", checked.diagnostics);
        let compiled = checked.program.as_ref().expect("a program");
        assert_eq!(compiled.checked.objects.len(), 2, "{text}");
        let labels = compiled.checked.enums[0].values.iter().map(|value| value.label.to_string());
        let given = tables[0].columns[1].enumeration.as_ref().expect("it lists them");
        assert!(labels.eq(given.labels.iter().cloned()), "{text}");
        assert!(compiled.plans.iter().all(|plan| plan.name.starts_with("find_")), "{text}");
        let is_odd = |c: char| c.is_control() && c != '\n';
        assert!(!text.contains(is_odd) && !text.contains(['\u{2028}', '\u{202e}']), "{text:?}");

        let bound: toml::Table = binding(&design, "postgres://h/d").parse().expect("it is TOML");
        let store = bound["stores"]["shop"].as_table().expect("a store");
        assert_eq!((bound.len(), store.len()), (1, 3), "{store:?}");
        let objects = store["objects"].as_table().expect("objects");
        let mut found: Vec<&str> =
            objects.values().filter_map(|object| object["table"].as_str()).collect();
        let mut expected = [tables[0].name.as_str(), &tables[1].name];
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected);

        let after = Next { effects: String::new(), commands: Vec::new(), variable: None };
        let said = next(&design, "shop.mingle", &after);
        assert!(!said.contains(is_odd), "{said:?}");
    }
}

/// A binding reads `a.b` as the table `b` of the schema `a`.
#[test]
fn a_table_with_a_dot_in_its_name_is_left_out() {
    let mut random = Random(2);
    let mut tables = tables(&mut random);
    tables[1].name = "secret.places".into();
    tables[2].name = "secret.tags".into();
    let design = design("shop", "public", &tables);
    assert_eq!(design.objects.len(), 1);
    assert!(design.objects[0].collections.is_empty());
    let dotted = design.left_out.iter().filter(|part| part.name.starts_with("secret."));
    assert_eq!(dotted.count(), 2, "{:?}", design.left_out);
}
