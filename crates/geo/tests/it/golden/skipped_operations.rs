//! A snapshot includes every operation below it (Antidote, pull request 172).

use mingle_geo::{Key, Kind, Op};
use mingle_model::Value;

use crate::support::{Network, World};

#[test]
fn a_reader_elsewhere_sees_a_prefix_without_gaps() {
    for seed in 1..=5 {
        let mut world = World::with(3, 1, seed, |config| config.transaction_ms_max = 100);
        world.network = Network {
            near_us: (50, 3_000),
            far_us: (5_000, 60_000),
            is_fifo: false,
            lost_one_in: 20,
            twice_one_in: 20,
            disk_us: (50, 5_000),
        };
        let log = Key::new(Kind::Log, "lines");
        world.run_ms(200);
        world.open(1, 0);
        world.open(2, 1);
        let mut seen = 0;
        for line in 1..=40 {
            world.write(1, &log, Op::Append(Value::Int(line)));
            world.committed(1);
            let states = world.read(2, &[&log]).expect("a read");
            world.call(2, |session, _, _| session.rollback());
            let lines = states[0].as_log().expect("a log").iter();
            let lines: Vec<i64> = lines.filter_map(Value::as_int).collect();
            let prefix: Vec<i64> = (1..=lines.len() as i64).collect();
            assert_eq!(lines, prefix, "seed {seed}");
            assert!(lines.len() >= seen, "seed {seed}: it saw {seen} before");
            seen = lines.len();
        }
        world.run_until("all lines arrive", |world| {
            let states = world.read(2, &[&log]).expect("a read");
            world.call(2, |session, _, _| session.rollback());
            states[0].as_log().expect("a log").count() == 40
        });
    }
}
