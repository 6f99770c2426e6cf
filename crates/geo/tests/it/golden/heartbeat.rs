//! A heartbeat that overtakes transactions in flight advances no replica past them (Antidote, pull
//! request 197).

use mingle_geo::{DcId, Message};

use crate::support::{Verdict, World, register};

#[test]
fn heartbeats_that_overtake_transactions_advance_nothing() {
    let mut world = World::new(3, 1, 1);
    let key = register("k");
    world.run_ms(200);
    world.open(1, 0);
    world.open(2, 1);
    // Transactions are delayed; heartbeats and vectors pass them.
    world.filter(|_, envelope| match &envelope.message {
        Message::Replicate(replicate) if !replicate.transactions.is_empty() => Verdict::Hold,
        _ => Verdict::Pass,
    });
    let committed: Vec<_> = (1..=5).map(|value| world.put(1, &key, value)).collect();
    world.run_ms(1_000);
    for dc in [1, 2] {
        let replica = world.replica(dc, 0);
        for vector in [replica.known_vec(), replica.stable_vec(), replica.uniform_vec()] {
            assert!(vector[DcId(0)] < committed[0][DcId(0)], "d{dc} went on without them");
        }
    }
    assert_eq!(world.get(2, &[&key]), [None]);
    world.no_filter();
    world.release();
    world.run_until("they arrive", |world| world.get(2, &[&key]) == [Some(5)]);
}
