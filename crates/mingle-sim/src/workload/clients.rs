//! Clients: their calls one after another, and what they have to show between them.

use std::sync::Arc;
use std::time::Duration;

use mingle::{Session, SessionKey};
use mingle_model::Name;
use mingle_runtime::Call;
use mingle_store::World;

use super::calls::ClientCall;
use super::history::{End, Operation, done, joined};
use super::stage::{Stage, lock};

fn key() -> SessionKey {
    SessionKey::new([7; 32])
}

/// One client: its calls one after another, and what it has to show between them.
pub(super) async fn client_calls(
    stage: Arc<Stage>,
    client: usize,
    calls: Vec<(Duration, ClientCall)>,
) {
    let replica = format!("r{}", 1 + client % stage.setup.lived_in);
    let mut tokens = vec![Session::at(replica.as_str()).token(&key())];
    // What ended before, and what the last call began with.
    let (mut after, mut before): (Vec<usize>, Vec<usize>) = (Vec::new(), Vec::new());
    let mut base = tokens.clone();
    let mut twin: Option<(Vec<usize>, Vec<String>)> = None;
    for (at, call) in calls {
        let now = stage.world.elapsed();
        stage.world.sleep(at.saturating_sub(now)).await;
        // A twin begins with what the call before it began with.
        let (with, seen) = if call.is_twin {
            (base.clone(), before.clone())
        } else {
            (tokens.clone(), after.clone())
        };
        let (index, token) = one_call(&stage, client, call, with.clone(), seen.clone()).await;
        base = with;
        before.clone_from(&seen);
        if let Some((indices, others)) = twin.take() {
            after = indices;
            tokens = others;
        }
        after.push(index);
        tokens.extend(token);
        if tokens.len() > 1 {
            tokens = vec![joined(&key(), &tokens).token(&key())];
        }
        twin = None;
    }
}

/// Makes a call, and notes how it ended; gives its index and the token afterwards.
async fn one_call(
    stage: &Arc<Stage>,
    client: usize,
    call: ClientCall,
    tokens: Vec<String>,
    after: Vec<usize>,
) -> (usize, Option<String>) {
    let world = &stage.world;
    let index = call.process.map_or(client, usize::from) % stage.setup.processes;
    let (process, runtime) = loop {
        let running = lock(&stage.processes)[index].clone();
        match running.filter(|(process, _)| process.is_alive()) {
            Some(running) => break running,
            None => world.sleep(Duration::from_millis(50)).await,
        }
    };
    let session = joined(&key(), &tokens);
    if let Some(replica) = call.moves_to {
        session.move_to(format!("r{}", 1 + usize::from(replica) % stage.setup.replicas));
    }
    let began = world.elapsed();
    let (asked, kept) = (call.clone(), session.clone());
    let patience = call.patience_ms.map(|ms| Duration::from_millis(ms.into()));
    let inner = world.clone();
    let running = process.run(async move {
        let call = Call {
            session: kept,
            until: asked.until.map(|store| store.name().into()),
            ..Call::new(asked.name(), asked.arguments())
        };
        within(&inner, patience, runtime.call(call)).await
    });
    let answer = running.await.flatten();
    let token = answer.is_some().then(|| session.token(&key()));
    let end = match answer {
        None => End::Unheard,
        Some(Ok(report)) => {
            let phases = visited(&call, &report);
            done(&call, report.result.as_ref(), phases, !report.following.is_empty())
        }
        Some(Err(error)) => End::Failed(error),
    };
    let operation = Operation { client, call, began, ended: world.elapsed(), end, after };
    let mut operations = lock(&stage.operations);
    operations.push(operation);
    (operations.len() - 1, token)
}

/// How many of a call's visits its caller has waited for.
fn visited(call: &ClientCall, report: &mingle::CallReport) -> usize {
    let stores: Vec<&Name> =
        report.phases.iter().filter_map(|phase| phase.store.as_ref()).collect();
    call.visits()
        .iter()
        .take_while(|visit| stores.iter().any(|s| ***s == *visit.store.name()))
        .count()
}

/// Awaits a future for so long; then lets it go.
async fn within<T>(
    world: &Arc<dyn World>,
    patience: Option<Duration>,
    future: impl Future<Output = T>,
) -> Option<T> {
    let mut future = std::pin::pin!(future);
    let Some(patience) = patience else { return Some(future.await) };
    let mut sleep = world.sleep(patience);
    std::future::poll_fn(|context| {
        if let std::task::Poll::Ready(result) = future.as_mut().poll(context) {
            return std::task::Poll::Ready(Some(result));
        }
        sleep.as_mut().poll(context).map(|()| None)
    })
    .await
}
