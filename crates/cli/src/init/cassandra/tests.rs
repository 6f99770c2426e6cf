//! The text of files from an untrusted keyspace: with any names, the files hold the design and no more.

use mingle_model::Type;
use mingle_store_cassandra::{ColumnDescription, KeyspaceDescription, TableDescription};

use super::binding::{Cluster, binding};
use super::design::design;
use crate::init::hostile::Random;
use crate::init::text::{Next, next, program};

fn column(name: String, fits: Result<Type, String>) -> ColumnDescription {
    let cql_type = fits.as_ref().map_or_else(Clone::clone, ToString::to_string);
    ColumnDescription { name, cql_type, fits, key_obstacle: None }
}

fn table(name: String, columns: Vec<ColumnDescription>, clustering: usize) -> TableDescription {
    let names = |columns: &[ColumnDescription]| columns.iter().map(|it| it.name.clone()).collect();
    TableDescription {
        name,
        partition_key: names(&columns[..1]),
        clustering_key: names(&columns[1..=clustering]),
        columns,
        time_to_live_s: 7,
        indexes: Vec::new(),
        obstacle: None,
    }
}

/// An object with a column that is left out and an index, a map of it, and a table that is left out.
fn keyspace(random: &mut Random) -> KeyspaceDescription {
    let key = random.name("mail");
    let odd = random.name("frozen<odd>");
    let text = |name: String| column(name, Ok(Type::String));
    let mut item = table(
        random.name("items"),
        vec![text(key.clone()), text(random.name("title")), column(random.name("shape"), Err(odd))],
        0,
    );
    item.indexes.push((random.name("index"), random.name("values(title)")));
    let parts =
        vec![text(key), column(random.name("day"), Ok(Type::Date)), text(random.name("note"))];
    let notes = table(random.name("notes"), parts, 1);
    let parts = ["a", "b", "c"].map(|name| text(random.name(name)));
    let loose = table(random.name("loose"), parts.into(), 2);
    KeyspaceDescription {
        datacenters: vec![random.name("dc")],
        replication: [(random.name("dc"), 3)].into(),
        tables: vec![item, notes, loose],
        views: vec![random.name("view")],
    }
}

#[test]
fn hostile_names_add_nothing() {
    let mut random = Random(3);
    for round in 0..2_000 {
        let found = keyspace(&mut random);
        let name = random.name("ks");
        let design = design("shop", &name, &found);
        assert_eq!((design.objects.len(), design.left_out.len()), (1, 2), "{found:?}");
        assert_eq!(design.objects[0].collections.len(), 1, "{found:?}");
        let text = program(&design);
        let checked = mingle_lang::check(&*text);
        assert!(!checked.has_errors(), "round {round}: {:?}\n{text}", checked.diagnostics);
        let compiled = checked.program.as_ref().expect("a program");
        assert_eq!(compiled.checked.objects.len(), 1, "{text}");
        assert!(compiled.plans.iter().all(|plan| plan.name.starts_with("find_")), "{text}");
        let is_odd = |c: char| c.is_control() && c != '\n';
        assert!(!text.contains(is_odd) && !text.contains(['\u{2028}', '\u{202e}']), "{text:?}");

        let cluster = Cluster {
            datacenters: found.datacenters.clone(),
            replication: found.replication.clone(),
            ..Cluster::default()
        };
        let bound: toml::Table = binding(&design, &cluster).parse().expect("it is TOML");
        let store = bound["stores"]["shop"].as_table().expect("a store");
        assert_eq!((bound.len(), store.len()), (1, 5), "{store:?}");
        let copies = store["replication"].as_table().expect("copies");
        assert_eq!(copies.keys().collect::<Vec<_>>(), found.replication.keys().collect::<Vec<_>>());
        let objects = store["objects"].as_table().expect("objects");
        let [object] = objects.values().collect::<Vec<_>>()[..] else { panic!("{objects:?}") };
        let tables = [
            &object["table"],
            &object["fields"].as_table().expect("fields").values().next().expect("a field")["table"],
        ];
        let expected = [0, 1].map(|at| format!("{name}.{}", found.tables[at].name));
        assert_eq!(
            tables.map(|table| table.as_str().expect("a text")),
            expected.each_ref().map(String::as_str)
        );

        let after = Next { effects: String::new(), commands: Vec::new(), variable: None };
        let said = next(&design, "shop.mingle", &after);
        assert!(!said.contains(is_odd), "{said:?}");
    }
}
