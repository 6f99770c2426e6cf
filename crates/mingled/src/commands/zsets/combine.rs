//! Unions, intersections and differences of sorted sets.

use std::collections::BTreeMap;

use mingle_geo::types::item::ItemType;

use super::super::number::{int, parse_float, score, text};
use super::super::sets::limit;
use super::super::table::{Class, Command, Keys};
use super::super::{Fault, Outcome, Work};
use super::range::store;
use super::{Scored, listed, sort};
use crate::resp::{Bytes, Reply};

const COUNTED: Keys = Keys::Counted(1);
const STORED: Keys = Keys::FirstAndCounted(2);

pub const COMMANDS: &[Command] = &[
    Command::data(
        "zdiff",
        -3,
        Class::Read,
        COUNTED,
        combine,
        "Returns the difference of sorted sets.",
    ),
    Command::data(
        "zdiffstore",
        -4,
        Class::Strong,
        STORED,
        stored,
        "Stores the difference of sorted sets.",
    ),
    Command::data(
        "zinter",
        -3,
        Class::Read,
        COUNTED,
        combine,
        "Returns the intersection of sorted sets.",
    ),
    Command::data(
        "zintercard",
        -3,
        Class::Read,
        COUNTED,
        zintercard,
        "Counts the intersection of sorted sets.",
    ),
    Command::data(
        "zinterstore",
        -4,
        Class::Strong,
        STORED,
        stored,
        "Stores the intersection of sorted sets.",
    ),
    Command::data("zunion", -3, Class::Read, COUNTED, combine, "Returns the union of sorted sets."),
    Command::data(
        "zunionstore",
        -4,
        Class::Strong,
        STORED,
        stored,
        "Stores the union of sorted sets.",
    ),
];

/// The members of a set or a sorted set, by name. Members of a set have the score 1.
type Scores = BTreeMap<Bytes, f64>;

fn scores(work: &Work<'_>, name: &Bytes) -> Result<Scores, Fault> {
    let view = work.view(name);
    match view.shown_type() {
        None => Ok(Scores::new()),
        Some(ItemType::SortedSet) => {
            Ok(view.scores().map(|(member, value)| (text(member), score(&value))).collect())
        }
        Some(ItemType::Set) => Ok(view.members().map(|member| (text(member), 1.0)).collect()),
        Some(_) => Err(Fault::WrongType),
    }
}

/// The rule for the score of a member of several sorted sets.
#[derive(Clone, Copy, Debug)]
enum Aggregate {
    Sum,
    Least,
    Most,
}

impl Aggregate {
    fn of(self, one: f64, other: f64) -> f64 {
        match self {
            // The sum of both infinities is 0, as in Redis.
            Self::Sum if (one + other).is_nan() => 0.0,
            Self::Sum => one + other,
            Self::Least => one.min(other),
            Self::Most => one.max(other),
        }
    }
}

/// The options after the names.
#[derive(Clone, Debug)]
struct Options {
    weights: Vec<f64>,
    aggregate: Aggregate,
    has_scores: bool,
}

impl Options {
    fn parse(command: &[u8], count: usize, options: &[Bytes]) -> Result<Self, Fault> {
        let (is_diff, is_stored) = (command.starts_with(b"zdiff"), command.ends_with(b"store"));
        let mut parsed =
            Self { weights: vec![1.0; count], aggregate: Aggregate::Sum, has_scores: false };
        let mut rest = options;
        while let [name, after @ ..] = rest {
            rest = match name.to_ascii_lowercase().as_slice() {
                b"weights" if !is_diff => {
                    let weights = after.get(..count).ok_or(Fault::Syntax)?;
                    let weights = weights.iter().map(|weight| {
                        parse_float(weight)
                            .ok_or_else(|| Fault::error("weight value is not a float"))
                    });
                    parsed.weights = weights.collect::<Result<_, _>>()?;
                    &after[count..]
                }
                b"aggregate" if !is_diff => {
                    let (rule, after) = after.split_first().ok_or(Fault::Syntax)?;
                    parsed.aggregate = match rule.to_ascii_lowercase().as_slice() {
                        b"sum" => Aggregate::Sum,
                        b"min" => Aggregate::Least,
                        b"max" => Aggregate::Most,
                        _ => return Err(Fault::Syntax),
                    };
                    after
                }
                b"withscores" if !is_stored => {
                    parsed.has_scores = true;
                    after
                }
                _ => return Err(Fault::Syntax),
            };
        }
        Ok(parsed)
    }
}

fn combined(
    work: &Work<'_>,
    command: &[u8],
    names: &[Bytes],
    options: &Options,
) -> Result<Vec<Scored>, Fault> {
    let all: Result<Vec<Scores>, Fault> = names.iter().map(|name| scores(work, name)).collect();
    let weighted = all?.into_iter().zip(&options.weights).map(|(scores, weight)| {
        let weighted = scores.into_iter().map(|(member, score)| {
            let score = score * weight;
            (member, if score.is_nan() { 0.0 } else { score })
        });
        weighted.collect::<Scores>()
    });
    let mut all = weighted.collect::<Vec<_>>().into_iter();
    let mut result = all.next().unwrap_or_default();
    for scores in all {
        if command.starts_with(b"zdiff") {
            result.retain(|member, _| !scores.contains_key(member));
            continue;
        }
        if command.starts_with(b"zinter") {
            result.retain(|member, _| scores.contains_key(member));
        }
        for (member, score) in scores {
            match result.get_mut(&member) {
                Some(found) => *found = options.aggregate.of(*found, score),
                None if command.starts_with(b"zunion") => _ = result.insert(member, score),
                None => {}
            }
        }
    }
    let mut members: Vec<Scored> =
        result.into_iter().map(|(member, score)| (score, member)).collect();
    sort(&mut members);
    Ok(members)
}

fn combine(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    let command = args[0].to_ascii_lowercase();
    let end = 2 + int(&args[1])? as usize;
    let options = Options::parse(&command, end - 2, &args[end..])?;
    let members = combined(work, &command, &args[2..end], &options)?;
    Ok(listed(&members, options.has_scores, work.is_new_protocol))
}

fn stored(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    let command = args[0].to_ascii_lowercase();
    let end = 3 + int(&args[2])? as usize;
    let options = Options::parse(&command, end - 3, &args[end..])?;
    let members = combined(work, &command, &args[3..end], &options)?;
    Ok(store(work, &args[1], members))
}

fn zintercard(work: &mut Work<'_>, args: &[Bytes]) -> Outcome {
    let end = 2 + int(&args[1])? as usize;
    let most = limit(&args[end..])?;
    let options = Options::parse(b"zinter", end - 2, &[])?;
    let members = combined(work, b"zinter", &args[2..end], &options)?;
    Ok(Reply::count(members.len().min(most)))
}
