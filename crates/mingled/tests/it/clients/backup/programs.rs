//! Programs of Mingle with stores in a data center that is restored.

use mingle::{Binding, Database, Session};
use serde_json::{Value as Json, json};

use super::{backup, done, refused, single, text};

const TEXT: &str = "store vault: linearizable; store wall: causal;
    object Box in vault { key name: string; value: int; }
    object Note in wall { key name: string; sum: counter; lines: log<string>; }
    transaction fill(box: ref Box, value: int) { box.value = value; }
    transaction take(box: ref Box, line: string) -> int {
        require box.value > 0 else \"empty\" as value;
        box.value -= 1;
        Note[box.name].sum.add(1);
        Note[box.name].lines.append(line);
        return box.value;
    }
    transaction lines(name: string) -> list<string> { return Note[name].lines.to_list(); }
    transaction sum(name: string) -> int { return Note[name].sum.value(); }";

async fn open(address: &str) -> Database {
    let program = mingle::compile(TEXT).expect("the program compiles");
    let store = |name| format!("[stores.{name}]\nengine = \"mingled\"\naddress = \"{address}\"\n");
    let binding = Binding::parse(&[store("vault"), store("wall")].concat()).expect("it is one");
    Database::open(program, &binding, None).await.expect("it opens")
}

async fn call(database: &Database, name: &str, arguments: &[(&str, &str)]) -> Json {
    let arguments = database.arguments(name, arguments.iter().copied()).expect("they fit");
    let report = database.call(name, arguments, Session::default()).await.expect("it commits");
    database.result_json(name, &report)
}

#[test]
fn a_program_goes_on_with_the_stores_of_a_restored_data_center() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let folder = tempfile::tempdir().expect("a folder");
    let [data, file, again] = ["data", "file", "again"].map(|name| folder.path().join(name));
    let center = single(&data, "4");
    runtime.block_on(async {
        let database = open(&center.programs).await;
        call(&database, "fill", &[("box", "tea"), ("value", "3")]).await;
        let taken = call(&database, "take", &[("box", "tea"), ("line", "one")]).await;
        assert_eq!(taken, json!(2));
    });
    let report = backup(center.address, &file);
    assert!(report.contains("registers of programs"), "{report}");
    center.kill();
    let printed = done(&["dump", text(&file)]);
    assert!(printed.lines().all(|line| line.contains("\"program\":true")), "{printed}");
    assert_eq!(done(&["dump", "--form", "commands", text(&file)]), "");
    // The number of partitions is that of the restore.
    done(&["restore", "--file", text(&file), "--dir", text(&again), "--partitions", "2"]);
    let other = refused(&["--dir", text(&again), "--listen", "127.0.0.1:0"]);
    assert!(other.contains("2 partitions, and this start is"), "{other}");
    let center = single(&again, "2");
    runtime.block_on(async {
        let database = open(&center.programs).await;
        let taken = call(&database, "take", &[("box", "tea"), ("line", "two")]).await;
        assert_eq!(taken, json!(1));
        assert_eq!(call(&database, "lines", &[("name", "tea")]).await, json!(["one", "two"]));
        assert_eq!(call(&database, "sum", &[("name", "tea")]).await, json!(2));
    });
}
