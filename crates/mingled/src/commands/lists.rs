//! Lists.

use std::ops::Range;

use mingle_geo::Version;
use mingle_geo::types::item::{ItemOp, ItemType, Side, View};
use mingle_model::Value;

use super::number::{int, member, text};
use super::sets::positive;
use super::table::{Class, Command, Keys};
use super::{Fault, Outcome, Work};
use crate::resp::{Bytes, Reply};

const FIRST: Keys = Keys::FIRST;
const TWO: Keys = Keys::TWO;

pub const COMMANDS: &[Command] = &[
    Command::data("lindex", 3, Class::Read, FIRST, lindex, "Returns the element in a place."),
    Command::data(
        "linsert",
        5,
        Class::Strong,
        FIRST,
        linsert,
        "Inserts an element beside another one.",
    ),
    Command::data("llen", 2, Class::Read, FIRST, llen, "Counts the elements."),
    Command::data("lmove", 5, Class::Strong, TWO, lmove, "Moves an element to another list."),
    Command::data(
        "lpop",
        -2,
        Class::Strong,
        FIRST,
        pop,
        "Removes the first elements and returns them.",
    ),
    Command::data("lpos", -3, Class::Read, FIRST, lpos, "Returns the places of an element."),
    Command::data("lpush", -3, Class::Causal, FIRST, push, "Adds elements at the beginning.")
        .differs("Elements pushed concurrently are ordered by their commits."),
    Command::data(
        "lpushx",
        -3,
        Class::Strong,
        FIRST,
        push,
        "Adds elements at the beginning of a list that exists.",
    ),
    Command::data("lrange", 4, Class::Read, FIRST, lrange, "Returns the elements in places."),
    Command::data("lrem", 4, Class::Causal, FIRST, lrem, "Removes equal elements.")
        .differs("It removes elements of its snapshot, and no others."),
    Command::data("lset", 4, Class::Strong, FIRST, lset, "Replaces an element."),
    Command::data(
        "ltrim",
        4,
        Class::Causal,
        FIRST,
        ltrim,
        "Removes all but the elements in places.",
    )
    .differs("It removes elements of its snapshot, and no others."),
    Command::data(
        "rpop",
        -2,
        Class::Strong,
        FIRST,
        pop,
        "Removes the last elements and returns them.",
    ),
    Command::data(
        "rpoplpush",
        3,
        Class::Strong,
        TWO,
        lmove,
        "Moves the last element to the beginning of another list.",
    ),
    Command::data("rpush", -3, Class::Causal, FIRST, push, "Adds elements at the end.")
        .differs("As for `LPUSH`."),
    Command::data(
        "rpushx",
        -3,
        Class::Strong,
        FIRST,
        push,
        "Adds elements at the end of a list that exists.",
    ),
];

/// An element: its version and its value.
type Element = (Version, Value);

fn list<'a>(work: &Work<'a>, name: &Bytes) -> Result<View<'a>, Fault> {
    work.typed(name, ItemType::List)
}

fn elements(view: &View<'_>) -> Vec<Element> {
    view.elements().map(|element| (element.version, element.value.clone())).collect()
}

fn bulk(element: &Element) -> Reply {
    Reply::Bulk(text(&element.1))
}

/// Returns the places between two, which both count; from the end if they are below 0. `None` if there
/// are none.
pub fn between(length: usize, from: i64, to: i64) -> Option<Range<usize>> {
    let length = length as i64;
    let counted = |place: i64| if place < 0 { length.saturating_add(place) } else { place };
    let (from, to) = (counted(from).max(0), counted(to).min(length - 1));
    (from <= to && from < length).then(|| from as usize..to as usize + 1)
}

fn place(length: usize, index: i64) -> Option<usize> {
    between(length, index, index).map(|range| range.start).filter(|_| {
        // A place before the first one is not the first one.
        index >= 0 || index.unsigned_abs() as usize <= length
    })
}

fn llen(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    Ok(Reply::count(list(work, &args[1])?.elements().count()))
}

fn lindex(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    let elements = elements(&list(work, &args[1])?);
    let found = place(elements.len(), int(&args[2])?).map(|place| bulk(&elements[place]));
    Ok(found.unwrap_or(Reply::Null))
}

fn lrange(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    let (from, to) = (int(&args[2])?, int(&args[3])?);
    let elements = elements(&list(work, &args[1])?);
    let range = between(elements.len(), from, to).unwrap_or(0..0);
    Ok(Reply::array(elements[range].iter().map(bulk)))
}

fn push(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    let (name, command) = (&args[1], args[0].to_ascii_lowercase());
    let length = list(work, name)?.elements().count();
    if command.ends_with(b"x") && length == 0 {
        return Ok(Reply::Integer(0));
    }
    let side = if command.starts_with(b"l") { Side::Left } else { Side::Right };
    for element in &args[2..] {
        work.add(name, ItemOp::Push(side, member(element)));
    }
    Ok(Reply::count(length + args.len() - 2))
}

/// Removes elements of a list of this length.
fn pull(work: &mut Work<'_>, name: &Bytes, length: usize, gone: &[Element]) {
    if gone.is_empty() {
        return;
    }
    work.add(name, ItemOp::Pull(gone.iter().map(|(version, _)| *version).collect()));
    if gone.len() == length {
        work.emptied(name);
    }
}

fn pop(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    let name = &args[1];
    let count = match &args[2..] {
        [] => None,
        [count] => Some(positive(count)? as usize),
        _ => {
            return Err(Fault::Arity(if args[0].eq_ignore_ascii_case(b"lpop") {
                "lpop"
            } else {
                "rpop"
            }));
        }
    };
    let view = list(work, name)?;
    if !view.exists() {
        return Ok(if count.is_some() { Reply::NullArray } else { Reply::Null });
    }
    let mut elements = elements(&view);
    let length = elements.len();
    if args[0].eq_ignore_ascii_case(b"rpop") {
        elements.reverse();
    }
    elements.truncate(count.unwrap_or(1));
    pull(work, name, length, &elements);
    Ok(match count {
        None => elements.first().map_or(Reply::Null, bulk),
        Some(_) => Reply::array(elements.iter().map(bulk)),
    })
}

/// Replaces the elements in places by others. The part of the list up to its nearer end is written anew.
fn splice(
    work: &mut Work<'_>,
    name: &Bytes,
    elements: &[Element],
    places: Range<usize>,
    new: &[Value],
) {
    let (before, after) = (&elements[..places.start], &elements[places.end..]);
    let gone = &elements[places];
    let values = |of: &[Element]| of.iter().map(|(_, value)| value.clone()).collect::<Vec<_>>();
    if before.len() < after.len() {
        let gone = [before, gone].concat();
        work.add(name, ItemOp::Pull(gone.iter().map(|(version, _)| *version).collect()));
        for value in [&values(before), new].concat().into_iter().rev() {
            work.add(name, ItemOp::Push(Side::Left, value));
        }
    } else {
        let gone = [gone, after].concat();
        work.add(name, ItemOp::Pull(gone.iter().map(|(version, _)| *version).collect()));
        for value in [new, &values(after)].concat() {
            work.add(name, ItemOp::Push(Side::Right, value));
        }
    }
}

fn lset(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    let view = list(work, &args[1])?;
    if !view.exists() {
        return Err(Fault::error("no such key"));
    }
    let elements = elements(&view);
    let place = place(elements.len(), int(&args[2])?);
    let place = place.ok_or_else(|| Fault::error("index out of range"))?;
    splice(work, &args[1], &elements, place..place + 1, &[member(&args[3])]);
    Ok(Reply::OK)
}

fn linsert(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    let offset = match args[2].to_ascii_lowercase().as_slice() {
        b"before" => 0,
        b"after" => 1,
        _ => return Err(Fault::Syntax),
    };
    let view = list(work, &args[1])?;
    if !view.exists() {
        return Ok(Reply::Integer(0));
    }
    let (elements, pivot) = (elements(&view), member(&args[3]));
    let Some(place) = elements.iter().position(|(_, value)| *value == pivot) else {
        return Ok(Reply::Integer(-1));
    };
    let place = place + offset;
    splice(work, &args[1], &elements, place..place, &[member(&args[4])]);
    Ok(Reply::count(elements.len() + 1))
}

fn lrem(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    let (count, value) = (int(&args[2])?, member(&args[3]));
    let elements = elements(&list(work, &args[1])?);
    let length = elements.len();
    let most = if count == 0 { usize::MAX } else { count.unsigned_abs() as usize };
    let mut equal: Vec<Element> = elements.into_iter().filter(|(_, it)| *it == value).collect();
    if count < 0 {
        equal.reverse();
    }
    equal.truncate(most);
    pull(work, &args[1], length, &equal);
    Ok(Reply::count(equal.len()))
}

fn ltrim(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    let (from, to) = (int(&args[2])?, int(&args[3])?);
    let elements = elements(&list(work, &args[1])?);
    let kept = between(elements.len(), from, to).unwrap_or(0..0);
    let gone = [&elements[..kept.start], &elements[kept.end..]].concat();
    pull(work, &args[1], elements.len(), &gone);
    Ok(Reply::OK)
}

fn side(argument: &[u8]) -> Result<Side, Fault> {
    match argument.to_ascii_lowercase().as_slice() {
        b"left" => Ok(Side::Left),
        b"right" => Ok(Side::Right),
        _ => Err(Fault::Syntax),
    }
}

fn lmove(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    let (from, to) = (&args[1], &args[2]);
    let (take, give) = match &args[3..] {
        [take, give] => (side(take)?, side(give)?),
        _ => (Side::Right, Side::Left),
    };
    let source = list(work, from)?;
    let elements = elements(&source);
    let taken = if take == Side::Left { elements.first() } else { elements.last() };
    let Some(taken) = taken else { return Ok(Reply::Null) };
    list(work, to)?;
    work.add(from, ItemOp::Pull(vec![taken.0]));
    if elements.len() == 1 && from != to {
        work.emptied(from);
    }
    work.add(to, ItemOp::Push(give, taken.1.clone()));
    Ok(bulk(taken))
}

fn lpos(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    let (mut rank, mut count, mut most) = (1, None, 0);
    let (options, []) = args[3..].as_chunks::<2>() else { return Err(Fault::Syntax) };
    for [name, number] in options {
        let number = int(number)?;
        match name.to_ascii_lowercase().as_slice() {
            b"rank" if number == 0 => {
                return Err(Fault::error(
                    "RANK can't be zero: use 1 to start from the first match, 2 from the second \
                     ... or use negative to start from the end of the list",
                ));
            }
            b"rank" => rank = number,
            b"count" if number < 0 => return Err(Fault::error("COUNT can't be negative")),
            b"count" => count = Some(number as usize),
            b"maxlen" if number < 0 => return Err(Fault::error("MAXLEN can't be negative")),
            b"maxlen" => most = number as usize,
            _ => return Err(Fault::Syntax),
        }
    }
    let (elements, value) = (elements(&list(work, &args[1])?), member(&args[2]));
    let mut places: Vec<usize> = (0..elements.len()).collect();
    if rank < 0 {
        places.reverse();
    }
    places.truncate(if most == 0 { usize::MAX } else { most });
    let equal = places.into_iter().filter(|place| elements[*place].1 == value);
    let mut equal = equal.skip(rank.unsigned_abs() as usize - 1).map(Reply::count);
    Ok(match count {
        None => equal.next().unwrap_or(Reply::Null),
        Some(0) => Reply::array(equal),
        Some(count) => Reply::array(equal.take(count)),
    })
}
