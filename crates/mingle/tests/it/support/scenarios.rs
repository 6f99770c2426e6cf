//! The behaviour of the examples, independent of the engines of their stores.

use mingle::{CallReport, Error};
use serde_json::{Value as Json, json};

/// A program over its stores, called by a test.
pub trait Site {
    fn call(&self, transaction: &str, arguments: &[(&str, &str)]) -> Result<CallReport, Error>;

    /// The result of a call that must succeed, as JSON.
    fn ok(&self, transaction: &str, arguments: &[(&str, &str)]) -> Json;

    fn show(&self, kind: &str, key: &str) -> Json;
}

/// An example, and the checks of a run.
pub struct Scenario<S> {
    pub name: &'static str,
    pub text: &'static str,
    pub run: fn(&S),
}

/// All scenarios.
pub fn all<S: Site>() -> [Scenario<S>; 4] {
    [
        Scenario {
            name: "message_groups",
            text: include_str!("../../../../../examples/message_groups.mingle"),
            run: message_groups,
        },
        Scenario {
            name: "ticket_shop",
            text: include_str!("../../../../../examples/ticket_shop.mingle"),
            run: ticket_shop,
        },
        Scenario {
            name: "cart",
            text: include_str!("../../../../../examples/cart.mingle"),
            run: cart,
        },
        Scenario {
            name: "bank",
            text: include_str!("../../../../../examples/bank.mingle"),
            run: bank,
        },
    ]
}

fn code(error: &Error) -> &str {
    error.code()
}

fn message_groups(site: &impl Site) {
    site.ok("create_user", &[("name", "ana")]);
    site.ok("join_group", &[("user", "ana"), ("group", "rust")]);
    site.ok("join_group", &[("user", "bob"), ("group", "rust")]);
    assert_eq!(site.ok("add_post", &[("group", "rust"), ("post", "hello")]), json!(2));
    assert_eq!(site.ok("add_post", &[("group", "none"), ("post", "hello")]), json!(0));
    assert_eq!(site.ok("check_inbox", &[("user", "ana")]), json!(["hello"]));
    assert_eq!(site.ok("check_inbox", &[("user", "ana")]), json!([]));
    assert_eq!(site.show("User", "ana")["read"], json!(["hello"]));
    assert_eq!(site.show("User", "bob")["groups"], json!(["rust"]));
    site.ok("set_closed", &[("group", "rust"), ("closed", "true")]);
    let error = site.call("add_post", &[("group", "rust"), ("post", "late")]).unwrap_err();
    assert_eq!((code(&error), error.to_string().as_str()), ("closed", "the group is closed"));
    assert_eq!(site.ok("check_inbox", &[("user", "bob")]), json!(["hello"]));
}

fn ticket_shop(site: &impl Site) {
    site.ok("put_on_sale", &[("name", "opera"), ("price", "50"), ("seats", "3")]);
    let error =
        site.call("put_on_sale", &[("name", "opera"), ("price", "1"), ("seats", "1")]).unwrap_err();
    assert_eq!(code(&error), "exists");
    let order = site.ok("buy", &[("event", "opera"), ("buyer", "ana"), ("seats", "2")]);
    let order = order.as_str().expect("a ref is its key").to_owned();
    assert_eq!(site.show("Order", &order)["total"], json!(100));
    assert_eq!(site.show("Buyer", "ana")["orders"], json!([order]));
    let error =
        site.call("buy", &[("event", "opera"), ("buyer", "bob"), ("seats", "2")]).unwrap_err();
    assert_eq!((code(&error), error.to_string().as_str()), ("sold_out", "seats left: 1"));
    assert_eq!(site.show("Buyer", "bob"), json!(null));
    site.ok("comment", &[("event", "opera"), ("text", "sublime")]);
    assert_eq!(site.ok("view", &[("event", "opera")]), json!(["sublime"]));
    assert_eq!(site.show("Page", "opera")["views"], json!(1));
}

fn cart(site: &impl Site) {
    site.ok("restock", &[("item", "tea"), ("count", "5"), ("price", "4")]);
    site.ok("put_in", &[("customer", "ana"), ("item", "tea"), ("count", "2")]);
    site.ok("put_in", &[("customer", "ana"), ("item", "milk"), ("count", "1")]);
    site.ok("put_in", &[("customer", "ana"), ("item", "milk"), ("count", "0")]);
    let lines = site.ok("show_cart", &[("customer", "ana")]);
    assert_eq!(lines, json!([{"item": "tea", "count": 2}]));
    let order = site.ok("check_out", &[("customer", "ana"), ("lines", &lines.to_string())]);
    let order = order.as_str().expect("a ref is its key").to_owned();
    assert_eq!(site.show("Order", &order)["total"], json!(8));
    assert_eq!(site.show("Item", "tea")["left"], json!(3));
    assert_eq!(site.ok("show_cart", &[("customer", "ana")]), json!([]));
    let greedy = json!([{"item": "tea", "count": 4}]).to_string();
    let error = site.call("check_out", &[("customer", "ana"), ("lines", &greedy)]).unwrap_err();
    assert_eq!((code(&error), error.to_string().as_str()), ("out_of_stock", "not enough of tea"));
    // Two lines of one item are checked one after the other.
    let twice = json!([{"item": "tea", "count": 2}, {"item": "tea", "count": 2}]).to_string();
    let error = site.call("check_out", &[("customer", "ana"), ("lines", &twice)]).unwrap_err();
    assert_eq!(code(&error), "out_of_stock");
    assert_eq!(site.show("Item", "tea")["left"], json!(3));
}

fn bank(site: &impl Site) {
    for (number, owner) in [("1", "ana"), ("2", "bob")] {
        site.ok("open_account", &[("number", number), ("owner", owner)]);
    }
    assert_eq!(site.ok("deposit", &[("account", "1"), ("amount", "100")]), json!(100));
    site.ok("transfer", &[("from", "1"), ("to", "2"), ("amount", "30")]);
    for (to, amount, refused) in
        [("2", "71", "too_low"), ("1", "1", "invalid"), ("2", "0", "invalid")]
    {
        let error =
            site.call("transfer", &[("from", "1"), ("to", to), ("amount", amount)]).unwrap_err();
        assert_eq!(code(&error), refused);
    }
    assert_eq!(site.show("Account", "1")["balance"], json!(70));
    assert_eq!(site.show("Account", "2")["balance"], json!(30));
    assert_eq!(site.show("Account", "2")["history"][0]["amount"], json!(30));
    assert_eq!(site.show("Customer", "bob")["unread"], json!(1));
    assert_eq!(
        site.ok("messages", &[("customer", "bob"), ("limit", "5")]),
        json!(["received 30 from 1"])
    );
    assert_eq!(site.show("Customer", "bob")["unread"], json!(0));
}
