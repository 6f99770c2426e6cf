//! The routes of the server.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};

use crate::app::App;
use crate::heads::{REFUSED_PATH, refused};
use crate::problem::{Code, Problem};
use crate::worker::routes::routes;
use crate::{calls, objects, page};

type Answer = Result<Response, Problem>;

/// Returns all routes.
pub(crate) fn router(app: Arc<App>) -> Router {
    let routes = Router::new()
        .route("/v1/transactions/{transaction}", post(calls::call))
        .route("/v1/objects/{object}", get(objects::list))
        .route("/v1/objects/{object}/{key}", get(objects::show))
        .route("/v1/objects/{object}/", get(objects::show_empty))
        .route("/v1/program", get(program))
        .route("/openapi.json", get(openapi))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .route(REFUSED_PATH, any(refused))
        .route("/", get(page::html))
        .route("/page.css", get(page::css))
        .route("/page.js", get(page::js))
        .route("/page/{module}", get(page::module))
        .merge(routes())
        .fallback(|uri: Uri| async move {
            let path = uri.path().chars().take(200).collect::<String>();
            Problem::new(Code::NotFound, format!("nothing is at {path}"))
        })
        .method_not_allowed_fallback(|| async {
            Problem::new(Code::MethodNotAllowed, "see /openapi.json for the methods")
        })
        .layer(axum::middleware::map_response_with_state(app.clone(), finish));
    #[cfg(feature = "otlp")]
    let routes = routes.layer(axum::middleware::from_fn(crate::otlp::within_the_callers_trace));
    routes.with_state(app)
}

/// Adds the headers that all answers share.
async fn finish(State(app): State<Arc<App>>, mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if !headers.contains_key(header::CACHE_CONTROL) {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    if app.is_stopping() {
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    app.metrics.answered(response.status().as_u16());
    response
}

/// Reports if this process takes calls, and which stores do not answer it. With `?needs=bank,feed`,
/// or `?needs=all`, it takes no calls while one of these stores is away.
async fn readyz(State(app): State<Arc<App>>, uri: Uri) -> Answer {
    let needed = needed_stores(&app, uri.query().unwrap_or_default())?;
    if app.is_stopping() {
        return Err(Problem::shutting_down());
    }
    let failed = app.database.failed_stores().await;
    if !failed.is_empty() {
        let failed: Vec<String> = failed.iter().map(ToString::to_string).collect();
        return Err(Problem::new(Code::Store, failed.join("; ")));
    }
    let away = app.database.away();
    let missed: Vec<String> =
        away.iter().filter(|away| needed.contains(&*away.store)).map(ToString::to_string).collect();
    if !missed.is_empty() {
        return Err(Problem::new(Code::Store, missed.join("; ")));
    }
    let lines = ["ready".to_owned()].into_iter().chain(away.iter().map(ToString::to_string));
    let text = lines.collect::<Vec<_>>().join("\n") + "\n";
    Ok((StatusCode::OK, text).into_response())
}

/// Returns the stores that a request for readiness needs.
fn needed_stores<'a>(app: &'a App, query: &str) -> Result<BTreeSet<&'a str>, Problem> {
    let stores = &app.database.program().checked.stores;
    let all = || stores.iter().map(|store| &*store.name);
    let mut needed = BTreeSet::new();
    for member in query.split('&').filter(|member| !member.is_empty()) {
        let Some(names) = member.strip_prefix("needs=") else {
            return Err(Problem::new(
                Code::InvalidArgument,
                format!("expected needs=STORE,STORE or needs=all, found {member:?}"),
            ));
        };
        for name in names.split(',') {
            match all().find(|store| *store == name) {
                Some(store) => drop(needed.insert(store)),
                None if name == "all" => needed.extend(all()),
                None => {
                    let known = all().collect::<Vec<_>>().join(", ");
                    return Err(Problem::new(
                        Code::InvalidArgument,
                        format!("there is no store {name:?}; there are {known}"),
                    ));
                }
            }
        }
    }
    Ok(needed)
}

async fn openapi(State(app): State<Arc<App>>, headers: HeaderMap, uri: Uri) -> Answer {
    app.rights(&headers, &uri)?;
    Ok(json(app.openapi.clone().into()))
}

async fn program(State(app): State<Arc<App>>, headers: HeaderMap, uri: Uri) -> Answer {
    app.rights(&headers, &uri)?;
    Ok(json(app.program.clone().into()))
}

async fn metrics(State(app): State<Arc<App>>, headers: HeaderMap, uri: Uri) -> Answer {
    app.rights(&headers, &uri)?;
    let text = app.metrics.text(&app.database, app.admission.as_ref());
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, kind)], text).into_response())
}

/// Returns a response with a JSON body.
pub(crate) fn json(body: axum::body::Body) -> Response {
    let mut response = Response::new(body);
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}
