//! Keys of every kind: uuid, numbers, keys of several columns, and join tables.

use std::sync::Arc;

use mingle::Session;
use mingle_services::Engine;
use serde_json::{Value as Json, json};
use tokio_postgres::Client;

use super::Legacy;
use crate::engines::site::{RealSite, block_on};
use crate::support::scenarios::Site;

const SHOP: &str = "
CREATE TABLE legacy.products (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    name varchar(40) NOT NULL,
    description text,
    weight double precision,
    seen timestamptz,
    stock integer
);
CREATE TABLE legacy.tags (name text PRIMARY KEY);
CREATE TABLE legacy.product_tags (
    product uuid REFERENCES legacy.products ON DELETE CASCADE,
    tag text REFERENCES legacy.tags,
    PRIMARY KEY (product, tag)
);
CREATE TABLE legacy.orders (id bigint PRIMARY KEY, placed timestamptz);
CREATE TABLE legacy.order_items (
    order_id bigint REFERENCES legacy.orders,
    product uuid REFERENCES legacy.products,
    quantity integer NOT NULL CHECK (quantity > 0),
    PRIMARY KEY (order_id, product)
);
CREATE INDEX by_name ON legacy.products (lower(name));
INSERT INTO legacy.products (id, name) VALUES ('0e37df36-f698-11e6-8dd4-cb9ced3df976', 'tea');
INSERT INTO legacy.tags VALUES ('hot');
INSERT INTO legacy.orders VALUES (7);
";

const TABLES: &str = "\
[stores.shop.objects.Product]
table = \"legacy.products\"
key = \"id\"
fields.tags = { table = \"legacy.product_tags\", key = \"product\", value = \"tag\" }

[stores.shop.objects.Tag]
table = \"legacy.tags\"
key = \"name\"

[stores.shop.objects.Order]
table = \"legacy.orders\"
key = \"id\"
columns = { at = \"placed\" }

[stores.shop.objects.Order.fields.items]
table = \"legacy.order_items\"
key = [\"order_id\"]
entry = \"product\"
value = \"quantity\"

[runtime]
deadline = \"60s\"
";

const PROGRAM: &str = "\
store shop: linearizable;
store feed: causal;

object Product in shop {
    key id: string;
    name: string;
    description: option<string>;
    weight: option<float>;
    seen: option<time>;
    stock: int;
    tags: set<ref Tag>;
}

object Tag in shop { key name: string; }

object Order in shop {
    key id: int;
    at: option<time>;
    items: map<ref Product, int>;
}

object Page in feed { key order: int; lines: counter; }

transaction tag(product: ref Product, name: string) {
    put Tag { name: name };
    product.tags.insert(Tag[name]);
}

transaction untag(product: ref Product, name: string) {
    product.tags.remove(Tag[name]);
}

transaction describe(product: ref Product, text: option<string>, weight: option<float>) {
    product.description = text;
    product.weight = weight;
    product.seen = some(now());
}

transaction add_item(order: ref Order, product: ref Product, count: int) {
    order.items.put(product, (order.items.get(product) ?? 0) + count);
    Page[order.id].lines.add(count);
}
";

const TEA: &str = "0e37df36-f698-11e6-8dd4-cb9ced3df976";

const TIMES: usize = 15;

/// Adds a line to the order and tags it, as the other program does.
async fn in_sql(client: Client, level: &str) {
    let put = format!(
        "BEGIN ISOLATION LEVEL {level}; \
         INSERT INTO order_items VALUES (7, '{TEA}', 2) ON CONFLICT (order_id, product) \
         DO UPDATE SET quantity = order_items.quantity + excluded.quantity; \
         INSERT INTO product_tags VALUES ('{TEA}', 'hot') ON CONFLICT DO NOTHING; COMMIT"
    );
    for _ in 0..TIMES {
        while let Err(error) = client.batch_execute(&put).await {
            client.batch_execute("ROLLBACK").await.expect("the server answers");
            let code = error.code().map_or("", tokio_postgres::error::SqlState::code);
            assert!(code.starts_with("40"), "{level}: {error:?}");
        }
    }
}

async fn in_mingle(site: Arc<RealSite>) {
    for _ in 0..TIMES {
        let named = [("order", "7"), ("product", TEA), ("count", "3")];
        let tagged = [("product", TEA), ("name", "hot")];
        for (transaction, named) in [("add_item", &named[..]), ("tag", &tagged[..])] {
            let arguments = site.database.arguments(transaction, named.iter().copied());
            let arguments = arguments.expect("they are right");
            let report = site.database.call(transaction, arguments, Session::default()).await;
            report.unwrap_or_else(|error| panic!("{transaction}: {error}"));
        }
    }
}

#[test]
fn both_programs_fill_the_same_join_tables() {
    let Some(legacy) = Legacy::new(SHOP) else { return };
    let form = legacy.form();
    let binding = legacy.binding("shop", TABLES) + &legacy.beside("feed", Engine::Redis);
    let site = Arc::new(RealSite::new(PROGRAM, &binding));
    assert_eq!(site.database.warnings(), [""; 0], "nothing can be refused too late");
    // The tables are empty at first, so that both programs also meet at the insertion.
    block_on(async {
        let mut clients = Vec::new();
        for level in ["READ COMMITTED", "SERIALIZABLE"] {
            clients.push(tokio::spawn(in_sql(legacy.connect().await, level)));
            clients.push(tokio::spawn(in_mingle(Arc::clone(&site))));
        }
        for client in clients {
            client.await.expect("no client panics");
        }
    });
    let times = TIMES as i64;
    let quantity = "SELECT quantity::bigint FROM legacy.order_items";
    assert_eq!(legacy.number(quantity), 2 * (2 + 3) * times);
    assert_eq!(legacy.number("SELECT count(*) FROM legacy.product_tags"), 1);
    assert!(site.settles(), "it does not come to rest");
    assert_eq!(site.show("Page", "7")["lines"], json!(2 * 3 * times));
    assert_eq!(legacy.form(), form, "the form of the tables");
}

#[test]
fn what_may_be_null_is_an_option_or_never_written() {
    let Some(legacy) = Legacy::new(SHOP) else { return };
    let form = legacy.form();
    let site = RealSite::new(PROGRAM, &legacy.binding("shop", TABLES));
    let tea = site.show("Product", TEA);
    assert_eq!(
        (&tea["description"], &tea["weight"], &tea["seen"], &tea["stock"], &tea["tags"]),
        (&Json::Null, &Json::Null, &Json::Null, &json!(0), &json!([]))
    );
    let described = [("product", TEA), ("text", "\"black\""), ("weight", "0.5")];
    site.ok("describe", &described);
    site.ok("tag", &[("product", TEA), ("name", "black")]);
    legacy.execute(&format!("INSERT INTO legacy.product_tags VALUES ('{TEA}', 'hot')"));
    let tea = site.show("Product", TEA);
    assert_eq!(tea["description"], json!("black"));
    assert_eq!(tea["weight"], json!(0.5));
    assert_eq!(tea["tags"], json!(["black", "hot"]));
    assert!(tea["seen"].is_string(), "{tea}");
    // Columns that were not written are unchanged.
    assert_eq!(legacy.number("SELECT count(*) FROM legacy.products WHERE stock IS NULL"), 1);
    let again = [("product", TEA), ("text", "null"), ("weight", "null")];
    site.ok("describe", &again);
    let nulls = "SELECT count(*) FROM legacy.products WHERE description IS NULL AND weight IS NULL";
    assert_eq!(legacy.number(nulls), 1);
    site.ok("untag", &[("product", TEA), ("name", "black")]);
    // The other program removes the row to which Mingle's row refers.
    legacy.execute("DELETE FROM legacy.products");
    assert_eq!(site.show("Product", TEA), Json::Null);
    assert!(site.settles(), "it does not come to rest");
    assert_eq!(legacy.form(), form, "the form of the tables");
}
