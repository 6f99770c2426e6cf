//! The requests to the worker, and their handlers.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post, put};
use mingle_lang::Program;
use mingle_runtime::intent::ProgramHash;
use mingle_store::Admission;
use mingle_store_worker::wire::{self, Answered, CONTENT_TYPE, Description, Operation, PROTOCOL};
use tokio::sync::OwnedSemaphorePermit;

use super::Work;
use super::attempts::{Attempts, Entered, Turn, Waiting};
use super::rights::{check_operation, check_program, check_store};
use crate::access::Rights;
use crate::app::App;
use crate::body;
use crate::budget::Held;
use crate::limits::WORKER_ASKED_WITHIN;
use crate::problem::{Code, Problem};

type Answer = Result<Response, Problem>;
type Asked = Result<Query<Vec<(String, String)>>, QueryRejection>;
type Named<T> = Result<Path<T>, PathRejection>;

/// The routes of the worker; [`wire`] documents them.
pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/v1/worker/programs/{hash}", put(program))
        .route("/v1/worker/stores/{store}", get(describe))
        .route("/v1/worker/stores/{store}/attempts/{nonce}", put(run).get(ask))
        .route("/v1/worker/stores/{store}/operations", post(operate))
}

/// The rights of the caller, and the worker's state.
fn enter<'a>(
    app: &'a Arc<App>,
    headers: &HeaderMap,
    uri: &Uri,
) -> Result<(Arc<Rights>, &'a Arc<Work>), Problem> {
    let rights = app.rights(headers, uri)?;
    let work = app.work.as_ref().ok_or_else(|| {
        Problem::new(Code::NotFound, "this server is no worker: it was not told --worker")
    })?;
    Ok((rights, work))
}

fn named<T>(path: Named<T>) -> Result<T, Problem> {
    let wrong = |error: PathRejection| Problem::new(Code::InvalidArgument, error.body_text());
    path.map(|Path(names)| names).map_err(wrong)
}

fn hash_of(text: &str) -> Result<ProgramHash, Problem> {
    wire::from_hex(text).map(ProgramHash).ok_or_else(|| {
        let detail = "a program is named by the SHA-256 of its text, as 64 hexadecimal digits";
        Problem::new(Code::InvalidArgument, detail).member("path", "program")
    })
}

fn nonce_of(text: &str) -> Result<u128, Problem> {
    wire::from_hex(text).map(u128::from_be_bytes).ok_or_else(|| {
        let detail = "an attempt is named by 32 hexadecimal digits";
        Problem::new(Code::InvalidArgument, detail).member("path", "nonce")
    })
}

/// The program that the query names, if it is known and its declarations for the store match.
fn asked_program(
    work: &Work,
    rights: &Rights,
    store: &str,
    asked: Asked,
) -> Result<Arc<Program>, Problem> {
    let wrong = |error: QueryRejection| Problem::new(Code::InvalidArgument, error.body_text());
    let asked = asked.map_err(wrong)?.0;
    let name = asked.iter().find(|(name, _)| name == "program").map(|(_, hash)| hash.as_str());
    let hash = hash_of(name.unwrap_or_default())?;
    check_program(rights, &hash.0)?;
    let program = work.programs.find(hash)?;
    work.programs.check_fit(&program, store)?;
    Ok(program)
}

/// `PUT /v1/worker/programs/{hash}`
async fn program(State(app): State<Arc<App>>, path: Named<String>, request: Request) -> Answer {
    let (parts, body) = request.into_parts();
    let (rights, work) = enter(&app, &parts.headers, &parts.uri)?;
    let hash = hash_of(&named(path)?)?;
    check_program(&rights, &hash.0)?;
    let _permit = app.admit()?;
    let bound = work.bounds.program_bytes_max;
    let (text, _held) = body::bytes(&app, &parts.headers, body, bound).await?;
    let text = String::from_utf8(text.into())
        .map_err(|_| Problem::new(Code::InvalidArgument, "the text of a program is UTF-8"))?;
    work.programs.add(hash, text).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// `GET /v1/worker/stores/{store}`
async fn describe(
    State(app): State<Arc<App>>,
    path: Named<String>,
    asked: Asked,
    headers: HeaderMap,
    uri: Uri,
) -> Answer {
    let (rights, work) = enter(&app, &headers, &uri)?;
    let store = named(path)?;
    check_store(&rights, &store)?;
    let site = work.store(&store)?;
    asked_program(work, &rights, &store, asked)?;
    let capabilities = site.store().capabilities().clone();
    let principals = rights.principals().cloned();
    Ok(bytes(wire::encode(&Description { protocol: PROTOCOL, capabilities, principals })))
}

/// `PUT /v1/worker/stores/{store}/attempts/{nonce}`
async fn run(
    State(app): State<Arc<App>>,
    path: Named<(String, String)>,
    asked: Asked,
    request: Request,
) -> Answer {
    let (parts, body) = request.into_parts();
    let (rights, work) = enter(&app, &parts.headers, &parts.uri)?;
    let (store, nonce) = named(path)?;
    check_store(&rights, &store)?;
    work.store(&store)?;
    let key = (rights.name.clone(), store.clone(), nonce_of(&nonce)?);
    let program = asked_program(work, &rights, &store, asked)?;
    let permit = app.admit()?;
    let (attempt, held) =
        body::bytes(&app, &parts.headers, body, work.bounds.body_bytes_max).await?;
    let waiting = match Attempts::enter(work, key.clone())? {
        Entered::Known(waiting) => waiting,
        Entered::New(turn) => {
            // It runs to its end, even if the client stops waiting.
            let admitted = (permit, held);
            let sent = (store, program, attempt, rights);
            tokio::spawn(attempt_once(work.clone(), turn, sent, admitted));
            work.attempts.ask(key)?
        }
    };
    waiting.within(WORKER_ASKED_WITHIN).await.map(|answer| bytes(answer.into()))
}

async fn attempt_once(
    work: Arc<Work>,
    turn: Turn,
    (store, program, attempt, rights): (String, Arc<Program>, axum::body::Bytes, Arc<Rights>),
    admitted: (OwnedSemaphorePermit, Held),
) {
    let outcome = match work.store(&store).cloned() {
        Ok(site) => {
            // In a task of its own: if the sent data does not fit the phase, the code may panic.
            let running = async move {
                let admission = rights.principals().map(|listed| listed as &dyn Admission);
                site.run(&program, &attempt, admission).await
            };
            let ran = tokio::spawn(running).await;
            match ran {
                Ok(Ok(answer)) => Ok(answer.into()),
                Ok(Err(wrong)) => Err(Problem::new(Code::InvalidArgument, wrong.to_string())),
                Err(_) => {
                    let detail = "what was sent along does not fit the phase";
                    Err(Problem::new(Code::InvalidArgument, detail))
                }
            }
        }
        Err(problem) => Err(problem),
    };
    drop(admitted);
    turn.end(outcome);
}

/// `GET /v1/worker/stores/{store}/attempts/{nonce}`
async fn ask(
    State(app): State<Arc<App>>,
    path: Named<(String, String)>,
    headers: HeaderMap,
    uri: Uri,
) -> Answer {
    let (rights, work) = enter(&app, &headers, &uri)?;
    let (store, nonce) = named(path)?;
    check_store(&rights, &store)?;
    work.store(&store)?;
    let waiting: Waiting = work.attempts.ask((rights.name.clone(), store, nonce_of(&nonce)?))?;
    waiting.within(WORKER_ASKED_WITHIN).await.map(|answer| bytes(answer.into()))
}

/// `POST /v1/worker/stores/{store}/operations`
async fn operate(State(app): State<Arc<App>>, path: Named<String>, request: Request) -> Answer {
    let (parts, body) = request.into_parts();
    let (rights, work) = enter(&app, &parts.headers, &parts.uri)?;
    let store = named(path)?;
    check_store(&rights, &store)?;
    let site = work.store(&store)?.clone();
    let permit = app.admit()?;
    let (body, held) = body::bytes(&app, &parts.headers, body, work.bounds.body_bytes_max).await?;
    let operation = app.code(body.len(), move || wire::decode(&body)).await;
    let operation: Operation = operation.ok_or_else(|| {
        let detail = "the operation is corrupt, or of another version of the protocol";
        Problem::new(Code::InvalidArgument, detail)
    })?;
    check_operation(&rights, &operation)?;
    let (work, who) = (work.clone(), rights.name.clone());
    // A client that disconnects must not stop a commit halfway.
    let running = tokio::spawn(async move {
        let _admitted = (permit, held);
        let result = work.open.run((&who, &store), &site, operation).await?;
        Ok(Answered { result, time: site.store().time() })
    });
    let answered: Answered = running.await.unwrap_or_else(|_| {
        Err(Problem::new(Code::InvalidArgument, "the operation does not fit the store"))
    })?;
    Ok(bytes(wire::encode(&answered)))
}

fn bytes(body: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(body));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(CONTENT_TYPE));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_and_programs_are_named_by_all_of_their_digits() {
        let nonce = nonce_of("0123456789abcdef0000000000000002");
        assert_eq!(nonce.ok(), Some(0x0123_4567_89ab_cdef_0000_0000_0000_0002));
        let hash = hash_of(&"0f".repeat(32));
        assert_eq!(hash.map(|hash| hash.0).ok(), Some([15; 32]));
        for wrong in
            ["", "1", "0123456789abcdef000000000000000", "0123456789abcdef000000000000000g"]
        {
            assert!(nonce_of(wrong).is_err() && hash_of(wrong).is_err(), "{wrong:?}");
        }
    }
}
