//! Conversion of reads to statements. Reads of one sort share a statement, whatever their number;
//! all statements of a batch are sent together.

use std::collections::BTreeSet;

use mingle_model::{TransactionId, Value};
use mingle_store::{Address, Read, RecordKind};
use sha2::{Digest as _, Sha256};

use super::writes::{encoded, no_operation};
use crate::encoding::{Digest, object_digest, transaction};
use crate::layout::{Layout, Shape};
use crate::limits::READS_MAX;
use crate::session::Step;
use crate::system::{WHOLE_STORE, WITNESS_COLUMNS, record_id};
use crate::wire::Param;

/// The sorts of reads that share a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sort {
    /// Presence, registers, elements and entries: one unit each.
    Unit,
    /// Counters.
    Tally,
    /// Sets and maps as a whole.
    Whole,
    /// The number of elements or entries.
    Size,
    /// The number of lines of a log, and the version of its last change.
    Head,
    /// Records one by one.
    Record,
}

const SORTS: [Sort; 6] =
    [Sort::Unit, Sort::Tally, Sort::Whole, Sort::Size, Sort::Head, Sort::Record];

/// The place of a read's rows.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// The rows of this sort with this number, from 1.
    pub shared: Option<(Sort, usize)>,
    /// The rows of a statement of its own, by the index among those statements.
    pub own: Option<usize>,
}

/// The requests of one sort: objects, fields and items in parallel lists.
#[derive(Default)]
struct Asked {
    objects: Vec<Vec<u8>>,
    fields: Vec<Vec<u8>>,
    items: Vec<Vec<u8>>,
}

/// The statements that answer a batch.
pub struct Plan<'a> {
    pub(super) layout: &'a Layout,
    pub(super) reads: &'a [Read],
    pub(super) places: Vec<Place>,
    /// The requested sorts, in the order of their statements. The statements of single reads
    /// follow, then the statement for witness rows.
    pub(super) sorts: Vec<Sort>,
    /// The number of statements of single reads.
    pub(super) singles: usize,
    asked: [Asked; SORTS.len()],
    /// The statements, in order.
    pub steps: Vec<Step>,
}

impl<'a> Plan<'a> {
    /// Plans a batch.
    ///
    /// # Errors
    ///
    /// When a read does not fit the declarations.
    pub fn new(layout: &'a Layout, reads: &'a [Read]) -> Result<Self, String> {
        if reads.len() > READS_MAX {
            return Err(format!("a batch holds at most {READS_MAX} reads, not {}", reads.len()));
        }
        let mut plan = Self {
            layout,
            reads,
            places: Vec::with_capacity(reads.len()),
            sorts: Vec::new(),
            singles: 0,
            asked: Default::default(),
            steps: Vec::new(),
        };
        let mut objects: BTreeSet<Digest> = BTreeSet::new();
        let mut singles = Vec::new();
        for read in reads {
            let place = plan.ask(read, &mut singles)?;
            plan.places.push(place);
            objects.extend(read.object().map(object_digest));
        }
        for (sort, asked) in SORTS.into_iter().zip(std::mem::take(&mut plan.asked)) {
            if !asked.objects.is_empty() {
                plan.sorts.push(sort);
                plan.steps.push(shared(layout, sort, asked));
            }
        }
        plan.singles = singles.len();
        plan.steps.extend(singles);
        plan.steps.push(witnesses(layout, objects));
        Ok(plan)
    }

    /// Adds the objects of other reads to the statement for witness rows; those reads need nothing
    /// else from the server.
    pub fn add_witnesses_of(&mut self, reads: &[Read]) {
        let objects = reads.iter().filter_map(|read| read.object().map(object_digest)).collect();
        self.steps.pop();
        self.steps.push(witnesses(self.layout, objects));
    }

    fn share(&mut self, sort: Sort, object: Digest, field: &str, item: Vec<u8>) -> Place {
        let asked = &mut self.asked[sort as usize];
        asked.objects.push(object);
        asked.fields.push(field.as_bytes().to_vec());
        asked.items.push(item);
        Place { shared: Some((sort, asked.objects.len())), own: None }
    }

    fn ask(&mut self, read: &Read, singles: &mut Vec<Step>) -> Result<Place, String> {
        let mut single = |step, shared| {
            singles.push(step);
            Place { shared, own: Some(singles.len() - 1) }
        };
        Ok(match read {
            Read::Exists(object) => {
                self.layout.kind_of(object)?;
                self.share(Sort::Unit, object_digest(object), "", Vec::new())
            }
            Read::Register(address) => self.of_field(Sort::Unit, address, Shape::Register)?,
            Read::Counter(address) => self.of_field(Sort::Tally, address, Shape::Counter)?,
            Read::Contains(address, element) => self.element(address, Shape::Set, element)?,
            Read::Entry(address, entry) => self.element(address, Shape::Map, entry)?,
            Read::Elements(address) => self.of_field(Sort::Whole, address, Shape::Set)?,
            Read::Entries(address) | Read::MapSlice { address, .. } => {
                self.of_field(Sort::Whole, address, Shape::Map)?
            }
            Read::SetSize(address) => self.of_field(Sort::Size, address, Shape::Set)?,
            Read::MapSize(address) => self.of_field(Sort::Size, address, Shape::Map)?,
            Read::LogSize(address) => self.of_field(Sort::Head, address, Shape::Log)?,
            Read::LogLast(address, count) => {
                let head = self.of_field(Sort::Head, address, Shape::Log)?;
                single(lines(self.layout, address, None, *count)?, head.shared)
            }
            Read::LogSlice { address, from, count } => {
                let head = self.of_field(Sort::Head, address, Shape::Log)?;
                single(lines(self.layout, address, Some(*from), *count)?, head.shared)
            }
            Read::Record(key) => self.share(Sort::Record, record_id(key)?, "", Vec::new()),
            Read::Records { kind, from, limit } => {
                single(records(self.layout, *kind, from, *limit), None)
            }
            Read::Witnesses { from, limit } => single(sweep(self.layout, *from, *limit), None),
            Read::Query { operation, .. } => return Err(no_operation(operation)),
        })
    }

    fn of_field(&mut self, sort: Sort, address: &Address, shape: Shape) -> Result<Place, String> {
        let (_, field) = self.layout.field(address, &[shape])?;
        Ok(self.share(sort, object_digest(&address.object), &field.name, Vec::new()))
    }

    fn element(
        &mut self,
        address: &Address,
        shape: Shape,
        element: &Value,
    ) -> Result<Place, String> {
        let (kind, field) = self.layout.field(address, &[shape])?;
        let what = || format!("{}.{}", kind.name, field.name);
        self.layout.check(element, field.inner(), what)?;
        let item = Sha256::digest(encoded(element)).to_vec();
        Ok(self.share(Sort::Unit, object_digest(&address.object), &field.name, item))
    }
}

/// Returns one statement for all reads of a sort. Its rows begin with the number of the read.
fn shared(layout: &Layout, sort: Sort, asked: Asked) -> Step {
    let table = |name| layout.system(name);
    let (units, tallies, heads) = (table("units"), table("tallies"), table("heads"));
    // The version at which anything was last removed from the field, or the object was deleted.
    let removed = format!(
        "(SELECT max(h.version) FROM {heads} AS h WHERE h.object = q.o AND h.field IN ('', q.f))"
    );
    let at = "object = q.o AND field = q.f";
    let newest = "ORDER BY stamp DESC, origin DESC LIMIT 1";
    let (selected, joined) = match sort {
        Sort::Unit => (
            format!("u.content, coalesce(u.version, {removed}, 0)"),
            format!(
                "LEFT JOIN LATERAL (SELECT content, max(version) OVER () AS version FROM {units} \
                 WHERE {at} AND item = q.i {newest}) AS u ON true"
            ),
        ),
        Sort::Tally => (
            "t.sum::text, coalesce(t.version, 0)".to_owned(),
            format!(
                "CROSS JOIN LATERAL (SELECT coalesce(sum(added - removed), 0) AS sum, \
                 max(version) AS version FROM {tallies} WHERE {at}) AS t"
            ),
        ),
        Sort::Whole => (
            format!("u.element, u.content, greatest(u.version, {removed}, 0)"),
            format!(
                "LEFT JOIN LATERAL (SELECT DISTINCT ON (item) element, content, version \
                 FROM {units} WHERE {at} ORDER BY item, stamp DESC, origin DESC) AS u ON true"
            ),
        ),
        Sort::Size => (
            format!("u.count, greatest(u.version, {removed}, 0)"),
            format!(
                "CROSS JOIN LATERAL (SELECT count(DISTINCT item) AS count, \
                 max(version) AS version FROM {units} WHERE {at}) AS u"
            ),
        ),
        Sort::Head => (
            format!("coalesce(l.count, 0), coalesce({removed}, 0)"),
            format!("LEFT JOIN {heads} AS l ON l.object = q.o AND l.field = q.f"),
        ),
        Sort::Record => (
            "r.content, coalesce(r.version, 0)".to_owned(),
            format!(
                "LEFT JOIN LATERAL (SELECT content, max(version) OVER () AS version FROM {} \
                 WHERE id = q.o {newest}) AS r ON true",
                table("records")
            ),
        ),
    };
    let sql = format!(
        "SELECT q.n, {selected} FROM (SELECT o, convert_from(f, 'UTF8') AS f, i, n FROM \
         unnest($1::bytea[], $2::bytea[], $3::bytea[]) WITH ORDINALITY AS x(o, f, i, n)) AS q \
         {joined}"
    );
    let params = [asked.objects, asked.fields, asked.items].map(Param::BytesList);
    Step::new(sql, params.into())
}

fn bound(limit: usize) -> Param {
    Param::Int(i64::try_from(limit).unwrap_or(i64::MAX))
}

fn whole(number: u64) -> Param {
    Param::Int(i64::try_from(number).unwrap_or(i64::MAX))
}

/// Reads lines of a log, oldest first: from an index on, or the last ones.
fn lines(
    layout: &Layout,
    address: &Address,
    from: Option<u64>,
    count: u64,
) -> Result<Step, String> {
    let (_, field) = layout.field(address, &[Shape::Log])?;
    let table = layout.system("lines");
    let object = Param::Bytes(object_digest(&address.object));
    let name = Param::Text(field.name.to_string());
    let at = "object = $1::bytea AND field = $2::text";
    let order = "object, field, stamp, origin, number, index";
    Ok(match from {
        Some(from) => Step::new(
            format!(
                "SELECT content FROM {table} WHERE {at} ORDER BY {order} \
                 OFFSET $3::bigint LIMIT $4::bigint"
            ),
            vec![object, name, whole(from), whole(count)],
        ),
        None => {
            let back = order.replace(',', " DESC,") + " DESC";
            Step::new(
                format!(
                    "SELECT content FROM (SELECT * FROM {table} WHERE {at} ORDER BY {back} \
                     LIMIT $3::bigint) AS l ORDER BY {order}"
                ),
                vec![object, name, whole(count)],
            )
        }
    })
}

/// Reads records of a kind from a key on, in order: id, value.
fn records(layout: &Layout, kind: RecordKind, from: &[u8], limit: usize) -> Step {
    let sql = format!(
        "SELECT DISTINCT ON (id) id, content FROM {} WHERE id >= $1::bytea AND id < $2::bytea \
         ORDER BY id, stamp DESC, origin DESC LIMIT $3::bigint",
        layout.system("records")
    );
    let first = [&[kind.code()], from].concat();
    let after = vec![kind.code() + 1];
    Step::new(sql, vec![Param::Bytes(first), Param::Bytes(after), bound(limit)])
}

/// Reads witness rows of transactions from one on, in order, of as many transactions as `limit`
/// rows need.
fn sweep(layout: &Layout, from: TransactionId, limit: usize) -> Step {
    let table = layout.system("witnesses");
    let sql = format!(
        "SELECT DISTINCT ON (transaction, object, digest) {WITNESS_COLUMNS} FROM {table} \
         WHERE transaction >= $1::bytea AND transaction <= \
         (SELECT f.transaction FROM (SELECT DISTINCT ON (transaction, digest) transaction \
          FROM {table} WHERE transaction >= $1::bytea ORDER BY transaction, digest \
          LIMIT $2::bigint) AS f ORDER BY f.transaction DESC LIMIT 1) \
         ORDER BY transaction, object, digest"
    );
    Step::new(sql, vec![Param::Bytes(transaction(from)), bound(limit)])
}

/// Reads the witness rows of objects, and of the whole store.
fn witnesses(layout: &Layout, mut objects: BTreeSet<Digest>) -> Step {
    objects.insert(WHOLE_STORE.to_vec());
    let sql = format!(
        "SELECT DISTINCT ON (digest) {WITNESS_COLUMNS} FROM {} WHERE object = ANY($1::bytea[])",
        layout.system("witnesses")
    );
    Step::new(sql, vec![Param::BytesList(objects.into_iter().collect())])
}
