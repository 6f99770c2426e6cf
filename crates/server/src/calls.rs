//! Calling transactions.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use mingle::{Call, CallReport, Database, Error, Watcher};
use mingle_lang::Plan;
use mingle_model::{Name, Value};
use serde_json::json;

use crate::app::{App, Permit};
use crate::arguments::arguments;
use crate::budget::Held;
use crate::keys::{Entered, key_of};
use crate::overload::Ending;
use crate::problem::{Code, Problem, SESSION};
use crate::router::json as json_response;
use crate::{body, crash, live};

/// The header that marks the answer to an earlier call with the same idempotency key.
const REPEATED: HeaderName = HeaderName::from_static("mingle-repeated");

pub(crate) type Pairs = Result<Query<Vec<(String, String)>>, QueryRejection>;

/// A call that has been admitted and may run.
pub(crate) struct Ready {
    pub(crate) call: Call,
    /// Counts the call as running until it is dropped.
    permit: Permit,
    crash: Option<crash::Asked>,
    /// The memory of its arguments.
    _held: Held,
    _entered: Option<Entered>,
}

/// The answer to a call.
pub(crate) struct Answer {
    /// The body, as JSON.
    pub(crate) body: Result<String, Problem>,
    pub(crate) session: Option<String>,
    pub(crate) is_repeated: bool,
}

/// `POST /v1/transactions/{transaction}`
pub(crate) async fn call(
    State(app): State<Arc<App>>,
    path: Result<Path<String>, PathRejection>,
    query: Pairs,
    request: Request,
) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    let rights = app.rights(&parts.headers, &parts.uri)?;
    let name = path.map_err(|error| unreadable(&error.body_text()))?.0;
    let program = app.database.program();
    let Some(plan) = program.plan(&name).cloned() else {
        let detail = format!("no transaction is called {name:?}");
        return Err(Problem::new(Code::NotFound, detail));
    };
    if !rights.may_call(&name) {
        let detail = format!("the token of {} does not allow {name}", rights.name);
        return Err(Problem::new(Code::Forbidden, detail));
    }
    let asked = Asked::read(&app, query)?;
    let crash = crash::Asked::of(&parts.headers, app.config.crash.as_ref(), plan.phases.len())?;
    let key = key_of(&parts.headers, &rights)?;
    let session = app.session(&parts.headers)?;
    let (bytes, mut held) = body::read(&app, &parts.headers, body).await?;
    let arguments = decode(&app, &plan, bytes, &mut held).await?;
    let call = Call {
        session,
        until: asked.until,
        deadline: Some(asked.deadline),
        key,
        principal: rights.principal(),
        ..Call::new(plan.name.clone(), arguments)
    };
    let permit = app.admit_call(&name).await?;
    let entered = app.running.enter(key)?;
    let ready = Ready { call, permit, crash, _held: held, _entered: entered };
    if wants_events(&parts.headers) {
        return Ok(live::stream(app, ready));
    }
    Ok(run(&app, ready, None).await.into_response())
}

/// Decodes the arguments in a body. From then on the request's memory is counted by the arguments.
async fn decode(
    app: &App,
    plan: &Arc<Plan>,
    bytes: Bytes,
    held: &mut Held,
) -> Result<Vec<Value>, Problem> {
    let (program, plan) = (app.database.program().clone(), plan.clone());
    let decoding =
        app.code(bytes.len(), move || arguments(&program, &plan, &body::members(&bytes)?));
    let arguments = decoding.await?;
    held.become_bytes(arguments.iter().map(Value::weight).sum())?;
    Ok(arguments)
}

/// The options in the query of a call.
struct Asked {
    deadline: Duration,
    until: Option<Name>,
}

impl Asked {
    fn read(app: &App, query: Pairs) -> Result<Self, Problem> {
        let longest = app.config.deadline_max;
        let usual = app.database.runtime().settings().deadline.min(longest);
        let mut asked = Self { deadline: usual, until: None };
        for (name, value) in query.map_err(|error| unreadable(&error.body_text()))?.0 {
            match &*name {
                "deadline_ms" => {
                    let bound = longest.as_millis();
                    let ms = value.parse().ok().filter(|ms| (1..=bound).contains(&u128::from(*ms)));
                    let ms = ms.ok_or_else(|| {
                        let detail = format!("deadline_ms is 1 to {bound}, found {value:?}");
                        Problem::new(Code::InvalidArgument, detail).member("path", "deadline_ms")
                    })?;
                    asked.deadline = Duration::from_millis(ms);
                }
                "until" => asked.until = Some(value.into()),
                _ => return Err(unknown_parameter(&name, "deadline_ms and until")),
            }
        }
        Ok(asked)
    }
}

pub(crate) fn unknown_parameter(name: &str, known: &str) -> Problem {
    let detail = format!("no parameter of the query is called {name:?}; there are {known}");
    Problem::new(Code::InvalidArgument, detail).member("path", name)
}

pub(crate) fn unreadable(why: &str) -> Problem {
    Problem::new(Code::InvalidArgument, why)
}

fn wants_events(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter();
    accepted.filter_map(|value| value.to_str().ok()).any(|text| text.contains("text/event-stream"))
}

/// Runs a call to its answer.
pub(crate) async fn run(app: &App, ready: Ready, watcher: Option<Watcher>) -> Answer {
    let Ready { mut call, mut permit, crash, _held, _entered } = ready;
    let (name, session) = (call.transaction.clone(), call.session.clone());
    let may_repeat = call.key.is_some();
    let watcher = match crash {
        Some(asked) => Some(asked.watcher(watcher)),
        None => watcher,
    };
    call.watcher = Some(app.metrics.watcher(watcher));
    let begin = Instant::now();
    let ended = app.database.submit(call).await;
    let outcome = match &ended {
        Ok(_) => "ok",
        Err(error) => Problem::of(error, may_repeat).code().name(),
    };
    permit.is_answered(ending_of(&ended));
    let took = begin.elapsed();
    app.metrics.called(&name, outcome, took);
    log_call(&name, &ended, outcome, took);
    match ended {
        Ok(report) => Answer {
            is_repeated: report.is_repeated,
            body: Ok(encode(app, &name, report).await),
            session: Some(app.token(&session)),
        },
        Err(error) => {
            // If the call has written, or may have, the next call of the session must know.
            let has_written = matches!(
                error,
                Error::Incomplete { .. } | Error::Unknown { .. } | Error::ResultGone { .. }
            );
            let session = has_written.then(|| app.token(&session));
            let problem = Problem::of(&error, may_repeat).in_session(session.clone());
            Answer { body: Err(problem), session, is_repeated: false }
        }
    }
}

/// The ending of a call, as the limit on concurrent calls counts it.
fn ending_of(ended: &Result<CallReport, Error>) -> Ending {
    match ended {
        Ok(report) if report.phases.iter().any(|phase| phase.attempts > 1) => Ending::Conflicted,
        Ok(_) => Ending::Well,
        Err(error) if Problem::of(error, false).code() == Code::Conflict => Ending::Conflicted,
        Err(_) => Ending::Failed,
    }
}

/// Logs a call that has ended. Errors that the caller causes, and conflicts, are logged at debug level.
fn log_call(name: &Name, ended: &Result<CallReport, Error>, outcome: &str, took: Duration) {
    let (transaction, milliseconds) = (&**name, took.as_millis() as u64);
    match ended {
        Ok(_) => tracing::debug!(transaction, outcome, milliseconds, "a call has ended"),
        Err(error @ (Error::Unknown { .. } | Error::Parked { .. } | Error::Incomplete { .. })) => {
            tracing::warn!(transaction, outcome, milliseconds, %error, "a call has ended");
        }
        Err(error) => {
            tracing::debug!(transaction, outcome, milliseconds, %error, "a call has ended");
        }
    }
}

async fn encode(app: &App, name: &Name, report: CallReport) -> String {
    let bytes = report.result.as_ref().map_or(0, Value::weight);
    let (database, name) = (app.database.clone(), name.clone());
    app.code(bytes, move || answer_of(&database, &name, &report)).await
}

fn answer_of(database: &Database, name: &str, report: &CallReport) -> String {
    let mut text = format!("{{\"result\":{}", database.result_text(name, report));
    if !report.following.is_empty() {
        let follows: Vec<&str> = report.following.iter().map(|store| &**store).collect();
        // Writing to a text cannot fail.
        let _ = write!(text, ",\"follows\":{}", json!(follows));
    }
    text.push('}');
    text
}

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        let body = match self.body {
            Ok(body) => body,
            Err(problem) => return problem.into_response(),
        };
        let mut response = json_response(Body::from(body));
        let headers = response.headers_mut();
        if let Some(token) = self.session.and_then(|token| HeaderValue::try_from(token).ok()) {
            headers.insert(SESSION, token);
        }
        if self.is_repeated {
            headers.insert(REPEATED, HeaderValue::from_static("true"));
        }
        response
    }
}
