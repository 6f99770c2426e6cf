//! Replicas that receive no updates for a while.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::{at, data, open, read, session, usual, write};
use mingle_model::{Level, Stamp, Value};
use mingle_store::{Data, DataStore, Read, Session, StoreError, TestWorld, Write};
use mingle_store_embedded::limits::BACKLOG_MAX;
use mingle_store_embedded::{EmbeddedConfig, Links};
use tempfile::TempDir;

const DELAY: Duration = Duration::from_millis(10);

/// Links that are up unless they are cut.
#[derive(Default)]
struct Cut(Mutex<BTreeSet<(String, String)>>);

impl Cut {
    fn cut(&self, from: &str, to: &str) {
        self.0.lock().expect("no panic").insert((from.into(), to.into()));
    }

    fn mend(&self) {
        self.0.lock().expect("no panic").clear();
    }
}

impl Links for Cut {
    fn is_up(&self, from: &str, to: &str) -> bool {
        !self.0.lock().expect("no panic").contains(&(from.into(), to.into()))
    }
}

struct Setup {
    world: Arc<TestWorld>,
    links: Arc<Cut>,
    store: Arc<dyn DataStore>,
}

fn config(links: &Arc<Cut>) -> EmbeddedConfig {
    let config = EmbeddedConfig::in_memory().with_replicas(3).with_delay(DELAY, Duration::ZERO);
    config.with_links(links.clone())
}

impl Setup {
    fn new(level: Level) -> Self {
        let (world, links) = (TestWorld::new(1), Arc::<Cut>::default());
        let store = open(&world, config(&links), usual(level));
        Self { world, links, store }
    }

    fn add(&self, replica: &str) -> Stamp {
        let add = vec![Write::Add(at("a", 1), 1)];
        let committed = self.world.block_on(write(&self.store, &session(replica), add));
        committed.expect("a commit").stamp
    }

    /// Returns the count at each replica, once all deliverable updates have arrived.
    fn counts(&self) -> [i128; 3] {
        self.world.advance(DELAY);
        ["r1", "r2", "r3"].map(|replica| self.count(replica))
    }

    fn count(&self, replica: &str) -> i128 {
        let reads = [Read::Counter(at("a", 1))];
        match data(&self.world, &self.store, &session(replica), &reads)[..] {
            [Data::Counter(sum)] => sum,
            ref other => panic!("a counter reads as {other:?}"),
        }
    }
}

#[test]
fn an_update_waits_while_its_link_is_down() {
    for level in [Level::Causal, Level::Eventual] {
        let setup = Setup::new(level);
        setup.links.cut("r1", "r2");
        setup.add("r1");
        assert_eq!(setup.counts(), [1, 0, 1], "{level}, r1 to r2 is down");
        setup.add("r2");
        assert_eq!(setup.counts(), [2, 1, 2], "{level}, the other way is up");
        setup.links.mend();
        assert_eq!(setup.count("r2"), 2, "{level}, what was due comes at once");
        assert_eq!(setup.counts(), [2, 2, 2], "{level}, all are up");
    }
}

#[test]
fn what_depends_on_an_update_that_waits_waits_too_at_a_causal_store() {
    for (level, expected) in [(Level::Causal, [2, 0, 2]), (Level::Eventual, [2, 1, 2])] {
        let setup = Setup::new(level);
        setup.links.cut("r1", "r2");
        setup.add("r1");
        assert_eq!(setup.counts(), [1, 0, 1]);
        setup.add("r3");
        assert_eq!(setup.counts(), expected, "{level}: r3 had seen what r2 lacks");
        setup.links.mend();
        assert_eq!(setup.counts(), [2, 2, 2]);
    }
}

#[test]
fn a_session_stays_behind_and_nothing_is_everywhere_while_a_link_is_down() {
    let setup = Setup::new(Level::Causal);
    setup.links.cut("r1", "r2");
    let after = setup.add("r1");
    setup.world.advance(DELAY);
    let ask = |replica| {
        let session = Session { after: after.clone(), ..session(replica) };
        setup.world.block_on(read(&setup.store, &session, &[Read::Counter(at("a", 1))]))
    };
    let behind = StoreError::Behind { store: "notes".into(), replica: "r2".into() };
    let expected = "replica r2 of store notes has not yet seen what the session has";
    assert_eq!(behind.to_string(), expected);
    assert_eq!(ask("r2"), Err(behind));
    assert!(ask("r3").is_ok(), "r3 has it");
    let everywhere = || setup.world.block_on(setup.store.everywhere()).expect("it answers");
    assert_eq!(everywhere(), Stamp::default());
    setup.links.mend();
    assert_eq!(everywhere(), after, "whoever asks has what is due delivered");
    assert!(ask("r2").is_ok(), "r2 has it too");
}

#[test]
fn a_session_that_has_seen_another_store_is_refused() {
    let setup = Setup::new(Level::Causal);
    let after = Stamp::from_iter([("oslo".into(), 1)]);
    let session = Session { after, ..session("r1") };
    let error = setup.world.block_on(read(&setup.store, &session, &[])).unwrap_err();
    assert!(error.to_string().contains("its replica oslo, which it has not"), "{error}");
}

#[test]
fn a_backlog_waits_for_its_link_too() {
    let setup = Setup::new(Level::Causal);
    setup.links.cut("r1", "r2");
    let all = BACKLOG_MAX as u64 + 10;
    for _ in 0..all {
        setup.add("r1");
        setup.world.advance(DELAY);
    }
    assert_eq!(setup.count("r2"), 0);
    setup.links.mend();
    assert_eq!(setup.counts(), [i128::from(all); 3]);
}

#[test]
fn an_update_that_waits_survives_a_restart() {
    let folder = TempDir::new().expect("a temporary folder");
    let (world, links) = (TestWorld::new(1), Arc::<Cut>::default());
    let config = || EmbeddedConfig { folder: Some(folder.path().into()), ..config(&links) };
    let reopen = || Setup {
        world: world.clone(),
        links: links.clone(),
        store: open(&world, config(), usual(Level::Causal)),
    };
    let setup = reopen();
    links.cut("r2", "r3");
    setup.add("r2");
    setup.add("r1");
    drop(setup);
    let setup = reopen();
    assert_eq!(setup.counts(), [2, 2, 1], "r2 to r3 is down");
    links.mend();
    assert_eq!(setup.counts(), [2, 2, 2]);
}

#[test]
fn configurations_with_the_same_links_are_equal() {
    let links = Arc::<Cut>::default();
    assert_eq!(config(&links), config(&links));
    assert_ne!(config(&links), config(&Arc::default()));
    assert_ne!(config(&links), EmbeddedConfig { links: None, ..config(&links) });
    let written = vec![Write::Assign(at("a", 0), Value::Int(1))];
    let setup = Setup::new(Level::Eventual);
    let committed = setup.world.block_on(write(&setup.store, &session("r1"), written));
    assert_eq!(committed.expect("a commit").stamp, Stamp::default());
}
