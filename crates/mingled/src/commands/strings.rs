//! Strings.

#![expect(clippy::unnecessary_wraps, reason = "all functions of the table have one type")]

use mingle_geo::types::item::{ItemOp, ItemType, Place};
use mingle_model::Value;

use super::expiry::Unit;
use super::number::{add_floats, int, parse_int, text, value};
use super::table::{Class, Command, Keys};
use super::{Fault, Outcome, Work};
use crate::resp::{Bytes, Reply};

/// The maximum length of a string that a command builds.
const STRING_MAX: u64 = 8 << 20;

const FIRST: Keys = Keys::FIRST;
const PAIRS: Keys = Keys::Range(1, -1, 2);

pub const COMMANDS: &[Command] = &[
    Command::data("append", 3, Class::Strong, FIRST, append, "Appends to a string."),
    Command::data("decr", 2, Class::Causal, FIRST, decr, "Subtracts 1 from an integer.")
        .differs("The reply is the sum at the snapshot, so two clients may get the same number."),
    Command::data("decrby", 3, Class::Causal, FIRST, decrby, "Subtracts from an integer.")
        .differs("As for `DECR`."),
    Command::data("get", 2, Class::Read, FIRST, get, "Returns a string."),
    Command::data("getdel", 2, Class::Strong, FIRST, getdel, "Returns a string and deletes it."),
    Command::data(
        "getex",
        -2,
        Class::Strong,
        FIRST,
        getex,
        "Returns a string and sets its deadline.",
    ),
    Command::data("getrange", 4, Class::Read, FIRST, getrange, "Returns a part of a string."),
    Command::data(
        "getset",
        3,
        Class::Strong,
        FIRST,
        getset,
        "Sets a string and returns the old one.",
    ),
    Command::data("incr", 2, Class::Causal, FIRST, incr, "Adds 1 to an integer.")
        .differs("The reply is the sum at the snapshot, so two clients may get the same number."),
    Command::data("incrby", 3, Class::Causal, FIRST, incrby, "Adds to an integer.")
        .differs("As for `INCR`."),
    Command::data("incrbyfloat", 3, Class::Strong, FIRST, incrbyfloat, "Adds to a number."),
    Command::data("mget", -2, Class::Read, Keys::ALL, mget, "Returns several strings."),
    Command::data("mset", -3, Class::Blind, PAIRS, mset, "Sets several strings."),
    Command::data(
        "msetnx",
        -3,
        Class::Strong,
        PAIRS,
        msetnx,
        "Sets several strings if none exists.",
    ),
    Command::data(
        "psetex",
        4,
        Class::Blind,
        FIRST,
        setex,
        "Sets a string and its time to live in ms.",
    ),
    Command::data("set", -3, Class::Causal, FIRST, set, "Sets a string.")
        .by(set_class)
        .differs("Strong with `NX`, `XX` or `GET`."),
    Command::data(
        "setex",
        4,
        Class::Blind,
        FIRST,
        setex,
        "Sets a string and its time to live in s.",
    ),
    Command::data("setnx", 3, Class::Strong, FIRST, setnx, "Sets a string if it does not exist."),
    Command::data("setrange", 4, Class::Strong, FIRST, setrange, "Overwrites a part of a string."),
    Command::data("strlen", 2, Class::Read, FIRST, strlen, "Returns the length of a string."),
    Command::data("substr", 4, Class::Read, FIRST, getrange, "Returns a part of a string."),
];

fn found(work: &Work<'_>, name: &Bytes) -> Result<Option<Value>, Fault> {
    Ok(work.typed(name, ItemType::Value)?.value())
}

fn bulk(value: Option<Value>) -> Reply {
    value.map_or(Reply::Null, |value| Reply::Bulk(text(&value)))
}

fn get(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    Ok(bulk(found(work, &args[1])?))
}

fn mget(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    Ok(Reply::array(args[1..].iter().map(|name| bulk(work.view(name).value()))))
}

fn strlen(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    let value = found(work, &args[1])?;
    Ok(Reply::count(value.map_or(0, |value| text(&value).len())))
}

/// The options of `SET`.
#[derive(Clone, Debug, Default)]
struct SetOptions {
    time: Option<(Unit, Bytes)>,
    keeps_time: bool,
    if_absent: bool,
    if_present: bool,
    returns_old: bool,
}

impl SetOptions {
    fn parse(options: &[Bytes]) -> Result<Self, Fault> {
        let (mut parsed, mut rest) = (Self::default(), options);
        while let [name, after @ ..] = rest {
            rest = after;
            match name.to_ascii_lowercase().as_slice() {
                b"nx" => parsed.if_absent = true,
                b"xx" => parsed.if_present = true,
                b"get" => parsed.returns_old = true,
                b"keepttl" => parsed.keeps_time = true,
                name => {
                    let (unit, [time, after @ ..]) = (Unit::of_option(name), after) else {
                        return Err(Fault::Syntax);
                    };
                    if parsed.time.is_some() {
                        return Err(Fault::Syntax);
                    }
                    parsed.time = Some((unit.ok_or(Fault::Syntax)?, time.clone()));
                    rest = after;
                }
            }
        }
        let clashes =
            parsed.if_absent && parsed.if_present || parsed.keeps_time && parsed.time.is_some();
        if clashes { Err(Fault::Syntax) } else { Ok(parsed) }
    }
}

fn set_class(args: &[Bytes]) -> Class {
    match SetOptions::parse(args.get(3..).unwrap_or_default()) {
        Ok(SetOptions { if_absent, if_present, returns_old, .. })
            if if_absent || if_present || returns_old =>
        {
            Class::Strong
        }
        Ok(SetOptions { keeps_time: true, .. }) => Class::Causal,
        _ => Class::Blind,
    }
}

fn set(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    let (name, options) = (&args[1], SetOptions::parse(&args[3..])?);
    let time = options.time.as_ref();
    let deadline = time.map(|(unit, time)| unit.positive(work, time, "set")).transpose()?;
    let old = if options.returns_old { found(work, name)? } else { None };
    let exists = work.view(name).exists();
    let skips = options.if_absent && exists || options.if_present && !exists;
    if !skips {
        put(work, name, &args[2], deadline, options.keeps_time);
    }
    Ok(match (options.returns_old, skips) {
        (true, _) => bulk(old),
        (false, true) => Reply::Null,
        (false, false) => Reply::OK,
    })
}

/// Sets a string. With a deadline in the past, it ends at once.
fn put(work: &mut Work<'_>, name: &Bytes, new: &Bytes, deadline: Option<u64>, keeps_time: bool) {
    if deadline.is_some_and(|deadline| deadline <= work.base_us()) {
        work.add(name, ItemOp::Delete);
        return;
    }
    let view = work.view(name);
    if keeps_time && matches!(view.shown_type(), None | Some(ItemType::Value)) {
        work.add(name, ItemOp::Put(Place::Value, value(new)));
        return;
    }
    let kept = view.deadline_us().filter(|_| keeps_time);
    work.add(name, ItemOp::Set(value(new)));
    if let Some(deadline) = deadline.or(kept) {
        work.add(name, ItemOp::Expire(Some(deadline)));
    }
}

fn setex(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    let (unit, command) = if args[0].to_ascii_lowercase().starts_with(b"p") {
        (Unit { micros: 1_000, is_absolute: false }, "psetex")
    } else {
        (Unit { micros: 1_000_000, is_absolute: false }, "setex")
    };
    let deadline = unit.positive(work, &args[2], command)?;
    put(work, &args[1], &args[3], Some(deadline), false);
    Ok(Reply::OK)
}

fn setnx(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    if work.view(&args[1]).exists() {
        return Ok(Reply::Integer(0));
    }
    work.add(&args[1], ItemOp::Set(value(&args[2])));
    Ok(Reply::Integer(1))
}

fn pairs<'a>(
    args: &'a [Bytes],
    command: &'static str,
) -> Result<Vec<(&'a Bytes, &'a Bytes)>, Fault> {
    let (pairs, []) = args[1..].as_chunks::<2>() else { return Err(Fault::Arity(command)) };
    Ok(pairs.iter().map(|[name, value]| (name, value)).collect())
}

fn mset(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    for (name, new) in pairs(args, "mset")? {
        work.add(name, ItemOp::Set(value(new)));
    }
    Ok(Reply::OK)
}

fn msetnx(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    let pairs = pairs(args, "msetnx")?;
    if pairs.iter().any(|(name, _)| work.view(name).exists()) {
        return Ok(Reply::Integer(0));
    }
    for (name, new) in pairs {
        work.add(name, ItemOp::Set(value(new)));
    }
    Ok(Reply::Integer(1))
}

fn getset(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    let old = found(work, &args[1])?;
    work.add(&args[1], ItemOp::Set(value(&args[2])));
    Ok(bulk(old))
}

fn getdel(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    let old = found(work, &args[1])?;
    work.delete(&args[1]);
    Ok(bulk(old))
}

fn getex(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    let name = &args[1];
    let deadline = match &args[2..] {
        [] => None,
        [option] if option.eq_ignore_ascii_case(b"persist") => Some(None),
        [option, time] => {
            let unit = Unit::of_option(option).ok_or(Fault::Syntax)?;
            Some(Some(unit.positive(work, time, "getex")?))
        }
        _ => return Err(Fault::Syntax),
    };
    let old = found(work, name)?;
    match (&old, deadline) {
        (None, _) | (_, None) => {}
        (_, Some(Some(deadline))) if deadline <= work.base_us() => work.add(name, ItemOp::Delete),
        (_, Some(deadline)) => work.add(name, ItemOp::Expire(deadline)),
    }
    Ok(bulk(old))
}

fn append(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    let old = found(work, &args[1])?.map(|value| text(&value));
    let new = [old.as_deref().unwrap_or_default(), &args[2]].concat();
    check_length(new.len() as u64)?;
    let length = new.len();
    work.add(&args[1], ItemOp::Put(Place::Value, value(&new.into())));
    Ok(Reply::count(length))
}

fn check_length(length: u64) -> Result<(), Fault> {
    if length <= STRING_MAX {
        return Ok(());
    }
    let text = format!(
        "string exceeds maximum allowed size (proto-max-bulk-len): found {length} bytes, at most \
         {STRING_MAX} are accepted"
    );
    Err(Fault::error(text))
}

fn setrange(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    let (name, offset, part) = (&args[1], int(&args[2])?, &args[3]);
    let offset = u64::try_from(offset).map_err(|_| Fault::error("offset is out of range"))?;
    let old = found(work, name)?.map(|value| text(&value));
    let mut new = old.as_deref().unwrap_or_default().to_vec();
    if part.is_empty() {
        return Ok(Reply::count(new.len()));
    }
    let end = offset.saturating_add(part.len() as u64);
    check_length(end)?;
    let (start, end) = (offset as usize, end as usize);
    new.resize(new.len().max(end), 0);
    new[start..end].copy_from_slice(part);
    let length = new.len();
    work.add(name, ItemOp::Put(Place::Value, value(&new.into())));
    Ok(Reply::count(length))
}

fn getrange(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    let (from, to) = (int(&args[2])?, int(&args[3])?);
    let old = found(work, &args[1])?.map(|value| text(&value));
    let old = old.as_deref().unwrap_or_default();
    // Places before the beginning count as the first byte, unless they are in the wrong order.
    let length = old.len() as i64;
    if from < 0 && to < 0 && from > to {
        return Ok(Reply::text(""));
    }
    let (from, to) = (from.max(-length), to.max(-length));
    let part = super::lists::between(old.len(), from, to).map_or(&[][..], |range| &old[range]);
    Ok(Reply::Bulk(part.into()))
}

fn incr(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    add(work, &args[1], 1)
}

fn decr(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    add(work, &args[1], -1)
}

fn incrby(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    add(work, &args[1], int(&args[2])?)
}

fn decrby(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    let amount = int(&args[2])?.checked_neg();
    add(work, &args[1], amount.ok_or_else(|| Fault::error("decrement would overflow"))?)
}

fn add(work: &mut Work<'_>, name: &Bytes, amount: i64) -> Outcome {
    let old = match found(work, name)? {
        None => 0,
        Some(value) => parse_int(&text(&value)).ok_or(Fault::NotInteger)?,
    };
    let sum = old.checked_add(amount);
    let sum = sum.ok_or_else(|| Fault::error("increment or decrement would overflow"))?;
    work.add(name, ItemOp::Add(Place::Value, amount));
    Ok(Reply::Integer(sum))
}

fn incrbyfloat(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    let old = found(work, &args[1])?.map_or_else(|| b"0".as_slice().into(), |value| text(&value));
    let sum = add_floats(&old, &args[2])?;
    work.add(&args[1], ItemOp::Put(Place::Value, value(&sum)));
    Ok(Reply::Bulk(sum))
}
