//! A long group runs in bounded memory.

use crate::support::Setup;
use mingle_model::{Ref, Value};
use mingle_store::{Address, Commit, Write};

const MEMBERS: usize = 100_000;

/// The most memory for a delivery to one member, including all that the stores keep of it: the
/// member in the list, two writes, and four rows of a store in memory.
const BYTES_PER_MEMBER_MAX: usize = 2 << 10;

/// The peak resident memory of this process, in bytes.
#[cfg(target_os = "linux")]
fn peak_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux has it");
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("Linux says it");
    let kib: usize =
        line.split_whitespace().nth(1).and_then(|text| text.parse().ok()).expect("a number");
    kib << 10
}

#[test]
#[cfg(target_os = "linux")]
fn a_post_to_a_hundred_thousand_members_takes_memory_in_proportion() {
    let setup = Setup::new(include_str!("../../../../examples/message_groups.mingle"));
    let program = setup.database.program().checked.clone();
    let group = program
        .objects
        .iter()
        .find(|object| &*object.declared.name == "Group")
        .expect("there are groups");
    let field = group.declared.field_index("members").expect("groups have members") as u16;
    let address = Address { object: Ref::new("Group", Value::from("all")), field };
    let member = |number: usize| Value::Ref(Ref::new("User", Value::from(format!("user{number}"))));
    let writes =
        (0..MEMBERS).map(|number| Write::Insert(address.clone(), member(number))).collect();
    let store = setup.database.runtime().store(group.store).clone();
    setup.world.block_on(async {
        let transaction =
            store.begin(&mingle_store::Session::default()).await.expect("it is in memory");
        transaction
            .commit(Commit { writes, ..Commit::default() })
            .await
            .expect("nobody else is here");
    });
    let before = peak_bytes();
    let delivered = setup.ok("add_post", &[("group", "all"), ("post", "hello, everybody")]);
    let taken = peak_bytes().saturating_sub(before);
    println!("{} KiB for {MEMBERS} members, {} bytes each", taken >> 10, taken / MEMBERS);
    assert_eq!(delivered, serde_json::json!(MEMBERS));
    assert_eq!(setup.show("User", "user99999")["unread"], serde_json::json!(["hello, everybody"]));
    assert!(taken < MEMBERS * BYTES_PER_MEMBER_MAX, "{taken} bytes for {MEMBERS} members");
}
