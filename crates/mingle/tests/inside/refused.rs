//! What does not take effect, and what the application's transaction is like then.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use mingle::{Error, Session, StoreError};
use tokio_postgres::{Client, IsolationLevel, Transaction};

use super::shop::{Account, Item, Shop, begin, connect, sold, unique};

/// The application goes on as if nothing had been called, and commits.
async fn goes_on(shop: &Shop, tx: Transaction<'_>) {
    let before = shop.orders().await;
    tx.batch_execute(&shop.order(before + 1, "tea")).await.expect("it can go on");
    tx.commit().await.expect("it can commit");
    shop.settles().await;
    let now = (shop.orders().await, shop.stands("tea").await, sold(&shop.db, "tea").await);
    assert_eq!(now, (before + 1, 2, 0));
}

fn misuse<T>(result: Result<T, Error>) -> String {
    match result {
        Err(Error::Misuse(why) | Error::Unsupported(why)) => why,
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("it was not refused"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_failed_require_the_application_goes_on() {
    let Some(shop) = Shop::open().await else { return };
    let mut client = shop.connect().await;
    let mut tx = begin(&mut client).await;
    let refused = shop.db.buy(&Item::new("nothing"), "ana").inside(&mut tx).await;
    let Err(Error::Require { code, .. }) = refused else { panic!("there is none of it") };
    assert_eq!(code.as_deref(), Some("sold_out"));
    goes_on(&shop, tx).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_database_refuses_it_says_itself() {
    let Some(shop) = Shop::open().await else { return };
    let check = format!("ALTER TABLE {}.items ADD CHECK (\"left\" < 100)", shop.name);
    shop.client.batch_execute(&check).await.expect("a constraint");
    let mut client = shop.connect().await;
    let mut tx = begin(&mut client).await;
    let refused = shop.db.fill(&Item::new("tea"), 100).inside(&mut tx).await;
    let Err(Error::Store(StoreError::Refused { reason, .. })) = refused else {
        panic!("there is a constraint")
    };
    assert!(reason.contains("items_left_check"), "{reason}");
    goes_on(&shop, tx).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_weaker_transaction_is_a_mistake() {
    let Some(shop) = Shop::open().await else { return };
    let (tea, mut client) = (Item::new("tea"), shop.connect().await);
    for (level, seen) in [
        (IsolationLevel::ReadCommitted, "READ COMMITTED"),
        (IsolationLevel::RepeatableRead, "REPEATABLE READ"),
    ] {
        let mut tx = client.build_transaction().isolation_level(level).start().await.expect("it");
        let why = misuse(shop.db.buy(&tea, "ana").inside(&mut tx).await);
        let expected = format!(
            "the application's transaction is at {seen}, and store stock needs SERIALIZABLE"
        );
        assert_eq!(why, expected);
        goes_on(&shop, tx).await;
    }
    let level = IsolationLevel::Serializable;
    let begun = client.build_transaction().isolation_level(level).read_only(true).start().await;
    let why = misuse(shop.db.buy(&tea, "ana").inside(&mut begun.expect("it")).await);
    assert!(why.contains("READ ONLY"), "{why}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_database_is_a_mistake() {
    let Some(shop) = Shop::open().await else { return };
    let name = unique();
    shop.client.batch_execute(&format!("CREATE DATABASE {name}")).await.expect("a database");
    let mut config: tokio_postgres::Config = shop.url.parse().expect("the address is right");
    let (other, connection) =
        config.dbname(&name).connect(tokio_postgres::NoTls).await.expect("a connection");
    tokio::spawn(connection);
    let mut other: Client = other;
    let mut tx = begin(&mut other).await;
    let why = misuse(shop.db.buy(&Item::new("tea"), "ana").inside(&mut tx).await);
    assert!(why.contains(&format!("is at database {name}")), "{why}");
    tx.query_one("SELECT 1", &[]).await.expect("it can go on");
    drop(tx);
    drop(other);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_a_part_is_said() {
    let Some(shop) = Shop::open().await else { return };
    let (db, tea, mut client) = (&shop.db, Item::new("tea"), shop.connect().await);
    let mut tx = begin(&mut client).await;
    let why = misuse(db.left(&tea).inside(&mut tx).await);
    assert_eq!(why, "left writes nothing, so it cannot be a part of a transaction");
    let why = misuse(db.both(&tea).inside(&mut tx).await);
    assert!(why.starts_with("both is isolated and visits several stores"), "{why}");
    let why = misuse(db.spend(&Account::new("a"), &tea).inside(&mut tx).await);
    assert!(why.starts_with("spend visits store ledger before it has written at store"), "{why}");
    goes_on(&shop, tx).await;

    // It has failed before.
    let mut tx = begin(&mut client).await;
    tx.batch_execute("SELECT 1 / 0").await.expect_err("it divides by zero");
    let why = misuse(db.buy(&tea, "ana").inside(&mut tx).await);
    assert!(why.starts_with("the application's transaction has failed before"), "{why}");
    drop(tx);

    let Some(beside) = Shop::open_beside().await else { return };
    let mut tx = begin(&mut client).await;
    let why = misuse(beside.db.note("tea").inside(&mut tx).await);
    let expected = "note writes first at store pages, which is not in one PostgreSQL database";
    assert_eq!(why, expected);
}

/// Somebody has changed the item since the application's snapshot: only a new transaction can succeed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conflict_ends_the_call_and_not_the_process() {
    let Some(shop) = Shop::open().await else { return };
    let (db, tea, mut client) = (&shop.db, Item::new("tea"), shop.connect().await);
    let mut tx = begin(&mut client).await;
    tx.batch_execute(&shop.order(1, "tea")).await.expect("an order");
    db.buy(&tea, "bob").await.expect("there is some");
    let refused = db.buy(&tea, "ana").inside(&mut tx).await.expect_err("it was bought meanwhile");
    assert!(refused.is_retryable(), "{refused}");
    tx.rollback().await.expect("it can be rolled back");
    // Cleaning up after the other one would be in the way too.
    shop.settles().await;
    let mut tx = begin(&mut client).await;
    let bought = db.buy(&tea, "ana").inside(&mut tx).await.expect("there is one left");
    tx.commit().await.expect("nothing is in its way");
    assert_eq!(bought.follow().await, Ok(0));
    assert_eq!((shop.stands("tea").await, sold(db, "tea").await), (0, 2));
    shop.settles().await;
}

/// What the session has to wait for cannot come while the application holds the item: that ends with the
/// deadline, and a new transaction of the application's sees it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wait_inside_is_bounded() {
    let Some(shop) = Shop::open().await else { return };
    let (db, tea, mut client) = (&shop.db, Item::new("tea"), shop.connect().await);
    let session = Session::default();
    let mut tx = begin(&mut client).await;
    let touch = format!("UPDATE {}.items SET \"left\" = \"left\" WHERE name = 'tea'", shop.name);
    tx.batch_execute(&touch).await.expect("it has the item");
    let early = db.credit(&Account::new("a"), &tea).session(&session).until("ledger").await;
    assert_eq!(
        early.expect("the ledger takes it").following,
        vec![mingle_model::Name::from("stock")]
    );
    let call = db.buy(&tea, "ana").session(&session).deadline(Duration::from_millis(700));
    let refused = call.inside(&mut tx).await.expect_err("it waits for the one that waits for it");
    assert!(matches!(refused, Error::Waiting { .. }) && refused.is_retryable(), "{refused}");
    tx.rollback().await.expect("it can be rolled back");
    let bought = loop {
        let mut tx = begin(&mut client).await;
        match db.buy(&tea, "ana").session(&session).inside(&mut tx).await {
            Ok(bought) if tx.commit().await.is_ok() => break bought,
            // It came after the snapshot, or is being cleaned up.
            Ok(_) => {}
            Err(error) => assert!(error.is_retryable(), "{error}"),
        }
    };
    assert_eq!(bought.follow().await, Ok(2));
    shop.settles().await;
}

/// Two of the application's transactions read what the other one writes: one cannot commit, and with it
/// what was called in it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_application_cannot_commit_does_not_follow() {
    let Some(shop) = Shop::open().await else { return };
    let (db, tea, coffee) = (&shop.db, Item::new("tea"), Item::new("coffee"));
    let (mut one, mut other) = (shop.connect().await, shop.connect().await);
    let count = format!("SELECT count(*) FROM {}.orders", shop.name);
    let (mut first, mut second) = (begin(&mut one).await, begin(&mut other).await);
    first.query_one(&count, &[]).await.expect("a count");
    second.query_one(&count, &[]).await.expect("a count");
    first.batch_execute(&shop.order(1, "tea")).await.expect("an order");
    second.batch_execute(&shop.order(2, "coffee")).await.expect("an order");
    let bought_first = db.buy(&tea, "ana").inside(&mut first).await;
    let bought_second = db.buy(&coffee, "bob").inside(&mut second).await;
    let mut committed = Vec::new();
    for (tx, bought, item) in [(first, bought_first, "tea"), (second, bought_second, "coffee")] {
        // Which one fails, and whether already in the call, is up to the server.
        let Ok(bought) = bought else { continue };
        if tx.commit().await.is_ok() {
            bought.follow().await.expect("the application has committed");
            committed.push(item);
        } else {
            assert_eq!(bought.follow().await, Err(Error::Cancelled));
        }
    }
    shop.settles().await;
    assert!(committed.len() < 2, "they are not serializable");
    assert_eq!(shop.orders().await, committed.len() as i64);
    for (item, before) in [("tea", 2), ("coffee", 5)] {
        let times = i64::from(committed.contains(&item));
        assert_eq!((shop.stands(item).await, sold(db, item).await), (before - times, times));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn going_back_to_a_savepoint_takes_the_call_back() {
    let Some(shop) = Shop::open().await else { return };
    let (db, tea, mut client) = (&shop.db, Item::new("tea"), shop.connect().await);
    let mut tx = begin(&mut client).await;
    tx.batch_execute("SAVEPOINT before").await.expect("a savepoint");
    let bought = db.buy(&tea, "ana").inside(&mut tx).await.expect("there is some");
    tx.batch_execute("ROLLBACK TO SAVEPOINT before").await.expect("it goes back");
    tx.batch_execute(&shop.order(1, "tea")).await.expect("an order");
    tx.commit().await.expect("nothing is in its way");
    assert_eq!(bought.follow().await, Err(Error::Cancelled));
    shop.settles().await;
    assert_eq!((shop.orders().await, shop.stands("tea").await, sold(db, "tea").await), (1, 2, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_application_keeps_its_settings() {
    let Some(shop) = Shop::open().await else { return };
    let (db, tea, mut client) = (&shop.db, Item::new("tea"), shop.connect().await);
    let own = format!(
        "SET search_path = {}, public; SET TimeZone = 'Asia/Tokyo'; SET DateStyle = 'SQL, DMY'; \
         SET statement_timeout = '77s'; SET bytea_output = 'escape'",
        shop.name
    );
    client.batch_execute(&own).await.expect("settings");
    let sql = "SELECT string_agg(name || '=' || setting, ' ' ORDER BY name) FROM pg_settings \
        WHERE name IN ('search_path', 'TimeZone', 'DateStyle', 'statement_timeout', \
        'bytea_output', 'enable_seqscan', 'lock_timeout')";
    let mut tx = begin(&mut client).await;
    let before: String = tx.query_one(sql, &[]).await.expect("settings").get(0);
    let bought = db.buy(&tea, "ana").inside(&mut tx).await.expect("there is some");
    let after: String = tx.query_one(sql, &[]).await.expect("settings").get(0);
    assert_eq!(before, after);
    db.buy(&Item::new("nothing"), "ana").inside(&mut tx).await.expect_err("there is none");
    let failed: String = tx.query_one(sql, &[]).await.expect("settings").get(0);
    assert_eq!(before, failed);
    tx.commit().await.expect("nothing is in its way");
    assert_eq!(bought.follow().await, Ok(1));
}

/// Dropped wherever it waits, a call leaves the application's transaction as it was.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_is_dropped_leaves_the_application_alone() {
    let Some(shop) = Shop::open().await else { return };
    let (db, tea, mut client) = (&shop.db, Item::new("tea"), connect(&shop.url).await);
    let mut dropped = 0;
    loop {
        let mut tx = begin(&mut client).await;
        let ended = {
            let mut call = pin!(db.buy(&tea, "ana").inside(&mut tx));
            let mut polls = 0;
            poll_fn(|context| {
                if polls == dropped {
                    return Poll::Ready(None);
                }
                polls += 1;
                call.as_mut().poll(context).map(Some)
            })
            .await
        };
        if let Some(bought) = ended {
            let bought = bought.expect("nothing is in its way");
            tx.commit().await.expect("nothing is in its way");
            assert_eq!(bought.follow().await, Ok(1), "after {dropped} calls that were dropped");
            break;
        }
        goes_on(&shop, tx).await;
        dropped += 1;
    }
    assert!(dropped > 3, "it has waited {dropped} times only");
    shop.settles().await;
    assert_eq!((shop.stands("tea").await, sold(db, "tea").await), (1, 1));
}
