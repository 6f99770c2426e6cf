//! Conversion of writes to the parameters of a server's `mingle_run`.

use std::collections::BTreeSet;

use mingle_model::{Ref, TransactionId, Value, WitnessRow};
use mingle_store::record::read_floor;
use mingle_store::{Address, RecordKey, RecordKind, Write};
use serde_json::json;

use crate::encoding::{self, Digest, object_digest, transaction, witness_digest};
use crate::layout::{Field, Layout, Shape};
use crate::limits::{ADD_MAX, COMMIT_BYTES_MAX, VALUE_BYTES_MAX, WRITES_MAX};
use crate::system::{WHOLE_STORE, details, record_id};
use crate::wire::Param;

/// The kinds of writes that `mingle_run` accepts, with its numbers.
#[derive(Clone, Copy)]
enum Kind {
    Touch = 1,
    Delete = 2,
    Set = 3,
    Remove = 4,
    Clear = 5,
    Add = 6,
    Append = 7,
    Record = 8,
    Discard = 9,
    Witness = 10,
    Forget = 11,
}

/// Writes in order, as columns.
#[derive(Default)]
pub struct Writes {
    kinds: Vec<u8>,
    objects: Vec<Vec<u8>>,
    fields: Vec<Vec<u8>>,
    elements: Vec<Vec<u8>>,
    contents: Vec<Vec<u8>>,
    /// Objects whose data is written.
    pub written: BTreeSet<Digest>,
    /// Transactions whose witness rows are written.
    pub rows: BTreeSet<TransactionId>,
    /// Floors that are written.
    pub floors: Vec<TransactionId>,
    /// Objects known to exist at this point.
    touched: BTreeSet<Digest>,
}

impl Writes {
    /// Converts the writes of a transaction.
    ///
    /// # Errors
    ///
    /// When one does not fit the declarations or bounds.
    pub fn new<'a>(
        layout: &Layout,
        all: impl ExactSizeIterator<Item = &'a Write>,
    ) -> Result<Self, String> {
        if all.len() > WRITES_MAX {
            return Err(format!("a commit carries at most {WRITES_MAX} writes"));
        }
        let mut writes = Self::default();
        for write in all {
            writes.add(layout, write)?;
        }
        let size = |list: &[Vec<u8>]| list.iter().map(Vec::len).sum::<usize>();
        let bytes = size(&writes.elements) + size(&writes.contents);
        if bytes > COMMIT_BYTES_MAX {
            return Err(format!("a commit carries at most {COMMIT_BYTES_MAX} bytes, not {bytes}"));
        }
        Ok(writes)
    }

    /// Returns the parameters in the order of `mingle_commit`.
    pub fn params(self) -> [Param; 5] {
        [
            Param::Bytes(self.kinds),
            Param::BytesList(self.objects),
            Param::BytesList(self.fields),
            Param::BytesList(self.elements),
            Param::BytesList(self.contents),
        ]
    }

    fn push(&mut self, kind: Kind, object: &[u8], field: &str, element: Vec<u8>, content: Vec<u8>) {
        self.kinds.push(kind as u8);
        self.objects.push(object.to_vec());
        self.fields.push(field.as_bytes().to_vec());
        self.elements.push(element);
        self.contents.push(content);
    }

    fn add(&mut self, layout: &Layout, write: &Write) -> Result<(), String> {
        match write {
            Write::Create(object) => {
                self.touch(layout, object)?;
            }
            Write::Delete(object) => {
                layout.kind_of(object)?;
                let digest = object_digest(object);
                self.push(Kind::Delete, &digest, "", Vec::new(), Vec::new());
                self.touched.remove(&digest);
                self.written.insert(digest);
            }
            Write::Witness(row) => self.witness(layout, row)?,
            Write::Forget(id) => {
                self.push(Kind::Forget, &[], "", transaction(*id), Vec::new());
            }
            Write::Record(key, value) => {
                self.note_floor(key, value);
                self.push(Kind::Record, &[], "", record_id(key)?, value.to_vec());
            }
            Write::Discard(key) => {
                self.push(Kind::Discard, &[], "", record_id(key)?, Vec::new());
            }
            Write::Command { operation, .. } => return Err(no_operation(operation)),
            field => self.field(layout, field)?,
        }
        Ok(())
    }

    fn touch(&mut self, layout: &Layout, object: &Ref) -> Result<Digest, String> {
        layout.kind_of(object)?;
        let digest = object_digest(object);
        self.written.insert(digest.clone());
        if self.touched.insert(digest.clone()) {
            self.push(Kind::Touch, &digest, "", Vec::new(), Vec::new());
        }
        Ok(digest)
    }

    /// Adds the change of a field.
    fn field(&mut self, layout: &Layout, write: &Write) -> Result<(), String> {
        use Shape::{Counter, Log, Map, Register, Set};
        let (address, shapes): (&Address, &[Shape]) = match write {
            Write::Assign(address, _) => (address, &[Register]),
            Write::Add(address, _) => (address, &[Counter]),
            Write::Insert(address, _) | Write::Remove(address, _) => (address, &[Set]),
            Write::Put(address, ..) | Write::Erase(address, _) => (address, &[Map]),
            Write::Append(address, _) => (address, &[Log]),
            Write::Clear(address) => (address, &[Set, Map, Log]),
            _ => return Err("a write that this adapter does not know".into()),
        };
        let (kind, field) = layout.field(address, shapes)?;
        let fits = |value: &Value, value_type| {
            let what = || format!("{}.{}", kind.name, field.name);
            if value.weight() > VALUE_BYTES_MAX {
                return Err(format!("{} takes at most {VALUE_BYTES_MAX} bytes", what()));
            }
            layout.check(value, value_type, what)
        };
        let key = |value: &Value| {
            fits(value, field.inner())?;
            Ok::<_, String>(encoded(value))
        };
        let content = |value: &Value, value_type| {
            fits(value, value_type)?;
            let mut bytes = Vec::new();
            encoding::encode_exactly(value, &mut bytes);
            Ok::<_, String>(bytes)
        };
        let (kind, element, content) = match write {
            Write::Assign(_, value) => (Kind::Set, Vec::new(), content(value, field.inner())?),
            Write::Insert(_, element) => (Kind::Set, key(element)?, Vec::new()),
            Write::Put(_, entry, value) => {
                (Kind::Set, key(entry)?, content(value, field.map_value())?)
            }
            Write::Remove(_, element) | Write::Erase(_, element) => {
                (Kind::Remove, key(element)?, Vec::new())
            }
            Write::Append(_, line) => (Kind::Append, Vec::new(), content(line, field.inner())?),
            Write::Add(_, amount) => (Kind::Add, Vec::new(), added(*amount)?),
            _ => (Kind::Clear, Vec::new(), Vec::new()),
        };
        let object = self.touch(layout, &address.object)?;
        self.push(kind, &object, &field.name, element, content);
        Ok(())
    }

    fn witness(&mut self, layout: &Layout, row: &WitnessRow) -> Result<(), String> {
        let object = match &row.object {
            Some(object) => {
                layout.kind_of(object)?;
                object_digest(object)
            }
            None => WHOLE_STORE.to_vec(),
        };
        let details = details(row);
        let digest = witness_digest(&object, row, &details.to_string());
        let content = json!({
            "transaction": hex(&transaction(row.id)),
            "kind": row.object.as_ref().map(|object| object.kind().to_string()),
            "key": row.object.as_ref().map(|object| hex(&encoded(object.key()))),
            "details": details,
        });
        self.rows.insert(row.id);
        self.push(Kind::Witness, &object, "", digest, content.to_string().into_bytes());
        Ok(())
    }

    fn note_floor(&mut self, key: &RecordKey, value: &[u8]) {
        if let (RecordKind::Floor, Some(origin)) = (key.kind, key.origin()) {
            self.floors.push(TransactionId { origin, sequence: read_floor(value) });
        }
    }
}

/// Returns the refusal of a declared operation.
pub fn no_operation(operation: &str) -> String {
    format!("{operation}: a store over several servers has no operations of its own")
}

fn added(amount: i128) -> Result<Vec<u8>, String> {
    if amount.unsigned_abs() > ADD_MAX.unsigned_abs() {
        return Err(format!("an add of {amount} is beyond 2^90"));
    }
    Ok(amount.to_string().into_bytes())
}

/// Returns the stored form of a key or element; equal values have the same form.
pub fn encoded(value: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    encoding::encode(value, &mut bytes);
    bytes
}

/// Decodes a value stored in a field.
///
/// # Errors
///
/// When it is not of the field's type.
pub fn decoded(
    layout: &Layout,
    field: &Field,
    value_type: &mingle_model::Type,
    mut bytes: &[u8],
) -> Result<Value, String> {
    let value = encoding::decode(&mut bytes)
        .ok_or_else(|| format!("a value in {} is corrupt", field.name))?;
    layout.check(&value, value_type, || field.name.to_string())?;
    Ok(value)
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
