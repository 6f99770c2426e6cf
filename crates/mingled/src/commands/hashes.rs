//! Hashes.

use std::collections::BTreeSet;

use mingle_geo::types::item::{ItemOp, ItemType, Place, View};
use mingle_model::Value;

use super::number::{add_floats, int, member, text, value};
use super::pick::{Scan, choices, choose};
use super::table::{Class, Command, Keys};
use super::{Fault, Outcome, Work};
use crate::resp::{Bytes, Reply};

const FIRST: Keys = Keys::FIRST;

pub const COMMANDS: &[Command] = &[
    Command::data("hdel", -3, Class::Causal, FIRST, hdel, "Removes fields."),
    Command::data("hexists", 3, Class::Read, FIRST, hexists, "Tells if a field exists."),
    Command::data("hget", 3, Class::Read, FIRST, hget, "Returns the value of a field."),
    Command::data("hgetall", 2, Class::Read, FIRST, hgetall, "Returns all fields and values.")
        .differs("Fields come in their order."),
    Command::data("hincrby", 4, Class::Causal, FIRST, hincrby, "Adds to an integer in a field.")
        .differs("The reply is the sum at the snapshot, as for `INCR`."),
    Command::data(
        "hincrbyfloat",
        4,
        Class::Strong,
        FIRST,
        hincrbyfloat,
        "Adds to a number in a field.",
    ),
    Command::data("hkeys", 2, Class::Read, FIRST, hkeys, "Returns all fields."),
    Command::data("hlen", 2, Class::Read, FIRST, hlen, "Counts the fields."),
    Command::data("hmget", -3, Class::Read, FIRST, hmget, "Returns the values of fields."),
    Command::data("hmset", -4, Class::Causal, FIRST, hset, "Sets fields."),
    Command::data("hrandfield", -2, Class::Read, FIRST, hrandfield, "Returns random fields."),
    Command::data("hscan", -3, Class::Read, FIRST, hscan, "Returns the fields in steps.")
        .differs("A step reads all fields; the cursor is a position in an order of hashes."),
    Command::data("hset", -4, Class::Causal, FIRST, hset, "Sets fields."),
    Command::data("hsetnx", 4, Class::Strong, FIRST, hsetnx, "Sets a field if it does not exist."),
    Command::data("hstrlen", 3, Class::Read, FIRST, hstrlen, "Returns the length of a value."),
    Command::data("hvals", 2, Class::Read, FIRST, hvals, "Returns all values."),
];

fn hash<'a>(work: &Work<'a>, name: &Bytes) -> Result<View<'a>, Fault> {
    work.typed(name, ItemType::Hash)
}

fn bulk(value: Option<Value>) -> Reply {
    value.map_or(Reply::Null, |value| Reply::Bulk(text(&value)))
}

fn hget(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    Ok(bulk(hash(work, &args[1])?.field(&member(&args[2]))))
}

fn hmget(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    let view = hash(work, &args[1])?;
    Ok(Reply::array(args[2..].iter().map(|field| bulk(view.field(&member(field))))))
}

fn hexists(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    let found = hash(work, &args[1])?.field(&member(&args[2]));
    Ok(Reply::Integer(i64::from(found.is_some())))
}

fn hstrlen(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    let found = hash(work, &args[1])?.field(&member(&args[2]));
    Ok(Reply::count(found.map_or(0, |value| text(&value).len())))
}

fn hlen(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    Ok(Reply::count(hash(work, &args[1])?.fields().count()))
}

fn hkeys(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    let view = hash(work, &args[1])?;
    Ok(Reply::array(view.fields().map(|(field, _)| Reply::Bulk(text(field)))))
}

fn hvals(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    let view = hash(work, &args[1])?;
    Ok(Reply::array(view.fields().map(|(_, value)| Reply::Bulk(text(&value)))))
}

fn hgetall(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    let pairs = hash(work, &args[1])?.fields();
    let pairs = pairs.map(|(field, value)| (Reply::Bulk(text(field)), Reply::Bulk(text(&value))));
    Ok(Reply::Map(pairs.collect()))
}

fn hset(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    let is_old = args[0].eq_ignore_ascii_case(b"hmset");
    let (pairs, []) = args[2..].as_chunks::<2>() else {
        return Err(Fault::Arity(if is_old { "hmset" } else { "hset" }));
    };
    let view = hash(work, &args[1])?;
    let fields: BTreeSet<Value> = pairs.iter().map(|[field, _]| member(field)).collect();
    let added = fields.iter().filter(|field| view.field(field).is_none()).count();
    for [field, new] in pairs {
        work.add(&args[1], ItemOp::Put(Place::Field(member(field)), value(new)));
    }
    Ok(if is_old { Reply::OK } else { Reply::count(added) })
}

fn hsetnx(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    let field = member(&args[2]);
    if hash(work, &args[1])?.field(&field).is_some() {
        return Ok(Reply::Integer(0));
    }
    work.add(&args[1], ItemOp::Put(Place::Field(field), value(&args[3])));
    Ok(Reply::Integer(1))
}

fn hdel(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    let view = hash(work, &args[1])?;
    let fields: BTreeSet<Value> = args[2..].iter().map(member).collect();
    let found: Vec<Value> =
        fields.into_iter().filter(|field| view.field(field).is_some()).collect();
    let removed = found.len();
    for field in found {
        work.add(&args[1], ItemOp::Drop(Place::Field(field)));
    }
    if removed > 0 && removed == view.fields().count() {
        work.emptied(&args[1]);
    }
    Ok(Reply::count(removed))
}

fn hincrby(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    let (field, amount) = (member(&args[2]), int(&args[3])?);
    let old = match hash(work, &args[1])?.field(&field) {
        None => 0,
        Some(Value::Int(number)) => number,
        Some(_) => return Err(Fault::error("hash value is not an integer")),
    };
    let sum = old.checked_add(amount);
    let sum = sum.ok_or_else(|| Fault::error("increment or decrement would overflow"))?;
    work.add(&args[1], ItemOp::Add(Place::Field(field), amount));
    Ok(Reply::Integer(sum))
}

fn hincrbyfloat(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    let field = member(&args[2]);
    super::number::float(&args[3])?;
    let old = hash(work, &args[1])?.field(&field);
    let old = old.map_or_else(|| b"0".as_slice().into(), |value| text(&value));
    let sum = add_floats(&old, &args[3]).map_err(|fault| match fault {
        Fault::NotFloat => Fault::error("hash value is not a float"),
        other => other,
    })?;
    work.add(&args[1], ItemOp::Put(Place::Field(field), value(&sum)));
    Ok(Reply::Bulk(sum))
}

fn hscan(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    let scan = Scan::parse(&args[2], &args[3..])?;
    let fields = hash(work, &args[1])?.fields();
    let fields = fields.map(|(field, value)| (text(field), text(&value))).collect();
    let (next, fields) = scan.step(fields, |(field, _)| field.clone());
    let elements = fields.into_iter().flat_map(|(field, value)| {
        [Some(field), (!scan.is_bare).then_some(value)].into_iter().flatten()
    });
    let elements = Reply::array(elements.map(Reply::Bulk));
    Ok(Reply::Array(vec![Reply::text(next.to_string()), elements]))
}

fn hrandfield(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    let fields = hash(work, &args[1])?.fields();
    let fields: Vec<(Bytes, Bytes)> =
        fields.map(|(field, value)| (text(field), text(&value))).collect();
    let (count, has_values) = match &args[2..] {
        [] => {
            let one = choose(&fields, 1, work.random).pop();
            return Ok(one.map_or(Reply::Null, |(field, _)| Reply::Bulk(field)));
        }
        [count] => (choices(count)?, false),
        [count, option] if option.eq_ignore_ascii_case(b"withvalues") => (choices(count)?, true),
        _ => return Err(Fault::Syntax),
    };
    let chosen = choose(&fields, count, work.random).into_iter();
    Ok(Reply::array(chosen.flat_map(|(field, value)| {
        let value = has_values.then_some(Reply::Bulk(value));
        [Some(Reply::Bulk(field)), value].into_iter().flatten()
    })))
}
