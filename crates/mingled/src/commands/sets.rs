//! Sets.

use std::collections::BTreeSet;

use mingle_geo::types::item::{ItemOp, ItemType, View};
use mingle_model::Value;

use super::number::{int, member, text};
use super::pick::{Scan, choices, choose};
use super::table::{Class, Command, Keys};
use super::{Fault, Outcome, Work};
use crate::resp::{Bytes, Reply};

const FIRST: Keys = Keys::FIRST;
const ALL: Keys = Keys::ALL;

pub const COMMANDS: &[Command] = &[
    Command::data("sadd", -3, Class::Causal, FIRST, sadd, "Adds members."),
    Command::data("scard", 2, Class::Read, FIRST, scard, "Counts the members."),
    Command::data("sdiff", -2, Class::Read, ALL, combine, "Returns the difference of sets."),
    Command::data("sdiffstore", -3, Class::Strong, ALL, store, "Stores the difference of sets."),
    Command::data("sinter", -2, Class::Read, ALL, combine, "Returns the intersection of sets."),
    Command::data(
        "sintercard",
        -3,
        Class::Read,
        Keys::Counted(1),
        sintercard,
        "Counts the intersection of sets.",
    ),
    Command::data("sinterstore", -3, Class::Strong, ALL, store, "Stores the intersection of sets."),
    Command::data("sismember", 3, Class::Read, FIRST, sismember, "Tells if a member is in a set."),
    Command::data("smembers", 2, Class::Read, FIRST, smembers, "Returns the members.")
        .differs("Members come in their order."),
    Command::data(
        "smismember",
        -3,
        Class::Read,
        FIRST,
        smismember,
        "Tells which members are in a set.",
    ),
    Command::data("smove", 4, Class::Strong, Keys::TWO, smove, "Moves a member to another set."),
    Command::data(
        "spop",
        -2,
        Class::Strong,
        FIRST,
        spop,
        "Removes random members and returns them.",
    ),
    Command::data("srandmember", -2, Class::Read, FIRST, srandmember, "Returns random members."),
    Command::data("srem", -3, Class::Causal, FIRST, srem, "Removes members.")
        .differs("A concurrent `SADD` of the same member survives."),
    Command::data("sscan", -3, Class::Read, FIRST, sscan, "Returns the members in steps.")
        .differs("A step reads all members; the cursor is a position in an order of hashes."),
    Command::data("sunion", -2, Class::Read, ALL, combine, "Returns the union of sets."),
    Command::data("sunionstore", -3, Class::Strong, ALL, store, "Stores the union of sets."),
];

fn set<'a>(work: &Work<'a>, name: &Bytes) -> Result<View<'a>, Fault> {
    work.typed(name, ItemType::Set)
}

fn bulks<'v>(members: impl IntoIterator<Item = &'v Value>) -> Vec<Reply> {
    members.into_iter().map(|member| Reply::Bulk(text(member))).collect()
}

fn sadd(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    let view = set(work, &args[1])?;
    let members: BTreeSet<Value> = args[2..].iter().map(member).collect();
    let added = members.iter().filter(|member| !view.has_member(member)).count();
    for member in members {
        work.add(&args[1], ItemOp::Insert(member));
    }
    Ok(Reply::count(added))
}

fn srem(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    let view = set(work, &args[1])?;
    let members: BTreeSet<Value> = args[2..].iter().map(member).collect();
    let found = members.into_iter().filter(|member| view.has_member(member)).collect();
    Ok(Reply::count(remove(work, &args[1], found)?))
}

/// Removes members, which the set has, and returns their number.
fn remove(work: &mut Work<'_>, name: &Bytes, members: Vec<Value>) -> Result<usize, Fault> {
    let removed = members.len();
    for member in members {
        work.add(name, ItemOp::Remove(member));
    }
    if removed > 0 && removed == set(work, name)?.members().count() {
        work.emptied(name);
    }
    Ok(removed)
}

fn scard(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    Ok(Reply::count(set(work, &args[1])?.members().count()))
}

fn sismember(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    Ok(Reply::Integer(i64::from(set(work, &args[1])?.has_member(&member(&args[2])))))
}

fn smismember(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    let view = set(work, &args[1])?;
    let has = |name: &Bytes| Reply::Integer(i64::from(view.has_member(&member(name))));
    Ok(Reply::array(args[2..].iter().map(has)))
}

fn smembers(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    Ok(Reply::Set(bulks(set(work, &args[1])?.members())))
}

fn smove(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    let (from, to, member) = (&args[1], &args[2], member(&args[3]));
    let source = set(work, from)?;
    if !source.exists() || !set(work, to).map(|_| source.has_member(&member))? {
        return Ok(Reply::Integer(0));
    }
    if from != to {
        remove(work, from, vec![member.clone()])?;
        work.add(to, ItemOp::Insert(member));
    }
    Ok(Reply::Integer(1))
}

fn spop(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    let members: Vec<Value> = set(work, &args[1])?.members().cloned().collect();
    let count = match &args[2..] {
        [] => None,
        [count] => Some(positive(count)?),
        _ => return Err(Fault::Syntax),
    };
    let popped = choose(&members, count.unwrap_or(1), work.random);
    remove(work, &args[1], popped.clone())?;
    Ok(match count {
        None => popped.first().map_or(Reply::Null, |member| Reply::Bulk(text(member))),
        Some(_) => Reply::Set(bulks(&popped)),
    })
}

/// Reads a number that is not below 0.
pub fn positive(argument: &[u8]) -> Result<i64, Fault> {
    int(argument)
        .ok()
        .filter(|count| *count >= 0)
        .ok_or_else(|| Fault::error("value is out of range, must be positive"))
}

fn srandmember(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    let members: Vec<Value> = set(work, &args[1])?.members().cloned().collect();
    match &args[2..] {
        [] => {
            let one = choose(&members, 1, work.random);
            Ok(one.first().map_or(Reply::Null, |member| Reply::Bulk(text(member))))
        }
        [count] => {
            let count = choices(count)?;
            Ok(Reply::Array(bulks(&choose(&members, count, work.random))))
        }
        _ => Err(Fault::Syntax),
    }
}

fn sscan(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    let scan = Scan::parse(&args[2], &args[3..])?;
    let members = set(work, &args[1])?.members().map(text).collect();
    let (next, members) = scan.step(members, Bytes::clone);
    let members = Reply::array(members.into_iter().map(Reply::Bulk));
    Ok(Reply::Array(vec![Reply::text(next.to_string()), members]))
}

/// Combines sets as the name of the command says.
fn combined(work: &Work<'_>, command: &[u8], names: &[Bytes]) -> Result<BTreeSet<Value>, Fault> {
    let command = command.to_ascii_lowercase();
    let views: Result<Vec<View<'_>>, Fault> = names.iter().map(|name| set(work, name)).collect();
    let views = views?;
    let Some((first, others)) = views.split_first() else { return Ok(BTreeSet::new()) };
    let members = first.members();
    let combined: BTreeSet<&Value> = match &command[..] {
        [b's', b'u', ..] => members.chain(others.iter().flat_map(View::members)).collect(),
        [b's', b'i', ..] => {
            members.filter(|member| others.iter().all(|other| other.has_member(member))).collect()
        }
        _ => {
            members.filter(|member| !others.iter().any(|other| other.has_member(member))).collect()
        }
    };
    Ok(combined.into_iter().cloned().collect())
}

fn combine(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    Ok(Reply::Set(bulks(&combined(work, &args[0], &args[1..])?)))
}

fn store(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    let members = combined(work, &args[0], &args[2..])?;
    let count = members.len();
    work.delete(&args[1]);
    for member in members {
        work.add(&args[1], ItemOp::Insert(member));
    }
    Ok(Reply::count(count))
}

/// Reads the option `LIMIT` of a command that counts; `usize::MAX` without it.
pub fn limit(options: &[Bytes]) -> Result<usize, Fault> {
    match options {
        [] => Ok(usize::MAX),
        [option, most] if option.eq_ignore_ascii_case(b"limit") => {
            let most = int(most)?;
            if most < 0 {
                return Err(Fault::error("LIMIT can't be negative"));
            }
            Ok(if most == 0 { usize::MAX } else { most as usize })
        }
        _ => Err(Fault::Syntax),
    }
}

fn sintercard(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    let end = 2 + int(&args[1])? as usize;
    let most = limit(&args[end..])?;
    let count = combined(work, b"sinter", &args[2..end])?.len();
    Ok(Reply::count(count.min(most)))
}
