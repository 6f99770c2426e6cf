//! The spans of a call that a subscriber of `tracing` receives.

use std::collections::BTreeMap;
use std::fmt::{Debug, Write as _};
use std::sync::{Arc, Mutex};

use mingle::typed::Program as _;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use super::groups::{Database, Group, User};
use crate::support::Setup;

/// Spans as lines, each after its enclosing spans.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    lines: Vec<String>,
    entered: Vec<u64>,
}

struct Line<'a>(&'a mut String);

impl Visit for Line<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, " {field}={value:?}").expect("a string takes it");
    }
}

impl Subscriber for Told {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("mingle")
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let mut state = self.0.lock().expect("nobody panics with this lock");
        let depth = state.entered.len();
        let mut line = format!("{}{}", "  ".repeat(depth), attributes.metadata().name());
        attributes.record(&mut Line(&mut line));
        state.lines.push(line);
        Id::from_u64(state.lines.len() as u64)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        let mut state = self.0.lock().expect("nobody panics with this lock");
        values.record(&mut Line(&mut state.lines[span.into_u64() as usize - 1]));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {}

    fn enter(&self, span: &Id) {
        self.0.lock().expect("nobody panics with this lock").entered.push(span.into_u64());
    }

    fn exit(&self, _: &Id) {
        self.0.lock().expect("nobody panics with this lock").entered.pop();
    }
}

#[test]
fn a_transaction_is_a_span_and_so_is_each_phase_and_request() {
    let setup = Setup::with(Database::TEXT, "", &BTreeMap::new());
    let db = Database::over(setup.database.clone()).expect("it is the same program");
    let (ana, rust) = (User::new("ana"), Group::new("rust"));
    let told = Told::default();
    tracing::subscriber::with_default(told.clone(), || {
        // A span first met by a test without a subscriber would be disabled for all tests.
        setup.world.block_on(async { db.add_post(&rust, "met").await.expect("it is open") });
        tracing::callsite::rebuild_interest_cache();
        told.0.lock().expect("nobody panics with this lock").lines.clear();
        setup.world.block_on(async {
            db.join_group(&ana, &rust).await.expect("it always succeeds");
            db.set_closed(&rust, true).await.expect("it always succeeds");
            db.add_post(&rust, "too late").await.expect_err("it is closed");
        });
    });
    let lines = told.0.lock().expect("nobody panics with this lock").lines.join("\n");
    let expected = "\
transaction name=join_group
  phase store=groups attempts=1
    request store=groups request=\"commit\"
  phase store=inboxes attempts=1
    request store=inboxes request=\"commit\"
transaction name=set_closed
  phase store=groups attempts=1
    request store=groups request=\"commit\"
transaction name=add_post error=\"closed\"
  phase store=groups
    request store=groups request=\"read\"";
    assert_eq!(lines, expected);
}
