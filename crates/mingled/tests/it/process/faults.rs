//! Processes whose disk is full, or that stand still for a while.

use std::process::Command;

use super::served::{Served, serve};
use super::*;
use crate::child::part;

#[test]
fn a_process_whose_disk_is_full_stops_and_goes_on_when_there_is_room() {
    if let Some(part) = part() {
        return serve(&part);
    }
    let mut served = Served::new();
    served.children[2] = None;
    // Files of at most 200 blocks: room for a log, and for no checkpoint of many items.
    served.start_by("trap '' XFSZ; ulimit -f 200; exec \"$@\"", 2);
    let mut added = 0;
    let stopped = loop {
        let answer = served.ask(2, &format!("add {}-{added} all", "long".repeat(2_000)));
        if answer != "added" {
            break answer;
        }
        added += 1;
        assert!(added < 10_000, "the disk is never full");
    };
    assert!(stopped.starts_with("stopped: the process must stop: the disk of the journal is full"));
    // The others go on.
    assert_eq!(served.ask(0, "add other all"), "added");
    served.start(2);
    // The last transaction has no answer, so it may be there or not.
    let [all] = served.converge(["all"], |[all]| all > added);
    assert!(all <= added + 2, "{all} of {added}");
    assert_eq!(served.ask(2, "add other all"), "added");
    assert_eq!(served.converge(["other"], |[other]| other == 2), [2]);
}

#[test]
fn a_process_that_stands_still_is_disconnected_and_catches_up() {
    if let Some(part) = part() {
        return serve(&part);
    }
    let mut served = Served::new();
    for dc in 0..3 {
        until("all are connected", || served.ask(dc, "connected").split(' ').count() == 3);
    }
    let process = served.children[1].as_ref().expect("it runs").id().to_string();
    let signal = |name: &str| {
        let sent = Command::new("kill").args([name, &process]).status();
        assert!(sent.expect("a signal can be sent").success());
    };
    signal("-STOP");
    for dc in [0, 2] {
        until("its connections are closed", || !served.ask(dc, "connected").contains("d1"));
    }
    assert_eq!(served.ask(0, "fill strong-stock 5"), "filled", "two of three are a majority");
    assert_eq!(served.ask(2, "add visits all"), "added");
    signal("-CONT");
    assert_eq!(
        served.converge(["visits", "strong-stock"], |[visits, stock]| (visits, stock) == (1, 5)),
        [1, 5]
    );
    until("it is connected again", || served.ask(1, "connected").split(' ').count() == 3);
}
