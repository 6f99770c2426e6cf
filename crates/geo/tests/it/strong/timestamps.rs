//! Strong transactions follow the order of time, even if the clocks of their data centers differ
//! widely: a transaction that begins after the acknowledgement of another, and conflicts with it,
//! has seen it and has the higher timestamp.

use mingle_geo::flaw::Planted;
use mingle_geo::{DcId, Event, Key, Kind, Op, State, Timestamp};
use mingle_model::Value;

use crate::strong::map::Map;

const FAR: u64 = 40_000;
const THREE: &[&[u64]] = &[&[0, FAR, FAR], &[FAR, 0, FAR], &[FAR, FAR, 0]];

fn number(state: &State) -> i64 {
    let value = state.as_register().and_then(|register| register.value());
    value.and_then(Value::as_int).unwrap_or(0)
}

/// Sessions at data centers with wrong clocks count in turns; each knows of the others only by its
/// reads.
#[test]
fn no_strong_transaction_comes_before_one_that_was_acknowledged_when_it_began() {
    for skews_us in [[0, 0, 0], [0, 2_000_000, -2_000_000], [-3_000_000, 1_500_000, 0]] {
        let mut map = Map::new(THREE, 3, Planted::default());
        for (dc, by_us) in skews_us.into_iter().enumerate() {
            map.skew(dc as u8, by_us);
        }
        let keys = ["a", "b", "c"].map(|name| Key::new(Kind::Register, name));
        let mut last = [(0, Timestamp::ZERO); 3];
        for round in 0..18 {
            let (dc, at) = ((round % 3) as u8, round / 3 % 3);
            let (key, (counted, above)) = (&keys[at], &mut last[at]);
            let client = map.session(dc, Planted::default());
            let mut tries = 0;
            let commit_vec = loop {
                let state = map.read(client, true, key);
                let next = number(&state) + 1;
                let (event, _) = map.write(client, (key, Op::Write(Value::Int(next))), None);
                match event {
                    Event::Committed { commit_vec, .. } => {
                        assert_eq!(next, *counted + 1, "round {round} at d{dc}, {skews_us:?}");
                        break commit_vec;
                    }
                    // It had not seen the previous transaction, and aborts.
                    event => assert!(tries < 20, "round {round} at d{dc}, {skews_us:?}: {event:?}"),
                }
                tries += 1;
                map.run_for(200_000);
            };
            let timestamp = commit_vec[DcId::STRONG];
            assert!(timestamp > *above, "round {round} at d{dc}, {skews_us:?}");
            (*counted, *above) = (*counted + 1, timestamp);
        }
    }
}
