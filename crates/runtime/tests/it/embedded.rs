//! Generated programs over the embedded engine, the stores that users run, compared with the plain
//! interpreter.

use std::collections::BTreeMap;
use std::sync::Arc;

use mingle_lang::flow::Rules;
use mingle_lang::generate::{Random, operations};
use mingle_lang::plain::{self, Abort, FieldState, Outside, State};
use mingle_lang::split::Mutation;
use mingle_lang::{Program, hir};
use mingle_model::{FieldType, Level, Ref, Time};
use mingle_runtime::{Call, Error, Runtime, Settings};
use mingle_store::{
    Address, Commit, Data, DataStore, Read, Session, StoreOperation, StoreSchema, World, Write,
};
use mingle_store_embedded::{Embedded, EmbeddedConfig};

use crate::harness::{
    QuickWorld, Verdict, arguments, compile, operate, random_state, ready, unique_seed,
};

/// Runs the program of a seed over embedded stores of the levels that it declares, each with one
/// replica, and compares it with the plain interpreter.
pub fn differ_embedded(seed: u64) -> Verdict {
    let Some(program) = compile(seed, Rules::default(), Mutation::None) else {
        return Verdict::Rejected;
    };
    let mut random = Random::new(seed ^ 0x3C3C_3C3C);
    let state = random_state(&program, &mut random);
    let arguments = arguments(&mut random);
    let world = QuickWorld::new(seed);
    let stores = open(&program, &world);
    load(&program, &stores, &state);
    // The seed of `unique()` is drawn from the same numbers; opening takes some of them first.
    let world = QuickWorld::new(seed);
    let settings = Settings { steps_max: 100_000, ..Settings::default() };
    let runtime = Runtime::new(program.clone(), stores.clone(), world, settings);
    if program.plan("t").is_some_and(|plan| runtime.check_plan(plan).is_err()) {
        // It is isolated, and one of its stores is not serializable.
        return Verdict::Rejected;
    }
    let call = Call::new("t", arguments.clone());
    let split = ready(runtime.call_in_place(&call)).map(|report| report.result);
    let mut plain_state = state.clone();
    let transaction = program.checked.transaction("t").expect("every generated program has it");
    let now = Time::from_millis(1_000);
    let plain = plain::run_with(
        &program.checked,
        transaction,
        &arguments,
        &mut plain_state,
        (now, unique_seed(seed), 1_000_000),
        Outside { operations: Some(&operate), ..Outside::default() },
    );
    if let Err(Error::Incomplete { .. } | Error::Store(_)) = &split {
        return Verdict::Differed(format!("{split:?}"));
    }
    if plain.is_ok() != split.is_ok() || plain.as_ref().ok() != split.as_ref().ok() {
        return Verdict::Differed(format!("results: plain {plain:?}, split {split:?}"));
    }
    let mut objects: Vec<Ref> =
        state.objects().chain(plain_state.objects()).map(|(object, _)| object.clone()).collect();
    objects.sort();
    objects.dedup();
    for object in objects {
        let kept = read_back(&program, &stores, &object);
        let expected = plain_state.only(|_| true);
        let wanted = expected.normal();
        let wanted = wanted
            .objects()
            .find(|(known, _)| **known == object)
            .map(|(_, state)| state.fields.clone());
        if kept != wanted {
            return Verdict::Differed(format!(
                "{object}: the store has {kept:?}, the plain run {wanted:?}"
            ));
        }
    }
    Verdict::Agreed {
        took_effect: plain.is_ok(),
        phases: program.plan("t").map_or(0, |plan| plan.phases.len()),
        is_taken: matches!(plain, Err(Abort::Taken(_))),
    }
}

fn open(program: &Program, world: &Arc<QuickWorld>) -> Vec<Arc<dyn DataStore>> {
    let level = |store: &hir::Store| program.checked.levels.carrier(store.level);
    open_with(program, world.clone(), level)
}

/// Opens the stores of a program, each with the level that `level_of` gives.
pub fn open_with(
    program: &Program,
    world: Arc<dyn World>,
    level_of: impl Fn(&hir::Store) -> Level,
) -> Vec<Arc<dyn DataStore>> {
    let stores = program.checked.stores.iter().enumerate().map(|(index, store)| {
        let body = |name: &str| {
            let mut bodies = operations(index).into_iter();
            bodies.find(|(known, _)| *known == name).map(|(_, body)| body)
        };
        let declared = store.operations.iter().map(|operation| {
            let declared = StoreOperation {
                is_command: operation.is_command,
                parameters: operation.params.clone(),
                result: operation.result.clone(),
                body: body(&operation.name),
                builtin: operation.builtin.clone(),
            };
            (operation.name.clone(), declared)
        });
        let schema = StoreSchema {
            store: store.name.clone(),
            level: level_of(store),
            schema: program.schema().stored().into(),
            operations: declared.collect(),
        };
        Embedded::open(EmbeddedConfig::in_memory(), schema, world.clone())
            .expect("it opens in memory")
    });
    stores.collect()
}

fn store_of<'a>(
    program: &Program,
    stores: &'a [Arc<dyn DataStore>],
    object: &Ref,
) -> &'a Arc<dyn DataStore> {
    let declared =
        program.checked.objects.iter().find(|known| known.declared.name == *object.kind());
    &stores[declared.expect("the kind is declared").store.index()]
}

pub fn load(program: &Program, stores: &[Arc<dyn DataStore>], state: &State) {
    for (object, kept) in state.objects() {
        let mut writes = vec![Write::Create(object.clone())];
        for (field, state) in &kept.fields {
            let address = Address { object: object.clone(), field: *field };
            match state {
                FieldState::Register(value) => writes.push(Write::Assign(address, value.clone())),
                FieldState::Counter(sum) => writes.push(Write::Add(address, *sum)),
                FieldState::Set(elements) => {
                    writes.extend(
                        elements
                            .iter()
                            .map(|element| Write::Insert(address.clone(), element.clone())),
                    );
                }
                FieldState::Map(entries) => {
                    let put = |(key, value): (&_, &_)| {
                        Write::Put(address.clone(), Clone::clone(key), Clone::clone(value))
                    };
                    writes.extend(entries.iter().map(put));
                }
                FieldState::Log(lines) => {
                    writes.extend(
                        lines.iter().map(|line| Write::Append(address.clone(), line.clone())),
                    );
                }
            }
        }
        let session = Session::default();
        ready(async {
            let transaction =
                store_of(program, stores, object).begin(&session).await.expect("it is in memory");
            transaction
                .commit(Commit { writes, ..Commit::default() })
                .await
                .expect("nobody else is here");
        });
    }
}

/// Returns the non-empty fields of an object as its store has them; none if it does not exist.
fn read_back(
    program: &Program,
    stores: &[Arc<dyn DataStore>],
    object: &Ref,
) -> Option<BTreeMap<u16, FieldState>> {
    let declared = program.schema().objects[object.kind()].clone();
    let fields = declared.fields.iter().enumerate();
    let mut reads: Vec<Read> = fields
        .map(|(index, field)| {
            let address = Address { object: object.clone(), field: index as u16 };
            match &field.field_type {
                FieldType::Register(_) => Read::Register(address),
                FieldType::Counter => Read::Counter(address),
                FieldType::Set(_) => Read::Elements(address),
                FieldType::Map(..) => Read::Entries(address),
                FieldType::Log(_) => Read::LogSlice { address, from: 0, count: u64::MAX },
            }
        })
        .collect();
    reads.push(Read::Exists(object.clone()));
    let session = Session::default();
    let answers = ready(async {
        let mut transaction =
            store_of(program, stores, object).begin(&session).await.expect("it is in memory");
        transaction.read(&reads).await.expect("nobody else is here")
    });
    let mut answers: Vec<Data> = answers.into_iter().map(|answer| answer.data).collect();
    if answers.pop() != Some(Data::Bool(true)) {
        return None;
    }
    let mut kept = BTreeMap::new();
    for (index, (data, field)) in answers.into_iter().zip(&declared.fields).enumerate() {
        let state = match (data, &field.field_type) {
            (Data::Register(Some(value)), _) => FieldState::Register(value),
            (Data::Counter(sum), _) if sum != 0 => FieldState::Counter(sum),
            (Data::Values(values), FieldType::Set(_)) if !values.is_empty() => {
                FieldState::Set(values.into_iter().collect())
            }
            (Data::Values(values), _) if !values.is_empty() => FieldState::Log(values),
            (Data::Entries(entries), _) if !entries.is_empty() => {
                FieldState::Map(entries.into_iter().collect())
            }
            _ => continue,
        };
        kept.insert(index as u16, state);
    }
    Some(kept)
}
