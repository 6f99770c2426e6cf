//! The making of indexes over objects that are there, while other processes go on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use mingle_model::random::Random;
use mingle_services::Engine;
use mingle_store::{StoreError, Write};
use mingle_store_redis::{OpenError, Redis, RedisConfig};

use crate::indexes::{BOTH, differs, found, item, items, of_color, paint, put};
use crate::support::{Other, config, connect, refusal, write};

const SEED: u64 = 20_261_130;
const OBJECTS: usize = 6_000;
const PLAIN: &[(&[&str], bool)] = &[];
const SHELVES: &[(&[&str], bool)] = &[(&["shelf", "color"], false)];

fn names(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("{number:05}")).collect()
}

/// Gives each object a color of its own.
async fn fill(store: &Redis, names: &[String]) {
    for part in names.chunks(1_000) {
        let writes = part.iter().flat_map(|name| [paint(name, name), put(name, 1)]);
        write(store, writes.collect()).await.expect("it writes");
    }
}

fn reason(result: Result<Arc<Redis>, OpenError>) -> String {
    match result {
        Err(OpenError::Config { reason, .. }) => reason,
        Err(error) => panic!("another error: {error}"),
        Ok(_) => panic!("it was opened"),
    }
}

/// Returns the state of `Item`.
async fn state(other: &mut Other, config: &RedisConfig) -> String {
    let key = format!("{}!indexes", config.prefix_of("suite"));
    match other.words(&["HGET", &key, "Item"]).await {
        redis::Value::BulkString(state) => String::from_utf8(state).expect("text"),
        _ => String::new(),
    }
}

/// A process of the earlier program writes until the store refuses it, while two of the later one open the store.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_new_index_has_all_that_an_earlier_process_wrote() {
    let Some(server) = mingle_services::shared(Engine::Redis).await else { return };
    println!("seed {SEED}");
    let config = config(server.url());
    let names = names(OBJECTS);
    let before = connect(config.clone(), items(PLAIN)).await.expect("it opens");
    fill(&before, &names).await;
    let written = Arc::new(AtomicU64::new(0));
    let is_open = Arc::new(AtomicBool::new(false));
    let writer = tokio::spawn({
        let (before, names, written) = (Arc::clone(&before), names.clone(), Arc::clone(&written));
        let is_open = Arc::clone(&is_open);
        async move {
            let mut random = Random::new(SEED);
            loop {
                let name = random.pick(&names);
                let color = format!("new {}", written.load(Ordering::Relaxed));
                let change = match random.below(4) {
                    0 => Write::Delete(item(name)),
                    _ => paint(name, &color),
                };
                let is_late = is_open.load(Ordering::Relaxed);
                match write(&before, vec![change]).await {
                    Ok(()) if is_late => panic!("a write after the indexes were made"),
                    Ok(()) => written.fetch_add(1, Ordering::Relaxed),
                    Err(StoreError::Unavailable { reason, .. }) => {
                        assert!(reason.contains("indexes of Item are being made"), "{reason}");
                        continue;
                    }
                    Err(error) => return error,
                };
            }
        }
    });
    while written.load(Ordering::Relaxed) < 50 {
        tokio::task::yield_now().await;
    }
    let (one, two) =
        tokio::join!(connect(config.clone(), items(BOTH)), connect(config.clone(), items(BOTH)));
    let (one, two) = (one.expect("it opens"), two.expect("it opens"));
    is_open.store(true, Ordering::Relaxed);
    let refused = writer.await.expect("it does not fail");
    let why = refusal::<()>(Err(refused));
    assert!(why.contains("have Item:color unique; Item:shelf,color here"), "{why}");
    assert!(why.contains("this program declares no index"), "{why}");
    for store in [&one, &two] {
        assert_eq!(differs(store, &names).await, None);
    }
    // The entries of both indexes are there once, and nothing is left of them afterwards.
    let prefix = config.prefix_of("suite");
    let mut other = Other::at(server.url()).await;
    let count = |index: &str| format!("ZCARD {prefix}!index:Item:{index}");
    assert_eq!(other.run(&count("color")).await, other.run(&count("shelf,color")).await);
    write(&two, vec![paint("00000", "last")]).await.expect("it writes");
    let again = connect(config.clone(), items(PLAIN)).await.expect("it opens");
    assert_eq!(state(&mut other, &config).await, "");
    assert_eq!(other.run(&count("color")).await, redis::Value::Int(0));
    let left = other.run(&format!("EXISTS {prefix}Item!index:00000")).await;
    assert_eq!(left, redis::Value::Int(0));
    write(&again, vec![paint("00000", "later")]).await.expect("it writes");
    let why = refusal(write(&one, vec![put("00001", 3)]).await);
    assert!(why.contains("have no index here") && why.contains("Item:color unique"), "{why}");
    let why = refusal(crate::support::read(&one, &[of_color("last")]).await);
    assert!(why.contains("have no index here"), "{why}");
}

/// A process stops amid the making: its successor makes the indexes anew, and until then no process writes.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_process_that_stops_amid_the_making_has_a_successor() {
    let Some(server) = mingle_services::shared(Engine::Redis).await else { return };
    let config = config(server.url());
    let names = names(OBJECTS);
    let before = connect(config.clone(), items(SHELVES)).await.expect("it opens");
    fill(&before, &names).await;
    let making = tokio::spawn(connect(config.clone(), items(BOTH)));
    let mut other = Other::at(server.url()).await;
    let entries = format!("ZCARD {}!index:Item:color", config.prefix_of("suite"));
    while matches!(other.run(&entries).await, redis::Value::Int(count) if count < 1_000) {
        assert!(!making.is_finished(), "it was made before it could stop");
    }
    making.abort();
    assert!(making.await.is_err_and(|error| error.is_cancelled()), "it was stopped");
    let stopped = state(&mut other, &config).await;
    assert!(stopped.starts_with('?') && stopped.ends_with(" Item:shelf,color"), "{stopped}");
    match write(&before, vec![paint("00000", "red")]).await {
        Err(StoreError::Unavailable { reason, .. }) => {
            assert!(reason.contains("are being made"), "{reason}");
        }
        other => panic!("{other:?}"),
    }
    let after = connect(config.clone(), items(BOTH)).await.expect("it opens");
    assert_eq!(differs(&after, &names).await, None);
    assert_eq!(state(&mut other, &config).await, "Item:color unique; Item:shelf,color");
    write(&after, vec![paint("00000", "red")]).await.expect("it writes");
    assert_eq!(found(&after, of_color("red")).await, ["00000"]);
}

/// Objects break a new `unique`: the store is not opened, and processes of the earlier program go on with their indexes.
#[tokio::test]
async fn a_unique_that_objects_break_is_refused_and_the_earlier_indexes_stay() {
    let Some(server) = mingle_services::shared(Engine::Redis).await else { return };
    let config = config(server.url());
    let names = names(2_500);
    let before = connect(config.clone(), items(SHELVES)).await.expect("it opens");
    fill(&before, &names).await;
    // Both at the edge of a page of the search.
    write(&before, vec![paint("01000", "00999"), Write::Delete(item("00000"))])
        .await
        .expect("it writes");
    let why = reason(connect(config.clone(), items(BOTH)).await);
    let pair = "Item[\"00999\"] and Item[\"01000\"] have the same color: \"00999\"";
    assert!(why.contains(pair), "{why}");
    let mut other = Other::at(server.url()).await;
    assert_eq!(state(&mut other, &config).await, "Item:shelf,color");
    write(&before, vec![put("00001", 2), paint("01000", "own")]).await.expect("it writes");
    let entries = format!("ZCARD {}!index:Item:shelf,color", config.prefix_of("suite"));
    assert_eq!(other.run(&entries).await, redis::Value::Int(2_499));
    let after = connect(config, items(BOTH)).await.expect("it opens");
    assert_eq!(differs(&after, &names).await, None);
}

/// Another process takes over amid the making: the one that was overtaken changes nothing any more, and once the other
/// one has stopped it makes the indexes anew.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_process_that_was_overtaken_changes_nothing() {
    let Some(server) = mingle_services::shared(Engine::Redis).await else { return };
    let config = config(server.url());
    let names = names(OBJECTS);
    let before = connect(config.clone(), items(PLAIN)).await.expect("it opens");
    fill(&before, &names).await;
    let making = tokio::spawn(connect(config.clone(), items(BOTH)));
    let mut other = Other::at(server.url()).await;
    let prefix = config.prefix_of("suite");
    let entries = format!("ZCARD {prefix}!index:Item:color");
    while matches!(other.run(&entries).await, redis::Value::Int(count) if count < 1_000) {
        assert!(!making.is_finished(), "it was made before another one could take over");
    }
    other.words(&["HSET", &format!("{prefix}!indexes"), "Item", "?another:1 "]).await;
    let had = other.run(&entries).await;
    for _ in 0..200 {
        assert_eq!(state(&mut other, &config).await, "?another:1 ");
        assert_eq!(other.run(&entries).await, had);
    }
    let after = making.await.expect("it does not fail").expect("it opens");
    assert_eq!(state(&mut other, &config).await, "Item:color unique; Item:shelf,color");
    assert_eq!(differs(&after, &names).await, None);
}
