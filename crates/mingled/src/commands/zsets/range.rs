//! Ranges of sorted sets.

use mingle_geo::types::item::{ItemOp, Place};

use super::super::lists::between;
use super::super::number::{int, member, parse_float, score_value};
use super::super::table::{Class, Command, Keys};
use super::super::{Fault, Outcome, Work};
use super::{Scored, listed, remove, sorted, zset};
use crate::resp::{Bytes, Reply};

const FIRST: Keys = Keys::FIRST;
const READ: Class = Class::Read;

pub const COMMANDS: &[Command] = &[
    Command::data("zcount", 4, READ, FIRST, count, "Counts the members with scores in a range."),
    Command::data("zlexcount", 4, READ, FIRST, count, "Counts the members in a range of names."),
    Command::data("zrange", -4, READ, FIRST, zrange, "Returns the members in a range."),
    Command::data(
        "zrangebylex",
        -4,
        READ,
        FIRST,
        zrange,
        "Returns the members in a range of names.",
    ),
    Command::data(
        "zrangebyscore",
        -4,
        READ,
        FIRST,
        zrange,
        "Returns the members with scores in a range.",
    ),
    Command::data(
        "zrangestore",
        -5,
        Class::Strong,
        Keys::TWO,
        zrangestore,
        "Stores the members in a range.",
    ),
    Command::data(
        "zremrangebylex",
        4,
        Class::Causal,
        FIRST,
        removed,
        "Removes the members in a range of names.",
    )
    .differs("It removes members of its snapshot, and no others."),
    Command::data(
        "zremrangebyrank",
        4,
        Class::Causal,
        FIRST,
        removed,
        "Removes the members in places.",
    )
    .differs("It removes members of its snapshot, and no others."),
    Command::data(
        "zremrangebyscore",
        4,
        Class::Causal,
        FIRST,
        removed,
        "Removes the members with scores in a range.",
    )
    .differs("It removes members of its snapshot, and no others."),
    Command::data(
        "zrevrange",
        -4,
        READ,
        FIRST,
        zrange,
        "Returns the members in places, from the highest score.",
    ),
    Command::data(
        "zrevrangebylex",
        -4,
        READ,
        FIRST,
        zrange,
        "Returns the members in a range of names, from the last.",
    ),
    Command::data(
        "zrevrangebyscore",
        -4,
        READ,
        FIRST,
        zrange,
        "Returns the members with scores in a range, from the highest.",
    ),
];

/// The meaning of a range's ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Place,
    Score,
    Name,
}

/// A range, and the form of the reply.
#[derive(Clone, Debug)]
struct Query {
    by: By,
    is_reversed: bool,
    has_scores: bool,
    /// The number of members to leave out, and the maximum number; below 0 there is none.
    limit: Option<(i64, i64)>,
}

impl Query {
    /// Reads the query of a command from its name and its options.
    fn parse(command: &[u8], options: &[Bytes]) -> Result<Self, Fault> {
        let command = command.to_ascii_lowercase();
        let has = |part: &[u8]| command.windows(part.len()).any(|window| window == part);
        let is_general = matches!(&command[..], b"zrange" | b"zrangestore");
        let by = match () {
            () if has(b"byscore") || command == b"zcount" => By::Score,
            () if has(b"lex") => By::Name,
            () => By::Place,
        };
        let mut query = Self { by, is_reversed: has(b"rev"), has_scores: false, limit: None };
        let mut rest = options;
        while let [name, after @ ..] = rest {
            rest = match (name.to_ascii_lowercase().as_slice(), after) {
                (b"withscores", after) if command != b"zrangestore" => {
                    query.has_scores = true;
                    after
                }
                (b"byscore", after) if is_general => {
                    query.by = By::Score;
                    after
                }
                (b"bylex", after) if is_general => {
                    query.by = By::Name;
                    after
                }
                (b"rev", after) if is_general => {
                    query.is_reversed = true;
                    after
                }
                (b"limit", [skipped, most, after @ ..]) => {
                    query.limit = Some((int(skipped)?, int(most)?));
                    after
                }
                _ => return Err(Fault::Syntax),
            };
        }
        if query.limit.is_some() && query.by == By::Place {
            let text =
                "syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX";
            return Err(Fault::error(text));
        }
        if query.has_scores && query.by == By::Name {
            let text = "syntax error, WITHSCORES not supported in combination with BYLEX";
            return Err(Fault::error(text));
        }
        Ok(query)
    }

    /// Returns the members in the range between these arguments, in the order of the reply.
    fn take(&self, mut members: Vec<Scored>, from: &[u8], to: &[u8]) -> Result<Vec<Scored>, Fault> {
        if self.by == By::Place {
            let (from, to) = (int(from)?, int(to)?);
            if self.is_reversed {
                members.reverse();
            }
            let range = between(members.len(), from, to).unwrap_or(0..0);
            return Ok(members[range].to_vec());
        }
        let (low, high) = if self.is_reversed { (to, from) } else { (from, to) };
        if self.by == By::Score {
            let (low, high) = (Bound::score(low)?, Bound::score(high)?);
            members.retain(|(score, _)| low.is_below(score) && high.is_above(score));
        } else {
            let (low, high) = (Bound::name(low)?, Bound::name(high)?);
            members.retain(|(_, name)| low.is_below(name) && high.is_above(name));
        }
        if self.is_reversed {
            members.reverse();
        }
        if let Some((skipped, most)) = self.limit {
            let skipped = usize::try_from(skipped).unwrap_or(members.len()).min(members.len());
            members.drain(..skipped);
            members.truncate(usize::try_from(most).unwrap_or(usize::MAX));
        }
        Ok(members)
    }
}

/// An end of a range.
#[derive(Clone, Debug)]
enum Bound<T> {
    Lowest,
    Highest,
    Included(T),
    Excluded(T),
}

impl<T: PartialOrd> Bound<T> {
    /// True if values from this bound on include the value.
    fn is_below(&self, value: &T) -> bool {
        match self {
            Self::Lowest => true,
            Self::Highest => false,
            Self::Included(bound) => value >= bound,
            Self::Excluded(bound) => value > bound,
        }
    }

    /// True if values up to this bound include the value.
    fn is_above(&self, value: &T) -> bool {
        match self {
            Self::Lowest => false,
            Self::Highest => true,
            Self::Included(bound) => value <= bound,
            Self::Excluded(bound) => value < bound,
        }
    }
}

impl Bound<f64> {
    fn score(text: &[u8]) -> Result<Self, Fault> {
        let (bound, text): (fn(f64) -> Self, _) = match text {
            [b'(', text @ ..] => (Self::Excluded, text),
            text => (Self::Included, text),
        };
        parse_float(text).map(bound).ok_or_else(|| Fault::error("min or max is not a float"))
    }
}

impl Bound<Bytes> {
    fn name(text: &[u8]) -> Result<Self, Fault> {
        match text {
            b"-" => Ok(Self::Lowest),
            b"+" => Ok(Self::Highest),
            [b'[', name @ ..] => Ok(Self::Included(name.into())),
            [b'(', name @ ..] => Ok(Self::Excluded(name.into())),
            _ => Err(Fault::error("min or max not valid string range item")),
        }
    }
}

fn zrange(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    let query = Query::parse(&args[0], &args[4..])?;
    query.take(Vec::new(), &args[2], &args[3])?;
    let members = query.take(sorted(&zset(work, &args[1])?), &args[2], &args[3])?;
    Ok(listed(&members, query.has_scores, work.is_new_protocol))
}

fn zrangestore(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    let query = Query::parse(&args[0], &args[5..])?;
    let members = query.take(sorted(&zset(work, &args[2])?), &args[3], &args[4])?;
    Ok(store(work, &args[1], members))
}

/// Replaces an item by these members.
pub fn store(work: &mut Work<'_>, name: &Bytes, members: Vec<Scored>) -> Reply {
    let count = members.len();
    work.delete(name);
    for (score, of) in members {
        work.add(name, ItemOp::Put(Place::Score(member(&of)), score_value(score)));
    }
    Reply::count(count)
}

fn count(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    let query = Query::parse(&args[0], &[])?;
    query.take(Vec::new(), &args[2], &args[3])?;
    let members = sorted(&zset(work, &args[1])?);
    Ok(Reply::count(query.take(members, &args[2], &args[3])?.len()))
}

fn removed(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    let query = Query::parse(&args[0], &[])?;
    query.take(Vec::new(), &args[2], &args[3])?;
    let members = query.take(sorted(&zset(work, &args[1])?), &args[2], &args[3])?;
    remove(work, &args[1], members.iter().map(|(_, of)| of))?;
    Ok(Reply::count(members.len()))
}
