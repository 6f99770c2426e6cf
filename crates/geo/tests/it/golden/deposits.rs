//! Concurrent deposits into one account all count: 100 and 200 make 300 (UniStore §3).

use mingle_geo::{Key, Kind, Op};

use crate::support::World;

#[test]
fn concurrent_deposits_add_up() {
    let mut world = World::new(3, 1, 1);
    let account = Key::new(Kind::Counter, "account");
    world.run_ms(200);
    for (client, amount) in [(0, 100), (1, 200)] {
        world.open(client, client as u8);
        let states = world.read(client, &[&account]).expect("a read");
        assert_eq!(states[0].as_counter().expect("a counter").value(), 0, "not at once");
        world.write(client, &account, Op::Add(amount));
    }
    for client in 0..2 {
        world.committed(client);
    }
    world.open(2, 2);
    world.run_ms(500);
    for client in 0..3 {
        let states = world.read(client, &[&account]).expect("a read");
        assert_eq!(states[0].as_counter().expect("a counter").value(), 300, "at d{client}");
    }
}
