//! Items of any type.

#![expect(clippy::unnecessary_wraps, reason = "all functions of the table have one type")]

use mingle_geo::types::item::{ItemOp, ItemType, Place, Side, View};

use super::expiry::Unit;
use super::table::{Class, Command, Keys};
use super::{Fault, Outcome, Work};
use crate::resp::{Bytes, Reply};

const FIRST: Keys = Keys::FIRST;
const ALL: Keys = Keys::ALL;

pub const COMMANDS: &[Command] = &[
    Command::data("copy", -3, Class::Strong, Keys::TWO, copy, "Copies an item."),
    Command::data("del", -2, Class::Causal, ALL, del, "Deletes items.")
        .differs("It deletes the content at its snapshot: a concurrent `INCR` or `SADD` survives."),
    Command::data("exists", -2, Class::Read, ALL, exists, "Counts the items that exist."),
    Command::data("expire", -3, Class::Causal, FIRST, expire, "Sets the time to live, in s.")
        .by(expire_class)
        .differs("Strong with `NX`, `XX`, `GT` or `LT`."),
    Command::data(
        "expireat",
        -3,
        Class::Causal,
        FIRST,
        expire,
        "Sets the deadline, in s since 1970.",
    )
    .by(expire_class)
    .differs("As for `EXPIRE`."),
    Command::data(
        "expiretime",
        2,
        Class::Read,
        FIRST,
        time,
        "Returns the deadline, in s since 1970.",
    ),
    Command::data("persist", 2, Class::Causal, FIRST, persist, "Removes the deadline."),
    Command::data("pexpire", -3, Class::Causal, FIRST, expire, "Sets the time to live, in ms.")
        .by(expire_class)
        .differs("As for `EXPIRE`."),
    Command::data(
        "pexpireat",
        -3,
        Class::Causal,
        FIRST,
        expire,
        "Sets the deadline, in ms since 1970.",
    )
    .by(expire_class)
    .differs("As for `EXPIRE`."),
    Command::data(
        "pexpiretime",
        2,
        Class::Read,
        FIRST,
        time,
        "Returns the deadline, in ms since 1970.",
    ),
    Command::data("pttl", 2, Class::Read, FIRST, ttl, "Returns the time to live, in ms."),
    Command::data("rename", 3, Class::Strong, Keys::TWO, rename, "Renames an item."),
    Command::data(
        "renamenx",
        3,
        Class::Strong,
        Keys::TWO,
        rename,
        "Renames an item if the name is free.",
    ),
    Command::data("touch", -2, Class::Read, ALL, exists, "Counts the items that exist.")
        .differs("Items have no time of last use."),
    Command::data("ttl", 2, Class::Read, FIRST, ttl, "Returns the time to live, in s."),
    Command::data("type", 2, Class::Read, FIRST, kind, "Returns the type of an item."),
    Command::data("unlink", -2, Class::Causal, ALL, del, "Deletes items.").differs("As for `DEL`."),
];

fn del(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    let mut names: Vec<&Bytes> = args[1..].iter().collect();
    names.sort();
    names.dedup();
    Ok(Reply::count(names.into_iter().filter(|name| work.delete(name)).count()))
}

fn exists(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    Ok(Reply::count(args[1..].iter().filter(|name| work.view(name).exists()).count()))
}

/// Returns the word for a type.
pub fn type_word(of: Option<ItemType>) -> &'static str {
    match of {
        None => "none",
        Some(ItemType::Value) => "string",
        Some(ItemType::Hash) => "hash",
        Some(ItemType::Set) => "set",
        Some(ItemType::SortedSet) => "zset",
        Some(ItemType::List) => "list",
    }
}

fn kind(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    Ok(Reply::Simple(type_word(work.view(&args[1]).shown_type())))
}

fn ttl(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    let unit = Unit::of_command(&args[0]);
    Ok(Reply::Integer(match deadline(&work.view(&args[1])) {
        Err(code) => code,
        Ok(deadline) => {
            let left = deadline.saturating_sub(work.now_us);
            // Seconds are rounded to the nearest one, as in Redis, and milliseconds up.
            let left = match unit.micros {
                1_000 => left.div_ceil(1_000),
                _ => (left + 500_000) / 1_000_000,
            };
            left as i64
        }
    }))
}

fn time(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    let unit = Unit::of_command(&args[0]);
    Ok(Reply::Integer(match deadline(&work.view(&args[1])) {
        Err(code) => code,
        Ok(deadline) if unit.micros == 1_000 => (deadline / 1_000) as i64,
        Ok(deadline) => ((deadline + 500_000) / 1_000_000) as i64,
    }))
}

/// Returns the deadline, or the reply for an item without one.
fn deadline(view: &View<'_>) -> Result<u64, i64> {
    if view.exists() { view.deadline_us().ok_or(-1) } else { Err(-2) }
}

/// The condition of `EXPIRE`.
#[derive(Clone, Copy, Debug, Default)]
struct Condition {
    without: bool,
    with: bool,
    later: bool,
    earlier: bool,
}

impl Condition {
    fn parse(options: &[Bytes]) -> Result<Self, Fault> {
        let mut parsed = Self::default();
        for option in options {
            match option.to_ascii_lowercase().as_slice() {
                b"nx" => parsed.without = true,
                b"xx" => parsed.with = true,
                b"gt" => parsed.later = true,
                b"lt" => parsed.earlier = true,
                _ => {
                    let option = option.escape_ascii();
                    return Err(Fault::error(format!("Unsupported option {option}")));
                }
            }
        }
        if parsed.without && (parsed.with || parsed.later || parsed.earlier) {
            let text = "NX and XX, GT or LT options at the same time are not compatible";
            return Err(Fault::error(text));
        }
        if parsed.later && parsed.earlier {
            return Err(Fault::error("GT and LT options at the same time are not compatible"));
        }
        Ok(parsed)
    }

    fn allows(self, old: Option<u64>, new: i64) -> bool {
        let old_us = old.map_or(i64::MAX, |old| old as i64);
        !(self.without && old.is_some()
            || self.with && old.is_none()
            || self.later && new <= old_us
            || self.earlier && new >= old_us)
    }
}

fn expire_class(args: &[Bytes]) -> Class {
    if args.len() > 3 { Class::Strong } else { Class::Causal }
}

fn expire(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    let name = &args[1];
    let command = String::from_utf8_lossy(&args[0]).to_ascii_lowercase();
    let unit = Unit::of_command(&args[0]);
    let condition = Condition::parse(&args[3..])?;
    let deadline = unit.any(work, &args[2], &command)?;
    let view = work.view(name);
    if !view.exists() || !condition.allows(view.deadline_us(), deadline) {
        return Ok(Reply::Integer(0));
    }
    let is_past = deadline <= work.base_us() as i64;
    let op = if is_past { ItemOp::Delete } else { ItemOp::Expire(Some(deadline as u64)) };
    work.add(name, op);
    Ok(Reply::Integer(1))
}

fn persist(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    if work.view(&args[1]).deadline_us().is_none() {
        return Ok(Reply::Integer(0));
    }
    work.add(&args[1], ItemOp::Expire(None));
    Ok(Reply::Integer(1))
}

/// Adds operations that give an item the content of another one, and its deadline.
fn duplicate(work: &mut Work<'_>, from: &Bytes, to: &Bytes) {
    let view = work.view(from);
    work.delete(to);
    match view.shown_type() {
        None => return,
        Some(ItemType::Value) => {
            if let Some(value) = view.value() {
                work.add(to, ItemOp::Set(value));
            }
        }
        Some(ItemType::Hash) => {
            for (field, value) in view.fields() {
                work.add(to, ItemOp::Put(Place::Field(field.clone()), value));
            }
        }
        Some(ItemType::SortedSet) => {
            for (member, score) in view.scores() {
                work.add(to, ItemOp::Put(Place::Score(member.clone()), score));
            }
        }
        Some(ItemType::Set) => {
            for member in view.members() {
                work.add(to, ItemOp::Insert(member.clone()));
            }
        }
        Some(ItemType::List) => {
            for element in view.elements() {
                work.add(to, ItemOp::Push(Side::Right, element.value.clone()));
            }
        }
    }
    if let Some(deadline) = view.deadline_us() {
        work.add(to, ItemOp::Expire(Some(deadline)));
    }
}

fn rename(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    let (from, to) = (&args[1], &args[2]);
    let is_careful = args[0].eq_ignore_ascii_case(b"renamenx");
    if !work.view(from).exists() {
        return Err(Fault::error("no such key"));
    }
    if is_careful && work.view(to).exists() {
        return Ok(Reply::Integer(0));
    }
    if from != to {
        duplicate(work, from, to);
        work.delete(from);
    }
    Ok(if is_careful { Reply::Integer(1) } else { Reply::OK })
}

fn copy(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    let (from, to) = (&args[1], &args[2]);
    let (mut replaces, mut rest) = (false, &args[3..]);
    while let [option, after @ ..] = rest {
        rest = match (option.to_ascii_lowercase().as_slice(), after) {
            (b"replace", after) => {
                replaces = true;
                after
            }
            (b"db", [number, after @ ..]) => {
                if super::number::int(number)? != 0 {
                    return Err(Fault::error("DB index is out of range: there is database 0 only"));
                }
                after
            }
            _ => return Err(Fault::Syntax),
        };
    }
    if from == to {
        return Err(Fault::error("source and destination objects are the same"));
    }
    if !work.view(from).exists() || !replaces && work.view(to).exists() {
        return Ok(Reply::Integer(0));
    }
    duplicate(work, from, to);
    Ok(Reply::Integer(1))
}
