//! A transaction that leaves no records runs in its caller's task; any other transaction has its own
//! task, which finishes it even if the caller is gone.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mingle::{Binding, Database, Session};
use mingle_model::{Ref, Time, TransactionId, Value};
use mingle_runtime::{Error, TokioWorld};
use mingle_store::{
    BoxFuture, Capabilities, DataStore, Outcome, Session as StoreSession, StoreError, Transaction,
    World,
};

const PROGRAM: &str = "\
store bank: linearizable;
store pages: eventual;

object Account in bank {
    key number: int;
    balance: int;
}

object Page in pages {
    key number: int;
    total: int;
}

transaction set(account: ref Account, balance: int) {
    account.balance = balance;
}

transaction look(account: ref Account) -> int {
    return account.balance;
}

transaction both(account: ref Account, page: ref Page) -> int {
    return account.balance + page.total;
}
";

/// The real world, with a count of the tasks spawned.
struct Counting {
    world: TokioWorld,
    spawned: AtomicUsize,
}

impl World for Counting {
    fn now(&self) -> Time {
        self.world.now()
    }

    fn elapsed(&self) -> Duration {
        self.world.elapsed()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.world.sleep(duration)
    }

    fn random(&self) -> u64 {
        self.world.random()
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        self.spawned.fetch_add(1, Ordering::SeqCst);
        self.world.spawn(task);
    }

    fn is_here(&self) -> bool {
        self.world.is_here()
    }

    fn run_blocking(&self, work: Box<dyn FnOnce() + Send>) -> BoxFuture<'static, ()> {
        self.world.run_blocking(work)
    }
}

/// A store at which no transaction can begin.
struct Broken(Arc<dyn DataStore>);

impl DataStore for Broken {
    fn capabilities(&self) -> &Capabilities {
        self.0.capabilities()
    }

    fn begin<'a>(
        &'a self,
        _session: &'a StoreSession,
    ) -> BoxFuture<'a, Result<Box<dyn Transaction>, StoreError>> {
        Box::pin(async { panic!("this store is broken") })
    }

    fn outcome(&self, id: TransactionId) -> BoxFuture<'_, Result<Outcome, StoreError>> {
        self.0.outcome(id)
    }
}

fn account() -> Value {
    Value::Ref(Ref::new("Account", Value::Int(1)))
}

async fn open(
    wrap: impl FnMut(&str, Arc<dyn DataStore>) -> Arc<dyn DataStore>,
) -> (Arc<Counting>, Arc<Database>) {
    let world = Arc::new(Counting { world: TokioWorld::new(), spawned: AtomicUsize::new(0) });
    let program = mingle::compile(PROGRAM).expect("it compiles");
    let binding = Binding::parse("").expect("it is one");
    let opened = Database::open_idle(program, &binding, None, world.clone(), wrap).await;
    (world, Arc::new(opened.expect("it opens")))
}

#[tokio::test]
async fn what_leaves_nothing_runs_in_its_callers_task() {
    let (world, database) = open(|_, store| store).await;
    let spawned = || world.spawned.load(Ordering::SeqCst);
    let before = spawned();
    let arguments = vec![account(), Value::Int(7)];
    database.call("set", arguments, Session::default()).await.expect("it is set");
    assert!(spawned() > before, "a write has a task of its own");
    let before = spawned();
    let looked = database.call("look", vec![account()], Session::default()).await;
    assert_eq!(looked.expect("it is there").result, Some(Value::Int(7)));
    let page = Value::Ref(Ref::new("Page", Value::Int(1)));
    let both = database.call("both", vec![account(), page], Session::default()).await;
    assert_eq!(both.expect("it is read").result, Some(Value::Int(7)));
    assert_eq!(spawned(), before, "two stores are read without any task");
}

#[tokio::test]
async fn elsewhere_it_has_a_task_where_its_world_is() {
    let (world, database) = open(|_, store| store).await;
    let before = world.spawned.load(Ordering::SeqCst);
    let looking = std::thread::spawn({
        let database = Arc::clone(&database);
        move || {
            let other = tokio::runtime::Builder::new_current_thread().build();
            let call = database.call("look", vec![account()], Session::default());
            other.expect("it is built").block_on(call)
        }
    });
    let looked = tokio::task::spawn_blocking(|| looking.join()).await.expect("it ends");
    let looked = looked.expect("it does not panic").expect("it is read");
    assert_eq!(looked.result, Some(Value::Int(0)), "nothing was written yet");
    assert!(world.spawned.load(Ordering::SeqCst) > before);
}

#[tokio::test]
async fn its_caller_survives_its_panic() {
    let (world, database) =
        open(|_, store| -> Arc<dyn DataStore> { Arc::new(Broken(store)) }).await;
    let before = world.spawned.load(Ordering::SeqCst);
    let looked = database.call("look", vec![account()], Session::default()).await;
    assert_eq!(looked, Err(Error::Cancelled));
    assert_eq!(world.spawned.load(Ordering::SeqCst), before);
}
