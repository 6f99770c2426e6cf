//! A store of a folder gets another name.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use crate::support::{count_series, nth, usual, write};
use mingle_model::{Level, Origin, RowKind, Schema, TransactionId, WitnessRow};
use mingle_store::{DataStore, Session, StoreSchema, TestWorld, Write};
use mingle_store_embedded::{Embedded, EmbeddedConfig, OpenError};
use tempfile::TempDir;

/// The usual schema, in a store of this name.
fn named(store: &str) -> StoreSchema {
    let mut schema = usual(Level::Linearizable);
    let mut declared = Schema::clone(&schema.schema);
    for object in declared.objects.values_mut() {
        Arc::make_mut(object).store = store.into();
    }
    schema.schema = Arc::new(declared);
    StoreSchema { store: store.into(), ..schema }
}

fn open(world: &Arc<TestWorld>, folder: &Path, store: &str) -> Arc<dyn DataStore> {
    let config = EmbeddedConfig::in_folder(folder);
    Embedded::open(config, named(store), world.clone()).expect("it opens")
}

fn stores(folder: &Path) -> BTreeSet<String> {
    Embedded::stores(folder).expect("it can be read")
}

fn names<const N: usize>(names: [&str; N]) -> BTreeSet<String> {
    names.map(str::to_owned).into()
}

#[test]
fn what_a_store_has_goes_with_its_name() {
    let folder = TempDir::new().expect("a temporary folder");
    let (folder, world) = (folder.path(), TestWorld::new(1));
    let store = open(&world, folder, "accounts");
    world.block_on(write(&store, &Session::default(), nth(1))).expect("a commit");
    drop(store);
    drop(open(&world, folder, "other"));
    assert_eq!(stores(folder), names(["accounts", "other"]));
    for _ in 0..2 {
        let done = Embedded::rename(folder, &"accounts".into(), &"ledger".into());
        assert_eq!(done, Ok(()), "again it changes nothing");
        assert_eq!(stores(folder), names(["ledger", "other"]));
    }
    let store = open(&world, folder, "ledger");
    assert_eq!(count_series(&world, &store, &Session::default()), 1);
    drop(store);
    // The old name is free: the list has no store of that name.
    let store = open(&world, folder, "accounts");
    assert_eq!(count_series(&world, &store, &Session::default()), 0);
}

#[test]
fn a_store_that_is_in_use_or_not_finished_keeps_its_name() {
    let folder = TempDir::new().expect("a temporary folder");
    let (folder, world) = (folder.path(), TestWorld::new(1));
    let store = open(&world, folder, "accounts");
    let rename = || Embedded::rename(folder, &"accounts".into(), &"ledger".into());
    assert!(matches!(rename(), Err(OpenError::Locked { .. })), "it is open");
    let row = WitnessRow {
        object: None,
        id: TransactionId { origin: Origin(1), sequence: 1 },
        kind: RowKind::Write,
        intent: "accounts".into(),
        stores: vec!["other".into()],
        seen: [].into(),
    };
    let witness = vec![Write::Witness(row)];
    world.block_on(write(&store, &Session::default(), witness)).expect("a commit");
    drop(store);
    let error = rename().expect_err("a transaction is not finished").to_string();
    assert!(error.contains("accounts") && error.contains("mingle recover"), "{error}");
    assert_eq!(stores(folder), names(["accounts"]));
}
