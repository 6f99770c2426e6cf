//! `mingle init` over keyspaces of Cassandra.

use std::fs;
use std::path::Path;

use mingle_services::Engine;
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::value::Row;
use tokio::runtime::Runtime;

use super::{Run, folder, mingle};

/// The nodes, and a keyspace of one test.
struct Keyspace {
    tokio: Runtime,
    session: Session,
    /// Its name.
    name: String,
    /// Its address.
    url: String,
}

impl Keyspace {
    /// Creates a keyspace with tables, with copies in these data centers; none if Cassandra is not installed. `KS` in the
    /// statements stands for its name.
    fn new(name: &str, centers: &[&str], statements: &str) -> Option<Self> {
        let tokio = Runtime::new().expect("a runtime");
        let server = tokio.block_on(mingle_services::shared(Engine::Cassandra))?;
        let nodes: Vec<&str> = server.url().split(',').collect();
        let name = format!("{name}_{}", std::process::id());
        let url = format!("cassandra://{}/{name}", server.url());
        let builder = SessionBuilder::new().known_nodes(&nodes);
        let session = tokio.block_on(builder.build()).expect("the nodes are there");
        let keyspace = Self { tokio, session, name, url };
        let copies: Vec<String> = centers.iter().map(|center| format!(", '{center}': 1")).collect();
        let copies = copies.concat();
        keyspace.run(&format!(
            "CREATE KEYSPACE KS WITH replication = {{'class': 'NetworkTopologyStrategy'{copies}}}"
        ));
        for statement in statements.split(';').filter(|statement| !statement.trim().is_empty()) {
            keyspace.run(statement);
        }
        Some(keyspace)
    }

    fn run(&self, statement: &str) -> Vec<Row> {
        let mut statement =
            scylla::statement::unprepared::Statement::new(statement.replace("KS", &self.name));
        statement.set_consistency(scylla::statement::Consistency::All);
        let found = self.tokio.block_on(self.session.query_unpaged(statement.clone(), ()));
        let found = found.unwrap_or_else(|error| panic!("{}: {error}", statement.contents));
        found.into_rows_result().map_or_else(
            |_| Vec::new(),
            |rows| rows.rows().expect("rows").map(|row| row.expect("a row")).collect(),
        )
    }

    fn count(&self, from: &str) -> usize {
        self.run(&format!("SELECT * FROM KS.{from} ALLOW FILTERING")).len()
    }
}

fn ok(path: &Path, args: &[&str]) -> Run {
    let run = mingle(path, args);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{args:?}: {}", run.stdout);
    run
}

/// Runs a command that opens the store, which notes that rows of a table vanish.
fn done(path: &Path, args: &[&str]) -> Run {
    let run = mingle(path, args);
    assert_eq!(run.code, Some(0), "{args:?}: {}", run.stderr);
    let notes = run.stderr.lines().filter(|line| !line.contains("(default_time_to_live)"));
    assert_eq!(notes.collect::<Vec<_>>(), [""; 0], "{args:?}");
    run
}

fn table_of(said: &str) -> &str {
    let from = said.find("in the database").expect("a table");
    let to = said[from..].find("\n\n").expect("an end") + from;
    &said[from..=to]
}

/// Tables of many shapes.
const SHAPES: &str = r#"
CREATE TYPE KS.address (street text, city text);
CREATE TABLE KS.customers (
    email text PRIMARY KEY, "full name" text, "in" ascii, age int, small smallint, tiny tinyint, total bigint,
    weight double, gold boolean, photo blob, joined timestamp, born date, credit decimal, code uuid, seen timeuuid,
    tags set<text>, phones list<text>, notes map<text, text>, fixed frozen<set<int>>, home frozen<address>,
    spot tuple<int, int>, ratio float, huge varint, hour time, wait duration, place inet,
    vector vector<float, 3>);
CREATE INDEX customers_age ON KS.customers (age);
CREATE TABLE KS.products (id uuid PRIMARY KEY, name text, price decimal) WITH default_time_to_live = 864000;
CREATE TABLE KS.orders (number bigint PRIMARY KEY, customer text);
CREATE TABLE KS.customer_tags (customer text, tag text, PRIMARY KEY (customer, tag));
CREATE TABLE KS.posts_by_customer (email text, at timeuuid, line text, PRIMARY KEY (email, at))
    WITH CLUSTERING ORDER BY (at DESC);
CREATE TABLE KS.items (order_number bigint, product uuid, pieces int, PRIMARY KEY (order_number, product));
CREATE TABLE KS.stock (product_id uuid, day date, pieces int, price decimal, shop text STATIC,
    PRIMARY KEY (product_id, day));
CREATE TABLE KS.visits (email text PRIMARY KEY, visits counter);
CREATE TABLE KS.readings (sensor text, day date, at timestamp, value double, PRIMARY KEY ((sensor, day), at));
CREATE TABLE KS.scores (game text, points int, name text, PRIMARY KEY (game, points, name));
CREATE TABLE KS.loose (thing text, part text, PRIMARY KEY (thing, part));
CREATE TABLE KS.prices (amount decimal PRIMARY KEY, name text);
CREATE TABLE KS.sets (members frozen<set<text>> PRIMARY KEY, name text);
INSERT INTO KS.customers (email, "full name", "in", age, small, tiny, total, weight, gold, photo, joined, born, credit,
    code, seen) VALUES ('ana@x.org', 'Ana', 'x', 33, -3, 7, 9000000000, 0.5, true, 0x00ff, '2020-01-02T03:04:05Z',
    '1990-02-03', 19.90, 0e37df36-f698-11e6-8dd4-cb9ced3df976, 0e37df36-f698-11e6-8dd4-cb9ced3df976);
INSERT INTO KS.customers (email) VALUES ('bo@x.org');
INSERT INTO KS.customer_tags (customer, tag) VALUES ('ana@x.org', 'loud');
INSERT INTO KS.posts_by_customer (email, at, line) VALUES ('ana@x.org', 0e37df36-f698-11e6-8dd4-cb9ced3df976, 'hello');
INSERT INTO KS.orders (number, customer) VALUES (1, 'ana@x.org');
INSERT INTO KS.items (order_number, product, pieces) VALUES (1, 0e37df36-f698-11e6-8dd4-cb9ced3df976, 2);
INSERT INTO KS.products (id, name, price) VALUES (0e37df36-f698-11e6-8dd4-cb9ced3df976, 'tea', 3.50);
INSERT INTO KS.stock (product_id, day, pieces) VALUES (0e37df36-f698-11e6-8dd4-cb9ced3df976, '2026-01-31', 5)
"#;

/// Transactions that write a value of each type.
const WRITES: &str = r#"
transaction fill(from: ref Customer, to: ref Customer) {
    to.full_name = from.full_name;
    to.in_ = from.in_;
    to.age = from.age;
    to.small = from.small;
    to.tiny = from.tiny;
    to.total = from.total;
    to.weight = from.weight;
    to.gold = from.gold;
    to.photo = from.photo;
    to.joined = from.joined;
    to.born = from.born;
    to.credit = from.credit;
    to.code = from.code;
    to.seen = from.seen;
    for tag in from.tags {
        to.tags.insert(tag);
    }
    to.posts.append("second");
}
transaction order(order: ref Order, product: string, pieces: int) {
    order.items.put(product, pieces);
}
transaction store(product: ref Product, day: date) {
    product.name = some("tee");
    product.stock.insert(day);
}
"#;

/// The first call makes the keyspace of the runtime, which other suites use in all three data centers.
#[test]
fn tables_of_many_shapes_become_a_program_that_runs() {
    let Some(keyspace) = Keyspace::new("shapes", &["dc1", "dc2", "dc3"], SHAPES) else { return };
    let folder = folder(&[]);
    let path = folder.path();
    let said = ok(path, &["init", &keyspace.url, "--name", "shop"]).stdout;
    let table = table_of(&said).replace(&keyspace.name, "KS");
    assert_eq!(table, include_str!("schemas/shapes.txt"), "{said}");
    assert_eq!(ok(path, &["check", "--config", "mingle.toml", "shop.mingle"]).stdout, "");
    assert_eq!(ok(path, &["fmt", "--check", "shop.mingle"]).stdout, "");
    let binding = fs::read_to_string(path.join("mingle.toml")).expect("it was written");
    for line in [
        "datacenters = [\"dc1\", \"dc2\", \"dc3\"]\n",
        "\nreplication = { \"dc1\" = 1, \"dc2\" = 1, \"dc3\" = 1 }\n",
        "columns = { full_name = \"full name\", in_ = \"in\" }\n",
    ] {
        assert!(binding.contains(line), "{line:?} is not in\n{binding}");
    }
    let program = fs::read_to_string(path.join("shop.mingle")).expect("it was written");
    fs::write(path.join("shop.mingle"), format!("{program}{WRITES}")).expect("it is written");
    let customer = |email: &str| done(path, &["show", "shop.mingle", "Customer", email]).stdout;
    let ana = customer("ana@x.org");
    for part in [
        "\"full_name\":\"Ana\"",
        "\"total\":9000000000",
        "\"credit\":\"19.90\"",
        "\"born\":\"1990-02-03\"",
        "\"joined\":\"2020-01-02T03:04:05Z\"",
        "\"seen\":\"0e37df36-f698-11e6-8dd4-cb9ced3df976\"",
        "[\"loud\"]",
        "[\"hello\"]",
    ] {
        assert!(ana.contains(part), "{part} is not in {ana}");
    }
    assert!(customer("bo@x.org").contains("\"age\":null"));
    done(path, &["run", "shop.mingle", "fill", "from=ana@x.org", "to=bo@x.org"]);
    let bo = customer("bo@x.org").replace("bo@x.org", "ana@x.org");
    assert_eq!(bo.replace("[\"second\"]", "[\"hello\"]"), ana);
    let tea = "0e37df36-f698-11e6-8dd4-cb9ced3df976";
    let product = format!("product={tea}");
    done(path, &["run", "shop.mingle", "order", "order=1", &product, "pieces=3"]);
    done(path, &["run", "shop.mingle", "store", &product, "day=2026-02-01"]);
    assert_eq!(keyspace.count("items WHERE pieces = 3"), 1);
    assert_eq!(keyspace.count("stock"), 2);
    let product = done(path, &["show", "shop.mingle", "Product", tea]).stdout;
    assert!(product.contains("[\"2026-01-31\",\"2026-02-01\"]"), "{product}");
    assert!(product.contains("\"name\":\"tee\""), "{product}");
}

#[test]
fn what_cannot_be_begun_with_is_said() {
    let tables = "CREATE TABLE KS.a (b text, c int, d int, PRIMARY KEY (b, c, d))";
    let Some(keyspace) = Keyspace::new("bare", &["dc1", "dc2"], tables) else { return };
    let folder = folder(&[]);
    let path = folder.path();
    let (hosts, _) = keyspace.url.rsplit_once('/').expect("a keyspace");
    let url = |more: &str| format!("{hosts}/{more}");
    for (url, code, words) in [
        (
            keyspace.url.clone(),
            2,
            "no table that could be an object\n  table a: its primary key is ((b), c, d)",
        ),
        (url("none_such"), 2, "has no keyspace \"none_such\"; it has "),
        (url(""), 2, "has no keyspace \"\"; it has "),
        (url("system_schema"), 2, "is Cassandra's own"),
        (
            format!("{}?datacenter=dc3", keyspace.url),
            2,
            "no copies in a data center \"dc3\"; it has them in dc1, dc2",
        ),
        ("cassandra://127.0.0.1:1/shop".to_owned(), 4, "cannot reach Cassandra"),
        ("cassandra://a@127.0.0.1:1/shop".to_owned(), 2, "a password after the user"),
    ] {
        let run = mingle(path, &["init", &url]);
        assert_eq!((run.code, run.stdout.as_str()), (Some(code), ""), "{url}: {}", run.stderr);
        assert!(run.stderr.contains(words), "{words:?} is not in {}", run.stderr);
    }
    assert_eq!(fs::read_dir(path).expect("the folder is there").count(), 0, "nothing is written");
}
