//! Looking at objects.

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, Uri};
use axum::response::Response;
use mingle::Error;
use mingle::database::SHOWN_MAX as SHOWN_USUALLY;

use crate::app::{App, looks_at};
use crate::calls::{Pairs, unknown_parameter, unreadable};
use crate::limits::SHOWN_MAX;
use crate::overload::Ending;
use crate::problem::{Code, Problem, SESSION};
use crate::router::json;

/// `GET /v1/objects/{object}/{key}`
pub(crate) async fn show(
    State(app): State<Arc<App>>,
    path: Result<Path<(String, String)>, PathRejection>,
    query: Pairs,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, Problem> {
    let path = path.map(|Path(path)| path);
    answer(&app, path, query, &headers, &uri).await
}

/// `GET /v1/objects/{object}/`: the object whose key is the empty text.
pub(crate) async fn show_empty(
    State(app): State<Arc<App>>,
    path: Result<Path<String>, PathRejection>,
    query: Pairs,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, Problem> {
    let path = path.map(|Path(object)| (object, String::new()));
    answer(&app, path, query, &headers, &uri).await
}

async fn answer(
    app: &App,
    path: Result<(String, String), PathRejection>,
    query: Pairs,
    headers: &HeaderMap,
    uri: &Uri,
) -> Result<Response, Problem> {
    let rights = app.rights(headers, uri)?;
    let (kind, key) = path.map_err(|error| unreadable(&error.body_text()))?;
    if !app.database.program().schema().objects.contains_key(kind.as_str()) {
        return Err(Problem::new(Code::NotFound, format!("no object is called {kind:?}")));
    }
    if !rights.may_see(&kind) {
        let detail = format!("the token of {} does not allow {kind}", rights.name);
        return Err(Problem::new(Code::Forbidden, detail));
    }
    let limit = limit(query)?;
    let session = app.session(headers)?;
    let object = app.database.object(&kind, &key).map_err(|error| match error {
        Error::Misuse(why) => Problem::new(Code::InvalidArgument, why).member("path", "key"),
        other => Problem::of(&other, false),
    })?;
    let mut permit = app.admit_call(&looks_at(&kind)).await?;
    let shown = app.database.show_text(&object, &session, limit).await;
    permit.is_answered(if shown.is_ok() { Ending::Well } else { Ending::Failed });
    match shown.map_err(|error| Problem::of(&error, false))? {
        None => Err(Problem::new(Code::NotFound, format!("{object} does not exist"))),
        Some(shown) => {
            let mut response = json(shown.into());
            if let Ok(token) = HeaderValue::try_from(app.token(&session)) {
                response.headers_mut().insert(SESSION, token);
            }
            Ok(response)
        }
    }
}

fn limit(query: Pairs) -> Result<usize, Problem> {
    let mut limit = SHOWN_USUALLY;
    for (name, value) in query.map_err(|error| unreadable(&error.body_text()))?.0 {
        if name != "limit" {
            return Err(unknown_parameter(&name, "limit"));
        }
        limit = value.parse().ok().filter(|limit| *limit <= SHOWN_MAX).ok_or_else(|| {
            let detail = format!("limit is 0 to {SHOWN_MAX}, found {value:?}");
            Problem::new(Code::InvalidArgument, detail).member("path", "limit")
        })?;
    }
    Ok(limit)
}

#[cfg(test)]
mod tests {
    use axum::extract::Query;

    use super::*;

    #[test]
    fn the_limit_is_the_usual_one_or_what_is_asked_for_within_the_bound() {
        let asked = |pairs: &[(&str, &str)]| {
            let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
            limit(Ok(Query(pairs.iter().map(owned).collect()))).ok()
        };
        assert_eq!(asked(&[]), Some(SHOWN_USUALLY));
        let most = SHOWN_MAX.to_string();
        assert_eq!(asked(&[("limit", &most)]), Some(SHOWN_MAX));
        assert_eq!(asked(&[("limit", "0")]), Some(0));
        assert_eq!(asked(&[("limit", &(SHOWN_MAX + 1).to_string())]), None);
        assert_eq!(asked(&[("limit", "-1")]), None);
        assert_eq!(asked(&[("first", "1")]), None);
    }
}
