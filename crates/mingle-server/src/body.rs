//! The body of a request.

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, header};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use serde_json::{Map, Value as Json};

use crate::config::Config;
use crate::problem::{Code, Problem};

/// The members of the object in a body; none for an empty one.
pub(crate) async fn read(
    headers: &HeaderMap,
    body: Body,
    config: &Config,
) -> Result<Map<String, Json>, Problem> {
    let announced = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    let announced = announced.and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
    if announced > config.body_bytes_max as u64 {
        return Err(too_large(config));
    }
    let bytes = collect(body, config).await?;
    if bytes.is_empty() {
        return Ok(Map::new());
    }
    if !is_json(headers) {
        return Err(Problem::new(
            Code::UnsupportedMediaType,
            "expected a body of type application/json",
        ));
    }
    match serde_json::from_slice(&bytes) {
        Ok(Json::Object(members)) => Ok(members),
        Ok(_) => Err(Problem::new(
            Code::InvalidArgument,
            "expected an object with one member for each parameter",
        )),
        Err(error) => {
            Err(Problem::new(Code::InvalidArgument, format!("the body is not JSON: {error}")))
        }
    }
}

async fn collect(body: Body, config: &Config) -> Result<Bytes, Problem> {
    let limited = Limited::new(body, config.body_bytes_max);
    match tokio::time::timeout(config.body_within, limited.collect()).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large(config)),
        Ok(Err(_)) => {
            Err(Problem::new(Code::InvalidArgument, "the body broke off, or its chunks are wrong")
                .closing())
        }
        Err(_) => Err(Problem::new(
            Code::Timeout,
            format!("the body did not arrive within {:?}", config.body_within),
        )
        .retryable(true)
        .closing()),
    }
}

fn too_large(config: &Config) -> Problem {
    let bound = config.body_bytes_max;
    Problem::new(Code::TooLarge, format!("a body has at most {bound} bytes")).closing()
}

fn is_json(headers: &HeaderMap) -> bool {
    let found = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let kind = found.unwrap_or_default().split(';').next().unwrap_or_default();
    kind.trim().eq_ignore_ascii_case("application/json")
}
