//! A renamed store of a program: its data go with it, and it never begins empty unnoticed.

use std::path::Path;
use std::time::Duration;

use mingle::{Binding, Database, OpenError, Session, check_binding};
use mingle_model::{Ref, Value};
use mingle_store_embedded::OpenError::Locked;

const A_MOMENT: Duration = Duration::from_millis(5);

/// A program with these stores, each with objects of its own.
fn program(stores: &[&str]) -> String {
    let declared = stores.iter().map(|store| {
        format!(
            "store {store}: linearizable;
            object O_{store} in {store} {{ key k: string; n: counter; }}
            transaction add_{store}(o: ref O_{store}) -> int {{ o.n.add(1); return o.n.value(); }}\n"
        )
    });
    declared.collect::<String>().replace("O_ledger", kind(stores, "ledger").as_str())
}

/// The kind of objects of a store; it keeps its name when the store is renamed.
fn kind(stores: &[&str], store: &str) -> String {
    let is_renamed = store == "ledger" && !stores.contains(&"accounts");
    format!("O_{}", if is_renamed { "accounts" } else { store })
}

async fn open(folder: &Path, stores: &[&str], binding: &str) -> Result<Database, OpenError> {
    let program = mingle::compile(&program(stores)).unwrap_or_else(|errors| panic!("{errors}"));
    let binding = Binding::parse(binding).expect("a binding");
    loop {
        let opened = Database::open(program.clone(), &binding, Some(folder)).await;
        // Tasks of the earlier database release the folder a little later than the test does.
        match opened {
            Err(OpenError::Embedded(Locked { .. })) => tokio::time::sleep(A_MOMENT).await,
            opened => return opened,
        }
    }
}

async fn add(folder: &Path, stores: &[&str], binding: &str, store: &str) -> i64 {
    let database = open(folder, stores, binding).await.unwrap_or_else(|error| panic!("{error}"));
    let kind = kind(stores, store);
    let object = Value::Ref(Ref::new(kind.as_str(), Value::from("x")));
    let called = database.call(&format!("add_{store}"), vec![object], Session::default()).await;
    match called.expect("it is called").result {
        Some(Value::Int(found)) => found,
        other => panic!("{other:?}"),
    }
}

async fn refusal(folder: &Path, stores: &[&str], binding: &str) -> String {
    match open(folder, stores, binding).await {
        Ok(_) => panic!("{stores:?} with {binding:?} is not refused"),
        Err(error) => {
            assert!(error.is_misconfiguration(), "{error}");
            error.to_string()
        }
    }
}

const RENAMED: &str = "[stores.ledger]\nrenamed_from = \"accounts\"\n[stores.feed]";

#[tokio::test(flavor = "multi_thread")]
async fn a_renamed_store_is_refused_until_the_binding_says_so_and_then_has_its_data() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path();
    let (before, after) = (["accounts", "feed"], ["ledger", "feed"]);
    assert_eq!(add(folder, &before, "", "accounts").await, 1);
    assert_eq!(add(folder, &before, "", "feed").await, 1);

    let error = refusal(folder, &after, "").await;
    assert!(error.contains("[stores.ledger] renamed_from = \"accounts\""), "{error}");
    assert!(!folder.join("ledger.redb").exists(), "nothing was made");
    assert_eq!(add(folder, &before, "", "accounts").await, 2, "the old program goes on");

    for count in 3..5 {
        assert_eq!(add(folder, &after, RENAMED, "ledger").await, count);
    }
    assert_eq!(add(folder, &after, "", "ledger").await, 5, "the line can go");
    assert_eq!(add(folder, &after, "", "feed").await, 2);
    // The old program would begin with an empty store.
    let error = refusal(folder, &before, "").await;
    assert!(error.contains("[stores.accounts] renamed_from = \"ledger\""), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn stores_come_and_go_as_long_as_none_can_be_meant_by_another() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path();
    assert_eq!(add(folder, &["a"], "", "a").await, 1);
    assert_eq!(add(folder, &["a", "b"], "", "b").await, 1, "one more");
    assert_eq!(add(folder, &["b"], "", "b").await, 2, "one less");
    assert_eq!(add(folder, &["a", "b"], "", "a").await, 2, "and back");
    refusal(folder, &["b", "c"], "").await;
    std::fs::rename(folder.join("a.redb"), folder.join("elsewhere")).expect("it can be moved");
    assert_eq!(add(folder, &["b", "c"], "", "c").await, 1, "the other is out of the way");
}

#[tokio::test(flavor = "multi_thread")]
async fn former_names_that_make_no_sense_are_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path();
    let error = refusal(folder, &["ledger", "feed"], RENAMED).await;
    assert!(error.contains("stores.ledger.renamed_from") && error.contains("no data of accounts"));
    add(folder, &["accounts", "feed"], "", "accounts").await;
    add(folder, &["ledger", "accounts", "feed"], "", "ledger").await;
    let error = refusal(folder, &["ledger", "feed"], RENAMED).await;
    assert!(error.contains("data of both accounts and ledger"), "{error}");

    for (stores, binding, expected) in [
        (&["ledger", "accounts", "feed"][..], "[stores.accounts]", "accounts is still a store"),
        (&["ledger", "feed", "more"], "[stores.more]\nrenamed_from = \"accounts\"", "too"),
    ] {
        let binding = format!("{RENAMED}\n{binding}");
        let program = mingle::compile(&program(stores)).expect("it compiles");
        let binding = Binding::parse(&binding).expect("a binding");
        let error = check_binding(&program, &binding).expect_err("a check refuses it").to_string();
        assert!(error.contains("renamed_from") && error.contains(expected), "{error}");
    }
}
