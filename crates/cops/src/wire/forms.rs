//! The encodings of all parts of a frame.

use super::{Malformed, Reader, Wire, size};
use crate::clock::{NodeId, Timestamp};
use crate::column::{Cell, Column, Content, Family, Location, Mutation, Predicate, Slice, Update};
use crate::deps::Dep;
use crate::message::{ClientId, Frame, Message, RequestId, Requested, SubRequest};

/// Numbers of fewer bits.
macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl Wire for $number {
            fn put(&self, out: &mut Vec<u8>) {
                u64::from(*self).put(out);
            }

            fn take(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
                let at = reader.at;
                u64::take(reader)?.try_into().map_err(|_| Malformed { at })
            }
        }
    )*};
}

numbers!(u8, u16, u32);

impl Wire for usize {
    fn put(&self, out: &mut Vec<u8>) {
        (*self as u64).put(out);
    }

    fn take(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let at = reader.at;
        u64::take(reader)?.try_into().map_err(|_| Malformed { at })
    }
}

/// Structures: their fields, one after the other.
macro_rules! structures {
    ($($name:ident { $($field:ident),* })*) => {$(
        impl Wire for $name {
            fn put(&self, out: &mut Vec<u8>) {
                $(self.$field.put(out);)*
            }

            fn take(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
                Ok(Self { $($field: Wire::take(reader)?),* })
            }
        }
    )*};
}

structures! {
    Dep { key, ts }
    Column { super_column, name }
    Location { key, family, column }
    Mutation { location, update }
    Slice { key, family, predicate }
    Cell { column, content, ts, deps }
    ClientId { dc, number }
    Requested { client, request }
    SubRequest { transaction, coordinator_key, total, mutations, deps }
}

impl Wire for bool {
    fn put(&self, out: &mut Vec<u8>) {
        out.push((*self).into());
    }

    fn take(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        match reader.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Malformed { at: reader.at - 1 }),
        }
    }
}

impl<T: Wire> Wire for Option<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.is_some().put(out);
        if let Some(content) = self {
            content.put(out);
        }
    }

    fn take(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(if bool::take(reader)? { Some(T::take(reader)?) } else { None })
    }
}

impl<T: Wire> Wire for Vec<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.len().put(out);
        for element in self {
            element.put(out);
        }
    }

    fn take(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let count = usize::take(reader)?;
        // Each element takes a byte at least, so that no length asks for more memory than that.
        if count > reader.bytes.len() - reader.at {
            return Err(reader.malformed());
        }
        (0..count).map(|_| T::take(reader)).collect()
    }
}

impl<T: Wire, U: Wire> Wire for (T, U) {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
        self.1.put(out);
    }

    fn take(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok((T::take(reader)?, U::take(reader)?))
    }
}

/// A value: its number, and bytes that stand for the user's.
struct Padded(u64);

impl Wire for Padded {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
        out.resize(out.len() + size(self.0), self.0 as u8);
    }

    fn take(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let value = u64::take(reader)?;
        reader.skip(size(value))?;
        Ok(Self(value))
    }
}

/// A signed number; small ones take few bytes.
struct Signed(i64);

impl Wire for Signed {
    fn put(&self, out: &mut Vec<u8>) {
        (((self.0 << 1) ^ (self.0 >> 63)) as u64).put(out);
    }

    fn take(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let number = u64::take(reader)?;
        Ok(Self((number >> 1) as i64 ^ -((number & 1) as i64)))
    }
}

impl Wire for Timestamp {
    fn put(&self, out: &mut Vec<u8>) {
        (self.time(), self.node().bits()).put(out);
    }

    fn take(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (time, node) = <(u64, u16)>::take(reader)?;
        Ok(Self::new(time, NodeId::from_bits(node)))
    }
}

/// Enumerations: a tag, and the parts of the variant.
macro_rules! variants {
    ($($name:ident { $($tag:literal: $pattern:pat, ($($part:expr),*) => $taken:expr;)* })*) => {$(
        impl Wire for $name {
            fn put(&self, out: &mut Vec<u8>) {
                match self {
                    $($pattern => {
                        out.push($tag);
                        $($part.put(out);)*
                    })*
                }
            }

            fn take(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
                match reader.byte()? {
                    $($tag => $taken(reader),)*
                    _ => Err(Malformed { at: reader.at - 1 }),
                }
            }
        }
    )*};
}

variants! {
    Family {
        0: Self::Standard(number), (number) => |r: &mut Reader<'_>| Ok(Self::Standard(Wire::take(r)?));
        1: Self::Counter(number), (number) => |r: &mut Reader<'_>| Ok(Self::Counter(Wire::take(r)?));
    }
    Update {
        0: Self::Insert(value), (Padded(*value)) => |r: &mut Reader<'_>| Ok(Self::Insert(Padded::take(r)?.0));
        1: Self::Delete, () => |_: &mut Reader<'_>| Ok(Self::Delete);
        2: Self::Add(delta), (Signed(*delta)) => |r: &mut Reader<'_>| Ok(Self::Add(Signed::take(r)?.0));
    }
    Content {
        0: Self::Value(value), (Padded(*value)) => |r: &mut Reader<'_>| Ok(Self::Value(Padded::take(r)?.0));
        1: Self::Deleted, () => |_: &mut Reader<'_>| Ok(Self::Deleted);
        2: Self::Sum(sum), (Signed(*sum)) => |r: &mut Reader<'_>| Ok(Self::Sum(Signed::take(r)?.0));
    }
    Predicate {
        0: Self::Range { start, stop, count }, (start, stop, count) => |r: &mut Reader<'_>| {
            let (start, stop) = Wire::take(r)?;
            Ok(Self::Range { start, stop, count: Wire::take(r)? })
        };
        1: Self::Names(names), (names) => |r: &mut Reader<'_>| Ok(Self::Names(Wire::take(r)?));
    }
    Frame {
        0: Self::Plain(message), (message) => |r: &mut Reader<'_>| Ok(Self::Plain(Wire::take(r)?));
        1: Self::Numbered(number, message), (number, message) => |r: &mut Reader<'_>| {
            let number = Wire::take(r)?;
            Ok(Self::Numbered(number, Wire::take(r)?))
        };
        2: Self::Arrived(next), (next) => |r: &mut Reader<'_>| Ok(Self::Arrived(Wire::take(r)?));
    }
}

/// Messages whose fields are encoded one after the other; those with values of the COPS family stand
/// after the semicolon, each with the field that is one.
macro_rules! messages {
    ($($tag:literal: $name:ident { $($field:ident),* },)*; $($sized_tag:literal: $sized:ident,)*) => {
        impl Wire for Message {
            fn put(&self, out: &mut Vec<u8>) {
                match self {
                    $(Self::$name { $($field),* } => {
                        out.push($tag);
                        $($field.put(out);)*
                    })*
                    Self::AtomicMutate(part) => {
                        out.push(0);
                        part.put(out);
                    }
                    $(Self::$sized { .. } => {
                        out.push($sized_tag);
                        put_sized(self, out);
                    })*
                }
            }

            fn take(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
                match reader.byte()? {
                    0 => Ok(Self::AtomicMutate(Wire::take(reader)?)),
                    $($tag => Ok(Self::$name { $($field: Wire::take(reader)?),* }),)*
                    $($sized_tag => take_sized($sized_tag, reader),)*
                    _ => Err(Malformed { at: reader.at - 1 }),
                }
            }
        }
    };
}

messages! {
    1: DepCheck { id, dep },
    2: DepChecked { id, dep },
    3: ReadByTime { request, key, ts },
    4: Written { request, dep },
    5: Committed { dep },
    6: CollectDeps { dep },
    7: MultigetSlice { request, slice, part, at },
    8: SliceResult { request, part, cells, evt, lvt, is_pending },
    9: BatchMutate { request, mutations, deps },
    10: Mutated { request, dep },
    11: ReplicatedMutation { dep, mutations, deps },
    12: YesVote { transaction, count, extra },
    13: Commit { transaction, ts, evt },
    14: Ack { transaction },
    15: ReplicatedTransaction { part, ts },
    16: Notify { transaction, count },
    17: Prepare { transaction },
    18: CommitCheck { transaction, at },
    19: CommitChecked { transaction, at, committed },
    ;
    20: ReadResult,
    21: WriteAfter,
    22: ReplicatedWrite,
}

/// Appends the fields of a message with values.
fn put_sized(message: &Message, out: &mut Vec<u8>) {
    match message {
        Message::ReadResult { request, key, value, versions, deps, never_depend } => {
            (*request, *key).put(out);
            let values: Vec<Padded> = value.iter().map(|value| Padded(*value)).collect();
            values.put(out);
            versions.put(out);
            deps.put(out);
            never_depend.put(out);
        }
        Message::WriteAfter { request, key, value, deps, nearest } => {
            (*request, *key).put(out);
            Padded(*value).put(out);
            put_deps(deps, nearest, out);
        }
        Message::ReplicatedWrite { dep, value, deps, nearest, previous } => {
            dep.put(out);
            Padded(*value).put(out);
            put_deps(deps, nearest, out);
            previous.put(out);
        }
        // The other messages have no values, or have them in their parts.
        _ => {}
    }
}

fn take_sized(tag: u8, reader: &mut Reader<'_>) -> Result<Message, Malformed> {
    if tag == 22 {
        let (dep, Padded(value)) = Wire::take(reader)?;
        let (deps, nearest) = take_deps(reader)?;
        let previous = Wire::take(reader)?;
        return Ok(Message::ReplicatedWrite { dep, value, deps, nearest, previous });
    }
    let (request, key): (RequestId, u32) = Wire::take(reader)?;
    if tag == 21 {
        let Padded(value) = Wire::take(reader)?;
        let (deps, nearest) = take_deps(reader)?;
        return Ok(Message::WriteAfter { request, key, value, deps, nearest });
    }
    let value = Vec::<Padded>::take(reader)?.into_iter().map(|Padded(value)| value).collect();
    let (versions, deps) = Wire::take(reader)?;
    let never_depend = Wire::take(reader)?;
    Ok(Message::ReadResult { request, key, value, versions, deps, never_depend })
}

/// Appends all dependencies and the nearest ones, which are the same but in COPS-RT: then once.
fn put_deps(deps: &Vec<Dep>, nearest: &Vec<Dep>, out: &mut Vec<u8>) {
    nearest.put(out);
    let others = (deps != nearest).then_some(deps);
    others.is_some().put(out);
    if let Some(deps) = others {
        deps.put(out);
    }
}

fn take_deps(reader: &mut Reader<'_>) -> Result<(Vec<Dep>, Vec<Dep>), Malformed> {
    let nearest: Vec<Dep> = Wire::take(reader)?;
    let deps: Option<Vec<Dep>> = Wire::take(reader)?;
    Ok((deps.unwrap_or_else(|| nearest.clone()), nearest))
}
