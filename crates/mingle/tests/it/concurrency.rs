//! Many clients at once, over stores at a distance: their calls interleave at every store call.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::support::Setup;
use mingle::{Error, Session};
use mingle_lang::generate::Random;
use mingle_store::test_world::join_all;
use mingle_store::{BoxFuture, World};
use serde_json::json;

const ACCOUNTS: usize = 4;
const CLIENTS: u64 = 12;
const TRANSFERS: usize = 15;

/// Money moves between few accounts from many clients: none is made or lost, no balance is
/// negative, and each transfer has told both owners exactly once.
#[test]
fn money_is_neither_made_nor_lost() {
    let binding = "[stores.accounts]\ndistance = \"85ms±10ms\"\n[stores.notifications]\ndistance = \"1ms\"\n[runtime]\ndeadline = \"10min\"";
    money(binding, &[]);
}

/// The same with clients in each of three data centers, over which both stores are spread.
#[test]
fn money_is_neither_made_nor_lost_over_three_data_centers() {
    let geo = "datacenters = 3\nbetween = \"40ms±5ms\"\n";
    let binding = format!(
        "[stores.accounts]\n{geo}[stores.notifications]\n{geo}[runtime]\ndeadline = \"10min\""
    );
    money(&binding, &["dc1", "dc2", "dc3"]);
}

fn money(binding: &str, places: &[&'static str]) {
    let setup =
        Setup::with(include_str!("../../../../examples/bank.mingle"), binding, &BTreeMap::new());
    for number in 0..ACCOUNTS {
        let (number, owner) = (format!("a{number}"), format!("owner{number}"));
        setup.ok("open_account", &[("number", &number), ("owner", &owner)]);
        setup.ok("deposit", &[("account", &number), ("amount", "100")]);
    }
    let seed = 11;
    let clients = (0..CLIENTS).map(|client| {
        let database = Arc::clone(&setup.database);
        let client: BoxFuture<'_, u64> = Box::pin(async move {
            let mut random = Random::new(seed * 1_000 + client);
            let mut moved = 0_u64;
            let place = places.get(client as usize % places.len().max(1));
            let session = place.map_or_else(Session::default, |place| Session::at(*place));
            for _ in 0..TRANSFERS {
                let from = random.below(ACCOUNTS);
                let to = (from + 1 + random.below(ACCOUNTS - 1)) % ACCOUNTS;
                let (from, to) = (format!("a{from}"), format!("a{to}"));
                let amount = (1 + random.below(60)).to_string();
                let arguments = [("from", &*from), ("to", &*to), ("amount", &*amount)];
                let arguments =
                    database.arguments("transfer", arguments).expect("the arguments are right");
                match database.call("transfer", arguments, session.clone()).await {
                    Ok(_) => moved += 1,
                    Err(Error::Require { code, .. }) => {
                        assert_eq!(code.as_deref(), Some("too_low"));
                    }
                    Err(error) => panic!("seed {seed}, client {client}: {error}"),
                }
            }
            moved
        });
        client
    });
    let moved: u64 = setup.world.block_on(join_all(clients.collect())).into_iter().sum();
    // Notifications from other data centers arrive.
    setup.world.block_on(setup.world.sleep(Duration::from_mins(1)));
    let (mut total, mut entries, mut messages) = (0, 0, 0);
    for number in 0..ACCOUNTS {
        let account = setup.show("Account", &format!("a{number}"));
        let balance = account["balance"].as_i64().expect("a balance is an int");
        assert!(balance >= 0, "seed {seed}: {account}");
        let history = account["history"].as_array().expect("a history is a list");
        let sum: i64 = history
            .iter()
            .map(|entry| entry["amount"].as_i64().expect("an amount is an int"))
            .sum();
        assert_eq!(sum, balance, "seed {seed}: the history does not add up: {account}");
        total += balance;
        entries += history.len() as u64;
        messages +=
            setup.show("Customer", &format!("owner{number}"))["unread"].as_u64().expect("a count");
    }
    assert_eq!(total, 100 * ACCOUNTS as i64, "seed {seed}");
    assert_eq!(messages, 2 * moved, "seed {seed}");
    assert_eq!(entries, 2 * moved + ACCOUNTS as u64, "seed {seed}");
    let conflicts = setup.counters["accounts"].now().conflicts;
    assert!(
        moved > 20 && conflicts > 20,
        "seed {seed}: {moved} transfers met {conflicts} conflicts"
    );
}

/// Clients at three replicas post and read at once; once all is delivered, every replica shows
/// every post once.
#[test]
fn replicas_end_with_the_same_posts() {
    let binding = "[stores.inboxes]\nreplicas = 3\ndelay = \"40ms±20ms\"\ndistance = \"1ms\"\n[stores.groups]\ndistance = \"85ms\"";
    let setup = Setup::with(
        include_str!("../../../../examples/message_groups.mingle"),
        binding,
        &BTreeMap::new(),
    );
    for user in ["ana", "bob", "eve"] {
        setup.ok("join_group", &[("user", user), ("group", "rust")]);
    }
    let clients = (1..=3).map(|replica: u32| {
        let database = Arc::clone(&setup.database);
        let client: BoxFuture<'_, ()> = Box::pin(async move {
            let session = Session::at(format!("r{replica}"));
            for number in 0..10 {
                let post = format!("{replica}.{number}");
                let arguments =
                    database.arguments("add_post", [("group", "rust"), ("post", &*post)]);
                let arguments = arguments.expect("the arguments are right");
                database
                    .call("add_post", arguments, session.clone())
                    .await
                    .expect("nothing fails here");
            }
        });
        client
    });
    setup.world.block_on(join_all(clients.collect()));
    setup.world.advance(std::time::Duration::from_secs(1));
    let mut seen = Vec::new();
    for replica in 1..=3 {
        let session = Session::at(format!("r{replica}"));
        let user = setup.database.object("User", "ana").expect("the kind is right");
        let shown =
            setup.world.block_on(setup.database.show(&user, &session, 100)).expect("it answers");
        seen.push(shown["unread"].clone());
    }
    assert_eq!(seen[0], seen[1]);
    assert_eq!(seen[1], seen[2]);
    let mut posts: Vec<String> =
        seen[0].as_array().expect("a list").iter().map(ToString::to_string).collect();
    posts.sort();
    posts.dedup();
    assert_eq!(posts.len(), 30, "{}", json!(posts));
}
