//! Replication does not block with three or more data centers (Antidote, pull request 201).

use mingle_geo::{Key, Kind, Op};
use mingle_model::Value;

use crate::support::World;

#[test]
fn seven_data_centers_hear_of_each_other() {
    let dcs = 7;
    let mut world = World::new(dcs, 1, 1);
    let log = Key::new(Kind::Log, "lines");
    world.run_ms(200);
    for round in 0..3 {
        for dc in 0..dcs {
            let client = u64::from(dc);
            if round == 0 {
                world.open(client, dc);
            }
            let line = Value::Int(i64::from(round) * 100 + i64::from(dc));
            world.write(client, &log, Op::Append(line));
            world.committed(client);
        }
    }
    // This is a few times the delay between two data centers.
    world.run_ms(500);
    let mut shown = Vec::new();
    for dc in 0..dcs {
        let states = world.read(u64::from(dc), &[&log]).expect("a read");
        let lines: Vec<Value> = states[0].as_log().expect("a log").iter().cloned().collect();
        assert_eq!(lines.len(), 3 * usize::from(dcs), "at d{dc}");
        shown.push(lines);
    }
    assert!(shown.windows(2).all(|pair| pair[0] == pair[1]), "in different orders");
}
