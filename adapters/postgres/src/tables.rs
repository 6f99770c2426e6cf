//! The SQL that creates Mingle's own tables.
//!
//! Single rows are found by hash indexes, which a serializable transaction locks by the bucket. A
//! btree would lock a page of neighbours, which in a small table is every row. Exclusion
//! constraints keep the indexed values unique, whatever their length.

use mingle_model::{FieldType, Schema};
use mingle_store::RecordKind;

use crate::codec::Codec;
use crate::layout::system;
use crate::name::{literal, mark, quote};

/// The format of the tables that this version creates and reads.
pub const FORMAT: &str = "1";

/// The version of the functions next to them.
pub const FUNCTIONS: u32 = 4;

/// Number of filler rows while an index is created. The table gets about four times as many buckets
/// as if it were empty, so a read of an absent row seldom conflicts with an insert of another row.
const BUCKETS_FOR: u32 = 10_000;

/// Returns the statements that create the runtime's own tables.
pub fn system_tables(schema: &str) -> Vec<String> {
    let table = |name: &str| system(schema, name);
    let mut sql = vec![
        format!("CREATE SCHEMA IF NOT EXISTS {}", quote(schema)),
        format!(
            "CREATE TABLE {} (object text, field text, type text NOT NULL, slot integer, \
             place text, PRIMARY KEY (object, field))",
            table("catalog")
        ),
        format!(
            "CREATE TABLE {} (id bytea NOT NULL, kind smallint NOT NULL, key bytea NOT NULL, \
             value bytea NOT NULL, version bigint NOT NULL)",
            table("records")
        ),
        format!("CREATE INDEX ON {} (kind, key)", table("records")),
        format!(
            "CREATE TABLE {} (object bytea NOT NULL, transaction bytea NOT NULL, \
             digest bytea NOT NULL, kind text, key bytea, key_text text, details json NOT NULL)",
            table("witnesses")
        ),
        format!("CREATE INDEX ON {} (transaction)", table("witnesses")),
        format!(
            "CREATE TABLE {} (transaction bytea PRIMARY KEY, is_committed boolean NOT NULL, \
             at timestamptz NOT NULL DEFAULT clock_timestamp())",
            table("outcomes")
        ),
        format!(
            "CREATE TABLE {} (origin bytea PRIMARY KEY, transaction bytea NOT NULL, \
             at timestamptz NOT NULL DEFAULT clock_timestamp())",
            table("outcomes_gone")
        ),
        format!("CREATE SEQUENCE {}", table("epoch")),
        format!("CREATE TABLE {} (witnessed bigint NOT NULL)", table("store")),
        format!("INSERT INTO {} SELECT nextval({})", table("store"), regclass(schema, "epoch")),
        format!("CREATE TABLE {} (object bytea NOT NULL, version bigint)", table("anchors")),
        format!("CREATE TABLE {} (id bytea PRIMARY KEY)", table("announced")),
        format!("CREATE SEQUENCE {}", table("announcements")),
        format!("CREATE TABLE {} (last bigint NOT NULL)", table("announcement")),
        format!(
            "INSERT INTO {} SELECT nextval({})",
            table("announcement"),
            regclass(schema, "announcements")
        ),
    ];
    sql.extend(point_indexes(schema));
    sql
}

/// Returns the statements that create hash indexes of the runtime's own rows, with more buckets
/// than an empty table would get.
fn point_indexes(schema: &str) -> Vec<String> {
    let table = |name: &str| system(schema, name);
    let point = "WITH (fillfactor = 10)";
    let filler = format!("SELECT sha256(int8send(n)) FROM generate_series(1, {BUCKETS_FOR}) AS n");
    let fill = |name: &str, columns: &str, rest: &str| {
        format!("INSERT INTO {} ({columns}) SELECT f.*{rest} FROM ({filler}) AS f", table(name))
    };
    vec![
        fill("records", "id, kind, key, value, version", ", 0, '', '', 0"),
        format!("ALTER TABLE {} ADD EXCLUDE USING hash (id WITH =) {point}", table("records")),
        format!("DELETE FROM {}", table("records")),
        format!(
            "INSERT INTO {} (object, transaction, digest, details) \
             SELECT f.d, '', f.d, '0' FROM ({filler}) AS f(d)",
            table("witnesses")
        ),
        format!(
            "ALTER TABLE {} ADD EXCLUDE USING hash (digest WITH =) {point}",
            table("witnesses")
        ),
        format!("CREATE INDEX ON {} USING hash (object) {point}", table("witnesses")),
        format!("DELETE FROM {}", table("witnesses")),
        format!("ALTER TABLE {} ADD EXCLUDE USING hash (object WITH =) {point}", table("anchors")),
    ]
}

fn regclass(schema: &str, name: &str) -> String {
    format!("{}::regclass", literal(&system(schema, name)))
}

/// Returns the statement that creates a `plpgsql` function without a result.
fn function(schema: &str, name: &str, parameters: &str, body: &str) -> String {
    let mark = mark(&[body]);
    format!(
        "CREATE OR REPLACE FUNCTION {}({parameters}) RETURNS void LANGUAGE plpgsql \
         AS {mark} BEGIN {body} END {mark}",
        system(schema, name)
    )
}

/// Returns functions that raise an error, so that a commit already sent does not take effect.
pub fn functions(schema: &str) -> Vec<String> {
    let version = format!(
        "CREATE OR REPLACE FUNCTION {}() RETURNS bigint LANGUAGE sql VOLATILE AS \
         $mingle$ SELECT pg_current_xact_id()::text::bigint $mingle$",
        system(schema, "version")
    );
    let refuse =
        format!("RAISE EXCEPTION '%', reason USING ERRCODE = '{}';", crate::error::REFUSED);
    let refuse = function(schema, "refuse", "reason text", &refuse);
    // For statements that return a number.
    let stop = format!(
        "CREATE OR REPLACE FUNCTION {}(reason text, code text) RETURNS bigint LANGUAGE plpgsql \
         AS $mingle$ BEGIN RAISE EXCEPTION '%', reason USING ERRCODE = code; END $mingle$",
        system(schema, "stop")
    );
    [vec![version, refuse, stop], record_functions(schema)].concat()
}

/// Returns the functions that check a commit's conditions on records.
fn record_functions(schema: &str) -> Vec<String> {
    let (records, absent) = (system(schema, "records"), system(schema, "absent"));
    let unannounced = system(schema, "unannounced");
    let announced_kinds = ANNOUNCED.map(|kind| kind.code().to_string()).join(", ");
    let guard = crate::error::GUARD;
    // An absent record is inserted and deleted again: a concurrent insert of it waits, and an
    // insert since the snapshot causes a serialization failure.
    let take = format!(
        "IF get_byte(wanted, 0) IN ({announced_kinds}) THEN \
           PERFORM {unannounced}(wanted); RETURN; END IF; \
         IF EXISTS (SELECT FROM {records} WHERE id = wanted) THEN \
           RAISE EXCEPTION 'a record is there' USING ERRCODE = '{guard}'; END IF; \
         INSERT INTO {records} (id, kind, key, value, version) VALUES (wanted, 0, '', '', 0) \
           ON CONFLICT DO NOTHING; \
         DELETE FROM {records} WHERE id = wanted;"
    );
    let hold = format!(
        "PERFORM FROM {records} WHERE id = wanted FOR SHARE; \
         IF NOT FOUND THEN PERFORM {absent}(wanted); END IF;"
    );
    let below = format!(
        "DECLARE floor bytea; BEGIN \
         SELECT value INTO floor FROM {records} WHERE id = wanted FOR SHARE; \
         IF NOT FOUND THEN PERFORM {absent}(wanted); \
         ELSIF length(floor) = 8 AND floor >= bound THEN \
           RAISE EXCEPTION 'a floor is too high' USING ERRCODE = '{guard}'; END IF; END;"
    );
    let [announce, is_unannounced] = announcements(schema);
    vec![
        function(schema, "announce", "wanted bytea", &announce),
        function(schema, "unannounced", "wanted bytea", &is_unannounced),
        function(schema, "absent", "wanted bytea", &take),
        function(schema, "hold", "wanted bytea", &hold),
        function(schema, "below", "wanted bytea, bound bytea", &below),
    ]
}

/// Kinds of records of which a process has one, and whose absence each of its commits over several
/// stores requires. They are seldom created, and a creation is announced. The commits share the row
/// that they check, and so do not conflict with each other.
pub const ANNOUNCED: [RecordKind; 2] = [RecordKind::Floor, RecordKind::Fence];

/// Returns the body that announces a record, and the body that fails if one is announced. No
/// process can announce between a check and the end of its transaction. A check whose snapshot is
/// older than an announcement fails: the sequence shows, independently of the snapshot, if there
/// may be one; only then is the row read.
fn announcements(schema: &str) -> [String; 2] {
    let (announced, row) = (system(schema, "announced"), system(schema, "announcement"));
    let (sequence, guard) = (system(schema, "announcements"), crate::error::GUARD);
    let next = regclass(schema, "announcements");
    let announce = format!(
        "IF NOT EXISTS (SELECT FROM {announced} WHERE id = wanted) THEN \
           LOCK TABLE {row} IN EXCLUSIVE MODE; \
           UPDATE {row} SET last = nextval({next}); \
           INSERT INTO {announced} (id) VALUES (wanted); END IF;"
    );
    let unannounced = format!(
        "LOCK TABLE {row} IN ROW SHARE MODE; \
         PERFORM FROM {row} WHERE last <> (SELECT last_value FROM {sequence}) FOR SHARE; \
         IF EXISTS (SELECT FROM {announced} WHERE id = wanted) THEN \
           RAISE EXCEPTION 'a record is there' USING ERRCODE = '{guard}'; END IF;"
    );
    [announce, unannounced]
}

/// Creates a table whose rows are found by this column, then adds its other columns. PostgreSQL
/// estimates the number of buckets of an empty table from the width of its rows, so the index comes
/// first.
fn point_table(table: &str, id: &str, others: &[&str]) -> Vec<String> {
    let add: Vec<String> = others.iter().map(|column| format!("ADD COLUMN {column}")).collect();
    vec![
        format!("CREATE TABLE {table} ({id} bytea NOT NULL)"),
        format!("ALTER TABLE {table} ADD EXCLUDE USING hash ({id} WITH =) WITH (fillfactor = 10)"),
        format!("ALTER TABLE {table} {}", add.join(", ")),
    ]
}

/// Returns the statements that create the table of a kind, without its fields.
pub fn kind_table(table: &str, key: &str, key_codec: &Codec) -> Vec<String> {
    let columns = [
        &*format!("{key} {}", key_codec.column_type()),
        "mingle_exists boolean NOT NULL",
        "mingle_changed bigint NOT NULL DEFAULT 0",
        "mingle_deleted bigint NOT NULL DEFAULT 0",
        "mingle_versions bigint[] NOT NULL DEFAULT '{0}'",
        "mingle_witnessed bigint",
    ];
    point_table(table, "mingle_id", &columns)
}

/// Returns the statements that create a field of a kind: a column, a table or both.
pub fn field(
    schema: &Schema,
    kind_table: &str,
    key: (&str, &Codec),
    field_type: &FieldType,
    column: &str,
    table: &str,
) -> Vec<String> {
    let codec = |value_type| Codec::of(schema, value_type).column_type();
    let add =
        |column_type: &str| format!("ALTER TABLE {kind_table} ADD COLUMN {column} {column_type}");
    let (key, key_type) = (key.0, key.1.column_type());
    let element_table = |columns: &[&str]| {
        let own = ["mingle_object bytea NOT NULL", "mingle_version bigint NOT NULL"];
        let key = format!("{key} {key_type}");
        let columns = [&own[..1], &[&*key], columns, &own[1..]].concat();
        let mut sql = point_table(table, "mingle_id", &columns);
        sql.push(format!("CREATE INDEX ON {table} (mingle_object)"));
        sql
    };
    match field_type {
        FieldType::Register(inner) => vec![add(codec(inner))],
        FieldType::Counter => vec![add("numeric(39)")],
        FieldType::Set(inner) => element_table(&[&format!("mingle_element {}", codec(inner))]),
        FieldType::Map(entry, value) => element_table(&[
            &format!("mingle_entry {}", codec(entry)),
            &format!("mingle_value {}", codec(value)),
        ]),
        FieldType::Log(inner) => vec![
            add("bigint"),
            format!(
                "CREATE TABLE {table} (mingle_object bytea NOT NULL, mingle_index bigint NOT NULL, \
                 {key} {key_type}, mingle_line {}, mingle_version bigint NOT NULL, \
                 PRIMARY KEY (mingle_object, mingle_index))",
                codec(inner)
            ),
        ],
    }
}
