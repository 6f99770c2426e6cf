//! The examples over every pairing of engines that can provide their levels.

use mingle_model::Level;
use mingle_services::Engine;

use crate::engines::site::{RealSite, block_on, bound, bound_to_several, several, space};
use crate::support::scenarios;

/// The possible engines of a store.
const ENGINES: [Option<Engine>; 4] =
    [None, Some(Engine::Postgres), Some(Engine::Redis), Some(Engine::Cassandra)];

#[test]
fn the_examples_run_over_every_pairing_of_engines() {
    for scenario in scenarios::all::<RealSite>() {
        let program = mingle::compile(scenario.text).expect("the example is right");
        let stores: Vec<&str> = program.checked.stores.iter().map(|store| &*store.name).collect();
        let [first, second] = stores[..] else { panic!("the examples have two stores") };
        for (one, other) in pairings() {
            let space = space();
            let text = carried(scenario.text, other);
            let one_bound = block_on(bound(first, one, &space));
            let other_bound = block_on(bound(second, other, &space));
            let (Some(one_bound), Some(other_bound)) = (one_bound, other_bound) else { continue };
            println!("{}: {first} in {one:?}, {second} in {other:?}", scenario.name);
            let site = RealSite::new(&text, &(one_bound + &other_bound));
            (scenario.run)(&site);
            assert!(site.settles(), "{}: {one:?}, {other:?}", scenario.name);
        }
    }
}

/// The example, with its weak store at the level that the engine gives. Cassandra is eventual, so one
/// of two writes may be seen before the other; the examples end in the same state.
fn carried(text: &str, weak: Option<Engine>) -> String {
    match weak {
        Some(Engine::Cassandra) => text.replace(": causal", ": eventual"),
        _ => text.to_owned(),
    }
}

/// The strong store is never in Cassandra, which is eventual.
fn pairings() -> impl Iterator<Item = (Option<Engine>, Option<Engine>)> {
    let all = ENGINES.into_iter().flat_map(|one| ENGINES.map(|other| (one, other)));
    all.filter(|pairing| *pairing != (None, None) && pairing.0 != Some(Engine::Cassandra))
}

/// The weaker store of each example over three PostgreSQL servers, the stronger one in each engine.
#[test]
fn the_examples_run_with_a_store_over_several_servers() {
    let Some(servers) = block_on(several()) else { return };
    for scenario in scenarios::all::<RealSite>() {
        let program = mingle::compile(scenario.text).expect("the example is right");
        let levels = &program.checked.levels;
        let is_weak = |level| matches!(levels.carrier(level), Level::Causal | Level::Eventual);
        let stores = &program.checked.stores;
        assert!(stores.iter().any(|store| is_weak(store.level)), "{}", scenario.name);
        // Cassandra is eventual, so no stronger store is in it.
        let strong = ENGINES.into_iter().filter(|engine| *engine != Some(Engine::Cassandra));
        for engine in strong {
            let space = space();
            let mut binding = String::new();
            for store in stores {
                if is_weak(store.level) {
                    binding += &bound_to_several(&store.name, &servers, &space);
                } else if let Some(one) = block_on(bound(&store.name, engine, &space)) {
                    binding += &one;
                } else {
                    return;
                }
            }
            println!("{}: {engine:?} and several servers", scenario.name);
            let site = RealSite::new(scenario.text, &binding);
            (scenario.run)(&site);
            assert!(site.settles(), "{}: {engine:?} and several servers", scenario.name);
        }
    }
}
