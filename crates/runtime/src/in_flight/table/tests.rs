use std::sync::Arc;

use super::*;

const STORE: usize = 1;

fn deferred_of(replica: &str) -> Left {
    let deferred = DeferredWitness {
        store: STORE,
        replica: Some(replica.into()),
        since: Duration::ZERO,
        committed: Duration::ZERO,
        writes: Arc::new([]),
        is_tried: false,
        is_written: false,
    };
    Left { witnesses: [STORE].into(), deferred: Some(Box::new(deferred)), ..Left::default() }
}

/// Cleans up all transactions up to a number, at the stores 0 and 1.
fn clean(own: &mut Table, up_to: u64) {
    let floor = TransactionId { origin: own.origin(), sequence: up_to };
    for store in [0, STORE] {
        own.raise(store, floor, BTreeMap::new());
        own.confirm(store, floor);
    }
    for store in [0, STORE] {
        let removable = own.removable(store, |_| false, false);
        own.removed(store, &removable);
    }
}

/// Returns the last transaction and the count of each floor that is due.
fn due(own: &Table) -> Vec<(u64, u64)> {
    own.due().iter().map(|due| (due.last.sequence, due.count)).collect()
}

#[test]
fn a_floor_is_due_as_far_as_all_before_it_are_over() {
    let mut own = Table::new(Origin(1));
    let ids = [(); 4].map(|()| own.allocate(Duration::ZERO));
    own.over(ids[1], deferred_of("r1"));
    assert_eq!((due(&own), own.has_deferred()), (vec![], true), "the first one runs still");
    own.over(ids[0], Left { rows: [STORE].into(), ..Left::default() });
    own.over(ids[2], deferred_of("r1"));
    assert_eq!(due(&own), [(3, 2)]);
    own.settle(&own.due()[0].clone());
    assert_eq!((due(&own), own.has_deferred()), (vec![], false));
    own.over(ids[3], deferred_of("r2"));
    assert_eq!(due(&own), [], "that replica may lack what the other one has");
    clean(&mut own, 3);
    assert_eq!(due(&own), [(4, 1)]);
}

#[test]
fn no_floor_is_raised_over_what_is_witnessed_otherwise_or_elsewhere() {
    for other in [Left { witnesses: [STORE].into(), ..Left::default() }, deferred_of("r2")] {
        let mut own = Table::new(Origin(1));
        let ids = [(); 3].map(|()| own.allocate(Duration::ZERO));
        own.over(ids[0], deferred_of("r1"));
        own.over(ids[1], other);
        own.over(ids[2], deferred_of("r1"));
        assert_eq!(due(&own), [(1, 1)]);
    }
}

#[test]
fn what_was_written_after_all_is_no_more_owed() {
    let mut own = Table::new(Origin(1));
    let (running, id) = (own.allocate(Duration::ZERO), own.allocate(Duration::ZERO));
    own.over(id, deferred_of("r1"));
    assert!(own.is_left_out(id) && !own.is_left_out(running));
    assert_eq!(own.deferred_since(Duration::ZERO).len(), 1);
    own.tries(id.origin, id.sequence);
    assert!(!own.is_left_out(id) && own.has_deferred(), "it may be there, or not");
    own.has_written(id.origin, id.sequence);
    assert!(!own.has_deferred() && own.deferred_since(Duration::ZERO).is_empty());
}

#[test]
fn what_was_written_after_all_keeps_no_floor_down() {
    let mut own = Table::new(Origin(1));
    let ids = [(); 3].map(|()| own.allocate(Duration::ZERO));
    for id in &ids[..2] {
        own.over(*id, deferred_of("r1"));
    }
    own.tries(Origin(1), 1);
    own.has_written(Origin(1), 1);
    assert_eq!(due(&own), [(2, 1)], "for the one that was not");
    own.settle(&own.due()[0].clone());
    assert_eq!((due(&own), own.has_deferred()), (vec![], false));
    own.over(ids[2], deferred_of("r1"));
    own.has_written(Origin(1), 3);
    assert_eq!(due(&own), [], "it needs none");
}

#[test]
fn sums_say_how_much_is_left_and_since_when() {
    let mut own = Table::new(Origin(1));
    let at = Duration::from_secs;
    let ids = [1, 2, 3].map(|second| own.allocate(at(second)));
    own.over(ids[1], Left { rows: [0, 1].into(), ..Left::default() });
    own.over(ids[2], Left { rows: [1].into(), ..Left::default() });
    let sums = own.sums();
    assert_eq!((sums.open, sums.running, sums.parked, sums.oldest), (3, 1, 0, Some(at(1))));
    assert_eq!(sums.to_clean, [(0, (1, at(2))), (1, (2, at(2)))].into());
    own.gives_up(ids[0], None);
    own.parks(ids[0], Left::default());
    let sums = own.sums();
    assert_eq!((sums.running, sums.parked), (0, 1));
    own.over(ids[0], Left::default());
    assert_eq!(own.sums().oldest, Some(at(2)), "one that leaves nothing is gone at once");
    clean(&mut own, 2);
    let sums = own.sums();
    assert_eq!((sums.open, sums.oldest), (1, Some(at(3))));
    clean(&mut own, 3);
    assert_eq!((own.sums().open, own.sums().oldest), (0, None));
}
