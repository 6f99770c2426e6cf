//! Calls that a rule of the database refuses: the problem names the rule, and is not a failure of
//! the store.

use std::hash::{BuildHasher, RandomState};

use mingle_services::Engine;
use serde_json::{Value as Json, json};
use tokio::runtime::Runtime;
use tokio_postgres::{Client, NoTls};

use crate::http::client::Served;

const TABLES: &str = "
CREATE SCHEMA rules;
CREATE TYPE rules.mood AS ENUM ('calm', 'wild');
CREATE DOMAIN rules.even AS bigint CONSTRAINT is_even CHECK (VALUE % 2 = 0);
CREATE TABLE rules.customers (
    email text PRIMARY KEY,
    credit bigint NOT NULL CONSTRAINT credit_is_there CHECK (credit >= 0),
    badge bigint CONSTRAINT one_badge UNIQUE,
    seat bigint,
    level smallint,
    nick varchar(5),
    mood rules.mood,
    even rules.even,
    CONSTRAINT one_seat EXCLUDE USING btree (seat WITH =)
);
CREATE TABLE rules.orders (
    id text PRIMARY KEY,
    customer text CONSTRAINT of_customer REFERENCES rules.customers,
    total bigint NOT NULL
);
CREATE FUNCTION rules.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'no order above %', 1000 USING ERRCODE = TG_ARGV[0]; END $$;
CREATE TRIGGER bounded BEFORE INSERT OR UPDATE ON rules.orders
    FOR EACH ROW WHEN (new.total = 1001) EXECUTE FUNCTION rules.refuse('P0001');
CREATE TRIGGER bounded_too BEFORE INSERT OR UPDATE ON rules.orders
    FOR EACH ROW WHEN (new.total = 1002) EXECUTE FUNCTION rules.refuse('AB123');
INSERT INTO rules.customers (email, credit, badge, seat) VALUES ('ana@x.org', 50, 1, 1);
";

const TEXT: &str = "store shop: linearizable; store book: linearizable;
    object Customer in shop {
        key email: string; credit: int; badge: option<int>; seat: option<int>;
        level: option<int>; nick: option<string>; mood: option<string>; even: option<int>;
    }
    object Order in shop { key id: string; customer: option<ref Customer>; total: int; }
    object Entry in book { key day: string; total: int; }
    transaction charge(of: ref Customer, n: int) { of.credit -= n; }
    transaction badge(of: ref Customer, n: int) { of.badge = some(n); of.credit = 1; }
    transaction seat(of: ref Customer, n: int) { of.seat = some(n); of.credit = 1; }
    transaction place(order: ref Order, of: ref Customer, total: int) {
        order.customer = some(of);
        order.total = total;
    }
    transaction level(of: ref Customer, n: int) { of.level = some(n); }
    transaction nick(of: ref Customer, text: string) { of.nick = some(text); }
    transaction mood(of: ref Customer, text: string) { of.mood = some(text); }
    transaction even(of: ref Customer, n: int) { of.even = some(n); }
    transaction close(of: ref Customer) { of.delete(); }
    transaction credit(of: ref Customer) -> int { return of.credit; }";

/// A call, its status and code, and the kind and name of the rule.
type Case = (&'static str, Json, (u16, &'static str), (&'static str, Option<&'static str>));

fn binding(url: &str, own: &str) -> String {
    let objects = [("Customer", "customers", "email"), ("Order", "orders", "id")];
    let objects = objects.map(|(object, table, key)| {
        format!("[stores.shop.objects.{object}]\ntable = \"{own}.{table}\"\nkey = \"{key}\"\n")
    });
    format!(
        "[stores.shop]\nengine = \"postgres\"\nurl = \"{url}\"\nschema = \"{own}_mingle\"\n{}",
        objects.concat()
    )
}

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("it listens");
    tokio::spawn(connection);
    client
}

/// Returns the calls that a rule forbids, in a shop in which ana has a credit of 50, the badge 1
/// and the seat 1.
fn cases() -> Vec<Case> {
    let place = |of: &str, total: i64| json!({ "order": "o", "of": of, "total": total });
    let ana = |n: i64| json!({ "of": "ana@x.org", "n": n });
    let eve = || json!({ "of": "eve@x.org", "n": 1 });
    let text = |text: &str| json!({ "of": "ana@x.org", "text": text });
    let violated = (422, "constraint-violated");
    let conflicts = (409, "constraint-conflict");
    vec![
        ("charge", ana(51), violated, ("check", Some("credit_is_there"))),
        ("level", ana(70_000), violated, ("out-of-range", None)),
        ("nick", text("too long"), violated, ("out-of-range", None)),
        ("mood", text("odd"), violated, ("out-of-range", None)),
        ("even", ana(3), violated, ("check", Some("is_even"))),
        ("badge", eve(), conflicts, ("unique", Some("one_badge"))),
        ("seat", eve(), conflicts, ("exclusion", Some("one_seat"))),
        ("place", place("eve@x.org", 5), conflicts, ("foreign-key", Some("of_customer"))),
        ("close", json!({ "of": "ana@x.org" }), conflicts, ("foreign-key", Some("of_customer"))),
        ("place", place("ana@x.org", 1_001), violated, ("raised", None)),
        ("place", place("ana@x.org", 1_002), violated, ("raised", None)),
        ("charge", ana(60), violated, ("check", Some("credit_is_there"))),
    ]
}

#[test]
fn what_a_rule_of_the_database_refuses_is_told_with_its_name() {
    let runtime = Runtime::new().expect("a runtime starts");
    let Some(server) = runtime.block_on(mingle_services::shared(Engine::Postgres)) else { return };
    let own = format!("http_rules_{:016x}", RandomState::new().hash_one(std::process::id()));
    let client = runtime.block_on(async {
        let client = connect(server.url()).await;
        let tables = TABLES.replace("rules.", &format!("{own}."));
        let tables = tables.replace("SCHEMA rules", &format!("SCHEMA {own}"));
        client.batch_execute(&tables).await.expect("the tables are made");
        client
    });
    let served = Served::with(TEXT, &binding(server.url(), &own), |_| {});
    let place = |of: &str, total: i64| json!({ "order": "o", "of": of, "total": total });
    assert_eq!(served.call("place", &place("ana@x.org", 5)).status, 200);
    for (transaction, body, expected, (kind, constraint)) in cases() {
        let answer = served.call(transaction, &body);
        let shown = format!("{transaction} {body}: {}", answer.body);
        assert_eq!((answer.status, answer.code().as_str()), expected, "{shown}");
        let problem = answer.json();
        assert_eq!(problem["constraint_kind"], kind, "{shown}");
        assert_eq!(problem["constraint"], json!(constraint), "{shown}");
        assert_eq!((&problem["store"], &problem["retryable"]), (&json!("shop"), &json!(false)));
        assert!(answer.detail().ends_with("; nothing was written"), "{shown}");
    }
    assert_eq!(served.ok("credit", &json!({ "of": "ana@x.org" })), json!(50));
    drop(served);
    let drop = format!("DROP SCHEMA {own} CASCADE; DROP SCHEMA {own}_mingle CASCADE");
    runtime.block_on(client.batch_execute(&drop)).expect("no connection uses them any more");
}
