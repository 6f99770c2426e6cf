//! Programs that a worker has not seen.

use mingle_server::WorkerBounds;
use mingle_store_worker::wire::hex;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use crate::worker::site::{Site, TEXT, ask, client};

/// The client's own transactions, over the bank's data.
const OTHER: &str = "store bank: linearizable; store mine: eventual;
    object Node in bank { key k: string; next: ref Node; n: int; }
    object Mark in mine { key k: string; n: int; }
    transaction twice(a: ref Node, m: ref Mark) -> int { a.n += 2; m.n += 1; return a.n; }
    transaction mark(m: ref Mark) -> int { return m.n; }";

#[test]
fn a_program_is_sent_once_and_then_known_by_its_hash() {
    let site = Site::with(TEXT, OTHER, "", |_| {});
    let report = site.report("twice", &[("a", "x"), ("m", "y")]);
    assert_eq!(site.client.result_json("twice", &report), json!(2));
    assert_eq!(report.phases[0].round_trips, 1, "it was sent when the store was opened");
    assert_eq!(site.ok("mark", &[("m", "y")]), json!(1));
}

#[test]
fn a_worker_that_has_forgotten_a_program_asks_for_it() {
    let one = WorkerBounds { programs_max: 1, ..WorkerBounds::default() };
    let site = Site::with(TEXT, OTHER, "", |config| config.worker = Some(one));
    site.ok("twice", &[("a", "x"), ("m", "y")]);
    let third = OTHER.replace("+= 2", "+= 3");
    let other = site.runtime.block_on(client(&third, &site.proxy, "")).expect("it fits");
    let report = site.report("twice", &[("a", "x"), ("m", "y")]);
    assert_eq!(site.client.result_json("twice", &report), json!(4));
    assert_eq!(report.phases[0].round_trips, 3, "it is asked for, sent, and asked again");
    drop(other);
}

#[test]
fn a_program_that_does_not_fit_is_refused_at_the_start() {
    for (text, expected) in [
        (
            OTHER
                .replace("n: int; }\n    object Mark", "n: string; }\n    object Mark")
                .replace("a.n += 2; m.n += 1; return a.n;", "m.n += 1; return 1;"),
            "object Node",
        ),
        (OTHER.to_owned() + &" ".repeat(3000), "at most 1000 bytes"),
    ] {
        let small = WorkerBounds { program_bytes_max: 1000, ..WorkerBounds::default() };
        let opened = Site::try_with(TEXT, &text, "", |config| config.worker = Some(small));
        let error = opened.err().expect("it must not be opened");
        assert!(error.contains(expected), "{error}");
    }
    let site = Site::new();
    let wrong = "store bank";
    let hash = hex(&Sha256::digest(wrong));
    let path = format!("/v1/worker/programs/{hash}");
    let (status, problem) = ask(&site, "PUT", &path, wrong.as_bytes());
    assert_eq!((status, problem["code"].as_str()), (400, Some("invalid-argument")));
    assert!(problem["detail"].as_str().is_some_and(|why| why.contains("errors")), "{problem}");
}
