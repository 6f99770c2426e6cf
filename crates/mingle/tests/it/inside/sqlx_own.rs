//! Behaviour specific to sqlx.

use mingle::Error;
use sqlx::{Connection as _, Executor as _};

use super::shop::{Item, Shop, sold};

const BEGIN: &str = "BEGIN ISOLATION LEVEL SERIALIZABLE";

async fn connect(shop: &Shop) -> sqlx::PgConnection {
    sqlx::PgConnection::connect(&shop.url).await.expect("the server takes connections")
}

/// sqlx would take the next transaction for the outermost one, and its end for the end of the whole.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_that_sqlx_does_not_know_of_is_a_mistake() {
    let Some(shop) = Shop::open().await else { return };
    let mut connection = connect(&shop).await;
    connection.execute(BEGIN).await.expect("a transaction");
    let refused = shop.db.buy(&Item::new("tea"), "ana").inside(&mut connection).await;
    let expected = "the connection is not within a transaction";
    assert_eq!(refused.map(drop), Err(Error::Misuse(expected.into())));
    connection.execute("COMMIT").await.expect("it is still open");
}

/// A nested transaction of sqlx, which can be rolled back by itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_is_a_part_of_the_innermost_transaction() {
    let Some(shop) = Shop::open().await else { return };
    let (db, tea, mut connection) = (&shop.db, Item::new("tea"), connect(&shop).await);
    let mut tx = connection.begin_with(BEGIN).await.expect("a transaction");
    let kept = db.buy(&tea, "ana").inside(&mut tx).await.expect("there is some");
    let mut inner = tx.begin().await.expect("a savepoint");
    let taken_back = db.buy(&tea, "bob").inside(&mut inner).await.expect("there is one left");
    assert_eq!(taken_back.result(), Some(0));
    inner.rollback().await.expect("it goes back");
    let mut inner = tx.begin().await.expect("a savepoint");
    db.buy(&Item::new("nothing"), "bob").inside(&mut inner).await.expect_err("there is none");
    inner.commit().await.expect("it is kept");
    assert_eq!(shop.stands("tea").await, 2, "nothing has committed");
    tx.commit().await.expect("nothing is in its way");
    assert_eq!(kept.follow().await, Ok(1));
    assert_eq!(taken_back.follow().await, Err(Error::Cancelled));
    assert_eq!((shop.stands("tea").await, sold(db, "tea").await), (1, 1));
    shop.settles().await;
}

/// A changed table invalidates the prepared statements of the connection once, not for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_may_change_between_two_calls() {
    let Some(shop) = Shop::open().await else { return };
    let (db, tea, mut connection) = (&shop.db, Item::new("tea"), connect(&shop).await);
    for change in ["", "ALTER COLUMN \"left\" TYPE integer", "ALTER COLUMN \"left\" TYPE bigint"] {
        if !change.is_empty() {
            let sql = format!("ALTER TABLE {}.items {change}", shop.name);
            shop.client.batch_execute(&sql).await.expect("the table changes");
        }
        let mut failures = 0;
        let count = loop {
            let mut tx = connection.begin_with(BEGIN).await.expect("a transaction");
            let error = match db.measure(&tea).inside(&mut tx).await {
                Ok(measured) if tx.commit().await.is_ok() => break measured.follow().await,
                Ok(_) => continue,
                Err(error) => error,
            };
            assert!(error.is_retryable(), "{error}");
            failures += 1;
            assert!(failures < 5, "{change}: {error}");
        };
        assert_eq!(count, Ok(2));
        assert_eq!(failures, i32::from(!change.is_empty()), "{change}");
    }
}
