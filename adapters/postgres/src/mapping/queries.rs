//! Queries on the description of a table.

/// Selects the columns of a table, as [`Described`](super::column::Described) has them. A domain may be over another
/// one: `d` is about all of them, and `b` is the type below. The items of an array may be of a domain, too: `i` is
/// about these.
pub(super) const COLUMNS: &str = "\
SELECT a.attname::text, \
CASE WHEN i.base <> b.typelem THEN format_type(i.base, NULL) || '[]' ELSE format_type(b.oid, NULL) END, \
format_type(a.atttypid, a.atttypmod), format_type(a.atttypid, NULL), \
b.typtype = 'e', a.attnotnull OR d.is_not_null, \
a.atthasdef OR a.attidentity <> '' OR d.has_default, \
a.attgenerated <> '' OR a.attidentity = 'a', \
CASE WHEN 1700 IN (b.oid, i.base) AND greatest(a.atttypmod, d.modifier, i.modifier) >= 4 \
THEN greatest(a.atttypmod, d.modifier, i.modifier)::bigint - 4 END, \
CASE WHEN coalesce(i.base, b.oid) IN (1114, 1184) \
THEN nullif(greatest(a.atttypmod, d.modifier, i.modifier), -1) END, \
coalesce((SELECT e.typtype = 'e' FROM pg_type AS e WHERE e.oid = i.base), false), \
coalesce((SELECT l.collisdeterministic FROM pg_collation AS l WHERE l.oid = a.attcollation), true), \
coalesce((SELECT e.typname::text FROM pg_type AS e WHERE e.oid = t.typelem AND t.typcategory = 'A'), t.typname::text), \
coalesce((SELECT array_agg(e.enumlabel::text ORDER BY e.enumsortorder) FROM pg_enum AS e \
WHERE e.enumtypid IN (b.oid, i.base)), '{}'), \
coalesce((SELECT array_agg(pg_get_constraintdef(k.oid) ORDER BY k.conname) FROM pg_constraint AS k \
WHERE k.contypid = ANY (d.types) AND k.contype = 'c'), '{}'), \
coalesce((SELECT array_agg(pg_get_constraintdef(k.oid) ORDER BY k.conname) FROM pg_constraint AS k \
WHERE k.conrelid = a.attrelid AND k.contype = 'c' AND k.conkey = ARRAY[a.attnum]), '{}') \
FROM pg_attribute AS a JOIN pg_type AS t ON t.oid = a.atttypid \
CROSS JOIN LATERAL (WITH RECURSIVE up AS (SELECT t.oid, t.typbasetype, t.typtypmod, t.typnotnull, t.typdefault \
UNION ALL SELECT n.oid, n.typbasetype, n.typtypmod, n.typnotnull, n.typdefault \
FROM up JOIN pg_type AS n ON n.oid = up.typbasetype) \
SELECT array_agg(up.oid) AS types, max(up.typtypmod) AS modifier, bool_or(up.typnotnull) AS is_not_null, \
bool_or(up.typdefault IS NOT NULL) AS has_default, min(up.oid) FILTER (WHERE up.typbasetype = 0) AS base FROM up) AS d \
JOIN pg_type AS b ON b.oid = d.base \
CROSS JOIN LATERAL (WITH RECURSIVE up AS (SELECT e.oid, e.typbasetype, e.typtypmod FROM pg_type AS e \
WHERE e.oid = b.typelem AND b.typcategory = 'A' \
UNION ALL SELECT n.oid, n.typbasetype, n.typtypmod FROM up JOIN pg_type AS n ON n.oid = up.typbasetype) \
SELECT max(up.typtypmod) AS modifier, min(up.oid) FILTER (WHERE up.typbasetype = 0) AS base FROM up) AS i \
WHERE a.attrelid = $1::text::regclass AND a.attnum > 0 AND NOT a.attisdropped \
ORDER BY a.attnum";

/// Selects the unique indexes of a table that hold for all its rows at once.
pub(super) const UNIQUE: &str = "\
SELECT n.nspname::text, c.relname::text, array_agg(a.attname::text ORDER BY a.attname::text) \
FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid \
JOIN pg_namespace AS n ON n.oid = c.relnamespace \
CROSS JOIN LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY AS k(attnum, place) \
JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = k.attnum \
WHERE i.indrelid = $1::text::regclass AND i.indisunique AND i.indisvalid AND i.indimmediate \
AND i.indpred IS NULL AND i.indexprs IS NULL AND k.place <= i.indnkeyatts \
GROUP BY n.nspname, c.relname";

/// Selects each constraint, with whether it may refuse written rows and whether it may refuse their
/// deletion. The bits of a trigger's type are 4 for `INSERT`, 8 for `DELETE` and 16 for `UPDATE`.
pub(super) const CONSTRAINTS: &str = "\
SELECT CASE c.contype WHEN 'c' THEN 'CHECK' WHEN 'f' THEN 'FOREIGN KEY' WHEN 'u' THEN 'UNIQUE' \
WHEN 'p' THEN 'PRIMARY KEY' WHEN 'x' THEN 'EXCLUDE' ELSE 'constraint' END || ' ' || c.conname || \
' of ' || c.conrelid::regclass::text || ': ' || pg_get_constraintdef(c.oid), \
c.conrelid = $1::text::regclass, c.confrelid = $1::text::regclass AND c.contype = 'f' \
FROM pg_constraint AS c WHERE (c.conrelid = $1::text::regclass AND c.contype IN ('c','f','u','x')) \
OR (c.confrelid = $1::text::regclass AND c.contype = 'f') \
UNION ALL SELECT 'trigger ' || g.tgname || ' of ' || g.tgrelid::regclass::text, \
g.tgtype & 20 <> 0, g.tgtype & 8 <> 0 \
FROM pg_trigger AS g WHERE g.tgrelid = $1::text::regclass AND NOT g.tgisinternal \
UNION ALL SELECT 'row security of ' || r.oid::regclass::text, true, true FROM pg_class AS r \
WHERE r.oid = $1::text::regclass AND r.relrowsecurity ORDER BY 1";

/// Selects the triggers that run before rows are changed (bits 1 and 2 of their type), the
/// inheriting tables, and whether there are policies.
pub(super) const REST: &str = "\
SELECT coalesce((SELECT array_agg(g.tgname::text ORDER BY g.tgname) FROM pg_trigger AS g \
WHERE g.tgrelid = c.oid AND NOT g.tgisinternal AND g.tgtype & 3 = 3), '{}'), \
coalesce((SELECT array_agg(i.inhrelid::regclass::text ORDER BY i.inhrelid::regclass::text) FROM pg_inherits AS i \
WHERE i.inhparent = c.oid AND c.relkind = 'r'), '{}'), c.relrowsecurity \
FROM pg_class AS c WHERE c.oid = $1::text::regclass";

/// Selects the foreign keys of a table: schema and name of the other table, and the columns.
pub(super) const REFERENCES: &str = "\
SELECT n.nspname::text, t.relname::text, \
(SELECT array_agg(a.attname::text) FROM pg_attribute AS a WHERE a.attrelid = f.conrelid AND a.attnum = ANY (f.conkey)) \
FROM pg_constraint AS f JOIN pg_class AS t ON t.oid = f.confrelid JOIN pg_namespace AS n ON n.oid = t.relnamespace \
WHERE f.conrelid = $1::text::regclass AND f.contype = 'f' ORDER BY f.conname";

/// Selects the tables whose rows the database changes when rows of a table are deleted, also by way of
/// others: schema and name; the action of the foreign key; and its description.
pub(super) const CASCADES: &str = "\
WITH RECURSIVE reached AS (\
SELECT f.oid, f.conrelid, f.confdeltype FROM pg_constraint AS f WHERE f.confrelid = $1::text::regclass \
AND f.contype = 'f' AND f.confdeltype IN ('c', 'n', 'd') AND f.conparentid = 0 \
UNION SELECT f.oid, f.conrelid, f.confdeltype FROM reached AS r JOIN pg_constraint AS f ON f.confrelid = r.conrelid \
WHERE r.confdeltype = 'c' AND f.contype = 'f' AND f.confdeltype IN ('c', 'n', 'd') AND f.conparentid = 0) \
SELECT n.nspname::text, t.relname::text, r.confdeltype::text, 'FOREIGN KEY ' || f.conname || ' of ' || t.oid::regclass::text \
FROM reached AS r JOIN pg_constraint AS f ON f.oid = r.oid JOIN pg_class AS t ON t.oid = r.conrelid \
JOIN pg_namespace AS n ON n.oid = t.relnamespace ORDER BY t.oid::regclass::text, f.conname";

/// Selects the tables whose rows the database changes when columns of a table to which foreign keys refer are written,
/// also by way of others: schema and name; the action of the foreign key; its description; and those columns.
pub(super) const UPDATES: &str = "\
WITH RECURSIVE reached AS (\
SELECT f.oid, f.conrelid, f.conkey, f.confupdtype, a.attname::text AS written FROM pg_constraint AS f \
JOIN pg_attribute AS a ON a.attrelid = f.confrelid AND a.attnum = ANY (f.confkey) \
WHERE f.confrelid = $1::text::regclass AND f.contype = 'f' AND f.confupdtype IN ('c', 'n', 'd') AND f.conparentid = 0 \
UNION SELECT f.oid, f.conrelid, f.conkey, f.confupdtype, r.written FROM reached AS r \
JOIN pg_constraint AS f ON f.confrelid = r.conrelid AND f.confkey && r.conkey \
WHERE f.contype = 'f' AND f.confupdtype IN ('c', 'n', 'd') AND f.conparentid = 0) \
SELECT n.nspname::text, t.relname::text, r.confupdtype::text, \
'FOREIGN KEY ' || f.conname || ' of ' || t.oid::regclass::text, array_agg(r.written ORDER BY r.written) \
FROM reached AS r JOIN pg_constraint AS f ON f.oid = r.oid JOIN pg_class AS t ON t.oid = r.conrelid \
JOIN pg_namespace AS n ON n.oid = t.relnamespace \
GROUP BY n.nspname, t.relname, t.oid, f.conname, r.confupdtype ORDER BY t.oid::regclass::text, f.conname";
