//! Indexes over several data centers: random writes under delays, cuts, stops and losses, and each read of an index
//! against the registers that the same transaction reads.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::support::members::{Alone, BOTH, CITIES, Kept, geo, pass};
use crate::support::{at, schema};
use mingle_model::random::Random;
use mingle_model::{BuiltinQuery, FieldType, IndexRead, Level, Name, Ref, Stamp, Type, Value};
use mingle_store::{
    Commit, Data, DataStore, Read, Session, StoreError, StoreOperation, StoreSchema, TestWorld,
    Transaction, Write,
};
use mingle_store_embedded::{Embedded, EmbeddedConfig, GeoStore};

const KEYS: [&str; 6] = ["", "a", "aa", "b", "c", "{d}"];

const FIELDS: [&str; 2] = ["author", "placed"];

/// Returns the queries of an index over the first `count` fields of `Note`.
fn queries(count: usize) -> BTreeMap<Name, StoreOperation> {
    let fields: Vec<Name> = FIELDS[..count].iter().map(|field| Name::from(*field)).collect();
    let queries = (0..=count).flat_map(|equal| [(equal, false), (equal, true)]);
    let queries = queries.map(|(equal, counts)| {
        let read = IndexRead {
            object: "Note".into(),
            index: format!("by_{count}").into(),
            fields: fields.clone(),
            equal,
            counts,
            is_unique: false,
        };
        let operation = StoreOperation {
            is_command: false,
            parameters: read.parameters(&vec![Type::Int; count]),
            result: Some(read.result()),
            body: None,
            builtin: Some(BuiltinQuery::Index(read)),
        };
        (format!("by_{count}/{equal}/{counts}").into(), operation)
    });
    queries.collect()
}

fn indexed(level: Level, counts: &[usize]) -> StoreSchema {
    let mut schema = schema(level, &FIELDS.map(|name| (name, FieldType::Register(Type::Int))));
    schema.operations = counts.iter().flat_map(|count| queries(*count)).collect();
    schema
}

/// Draws a read of an index of `indexed`.
fn draw_read(random: &mut Random) -> (IndexRead, Read) {
    let all: BTreeMap<Name, StoreOperation> = queries(1).into_iter().chain(queries(2)).collect();
    let (name, query) = all.iter().nth(random.below(all.len())).expect("it is drawn below");
    let read = query.index().expect("a query of an index").clone();
    let value = |random: &mut Random| Value::Int(random.below(4) as i64);
    let mut arguments: Vec<Value> = (0..read.equal).map(|_| value(random)).collect();
    if read.has_range() {
        for _ in 0..2 {
            let bound = value(random);
            arguments.push(if random.below(3) == 0 { Value::some(bound) } else { Value::NONE });
        }
    } else {
        let after = Value::Ref(at(KEYS[random.below(KEYS.len())], 0).object);
        arguments.push(if random.below(3) == 0 { Value::some(after) } else { Value::NONE });
    }
    if !read.counts {
        arguments.push(Value::Bool(random.below(2) == 0));
    }
    arguments.push(Value::Int([1, 2, 100][random.below(3)]));
    (read, Read::Query { operation: name.clone(), arguments })
}

fn draw_write(random: &mut Random) -> Write {
    let key = KEYS[random.below(KEYS.len())];
    match random.below(10) {
        0 => Write::Create(at(key, 0).object),
        1 => Write::Delete(at(key, 0).object),
        draw => Write::Assign(at(key, draw as u16 % 2), Value::Int(random.below(4) as i64)),
    }
}

/// Compares reads of indexes with the registers, in a transaction. Returns the number of objects in the larger index.
async fn compare(
    transaction: &mut Box<dyn Transaction>,
    random: &mut Random,
) -> Result<usize, StoreError> {
    let mut shown: Vec<(Ref, Vec<Option<Value>>)> = Vec::new();
    for key in KEYS {
        let object = at(key, 0).object;
        let mut reads = vec![Read::Exists(object.clone())];
        reads.extend((0..2).map(|field| Read::Register(at(key, field))));
        let answers = transaction.read(&reads).await?;
        if answers[0].data == Data::Bool(true) {
            let values = answers[1..].iter().map(|answer| match &answer.data {
                Data::Register(value) => value.clone(),
                other => panic!("a register reads as {other:?}"),
            });
            shown.push((object, values.collect()));
        }
    }
    for _ in 0..5 {
        let (read, query) = draw_read(random);
        let Read::Query { arguments, .. } = &query else { unreachable!("a query was drawn") };
        let question = read.question(arguments).expect("the arguments fit");
        let rows = shown.iter().filter_map(|(object, values)| {
            let of = values[..read.fields.len()].iter().map(Option::as_ref);
            Some((object, of.collect::<Option<Vec<&Value>>>()?))
        });
        let expected = Data::Result(read.answer(question.over(rows)));
        let found = transaction.read(std::slice::from_ref(&query)).await?.remove(0).data;
        assert_eq!(found, expected, "{query:?} over {shown:?}");
    }
    Ok(shown.iter().filter(|(_, values)| values.iter().all(Option::is_some)).count())
}

/// A store with data centers that are cut off, stopped, given up and admitted again.
struct Run {
    world: Arc<TestWorld>,
    random: Random,
    links: Arc<Alone>,
    kept: Kept,
    config: EmbeddedConfig,
    level: Level,
    store: Arc<GeoStore>,
    stopped: Option<&'static str>,
    /// The number of comparisons, and the greatest number of objects in an index.
    compared: (usize, usize),
}

impl Run {
    fn new(level: Level, seed: u64) -> Self {
        let (world, mut random) = (TestWorld::new(seed), Random::new(seed));
        let links = Arc::<Alone>::default();
        let geo = geo().with_partitions([1, 3][random.below(2)]);
        let config = EmbeddedConfig::in_memory().with_geo(geo).with_links(links.clone());
        let kept = Kept::default();
        let store = Self::open(&world, &kept, &config, indexed(level, &[1, 2]));
        let (stopped, compared) = (None, (0, 0));
        Self { world, random, links, kept, config, level, store, stopped, compared }
    }

    fn open(
        world: &Arc<TestWorld>,
        kept: &Kept,
        config: &EmbeddedConfig,
        schema: StoreSchema,
    ) -> Arc<GeoStore> {
        let opened =
            Embedded::open_geo_over(Box::new(kept.clone()), config, &schema, world.clone());
        opened.expect("the store opens")
    }

    fn city(&mut self) -> &'static str {
        CITIES[self.random.below(CITIES.len())]
    }

    /// Opens the store again, with a program that has had no index in between.
    fn reopen(&mut self) {
        for schema in [indexed(self.level, &[]), indexed(self.level, &[1, 2])] {
            let gone = std::mem::replace(
                &mut self.store,
                Self::open(&self.world, &Kept::default(), &self.config, indexed(self.level, &[])),
            );
            drop(gone);
            self.store = Self::open(&self.world, &self.kept, &self.config, schema);
            self.heal();
            let write = draw_write(&mut self.random);
            self.write(vec![write]);
        }
    }

    fn heal(&mut self) {
        self.links.set(&[]);
        if let Some(city) = self.stopped.take() {
            // It runs after the store was opened again.
            let _ = self.store.start(city);
        }
        pass(&self.world, 1_500);
    }

    /// Writes in a data center, which may fail where it is cut off or stopped.
    fn write(&mut self, writes: Vec<Write>) {
        let city = self.city();
        let written = async {
            let transaction = self.store.begin(&Session::at(city)).await?;
            transaction.commit(Commit { writes, ..Commit::default() }).await
        };
        let _ = self.world.block_on(written);
    }

    /// Compares in a data center, perhaps amid the writes of a transaction. Only a data center that cannot serve
    /// gives no answer.
    fn compare(&mut self, city: &str) -> Result<Stamp, StoreError> {
        let count = self.random.below(4).saturating_sub(1);
        let writes: Vec<Write> = (0..count).map(|_| draw_write(&mut self.random)).collect();
        let (random, compared) = (&mut self.random, &mut self.compared);
        let done = async {
            let mut transaction = self.store.begin(&Session::at(city)).await?;
            if !writes.is_empty() {
                compare(&mut transaction, random).await?;
                transaction.flush(writes).await?;
            }
            let in_index = compare(&mut transaction, random).await?;
            *compared = (compared.0 + 1, compared.1.max(in_index));
            transaction.commit(Commit::default()).await
        };
        self.world.block_on(done).map(|committed| committed.stamp)
    }

    /// Compares in a data center that serves, though perhaps not at once: it may have to catch up.
    fn compare_at_last(&mut self, city: &str) {
        for _ in 0..20 {
            match self.compare(city) {
                Ok(_) => return,
                Err(StoreError::Conflict | StoreError::Unavailable { .. }) => {
                    pass(&self.world, 500);
                }
                Err(error) => panic!("{} at {city}: {error}", self.level),
            }
        }
        panic!("{} at {city}: it does not serve", self.level);
    }

    fn step(&mut self) {
        match self.random.below(24) {
            0 => {
                let city = self.city();
                self.links.set(&[city]);
            }
            1 => self.heal(),
            2 if self.stopped.is_none() => {
                let city = self.city();
                self.store.kill(city).expect("it is there");
                self.stopped = Some(city);
            }
            3 => self.reopen(),
            4 if self.stopped.is_none() => {
                self.heal();
                let city = self.city();
                self.store.kill(city).expect("it is there");
                self.world.block_on(self.store.give_up(city)).expect("the others agree");
                self.world.block_on(self.store.admit(city)).expect("it comes up");
            }
            5..=13 => {
                let writes = (0..=self.random.below(2)).map(|_| draw_write(&mut self.random));
                let writes = writes.collect();
                self.write(writes);
            }
            14 | 15 => pass(&self.world, self.random.below(90) as u64),
            _ => {
                let city = self.city();
                let _ = self.compare(city);
            }
        }
    }
}

#[test]
fn indexes_give_what_the_registers_show_under_faults() {
    for level in BOTH {
        let mut compared = (0, 0);
        for seed in 0..12 {
            let mut run = Run::new(level, seed);
            println!("{level}, seed {seed}");
            for _ in 0..80 {
                run.step();
            }
            run.heal();
            for city in CITIES {
                run.compare_at_last(city);
            }
            compared = (compared.0 + run.compared.0, compared.1.max(run.compared.1));
        }
        assert!(compared.0 > 200 && compared.1 > 3, "{level}: {compared:?}");
    }
}

/// Two data centers change one field each of one object: no transaction wrote both values, and the index has the
/// object under both.
#[test]
fn values_that_no_transaction_wrote_together_are_found() {
    let world = TestWorld::new(1);
    let config = EmbeddedConfig::in_memory().with_geo(geo());
    let opened = Embedded::open_geo(&config, &indexed(Level::Causal, &[2]), world.clone());
    let store: Arc<dyn DataStore> = opened.expect("the store opens");
    let write = |city: &str, writes: Vec<Write>| {
        let done = world.block_on(crate::support::write(&store, &Session::at(city), writes));
        done.expect("it commits");
    };
    let assign = |field: u16, value: i64| Write::Assign(at("a", field), Value::Int(value));
    write("oslo", vec![assign(0, 1), assign(1, 1)]);
    pass(&world, 2_000);
    write("oslo", vec![assign(0, 2)]);
    write("rome", vec![assign(1, 2)]);
    pass(&world, 2_000);
    let page = |author: i64, placed: i64| Read::Query {
        operation: "by_2/2/false".into(),
        arguments: [author, placed]
            .map(Value::Int)
            .into_iter()
            .chain([Value::NONE, Value::Bool(false), Value::Int(10)])
            .collect(),
    };
    for city in CITIES {
        let reads = [page(2, 2), page(1, 1), page(2, 1), page(1, 2)];
        let found = crate::support::data(&world, &store, &Session::at(city), &reads);
        let counts = found.iter().map(|data| match data {
            Data::Result(Value::List(found)) => found.len(),
            other => panic!("a page reads as {other:?}"),
        });
        assert_eq!(counts.collect::<Vec<_>>(), [1, 0, 0, 0], "{city}");
    }
}

/// A page takes its objects in order from all partitions, and goes on after the last of them.
#[test]
fn pages_follow_each_other() {
    let world = TestWorld::new(2);
    let config = EmbeddedConfig::in_memory().with_geo(geo().with_partitions(5));
    let opened = Embedded::open_geo(&config, &indexed(Level::Causal, &[1]), world.clone());
    let store: Arc<dyn DataStore> = opened.expect("the store opens");
    let key = |n: usize| format!("{n:03}");
    let writes = |author: i64, numbers: std::ops::Range<usize>| -> Vec<Write> {
        numbers.map(|n| Write::Assign(at(&key(n), 0), Value::Int(author))).collect()
    };
    let session = Session::at("rome");
    world.block_on(crate::support::write(&store, &session, writes(7, 0..120))).expect("commits");
    // These leave entries behind until their versions are folded.
    world.block_on(crate::support::write(&store, &session, writes(8, 20..100))).expect("commits");
    let page = |after: Option<Value>, is_reversed: bool| {
        let after = after.map_or(Value::NONE, Value::some);
        let arguments = vec![Value::Int(7), after, Value::Bool(is_reversed), Value::Int(9)];
        let query = Read::Query { operation: "by_1/1/false".into(), arguments };
        match crate::support::data(&world, &store, &session, &[query]).remove(0) {
            Data::Result(Value::List(found)) => found.to_vec(),
            other => panic!("a page reads as {other:?}"),
        }
    };
    for is_reversed in [false, true] {
        let (mut all, mut after) = (Vec::new(), None);
        loop {
            let found = page(after, is_reversed);
            let Some(last) = found.last() else { break };
            after = Some(last.clone());
            all.extend(found);
        }
        if is_reversed {
            all.reverse();
        }
        let expected = (0..20).chain(100..120).map(|n| Value::Ref(at(&key(n), 0).object));
        assert_eq!(all, expected.collect::<Vec<_>>(), "reversed: {is_reversed}");
    }
}
