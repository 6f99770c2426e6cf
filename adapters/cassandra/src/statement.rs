//! The tables, and the statements over them.
//!
//! `data` has all of an object in one partition, so that the changes of a commit to one object
//! become visible together; `rows` lists witness rows by their transaction, and `records` holds the
//! records of the runtime, both in blocks (see [`crate::block`]); `chunks` holds values too long
//! for a cell; `outcomes` holds the outcomes of ids; `catalog` holds the declarations of the
//! program. Stores that share a keyspace have different prefixes in their keys. No statement reads
//! more than one partition.

/// The seconds for which tombstones of the runtime's own rows are kept: three hours, as long as
/// nodes keep hints for an unreachable one. A process that sees such a row again finds the floor
/// above it.
const RECORDS_GRACE_S: u32 = 10_800;

/// Returns the tables of a keyspace, by name.
pub fn tables(keyspace: &str) -> Vec<(&'static str, String)> {
    let grace = format!("gc_grace_seconds = {RECORDS_GRACE_S}");
    let table = |name: &'static str, columns: &str, with: &str| {
        (name, format!("CREATE TABLE IF NOT EXISTS {keyspace}.{name} ({columns}) {with}"))
    };
    vec![
        table(
            "data",
            "object blob, field text, element blob, dot blob, value blob, \
             PRIMARY KEY (object, field, element, dot)",
            "",
        ),
        table(
            "rows",
            "store text, block blob, id blob, object blob, digest blob, value blob, \
             PRIMARY KEY ((store, block), id, object, digest)",
            &format!("WITH {grace}"),
        ),
        table(
            "records",
            "kind text, head blob, tail blob, value blob, redo blob, settled boolean, \
             PRIMARY KEY ((kind, head), tail)",
            &format!("WITH {grace}"),
        ),
        table("chunks", "id blob, part int, value blob, PRIMARY KEY ((id, part))", ""),
        table(
            "outcomes",
            "id blob PRIMARY KEY, state text, redo blob, settled boolean",
            &format!("WITH {grace}"),
        ),
        table("catalog", "name text PRIMARY KEY, value text", ""),
    ]
}

/// A statement on a table of the store's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statement {
    /// Fields of an object, whole.
    Fields,
    /// All rows of an object.
    Object,
    /// Elements of a field, by name.
    Elements,
    /// A field without its values.
    Names,
    /// The last rows of a field.
    Last,
    /// The first rows of a field.
    First,
    /// One row of an object, to see if it has any.
    Any,
    /// One record.
    Record,
    /// Records of a block, by the rest of their keys.
    Records,
    /// All records of a block.
    Block,
    /// The witness rows of transactions of a block.
    Rows,
    /// All witness rows of a block.
    RowsBlock,
    /// A chunk.
    Chunk,
    /// The entry of a store in the catalog.
    Catalog,
    /// Mutations, as in [`crate::change::Change`].
    Put,
    Drop,
    PutRecord,
    Announce,
    Settle,
    DropRecord,
    PutRow,
    DropRow,
    PutChunk,
    DropChunk,
    Settled,
    /// Compare-and-set: a record, if it is absent; further parts; an id; the catalog.
    TakeRecord,
    TakeParts,
    TakeId,
    BarId,
    NewCatalog,
    NextCatalog,
}

impl Statement {
    /// All statements, in the order of their numbers.
    pub const ALL: [Self; 31] = [
        Self::Fields,
        Self::Object,
        Self::Elements,
        Self::Names,
        Self::Last,
        Self::First,
        Self::Any,
        Self::Record,
        Self::Records,
        Self::Block,
        Self::Rows,
        Self::RowsBlock,
        Self::Chunk,
        Self::Catalog,
        Self::Put,
        Self::Drop,
        Self::PutRecord,
        Self::Announce,
        Self::Settle,
        Self::DropRecord,
        Self::PutRow,
        Self::DropRow,
        Self::PutChunk,
        Self::DropChunk,
        Self::Settled,
        Self::TakeRecord,
        Self::TakeParts,
        Self::TakeId,
        Self::BarId,
        Self::NewCatalog,
        Self::NextCatalog,
    ];

    /// True if it compares and sets: repeating it does not give the same result.
    pub fn is_conditional(self) -> bool {
        self as usize >= Self::TakeRecord as usize
    }

    /// True if it reads.
    pub fn is_read(self) -> bool {
        (self as usize) < Self::Put as usize
    }

    /// Returns its text.
    pub fn text(self, keyspace: &str) -> String {
        match self {
            _ if self.is_read() => self.query(keyspace),
            _ if self.is_conditional() => self.compare_and_set(keyspace),
            _ => self.mutation(keyspace),
        }
    }

    fn query(self, ks: &str) -> String {
        const DATA: &str = "SELECT field, element, dot, value, WRITETIME(value) FROM ";
        let data = format!("{DATA}{ks}.data WHERE object = ?");
        let records = format!(
            "SELECT tail, value, WRITETIME(value), redo, settled, WRITETIME(settled) \
             FROM {ks}.records WHERE kind = ? AND head = ?"
        );
        match self {
            Self::Fields => format!("{data} AND field IN ?"),
            Self::Object => data,
            Self::Elements => format!("{data} AND field = ? AND element IN ?"),
            Self::Names => format!(
                "SELECT field, element, dot, WRITETIME(value) FROM {ks}.data \
                 WHERE object = ? AND field = ?"
            ),
            Self::Last => {
                format!("{data} AND field = ? ORDER BY field DESC, element DESC, dot DESC LIMIT ?")
            }
            Self::First => format!("{data} AND field = ? LIMIT ?"),
            Self::Any => format!("{data} AND field > '!' LIMIT 1"),
            Self::Record => format!("{records} AND tail = ?"),
            Self::Records => format!("{records} AND tail IN ?"),
            Self::Block => records,
            Self::Rows => format!(
                "SELECT id, object, digest, WRITETIME(value) FROM {ks}.rows \
                 WHERE store = ? AND block = ? AND id IN ?"
            ),
            Self::RowsBlock => {
                format!("SELECT value FROM {ks}.rows WHERE store = ? AND block = ?")
            }
            Self::Chunk => format!("SELECT value FROM {ks}.chunks WHERE id = ? AND part = ?"),
            Self::Catalog => format!("SELECT value FROM {ks}.catalog WHERE name = ?"),
            _ => unreachable!("it is no query"),
        }
    }

    fn mutation(self, ks: &str) -> String {
        match self {
            Self::Put => format!(
                "INSERT INTO {ks}.data (object, field, element, dot, value) \
                 VALUES (?, ?, ?, ?, ?) USING TIMESTAMP ?"
            ),
            Self::Drop => format!(
                "DELETE FROM {ks}.data USING TIMESTAMP ? \
                 WHERE object = ? AND field = ? AND element = ? AND dot = ?"
            ),
            Self::PutRecord => format!(
                "INSERT INTO {ks}.records (kind, head, tail, value) VALUES (?, ?, ?, ?) \
                 USING TIMESTAMP ?"
            ),
            Self::Announce => format!(
                "INSERT INTO {ks}.records (kind, head, tail, value, redo) VALUES (?, ?, ?, ?, ?) \
                 USING TIMESTAMP ?"
            ),
            Self::Settle => {
                format!("UPDATE {ks}.records USING TIMESTAMP ? SET settled = true {RECORD}")
            }
            Self::DropRecord => format!("DELETE FROM {ks}.records USING TIMESTAMP ? {RECORD}"),
            Self::PutRow => format!(
                "INSERT INTO {ks}.rows (store, block, id, object, digest, value) \
                 VALUES (?, ?, ?, ?, ?, ?) USING TIMESTAMP ?"
            ),
            Self::DropRow => format!(
                "DELETE FROM {ks}.rows USING TIMESTAMP ? \
                 WHERE store = ? AND block = ? AND id = ? AND object = ? AND digest = ?"
            ),
            Self::PutChunk => format!(
                "INSERT INTO {ks}.chunks (id, part, value) VALUES (?, ?, ?) USING TIMESTAMP ?"
            ),
            Self::DropChunk => {
                format!("DELETE FROM {ks}.chunks USING TIMESTAMP ? WHERE id = ? AND part = ?")
            }
            Self::Settled => {
                format!("UPDATE {ks}.outcomes USING TIMESTAMP ? SET settled = true WHERE id = ?")
            }
            _ => unreachable!("it is no mutation"),
        }
    }

    fn compare_and_set(self, ks: &str) -> String {
        match self {
            Self::TakeRecord => {
                format!("UPDATE {ks}.records SET value = ?, redo = ? {RECORD} IF value = null")
            }
            Self::TakeParts => format!("UPDATE {ks}.records SET value = ? {RECORD}"),
            Self::TakeId => format!(
                "INSERT INTO {ks}.outcomes (id, state, redo) VALUES (?, 'taken', ?) \
                 IF NOT EXISTS USING TTL ?"
            ),
            Self::BarId => format!(
                "INSERT INTO {ks}.outcomes (id, state) VALUES (?, 'barred') \
                 IF NOT EXISTS USING TTL ?"
            ),
            Self::NewCatalog => {
                format!("INSERT INTO {ks}.catalog (name, value) VALUES (?, ?) IF NOT EXISTS")
            }
            Self::NextCatalog => {
                format!("UPDATE {ks}.catalog SET value = ? WHERE name = ? IF value = ?")
            }
            _ => unreachable!("it sets without comparing"),
        }
    }
}

/// The condition that selects one record.
const RECORD: &str = "WHERE kind = ? AND head = ? AND tail = ?";
