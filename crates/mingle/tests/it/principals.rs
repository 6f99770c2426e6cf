//! The rights with which a transaction runs.

use std::sync::Arc;
use std::time::Duration;

use mingle::{Admission, Call, Error, Principal, Session};
use mingle_store::World;
use serde_json::json;

use crate::support::dying::{Dying, Life};
use crate::support::shared::Stores;

const TEXT: &str = "store bank: linearizable; store feed: causal;
    object Account in bank { key owner: string; balance: int; }
    object Inbox in feed { key owner: string; unread: counter; }
    transaction pay(to: ref Account, inbox: ref Inbox) {
        to.balance += 10;
        inbox.unread.add(1);
    }
    transaction look(of: ref Account, inbox: ref Inbox) -> list<int> {
        return [of.balance, inbox.unread.value()];
    }";

/// Admits one caller to one transaction.
struct Only(&'static str, &'static str);

impl Admission for Only {
    fn admits(&self, principal: Option<&Principal>, transaction: &str) -> bool {
        principal.is_none_or(|principal| principal.as_str() == self.0) && transaction == self.1
    }
}

fn pay(server: &mingle::Database, name: &str) -> Call {
    let arguments = server.arguments("pay", [("to", "ana"), ("inbox", "ana")]);
    let principal = Principal::new(name).ok();
    Call { principal, ..Call::new("pay", arguments.expect("they are right")) }
}

#[test]
fn who_is_not_admitted_writes_nothing_and_a_helper_finishes_what_was_admitted() {
    let stores = Stores::new(TEXT, "");
    let life = Life::until(1, true);
    let first =
        stores.server_over(stores.world.clone(), |_, store| Dying::within(store, life.clone()));
    assert!(first.runtime().admit_by(Arc::new(Only("till", "pay"))));
    let error = stores.world.block_on(first.submit(pay(&first, "guest")));
    let error = error.expect_err("it is not admitted");
    assert!(matches!(error, Error::Forbidden { .. }), "{error}");
    assert_eq!(error.to_string(), "guest may not call pay; nothing was written");
    assert!(!life.is_over(), "no store was asked");

    let call = pay(&first, "till");
    stores.world.spawn(Box::pin(async move {
        let _ = first.submit(call).await;
        first.settle(Duration::from_secs(1)).await;
    }));
    stores.pass(1);
    assert!(life.is_over());

    // The caller has lost its right meanwhile: a transaction that has begun is finished, and no new one begins.
    let second = stores.server_over(stores.world.clone(), |_, store| store);
    assert!(second.runtime().admit_by(Arc::new(Only("other", "pay"))));
    let left = stores.world.block_on(second.unfinished()).expect("the stores answer");
    assert_eq!(left.len(), 1, "{left:?}");
    assert_eq!(left[0].principal, Principal::new("till").ok());
    let error = stores.world.block_on(second.submit(pay(&second, "till")));
    assert!(matches!(error, Err(Error::Forbidden { .. })), "{error:?}");
    let look = [("of", "ana"), ("inbox", "ana")];
    assert_eq!(stores.ok(&second, &Session::default(), "look", &look), json!([10, 1]));
}
