//! Two transactions that visit two stores in opposite orders, and then both a third one.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::support::Setup;
use mingle::{CallReport, Error, Session};
use mingle_store::test_world::join_all;
use mingle_store::{BoxFuture, World};
use serde_json::json;

/// `there` visits `a` before `b`; `back` writes at `a` a value read at `b`, so it visits `b` first.
const PROGRAM: &str = r#"
store a: causal;
store b: causal;
store c: causal;
object X in a { key k: string; log: log<string>; marks: map<string, int>; }
object Y in b { key k: string; log: log<string>; }
object Z in c { key k: string; log: log<string>; }
transaction there(x: ref X, y: ref Y, z: ref Z) {
    x.marks.put("there", x.log.size());
    x.log.append("there");
    y.log.append("there");
    z.log.append("there");
}
transaction back(x: ref X, y: ref Y, z: ref Z) {
    let mark = y.log.size();
    y.log.append("back");
    x.marks.put("back", mark);
    x.log.append("back");
    z.log.append("back");
}
"#;

#[test]
fn who_would_wait_in_a_circle_does_not() {
    let binding = r#"
        [runtime]
        deadline = "5s"
        help_after = "100ms"
        [stores.a]
        distance = "10ms"
        [stores.b]
        distance = "10ms"
        [stores.c]
        distance = "10ms"
    "#;
    let setup = Setup::with(PROGRAM, binding, &BTreeMap::new());
    for transaction in ["there", "back"] {
        let first = mingle_lang::check(PROGRAM).program.expect("the program is right");
        let plan = first.plan(transaction).expect("it has both");
        let store = plan.phases[0].store.expect("it visits stores").index();
        assert_eq!(store, usize::from(transaction == "back"), "{transaction} begins elsewhere");
    }
    let arguments = [("x", "o"), ("y", "o"), ("z", "o")];
    let calls = ["there", "back"].map(|transaction| {
        let arguments = setup.database.arguments(transaction, arguments).expect("they fit");
        let call = setup.database.call(transaction, arguments, Session::default());
        Box::pin(call) as BoxFuture<'_, Result<CallReport, Error>>
    });
    let results = setup.world.block_on(join_all(Vec::from(calls)));
    for result in results {
        let report = result.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(report.phases.len(), 3);
    }
    assert!(setup.world.elapsed() < Duration::from_secs(3), "{:?}", setup.world.elapsed());
    // Each has met the other before the third store.
    let (x, y, z) = (setup.show("X", "o"), setup.show("Y", "o"), setup.show("Z", "o"));
    assert_eq!(x["log"], json!(["there", "back"]), "they did not meet at a");
    assert_eq!(y["log"], json!(["back", "there"]), "they did not meet at b");
    assert_eq!(z["log"].as_array().map(Vec::len), Some(2), "{z}");
}
