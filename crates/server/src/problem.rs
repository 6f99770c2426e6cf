//! Every way in which a request can fail, as `application/problem+json` (RFC 9457).

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use mingle::{Error, StoreError, TokenError};
use mingle_model::Name;
use serde_json::{Map, Value as Json, json};

use crate::limits::RETRY_AFTER_SECONDS;

/// The kind of a failure, for machines: these names and their statuses are stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// A `require` of the transaction failed.
    Require,
    /// A keyed `new` met an object that exists.
    Exists,
    /// A write of a `unique` met another object with the same values.
    Taken,
    /// Conflicts outlasted the deadline.
    Conflict,
    /// The wait for other transactions outlasted the deadline.
    Waiting,
    /// A store failed.
    Store,
    /// A rule of the database does not allow the write beside the data that is there.
    ConstraintConflict,
    /// A rule of the database does not allow the written values.
    ConstraintViolated,
    /// The call has to wait for a transaction that cannot be finished for now.
    Parked,
    /// Some stores have committed; the rest follows.
    Incomplete,
    /// A store did not say whether it has committed.
    Unknown,
    /// The call took effect, and its result is not known any more.
    ResultGone,
    /// The request does not fit the interface.
    InvalidArgument,
    /// The call does not fit the program.
    Misuse,
    /// The program needs a function that its stores do not have.
    Unsupported,
    /// A bound on steps, memory or sizes.
    Limit,
    /// The session is not from this server.
    InvalidSession,
    /// The token is missing or unknown.
    Unauthenticated,
    /// The token does not allow the request.
    Forbidden,
    /// The named thing does not exist.
    NotFound,
    /// The resource exists, but not with this method.
    MethodNotAllowed,
    /// The body is too large.
    TooLarge,
    /// The body is of another type.
    UnsupportedMediaType,
    /// The idempotency key was used for another call.
    IdempotencyMismatch,
    /// A call with the idempotency key is running.
    InProgress,
    /// The server is at its limit of work.
    Overloaded,
    /// The server is about to stop.
    ShuttingDown,
    /// The body did not arrive in time.
    Timeout,
    /// The call computed beyond its deadline.
    Deadline,
    /// The bytes are not a valid HTTP request.
    BadRequest,
    /// The head of the request is too large, or has too many headers.
    HeadTooLarge,
    /// The `Host` of the request is missing, repeated, or no host.
    InvalidHost,
    /// The worker does not know the program.
    UnknownProgram,
    /// The worker does not know this attempt.
    UnknownAttempt,
}

impl Code {
    /// All codes.
    pub const ALL: [Self; 34] = [
        Self::Require,
        Self::Exists,
        Self::Taken,
        Self::Conflict,
        Self::Waiting,
        Self::Store,
        Self::ConstraintConflict,
        Self::ConstraintViolated,
        Self::Parked,
        Self::Incomplete,
        Self::Unknown,
        Self::ResultGone,
        Self::InvalidArgument,
        Self::Misuse,
        Self::Unsupported,
        Self::Limit,
        Self::InvalidSession,
        Self::Unauthenticated,
        Self::Forbidden,
        Self::NotFound,
        Self::MethodNotAllowed,
        Self::TooLarge,
        Self::UnsupportedMediaType,
        Self::IdempotencyMismatch,
        Self::InProgress,
        Self::Overloaded,
        Self::ShuttingDown,
        Self::Timeout,
        Self::Deadline,
        Self::BadRequest,
        Self::HeadTooLarge,
        Self::InvalidHost,
        Self::UnknownProgram,
        Self::UnknownAttempt,
    ];

    /// The code's name.
    pub fn name(self) -> &'static str {
        self.row().0
    }

    /// The status of the answer.
    pub fn status(self) -> u16 {
        self.row().1
    }

    /// The code's meaning, in one line.
    pub fn title(self) -> &'static str {
        self.row().2
    }

    fn row(self) -> (&'static str, u16, &'static str) {
        match self {
            Self::Require => ("require", 422, "A requirement of the transaction does not hold"),
            Self::Exists => ("exists", 409, "The object exists already"),
            Self::Taken => ("taken", 409, "Another object has the same values"),
            Self::Conflict => ("conflict", 409, "Conflicts outlasted the deadline"),
            Self::Waiting => ("waiting", 409, "Waiting for other transactions took too long"),
            Self::Store => ("store", 503, "A store failed"),
            Self::ConstraintConflict => {
                ("constraint-conflict", 409, "A rule of the database forbids it beside other data")
            }
            Self::ConstraintViolated => {
                ("constraint-violated", 422, "A rule of the database forbids the values")
            }
            Self::Deadline => ("deadline", 504, "The call computed beyond its deadline"),
            Self::Parked => ("parked", 503, "Another transaction cannot be finished for now"),
            Self::Incomplete => ("incomplete", 202, "Committed at some stores; the rest follows"),
            Self::Unknown => ("unknown", 504, "It is not known whether the call took effect"),
            Self::ResultGone => ("result-gone", 410, "The call took effect; its result is gone"),
            Self::InvalidArgument => ("invalid-argument", 400, "The request makes no sense"),
            Self::Misuse => ("misuse", 400, "The call does not fit the program"),
            Self::Unsupported => ("unsupported", 400, "The stores cannot do that"),
            Self::Limit => ("limit", 400, "A bound was exceeded"),
            Self::InvalidSession => ("invalid-session", 400, "The session is not of this server"),
            Self::Unauthenticated => ("unauthenticated", 401, "A token is needed"),
            Self::Forbidden => ("forbidden", 403, "The token does not allow that"),
            Self::NotFound => ("not-found", 404, "There is no such thing"),
            Self::MethodNotAllowed => ("method-not-allowed", 405, "Not with this method"),
            Self::TooLarge => ("too-large", 413, "The body is too large"),
            Self::UnsupportedMediaType => {
                ("unsupported-media-type", 415, "The body is of a wrong type")
            }
            Self::IdempotencyMismatch => {
                ("idempotency-mismatch", 422, "The key was used for another call")
            }
            Self::InProgress => ("in-progress", 409, "A call with this key is running"),
            Self::Overloaded => ("overloaded", 503, "The server has enough to do"),
            Self::ShuttingDown => ("shutting-down", 503, "The server is about to stop"),
            Self::Timeout => ("timeout", 408, "The request took too long to arrive"),
            Self::BadRequest => ("bad-request", 400, "The request is not HTTP"),
            Self::HeadTooLarge => ("head-too-large", 431, "The head of the request is too large"),
            Self::InvalidHost => ("invalid-host", 400, "The request does not say its host"),
            Self::UnknownProgram => {
                ("unknown-program", 404, "The worker does not know the program")
            }
            Self::UnknownAttempt => ("unknown-attempt", 404, "The worker knows of no such attempt"),
        }
    }
}

/// An answer to a request that failed.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    code: Code,
    detail: String,
    is_retryable: bool,
    closes: bool,
    /// Boxed, since every handler returns this type.
    members: Box<Map<String, Json>>,
    session: Option<String>,
}

/// The header that carries a session.
pub(crate) const SESSION: header::HeaderName = header::HeaderName::from_static("mingle-session");

/// The header that lets a session go on without transactions that were lost with a data center.
pub(crate) const ACCEPT_LOSS: header::HeaderName =
    header::HeaderName::from_static("mingle-accept-loss");

impl Problem {
    /// Creates a problem that the same request would meet again.
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Self {
            code,
            detail: detail.into(),
            is_retryable: false,
            closes: false,
            members: Box::default(),
            session: None,
        }
    }

    /// The code of the problem.
    pub fn code(&self) -> Code {
        self.code
    }

    pub(crate) fn retryable(mut self, is_retryable: bool) -> Self {
        self.is_retryable = is_retryable;
        self
    }

    /// Closes the connection after the answer: the rest of the request may still arrive on it.
    pub(crate) fn closing(mut self) -> Self {
        self.closes = true;
        self
    }

    pub(crate) fn member(mut self, name: &str, value: impl Into<Json>) -> Self {
        self.members.insert(name.to_owned(), value.into());
        self
    }

    pub(crate) fn in_session(mut self, token: Option<String>) -> Self {
        self.session = token;
        self
    }

    pub(crate) fn busy(sort: &str) -> Self {
        let detail =
            format!("as many calls of {sort} run at this moment as do not wait for each other");
        Self::new(Code::Overloaded, detail).retryable(true)
    }

    pub(crate) fn overloaded() -> Self {
        Self::new(Code::Overloaded, "too many calls run at this moment").retryable(true)
    }

    pub(crate) fn out_of_memory(bytes_max: usize) -> Self {
        let detail =
            format!("the requests that run hold all of the {bytes_max} bytes that they may");
        Self::new(Code::Overloaded, detail).retryable(true).closing()
    }

    pub(crate) fn shutting_down() -> Self {
        Self::new(Code::ShuttingDown, "the server is about to stop").retryable(true)
    }

    /// The problem as JSON.
    pub fn to_json(&self) -> Json {
        let mut members = Map::new();
        let name = self.code.name();
        members.insert("type".to_owned(), format!("urn:mingle:problem:{name}").into());
        members.insert("title".to_owned(), self.code.title().into());
        members.insert("status".to_owned(), self.code.status().into());
        members.insert("detail".to_owned(), self.detail.as_str().into());
        members.insert("code".to_owned(), name.into());
        members.insert("retryable".to_owned(), self.is_retryable.into());
        members.extend((*self.members).clone());
        Json::Object(members)
    }

    /// Creates the problem of a failed call. `may_repeat` says if the call had an idempotency key.
    pub(crate) fn of(error: &Error, may_repeat: bool) -> Self {
        let code = match error {
            Error::Require { .. } => Code::Require,
            Error::Exists(_) => Code::Exists,
            Error::Taken(_) => Code::Taken,
            Error::Misuse(_) => Code::Misuse,
            Error::Forbidden { .. } => Code::Forbidden,
            Error::Unsupported(_) => Code::Unsupported,
            Error::Limit(_) => Code::Limit,
            Error::Conflict { .. } => Code::Conflict,
            Error::Store(StoreError::Violated { violation, .. }) => {
                if violation.kind.is_conflict() {
                    Code::ConstraintConflict
                } else {
                    Code::ConstraintViolated
                }
            }
            Error::Store(_) => Code::Store,
            Error::Deadline { .. } => Code::Deadline,
            Error::Unknown { .. } => Code::Unknown,
            Error::Waiting { .. } => Code::Waiting,
            Error::Parked { .. } => Code::Parked,
            Error::ResultGone { .. } => Code::ResultGone,
            Error::KeyReused => Code::IdempotencyMismatch,
            Error::Incomplete { .. } => Code::Incomplete,
            // The call's task was dropped, which happens when the process ends.
            Error::Cancelled => Code::ShuttingDown,
        };
        let is_unknown = matches!(error, Error::Unknown { .. });
        let problem = Self::new(code, error.to_string())
            .retryable(error.is_retryable() || (is_unknown && may_repeat));
        let problem = match store_of(error) {
            Some(store) => problem.member("store", &**store),
            None => problem,
        };
        match error {
            Error::Require { code: Some(code), .. } => problem.member("require_code", &**code),
            Error::Taken(taken) => {
                let fields = taken.values.iter().map(|(field, _)| &**field);
                problem
                    .member("object", &*taken.object)
                    .member("fields", fields.collect::<Vec<&str>>())
            }
            Error::Incomplete { committed, missing, .. } => {
                problem.member("committed", names(committed)).member("missing", names(missing))
            }
            Error::Store(StoreError::Violated { violation, .. }) => problem
                .member("constraint", violation.constraint.as_deref())
                .member("constraint_kind", violation.kind.name())
                .member("table", violation.table.as_deref())
                .member("column", violation.column.as_deref()),
            _ => problem,
        }
    }
}

fn names(stores: &[Name]) -> Json {
    json!(stores.iter().map(|name| &**name).collect::<Vec<&str>>())
}

fn store_of(error: &Error) -> Option<&Name> {
    match error {
        Error::Conflict { store, .. }
        | Error::Waiting { store, .. }
        | Error::Unknown { store, .. } => Some(store).filter(|store| !store.is_empty()),
        Error::Store(
            StoreError::Unavailable { store, .. }
            | StoreError::Unknown { store, .. }
            | StoreError::Behind { store, .. }
            | StoreError::Refused { store, .. }
            | StoreError::Violated { store, .. },
        ) => Some(store),
        Error::Incomplete { missing, .. } => missing.first(),
        _ => None,
    }
}

impl From<TokenError> for Problem {
    fn from(error: TokenError) -> Self {
        Self::new(Code::InvalidSession, error.to_string())
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::from(self.to_json().to_string()));
        let status = self.code.status();
        *response.status_mut() = StatusCode::from_u16(status).expect("statuses are valid");
        // The code is attached, so that the metrics need not parse the body.
        response.extensions_mut().insert(self.code);
        let headers = response.headers_mut();
        let json = HeaderValue::from_static("application/problem+json");
        headers.insert(header::CONTENT_TYPE, json);
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if self.code == Code::Unauthenticated {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if matches!(self.code, Code::Overloaded | Code::ShuttingDown) {
            headers.insert(header::RETRY_AFTER, RETRY_AFTER_SECONDS.into());
        }
        if self.closes {
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        if let Some(token) = self.session.and_then(|token| HeaderValue::try_from(token).ok()) {
            headers.insert(SESSION, token);
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_distinct_and_of_their_kind() {
        for (at, code) in Code::ALL.iter().enumerate() {
            let (name, status, title) = code.row();
            assert!(Code::ALL[..at].iter().all(|other| other.name() != name), "{name} is twice");
            assert!(status == 202 || (400..=599).contains(&status), "{name}: {status}");
            assert!(!title.ends_with('.'), "{title}");
            assert!(name.bytes().all(|byte| byte == b'-' || byte.is_ascii_lowercase()), "{name}");
        }
    }

    #[test]
    fn what_is_unknown_may_be_asked_again_with_a_key_alone() {
        let error = Error::Unknown { store: "s".into(), id: None };
        for may_repeat in [true, false] {
            let json = Problem::of(&error, may_repeat).to_json();
            assert_eq!(json["retryable"], may_repeat);
            assert_eq!((&json["store"], &json["status"]), (&json!("s"), &json!(504)));
        }
    }
}
