//! Sorted sets.

mod combine;
mod range;

use std::collections::BTreeMap;

use mingle_geo::types::item::{ItemOp, ItemType, Place, View};
use mingle_model::Value;

use super::number::{float, is_whole, member, score, score_value, text};
use super::pick::{Scan, choices, choose};
use super::sets::positive;
use super::table::{Class, Command, Keys};
use super::{Fault, Outcome, Work};
use crate::resp::{Bytes, Reply};

pub use combine::COMMANDS as COMBINE_COMMANDS;
pub use range::COMMANDS as RANGE_COMMANDS;

const FIRST: Keys = Keys::FIRST;

pub const COMMANDS: &[Command] = &[
    Command::data("zadd", -4, Class::Causal, FIRST, zadd, "Sets the scores of members.")
        .by(zadd_class)
        .differs("Strong with `NX`, `XX`, `GT` or `LT`; `INCR` is as `ZINCRBY`."),
    Command::data("zcard", 2, Class::Read, FIRST, zcard, "Counts the members."),
    Command::data("zincrby", 4, Class::Causal, FIRST, zincrby, "Adds to the score of a member.")
        .differs("Strong unless both numbers are whole. The reply is the sum at the snapshot."),
    Command::data("zmscore", -3, Class::Read, FIRST, zmscore, "Returns the scores of members."),
    Command::data(
        "zpopmax",
        -2,
        Class::Strong,
        FIRST,
        zpop,
        "Removes the members with the highest scores.",
    ),
    Command::data(
        "zpopmin",
        -2,
        Class::Strong,
        FIRST,
        zpop,
        "Removes the members with the lowest scores.",
    ),
    Command::data("zrandmember", -2, Class::Read, FIRST, zrandmember, "Returns random members."),
    Command::data(
        "zrank",
        -3,
        Class::Read,
        FIRST,
        zrank,
        "Returns the place of a member by score.",
    ),
    Command::data("zrem", -3, Class::Causal, FIRST, zrem, "Removes members.")
        .differs("A concurrent `ZINCRBY` of the same member survives."),
    Command::data(
        "zrevrank",
        -3,
        Class::Read,
        FIRST,
        zrank,
        "Returns the place of a member from the highest score.",
    ),
    Command::data("zscan", -3, Class::Read, FIRST, zscan, "Returns the members in steps.")
        .differs("A step reads all members; the cursor is a position in an order of hashes."),
    Command::data("zscore", 3, Class::Read, FIRST, zscore, "Returns the score of a member."),
];

/// A member with its score.
type Scored = (f64, Bytes);

fn zset<'a>(work: &Work<'a>, name: &Bytes) -> Result<View<'a>, Fault> {
    work.typed(name, ItemType::SortedSet)
}

/// Returns the members, by score and then in their order.
fn sorted(view: &View<'_>) -> Vec<Scored> {
    let mut members: Vec<Scored> =
        view.scores().map(|(member, value)| (score(&value), text(member))).collect();
    sort(&mut members);
    members
}

fn sort(members: &mut [Scored]) {
    members.sort_by(|one, other| one.0.total_cmp(&other.0).then_with(|| one.1.cmp(&other.1)));
}

/// Returns members as a reply; with scores, pairs in version 2 are flat.
fn listed(members: &[Scored], has_scores: bool, is_new: bool) -> Reply {
    let one = |member: &Bytes| Reply::Bulk(member.clone());
    if !has_scores {
        return Reply::array(members.iter().map(|(_, member)| one(member)));
    }
    if is_new {
        let pair =
            |(score, member): &Scored| Reply::Array(vec![one(member), Reply::Double(*score)]);
        return Reply::array(members.iter().map(pair));
    }
    let pair = |(score, member): &Scored| [one(member), Reply::Double(*score)];
    Reply::array(members.iter().flat_map(pair))
}

/// The options of `ZADD`.
#[derive(Clone, Copy, Debug, Default)]
struct AddOptions {
    if_absent: bool,
    if_present: bool,
    if_greater: bool,
    if_less: bool,
    counts_changes: bool,
    adds: bool,
    /// The number of arguments before the scores.
    length: usize,
}

impl AddOptions {
    fn parse(args: &[Bytes]) -> Self {
        let mut parsed = Self { length: 2, ..Self::default() };
        for option in args.iter().skip(2) {
            match option.to_ascii_lowercase().as_slice() {
                b"nx" => parsed.if_absent = true,
                b"xx" => parsed.if_present = true,
                b"gt" => parsed.if_greater = true,
                b"lt" => parsed.if_less = true,
                b"ch" => parsed.counts_changes = true,
                b"incr" => parsed.adds = true,
                _ => break,
            }
            parsed.length += 1;
        }
        parsed
    }

    fn is_conditional(self) -> bool {
        self.if_absent || self.if_present || self.if_greater || self.if_less
    }

    fn check(self) -> Result<(), Fault> {
        if self.if_absent && self.if_present {
            let text = "XX and NX options at the same time are not compatible";
            return Err(Fault::error(text));
        }
        let orders = [self.if_absent, self.if_greater, self.if_less];
        if orders.into_iter().filter(|is_set| *is_set).count() > 1 {
            let text = "GT, LT, and/or NX options at the same time are not compatible";
            return Err(Fault::error(text));
        }
        Ok(())
    }

    fn allows(self, old: Option<f64>, new: f64) -> bool {
        match old {
            None => !self.if_present,
            Some(old) => {
                !(self.if_absent || self.if_greater && new <= old || self.if_less && new >= old)
            }
        }
    }
}

fn zadd_class(args: &[Bytes]) -> Class {
    if AddOptions::parse(args).is_conditional() { Class::Strong } else { Class::Causal }
}

fn zadd(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    let (name, options) = (&args[1], AddOptions::parse(args));
    let (pairs, []) = args[options.length.min(args.len())..].as_chunks::<2>() else {
        return Err(Fault::Syntax);
    };
    if pairs.is_empty() {
        return Err(Fault::Syntax);
    }
    options.check()?;
    if options.adds && pairs.len() > 1 {
        return Err(Fault::error("INCR option supports a single increment-element pair"));
    }
    let scores: Result<Vec<f64>, Fault> = pairs.iter().map(|[text, _]| float(text)).collect();
    let scores = scores?;
    let view = zset(work, name)?;
    if options.adds {
        return match add(work, name, &pairs[0][1], scores[0], options)? {
            Some(sum) => Ok(Reply::Double(sum)),
            None => Ok(Reply::Null),
        };
    }
    // A member may occur several times.
    let mut known: BTreeMap<&Bytes, Option<f64>> = BTreeMap::new();
    let (mut added, mut changed) = (0, 0);
    for ([_, of], new) in pairs.iter().zip(scores) {
        let found = || view.score(&member(of)).map(|value| score(&value));
        let old = *known.entry(of).or_insert_with(found);
        if !options.allows(old, new) {
            continue;
        }
        added += usize::from(old.is_none());
        changed += usize::from(old != Some(new));
        known.insert(of, Some(new));
        work.add(name, ItemOp::Put(Place::Score(member(of)), score_value(new)));
    }
    Ok(Reply::count(if options.counts_changes { changed } else { added }))
}

/// Adds to a score. Whole numbers are added causally; a sum with a fraction is a new score, which only
/// a strong transaction may put.
fn add(
    work: &mut Work<'_>,
    name: &Bytes,
    of: &Bytes,
    amount: f64,
    options: AddOptions,
) -> Result<Option<f64>, Fault> {
    let place = Place::Score(member(of));
    let old = zset(work, name)?.score(&member(of));
    let old_score = old.as_ref().map(score);
    let sum = old_score.unwrap_or(0.0) + amount;
    if sum.is_nan() {
        return Err(Fault::error("resulting score is not a number (NaN)"));
    }
    if !options.allows(old_score, sum) {
        return Ok(None);
    }
    let is_whole_sum = matches!(old, None | Some(Value::Int(_)))
        && is_whole(amount)
        && is_whole(sum)
        && old_score.is_none_or(is_whole);
    if is_whole_sum {
        work.add(name, ItemOp::Add(place, amount as i64));
    } else if work.is_strong {
        work.add(name, ItemOp::Put(place, score_value(sum)));
    } else {
        return Err(Fault::Upgrade);
    }
    Ok(Some(sum))
}

fn zincrby(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    let amount = float(&args[2])?;
    let sum = add(work, &args[1], &args[3], amount, AddOptions::default())?;
    Ok(sum.map_or(Reply::Null, Reply::Double))
}

fn zcard(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    Ok(Reply::count(zset(work, &args[1])?.scores().count()))
}

fn shown(value: Option<Value>) -> Reply {
    value.map_or(Reply::Null, |value| Reply::Double(score(&value)))
}

fn zscore(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    Ok(shown(zset(work, &args[1])?.score(&member(&args[2]))))
}

fn zmscore(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    let view = zset(work, &args[1])?;
    Ok(Reply::array(args[2..].iter().map(|of| shown(view.score(&member(of))))))
}

fn zrem(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    let view = zset(work, &args[1])?;
    let mut members: Vec<&Bytes> = args[2..].iter().collect();
    members.sort();
    members.dedup();
    members.retain(|of| view.score(&member(of)).is_some());
    remove(work, &args[1], members.iter().copied())?;
    Ok(Reply::count(members.len()))
}

/// Removes members, which the sorted set has.
fn remove<'b>(
    work: &mut Work<'_>,
    name: &Bytes,
    members: impl IntoIterator<Item = &'b Bytes>,
) -> Result<(), Fault> {
    let mut removed = 0;
    for of in members {
        work.add(name, ItemOp::Drop(Place::Score(member(of))));
        removed += 1;
    }
    if removed > 0 && removed == zset(work, name)?.scores().count() {
        work.emptied(name);
    }
    Ok(())
}

fn zrank(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    let has_score = match &args[3..] {
        [] => false,
        [option] if option.eq_ignore_ascii_case(b"withscore") => true,
        _ => return Err(Fault::Syntax),
    };
    let mut members = sorted(&zset(work, &args[1])?);
    if args[0].eq_ignore_ascii_case(b"zrevrank") {
        members.reverse();
    }
    let place = members.iter().position(|(_, of)| *of == args[2]);
    Ok(match place {
        None if has_score => Reply::NullArray,
        None => Reply::Null,
        Some(place) if has_score => {
            Reply::Array(vec![Reply::count(place), Reply::Double(members[place].0)])
        }
        Some(place) => Reply::count(place),
    })
}

fn zpop(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    let count = match &args[2..] {
        [] => None,
        [count] => Some(positive(count)? as usize),
        _ => return Err(Fault::Syntax),
    };
    let mut members = sorted(&zset(work, &args[1])?);
    if args[0].eq_ignore_ascii_case(b"zpopmax") {
        members.reverse();
    }
    members.truncate(count.unwrap_or(1));
    remove(work, &args[1], members.iter().map(|(_, of)| of))?;
    Ok(listed(&members, true, work.is_new_protocol && count.is_some()))
}

fn zscan(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    let scan = Scan::parse(&args[2], &args[3..])?;
    let members = sorted(&zset(work, &args[1])?);
    let (next, members) = scan.step(members, |(_, of)| of.clone());
    // Scores are strings here in both versions.
    let pairs = members
        .into_iter()
        .flat_map(|(score, of)| [Reply::Bulk(of), Reply::text(crate::resp::format_double(score))]);
    Ok(Reply::Array(vec![Reply::text(next.to_string()), Reply::array(pairs)]))
}

fn zrandmember(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    let members = sorted(&zset(work, &args[1])?);
    let (count, has_scores) = match &args[2..] {
        [] => {
            let one = choose(&members, 1, work.random).pop();
            return Ok(one.map_or(Reply::Null, |(_, of)| Reply::Bulk(of)));
        }
        [count] => (choices(count)?, false),
        [count, option] if option.eq_ignore_ascii_case(b"withscores") => (choices(count)?, true),
        _ => return Err(Fault::Syntax),
    };
    let chosen = choose(&members, count, work.random);
    Ok(listed(&chosen, has_scores, work.is_new_protocol))
}
