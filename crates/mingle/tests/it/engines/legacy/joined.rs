//! Foreign keys of several columns are refs, also where they share a column with the key of their table.

use std::error::Error as _;

use mingle::{Binding, Database};
use serde_json::{Value as Json, json};

use super::Legacy;
use crate::engines::site::{RealSite, block_on};
use crate::support::scenarios::Site;

const SHOP: &str = "
CREATE TABLE legacy.orders (tenant integer, id bigint, note text, PRIMARY KEY (tenant, id));
CREATE TABLE legacy.lines (
    tenant integer,
    line bigint,
    order_id bigint NOT NULL,
    instead_of bigint,
    amount bigint NOT NULL DEFAULT 1,
    from_tenant integer,
    from_order bigint,
    weight bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant, line),
    FOREIGN KEY (tenant, order_id) REFERENCES legacy.orders,
    FOREIGN KEY (tenant, instead_of) REFERENCES legacy.orders (tenant, id),
    FOREIGN KEY (from_order, from_tenant) REFERENCES legacy.orders (id, tenant)
);
CREATE INDEX ON legacy.lines (tenant, order_id);
INSERT INTO legacy.orders VALUES (1, 10, 'first'), (1, 11, NULL), (2, 10, 'other');
INSERT INTO legacy.lines (tenant, line, order_id, from_tenant) VALUES (1, 1, 10, 2);
";

const TABLES: &str = "\
[stores.shop.objects.Order]
table = \"legacy.orders\"
key = [\"tenant\", \"id\"]

[stores.shop.objects.Line]
table = \"legacy.lines\"
key = [\"tenant\", \"line\"]
columns = { order = [\"tenant\", \"order_id\"], instead = [\"tenant\", \"instead_of\"], source = [\"from_tenant\", \"from_order\"] }
";

const PROGRAM: &str = "\
store shop: linearizable;
struct OrderKey { tenant: int, id: int }
struct LineKey { tenant: int, line: int }
object Order in shop { key key: OrderKey; note: option<string>; }
object Line in shop {
    key key: LineKey;
    order: ref Order;
    instead: option<ref Order>;
    source: option<ref Order>;
    amount: int;
    index by order;
    index by source, amount as by_source;
}
transaction add(tenant: int, line: int, order: int, note: string) -> ref Line {
    let made = new Line { key: LineKey { tenant: tenant, line: line }, order: Order[OrderKey { tenant: tenant, id: order }] };
    let _ = new Order { key: OrderKey { tenant: tenant, id: order }, note: some(note) };
    return made;
}
transaction move_to(line: ref Line, order: ref Order) -> bool {
    line.order = order;
    return line.order == order;
}
transaction replace(line: ref Line, order: option<ref Order>) { line.instead = order; }
transaction take_from(line: ref Line, order: option<ref Order>, amount: int) { line.source = order; line.amount = amount; }
transaction note_of(line: ref Line) -> option<string> { return line.order.note; }
transaction of_order(order: ref Order) -> list<ref Line> { return Line.by_order(order).first(9); }
transaction from_order(order: ref Order) -> list<ref Line> { return Line.by_source(order).first(9); }
transaction end(line: ref Line, order: ref Order) { line.delete(); order.delete(); }
";

fn order(tenant: i64, id: i64) -> Json {
    json!({ "tenant": tenant, "id": id })
}

fn line(tenant: i64, line: i64) -> Json {
    json!({ "tenant": tenant, "line": line })
}

#[test]
fn foreign_keys_of_several_columns_are_refs() {
    let Some(legacy) = Legacy::new(SHOP) else { return };
    let form = legacy.form();
    let site = RealSite::new(PROGRAM, &legacy.binding("shop", TABLES));
    let (first, second) = (line(1, 1).to_string(), line(1, 2).to_string());
    let refs = |key: &str| {
        let shown = site.show("Line", key);
        ["order", "instead", "source"].map(|field| shown[field].clone())
    };
    // A source whose other column is null is none, as the database does not check it.
    assert_eq!(refs(&first), [order(1, 10), Json::Null, Json::Null]);
    assert_eq!(site.ok("note_of", &[("line", &first)]), json!("first"));

    // The adapter writes the row of the order before the one that refers to it; the program writes them the other way round.
    site.ok("add", &[("tenant", "1"), ("line", "2"), ("order", "12"), ("note", "new")]);
    assert_eq!(refs(&second), [order(1, 12), Json::Null, Json::Null]);
    assert_eq!(legacy.number("SELECT order_id FROM legacy.lines WHERE line = 2"), 12);

    let to = order(1, 11).to_string();
    assert_eq!(site.ok("move_to", &[("line", &second), ("order", &to)]), json!(true));
    site.ok("replace", &[("line", &second), ("order", &to)]);
    let elsewhere = order(2, 10).to_string();
    site.ok("take_from", &[("line", &second), ("order", &elsewhere), ("amount", "7")]);
    assert_eq!(refs(&second), [order(1, 11), order(1, 11), order(2, 10)]);
    let row = "SELECT count(*) FROM legacy.lines WHERE tenant = 1 AND line = 2 AND order_id = 11 \
               AND instead_of = 11 AND from_tenant = 2 AND from_order = 10 AND amount = 7";
    assert_eq!(legacy.number(row), 1);

    // The index goes by all columns of the ref.
    assert_eq!(site.ok("of_order", &[("order", &to)]), json!([line(1, 2)]));
    assert_eq!(site.ok("of_order", &[("order", &order(1, 10).to_string())]), json!([line(1, 1)]));
    assert_eq!(site.ok("of_order", &[("order", &elsewhere)]), json!([]));
    assert_eq!(site.ok("from_order", &[("order", &elsewhere)]), json!([line(1, 2)]));

    site.ok("replace", &[("line", &second), ("order", "null")]);
    site.ok("take_from", &[("line", &second), ("order", "null"), ("amount", "8")]);
    assert_eq!(refs(&second), [order(1, 11), Json::Null, Json::Null]);
    let nulls = "SELECT count(*) FROM legacy.lines WHERE line = 2 AND instead_of IS NULL \
                 AND from_tenant IS NULL AND from_order IS NULL";
    assert_eq!(legacy.number(nulls), 1);
    site.ok("end", &[("line", &second), ("order", &to)]);
    assert_eq!(legacy.number("SELECT count(*) FROM legacy.orders WHERE id = 11"), 0);
    assert!(site.settles(), "it does not come to rest");
    assert_eq!(legacy.form(), form, "the form of the tables");
}

/// The key of an object never changes, so a ref cannot lead to another tenant; one that leads nowhere is refused by the
/// database.
#[test]
fn a_ref_that_differs_from_the_key_is_refused() {
    let Some(legacy) = Legacy::new(SHOP) else { return };
    let site = RealSite::new(PROGRAM, &legacy.binding("shop", TABLES));
    let (key, other, nowhere) =
        (line(1, 1).to_string(), order(2, 10).to_string(), order(1, 99).to_string());
    let column = "column tenant is part of the key of Line";
    for (transaction, to, says) in [
        ("move_to", &other, column),
        ("replace", &other, column),
        ("move_to", &nowhere, "lines_tenant_order_id_fkey"),
    ] {
        let error = site.call(transaction, &[("line", &key), ("order", to)]);
        let error = error.expect_err("it is refused");
        let mut text = error.to_string();
        let mut source = error.source();
        while let Some(inner) = source {
            text = format!("{text}: {inner}");
            source = inner.source();
        }
        assert!(text.contains(says), "{text}");
    }
    assert_eq!(site.show("Line", &key)["order"], order(1, 10));
}

#[test]
fn columns_that_do_not_fit_are_refused_at_the_start() {
    let Some(legacy) = Legacy::new(SHOP) else { return };
    let program = || mingle::compile(PROGRAM).unwrap_or_else(|errors| panic!("{errors}"));
    for (was, is, says) in [
        ("\"tenant\", \"order_id\"]", "\"order_id\"]", "Line.order is of type ref Order"),
        (
            "\"from_tenant\", \"from_order\"",
            "\"tenant\", \"weight\"",
            "columns would fit that may be null",
        ),
        ("\"from_order\"]", "\"amounts\"]", "has no column amounts"),
        (
            "[\"tenant\", \"instead_of\"]",
            "[\"from_tenant\", \"instead_of\"]",
            "Line.instead and Line.source are both kept in column from_tenant",
        ),
    ] {
        assert!(TABLES.contains(was), "{was}");
        let binding = legacy.binding("shop", &TABLES.replace(was, is));
        let parsed = Binding::parse(&binding).expect("the binding's form is right");
        let error = block_on(Database::open(program(), &parsed, None)).err();
        let text = error.unwrap_or_else(|| panic!("{is} is taken")).to_string();
        assert!(text.contains(says), "{text}");
    }
}
