//! The examples do what they say.

mod support;

use mingle::Error;
use serde_json::json;
use support::Setup;

fn code(error: &Error) -> &str {
    error.code()
}

#[test]
fn message_groups() {
    let setup = Setup::new(include_str!("../../../examples/message_groups.mingle"));
    setup.ok("create_user", &[("name", "ana")]);
    setup.ok("join_group", &[("user", "ana"), ("group", "rust")]);
    setup.ok("join_group", &[("user", "bob"), ("group", "rust")]);
    assert_eq!(setup.ok("add_post", &[("group", "rust"), ("post", "hello")]), json!(2));
    assert_eq!(setup.ok("add_post", &[("group", "none"), ("post", "hello")]), json!(0));
    assert_eq!(setup.ok("check_inbox", &[("user", "ana")]), json!(["hello"]));
    assert_eq!(setup.ok("check_inbox", &[("user", "ana")]), json!([]));
    assert_eq!(setup.show("User", "ana")["read"], json!(["hello"]));
    assert_eq!(setup.show("User", "bob")["groups"], json!(["rust"]));
    setup.ok("set_closed", &[("group", "rust"), ("closed", "true")]);
    let error = setup.call("add_post", &[("group", "rust"), ("post", "late")]).unwrap_err();
    assert_eq!((code(&error), error.to_string().as_str()), ("closed", "the group is closed"));
    assert_eq!(setup.ok("check_inbox", &[("user", "bob")]), json!(["hello"]));
}

#[test]
fn ticket_shop() {
    let setup = Setup::new(include_str!("../../../examples/ticket_shop.mingle"));
    setup.ok("put_on_sale", &[("name", "opera"), ("price", "50"), ("seats", "3")]);
    let error = setup
        .call("put_on_sale", &[("name", "opera"), ("price", "1"), ("seats", "1")])
        .unwrap_err();
    assert_eq!(code(&error), "exists");
    let order = setup.ok("buy", &[("event", "opera"), ("buyer", "ana"), ("seats", "2")]);
    let order = order.as_str().expect("a ref is its key").to_owned();
    assert_eq!(setup.show("Order", &order)["total"], json!(100));
    assert_eq!(setup.show("Buyer", "ana")["orders"], json!([order]));
    let error =
        setup.call("buy", &[("event", "opera"), ("buyer", "bob"), ("seats", "2")]).unwrap_err();
    assert_eq!((code(&error), error.to_string().as_str()), ("sold_out", "seats left: 1"));
    assert_eq!(setup.show("Buyer", "bob"), json!(null));
    setup.ok("comment", &[("event", "opera"), ("text", "sublime")]);
    assert_eq!(setup.ok("view", &[("event", "opera")]), json!(["sublime"]));
    assert_eq!(setup.show("Page", "opera")["views"], json!(1));
}

#[test]
fn cart() {
    let setup = Setup::new(include_str!("../../../examples/cart.mingle"));
    setup.ok("restock", &[("item", "tea"), ("count", "5"), ("price", "4")]);
    setup.ok("put_in", &[("customer", "ana"), ("item", "tea"), ("count", "2")]);
    setup.ok("put_in", &[("customer", "ana"), ("item", "milk"), ("count", "1")]);
    setup.ok("put_in", &[("customer", "ana"), ("item", "milk"), ("count", "0")]);
    let lines = setup.ok("show_cart", &[("customer", "ana")]);
    assert_eq!(lines, json!([{"item": "tea", "count": 2}]));
    let order = setup.ok("check_out", &[("customer", "ana"), ("lines", &lines.to_string())]);
    let order = order.as_str().expect("a ref is its key").to_owned();
    assert_eq!(setup.show("Order", &order)["total"], json!(8));
    assert_eq!(setup.show("Item", "tea")["left"], json!(3));
    assert_eq!(setup.ok("show_cart", &[("customer", "ana")]), json!([]));
    let greedy = json!([{"item": "tea", "count": 4}]).to_string();
    let error = setup.call("check_out", &[("customer", "ana"), ("lines", &greedy)]).unwrap_err();
    assert_eq!((code(&error), error.to_string().as_str()), ("out_of_stock", "not enough of tea"));
    // Two lines of one item are checked one after the other.
    let twice = json!([{"item": "tea", "count": 2}, {"item": "tea", "count": 2}]).to_string();
    let error = setup.call("check_out", &[("customer", "ana"), ("lines", &twice)]).unwrap_err();
    assert_eq!(code(&error), "out_of_stock");
    assert_eq!(setup.show("Item", "tea")["left"], json!(3));
}

#[test]
fn bank() {
    let setup = Setup::new(include_str!("../../../examples/bank.mingle"));
    for (number, owner) in [("1", "ana"), ("2", "bob")] {
        setup.ok("open_account", &[("number", number), ("owner", owner)]);
    }
    assert_eq!(setup.ok("deposit", &[("account", "1"), ("amount", "100")]), json!(100));
    setup.ok("transfer", &[("from", "1"), ("to", "2"), ("amount", "30")]);
    for (to, amount, refused) in
        [("2", "71", "too_low"), ("1", "1", "invalid"), ("2", "0", "invalid")]
    {
        let error =
            setup.call("transfer", &[("from", "1"), ("to", to), ("amount", amount)]).unwrap_err();
        assert_eq!(code(&error), refused);
    }
    assert_eq!(setup.show("Account", "1")["balance"], json!(70));
    assert_eq!(setup.show("Account", "2")["balance"], json!(30));
    assert_eq!(setup.show("Account", "2")["history"][0]["amount"], json!(30));
    assert_eq!(setup.show("Customer", "bob")["unread"], json!(1));
    assert_eq!(
        setup.ok("messages", &[("customer", "bob"), ("limit", "5")]),
        json!(["received 30 from 1"])
    );
    assert_eq!(setup.show("Customer", "bob")["unread"], json!(0));
}
