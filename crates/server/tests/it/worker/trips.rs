//! The number of round trips to the worker.

use mingle::Session;
use serde_json::json;

use crate::worker::site::{PATIENCE, Site, in_pieces};

#[test]
fn twenty_dependent_reads_take_one_distance() {
    let site = Site::new();
    site.chain(20, 7);
    let (bursts, reads) = (site.proxy.counts().bursts, site.bank().now().reads);
    let report = site.report("walk", &[("a", "n1")]);
    assert_eq!(site.client.result_json("walk", &report), json!(7));
    assert_eq!(report.phases[0].round_trips, 1);
    assert_eq!(site.proxy.counts().bursts - bursts, 1, "requests on their way");
    assert_eq!(site.bank().now().reads - reads, 20, "reads beside the store");
}

#[test]
fn a_transaction_over_two_stores_takes_one_distance_and_is_cleaned_up() {
    let site = Site::new();
    site.ok("fill", &[("a", "ana"), ("n", "10")]);
    let arguments = [("from", "ana"), ("to", "bob"), ("inbox", "bob"), ("n", "4")];
    let report = site.report("pay", &arguments);
    assert_eq!(site.client.result_json("pay", &report), json!(6));
    let trips: Vec<u32> = report.phases.iter().map(|phase| phase.round_trips).collect();
    assert_eq!(trips[0], 1, "{report:?}");
    assert_eq!(site.ok("paid", &[("inbox", "bob")]), json!(4));
    assert_eq!(site.ok("get", &[("a", "bob")]), json!(4));
    let error = site.call("pay", &[("from", "ana"), ("to", "bob"), ("inbox", "bob"), ("n", "7")]);
    assert_eq!(error.expect_err("that is too much").code(), "too_little");
    // Finished transactions are cleaned up through the worker, so that no transaction waits for them.
    let left = site.runtime.block_on(async { site.client.settle(PATIENCE).await });
    assert!(left, "all is over");
}

#[test]
fn what_does_not_go_whole_goes_one_by_one() {
    let site = Site::new();
    site.chain(20, 7);
    let pieces = site.runtime.block_on(in_pieces(&site.proxy));
    let call = |transaction: &str, arguments: &[(&str, &str)]| {
        let arguments = pieces.arguments(transaction, arguments.iter().copied())?;
        let called = pieces.call(transaction, arguments, Session::default());
        site.runtime.block_on(called)
    };
    let report = call("walk", &[("a", "n1")]).expect("it only reads");
    assert_eq!(pieces.result_json("walk", &report), json!(7));
    assert_eq!(report.phases[0].round_trips, 20);
    let arguments = [("from", "n20"), ("to", "bob"), ("inbox", "bob"), ("n", "3")];
    let report = call("pay", &arguments).expect("there is enough");
    assert_eq!(pieces.result_json("pay", &report), json!(4));
    assert_eq!(site.ok("get", &[("a", "bob")]), json!(3));
    let node = pieces.object("Node", "bob").expect("there is such an object");
    let shown = site.runtime.block_on(pieces.show(&node, &Session::default(), 10));
    assert_eq!(shown.expect("it is read")["n"], json!(3));
    assert!(site.runtime.block_on(pieces.settle(PATIENCE)), "all is over");
}
