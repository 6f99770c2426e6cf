//! The body of a request.

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, header};
use http_body_util::BodyExt as _;
use mingle_model::Tree;

use crate::app::App;
use crate::budget::Held;
use crate::config::Config;
use crate::limits::{DISCARDED_BYTES_MAX, DISCARDED_WITHIN};
use crate::problem::{Code, Problem};

/// Returns the bytes of a JSON body, and the share of the memory budget that they hold.
pub(crate) async fn read(
    app: &App,
    headers: &HeaderMap,
    body: Body,
) -> Result<(Bytes, Held), Problem> {
    let (bytes, held) = bytes(app, headers, body, app.config.body_bytes_max).await?;
    if !bytes.is_empty() && !is_json(headers) {
        return Err(Problem::new(
            Code::UnsupportedMediaType,
            "expected a body of type application/json",
        ));
    }
    Ok((bytes, held))
}

/// Returns the members of the object in a body; an empty body has no members.
pub(crate) fn members(bytes: &[u8]) -> Result<Vec<(String, Tree)>, Problem> {
    if bytes.is_empty() {
        return Ok(Vec::new());
    }
    match Tree::parse(bytes) {
        Ok(Tree::Object(members)) => Ok(members),
        Ok(_) => Err(Problem::new(
            Code::InvalidArgument,
            "expected an object with one member for each parameter",
        )),
        Err(error) => {
            Err(Problem::new(Code::InvalidArgument, format!("the body is not JSON: {error}")))
        }
    }
}

/// Returns all bytes of a body of at most `bound` bytes.
pub(crate) async fn bytes(
    app: &App,
    headers: &HeaderMap,
    body: Body,
    bytes_max: usize,
) -> Result<(Bytes, Held), Problem> {
    let announced = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    let announced = announced.and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
    if announced > bytes_max as u64 {
        discard(body).await;
        return Err(too_large(bytes_max));
    }
    let mut held = app.budget.hold();
    let bytes = collect(body, &app.config, bytes_max, &mut held).await?;
    Ok((bytes, held))
}

async fn collect(
    mut body: Body,
    config: &Config,
    bytes_max: usize,
    held: &mut Held,
) -> Result<Bytes, Problem> {
    let mut bytes = Vec::new();
    let all = async {
        while let Some(frame) = body.frame().await {
            let Ok(frame) = frame else {
                let why = "the body broke off, or its chunks are wrong";
                return Err(Problem::new(Code::InvalidArgument, why).closing());
            };
            let data = frame.into_data().unwrap_or_default();
            if bytes.len() + data.len() > bytes_max {
                return Err(too_large(bytes_max));
            }
            held.grow(data.len())?;
            bytes.extend(data);
        }
        Ok(())
    };
    match tokio::time::timeout(config.body_within, all).await {
        Ok(Ok(())) => Ok(bytes.into()),
        Ok(Err(problem)) => {
            discard(body).await;
            Err(problem)
        }
        Err(_) => Err(Problem::new(
            Code::Timeout,
            format!("the body did not arrive within {:?}", config.body_within),
        )
        .retryable(true)
        .closing()),
    }
}

/// Reads and drops a part of the remaining body. If the connection were closed before that, a
/// client that is still sending could lose the answer.
async fn discard(mut body: Body) {
    let mut count = 0;
    let rest = async {
        while let Some(Ok(frame)) = body.frame().await {
            count += frame.data_ref().map_or(0, Bytes::len);
            if count > DISCARDED_BYTES_MAX {
                break;
            }
        }
    };
    // The time limit is the server's own; it does not depend on the client.
    let _ = tokio::time::timeout(DISCARDED_WITHIN, rest).await;
}

fn too_large(bound: usize) -> Problem {
    Problem::new(Code::TooLarge, format!("a body has at most {bound} bytes")).closing()
}

fn is_json(headers: &HeaderMap) -> bool {
    let found = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let kind = found.unwrap_or_default().split(';').next().unwrap_or_default();
    kind.trim().eq_ignore_ascii_case("application/json")
}
