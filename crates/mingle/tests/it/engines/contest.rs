//! The contest, with inboxes in tables of the application and winners in another server.

use std::collections::BTreeSet;

use mingle::Session;
use mingle_services::Engine;
use serde_json::{Value as Json, json};

use crate::engines::legacy::Legacy;
use crate::engines::site::{RealSite, block_on};
use crate::support::scenarios::Site;

const GOAL: usize = 8;
const POSTS: usize = 4;
const TEAMS: [&str; 2] = ["red", "blue"];

/// Two application servers, and a goal that each team reaches only with the posts of both.
fn servers() -> Option<[RealSite; 2]> {
    let legacy = Legacy::new(
        "CREATE TABLE legacy.teams (name text PRIMARY KEY);
         CREATE TABLE legacy.posts (
             team text NOT NULL REFERENCES legacy.teams, number bigserial, line text NOT NULL)",
    )?;
    let inboxes = legacy.binding(
        "inboxes",
        r#"
        operations.strong_size = "SELECT count(*) FROM legacy.posts WHERE team = $1"
        [stores.inboxes.objects.Team]
        table = "legacy.teams"
        key = "name"
        fields.inbox = { table = "legacy.posts", key = "team", value = "line", order = "number" }
        "#,
    );
    // Two servers need one place for winners.
    let contests =
        Some(legacy.beside("contests", Engine::Redis)).filter(|bound| !bound.is_empty())?;
    let binding = contests + &inboxes;
    let text = include_str!("../../../../../examples/contest.mingle");
    let text = text.replace("1_000_000", &GOAL.to_string());
    Some([RealSite::new(&text, &binding), RealSite::new(&text, &binding)])
}

fn winner(site: &RealSite) -> Json {
    site.show("Contest", "cup").get("winner").cloned().unwrap_or(Json::Null)
}

#[test]
fn one_winner_is_declared_by_two_servers_at_once() {
    let Some(servers) = servers() else { return };
    let post = async |server: &RealSite, number: usize, team: &str| {
        for post in 0..POSTS {
            let text = format!("{number}.{post}");
            let arguments = [("contest", "cup"), ("team", team), ("text", &*text)];
            let arguments = server.database.arguments("post", arguments).expect("they fit");
            let posted = server.database.call("post", arguments, Session::default()).await;
            posted.unwrap_or_else(|error| panic!("{team}: {error}"));
        }
    };
    let [one, other] = &servers;
    block_on(async {
        tokio::join!(
            post(one, 0, TEAMS[0]),
            post(one, 1, TEAMS[1]),
            post(other, 2, TEAMS[0]),
            post(other, 3, TEAMS[1]),
        )
    });
    let declared = winner(one);
    assert!(TEAMS.iter().any(|team| declared == json!(team)), "{declared} is no team");
    assert_eq!(winner(other), declared);
    for team in TEAMS {
        let shown = one.show("Team", team);
        let lines = shown["inbox"].as_array().expect("it is a list");
        let distinct: BTreeSet<String> = lines.iter().map(Json::to_string).collect();
        assert_eq!((lines.len(), distinct.len()), (2 * POSTS, 2 * POSTS), "posts of {team}");
    }
    // A post at this time is too late.
    one.ok("post", &[("contest", "cup"), ("team", TEAMS[0]), ("text", "late")]);
    one.ok("post", &[("contest", "cup"), ("team", TEAMS[1]), ("text", "late")]);
    assert_eq!(winner(other), declared);
    assert!(servers.iter().all(RealSite::settles));
}
