//! Takes from bounded counters over real servers: the stock is sold exactly, by two processes at once.

use mingle::{Error, Session};
use mingle_services::Engine;
use serde_json::json;

use crate::engines::site::{RealSite, block_on, bound, space};
use crate::support::scenarios::Site;

/// `buy` takes at `seats` ahead of its first write; `buy_here` takes where it writes first.
const TEXT: &str = "store office: linearizable; store seats: linearizable;
    object Event in office { key id: string; left: counter min 0; sold: counter; }
    object Stock in seats { key id: string; left: counter min 0; sold: counter; }
    transaction fill(event: ref Event, stock: ref Stock, seats: int) {
        event.left.give(seats);
        stock.left.give(seats);
    }
    transaction buy(event: ref Event, stock: ref Stock) {
        require stock.left.take(1) else \"sold out\" as sold_out;
        event.sold.add(1);
        stock.sold.add(1);
    }
    transaction buy_here(event: ref Event, stock: ref Stock) {
        require event.left.take(1) else \"sold out\" as sold_out;
        event.sold.add(1);
        stock.sold.add(1);
    }";

const EVENT: [(&str, &str); 2] = [("event", "gala"), ("stock", "gala")];

const SEATS: usize = 6;

/// Buys until the event is sold out; returns the number of seats.
async fn buy(site: &RealSite, name: &str) -> usize {
    let mut seats = 0;
    loop {
        let arguments = site.database.arguments(name, EVENT).expect("they fit");
        match site.database.call(name, arguments, Session::default()).await {
            Ok(_) => seats += 1,
            Err(Error::Require { code: Some(code), .. }) if *code == *"sold_out" => return seats,
            Err(error) => panic!("{name}: {error}"),
        }
    }
}

fn the_stock_is_sold_exactly(office: Engine, seats: Engine) {
    let space = space();
    let binding = block_on(async {
        let office = bound("office", Some(office), &space).await?;
        Some(office + &bound("seats", Some(seats), &space).await?)
    });
    let Some(binding) = binding else { return };
    let sites = [RealSite::new(TEXT, &binding), RealSite::new(TEXT, &binding)];
    let [one, other] = &sites;
    let count = SEATS.to_string();
    one.ok("fill", &[EVENT[0], EVENT[1], ("seats", &count)]);
    for (name, sold) in [("buy", SEATS), ("buy_here", 2 * SEATS)] {
        let bought = block_on(async {
            tokio::join!(buy(one, name), buy(other, name), buy(one, name), buy(other, name))
        });
        assert_eq!(bought.0 + bought.1 + bought.2 + bought.3, SEATS, "{name}");
        assert!(sites.iter().all(RealSite::settles), "{name}");
        let (event, stock) = (one.show("Event", "gala"), other.show("Stock", "gala"));
        let left = if name == "buy" { SEATS } else { 0 };
        assert_eq!((&event["left"], &event["sold"]), (&json!(left), &json!(sold)), "{name}");
        assert_eq!((&stock["left"], &stock["sold"]), (&json!(0), &json!(sold)), "{name}");
    }
}

#[test]
fn postgres_and_redis() {
    the_stock_is_sold_exactly(Engine::Postgres, Engine::Redis);
}

#[test]
fn redis_and_postgres() {
    the_stock_is_sold_exactly(Engine::Redis, Engine::Postgres);
}
