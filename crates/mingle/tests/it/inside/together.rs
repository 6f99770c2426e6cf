//! Effects together with the application's transaction, and the effects that follow.

use mingle::{Error, Session};

use super::driver::Driver;
use super::shop::{Item, Shop, eventually, sold};

async fn a_call_takes_effect_with_the_application_and_the_rest_follows(driver: Driver) {
    let Some(shop) = Shop::open().await else { return };
    let (db, tea, mut client) = (&shop.db, Item::new("tea"), shop.connect(driver).await);
    let mut tx = client.begin().await;
    tx.say(&shop.order(1, "tea")).await.expect("an order");
    let bought = tx.join(db.buy(&tea, "ana")).await.expect("there is some");
    assert_eq!(bought.result(), Some(1));
    assert_eq!(*bought.following()[0], *"pages");
    assert_eq!((shop.stands("tea").await, sold(db, "tea").await), (2, 0), "it has not committed");
    tx.commit().await.expect("nothing is in its way");
    assert_eq!(bought.follow().await, Ok(1));
    assert_eq!((shop.orders().await, shop.stands("tea").await, sold(db, "tea").await), (1, 1, 1));
    shop.settles().await;
}

async fn a_rollback_undoes_both(driver: Driver) {
    let Some(shop) = Shop::open().await else { return };
    let (db, tea, mut client) = (&shop.db, Item::new("tea"), shop.connect(driver).await);
    for is_followed in [true, false] {
        let mut tx = client.begin().await;
        tx.say(&shop.order(1, "tea")).await.expect("an order");
        let bought = tx.join(db.buy(&tea, "ana")).await.expect("there is some");
        tx.rollback().await.expect("it can be rolled back");
        if is_followed {
            assert_eq!(bought.follow().await, Err(Error::Cancelled));
        }
    }
    shop.settles().await;
    assert_eq!((shop.orders().await, shop.stands("tea").await, sold(db, "tea").await), (0, 2, 0));
}

async fn what_nobody_follows_follows_by_itself(driver: Driver) {
    let Some(shop) = Shop::open().await else { return };
    let (db, tea, mut client) = (&shop.db, Item::new("tea"), shop.connect(driver).await);
    let mut tx = client.begin().await;
    tx.say(&shop.order(1, "tea")).await.expect("an order");
    tx.join(db.buy(&tea, "ana")).await.expect("there is some");
    tx.commit().await.expect("nothing is in its way");
    eventually(async || sold(db, "tea").await == 1).await;
    shop.settles().await;
    assert_eq!((shop.orders().await, shop.stands("tea").await, sold(db, "tea").await), (1, 1, 1));
}

/// Two processes: the first one dies once the application's transaction has committed.
async fn what_a_dead_process_has_begun_another_one_finishes(driver: Driver) {
    let Some(shop) = Shop::open().await else { return };
    let (tea, mut client) = (Item::new("tea"), shop.connect(driver).await);
    let dying = shop.another().await;
    let mut tx = client.begin().await;
    tx.say(&shop.order(1, "tea")).await.expect("an order");
    let bought = tx.join(dying.buy(&tea, "ana")).await.expect("there is some");
    // Neither followed nor dropped: nothing in its process goes on with it.
    std::mem::forget(bought);
    tx.commit().await.expect("nothing is in its way");
    assert_eq!((shop.stands("tea").await, sold(&shop.db, "tea").await), (1, 0));
    let recovered = shop.db.untyped().recover().await.expect("the stores answer");
    assert_eq!(recovered.finished.len(), 1, "{recovered:?}");
    assert_eq!((shop.orders().await, sold(&shop.db, "tea").await), (1, 1));
    shop.settles().await;
}

async fn it_reads_what_the_application_wrote_before_it(driver: Driver) {
    let Some(shop) = Shop::open().await else { return };
    let (db, mut client) = (&shop.db, shop.connect(driver).await);
    let mut tx = client.begin().await;
    let new = format!("INSERT INTO {}.items VALUES ('mate', 7)", shop.name);
    tx.say(&new).await.expect("a new item");
    let mate = Item::new("mate");
    let bought = tx.join(db.buy(&mate, "ana")).await.expect("there is some");
    assert_eq!(bought.result(), Some(6));
    let sql = format!("SELECT \"left\"::text FROM {}.items WHERE name = 'mate'", shop.name);
    assert_eq!(tx.text(&sql).await, "6", "the application sees what the call wrote");
    // Another call sees it too, and the rest of both follows.
    let again = tx.join(db.buy(&mate, "bob")).await.expect("there is some");
    assert_eq!(again.result(), Some(5));
    // This call writes without a read: it learns of the other calls' rows when it writes.
    let filled = tx.join(db.fill(&mate, 9)).await.expect("nothing is in its way");
    tx.commit().await.expect("nothing is in its way");
    assert_eq!(filled.follow().await, Ok(()));
    assert_eq!((bought.follow().await, again.follow().await), (Ok(6), Ok(5)));
    assert_eq!((shop.stands("mate").await, sold(db, "mate").await), (9, 2));
    assert_eq!(db.lines("mate").await.expect("the store answers"), ["ana", "bob", "filled"]);
    shop.settles().await;
}

async fn one_that_writes_one_store_leaves_nothing(driver: Driver) {
    let Some(shop) = Shop::open().await else { return };
    let (db, tea, mut client) = (&shop.db, Item::new("tea"), shop.connect(driver).await);
    for commits in [false, true] {
        let mut tx = client.begin().await;
        let stocked = tx.join(db.restock(&tea, 3)).await.expect("it always succeeds");
        assert_eq!((stocked.result(), stocked.following()), (Some(5), Vec::new()));
        if commits {
            tx.commit().await.expect("nothing is in its way");
            assert_eq!(stocked.follow().await, Ok(5));
        } else {
            tx.rollback().await.expect("it can be rolled back");
            assert_eq!(stocked.follow().await, Err(Error::Cancelled));
        }
        shop.settles().await;
    }
    assert_eq!(shop.stands("tea").await, 5);
}

/// The effects at other stores depend on the application's commit even if nothing is written here.
async fn where_it_writes_nothing_the_rest_follows_all_the_same(driver: Driver) {
    let Some(shop) = Shop::open().await else { return };
    let (db, tea, mut client) = (&shop.db, Item::new("tea"), shop.connect(driver).await);
    let mut tx = client.begin().await;
    let looked = tx.join(db.perhaps(&tea)).await.expect("it always succeeds");
    tx.rollback().await.expect("it can be rolled back");
    assert_eq!(looked.follow().await, Err(Error::Cancelled));
    assert_eq!(db.lines("tea").await, Ok(Vec::new()));
    let mut tx = client.begin().await;
    let looked = tx.join(db.perhaps(&tea)).await.expect("it always succeeds");
    tx.commit().await.expect("nothing is in its way");
    assert_eq!(looked.follow().await, Ok(()));
    assert_eq!(db.lines("tea").await, Ok(vec!["looked".to_owned()]));
    shop.settles().await;
}

async fn a_result_of_a_later_phase_comes_with_the_rest(driver: Driver) {
    let Some(shop) = Shop::open().await else { return };
    let (db, tea, mut client) = (&shop.db, Item::new("tea"), shop.connect(driver).await);
    let mut tx = client.begin().await;
    let counted = tx.join(db.count(&tea)).await.expect("it always succeeds");
    assert_eq!(counted.result(), None);
    tx.commit().await.expect("nothing is in its way");
    assert_eq!(counted.follow().await, Ok(1));
    shop.settles().await;
}

async fn the_rest_may_follow_at_another_engine(driver: Driver) {
    let Some(shop) = Shop::open_beside().await else { return };
    let (db, tea, mut client) = (&shop.db, Item::new("tea"), shop.connect(driver).await);
    let mut tx = client.begin().await;
    let bought = tx.join(db.buy(&tea, "ana")).await.expect("there is some");
    tx.commit().await.expect("nothing is in its way");
    assert_eq!(bought.follow().await, Ok(1));
    assert_eq!(sold(db, "tea").await, 1);
    assert!(db.untyped().settle(std::time::Duration::from_secs(30)).await);
}

/// Once the call is known to have committed, its session has seen it, at any store or replica.
async fn the_session_sees_what_follows(driver: Driver) {
    let Some(shop) = Shop::open().await else { return };
    let (db, tea, mut client) = (&shop.db, Item::new("tea"), shop.connect(driver).await);
    let elsewhere = shop.another().await;
    for round in 1..=20 {
        db.restock(&tea, 1).await.expect("it always succeeds");
        let session = Session::default();
        let bought = loop {
            let mut tx = client.begin().await;
            let call = db.buy(&tea, "ana").session(&session).until("stock");
            match tx.join(call).await {
                Ok(bought) if { tx.commit().await.is_ok() } => break bought,
                // The transaction of the round before is being cleaned up.
                Ok(_) => {}
                Err(error) => assert!(error.is_retryable(), "{error}"),
            }
            assert!(session.worklist().is_empty(), "the application has not committed");
        };
        let early = bought.follow().await.expect("the stores answer");
        assert_eq!(early.result, Some(2));
        assert_eq!(elsewhere.sold("tea").session(&session).await, Ok(round));
    }
    shop.settles().await;
}

over_both_drivers!(
    a_call_takes_effect_with_the_application_and_the_rest_follows,
    a_rollback_undoes_both,
    what_nobody_follows_follows_by_itself,
    what_a_dead_process_has_begun_another_one_finishes,
    it_reads_what_the_application_wrote_before_it,
    one_that_writes_one_store_leaves_nothing,
    where_it_writes_nothing_the_rest_follows_all_the_same,
    a_result_of_a_later_phase_comes_with_the_rest,
    the_rest_may_follow_at_another_engine,
    the_session_sees_what_follows,
);
