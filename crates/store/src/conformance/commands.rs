//! Declared commands, at stores that have commands with bodies.

use std::sync::Arc;

use mingle_model::{TransactionId, Value};

use super::schema::{TEXT, at, store_schema};
use super::{Bench, Checked, commit, ensure, ensure_eq, tests};
use crate::declared::StoreOperation;
use crate::operation::{Data, Read, Write};
use crate::record::{RecordKey, RecordKind};
use crate::store::StoreError;

tests![commands_that_name_the_stores_own_rows_are_refused];

/// A command that would write the runtime's rows, or objects past their versions, is refused when the store is
/// opened or when it runs; the stored data stays as it was.
async fn commands_that_name_the_stores_own_rows_are_refused(bench: &Bench<'_>) -> Checked {
    let id = TransactionId { origin: mingle_model::Origin(5), sequence: 1 };
    let record = RecordKey::of(RecordKind::Witness, id, 0);
    let writes = vec![
        Write::Assign(at("k", TEXT), Value::from("kept")),
        Write::Record(record.clone(), b"kept"[..].into()),
    ];
    bench.write(writes).await?;
    for body in bench.factory.own_bodies(&bench.store) {
        let mut schema = store_schema(bench.factory.level());
        let command = StoreOperation {
            is_command: true,
            parameters: Vec::new(),
            result: None,
            body: Some(body.clone()),
            builtin: None,
        };
        schema.operations = [("meddle".into(), command)].into();
        let why = match bench.factory.open_again(&bench.store, schema).await {
            Err(why) => why,
            Ok(store) => {
                let other = Bench { factory: bench.factory, store: Arc::clone(&store) };
                let meddle = Write::Command { operation: "meddle".into(), arguments: Vec::new() };
                match other.begin().await?.commit(commit(vec![meddle])).await {
                    Err(StoreError::Refused { reason, .. }) => reason,
                    result => format!("it gave {result:?}"),
                }
            }
        };
        let says = ["by transactions alone", "does not say which keys it writes"];
        let is_refused = says.iter().any(|says| why.contains(says));
        ensure!(is_refused, "`{body}`: {why}");
        let reads = [Read::Register(at("k", TEXT)), Read::Record(record.clone())];
        let answers = bench.read(&reads).await?;
        let kept = Data::Register(Some(Value::from("kept")));
        ensure_eq!(answers[0].data, kept, "an object after `{body}`");
        let kept = Data::Record(Some(b"kept"[..].into()));
        ensure_eq!(answers[1].data, kept, "a record after `{body}`");
    }
    Ok(())
}
