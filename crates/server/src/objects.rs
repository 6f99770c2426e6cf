//! Looking at objects.

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, Uri};
use axum::response::Response;
use mingle::database::SHOWN_MAX as SHOWN_USUALLY;
use mingle::{Error, Listing, Session, StoreError};

use crate::access::Rights;
use crate::app::{App, looks_at};
use crate::calls::{Pairs, unknown_parameter, unreadable};
use crate::limits::{LISTED_ELEMENTS, LISTED_MAX, LISTED_USUALLY, SHOWN_MAX};
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

/// `GET /v1/objects/{object}`: a page of the objects of this kind.
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    path: Result<Path<String>, PathRejection>,
    query: Pairs,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, Problem> {
    let rights = app.rights(&headers, &uri)?;
    let Path(kind) = path.map_err(|error| unreadable(&error.body_text()))?;
    check_kind(&app, &rights, &kind)?;
    if !rights.may_list(&kind) {
        let detail = format!("the token of {} does not allow lists of {kind}", rights.name);
        return Err(Problem::new(Code::Forbidden, detail));
    }
    let asked = Asked::parse(query, true)?;
    let session = app.session(&headers)?;
    let listing = Listing { kind: kind.as_str().into(), after: asked.after, most: asked.count };
    let mut permit = app.admit_call(&looks_at(&kind)).await?;
    let listed = app.database.list_text(&listing, &session, asked.limit).await;
    permit.is_answered(if listed.is_ok() { Ending::Well } else { Ending::Failed });
    let listed = listed.map_err(|error| match error {
        // Of a page's request only the cursor is the caller's.
        Error::Store(StoreError::Refused { reason, .. }) if listing.after.is_some() => {
            Problem::new(Code::InvalidArgument, reason).member("path", "after")
        }
        Error::Store(StoreError::Refused { reason, .. }) => Problem::new(Code::Unsupported, reason),
        other => Problem::of(&other, false),
    })?;
    Ok(with_session(&app, &session, json(listed.into())))
}

/// Checks that there are objects of this kind, and that the caller may look at them.
fn check_kind(app: &App, rights: &Rights, kind: &str) -> Result<(), Problem> {
    if !app.database.program().schema().objects.contains_key(kind) {
        return Err(Problem::new(Code::NotFound, format!("no object is called {kind:?}")));
    }
    if !rights.may_see(kind) {
        let detail = format!("the token of {} does not allow {kind}", rights.name);
        return Err(Problem::new(Code::Forbidden, detail));
    }
    Ok(())
}

fn with_session(app: &App, session: &Session, mut response: Response) -> Response {
    if let Ok(token) = HeaderValue::try_from(app.token(session)) {
        response.headers_mut().insert(SESSION, token);
    }
    response
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
    check_kind(app, &rights, &kind)?;
    let limit = Asked::parse(query, false)?.limit;
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
        Some(shown) => Ok(with_session(app, &session, json(shown.into()))),
    }
}

/// The query of a request.
#[derive(Debug, PartialEq, Eq)]
struct Asked {
    /// The number of elements of each collection.
    limit: usize,
    /// The number of objects.
    count: usize,
    /// The cursor of the page before.
    after: Option<String>,
}

impl Asked {
    /// Reads the query of a request for one object, or for a list.
    fn parse(query: Pairs, is_list: bool) -> Result<Self, Problem> {
        let usual = if is_list { LISTED_ELEMENTS } else { SHOWN_USUALLY };
        let mut asked = Self { limit: usual, count: LISTED_USUALLY, after: None };
        for (name, value) in query.map_err(|error| unreadable(&error.body_text()))?.0 {
            match (&*name, is_list) {
                ("limit", _) => asked.limit = number(&name, &value, 0, SHOWN_MAX)?,
                ("count", true) => asked.count = number(&name, &value, 1, LISTED_MAX)?,
                ("after", true) => asked.after = Some(value),
                (_, true) => return Err(unknown_parameter(&name, "after, count, limit")),
                (_, false) => return Err(unknown_parameter(&name, "limit")),
            }
        }
        Ok(asked)
    }
}

fn number(name: &str, value: &str, least: usize, most: usize) -> Result<usize, Problem> {
    let read = value.parse().ok().filter(|number| (least..=most).contains(number));
    read.ok_or_else(|| {
        let detail = format!("{name} is {least} to {most}, found {value:?}");
        Problem::new(Code::InvalidArgument, detail).member("path", name)
    })
}

#[cfg(test)]
mod tests {
    use axum::extract::Query;

    use super::*;

    #[test]
    fn the_limit_is_the_usual_one_or_what_is_asked_for_within_the_bound() {
        let parse = |pairs: &[(&str, &str)], is_list| {
            let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
            Asked::parse(Ok(Query(pairs.iter().map(owned).collect())), is_list).ok()
        };
        let asked = |pairs: &[(&str, &str)]| parse(pairs, false).map(|asked| asked.limit);
        assert_eq!(asked(&[]), Some(SHOWN_USUALLY));
        let most = SHOWN_MAX.to_string();
        assert_eq!(asked(&[("limit", &most)]), Some(SHOWN_MAX));
        assert_eq!(asked(&[("limit", "0")]), Some(0));
        assert_eq!(asked(&[("limit", &(SHOWN_MAX + 1).to_string())]), None);
        assert_eq!(asked(&[("limit", "-1")]), None);
        assert_eq!(asked(&[("first", "1")]), None);
        assert_eq!(asked(&[("count", "1")]), None);
        let page = Asked { limit: 2, count: LISTED_MAX, after: Some("x".into()) };
        let (limit, count) = (("limit", "2"), LISTED_MAX.to_string());
        assert_eq!(parse(&[limit, ("count", &count), ("after", "x")], true), Some(page));
        for wrong in [("count", "0"), ("count", "101"), ("before", "x")] {
            assert_eq!(parse(&[wrong], true), None, "{wrong:?}");
        }
    }
}
