//! Reads: the questions to the server, the checks recorded for them, and the meaning of replies.

use mingle_model::{Name, Ref, Type, Value, Version};
use mingle_store::{Address, Data, Read};
use redis::Value as Reply;

use crate::layout::{Found, Layout, Shape};
use crate::operation::{self, Operations};
use crate::reply;
use crate::request::{Objects, Word, words};
use crate::witness;
use mingle_store::codec;
use mingle_store::overlay::Overlay;

/// The question of one read.
#[derive(Clone, Debug)]
pub struct Question {
    /// The script's words.
    pub words: Vec<Word>,
    /// The check whose result must stay the same, without that result; none if the read is not
    /// validated.
    pub check: Option<Vec<Word>>,
}

/// The result of a read.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The data.
    pub data: Data,
    /// The version of its last change.
    pub version: Version,
    /// The result that the check must find again.
    pub mark: Word,
}

/// The context of reads.
#[derive(Clone, Copy)]
pub struct Reader<'a> {
    /// The places of fields.
    pub layout: &'a Layout,
    /// The declared operations.
    pub operations: &'a Operations,
    /// The transaction's flushed writes.
    pub overlay: &'a Overlay,
}

/// Clamps an index to the largest one that the server takes.
fn index(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

impl Reader<'_> {
    /// Returns the number of objects of a kind that the transaction has written.
    fn own(&self, kind: &str) -> usize {
        self.overlay.objects().filter(|(object, _)| **object.kind() == *kind).count()
    }

    /// Returns the number of an object.
    ///
    /// # Errors
    ///
    /// When the object is not in this store.
    pub fn number(&self, objects: &mut Objects, object: &Ref) -> Result<String, String> {
        objects.number(object, || self.layout.key(object))
    }

    /// Returns the question for a read.
    ///
    /// # Errors
    ///
    /// When it does not fit the objects and operations of this store.
    pub fn question(&self, objects: &mut Objects, read: &Read) -> Result<Question, String> {
        match read {
            Read::Exists(object) => self.exists(objects, object),
            Read::Record(key) => {
                let kind = key.kind.code().to_string();
                let check = Some(words!["r", &*kind, &*key.key]);
                Ok(Question { words: words!["r", &*kind, &*key.key], check })
            }
            Read::Records { kind, from, limit } => {
                let limit = i64::try_from(*limit).unwrap_or(-1).to_string();
                let words = words!["k", kind.code().to_string(), &**from, limit];
                Ok(Question { words, check: None })
            }
            Read::Witnesses { from, limit } => {
                let limit = i64::try_from(*limit).unwrap_or(-1).to_string();
                Ok(Question { words: words!["w", witness::id(*from), limit], check: None })
            }
            Read::Query { operation, arguments }
                if let Some(read) = self.layout.indexes.query(operation) =>
            {
                Ok(asked(self.layout.indexes.question(read, arguments, self.own(&read.object))?))
            }
            Read::Query { operation, arguments } => {
                let query = operation::query(self.operations, operation)?;
                Ok(asked(query.question(&self.layout.schema, arguments)?))
            }
            Read::Register(address) => self.field(objects, address, Shape::Register, read),
            Read::Counter(address) => self.field(objects, address, Shape::Counter, read),
            Read::Contains(address, _) | Read::SetSize(address) | Read::Elements(address) => {
                self.field(objects, address, Shape::Set, read)
            }
            Read::Entry(address, _)
            | Read::MapSize(address)
            | Read::Entries(address)
            | Read::MapSlice { address, .. } => self.field(objects, address, Shape::Map, read),
            Read::LogSize(address) | Read::LogLast(address, _) | Read::LogSlice { address, .. } => {
                self.field(objects, address, Shape::Log, read)
            }
        }
    }

    fn exists(&self, objects: &mut Objects, object: &Ref) -> Result<Question, String> {
        if let Some(mapped) = &self.layout.kind(object)?.mapped {
            return Ok(asked(mapped.exists(&self.layout.key(object)?)));
        }
        let number = self.number(objects, object)?;
        let check = Some(words!["h", &*number, "."]);
        Ok(Question { words: words!["x", &*number], check })
    }

    fn field(
        &self,
        objects: &mut Objects,
        address: &Address,
        shape: Shape,
        read: &Read,
    ) -> Result<Question, String> {
        let found = self.layout.field(address, &[shape])?;
        let unit = match read {
            Read::Contains(_, unit) | Read::Entry(_, unit) => {
                Some(codec::encode_key(&self.layout.schema, unit, found.unit())?)
            }
            _ => None,
        };
        let command = command(read);
        if let Some(mapped) = &found.kind.mapped {
            let key = self.layout.key(&address.object)?;
            return Ok(asked(mapped.question(&key, found.index, &command, unit)));
        }
        let number = self.number(objects, &address.object)?;
        let name = &*found.field.name;
        let check = match &unit {
            Some(unit) => words!["u", &*number, name, unit.clone()],
            None => words!["h", &*number, name],
        };
        let words = match (&unit, shape) {
            (Some(unit), Shape::Set) => words!["c", number, name, unit.clone()],
            (Some(unit), _) => words!["e", number, name, unit.clone()],
            (None, Shape::Register | Shape::Counter) => words!["h", number, name],
            (None, _) => [words!["s", number, name], command].concat(),
        };
        Ok(Question { words, check: Some(check) })
    }

    /// Returns the meaning of a reply.
    ///
    /// # Errors
    ///
    /// When the stored content is no such value, or the reply is not of the script's form.
    pub fn finding(&self, read: &Read, reply: Reply) -> Result<Finding, String> {
        let unversioned = |data| Finding { data, version: Version(0), mark: Word::new() };
        match read {
            Read::Exists(object) if self.layout.kind(object)?.mapped.is_none() => {
                let [since, deleted] = reply::parts(reply)?;
                let mark = reply::bytes(since)?;
                let version = version(mark.as_deref(), reply::number(deleted)?);
                let data = Data::Bool(mark.is_some());
                Ok(Finding { data, version, mark: mark.unwrap_or_default() })
            }
            Read::Records { .. } => {
                let found = reply::strings(reply)?;
                let pairs = found.chunks_exact(2);
                let pairs =
                    pairs.map(|pair| (pair[0].as_slice().into(), pair[1].as_slice().into()));
                Ok(unversioned(Data::Records(pairs.collect())))
            }
            Read::Witnesses { .. } => {
                let found = reply::strings(reply)?;
                let rows: Result<_, String> =
                    found.iter().map(|row| witness::decode(row)).collect();
                Ok(unversioned(Data::Witnesses(rows?)))
            }
            Read::Record(_) => {
                let [value, mark] = reply::parts(reply)?;
                let mark = reply::bytes(mark)?.unwrap_or_default();
                let data = Data::Record(reply::bytes(value)?.map(Into::into));
                Ok(Finding { data, version: version(Some(&mark), 0), mark })
            }
            _ => self.unit(read, reply),
        }
    }

    /// Decodes a field, a query, or an object of another application: `{ data, version, version of
    /// the absence }`, or `{ data, digest }`.
    fn unit(&self, read: &Read, reply: Reply) -> Result<Finding, String> {
        let [found, mark, absent] = reply::parts(reply)?;
        let is_digest = match (read, read.object()) {
            (Read::Query { .. }, _) => true,
            (_, Some(object)) => self.layout.kind(object)?.mapped.is_some(),
            _ => false,
        };
        let mark = reply::bytes(mark)?.unwrap_or_default();
        let version = if is_digest {
            digest_version(&mark)
        } else {
            let kept = (!mark.is_empty()).then_some(&*mark);
            version(kept, reply::number(absent)?)
        };
        let data = self.data(read, found)?;
        Ok(Finding { data, version, mark })
    }

    fn data(&self, read: &Read, found: Reply) -> Result<Data, String> {
        let schema = &self.layout.schema;
        let value = |bytes: &[u8], of: &Type| codec::decode(schema, bytes, of);
        let values = |found: Reply, of: &Type| -> Result<Vec<Value>, String> {
            reply::strings(found)?.iter().map(|bytes| value(bytes, of)).collect()
        };
        match read {
            Read::Exists(_) => Ok(Data::Bool(reply::number(found)? > 0)),
            Read::Contains(..) => Ok(Data::Bool(reply::number(found)? > 0)),
            Read::SetSize(_) | Read::MapSize(_) | Read::LogSize(_) => {
                Ok(Data::Count(reply::number(found)?))
            }
            Read::Register(address) => {
                let of = self.layout.field(address, &[Shape::Register])?;
                self.optional(found, of, Data::Register)
            }
            Read::Entry(address, _) => {
                let of = self.layout.field(address, &[Shape::Map])?;
                self.optional(found, of, Data::Register)
            }
            Read::Counter(_) => {
                let text = reply::text(found)?;
                let text = if text.is_empty() { "0" } else { &text };
                let sum =
                    text.parse().map_err(|_| format!("expected a counter, found {text:?}"))?;
                Ok(Data::Counter(sum))
            }
            Read::Elements(address) => {
                let of = self.layout.field(address, &[Shape::Set])?;
                let mut elements = values(found, of.inner())?;
                elements.sort();
                Ok(Data::Values(elements))
            }
            Read::Entries(address) | Read::MapSlice { address, .. } => {
                let of = self.layout.field(address, &[Shape::Map])?;
                let found = reply::strings(found)?;
                let entry =
                    |pair: &[Word]| Ok((value(&pair[0], of.unit())?, value(&pair[1], of.inner())?));
                let mut entries: Vec<(Value, Value)> =
                    found.chunks_exact(2).map(entry).collect::<Result<_, String>>()?;
                entries.sort();
                if let Read::MapSlice { range, .. } = read {
                    entries = range.slice(entries.iter().map(|(key, value)| (key, value)));
                }
                Ok(Data::Entries(entries))
            }
            Read::LogLast(_, 0) | Read::LogSlice { count: 0, .. } => Ok(Data::Values(Vec::new())),
            Read::LogLast(address, _) | Read::LogSlice { address, .. } => {
                let of = self.layout.field(address, &[Shape::Log])?;
                Ok(Data::Values(values(found, of.inner())?))
            }
            Read::Query { operation, .. } => self.queried(operation, found),
            Read::Record(_) | Read::Records { .. } | Read::Witnesses { .. } => {
                unreachable!("they have no versions of units")
            }
        }
    }

    /// Decodes the answer to a query; of an index it is the entries or their number, of which the transaction makes the
    /// result.
    fn queried(&self, operation: &Name, found: Reply) -> Result<Data, String> {
        let Some(index) = self.layout.indexes.query(operation) else {
            let query = operation::query(self.operations, operation)?;
            return Ok(Data::Result(query.result(&self.layout.schema, found)?));
        };
        if index.counts && self.own(&index.object) == 0 {
            return Ok(Data::Count(reply::number(found)?));
        }
        let entries = reply::strings(found)?.into_iter();
        Ok(Data::Values(entries.map(|entry| Value::Bytes(entry.into())).collect()))
    }

    fn optional(
        &self,
        found: Reply,
        of: Found<'_>,
        data: impl FnOnce(Option<Value>) -> Data,
    ) -> Result<Data, String> {
        let value = match reply::bytes(found)? {
            Some(bytes) => Some(codec::decode(&self.layout.schema, &bytes, of.inner())?),
            None => None,
        };
        Ok(data(value))
    }
}

/// Returns the server's command for a read of a field, without its key.
fn command(read: &Read) -> Vec<Word> {
    match read {
        Read::SetSize(_) => words!["SCARD"],
        Read::Elements(_) => words!["SMEMBERS"],
        Read::Contains(..) => words!["SISMEMBER"],
        Read::Entry(..) | Read::Register(_) | Read::Counter(_) => words!["HGET"],
        Read::MapSize(_) => words!["HLEN"],
        // A hash has no order, so a slice is cut out of all entries.
        Read::Entries(_) | Read::MapSlice { .. } => words!["HGETALL"],
        // For a read of no lines only the version counts.
        Read::LogSize(_) | Read::LogLast(_, 0) | Read::LogSlice { count: 0, .. } => words!["LLEN"],
        Read::LogLast(_, count) => words!["LRANGE", format!("-{}", index(*count)), "-1"],
        Read::LogSlice { from, count, .. } => {
            let last = index(*from).saturating_add(index(count - 1));
            words!["LRANGE", index(*from).to_string(), last.to_string()]
        }
        _ => Vec::new(),
    }
}

/// Returns a question about another application's keys, which is its own check.
fn asked(words: Vec<Word>) -> Question {
    Question { check: Some(words.clone()), words }
}

fn version(kept: Option<&[u8]>, absent: u64) -> Version {
    let kept = kept.and_then(|bytes| std::str::from_utf8(bytes).ok()?.parse().ok());
    Version(kept.unwrap_or(absent))
}

/// Returns a version of another application's data, which has none: a digest takes its place; 0 if
/// there is no data.
fn digest_version(digest: &[u8]) -> Version {
    let digits = digest.get(..15).and_then(|digits| std::str::from_utf8(digits).ok());
    let number = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
    Version(number.map_or(0, |number| number | 1))
}
