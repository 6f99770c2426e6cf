CREATE TABLE {schema}.mingle_catalog (
  object text, field text, type text NOT NULL, slot integer, place text,
  PRIMARY KEY (object, field)
)

CREATE TABLE {schema}.mingle_state (
  own integer NOT NULL, vector bigint[] NOT NULL, clock bigint NOT NULL, count bigint NOT NULL,
  is_held boolean NOT NULL, is_old boolean NOT NULL, acknowledged bigint[] NOT NULL,
  acknowledgements bigint NOT NULL
) WITH (fillfactor = 10)

CREATE TABLE {schema}.mingle_servers (server integer PRIMARY KEY, name text NOT NULL)

CREATE TABLE {schema}.mingle_links (name text PRIMARY KEY, digest text NOT NULL)

CREATE TABLE {schema}.mingle_log (
  origin integer NOT NULL, number bigint NOT NULL, stamp bigint NOT NULL, context bigint[] NOT NULL,
  kinds bytea NOT NULL, objects bytea[] NOT NULL, fields bytea[] NOT NULL,
  elements bytea[] NOT NULL, contents bytea[] NOT NULL, totals jsonb NOT NULL,
  PRIMARY KEY (origin, number)
)

CREATE TABLE {schema}.mingle_inbox (LIKE {schema}.mingle_log INCLUDING ALL)

CREATE TABLE {schema}.mingle_seen (
  server integer NOT NULL, number bigint NOT NULL, vector bigint[] NOT NULL,
  PRIMARY KEY (server, number)
)

CREATE TABLE {schema}.mingle_known (
  server integer PRIMARY KEY, number bigint NOT NULL, vector bigint[] NOT NULL
) WITH (fillfactor = 50)

CREATE TABLE {schema}.mingle_units (
  object bytea NOT NULL, field text COLLATE "C" NOT NULL, item bytea NOT NULL,
  origin integer NOT NULL, number bigint NOT NULL, stamp bigint NOT NULL,
  element bytea NOT NULL, content bytea NOT NULL, version bigint NOT NULL,
  PRIMARY KEY (object, field, item, origin, number)
)

CREATE TABLE {schema}.mingle_lines (
  object bytea NOT NULL, field text COLLATE "C" NOT NULL, stamp bigint NOT NULL,
  origin integer NOT NULL, number bigint NOT NULL, index bigint NOT NULL, content bytea NOT NULL,
  PRIMARY KEY (object, field, stamp, origin, number, index)
)

CREATE TABLE {schema}.mingle_tallies (
  object bytea NOT NULL, field text COLLATE "C" NOT NULL, origin integer NOT NULL,
  added numeric NOT NULL, removed numeric NOT NULL, removed_to bigint NOT NULL,
  version bigint NOT NULL,
  PRIMARY KEY (object, field, origin)
)

CREATE TABLE {schema}.mingle_heads (
  object bytea NOT NULL, field text COLLATE "C" NOT NULL, version bigint NOT NULL,
  count bigint NOT NULL,
  PRIMARY KEY (object, field)
)

CREATE TABLE {schema}.mingle_records (
  id bytea NOT NULL, origin integer NOT NULL, number bigint NOT NULL, stamp bigint NOT NULL,
  content bytea NOT NULL, version bigint NOT NULL,
  PRIMARY KEY (id, origin, number)
)

CREATE TABLE {schema}.mingle_witnesses (
  digest bytea NOT NULL, origin integer NOT NULL, number bigint NOT NULL,
  object bytea NOT NULL, transaction bytea NOT NULL, kind text, key bytea, details json NOT NULL,
  PRIMARY KEY (digest, origin, number)
)

CREATE INDEX ON {schema}.mingle_witnesses (object)

CREATE INDEX ON {schema}.mingle_witnesses (transaction)

CREATE TABLE {schema}.mingle_outcomes (
  transaction bytea PRIMARY KEY, is_committed boolean NOT NULL,
  at timestamptz NOT NULL DEFAULT clock_timestamp()
)

CREATE TABLE {schema}.mingle_outcomes_gone (
  origin bytea PRIMARY KEY, transaction bytea NOT NULL,
  at timestamptz NOT NULL DEFAULT clock_timestamp()
)
