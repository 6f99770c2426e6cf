//! The contest of MixT's Figure 13: for any number of racing posts, one winner is declared.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::support::shared::{Stores, call};
use mingle::{Database, Session};
use mingle_runtime::stats::Counted;
use mingle_store::test_world::join_all;
use mingle_store::wrap::count::{Counters, CountingStore};
use mingle_store::wrap::fault::{FaultPlan, FaultyStore, Rates};
use mingle_store::{BoxFuture, DataStore, World};
use serde_json::{Value as Json, json};

const EFFICIENT: &str = include_str!("../../../../examples/contest.mingle");
const STRONG: &str = include_str!("../../../../examples/contest_strong.mingle");

const BINDING: &str =
    "[runtime]\ndeadline = \"2min\"\n[stores.contests]\ndistance = \"85ms±10ms\"\n
    [stores.inboxes]\nreplicas = 3\ndistance = \"1ms\"\ndelay = \"40ms±20ms\"\n
    [stores.inboxes.operations]\nstrong_size = \"builtin:size Team.inbox\"";

const GOAL: usize = 12;
const TEAMS: [&str; 2] = ["red", "blue"];

fn with_goal(text: &str, goal: usize) -> String {
    let changed = text.replace("1_000_000", &goal.to_string());
    assert_ne!(changed, text, "the example names its goal");
    changed
}

async fn winner(server: &Database) -> Json {
    let contest = server.object("Contest", "cup").expect("there are contests");
    let shown = server.show(&contest, &Session::default(), 10).await;
    shown.expect("the store answers").get("winner").cloned().unwrap_or(Json::Null)
}

/// Posts for both teams through every replica and two servers at once, while another client looks all
/// the time. Returns the winners that this client saw, in order.
fn race(stores: &Stores, servers: &[Arc<Database>], posts: usize) -> Vec<Json> {
    let mut tasks: Vec<BoxFuture<'_, Vec<Json>>> = Vec::new();
    for (number, server) in servers.iter().enumerate() {
        for replica in 1..=3 {
            for team in TEAMS {
                let world = stores.world.clone();
                tasks.push(Box::pin(async move {
                    let session = Session::at(format!("r{replica}"));
                    let mut seen = Vec::new();
                    for post in 0..posts {
                        let text = format!("{number}.{replica}.{post}");
                        let arguments = [("contest", "cup"), ("team", team), ("text", &*text)];
                        let posted = call(server, &session, "post", &arguments).await;
                        posted.unwrap_or_else(|error| panic!("{team} at r{replica}: {error}"));
                        seen.push(winner(server).await);
                        world.sleep(Duration::from_millis(world.random() % 60)).await;
                    }
                    seen
                }));
            }
        }
    }
    stores.world.block_on(join_all(tasks)).into_iter().flatten().collect()
}

/// Checks the stores after a race that both teams ended above the goal.
fn check_race(stores: &Stores, servers: &[Arc<Database>], seen: &[Json], posts: usize) {
    stores.pass(60);
    let declared = stores.world.block_on(winner(&servers[0]));
    assert!(TEAMS.iter().any(|team| declared == json!(team)), "{declared} is no team");
    for earlier in seen {
        assert!(earlier.is_null() || *earlier == declared, "{earlier} had won, and now {declared}");
    }
    for team in TEAMS {
        let object = servers[0].object("Team", team).expect("there are teams");
        let session = Session::default();
        let shown = servers[0].show(&object, &session, 1_000);
        let shown = stores.world.block_on(shown).expect("the store answers");
        let inbox = shown["inbox"].as_array().expect("it is a list");
        let distinct: BTreeSet<String> = inbox.iter().map(Json::to_string).collect();
        let expected = posts * 3 * servers.len();
        assert_eq!((inbox.len(), distinct.len()), (expected, expected), "posts of {team}");
    }
    assert_eq!(stores.left(), Vec::<String>::new());
}

#[test]
fn exactly_one_winner_is_declared_and_never_changes() {
    let stores = Stores::new(&with_goal(EFFICIENT, GOAL), BINDING);
    let servers = [stores.server(), stores.server()];
    let posts = 5;
    let seen = race(&stores, &servers, posts);
    check_race(&stores, &servers, &seen, posts);
    assert!(seen.iter().any(Json::is_null) && seen.iter().any(|winner| !winner.is_null()));
}

#[test]
fn the_strong_contest_has_one_winner_too() {
    let stores = Stores::new(&with_goal(STRONG, GOAL), BINDING);
    let servers = [stores.server(), stores.server()];
    let seen = race(&stores, &servers, 5);
    check_race(&stores, &servers, &seen, 5);
}

/// Both stores are kept in each of three data centers, and each post is served by its session's data
/// center; the winner is certified among them.
#[test]
fn one_winner_is_declared_over_three_data_centers() {
    let geo = "datacenters = [\"r1\", \"r2\", \"r3\"]\nbetween = \"40ms±5ms\"\n";
    let binding = format!(
        "[runtime]\ndeadline = \"2min\"\n[stores.contests]\n{geo}[stores.inboxes]\n{geo}\
         [stores.inboxes.operations]\nstrong_size = \"builtin:size Team.inbox\""
    );
    for text in [EFFICIENT, STRONG] {
        let stores = Stores::new(&with_goal(text, GOAL), &binding);
        let servers = [stores.server(), stores.server()];
        let seen = race(&stores, &servers, 3);
        check_race(&stores, &servers, &seen, 3);
        assert!(seen.iter().any(Json::is_null) && seen.iter().any(|winner| !winner.is_null()));
    }
}

/// Both stores live in one engine over three data centers: the post that declares the winner is one
/// transaction there, and no client sees a part of it.
#[test]
fn one_winner_is_declared_in_one_engine() {
    let binding = "[runtime]\ndeadline = \"2min\"\n\
        [stores.contests]\ndatacenters = [\"r1\", \"r2\", \"r3\"]\nbetween = \"40ms±5ms\"\n\
        [stores.inboxes]\nwith = \"contests\"\n\
        [stores.inboxes.operations]\nstrong_size = \"builtin:size Team.inbox\"";
    for text in [EFFICIENT, STRONG] {
        let stores = Stores::new(&with_goal(text, GOAL), binding);
        let servers = [stores.server(), stores.server()];
        let seen = race(&stores, &servers, 3);
        check_race(&stores, &servers, &seen, 3);
        assert!(seen.iter().any(Json::is_null) && seen.iter().any(|winner| !winner.is_null()));
        let united = |server: &Arc<Database>| server.runtime().stats().get(Counted::United);
        assert!(servers.iter().map(united).sum::<u64>() > 0, "nothing was one transaction");
    }
}

#[test]
fn one_winner_although_answers_are_lost() {
    let rates = Rates { conflict: 20, unavailable: 0, lost_before: 60, lost_after: 60 };
    let mut plans = Vec::new();
    let stores = Stores::wrapped(&with_goal(EFFICIENT, GOAL), BINDING, |_, store| {
        let plan = FaultPlan::seeded(plans.len() as u64 + 3, rates);
        plans.push(plan.clone());
        FaultyStore::new(store, plan)
    });
    let servers = [stores.server(), stores.server()];
    let seen = race(&stores, &servers, 5);
    for plan in &plans {
        assert!(!plan.injected().is_empty(), "nothing went wrong");
        plan.set_on(false);
    }
    check_race(&stores, &servers, &seen, 5);
}

/// With posts one after the other, the post that reaches the goal declares the winner, and no later one.
#[test]
fn the_winner_is_declared_by_the_post_that_sees_it() {
    let stores = Stores::new(&with_goal(EFFICIENT, 3), BINDING);
    let server = stores.server();
    let post = |replica: &str, team: &str| {
        let arguments = [("contest", "cup"), ("team", team), ("text", "x")];
        stores.ok(&server, &Session::at(replica), "post", &arguments);
        stores.pass(1);
        stores.world.block_on(winner(&server))
    };
    assert_eq!([post("r1", "red"), post("r2", "red")], [json!(null), json!(null)]);
    assert_eq!([post("r1", "blue"), post("r2", "blue")], [json!(null), json!(null)]);
    assert_eq!(post("r3", "red"), json!("red"));
    assert_eq!(post("r1", "blue"), json!("red"), "the other team comes too late");
}

/// Counts the round trips and commits of a post at each store before the end is near.
fn trips(text: &str) -> BTreeMap<String, (u64, u64)> {
    let mut counters: BTreeMap<String, Arc<Counters>> = BTreeMap::new();
    let stores = Stores::wrapped(&with_goal(text, 1_000), BINDING, |name, store| {
        let (counted, counter) = CountingStore::new(store);
        counters.insert(name.to_owned(), counter);
        let counted: Arc<dyn DataStore> = counted;
        counted
    });
    let server = stores.server_over(stores.world.clone(), |_, store| store);
    let posts = 100;
    for number in 0..posts {
        let session = Session::at(format!("r{}", number % 3 + 1));
        let team = TEAMS[number % 2];
        let arguments = [("contest", "cup"), ("team", team), ("text", "x")];
        stores.ok(&server, &session, "post", &arguments);
    }
    let counts = counters.iter().map(|(name, counter)| {
        let now = counter.now();
        (name.clone(), (now.round_trips(), now.commits))
    });
    let counts = counts.collect();
    assert_eq!(stores.left(), Vec::<String>::new(), "a post writes one store");
    counts
}

#[test]
fn before_the_end_only_the_near_store_is_asked() {
    let (efficient, strong) = (trips(EFFICIENT), trips(STRONG));
    assert_eq!(efficient["contests"], (0, 0), "nobody has to go far");
    // One read ahead, one read with the commit, and the commit. A post that meets another one in between
    // starts over.
    let (round_trips, commits) = efficient["inboxes"];
    assert!((300..350).contains(&round_trips), "{round_trips}");
    assert_eq!(commits, 100);
    assert_eq!(strong["contests"].0, 100, "every post looks for a winner");
    assert_eq!(strong["contests"].1, 0, "and declares none");
}
