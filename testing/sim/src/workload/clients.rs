//! Clients: their consecutive calls, and the session tokens that they pass between them.

use std::sync::Arc;
use std::time::Duration;

use mingle::{CallReport, Error, Session, SessionKey};
use mingle_model::Name;
use mingle_runtime::{Call, CallKey};
use mingle_store::World;

use super::calls::ClientCall;
use super::history::{Again, End, Operation, done, joined};
use super::setup::process_name;
use super::stage::{Stage, lock};

fn key() -> SessionKey {
    SessionKey::new([7; 32])
}

/// Runs one client: its consecutive calls, and the token that it passes from one to the next.
pub(super) async fn client_calls(
    stage: Arc<Stage>,
    client: usize,
    calls: Vec<(Duration, ClientCall)>,
) {
    let replica = format!("r{}", 1 + client % stage.setup.lived_in);
    let mut tokens = vec![Session::at(replica.as_str()).token(&key())];
    // The earlier calls, and the token and calls with which the last call began.
    let (mut after, mut before): (Vec<usize>, Vec<usize>) = (Vec::new(), Vec::new());
    let mut base = tokens.clone();
    let mut twin: Option<(Vec<usize>, Vec<String>)> = None;
    let keeps_last = stage.setup.extras.last_token_from.is_some_and(|first| client >= first);
    for (at, call) in calls {
        let now = stage.world.elapsed();
        stage.world.sleep(at.saturating_sub(now)).await;
        // A twin begins with the token of the previous call's begin.
        let (with, seen) = if call.is_twin {
            (base.clone(), before.clone())
        } else {
            (tokens.clone(), after.clone())
        };
        let call_is_twin = call.is_twin;
        let (index, token) = one_call(&stage, client, call, with.clone(), seen.clone()).await;
        base = with;
        before.clone_from(&seen);
        if let Some((indices, others)) = twin.take() {
            after = indices;
            tokens = others;
        }
        after.push(index);
        // The token after a call has all that the token before it had, or what makes that needless.
        if keeps_last && !call_is_twin && token.is_some() {
            tokens.clear();
        }
        tokens.extend(token);
        if tokens.len() > 1 {
            tokens = vec![joined(&key(), &tokens).token(&key())];
        }
        twin = None;
    }
}

/// Makes a call and records its end; returns its index and the token afterwards.
async fn one_call(
    stage: &Arc<Stage>,
    client: usize,
    call: ClientCall,
    tokens: Vec<String>,
    after: Vec<usize>,
) -> (usize, Option<String>) {
    let world = &stage.world;
    let session = joined(&key(), &tokens);
    if let Some(replica) = call.moves_to {
        session.move_to(format!("r{}", 1 + usize::from(replica) % stage.setup.replicas));
    }
    let began = world.elapsed();
    let patience = call.patience_ms.map(|ms| Duration::from_millis(ms.into()));
    let process = call.process.map_or(client, usize::from);
    let answer = attempt(stage, process, &call, &session, patience).await;
    let ended = world.elapsed();
    let token = answer.is_some().then(|| session.token(&key()));
    let end = end_of(&call, answer.as_ref());
    let again = again(stage, &call, &tokens, answer.as_ref()).await;
    let operation = Operation { client, call, began, ended, end, after, again };
    let mut operations = lock(&stage.operations);
    operations.push(operation);
    (operations.len() - 1, token)
}

/// An answer; `None` if the caller went away first or its process died.
type Answered = Option<Result<CallReport, Error>>;

/// Makes a call once, at a process.
async fn attempt(
    stage: &Arc<Stage>,
    process: usize,
    call: &ClientCall,
    session: &Session,
    patience: Option<Duration>,
) -> Answered {
    let world = &stage.world;
    let index = process % stage.setup.processes;
    let (process, runtime) = loop {
        let running = lock(&stage.processes)[index].clone();
        match running.filter(|(process, _)| process.is_alive()) {
            Some(running) => break running,
            None => world.sleep(Duration::from_millis(50)).await,
        }
    };
    let (asked, session, inner) = (call.clone(), session.clone(), world.clone());
    let running = process.run(async move {
        let call = Call {
            session,
            until: asked.until.map(|store| store.name().into()),
            key: asked.is_keyed.then(|| CallKey::new("client", &asked.tag_text())),
            ..Call::new(asked.name(), asked.arguments())
        };
        Box::pin(within(&inner, patience, runtime.call(call))).await
    });
    let answered = running.await;
    if answered.is_none() {
        count_death(stage, index);
    }
    answered.flatten()
}

/// Counts the death of a process during a call, by the state of its links.
fn count_death(stage: &Stage, index: usize) {
    let name = process_name(index);
    let states = [
        (
            "origins that died in a call while a link of theirs was cut",
            stage.partitions.has_cut(&name),
        ),
        (
            "origins that died in a call while a link of theirs was slow",
            stage.partitions.has_slow(&name),
        ),
    ];
    let mut counted = lock(&stage.counted);
    for (state, _) in states.into_iter().filter(|(_, holds)| *holds) {
        *counted.entry(state.to_owned()).or_default() += 1;
    }
}

fn end_of(call: &ClientCall, answer: Option<&Result<CallReport, Error>>) -> End {
    match answer {
        None => End::Unheard,
        Some(Ok(report)) => {
            let phases = visited(call, report);
            done(call, report.result.as_ref(), phases, !report.following.is_empty())
        }
        Some(Err(error)) => End::Failed(error.clone()),
    }
}

/// Repeats a call by its key at another process, if that is the same call: it has taken effect, or
/// may have. A caller that was answered has a fresh session by then; an unanswered one still has
/// the session it began with. The key is stored where the call writes first; at a store whose
/// replicas do not agree it need not be known yet.
async fn again(
    stage: &Arc<Stage>,
    call: &ClientCall,
    tokens: &[String],
    first: Option<&Result<CallReport, Error>>,
) -> Option<Again> {
    let process = usize::from(call.again?);
    let first_written = call.visits().into_iter().find(|visit| !visit.writes.is_empty())?.store;
    let is_same = match first {
        None | Some(Ok(_)) => true,
        Some(Err(error)) => matches!(
            error,
            Error::Incomplete { .. } | Error::ResultGone { .. } | Error::Unknown { .. }
        ),
    };
    if first_written.is_causal() || !is_same {
        return None;
    }
    let has_answer = matches!(first, Some(Ok(_)));
    let session = if has_answer { Session::at("r1") } else { joined(&key(), tokens) };
    let second = attempt(stage, process, call, &session, None).await;
    Some(match (first, second) {
        (_, None | Some(Err(Error::Store(_) | Error::Unknown { .. } | Error::Cancelled))) => {
            Again::Unanswered
        }
        (Some(Ok(first)), Some(Ok(second))) if !second.is_repeated => {
            Again::Otherwise(format!("it ran twice: {first:?}, then {second:?}"))
        }
        (Some(Ok(first)), Some(Ok(second))) => match (&first.result, &second.result) {
            (Some(first), Some(second)) if first != second => {
                Again::Otherwise(format!("it gave {first} and then {second}"))
            }
            _ => Again::Same,
        },
        (_, Some(Err(error @ Error::KeyReused)))
        | (Some(Ok(_)), Some(Err(error @ Error::Require { .. }))) => {
            Again::Otherwise(format!("it gave {first:?}, and then {error}"))
        }
        (_, Some(Err(_))) => Again::Unanswered,
        (_, Some(Ok(_))) => Again::Late,
    })
}

/// Returns the number of the call's visits that its caller has waited for.
fn visited(call: &ClientCall, report: &mingle::CallReport) -> usize {
    let stores: Vec<&Name> =
        report.phases.iter().filter_map(|phase| phase.store.as_ref()).collect();
    call.visits()
        .iter()
        .take_while(|visit| stores.iter().any(|s| ***s == *visit.store.name()))
        .count()
}

/// Awaits a future for a limited time, then drops it.
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
