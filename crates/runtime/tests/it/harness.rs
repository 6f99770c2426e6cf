//! Runs one generated program split and plain, and compares.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mingle_lang::flow::Rules;
use mingle_lang::generate::{self, KEYS, Random, STORES, UNIQUE, field};
use mingle_lang::hir::{CollectionWrite, StoreId};
use mingle_lang::plain::{self, Abort, FieldState, Outside, State};
use mingle_lang::split::Mutation;
use mingle_lang::{Program, check_with};
use mingle_model::{Date, Decimal, FieldType, Float, LevelId, Name, Ref, Time, Type, Value};
use mingle_runtime::{Call, Error, Given, Runtime, Settings};
use mingle_store::{BoxFuture, Data, DataStore, World};

use crate::model_store::ModelStore;

/// The result of one program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The compiler rejected it.
    Rejected,
    /// Both ways agree; `took_effect` tells if the transaction took effect, and `is_taken` if it met a value of a
    /// `unique` that another object has.
    Agreed { took_effect: bool, phases: usize, is_taken: bool },
    /// They differ.
    Differed(String),
}

/// A world without waiting, which draws its random numbers from a seed.
pub struct QuickWorld(Mutex<Random>);

impl QuickWorld {
    pub fn new(seed: u64) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Random::new(seed))))
    }
}

impl World for QuickWorld {
    fn now(&self) -> Time {
        Time::from_millis(1_000)
    }

    fn elapsed(&self) -> Duration {
        Duration::ZERO
    }

    fn sleep(&self, _: Duration) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }

    fn random(&self) -> u64 {
        self.0.lock().expect("no test panics with this lock").bits()
    }

    fn spawn(&self, _: BoxFuture<'static, ()>) {
        // Calls run in place here, and no task cleans up after them.
    }

    fn run_blocking(&self, work: Box<dyn FnOnce() + Send>) -> BoxFuture<'static, ()> {
        work();
        Box::pin(std::future::ready(()))
    }
}

/// Runs a future that never waits.
pub fn ready<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match future.as_mut().poll(&mut context) {
        std::task::Poll::Ready(value) => value,
        std::task::Poll::Pending => panic!("nothing here waits"),
    }
}

/// Compiles a generated program with these rules and this mutation.
pub fn compile(seed: u64, rules: Rules, mutation: Mutation) -> Option<Arc<Program>> {
    let text = generate::program(seed);
    let checked = check_with(text.as_str(), rules, mutation);
    let unexpected = checked.diagnostics.iter().find(|diagnostic| {
        let code = diagnostic.code.text();
        let is_expected =
            code.starts_with("M03") || ["M0402", "M0403", "M0404", "M0607"].contains(&code);
        code.starts_with('M') && !is_expected
    });
    assert!(unexpected.is_none(), "seed {seed}: {unexpected:?}\n{text}");
    checked.program.map(Arc::new)
}

/// Fills the objects that generated programs name, at random.
pub fn random_state(program: &Program, random: &mut Random) -> State {
    let mut state = State::default();
    for index in 0..STORES.len() {
        // Without a draw, so that the other objects stay what they are.
        for (place, key) in KEYS.into_iter().enumerate() {
            let stock = Ref::new(format!("Stock{index}"), Value::from(key));
            state.add(&stock, 0, (index + place) as i128);
            state.add(&stock, 1, place as i128 - 1);
            // The promise of the `unique`s holds at the start.
            if UNIQUE.contains(&index) && place < 2 {
                let badge = Ref::new(format!("Badge{index}"), Value::from(key));
                state.assign(&badge, 0, Value::Int(place as i64 + 1));
                state.assign(&badge, 1, Value::some(Value::Int(place as i64 + 1)));
            }
        }
        for key in KEYS {
            if random.one_in(3) {
                continue;
            }
            let object = Ref::new(format!("O{index}"), Value::from(key));
            let declared = program.schema().objects[object.kind()].clone();
            state.create(&object);
            for (field, declared) in declared.fields.iter().enumerate() {
                if random.one_in(3) {
                    fill(program, &mut state, &object, field as u16, &declared.field_type, random);
                }
            }
        }
    }
    state
}

fn fill(
    program: &Program,
    state: &mut State,
    object: &Ref,
    field: u16,
    field_type: &FieldType,
    random: &mut Random,
) {
    let (write, rounds) = match field_type {
        FieldType::Register(value_type) => {
            let value = random_value(program, value_type, random);
            return state.assign(object, field, value);
        }
        FieldType::Counter => (CollectionWrite::Add, 1),
        FieldType::Set(_) => (CollectionWrite::Insert, 3),
        FieldType::Map(..) => (CollectionWrite::Put, 3),
        FieldType::Log(_) => (CollectionWrite::Append, 3),
    };
    for _ in 0..=random.below(rounds) {
        let args = match field_type {
            FieldType::Set(inner) | FieldType::Log(inner) => {
                vec![random_value(program, inner, random)]
            }
            FieldType::Map(key, value) => {
                vec![random_value(program, key, random), random_value(program, value, random)]
            }
            _ => vec![Value::Int(random.below(9) as i64 - 4)],
        };
        state.change(object, field, field_type, write, args);
    }
}

fn random_value(program: &Program, value_type: &mingle_model::Type, random: &mut Random) -> Value {
    match value_type {
        Type::Bool => Value::Bool(random.one_in(2)),
        Type::Int => Value::Int(random.below(5) as i64),
        Type::String => Value::from(*random.pick(&KEYS)),
        Type::Json => random_document(random),
        Type::Enum(declared) => Value::String(random.pick(&declared.values).label.clone()),
        Type::Ref(name) => Value::Ref(Ref::new(name.clone(), Value::from(*random.pick(&KEYS)))),
        Type::Option(inner) if random.one_in(2) => {
            Value::some(random_value(program, inner, random))
        }
        Type::Option(_) => Value::NONE,
        Type::List(inner) => Value::list(
            (0..random.below(4)).map(|_| random_value(program, inner, random)).collect::<Vec<_>>(),
        ),
        Type::Struct(name) => {
            let declared = program.schema().structs[name].clone();
            Value::Struct(
                declared
                    .fields
                    .iter()
                    .map(|(_, inner)| random_value(program, inner, random))
                    .collect(),
            )
        }
        Type::Float => Value::Float(Float(random.below(5) as f64 / 2.0)),
        Type::Time => Value::Time(Time::from_millis(random.below(5) as i64 * 500)),
        Type::Date => Value::Date(Date::from_days(random.below(5) as i32 - 2)),
        Type::Decimal => {
            let quarters = i128::from(random.below(5) as u32) * 25 - 50;
            Value::Decimal(Decimal::new(quarters, 2).expect("two digits"))
        }
        Type::Bytes => Value::Bytes(random.pick(&KEYS).as_bytes().into()),
        Type::Rushed(_) => unreachable!("no field and no parameter is an answer"),
    }
}

pub fn arguments(random: &mut Random) -> Vec<Value> {
    let mut arguments: Vec<Value> = (0..STORES.len())
        .map(|index| Value::Ref(Ref::new(format!("O{index}"), Value::from(*random.pick(&KEYS)))))
        .collect();
    let list = Value::list(
        (0..random.below(4)).map(|_| Value::Int(random.below(5) as i64)).collect::<Vec<_>>(),
    );
    arguments.extend([Value::Int(random.below(5) as i64), Value::Bool(random.one_in(2)), list]);
    arguments.push(random_document(random));
    arguments
}

/// Returns a document, of which some are equal.
fn random_document(random: &mut Random) -> Value {
    const DOCUMENTS: [&str; 5] =
        ["null", "1.50", "15e-1", "{\"b\":1,\"a\":[]}", "{\"a\":[],\"b\":1.0}"];
    Value::Json(random.pick::<&str>(&DOCUMENTS).parse().expect("JSON"))
}

/// Runs the split program from a state; returns the state that it leaves.
pub fn run_split(
    program: &Arc<Program>,
    arguments: &[Value],
    state: &State,
    seed: u64,
    (mutation, weaker_than): (Mutation, Option<LevelId>),
) -> (Result<Option<Value>, Error>, State) {
    let shared = Arc::new(Mutex::new(state.clone()));
    let stores: Vec<Arc<dyn DataStore>> = (0..program.checked.stores.len())
        .map(|store| {
            ModelStore::new(program.checked.clone(), store, shared.clone()) as Arc<dyn DataStore>
        })
        .collect();
    let world = QuickWorld::new(seed);
    let settings = Settings { steps_max: 100_000, ..Settings::default() };
    let runtime = Runtime::new(program.clone(), stores, world, settings).with_mutation(mutation);
    let runtime = runtime.with_answers(given(program, seed, weaker_than));
    let call = Call::new("t", arguments.to_vec());
    let result = ready(runtime.call_in_place(&call)).map(|report| report.result);
    let after = shared.lock().expect("no test panics with this lock").clone();
    (result, after)
}

/// Returns the level of the answers of an object, the same in every run of a seed. An answer is late only
/// if every `match` of the program has an arm for that.
fn answered_level(program: &Program, seed: u64, store: StoreId, object: &Ref) -> Option<Name> {
    let levels = &program.checked.levels;
    let level = program.checked.level_of(store);
    let mut random = Random::new(seed ^ u64::from(store.0) << 32);
    let at = KEYS.iter().position(|key| *object.key() == Value::from(*key)).unwrap_or(0);
    let number = (0..=at).map(|_| random.bits()).last().unwrap_or(0);
    let answered = plain::answered_level(levels, level, number);
    let may_be_late = seed.is_multiple_of(2);
    answered.or_else(|| (!may_be_late).then(|| levels.name(level).clone()))
}

/// Returns the answers of a seed. Those of levels that are not at least `weaker_than` have other contents.
fn given(program: &Arc<Program>, seed: u64, weaker_than: Option<LevelId>) -> Given {
    let program = program.clone();
    Arc::new(move |store, object, at, mut data| {
        let levels = &program.checked.levels;
        let name = match at {
            Some(level) => levels.name(level).clone(),
            None => answered_level(&program, seed, store, object)?,
        };
        let level = levels.find(&name).expect("it is a level of the program");
        if weaker_than.is_some_and(|strong| !levels.is_at_least(level, strong)) {
            data.iter_mut().for_each(change);
        }
        Some((name, data))
    })
}

/// Changes the contents of an answer.
fn change(data: &mut Data) {
    match data {
        Data::Register(Some(Value::Int(number))) => *number += 1,
        Data::Counter(sum) => *sum += 1,
        Data::Count(count) => *count += 1,
        _ => {}
    }
}

/// Performs the operations of generated programs.
pub fn operate(state: &mut State, _: StoreId, index: u32, arguments: &[Value]) -> Option<Value> {
    let Some(Value::Ref(object)) = arguments.first() else { panic!("its object comes first") };
    let found = |name: &str| state.field(object, field(name));
    let number = arguments.get(1).cloned();
    match index {
        0 => Some(Value::Int(match found("e") {
            Some(FieldState::Set(elements)) => elements.len() as i64,
            _ => 0,
        })),
        1 => Some(match found("m") {
            Some(FieldState::Register(value)) => value.clone(),
            _ => Value::NONE,
        }),
        2 => Some(Value::list(match found("g") {
            Some(FieldState::Log(lines)) => lines.clone(),
            _ => Vec::new(),
        })),
        3 => {
            let line = number.expect("a line is appended");
            let log = FieldType::Log(Type::Int);
            state.change(object, field("g"), &log, CollectionWrite::Append, vec![line]);
            None
        }
        4 => {
            let amount = number.and_then(|amount| amount.as_int()).expect("an int is added");
            state.add(object, field("c"), amount.into());
            None
        }
        _ => unreachable!("no store has so many operations"),
    }
}

/// Returns the seed that a runtime over this world draws for `unique()`.
pub fn unique_seed(seed: u64) -> u128 {
    let mut random = Random::new(seed);
    // The runtime draws its origin first.
    random.bits();
    random.bits();
    u128::from(random.bits()) << 64 | u128::from(random.bits())
}

/// True if a program has at most one statement that writes a `unique`.
fn is_one_claim(program: &Program) -> bool {
    let claims =
        program.text.lines().filter(|line| line.contains("Badge") && !line.contains("object "));
    claims.count() == 1
}

/// Compares as [`differ`], where a panic is a difference too.
pub fn differ_or_panic(seed: u64, rules: Rules, mutation: Mutation) -> Verdict {
    std::panic::catch_unwind(|| differ(seed, rules, mutation)).unwrap_or_else(|payload| {
        let message = payload.downcast_ref::<String>().cloned();
        let message =
            message.or_else(|| payload.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Verdict::Differed(format!("panicked: {}", message.unwrap_or_default()))
    })
}

/// Makes, compiles and runs the program of a seed, both ways.
pub fn differ(seed: u64, rules: Rules, mutation: Mutation) -> Verdict {
    let Some(program) = compile(seed, rules, mutation) else { return Verdict::Rejected };
    let mut random = Random::new(seed ^ 0xA5A5_A5A5);
    let state = random_state(&program, &mut random);
    let arguments = arguments(&mut random);
    let (split, split_state) = run_split(&program, &arguments, &state, seed, (mutation, None));
    let answered = |store: StoreId, object: &Ref| answered_level(&program, seed, store, object);
    let mut plain_state = state.clone();
    let transaction = program.checked.transaction("t").expect("every generated program has it");
    let plain = plain::run_with(
        &program.checked,
        transaction,
        &arguments,
        &mut plain_state,
        (Time::from_millis(1_000), unique_seed(seed), 1_000_000),
        Outside { operations: Some(&operate), answered: Some(&answered), ..Outside::default() },
    );
    let agree = match (&plain, &split) {
        (Ok(a), Ok(b)) => a == b,
        (
            Err(Abort::Require(code, message)),
            Err(Error::Require { code: other, message: text }),
        ) if program.text.matches("require ").count() == 1 => code == other && message == text,
        (Err(Abort::Exists(a)), Err(Error::Exists(b))) => a == b,
        (Err(Abort::Taken(a)), Err(Error::Taken(b))) if is_one_claim(&program) => a == b,
        (Err(Abort::Limit), Err(Error::Limit(_))) => true,
        // Statements keep their order within a phase only, so either of two failures may be
        // reported, but the transaction must fail.
        (
            Err(Abort::Require(..) | Abort::Exists(_) | Abort::Taken(_)),
            Err(Error::Require { .. } | Error::Exists(_) | Error::Taken(_)),
        ) => true,
        _ => false,
    };
    if !agree {
        return Verdict::Differed(format!("results: plain {plain:?}, split {split:?}"));
    }
    if plain_state.normal() != split_state.normal() {
        return Verdict::Differed(format!(
            "states:\nplain {:?}\nsplit {:?}",
            plain_state.normal(),
            split_state.normal()
        ));
    }
    let phases = program.plan("t").map_or(0, |plan| plan.phases.len());
    let is_taken = matches!(plain, Err(Abort::Taken(_)));
    Verdict::Agreed { took_effect: plain.is_ok(), phases, is_taken }
}

/// Picks one store and runs the program of a seed twice, with different data in all stores that are
/// not at least as strong. The stores that are at least as strong must not show it (MixT §4.2).
pub fn interferes(seed: u64, rules: Rules, mutation: Mutation) -> Verdict {
    let Some(program) = compile(seed, rules, mutation) else { return Verdict::Rejected };
    if program.plan("t").is_some_and(|plan| plan.endorses()) {
        // An endorsement permits the flow upwards.
        return Verdict::Rejected;
    }
    let mut random = Random::new(seed ^ 0x5A5A_5A5A);
    let (first, second) =
        (random_state(&program, &mut random), random_state(&program, &mut random));
    let arguments = arguments(&mut random);
    let checked = &program.checked;
    let level = checked.stores[random.below(STORES.len())].level;
    let is_strong = |kind: &str| {
        let object = checked.objects.iter().find(|object| *object.declared.name == *kind);
        object
            .is_some_and(|object| checked.levels.is_at_least(checked.level_of(object.store), level))
    };
    let mut varied = first.only(is_strong);
    varied.join(second.only(|kind| !is_strong(kind)));
    let (one, one_after) = run_split(&program, &arguments, &first, seed, (mutation, None));
    let (other, other_after) =
        run_split(&program, &arguments, &varied, seed, (mutation, Some(level)));
    for result in [&one, &other] {
        if let Err(Error::Incomplete { .. }) = result {
            return Verdict::Differed(format!("failed after its first commit: {result:?}"));
        }
    }
    let (strong, strong_other) =
        (one_after.only(is_strong).normal(), other_after.only(is_strong).normal());
    if strong != strong_other {
        return Verdict::Differed(format!(
            "weaker data shows in stronger stores:\n{strong:?}\n{strong_other:?}"
        ));
    }
    Verdict::Agreed {
        took_effect: one.is_ok() && first.normal() != one_after.normal(),
        phases: 0,
        is_taken: false,
    }
}

/// Checks as [`interferes`], where a panic is a difference too.
pub fn interferes_or_panics(seed: u64, rules: Rules, mutation: Mutation) -> Verdict {
    std::panic::catch_unwind(|| interferes(seed, rules, mutation))
        .unwrap_or_else(|_| Verdict::Differed("panicked".into()))
}
