//! A small run of each part checks that the results are sound, but not that they are fast.

use std::time::Duration;

use super::catch_up;
use super::plan::{Disk, Distance, Plan};
use super::site::Site;

fn small() -> Plan {
    Plan { clients: 4, keys: 200, logs: std::env::temp_dir(), ..Plan::default() }
}

/// Runs for a moment, and until everything has reached every data center.
fn check(plan: &Plan) -> Vec<u64> {
    let site = Site::start(plan).expect("it starts");
    site.let_all_clients();
    let reading = site.count(Duration::from_millis(400));
    site.settle().expect("it comes to rest");
    let rest = site.end().expect("it ends");
    assert!(reading.total() > 0 && reading.writes > 0, "{reading:?}");
    assert_eq!((reading.failed, reading.alarms), (0, 0), "{reading:?}");
    assert_eq!(rest.differing(), 0);
    rest.delays_ns.iter().map(hdrhistogram::Histogram::min).collect()
}

#[test]
fn replicas_agree_in_the_end() {
    check(&small());
    check(&Plan { disk: Disk::File, threads: 1, ..small() });
    check(&Plan { is_uniform: false, threads: 3, ..small() });
    check(&Plan { has_items: true, has_floors: true, ..small() });
}

#[test]
fn nothing_is_seen_before_it_can_be() {
    let plan = Plan { distance: Distance::Continents, probes: 2, ..small() };
    let delays_ns = check(&plan);
    for dc in 1..3 {
        // The path goes to the farther of two required data centers, or straight; rounds make it
        // slightly less or more.
        let least_us = plan.distance.one_way_us(0, dc) - 2_000;
        let seen_ns = delays_ns[usize::from(dc)];
        assert!(seen_ns >= least_us * 1_000, "{seen_ns} ns at {dc}");
    }
}

#[test]
fn who_was_away_gets_everything_and_the_others_go_on() {
    let plan = Plan { clients: 16, ..small() };
    let time = Duration::from_millis(300);
    let back = catch_up::measure(&plan, Duration::from_millis(600), time).expect("it comes back");
    assert_eq!(back.differing, 0, "{back:?}");
    assert!(back.away > 0.0 && back.during > 0.0 && back.after > 0.0, "{back:?}");
}
