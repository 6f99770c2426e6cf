//! The Message Groups workload (MixT §8.2): its program, its data, and its mix of calls.

use std::sync::Arc;

use mingle::{Binding, Database, Session};
use mingle_lang::Program;
use mingle_model::random::Random;
use mingle_model::{Ref, Value};

/// The program, as in the examples.
pub const PROGRAM: &str = include_str!("../../../examples/message_groups.mingle");

/// The transactions and their share of the calls, in percent (MixT §8.2).
pub const MIX: [(&str, u64); 4] =
    [("check_inbox", 56), ("add_post", 20), ("join_group", 18), ("create_user", 6)];

/// The amount of data.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// The number of users.
    pub users: usize,
    /// The number of groups.
    pub groups: usize,
    /// The number of members of each group at the start.
    pub members: usize,
}

/// Returns the same program with all objects in one linearizable store: the usual form without
/// mixed consistency.
pub fn all_linearizable() -> String {
    PROGRAM
        .replace("store inboxes: causal;\n", "")
        .replace("object User in inboxes", "object User in groups")
}

/// Compiles a program that is known to be valid.
pub fn compile(text: &str) -> Result<Arc<Program>, String> {
    mingle::compile(text)
}

/// Returns the user of this number.
pub fn user(number: usize) -> Ref {
    Ref::new("User", Value::from(format!("user{number}")))
}

/// Returns the group of this number.
pub fn group(number: usize) -> Ref {
    Ref::new("Group", Value::from(format!("group{number}")))
}

/// Draws a call of the mix: an index into [`MIX`], and arguments.
pub fn draw(random: &mut Random, size: Size, fresh: &mut usize) -> (usize, Vec<Value>) {
    let mut point = random.bits() % 100;
    let mut index = 0;
    while point >= MIX[index].1 {
        point -= MIX[index].1;
        index += 1;
    }
    let user = |random: &mut Random| Value::Ref(user(random.below(size.users)));
    let group = |random: &mut Random| Value::Ref(group(random.below(size.groups)));
    let arguments = match MIX[index].0 {
        "check_inbox" => vec![user(random)],
        "add_post" => vec![group(random), Value::from("hello, everybody")],
        "join_group" => {
            // The user is one of twice as many as are members at the start, so groups keep their
            // size.
            let number = random.below(size.groups);
            let member = number * size.members + random.below(2 * size.members);
            vec![Value::Ref(self::user(member % size.users)), Value::Ref(self::group(number))]
        }
        _ => {
            *fresh += 1;
            vec![Value::from(format!("fresh{fresh}"))]
        }
    };
    (index, arguments)
}

/// Fills a database: users, and groups with their members.
#[cfg_attr(not(feature = "benchmarks"), allow(dead_code, reason = "benchmarks use it"))]
pub async fn fill(database: &Database, size: Size) -> Result<(), mingle::Error> {
    for number in 0..size.users {
        let name = Value::from(format!("user{number}"));
        database.call("create_user", vec![name], Session::default()).await?;
    }
    for number in 0..size.groups {
        for member in 0..size.members {
            let member = user((number * size.members + member) % size.users);
            let arguments = vec![Value::Ref(member), Value::Ref(group(number))];
            database.call("join_group", arguments, Session::default()).await?;
        }
    }
    Ok(())
}

/// Creates a database in memory without distances and without tracking: the code written by hand
/// does no tracking, and would have to know the rows that it leaves.
#[cfg_attr(not(feature = "benchmarks"), allow(dead_code, reason = "benchmarks use it"))]
pub async fn in_memory(program: Arc<Program>) -> Result<Database, String> {
    let mut binding = Binding::default();
    binding.settings.tracking = false;
    let opened = Database::open(program, &binding, None).await;
    opened.map_err(|error| error.to_string())
}
