//! `mingle init` over schemas of the shapes that public examples have: no table is left out, and one table says what
//! became of each part.

use std::fs;
use std::path::Path;

use super::postgres::Database;
use super::{Run, folder, mingle};

/// A schema, the table that the command prints for it, and objects to show with a part of each.
type Case<'a> = (&'a str, &'a str, &'a str, &'a [(&'a str, &'a str, &'a str)]);

fn ok(path: &Path, args: &[&str]) -> Run {
    let run = mingle(path, args);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{args:?}: {}", run.stdout);
    run
}

/// Returns the program that the command writes, in a folder with its binding.
fn begun(path: &Path, (_, sql, expected, shown): Case<'_>) -> Option<(Database, String)> {
    let database = Database::new(sql)?;
    let said = ok(path, &["init", &database.url, "--name", "shop"]).stdout;
    let from = said.find("in the database").expect("a table");
    let to = said[from..].find("\n\n").expect("an end") + from;
    assert_eq!(said[from..=to], *expected, "{said}");
    assert_eq!(ok(path, &["check", "shop.mingle"]).stdout, "");
    assert_eq!(ok(path, &["fmt", "--check", "shop.mingle"]).stdout, "");
    for (object, key, part) in shown {
        let text = ok(path, &["show", "shop.mingle", object, key]).stdout;
        assert!(text.contains(part), "{part} is not in {text}");
    }
    let program = fs::read_to_string(path.join("shop.mingle")).expect("it was written");
    Some((database, program))
}

/// Runs the program with more transactions.
fn extend(path: &Path, program: &str, more: &str) {
    fs::write(path.join("shop.mingle"), format!("{program}\n{more}\n")).expect("it is written");
}

#[test]
fn a_shop_for_music_is_mapped() {
    let case: Case<'_> = (
        "chinook",
        include_str!("schemas/chinook.sql"),
        include_str!("schemas/chinook.txt"),
        &[("Track", "5", "\"UnitPrice\":\"0.99\""), ("Playlist", "1", "\"Track\":[5]")],
    );
    let folder = folder(&[]);
    let Some((database, program)) = begun(folder.path(), case) else { return };
    extend(
        folder.path(),
        &program,
        "transaction add(list: ref Playlist, track: ref Track, price: decimal) -> int {
            list.Track.insert(track);
            track.UnitPrice = price;
            track.MediaTypeId = MediaType[1];
            return list.Track.size();
        }",
    );
    let run = ok(folder.path(), &["run", "shop.mingle", "add", "list=1", "track=6", "price=1.29"]);
    assert_eq!(run.stdout, "2\n");
    let rows = "SELECT count(*) FROM \"PlaylistTrack\" JOIN \"Track\" USING (\"TrackId\") WHERE \"UnitPrice\" = 1.29";
    assert_eq!(database.number(rows), 1);
}

#[test]
fn a_trading_company_is_mapped() {
    let case: Case<'_> = (
        "northwind",
        include_str!("schemas/northwind.sql"),
        include_str!("schemas/northwind.txt"),
        &[
            ("Customer", "ALFKI", "\"company_name\":\"Alf\""),
            ("Customer", "BO", "[\"new\"]"),
            ("Order", "1", "\"customer_id\":\"BO\""),
            ("Order", "1", "\"freight\":32.38"),
            ("OrderDetail", r#"{"order_id":1,"product_id":11}"#, "\"discount\":0.15"),
            ("UsState", "7", "\"state_abbr\":\"CO\""),
        ],
    );
    let folder = folder(&[]);
    let path = folder.path();
    let Some((database, program)) = begun(path, case) else { return };
    extend(
        path,
        &program,
        "transaction ship(order: ref Order, to: ref Customer, freight: float) -> option<string> {
            order.customer_id = some(to);
            order.freight = some(freight);
            return some(to.company_name);
        }",
    );
    let ship = |to: &str, freight: &str| {
        let (to, freight) = (format!("to={to}"), format!("freight={freight}"));
        mingle(path, &["run", "shop.mingle", "ship", "order=1", &to, &freight])
    };
    assert_eq!(ship("ALFKI", "21.05").stdout, "\"Alf\"\n");
    let rows = "SELECT count(*) FROM orders WHERE customer_id = 'ALFKI' AND freight = 21.05::real";
    assert_eq!(database.number(rows), 1);
    for (to, freight, words) in [
        ("\"BO   \"", "1", "they are given without these"),
        ("BO", "0.123456789", "it is real, which would round it"),
        ("TOOLONG", "1", "too long"),
    ] {
        let run = ship(to, freight);
        assert_ne!(run.code, Some(0), "{to}: {}", run.stdout);
        assert!(run.stderr.contains(words), "{words:?} is not in {}", run.stderr);
    }
    assert_eq!(database.number(rows), 1);
}

#[test]
fn a_shop_that_rents_films_is_mapped() {
    let case: Case<'_> = (
        "pagila",
        include_str!("schemas/pagila.sql"),
        include_str!("schemas/pagila.txt"),
        &[
            ("Language", "1", "\"name\":\"English\""),
            ("Film", "1", "\"special_features\":[\"Trailers\",\"Deleted Scenes\"]"),
            ("Film", "1", "\"release_year\":2006"),
            ("Actor", "1", "\"film\":[1]"),
        ],
    );
    let folder = folder(&[]);
    let path = folder.path();
    let Some((database, program)) = begun(path, case) else { return };
    extend(
        path,
        &program,
        "transaction feature(film: ref Film, feature: string, title: string) -> int {
            let all = (film.special_features ?? []) + [feature];
            film.special_features = some(all);
            film.title = title;
            return all.size();
        }
        transaction pay(at: time, id: int, customer: ref Customer, amount: decimal) {
            put Payment { key: PaymentKey { payment_date: at, payment_id: id }, customer_id: customer, amount: amount };
            customer.email = none;
        }",
    );
    let odd = "feature=a \"b\", {c}\\";
    let run = ok(path, &["run", "shop.mingle", "feature", "film=1", odd, "title=Dinosaur"]);
    assert_eq!(run.stdout, "3\n");
    let rows = "SELECT count(*) FROM film WHERE special_features[3] = 'a \"b\", {c}\\' AND fulltext @@ 'dinosaur'";
    assert_eq!(database.number(rows), 1);
    let _ = database.shown(
        "WITH a AS (INSERT INTO staff VALUES (1, 'Mo', 1) RETURNING 1), \
         b AS (INSERT INTO store VALUES (1, 1) RETURNING 1), \
         c AS (INSERT INTO customer VALUES (3, 1) RETURNING 1) SELECT 1 AS done FROM a, b, c",
    );
    ok(
        path,
        &[
            "run",
            "shop.mingle",
            "pay",
            "at=2022-05-06T07:08:09Z",
            "id=7",
            "customer=3",
            "amount=4.99",
        ],
    );
    assert_eq!(database.number("SELECT count(*) FROM payment_p1 WHERE amount = 4.99"), 1);
}

/// Foreign keys of several columns are refs; where they cannot be, a note says why.
#[test]
fn a_shop_for_several_tenants_is_mapped() {
    let case: Case<'_> = (
        "tenants",
        include_str!("schemas/tenants.sql"),
        include_str!("schemas/tenants.txt"),
        &[
            ("Order", r#"{"tenant_id":1,"id":8}"#, r#""replaces":{"tenant_id":1,"id":7}"#),
            (
                "Line",
                r#"{"tenant_id":1,"order_id":8,"number":1}"#,
                r#""sku":{"tenant_id":1,"sku":"tea"}"#,
            ),
            (
                "Line",
                r#"{"tenant_id":1,"order_id":8,"number":1}"#,
                r#""order":{"tenant_id":1,"id":8}"#,
            ),
            (
                "Parcel",
                "0e37df36-f698-11e6-8dd4-cb9ced3df976",
                r#""delivery":{"tenant_id":1,"day":"2026-02-01"}"#,
            ),
        ],
    );
    let folder = folder(&[]);
    let path = folder.path();
    let Some((database, program)) = begun(path, case) else { return };
    extend(
        path,
        &program,
        "transaction buy(line: ref Line, product: ref Product, amount: int) -> list<ref Line> {
            line.sku = product;
            line.amount = amount;
            return Line.by_sku(product).first(5);
        }",
    );
    let line = r#"line={"tenant_id":1,"order_id":8,"number":1}"#;
    let buy = |product: &str| {
        mingle(
            path,
            &["run", "shop.mingle", "buy", line, &format!("product={product}"), "amount=4"],
        )
    };
    let run = buy(r#"{"tenant_id":1,"sku":"tea"}"#);
    assert_eq!(run.stdout, "[{\"tenant_id\":1,\"order_id\":8,\"number\":1}]\n", "{}", run.stderr);
    assert_eq!(database.number("SELECT count(*) FROM lines WHERE amount = 4"), 1);
    let run = buy(r#"{"tenant_id":2,"sku":"tea"}"#);
    assert_ne!(run.code, Some(0), "{}", run.stdout);
    assert!(run.stderr.contains("column tenant_id is part of the key of"), "{}", run.stderr);
}
