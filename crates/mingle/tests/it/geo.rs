//! Stores over several data centers: sessions that move, data centers that stop, and Message Groups
//! whose clients' observations are checked.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::{Setup, scenarios};
use mingle::{Binding, Database, Error, GeoStore, Session, SessionKey};
use mingle_checker::history::{Interval, Kind, Operation, Transaction};
use mingle_checker::{History, Model, Outcome, check};
use mingle_lang::generate::Random;
use mingle_model::Level;
use mingle_store::test_world::join_all;
use mingle_store::{BoxFuture, StoreError, World};
use serde_json::{Value as Json, json};

const GROUPS: &str = include_str!("../../../../examples/message_groups.mingle");

/// All posts that a user was ever delivered, shown or not.
const LOOK: &str = "transaction look(user: ref User) -> list<string> {
        return user.read.to_list() + user.unread.to_list();
    }";

const BINDING: &str = "[stores.groups]\ndistance = \"20ms\"\n\
    [stores.inboxes]\ndistance = \"1ms\"\ndatacenters = [\"oslo\", \"rome\", \"lima\"]\n\
    between = { oslo-rome = \"30ms\", oslo-lima = \"190ms\", rome-lima = \"200ms±10ms\" }\n";

const CITIES: [&str; 3] = ["oslo", "rome", "lima"];

fn setup(more: &str) -> Setup {
    Setup::with(&format!("{GROUPS}{LOOK}"), &format!("{BINDING}{more}"), &BTreeMap::new())
}

impl Setup {
    fn inboxes(&self) -> &Arc<GeoStore> {
        self.database.geo("inboxes").expect("the binding gives it data centers")
    }

    fn of(
        &self,
        session: &Session,
        transaction: &str,
        arguments: &[(&str, &str)],
    ) -> Result<Json, Error> {
        self.world.block_on(of(&self.database, session, transaction, arguments))
    }

    fn pass(&self, millis: u64) {
        self.world.block_on(self.world.sleep(Duration::from_millis(millis)));
    }
}

async fn of(
    database: &Database,
    session: &Session,
    transaction: &str,
    arguments: &[(&str, &str)],
) -> Result<Json, Error> {
    let arguments = database.arguments(transaction, arguments.iter().copied())?;
    let report = database.call(transaction, arguments, session.clone()).await?;
    Ok(database.result_json(transaction, &report))
}

/// The posts that a client finds for a user.
async fn posts(database: &Database, session: &Session, user: &str) -> Result<Vec<String>, Error> {
    let found = of(database, session, "look", &[("user", user)]).await?;
    let lines = found.as_array().cloned().unwrap_or_default().into_iter();
    Ok(lines.map(|line| line.as_str().unwrap_or_default().to_owned()).collect())
}

#[test]
fn a_session_moves_between_data_centers_with_its_token() {
    let setup = setup("");
    let session = Session::at("oslo");
    setup.of(&session, "create_user", &[("name", "ana")]).expect("it is made");
    setup.of(&session, "join_group", &[("user", "ana"), ("group", "rust")]).expect("she joins");
    setup.of(&session, "add_post", &[("group", "rust"), ("post", "hi")]).expect("it is posted");
    let key = SessionKey::new([7; 32]);
    let token = session.token(&key);
    // A client without a token finds the posts that have arrived, which are none yet.
    let stranger = Session::at("lima");
    let found = setup.of(&stranger, "check_inbox", &[("user", "ana")]).expect("it answers");
    assert_eq!(found, json!([]));
    let moved = Session::from_token(&key, &token).expect("it is a token");
    moved.move_to("lima");
    let begin = setup.world.elapsed();
    let found = setup.of(&moved, "check_inbox", &[("user", "ana")]).expect("it answers");
    assert_eq!(found, json!(["hi"]));
    let took = setup.world.elapsed().saturating_sub(begin);
    assert!(took > Duration::from_millis(80), "oslo and lima are 95 ms apart: {took:?}");
    assert!(took < Duration::from_millis(300), "{took:?}");
}

#[test]
fn the_examples_run_with_a_store_over_several_data_centers() {
    let all = || scenarios::all::<Setup>().into_iter();
    for (scenario, is_all) in all().map(|one| (one, false)).chain(all().map(|one| (one, true))) {
        let program = mingle::compile(scenario.text).expect("the example is right");
        let levels = &program.checked.levels;
        let is_weak = |level| matches!(levels.carrier(level), Level::Causal | Level::Eventual);
        let weak = program.checked.stores.iter().filter(|store| is_all || is_weak(store.level));
        let bind = |store: &mingle_lang::hir::Store| {
            format!(
                "[stores.{}]\ndatacenters = 3\nbetween = \"40ms\"\npartitions = 2\n",
                store.name
            )
        };
        let binding: String = weak.map(bind).collect();
        assert!(!binding.is_empty(), "{}", scenario.name);
        println!("{}, all of its stores: {is_all}", scenario.name);
        (scenario.run)(&Setup::with(scenario.text, &binding, &BTreeMap::new()));
    }
}

#[test]
fn a_folder_keeps_what_all_data_centers_had_and_sessions_go_on() {
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let program = mingle::compile(&format!("{GROUPS}{LOOK}")).expect("the program is right");
    let binding = Binding::parse(BINDING).expect("the binding is right");
    // Each process has a runtime of its own, on the machine's clock.
    let process = |work: fn(Database, Option<String>) -> BoxFuture<'static, Option<String>>,
                   token: Option<String>| {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        runtime.block_on(async {
            let opened = Database::open(program.clone(), &binding, Some(folder.path())).await;
            work(opened.unwrap_or_else(|error| panic!("{error}")), token).await
        })
    };
    let token = process(
        |database, _| {
            Box::pin(async move {
                let session = Session::at("oslo");
                for (name, arguments) in [
                    ("create_user", &[("name", "ana")][..]),
                    ("join_group", &[("user", "ana"), ("group", "rust")]),
                    ("add_post", &[("group", "rust"), ("post", "hi")]),
                ] {
                    let done = of(&database, &session, name, arguments).await;
                    done.unwrap_or_else(|error| panic!("{name}: {error}"));
                }
                Some(session.token(&key()))
            })
        },
        None,
    );
    process(
        |database, token| {
            Box::pin(async move {
                let token = token.expect("the first process made one");
                let session = Session::from_token(&key(), &token).expect("it is a token");
                session.move_to("lima");
                let found = posts(&database, &session, "ana").await.expect("it is waited for");
                assert_eq!(found, ["hi"]);
                None
            })
        },
        token,
    );
}

#[test]
fn what_does_not_fit_is_refused() {
    let setup = setup("");
    let error = setup.of(&Session::at("bonn"), "create_user", &[("name", "ana")]);
    let error = error.expect_err("there is no such data center").to_string();
    assert!(error.contains("no store has a replica bonn; there are lima, oslo, rome"), "{error}");
}

#[test]
fn what_a_stopped_data_center_keeps_to_itself_is_waited_for_or_given_up() {
    let setup = setup("[runtime]\ndeadline = \"2s\"\n");
    let (oslo, rome) = (Session::at("oslo"), Session::at("rome"));
    setup.of(&oslo, "create_user", &[("name", "ana")]).expect("it is made");
    setup.of(&rome, "create_user", &[("name", "bob")]).expect("it is made");
    setup.pass(1_000);
    let settled = Session::at("oslo");
    setup.of(&settled, "check_inbox", &[("user", "ana")]).expect("it answers");
    setup.pass(1_000);
    // Its last write has not left its data center.
    setup.of(&oslo, "create_user", &[("name", "eve")]).expect("it is made");
    setup.inboxes().kill("oslo").expect("it is there");
    for session in [&oslo, &settled] {
        let error = setup.of(session, "check_inbox", &[("user", "ana")]);
        let error = error.expect_err("oslo is down").to_string();
        assert!(error.contains("store inboxes is unavailable"), "{error}");
        assert!(error.contains("its data center oslo is down"), "{error}");
    }
    setup.of(&rome, "check_inbox", &[("user", "bob")]).expect("rome goes on");
    // All that the settled session has seen is in rome; a part of the other session's is missing.
    settled.move_to("rome");
    setup.of(&settled, "check_inbox", &[("user", "ana")]).expect("it is resumed");
    oslo.move_to("rome");
    let error = setup.of(&oslo, "check_inbox", &[("user", "ana")]).expect_err("it waits");
    let expected = "replica rome of store inboxes has not yet seen what the session has";
    assert!(error.to_string().starts_with(expected), "{error}");
    // A client goes on without it.
    let lossy = Session::from_token(&key(), &oslo.token(&key())).expect("it is a token");
    let visible = setup.inboxes().visible("rome").expect("it is there");
    assert!(lossy.accept_loss("inboxes", &visible));
    setup.of(&lossy, "check_inbox", &[("user", "ana")]).expect("it goes on");
    let object = setup.database.object("User", "eve").expect("the kind is right");
    let shown = setup.world.block_on(setup.database.show(&object, &lossy, 9));
    assert_eq!(shown.expect("it answers"), Json::Null, "it was lost");
    // A client that waits finds it once oslo is back.
    setup.inboxes().start("oslo").expect("it is there");
    setup.of(&oslo, "check_inbox", &[("user", "ana")]).expect("it is there now");
    let shown = setup.world.block_on(setup.database.show(&object, &oslo, 9));
    assert_eq!(shown.expect("it answers")["name"], json!("eve"));
    let unknown = setup.inboxes().kill("bonn").expect_err("there is none");
    assert!(matches!(unknown, StoreError::Refused { .. }), "{unknown}");
}

fn key() -> SessionKey {
    SessionKey::new([3; 32])
}

/// The observations of clients, one transaction each, in the order in which they ended.
#[derive(Default)]
struct Seen {
    transactions: Mutex<Vec<Noted>>,
}

struct Noted {
    session: usize,
    began: Duration,
    ended: Duration,
    is_final: bool,
    wrote: Option<(String, bool)>,
    read: Option<(String, Vec<String>)>,
}

impl Seen {
    fn note(&self, noted: Noted) {
        self.transactions.lock().expect("nobody panics with it").push(noted);
    }

    /// As a history: each post in each inbox is a register, which is 1 once the post is there.
    fn history(&self, members: &BTreeSet<&str>) -> History {
        let all = self.transactions.lock().expect("nobody panics with it");
        let posted: Vec<&String> =
            all.iter().filter_map(|noted| noted.wrote.as_ref().map(|(post, _)| post)).collect();
        let mut keys: BTreeMap<(String, String), i64> = BTreeMap::new();
        let mut operation = |kind, user: &str, post: &str, value| {
            let next = keys.len() as i64;
            let key = *keys.entry((user.to_owned(), post.to_owned())).or_insert(next);
            let (store, level) = ("inboxes".into(), Level::Causal);
            Operation { kind, key, value, store, level, version: None }
        };
        let transactions = all.iter().enumerate().map(|(index, noted)| {
            let mut operations = Vec::new();
            if let Some((post, _)) = &noted.wrote {
                operations.extend(members.iter().map(|user| operation(Kind::Write, user, post, 1)));
            }
            if let Some((user, found)) = &noted.read {
                operations.extend(posted.iter().map(|post| {
                    let is_there = i64::from(found.contains(post));
                    operation(Kind::Read, user, post, is_there)
                }));
            }
            let nanos = |time: Duration| u64::try_from(time.as_nanos()).expect("a short run");
            let is_known = noted.wrote.as_ref().is_none_or(|(_, is_known)| *is_known);
            Transaction {
                id: index as i64,
                session: noted.session as i64,
                outcome: if is_known { Outcome::Committed } else { Outcome::Unknown },
                interval: Some(Interval { begin: nanos(noted.began), end: nanos(noted.ended) }),
                commit: None,
                is_final: noted.is_final,
                operations,
            }
        });
        History::new(transactions.collect()).expect("each post is written once")
    }
}

/// One client: posts, reads, moves.
async fn client(
    setup: &Setup,
    seen: &Seen,
    number: usize,
    seed: u64,
    rounds: usize,
    is_down: &Mutex<BTreeSet<&'static str>>,
) {
    let mut random = Random::new(seed.wrapping_mul(1_000_003).wrapping_add(number as u64));
    let session = Session::at(CITIES[number % 3]);
    let users = ["ana", "bob", "eve"];
    for round in 0..rounds {
        let began = setup.world.elapsed();
        let here = session.replica().expect("it stays somewhere");
        if random.below(8) == 0 || is_down.lock().expect("no panic").contains(&*here) {
            let up = is_down.lock().expect("no panic").clone();
            let up: Vec<&str> = CITIES.into_iter().filter(|city| !up.contains(city)).collect();
            session.move_to(up[random.below(up.len())]);
        }
        let user = users[random.below(3)];
        let noted = Noted {
            session: number,
            began,
            ended: began,
            is_final: false,
            wrote: None,
            read: None,
        };
        let noted = match random.below(4) {
            0 => {
                let post = format!("{number}.{round}");
                let arguments = [("group", "rust"), ("post", post.as_str())];
                let result = of(&setup.database, &session, "add_post", &arguments).await;
                Noted { wrote: Some((post, result.is_ok())), ..noted }
            }
            1 => {
                // No client reads eve's inbox: posts delivered there stay.
                let arguments = [("user", users[random.below(2)])];
                // The posts that it returns are a part of those that the next read finds.
                let _ = of(&setup.database, &session, "check_inbox", &arguments).await;
                continue;
            }
            _ => {
                let Ok(found) = posts(&setup.database, &session, user).await else { continue };
                Noted { read: Some((user.to_owned(), found)), ..noted }
            }
        };
        seen.note(Noted { ended: setup.world.elapsed(), ..noted });
        setup.world.sleep(Duration::from_millis(random.below(30) as u64)).await;
    }
}

/// The fate of one data center.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Away {
    Never,
    /// It stops for a while.
    Stopped,
    /// Its clients leave, it is given up, and comes back with empty disks.
    GivenUp,
}

impl Away {
    async fn happen(self, setup: &Setup, is_down: &Mutex<BTreeSet<&'static str>>) {
        let pass = |millis| setup.world.sleep(Duration::from_millis(millis));
        if self == Self::Never {
            return;
        }
        pass(1_500).await;
        is_down.lock().expect("no panic").insert("oslo");
        if self == Self::GivenUp {
            // The effects of its clients leave with them.
            pass(1_000).await;
        }
        setup.inboxes().kill("oslo").expect("it is there");
        pass(if self == Self::Stopped { 4_000 } else { 1_000 }).await;
        if self == Self::Stopped {
            setup.inboxes().start("oslo").expect("it is there");
        } else {
            let given_up = setup.inboxes().give_up("oslo").await.expect("the others agree");
            assert_eq!(given_up.lost, Some(0));
            pass(2_000).await;
            setup.inboxes().admit("oslo").await.expect("it comes up");
        }
        is_down.lock().expect("no panic").remove("oslo");
    }
}

/// Message Groups over three data centers, with clients in each, some of which move; one data center
/// may be away for a while.
fn message_groups(seed: u64, away: Away) {
    println!("seed {seed}");
    let setup = setup("[runtime]\ndeadline = \"60s\"\n");
    let members = BTreeSet::from(["ana", "bob", "eve"]);
    for user in &members {
        setup.ok("create_user", &[("name", user)]);
        setup.ok("join_group", &[("user", user), ("group", "rust")]);
    }
    setup.pass(2_000);
    let seen = Seen::default();
    let is_down = Mutex::new(BTreeSet::new());
    let clients = (0..9).map(|number| {
        let client: BoxFuture<'_, ()> = Box::pin(client(&setup, &seen, number, seed, 40, &is_down));
        client
    });
    let mut all: Vec<BoxFuture<'_, ()>> = clients.collect();
    all.push(Box::pin(away.happen(&setup, &is_down)));
    setup.world.block_on(join_all(all));
    // Interrupted transactions are finished by helpers; then the system is at rest.
    setup.pass(60_000);
    let mut first: Option<Vec<String>> = None;
    for (place, city) in CITIES.into_iter().enumerate() {
        for user in &members {
            let session = Session::at(city);
            let began = setup.world.elapsed();
            let found = setup.world.block_on(posts(&setup.database, &session, user));
            let found =
                found.unwrap_or_else(|error| panic!("seed {seed}: {user} in {city}: {error}"));
            let mut sorted = found.clone();
            sorted.sort();
            let mut once = sorted.clone();
            once.dedup();
            // Two clients of a user may show it a post in two places at once, and note it twice.
            assert!(*user != "eve" || sorted == once, "seed {seed}: a post twice in {city}");
            let expected = first.get_or_insert(once.clone());
            assert_eq!(*expected, once, "seed {seed}: {user} in {city}");
            seen.note(Noted {
                session: 1_000 + place,
                began,
                ended: setup.world.elapsed(),
                is_final: true,
                wrote: None,
                read: Some(((*user).to_owned(), found)),
            });
        }
    }
    let delivered = first.unwrap_or_default();
    for noted in &*seen.transactions.lock().expect("nobody panics with it") {
        if let Some((post, true)) = &noted.wrote {
            assert!(delivered.contains(post), "seed {seed}: {post} was acknowledged, and is lost");
        }
    }
    let count = delivered.len();
    assert!(count > 30, "seed {seed}: only {count} posts");
    let history = seen.history(&members);
    let verdict = check(&history, Model::CausalPlus);
    assert!(verdict.is_satisfied(), "seed {seed}: {verdict}");
    let mut alarms = setup.inboxes().alarms();
    if away == Away::GivenUp {
        alarms.retain(|alarm| !alarm.contains("Transfer") && !alarm.contains("Lagging"));
    }
    assert_eq!(alarms, Vec::<String>::new(), "seed {seed}");
}

#[test]
fn message_groups_keeps_its_promises_over_three_data_centers() {
    for seed in 1..=3 {
        message_groups(seed, Away::Never);
    }
}

#[test]
fn message_groups_keeps_its_promises_while_a_data_center_is_away() {
    for seed in 4..=6 {
        message_groups(seed, Away::Stopped);
    }
}

#[test]
fn message_groups_keeps_its_promises_while_a_data_center_is_given_up_and_comes_back() {
    for seed in 7..=9 {
        message_groups(seed, Away::GivenUp);
    }
}

#[test]
fn a_history_that_breaks_causality_is_noticed() {
    let seen = Seen::default();
    let noted = |session, wrote: Option<&str>, read: Option<&[&str]>| Noted {
        session,
        began: Duration::ZERO,
        ended: Duration::ZERO,
        is_final: false,
        wrote: wrote.map(|post| (post.to_owned(), true)),
        read: read.map(|found| ("ana".into(), found.iter().map(ToString::to_string).collect())),
    };
    seen.note(noted(1, Some("question"), None));
    seen.note(noted(2, None, Some(&["question"])));
    seen.note(noted(2, Some("answer"), None));
    seen.note(noted(3, None, Some(&["answer"])));
    let history = seen.history(&BTreeSet::from(["ana"]));
    assert!(check(&history, Model::CausalPlus).is_violated());
}
