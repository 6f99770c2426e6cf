//! One run of a script: over stores in memory, in virtual time, with one seed and at most one crash.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use mingle::{Binding, Call, CallKey, CallReport, Database, Error, Session};
use mingle_lang::Program;
use mingle_lang::syntax::Span;
use mingle_model::Value;
use mingle_runtime::Runtime;
use mingle_store::{DataStore, TestWorld, World};

use super::script::{Act, Called, Deed, Evaluation, Scene, Script};
use super::world::{Crash, Process, ProcessWorld, Seen, Steps};

/// The program and the stores of a run.
pub struct Setting<'a> {
    /// The program.
    pub program: &'a Arc<Program>,
    /// The binding of its stores, all embedded.
    pub binding: &'a Binding,
    /// True if clients repeat a call under its key; without, a repeated call may take effect twice.
    pub has_keys: bool,
}

/// A run that went well.
pub struct Played {
    /// The number of steps of the process.
    pub steps: u64,
}

/// A run that did not.
#[derive(Debug)]
pub struct Fault {
    /// The step of the test.
    pub span: Option<Span>,
    /// The fault in one line.
    pub message: String,
    /// More about it, line by line.
    pub details: Vec<String>,
    /// The place of the crash, if there was one.
    pub crash: Option<String>,
}

/// The deadline of a call, in virtual time: a helper may first have to find out that a process died.
const DEADLINE: Duration = Duration::from_mins(2);

/// The number of times that a client repeats a call that has no answer.
const REPEATS_MAX: u32 = 50;

/// The longest wait for a test's transactions at its end, in virtual time.
const SETTLE_MAX: Duration = Duration::from_mins(10);

/// The time after which every write has arrived at every replica.
const ARRIVED: Duration = Duration::from_mins(1);

/// Runs a script.
pub fn play(
    setting: &Setting<'_>,
    script: &Script,
    seed: u64,
    crash: Option<Crash>,
) -> Result<Played, Fault> {
    let world = TestWorld::new(seed);
    let steps = Steps::new(crash);
    let ended = world.block_on(async {
        let stage = Stage::open(setting, &world, &steps).await?;
        stage.play(script).await
    });
    match ended {
        Ok(()) => Ok(Played { steps: steps.count() }),
        Err(mut fault) => {
            fault.crash = steps.place();
            Err(fault)
        }
    }
}

fn fault(span: Option<Span>, message: impl Into<String>) -> Fault {
    Fault { span, message: message.into(), details: Vec::new(), crash: None }
}

/// The stores, the process under test, and a process that only looks.
struct Stage {
    world: Arc<TestWorld>,
    program: Arc<Program>,
    settings: mingle_runtime::Settings,
    stores: Vec<Arc<dyn DataStore>>,
    steps: Arc<Steps>,
    /// The process under test, in its present life.
    host: Mutex<Host>,
    observer: Database,
    /// True if calls have keys, so that a client can repeat them.
    has_keys: bool,
}

#[derive(Clone)]
struct Host {
    process: Arc<Process>,
    database: Arc<Database>,
}

/// The values that a run has bound to names.
type Values = BTreeMap<String, Value>;

impl Stage {
    async fn open(
        setting: &Setting<'_>,
        world: &Arc<TestWorld>,
        steps: &Arc<Steps>,
    ) -> Result<Self, Fault> {
        let mut stores = Vec::new();
        let (program, binding) = (setting.program, setting.binding);
        let opened =
            Database::open_idle(program.clone(), binding, None, world.clone(), |_, store| {
                stores.push(store.clone());
                store
            });
        opened.await.map_err(|error| fault(None, error.to_string()))?;
        // `open_idle` opens a store after the store whose engine it shares, so not in their order.
        let order = |store: &Arc<dyn DataStore>| {
            let name = &store.capabilities().store;
            program.checked.stores.iter().position(|declared| declared.name == *name)
        };
        stores.sort_by_key(order);
        let observer = Process::start(world.clone());
        let settings = binding.settings.clone();
        let seen = stores.iter().map(|store| Seen::around(store.clone(), &observer, None));
        let observing = Arc::new(ProcessWorld(observer.clone()));
        let runtime = Runtime::new(program.clone(), seen.collect(), observing, settings.clone());
        let host = start(world, program, &settings, &stores, steps);
        Ok(Self {
            world: world.clone(),
            program: program.clone(),
            settings,
            stores,
            steps: steps.clone(),
            host: Mutex::new(host),
            observer: Database::over(runtime),
            has_keys: setting.has_keys && steps.can_crash(),
        })
    }

    /// Returns the process under test, and starts it again if it has crashed.
    fn host(&self) -> Host {
        let mut host = self.host.lock().unwrap_or_else(PoisonError::into_inner);
        if !host.process.is_alive() {
            *host = start(&self.world, &self.program, &self.settings, &self.stores, &self.steps);
        }
        host.clone()
    }

    async fn play(&self, script: &Script) -> Result<(), Fault> {
        let sessions: Vec<Session> = script
            .clients
            .iter()
            .map(|at| at.as_ref().map_or_else(Session::default, |at| Session::at(at.as_str())))
            .collect();
        let (mut values, mut number) = (Values::new(), 0);
        for scene in &script.body {
            match scene {
                Scene::Alone(act) => {
                    let bound = self.act(act, &sessions, &values, number).await?;
                    values.extend(bound);
                    number += 1;
                }
                Scene::Together(acts) => {
                    let running = acts.iter().zip(number..);
                    let running = running.map(|(act, number)| {
                        let acting = self.act(act, &sessions, &values, number);
                        Box::pin(acting)
                            as Pin<Box<dyn Future<Output = Result<Values, Fault>> + '_>>
                    });
                    let ended = all(running.collect()).await;
                    for bound in ended {
                        values.extend(bound?);
                    }
                    number += acts.len();
                }
                Scene::Wait(time) => self.world.sleep(*time).await,
                Scene::Settle(span) => {
                    self.settle(Some(*span)).await?;
                    self.world.sleep(ARRIVED).await;
                }
            }
        }
        self.settle(None).await
    }

    /// Waits until no transaction of the process, or of its earlier lives, is left.
    async fn settle(&self, span: Option<Span>) -> Result<(), Fault> {
        loop {
            let Host { process, database } = self.host();
            let looking =
                async { (database.settle(SETTLE_MAX).await, database.unfinished().await) };
            let (is_settled, left) = tokio::select! {
                biased;
                () = process.died() => continue,
                found = looking => found,
            };
            let left = left.map_err(|error| fault(span, error.to_string()))?;
            if is_settled && left.is_empty() {
                return Ok(());
            }
            let mut found = fault(span, "transactions are left unfinished");
            found.details = left.iter().map(crate::rest::sentence).collect();
            return Err(found);
        }
    }

    /// Does a step; returns the values that it binds.
    async fn act(
        &self,
        act: &Act,
        sessions: &[Session],
        values: &Values,
        number: usize,
    ) -> Result<Values, Fault> {
        let (session, span) = (&sessions[act.client], act.span);
        let mut bound = Values::new();
        match &act.deed {
            Deed::Call { call, bound: name, attempt } => {
                let ended = self.call(call, session, values, number, span).await?;
                let value = match ended {
                    Ok(report) if !attempt => report.result,
                    Ok(_) => Some(Value::Bool(true)),
                    Err(Error::Require { .. } | Error::Exists(_) | Error::Taken(_)) if *attempt => {
                        Some(Value::Bool(false))
                    }
                    Err(error) => {
                        let message = format!("`{}` failed: {}", call.transaction, words(&error));
                        return Err(fault(Some(span), message));
                    }
                };
                bound.extend(name.clone().zip(value));
            }
            Deed::Fails(call, code) => {
                let ended = self.call(call, session, values, number, span).await?;
                check_failure(&call.transaction, ended, code.as_deref())
                    .map_err(|message| fault(Some(span), message))?;
            }
            Deed::Equal(call, wanted) => {
                let ended = self.call(call, session, values, number, span).await?;
                let report = ended.map_err(|error| {
                    let message = format!("`{}` failed: {}", call.transaction, words(&error));
                    fault(Some(span), message)
                })?;
                let expected = self.evaluate(wanted, session, values, span).await?;
                if report.result != expected.result {
                    let show = |name: &str, report| self.observer.result_text(name, report);
                    let message = format!("`{}` gave another result", call.transaction);
                    let mut found = fault(Some(span), message);
                    found.details = vec![
                        format!("result:   {}", show(&call.transaction, &report)),
                        format!("expected: {}", show(&wanted.transaction, &expected)),
                    ];
                    return Err(found);
                }
            }
            Deed::Expect(value, sides) => {
                self.expect(value, sides.as_ref(), session, values, span).await?;
            }
        }
        Ok(bound)
    }

    /// Checks that an expression is true.
    async fn expect(
        &self,
        value: &Evaluation,
        sides: Option<&(Evaluation, Evaluation)>,
        session: &Session,
        values: &Values,
        span: Span,
    ) -> Result<(), Fault> {
        let report = self.evaluate(value, session, values, span).await?;
        if report.result == Some(Value::Bool(true)) {
            return Ok(());
        }
        let mut found = fault(Some(span), "this is not so");
        let sides =
            sides.into_iter().flat_map(|(left, right)| [("left: ", left), ("right:", right)]);
        for (name, side) in sides {
            let report = self.evaluate(side, session, values, span).await?;
            if let Some(Value::String(text)) = report.result {
                found.details.push(format!("{name} {text}"));
            }
        }
        Err(found)
    }

    /// Evaluates an expression in a session, by the process that only looks.
    async fn evaluate(
        &self,
        evaluation: &Evaluation,
        session: &Session,
        values: &Values,
        span: Span,
    ) -> Result<CallReport, Fault> {
        let arguments = evaluation.variables.iter().filter_map(|name| values.get(name).cloned());
        let mut call = Call::new(evaluation.transaction.clone(), arguments.collect());
        call.session = session.clone();
        call.deadline = Some(DEADLINE);
        let ended = self.observer.submit(call).await;
        ended.map_err(|error| fault(Some(span), words(&error)))
    }

    /// Calls a transaction at the process under test. If the process crashes, or cannot tell how the
    /// call ended, the call is repeated under its key, as a client would.
    async fn call(
        &self,
        called: &Called,
        session: &Session,
        values: &Values,
        number: usize,
        span: Span,
    ) -> Result<Result<CallReport, Error>, Fault> {
        let mut arguments = Vec::new();
        for argument in &called.arguments {
            arguments.extend(self.evaluate(argument, session, values, span).await?.result);
        }
        let mut call = Call::new(called.transaction.clone(), arguments);
        call.session = session.clone();
        call.deadline = Some(DEADLINE);
        call.key = self.has_keys.then(|| CallKey::new("test", &format!("step {number}")));
        let mut repeats = 0;
        loop {
            let Host { process, database } = self.host();
            let ended = tokio::select! {
                biased;
                () = process.died() => continue,
                ended = database.submit(call.clone()) => ended,
            };
            match ended {
                Err(error) if call.key.is_some() && may_be_repeated(&error) => {
                    repeats += 1;
                    if repeats > REPEATS_MAX {
                        return Ok(Err(error));
                    }
                }
                ended => return Ok(ended),
            }
        }
    }
}

/// Starts a process over the stores.
fn start(
    world: &Arc<TestWorld>,
    program: &Arc<Program>,
    settings: &mingle_runtime::Settings,
    stores: &[Arc<dyn DataStore>],
    steps: &Arc<Steps>,
) -> Host {
    let process = Process::start(world.clone());
    let seen = stores.iter().map(|store| Seen::around(store.clone(), &process, Some(steps)));
    let inner = Arc::new(ProcessWorld(process.clone()));
    let runtime = Runtime::new(program.clone(), seen.collect(), inner, settings.clone());
    runtime.start_sweeps();
    Host { process, database: Arc::new(Database::over(runtime)) }
}

/// True if a client may call again under the same key.
fn may_be_repeated(error: &Error) -> bool {
    matches!(
        error,
        Error::Conflict { .. }
            | Error::Cancelled
            | Error::Waiting { .. }
            | Error::Unknown { .. }
            | Error::Incomplete { .. }
            | Error::Store(
                mingle::StoreError::Unavailable { .. } | mingle::StoreError::Unknown { .. }
            )
    )
}

/// Checks that a call failed as expected.
fn check_failure(
    name: &str,
    ended: Result<CallReport, Error>,
    code: Option<&str>,
) -> Result<(), String> {
    match (ended, code) {
        (Ok(_), _) => Err(format!("`{name}` succeeded, and was expected to fail")),
        (Err(Error::Require { code: Some(found), .. }), Some(code)) if *found == *code => Ok(()),
        (Err(Error::Require { .. } | Error::Exists(_) | Error::Taken(_)), None) => Ok(()),
        (Err(error), Some(code)) => Err(format!(
            "`{name}` was expected to fail with the code `{code}`, and failed otherwise: {}",
            words(&error)
        )),
        (Err(error), None) => Err(format!(
            "`{name}` was expected to fail by a `require`, and failed otherwise: {}",
            words(&error)
        )),
    }
}

/// Returns an error in words, with the code of a `require`.
fn words(error: &Error) -> String {
    match error {
        Error::Require { code: Some(code), message } => format!("{message} [{code}]"),
        other => other.to_string(),
    }
}

/// Runs futures at the same time, and returns their results in order.
async fn all<T>(mut running: Vec<Pin<Box<dyn Future<Output = T> + '_>>>) -> Vec<T> {
    let mut ended: Vec<Option<T>> = running.iter().map(|_| None).collect();
    poll_fn(|context| {
        for (future, ended) in running.iter_mut().zip(&mut ended) {
            if ended.is_none()
                && let Poll::Ready(result) = future.as_mut().poll(context)
            {
                *ended = Some(result);
            }
        }
        if ended.iter().all(Option::is_some) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    ended.into_iter().flatten().collect()
}
