//! Writes that constraints of the application's tables refuse: at once, or too late.

use mingle::{Error, Unfinished};
use mingle_store::StoreError;
use serde_json::{Value as Json, json};

use super::Legacy;
use crate::engines::site::{RealSite, block_on};
use crate::support::scenarios::Site;

const SHOP: &str = "
CREATE TABLE legacy.customers (
    email text PRIMARY KEY,
    name text NOT NULL,
    credit bigint NOT NULL CHECK (credit >= 0)
);
CREATE TABLE legacy.orders (
    id uuid PRIMARY KEY,
    customer text NOT NULL REFERENCES legacy.customers,
    total bigint NOT NULL
);
CREATE TABLE legacy.links (
    id text PRIMARY KEY,
    customer text REFERENCES legacy.customers DEFERRABLE INITIALLY DEFERRED
);
CREATE TABLE legacy.notes (id text PRIMARY KEY, line text NOT NULL DEFAULT '');
CREATE FUNCTION legacy.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'no order above a thousand'; END $$;
CREATE TRIGGER bounded BEFORE INSERT OR UPDATE ON legacy.orders
    FOR EACH ROW WHEN (new.total > 1000) EXECUTE FUNCTION legacy.refuse();
INSERT INTO legacy.customers VALUES ('ana@x.org', 'Ana', 50);
";

const TABLES: &str = "\
[stores.shop.objects.Customer]
table = \"legacy.customers\"
key = \"email\"

[stores.shop.objects.Order]
table = \"legacy.orders\"
key = \"id\"

[stores.shop.objects.Link]
table = \"legacy.links\"
key = \"id\"

[stores.shop.objects.Note]
table = \"legacy.notes\"
key = \"id\"

[runtime]
deadline = \"30s\"
";

const OBJECTS: &str = "\
object Customer in shop { key email: string; name: string; credit: int; }
object Order in shop { key id: string; customer: ref Customer; total: int; }
object Link in shop { key id: string; customer: option<ref Customer>; }
object Note in shop { key id: string; line: string; }
";

/// The tables are written in the first phase that writes.
const FIRST: &str = "\
store shop: linearizable;
store feed: causal;

object Page in feed { key email: string; lines: log<string>; }

transaction place(order: ref Order, customer: ref Customer, total: int) {
    order.customer = customer;
    order.total = total;
    Note[order.id].line = \"placed\";
    Page[customer.email].lines.append(\"placed\");
}

transaction charge(customer: ref Customer, total: int) {
    customer.credit -= total;
    Page[customer.email].lines.append(\"charged\");
}

/// Refused at the commit, and not before.
transaction link(link: ref Link, customer: ref Customer) {
    link.customer = some(customer);
    Page[customer.email].lines.append(\"linked\");
}
";

/// The tables are written in a later phase, in which only `place` makes writes that may be refused.
const LATER: &str = "\
store ledger: linearizable;
store shop: snapshot;

object Entry in ledger { key day: string; total: int; }

transaction place(day: ref Entry, order: ref Order, customer: ref Customer, total: int) -> int {
    day.total += total;
    order.customer = customer;
    order.total = total;
    Note[order.id].line = \"placed\";
    return day.total;
}

/// Writes nothing before.
transaction rename(customer: ref Customer, name: string) {
    customer.name = name;
}

transaction link(link: ref Link, customer: ref Customer) {
    link.customer = some(customer);
}

/// What others have may keep a customer from being deleted, but not from getting a name.
transaction close(day: ref Entry, customer: ref Customer) {
    day.total += 1;
    customer.delete();
}

/// Reads here only.
transaction note_credit(day: ref Entry, customer: ref Customer) -> int {
    day.total += 1;
    return customer.credit;
}
";

const ORDER: &str = "0e37df36-f698-11e6-8dd4-cb9ced3df976";

#[test]
fn the_first_phase_is_refused_in_the_words_of_the_database_and_nothing_is_written() {
    let Some(legacy) = Legacy::new(SHOP) else { return };
    let form = legacy.form();
    let site = RealSite::new(&format!("{FIRST}{OBJECTS}"), &legacy.binding("shop", TABLES));
    assert_eq!(site.database.warnings(), [""; 0], "nothing can be refused too late");
    let place = |customer, total| ("place", vec![("order", ORDER), ("customer", customer), total]);
    let charge = ("charge", vec![("customer", "ana@x.org"), ("total", "51")]);
    let link = ("link", vec![("link", "l"), ("customer", "eve@x.org")]);
    let cases: [(_, &[&str]); 4] = [
        (link, &["links_customer_fkey", "table: links"]),
        (charge, &["customers_credit_check", "table: customers", "violates check constraint"]),
        (
            place("eve@x.org", ("total", "5")),
            &["orders_customer_fkey", "table: orders", "Key (customer)=(eve@x.org) is not present"],
        ),
        (place("ana@x.org", ("total", "1001")), &["no order above a thousand"]),
    ];
    for ((transaction, arguments), words) in cases {
        let error = site.call(transaction, &arguments).expect_err("it is refused");
        let Error::Store(StoreError::Violated { store, violation }) = &error else {
            panic!("{transaction} gave {error:?}")
        };
        let reason = &violation.message;
        assert!(violation.constraint.as_deref().is_none_or(|name| name == words[0]), "{error:?}");
        assert_eq!(&**store, "shop");
        for word in words {
            assert!(reason.contains(word), "{word:?} is not in {reason:?}");
        }
        assert!(error.to_string().ends_with("; nothing was written"), "{error}");
        assert_eq!(block_on(site.database.unfinished()), Ok(Vec::new()), "{transaction}");
    }
    assert_eq!(legacy.number("SELECT count(*) FROM legacy.orders"), 0);
    assert_eq!(legacy.number("SELECT count(*) FROM legacy.notes"), 0);
    assert_eq!(legacy.number("SELECT count(*) FROM legacy.links"), 0);
    assert_eq!(legacy.number("SELECT credit FROM legacy.customers"), 50);
    assert_eq!(site.show("Page", "ana@x.org"), Json::Null);
    assert_eq!(site.show("Page", "eve@x.org"), Json::Null);
    // Writes that the constraints allow succeed, over the same connections.
    site.ok("charge", &[("customer", "ana@x.org"), ("total", "50")]);
    assert_eq!(site.show("Page", "ana@x.org")["lines"], json!(["charged"]));
    assert!(site.settles(), "it does not come to rest");
    assert_eq!(legacy.form(), form, "the form of the tables");
}

fn unfinished(site: &RealSite) -> Vec<Unfinished> {
    block_on(site.database.unfinished()).expect("the stores answer")
}

#[test]
fn what_may_refuse_a_later_phase_is_said_at_the_start_and_parks_the_transaction() {
    let Some(legacy) = Legacy::new(SHOP) else { return };
    let form = legacy.form();
    let site = RealSite::new(&format!("{LATER}{OBJECTS}"), &legacy.binding("shop", TABLES));
    // Customers are written in a first phase only, and no constraint can refuse a note.
    let [deletion, warning] = site.database.warnings() else {
        panic!("{:#?}", site.database.warnings());
    };
    for word in ["Customer", "close", "orders_customer_fkey", "links_customer_fkey"] {
        assert!(deletion.contains(word), "{word:?} is not in {deletion:?}");
    }
    for word in ["place", "rename", "customers_credit_check"] {
        assert!(!deletion.contains(word), "{word:?} is in {deletion:?}");
    }
    let uuid = "it is uuid, and refuses text that is no UUID";
    for word in ["store shop", "Order", "place", "orders_customer_fkey", "trigger bounded", uuid] {
        assert!(warning.contains(word), "{word:?} is not in {warning:?}");
    }
    for word in ["close", "rename", "note_credit", "Link"] {
        assert!(!warning.contains(word), "{word:?} is in {warning:?}");
    }

    let arguments =
        [("day", "monday"), ("order", ORDER), ("customer", "eve@x.org"), ("total", "5")];
    let error = site.call("place", &arguments).expect_err("there is no such customer");
    let Error::Incomplete { committed, missing, .. } = &error else { panic!("{error:?}") };
    assert_eq!((&*committed[0], &*missing[0]), ("ledger", "shop"));
    assert!(error.to_string().contains("orders_customer_fkey"), "{error}");
    let [left] = &unfinished(&site)[..] else { panic!("one is left: {:?}", unfinished(&site)) };
    let reason = left.parked.as_deref().unwrap_or("not parked");
    assert!(reason.contains("orders_customer_fkey"), "{reason}");
    assert_eq!(site.show("Entry", "monday")["total"], json!(5));
    assert_eq!(legacy.number("SELECT count(*) FROM legacy.orders"), 0);

    // A call that meets it is refused with this error; the other program can use the tables as before.
    let met = site.call("place", &arguments).expect_err("it meets the parked one");
    assert!(met.to_string().contains("orders_customer_fkey"), "{met}");
    assert_eq!(site.show("Entry", "monday")["total"], json!(5), "it has committed nothing");
    legacy.execute("UPDATE legacy.customers SET credit = 60 WHERE email = 'ana@x.org'");
    let swept = block_on(site.database.recover()).expect("the stores answer");
    assert!(swept.finished.is_empty(), "the obstacle is still there");
    assert_eq!(legacy.number("SELECT count(*) FROM legacy.orders"), 0);

    legacy.execute("INSERT INTO legacy.customers VALUES ('eve@x.org', 'Eve', 0)");
    let swept = block_on(site.database.recover()).expect("the stores answer");
    assert!(swept.finished.contains(&left.id), "{swept:?}");
    // The call that had met it was refused, and does not follow.
    assert!(site.settles(), "it does not come to rest");
    assert_eq!(unfinished(&site), []);
    assert_eq!(site.show("Entry", "monday")["total"], json!(5));
    let orders = "SELECT total FROM legacy.orders WHERE customer = 'eve@x.org'";
    assert_eq!(legacy.number(orders), 5);
    assert_eq!(site.show("Note", ORDER)["line"], json!("placed"));
    assert_eq!(legacy.form(), form, "the form of the tables");
}
