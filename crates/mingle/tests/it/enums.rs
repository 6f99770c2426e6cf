//! Enumerations whose declaration changes: data stay readable, and a label that is gone is named.

use std::path::Path;
use std::time::Duration;

use mingle::{Binding, Database, Error, OpenError, Session};
use mingle_store_embedded::OpenError::Locked;
use serde_json::{Value as Json, json};

/// A program with these values of the enumeration.
fn program(values: &str) -> String {
    format!(
        "store bank: linearizable; store feed: causal;
        enum Status {{ {values} }}
        object Order in bank {{
            key number: int; status: Status; total: int; seen: set<Status>; by: map<string, Status>; past: log<Status>;
        }}
        object Note in feed {{ key number: int; status: Status; copies: log<Status>; }}
        transaction set(order: ref Order, status: Status) {{
            order.status = status; order.total += 1; order.seen.insert(status); order.by.put(\"a\", status);
            order.past.append(status);
        }}
        transaction note(note: ref Note, status: Status) {{ note.status = status; }}
        transaction status(order: ref Order) -> Status {{ return order.status; }}
        transaction seen(order: ref Order) -> list<Status> {{ return order.seen.to_list(); }}
        transaction by(order: ref Order) -> option<Status> {{ return order.by.get(\"a\"); }}
        transaction past(order: ref Order) -> list<Status> {{ return order.past.last(1); }}
        transaction total(order: ref Order) -> int {{ return order.total; }}
        transaction copy(order: ref Order, note: ref Note) -> int {{
            order.total += 1;
            note.copies.append(note.status);
            return order.total;
        }}"
    )
}

async fn open(folder: &Path, values: &str) -> Database {
    let program = mingle::compile(&program(values)).unwrap_or_else(|errors| panic!("{errors}"));
    let binding = Binding::parse("").expect("a binding");
    loop {
        // Tasks of the earlier database release the folder a little later than the test does.
        match Database::open(program.clone(), &binding, Some(folder)).await {
            Err(OpenError::Embedded(Locked { .. })) => {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            opened => return opened.unwrap_or_else(|error| panic!("{error}")),
        }
    }
}

async fn call(database: &Database, name: &str, arguments: &[(&str, &str)]) -> Result<Json, Error> {
    let arguments = database.arguments(name, arguments.iter().copied())?;
    let report = database.call(name, arguments, Session::default()).await?;
    Ok(database.result_json(name, &report))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_label_that_is_gone_is_named_where_it_is_read() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let before = open(folder.path(), "open, paid, lost").await;
    for (number, status) in [("1", "open"), ("2", "lost")] {
        call(&before, "set", &[("order", number), ("status", status)]).await.expect("it is set");
        call(&before, "note", &[("note", number), ("status", status)]).await.expect("it is noted");
    }
    drop(before);

    // A value is added, others are moved and renamed, and one is gone.
    let after = open(folder.path(), "paid, sent, opened = \"open\"").await;
    let status = call(&after, "status", &[("order", "1")]).await.expect("it is there still");
    assert_eq!(status, json!("open"));
    for name in ["status", "seen", "by", "past"] {
        let error = call(&after, name, &[("order", "2")]).await.expect_err("it is gone");
        let text = error.to_string();
        let field = name;
        for words in
            [field, "of Order[2]", "\"lost\" is no value of Status", "\"paid\", \"sent\", \"open\""]
        {
            assert!(text.contains(words), "{words}: {text}");
        }
    }
    assert_eq!(
        call(&after, "total", &[("order", "2")]).await,
        Ok(json!(1)),
        "other fields are read"
    );
    // A later phase takes the label as it is: the bank has committed.
    let copied = call(&after, "copy", &[("order", "2"), ("note", "2")]).await;
    assert_eq!(copied, Ok(json!(2)));
    let note = after.object("Note", "2").expect("a key");
    let shown = after.show(&note, &Session::default(), 10).await.expect("it is shown");
    assert_eq!(shown["copies"], json!(["lost"]), "{shown}");
    call(&after, "set", &[("order", "2"), ("status", "sent")]).await.expect("it is replaced");
    assert_eq!(call(&after, "status", &[("order", "2")]).await, Ok(json!("sent")));
    let error = call(&after, "set", &[("order", "2"), ("status", "lost")]).await;
    let error = error.expect_err("no value").to_string();
    assert!(error.contains("expected one of"), "{error}");
}
