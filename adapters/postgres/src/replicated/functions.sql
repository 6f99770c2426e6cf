-- Whether a vector has all that another one has.
CREATE OR REPLACE FUNCTION {schema}.mingle_covers(vector bigint[], other bigint[])
RETURNS boolean LANGUAGE sql IMMUTABLE AS $mingle$
  SELECT NOT EXISTS (SELECT FROM unnest(vector, other) AS u(have, want)
    WHERE coalesce(have, 0) < coalesce(want, 0))
$mingle$

-- Notes a change of a field, and so many lines more.
CREATE OR REPLACE FUNCTION {schema}.mingle_note(
  of_object bytea, of_field text, at_version bigint, more bigint
) RETURNS void LANGUAGE sql AS $mingle$
  INSERT INTO {schema}.mingle_heads AS h (object, field, version, count)
  VALUES (of_object, of_field, at_version, more)
  ON CONFLICT (object, field) DO UPDATE
  SET version = excluded.version, count = h.count + excluded.count
$mingle$

-- Removes an object as far as an update has seen it. What that takes from counters is found where the
-- update is made, and given everywhere else.
CREATE OR REPLACE FUNCTION {schema}.mingle_delete(
  of_object bytea, seen bigint[], at_version bigint, given jsonb
) RETURNS jsonb LANGUAGE plpgsql AS $mingle$
DECLARE
  taken jsonb := given;
BEGIN
  DELETE FROM {schema}.mingle_units
  WHERE object = of_object AND field = '' AND number <= seen[origin];
  IF FOUND THEN PERFORM {schema}.mingle_note(of_object, '', at_version, 0); END IF;
  DELETE FROM {schema}.mingle_units WHERE object = of_object AND number <= seen[origin];
  WITH gone AS (
    DELETE FROM {schema}.mingle_lines WHERE object = of_object AND number <= seen[origin]
    RETURNING field
  ), counts AS (SELECT field, count(*) AS lines FROM gone GROUP BY field)
  UPDATE {schema}.mingle_heads AS h SET version = at_version, count = h.count - c.lines
  FROM counts AS c WHERE h.object = of_object AND h.field = c.field;
  IF taken IS NULL THEN
    SELECT coalesce(jsonb_agg(jsonb_build_array(field, origin, seen[origin], added)), '[]')
    INTO taken FROM {schema}.mingle_tallies WHERE object = of_object;
  END IF;
  UPDATE {schema}.mingle_tallies AS t
  SET removed = (x.of ->> 3)::numeric, removed_to = (x.of ->> 2)::bigint, version = at_version
  FROM jsonb_array_elements(taken) AS x(of)
  WHERE t.object = of_object AND t.field = x.of ->> 0 AND t.origin = (x.of ->> 1)::integer
    AND t.removed_to <= (x.of ->> 2)::bigint;
  RETURN taken;
END
$mingle$

-- Changes a unit, a log or a counter.
CREATE OR REPLACE FUNCTION {schema}.mingle_change(
  kind integer, at_origin integer, at_number bigint, at_stamp bigint, seen bigint[],
  at_version bigint, of_object bytea, of_field text, of_element bytea, new_content bytea, place bigint
) RETURNS void LANGUAGE plpgsql AS $mingle$
DECLARE
  of_item bytea := CASE WHEN of_element = '' THEN '' ELSE sha256(of_element) END;
  lines bigint;
BEGIN
  CASE kind
  WHEN 1 THEN
    WITH gone AS (
      DELETE FROM {schema}.mingle_units
      WHERE object = of_object AND field = '' AND item = '' AND number <= seen[origin]
      RETURNING version
    )
    INSERT INTO {schema}.mingle_units
      (object, field, item, origin, number, stamp, element, content, version)
    SELECT of_object, '', '', at_origin, at_number, at_stamp, '', '',
      coalesce(min(version), at_version) FROM gone;
  WHEN 3 THEN
    DELETE FROM {schema}.mingle_units
    WHERE object = of_object AND field = of_field AND item = of_item AND number <= seen[origin];
    INSERT INTO {schema}.mingle_units
      (object, field, item, origin, number, stamp, element, content, version)
    VALUES (of_object, of_field, of_item, at_origin, at_number, at_stamp, of_element, new_content,
      at_version);
  WHEN 4 THEN
    DELETE FROM {schema}.mingle_units
    WHERE object = of_object AND field = of_field AND item = of_item AND number <= seen[origin];
    IF FOUND THEN PERFORM {schema}.mingle_note(of_object, of_field, at_version, 0); END IF;
  WHEN 5 THEN
    DELETE FROM {schema}.mingle_units
    WHERE object = of_object AND field = of_field AND number <= seen[origin];
    IF FOUND THEN PERFORM {schema}.mingle_note(of_object, of_field, at_version, 0); END IF;
    DELETE FROM {schema}.mingle_lines
    WHERE object = of_object AND field = of_field AND number <= seen[origin];
    GET DIAGNOSTICS lines = ROW_COUNT;
    IF lines > 0 THEN PERFORM {schema}.mingle_note(of_object, of_field, at_version, -lines); END IF;
  WHEN 6 THEN
    INSERT INTO {schema}.mingle_tallies AS t
      (object, field, origin, added, removed, removed_to, version)
    VALUES (of_object, of_field, at_origin, convert_from(new_content, 'UTF8')::numeric, 0, 0,
      at_version)
    ON CONFLICT (object, field, origin) DO UPDATE
    SET added = t.added + excluded.added, version = excluded.version;
  WHEN 7 THEN
    INSERT INTO {schema}.mingle_lines (object, field, stamp, origin, number, index, content)
    VALUES (of_object, of_field, at_stamp, at_origin, at_number, place, new_content);
    PERFORM {schema}.mingle_note(of_object, of_field, at_version, 1);
  END CASE;
END
$mingle$

-- Changes a record or a witness row.
CREATE OR REPLACE FUNCTION {schema}.mingle_change_own(
  kind integer, at_origin integer, at_number bigint, at_stamp bigint, seen bigint[],
  at_version bigint, of_object bytea, of_element bytea, new_content bytea
) RETURNS void LANGUAGE plpgsql AS $mingle$
DECLARE
  given json;
BEGIN
  CASE kind
  WHEN 8, 9 THEN
    DELETE FROM {schema}.mingle_records WHERE id = of_element AND number <= seen[origin];
    IF kind = 8 THEN
      INSERT INTO {schema}.mingle_records (id, origin, number, stamp, content, version)
      VALUES (of_element, at_origin, at_number, at_stamp, new_content, at_version);
    END IF;
  WHEN 10 THEN
    DELETE FROM {schema}.mingle_witnesses WHERE digest = of_element AND number <= seen[origin];
    given := convert_from(new_content, 'UTF8')::json;
    INSERT INTO {schema}.mingle_witnesses
      (digest, origin, number, object, transaction, kind, key, details)
    VALUES (of_element, at_origin, at_number, of_object, decode(given ->> 'transaction', 'hex'),
      given ->> 'kind', decode(given ->> 'key', 'hex'), given -> 'details');
  WHEN 11 THEN
    DELETE FROM {schema}.mingle_witnesses
    WHERE transaction = of_element AND number <= seen[origin];
  END CASE;
END
$mingle$

-- Carries out the writes of an update, in order. Each removes what the update has seen, its own
-- earlier writes included, so it comes to the same at every server. Gives what deletions have taken
-- from counters.
CREATE OR REPLACE FUNCTION {schema}.mingle_run(
  at_origin integer, at_number bigint, at_stamp bigint, context bigint[], at_version bigint,
  kinds bytea, objects bytea[], fields bytea[], elements bytea[], contents bytea[], totals jsonb
) RETURNS jsonb LANGUAGE plpgsql AS $mingle$
DECLARE
  w record;
  seen bigint[] := context;
  taken jsonb := '[]';
  deletions integer := 0;
BEGIN
  seen[at_origin] := at_number;
  FOR w IN
    SELECT get_byte(kinds, (u.place - 1)::integer) AS kind, u.object, u.field, u.element, u.content,
      u.place
    FROM unnest(objects, fields, elements, contents) WITH ORDINALITY
      AS u(object, field, element, content, place)
  LOOP
    IF w.kind = 2 THEN
      taken := taken || jsonb_build_array(
        {schema}.mingle_delete(w.object, seen, at_version, totals -> deletions));
      deletions := deletions + 1;
    ELSIF w.kind < 8 THEN
      PERFORM {schema}.mingle_change(w.kind, at_origin, at_number, at_stamp, seen, at_version,
        w.object, convert_from(w.field, 'UTF8'), w.element, w.content, w.place);
    ELSE
      PERFORM {schema}.mingle_change_own(w.kind, at_origin, at_number, at_stamp, seen, at_version,
        w.object, w.element, w.content);
    END IF;
  END LOOP;
  RETURN taken;
END
$mingle$

-- Applies an update of another server, which the caller has found to be due. The state is locked.
CREATE OR REPLACE FUNCTION {schema}.mingle_take(u {schema}.mingle_log)
RETURNS void LANGUAGE plpgsql AS $mingle$
DECLARE
  s {schema}.mingle_state;
BEGIN
  UPDATE {schema}.mingle_state SET vector[u.origin] = u.number, clock = greatest(clock, u.stamp),
    count = count + 1 RETURNING * INTO s;
  PERFORM {schema}.mingle_run(u.origin, u.number, u.stamp, u.context, s.count * 64 + s.own,
    u.kinds, u.objects, u.fields, u.elements, u.contents, u.totals);
END
$mingle$

-- Applies at most so many of the updates that have arrived and whose causes are there; all of them
-- where no number is given. Gives how many. The state is locked.
CREATE OR REPLACE FUNCTION {schema}.mingle_drain(most bigint)
RETURNS bigint LANGUAGE plpgsql AS $mingle$
DECLARE
  s {schema}.mingle_state;
  u {schema}.mingle_log;
  from_server integer;
  done bigint := 0;
  before bigint;
BEGIN
  LOOP
    before := done;
    FOR from_server IN SELECT server FROM {schema}.mingle_servers ORDER BY server LOOP
      LOOP
        EXIT WHEN done >= most;
        SELECT * INTO s FROM {schema}.mingle_state;
        SELECT * INTO u FROM {schema}.mingle_inbox AS i
        WHERE i.origin = from_server AND i.number = s.vector[from_server] + 1;
        EXIT WHEN NOT FOUND OR NOT {schema}.mingle_covers(s.vector, u.context);
        DELETE FROM {schema}.mingle_inbox AS i
        WHERE i.origin = u.origin AND i.number = u.number;
        PERFORM {schema}.mingle_take(u);
        done := done + 1;
      END LOOP;
    END LOOP;
    EXIT WHEN done = before OR done >= most;
  END LOOP;
  RETURN done;
END
$mingle$

-- Tells the other servers what this one has, if it has more than they were told. Where an update
-- arrives this would be in vain: with `origin = none` nothing is sent on that comes from there.
CREATE OR REPLACE FUNCTION {schema}.mingle_acknowledge()
RETURNS void LANGUAGE plpgsql AS $mingle$
DECLARE
  s {schema}.mingle_state;
  theirs bigint[];
BEGIN
  SELECT * INTO s FROM {schema}.mingle_state FOR UPDATE;
  theirs := s.vector;
  theirs[s.own] := 0;
  IF theirs = s.acknowledged THEN RETURN; END IF;
  UPDATE {schema}.mingle_state SET acknowledged = theirs,
    acknowledgements = s.acknowledgements + 1;
  DELETE FROM {schema}.mingle_seen;
  INSERT INTO {schema}.mingle_seen (server, number, vector)
  VALUES (s.own, s.acknowledgements + 1, theirs);
END
$mingle$

-- Another server has of this one what this one has not: it was put back to an older state, and would
-- give the numbers that it has lost once more. From now on it takes no commits.
CREATE OR REPLACE FUNCTION {schema}.mingle_check_age(s {schema}.mingle_state, theirs bigint[])
RETURNS void LANGUAGE plpgsql AS $mingle$
BEGIN
  IF theirs[s.own] > s.vector[s.own] THEN
    UPDATE {schema}.mingle_state SET is_old = true WHERE NOT is_old;
  END IF;
END
$mingle$

-- An update of another server arrives. It is applied at once if all that it depends on is there, else
-- it waits. It may come twice, when a subscription is made again.
CREATE OR REPLACE FUNCTION {schema}.mingle_arrive()
RETURNS trigger LANGUAGE plpgsql SET enable_seqscan = off AS $mingle$
DECLARE
  s {schema}.mingle_state;
BEGIN
  SELECT * INTO s FROM {schema}.mingle_state FOR UPDATE;
  PERFORM {schema}.mingle_check_age(s, NEW.context);
  IF NEW.origin = s.own OR NEW.number <= s.vector[NEW.origin] THEN RETURN NULL; END IF;
  IF s.is_held OR NOT {schema}.mingle_covers(s.vector, NEW.context) THEN
    INSERT INTO {schema}.mingle_inbox SELECT NEW.* ON CONFLICT DO NOTHING;
    RETURN NULL;
  END IF;
  PERFORM {schema}.mingle_take(NEW);
  IF EXISTS (SELECT FROM {schema}.mingle_inbox) THEN PERFORM {schema}.mingle_drain(NULL); END IF;
  RETURN NULL;
END
$mingle$

-- Another server says what it has. What all have is needed no more.
CREATE OR REPLACE FUNCTION {schema}.mingle_learn()
RETURNS trigger LANGUAGE plpgsql SET enable_seqscan = off AS $mingle$
DECLARE
  s {schema}.mingle_state;
BEGIN
  SELECT * INTO s FROM {schema}.mingle_state FOR UPDATE;
  PERFORM {schema}.mingle_check_age(s, NEW.vector);
  UPDATE {schema}.mingle_known SET number = NEW.number, vector = NEW.vector
  WHERE server = NEW.server AND number < NEW.number;
  DELETE FROM {schema}.mingle_log WHERE origin = s.own
    AND number <= (SELECT min(vector[s.own]) FROM {schema}.mingle_known WHERE server <> s.own);
  RETURN NULL;
END
$mingle$

-- A commit takes effect under this id; no other does, and none that is too old.
CREATE OR REPLACE FUNCTION {schema}.mingle_claim(wanted bytea)
RETURNS void LANGUAGE plpgsql AS $mingle$
BEGIN
  IF EXISTS (SELECT FROM {schema}.mingle_outcomes_gone AS g
      WHERE g.origin = substring(wanted FOR 16) AND g.transaction >= wanted) THEN
    RAISE EXCEPTION 'a transaction is too old' USING ERRCODE = 'MG001';
  END IF;
  INSERT INTO {schema}.mingle_outcomes (transaction, is_committed) VALUES (wanted, true);
END
$mingle$

-- What a commit demands of records and witness rows.
CREATE OR REPLACE FUNCTION {schema}.mingle_demand(
  absent bytea[], below bytea[], bounds bytea[], witnessed bytea[], known bytea[]
) RETURNS void LANGUAGE plpgsql AS $mingle$
BEGIN
  IF EXISTS (SELECT FROM {schema}.mingle_records WHERE id = ANY (absent)) THEN
    RAISE EXCEPTION 'a record is there' USING ERRCODE = 'MG001';
  END IF;
  IF EXISTS (SELECT FROM unnest(below, bounds) AS b(id, bound), LATERAL (
        SELECT r.content FROM {schema}.mingle_records AS r WHERE r.id = b.id
        ORDER BY r.stamp DESC, r.origin DESC LIMIT 1) AS last
      WHERE length(last.content) = 8 AND last.content >= b.bound) THEN
    RAISE EXCEPTION 'a floor is too high' USING ERRCODE = 'MG001';
  END IF;
  IF EXISTS (SELECT FROM {schema}.mingle_witnesses AS w
      WHERE w.object = ANY (witnessed) AND NOT w.transaction = ANY (known)) THEN
    RAISE EXCEPTION 'there are witness rows' USING ERRCODE = 'MG002';
  END IF;
END
$mingle$

-- Commits writes here, and leaves them to the others. The state is locked until the end, so numbers
-- have no gaps, and updates are sent in their order. Where the session has seen more than the server,
-- nothing is done, and the version is -1.
CREATE OR REPLACE FUNCTION {schema}.mingle_commit(
  id bytea, after bigint[], absent bytea[], below bytea[], bounds bytea[], witnessed bytea[],
  known bytea[], kinds bytea, objects bytea[], fields bytea[], elements bytea[], contents bytea[]
) RETURNS TABLE (at_version bigint, at_vector bigint[])
LANGUAGE plpgsql SET enable_seqscan = off AS $mingle$
DECLARE
  s {schema}.mingle_state;
  context bigint[];
  totals jsonb;
BEGIN
  SELECT * INTO s FROM {schema}.mingle_state FOR UPDATE;
  IF s.is_old THEN
    RAISE EXCEPTION 'the server was put back to an older state, and must not go on from there'
      USING ERRCODE = 'MG004';
  END IF;
  IF NOT {schema}.mingle_covers(s.vector, after) THEN
    RETURN QUERY SELECT -1::bigint, s.vector;
    RETURN;
  END IF;
  IF id IS NOT NULL THEN PERFORM {schema}.mingle_claim(id); END IF;
  PERFORM {schema}.mingle_demand(absent, below, bounds, witnessed, known);
  IF length(kinds) = 0 THEN
    RETURN QUERY SELECT 0::bigint, s.vector;
    RETURN;
  END IF;
  context := s.vector;
  UPDATE {schema}.mingle_state SET vector[s.own] = s.vector[s.own] + 1, clock = s.clock + 1,
    count = s.count + 1 RETURNING * INTO s;
  totals := {schema}.mingle_run(s.own, s.vector[s.own], s.clock, context, s.count * 64 + s.own,
    kinds, objects, fields, elements, contents, NULL);
  INSERT INTO {schema}.mingle_log
    (origin, number, stamp, context, kinds, objects, fields, elements, contents, totals)
  VALUES (s.own, s.vector[s.own], s.clock, context, kinds, objects, fields, elements, contents,
    totals);
  RETURN QUERY SELECT s.count * 64 + s.own, s.vector;
END
$mingle$

CREATE OR REPLACE TRIGGER mingle_arrive BEFORE INSERT ON {schema}.mingle_log
FOR EACH ROW EXECUTE FUNCTION {schema}.mingle_arrive()

ALTER TABLE {schema}.mingle_log ENABLE REPLICA TRIGGER mingle_arrive

CREATE OR REPLACE TRIGGER mingle_learn BEFORE INSERT ON {schema}.mingle_seen
FOR EACH ROW EXECUTE FUNCTION {schema}.mingle_learn()

ALTER TABLE {schema}.mingle_seen ENABLE REPLICA TRIGGER mingle_learn
