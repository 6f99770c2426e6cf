//! Lost messages and lost data centers (thesis §4.4 and §6.2).

use mingle_cops::config::Protocol;
use mingle_cops::message::{Message, Point};

use crate::stage::{RETRY_US, Stage, message, replicates};

/// A dependency check whose message is lost is sent again after its deadline.
#[test]
fn a_lost_dependency_check_is_issued_again() {
    let mut stage = Stage::new(Protocol::Cops, 2, None);
    let [x, y] = stage.keys_apart(2)[..] else { panic!("two keys") };
    stage.write(0, 1, x, 1);
    stage.write(0, 1, y, 2);
    stage.deliver(|packet| !matches!(message(packet), Some(Message::DepCheck { .. })));
    assert_eq!(stage.lose(|packet| matches!(message(packet), Some(Message::DepCheck { .. }))), 1);
    assert!(stage.read(1, 1, y).is_empty());
    stage.wait(RETRY_US * 2);
    stage.all();
    assert!(stage.count(Point::DepCheckAgain) > 0);
    assert_eq!(stage.read(1, 1, y), [2]);
}

/// A write that a broken connection lost is sent again, once, and in order.
#[test]
fn a_lost_write_is_sent_again() {
    let mut stage = Stage::new(Protocol::Cops, 2, None);
    stage.write(0, 1, 3, 1);
    assert!(stage.lose(|packet| packet.to.dc() == 1) > 0);
    stage.write(0, 1, 3, 2);
    stage.all();
    assert!(stage.read(1, 1, 3).is_empty(), "the write before it is missing");
    stage.wait(RETRY_US * 2);
    stage.all();
    assert_eq!(stage.read(1, 1, 3), [2]);
}

/// A data center is lost while it replicates: a survivor that has the write keeps it, another never
/// gets it, nor the writes that depend on it; everything else goes on.
#[test]
fn a_data_center_is_lost_in_the_middle_of_replication() {
    let mut stage = Stage::new(Protocol::Cops, 3, None);
    let [x, y, z] = stage.keys_apart(3)[..] else { panic!("three keys") };
    let lost = stage.write(0, 1, x, 1);
    stage.deliver(|packet| replicates(packet, lost, 1));
    stage.lose_dc(0);
    assert_eq!(stage.read(1, 1, x), [1]);
    stage.write(1, 1, y, 2);
    stage.write(1, 2, z, 3);
    stage.all();
    stage.wait(RETRY_US * 10);
    stage.all();
    assert_eq!(stage.read(1, 3, y), [2]);
    assert!(stage.read(2, 3, y).is_empty(), "it depends on a write that never arrives");
    assert_eq!(stage.read(2, 3, z), [3]);
}
