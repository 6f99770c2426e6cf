//! Calls that do not take effect, and the state of the application's transaction afterwards.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use mingle::{Error, Session, StoreError};

use super::driver::{Driver, Tx};
use super::shop::{Account, Item, Shop, sold, unique};

/// The application goes on as if it had made no call, and commits.
async fn goes_on(shop: &Shop, mut tx: Tx<'_>) {
    let before = shop.orders().await;
    tx.say(&shop.order(before + 1, "tea")).await.expect("it can go on");
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

async fn after_a_failed_require_the_application_goes_on(driver: Driver) {
    let Some(shop) = Shop::open().await else { return };
    let mut client = shop.connect(driver).await;
    let mut tx = client.begin().await;
    let refused = tx.join(shop.db.buy(&Item::new("nothing"), "ana")).await;
    let Err(Error::Require { code, .. }) = refused else { panic!("there is none of it") };
    assert_eq!(code.as_deref(), Some("sold_out"));
    goes_on(&shop, tx).await;
}

async fn what_the_database_refuses_it_says_itself(driver: Driver) {
    let Some(shop) = Shop::open().await else { return };
    let check = format!("ALTER TABLE {}.items ADD CHECK (\"left\" < 100)", shop.name);
    shop.client.batch_execute(&check).await.expect("a constraint");
    let mut client = shop.connect(driver).await;
    let mut tx = client.begin().await;
    let refused = tx.join(shop.db.fill(&Item::new("tea"), 100)).await;
    let Err(Error::Store(StoreError::Violated { violation, .. })) = refused else {
        panic!("there is a constraint")
    };
    assert_eq!(violation.kind, mingle_store::ViolationKind::Check);
    assert_eq!(violation.constraint.as_deref(), Some("items_left_check"), "{violation}");
    goes_on(&shop, tx).await;
}

async fn a_weaker_transaction_is_a_mistake(driver: Driver) {
    let Some(shop) = Shop::open().await else { return };
    let (tea, mut client) = (Item::new("tea"), shop.connect(driver).await);
    for seen in ["READ COMMITTED", "REPEATABLE READ"] {
        let mut tx = client.begin_at(seen).await;
        let why = misuse(tx.join(shop.db.buy(&tea, "ana")).await);
        let expected = format!(
            "the application's transaction is at {seen}, and store stock needs SERIALIZABLE"
        );
        assert_eq!(why, expected);
        goes_on(&shop, tx).await;
    }
    let mut tx = client.begin_at("SERIALIZABLE READ ONLY").await;
    let why = misuse(tx.join(shop.db.buy(&tea, "ana")).await);
    assert!(why.contains("READ ONLY"), "{why}");
}

async fn another_database_is_a_mistake(driver: Driver) {
    let Some(shop) = Shop::open().await else { return };
    let name = unique();
    shop.client.batch_execute(&format!("CREATE DATABASE {name}")).await.expect("a database");
    let mut other = driver.connect_to(&shop.url, &name).await;
    let mut tx = other.begin().await;
    let why = misuse(tx.join(shop.db.buy(&Item::new("tea"), "ana")).await);
    assert!(why.contains(&format!("is at database {name}")), "{why}");
    assert_eq!(tx.text("SELECT '1'").await, "1");
    drop(tx);
    drop(other);
}

async fn what_cannot_be_a_part_is_said(driver: Driver) {
    let Some(shop) = Shop::open().await else { return };
    let (db, tea, mut client) = (&shop.db, Item::new("tea"), shop.connect(driver).await);
    let mut tx = client.begin().await;
    let why = misuse(tx.join(db.left(&tea)).await);
    assert_eq!(why, "left writes nothing, so it cannot be a part of a transaction");
    let why = misuse(tx.join(db.both(&tea)).await);
    assert!(why.starts_with("both is isolated and visits several stores"), "{why}");
    let why = misuse(tx.join(db.spend(&Account::new("a"), &tea)).await);
    assert!(why.starts_with("spend visits store ledger before it has written at store"), "{why}");
    goes_on(&shop, tx).await;

    // The transaction has failed before the call.
    let mut tx = client.begin().await;
    tx.say("SELECT 1 / 0").await.expect_err("it divides by zero");
    let why = misuse(tx.join(db.buy(&tea, "ana")).await);
    assert!(why.starts_with("the application's transaction has failed before"), "{why}");
    drop(tx);

    let Some(beside) = Shop::open_beside().await else { return };
    let mut tx = client.begin().await;
    let why = misuse(tx.join(beside.db.note("tea")).await);
    let expected = "note writes first at store pages, which is not in one PostgreSQL database";
    assert_eq!(why, expected);
}

/// Another client has changed the item since the application's snapshot: only a new transaction can succeed.
async fn a_conflict_ends_the_call_and_not_the_process(driver: Driver) {
    let Some(shop) = Shop::open().await else { return };
    let (db, tea, mut client) = (&shop.db, Item::new("tea"), shop.connect(driver).await);
    let mut tx = client.begin().await;
    tx.say(&shop.order(1, "tea")).await.expect("an order");
    db.buy(&tea, "bob").await.expect("there is some");
    let refused = tx.join(db.buy(&tea, "ana")).await.expect_err("it was bought meanwhile");
    assert!(refused.is_retryable(), "{refused}");
    tx.rollback().await.expect("it can be rolled back");
    // Otherwise the cleanup of the other transaction would be in the way too.
    shop.settles().await;
    let mut tx = client.begin().await;
    let bought = tx.join(db.buy(&tea, "ana")).await.expect("there is one left");
    tx.commit().await.expect("nothing is in its way");
    assert_eq!(bought.follow().await, Ok(0));
    assert_eq!((shop.stands("tea").await, sold(db, "tea").await), (0, 2));
    shop.settles().await;
}

/// The transaction that the session waits for cannot arrive while the application holds the item: the
/// wait ends with the deadline, and a new transaction of the application sees it.
async fn a_wait_inside_is_bounded(driver: Driver) {
    let Some(shop) = Shop::open().await else { return };
    let (db, tea, mut client) = (&shop.db, Item::new("tea"), shop.connect(driver).await);
    let session = Session::default();
    let mut tx = client.begin().await;
    let touch = format!("UPDATE {}.items SET \"left\" = \"left\" WHERE name = 'tea'", shop.name);
    tx.say(&touch).await.expect("it has the item");
    let early = db.credit(&Account::new("a"), &tea).session(&session).until("ledger").await;
    assert_eq!(
        early.expect("the ledger takes it").following,
        vec![mingle_model::Name::from("stock")]
    );
    let call = db.buy(&tea, "ana").session(&session).deadline(Duration::from_millis(700));
    let refused = tx.join(call).await.expect_err("it waits for the one that waits for it");
    assert!(matches!(refused, Error::Waiting { .. }) && refused.is_retryable(), "{refused}");
    tx.rollback().await.expect("it can be rolled back");
    let bought = loop {
        let mut tx = client.begin().await;
        match tx.join(db.buy(&tea, "ana").session(&session)).await {
            Ok(bought) if tx.commit().await.is_ok() => break bought,
            // It came after the snapshot, or is being cleaned up.
            Ok(_) => {}
            Err(error) => assert!(error.is_retryable(), "{error}"),
        }
    };
    assert_eq!(bought.follow().await, Ok(2));
    shop.settles().await;
}

/// Two of the application's transactions read each other's writes: one cannot commit, and the call
/// inside it does not take effect either.
async fn what_the_application_cannot_commit_does_not_follow(driver: Driver) {
    let Some(shop) = Shop::open().await else { return };
    let (db, tea, coffee) = (&shop.db, Item::new("tea"), Item::new("coffee"));
    let (mut one, mut other) = (shop.connect(driver).await, shop.connect(driver).await);
    let count = format!("SELECT count(*)::text FROM {}.orders", shop.name);
    let (mut first, mut second) = (one.begin().await, other.begin().await);
    assert_eq!(first.text(&count).await, "0");
    assert_eq!(second.text(&count).await, "0");
    first.say(&shop.order(1, "tea")).await.expect("an order");
    second.say(&shop.order(2, "coffee")).await.expect("an order");
    let bought_first = first.join(db.buy(&tea, "ana")).await;
    let bought_second = second.join(db.buy(&coffee, "bob")).await;
    let mut committed = Vec::new();
    for (tx, bought, item) in [(first, bought_first, "tea"), (second, bought_second, "coffee")] {
        // The server decides which one fails, and whether it fails in the call already.
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

async fn going_back_to_a_savepoint_takes_the_call_back(driver: Driver) {
    let Some(shop) = Shop::open().await else { return };
    let (db, tea, mut client) = (&shop.db, Item::new("tea"), shop.connect(driver).await);
    let mut tx = client.begin().await;
    tx.say("SAVEPOINT before").await.expect("a savepoint");
    let bought = tx.join(db.buy(&tea, "ana")).await.expect("there is some");
    tx.say("ROLLBACK TO SAVEPOINT before").await.expect("it goes back");
    tx.say(&shop.order(1, "tea")).await.expect("an order");
    tx.commit().await.expect("nothing is in its way");
    assert_eq!(bought.follow().await, Err(Error::Cancelled));
    shop.settles().await;
    assert_eq!((shop.orders().await, shop.stands("tea").await, sold(db, "tea").await), (1, 2, 0));
}

async fn the_application_keeps_its_settings(driver: Driver) {
    let Some(shop) = Shop::open().await else { return };
    let (db, tea, mut client) = (&shop.db, Item::new("tea"), shop.connect(driver).await);
    let own = format!(
        "SET search_path = {}, public; SET TimeZone = 'Asia/Tokyo'; SET DateStyle = 'SQL, DMY'; \
         SET statement_timeout = '77s'; SET bytea_output = 'escape'",
        shop.name
    );
    client.say(&own).await;
    let sql = "SELECT string_agg(name || '=' || setting, ' ' ORDER BY name) FROM pg_settings \
        WHERE name IN ('search_path', 'TimeZone', 'DateStyle', 'statement_timeout', \
        'bytea_output', 'enable_seqscan', 'lock_timeout')";
    let mut tx = client.begin().await;
    let before = tx.text(sql).await;
    let bought = tx.join(db.buy(&tea, "ana")).await.expect("there is some");
    let after = tx.text(sql).await;
    assert_eq!(before, after);
    tx.join(db.buy(&Item::new("nothing"), "ana")).await.expect_err("there is none");
    let failed = tx.text(sql).await;
    assert_eq!(before, failed);
    tx.commit().await.expect("nothing is in its way");
    assert_eq!(bought.follow().await, Ok(1));
}

/// A call that is dropped at any await point leaves the application's transaction as it was.
async fn a_call_that_is_dropped_leaves_the_application_alone(driver: Driver) {
    let Some(shop) = Shop::open().await else { return };
    let (db, tea, mut client) = (&shop.db, Item::new("tea"), shop.connect(driver).await);
    let mut dropped = 0;
    loop {
        let mut tx = client.begin().await;
        let ended = {
            let mut call = pin!(tx.join(db.buy(&tea, "ana")));
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

over_both_drivers!(
    after_a_failed_require_the_application_goes_on,
    what_the_database_refuses_it_says_itself,
    a_weaker_transaction_is_a_mistake,
    another_database_is_a_mistake,
    what_cannot_be_a_part_is_said,
    a_conflict_ends_the_call_and_not_the_process,
    a_wait_inside_is_bounded,
    what_the_application_cannot_commit_does_not_follow,
    going_back_to_a_savepoint_takes_the_call_back,
    the_application_keeps_its_settings,
    a_call_that_is_dropped_leaves_the_application_alone,
);
