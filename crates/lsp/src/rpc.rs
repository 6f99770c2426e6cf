//! JSON-RPC 2.0: messages, and the errors for invalid ones.

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// The error codes that the server uses: JSON-RPC's and the protocol's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ErrorCode {
    ParseError = -32_700,
    InvalidRequest = -32_600,
    MethodNotFound = -32_601,
    InvalidParams = -32_602,
    ServerNotInitialized = -32_002,
    RequestCancelled = -32_800,
    RequestFailed = -32_803,
}

/// The reason why a request gets an error response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) code: ErrorCode,
    pub(crate) message: String,
}

impl Failure {
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

/// The outcome of a request.
pub(crate) type Answer = Result<Value, Failure>;

/// A message from the client.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Incoming {
    Request {
        id: Value,
        method: String,
        params: Value,
    },
    Notification {
        method: String,
        params: Value,
    },
    /// A response to a request of the server.
    Response,
}

/// Reads a message; for an invalid one, returns the error response for its sender.
pub(crate) fn read(body: &[u8]) -> Result<Incoming, Value> {
    let fail = |id: Value, code, message: String| Err(response(id, Err(Failure { code, message })));
    let message: Value = match serde_json::from_slice(body) {
        Ok(message) => message,
        Err(error) => {
            return fail(Value::Null, ErrorCode::ParseError, format!("not JSON: {error}"));
        }
    };
    let Value::Object(mut message) = message else {
        let why = "a message is a JSON object".to_owned();
        return fail(Value::Null, ErrorCode::InvalidRequest, why);
    };
    let id = message.remove("id");
    let known = match &id {
        Some(id) if id.is_string() || id.is_i64() || id.is_u64() => id.clone(),
        _ => Value::Null,
    };
    let invalid = |message: &str| fail(known.clone(), ErrorCode::InvalidRequest, message.into());
    if message.get("jsonrpc") != Some(&json!("2.0")) {
        return invalid("`jsonrpc` must be \"2.0\"");
    }
    if id.is_some() && known.is_null() && message.contains_key("method") {
        return invalid("`id` must be a string or an integer");
    }
    let params = message.remove("params").unwrap_or(Value::Null);
    match (message.remove("method"), id) {
        (Some(Value::String(method)), Some(id)) => Ok(Incoming::Request { id, method, params }),
        (Some(Value::String(method)), None) => Ok(Incoming::Notification { method, params }),
        (Some(_), _) => invalid("`method` must be a string"),
        (None, _) if message.contains_key("result") || message.contains_key("error") => {
            Ok(Incoming::Response)
        }
        (None, _) => invalid("`method` is missing"),
    }
}

/// Decodes the parameters of a method.
pub(crate) fn params<T: DeserializeOwned>(params: Value) -> Result<T, Failure> {
    serde_json::from_value(params).map_err(|error| {
        Failure::new(ErrorCode::InvalidParams, format!("the parameters do not fit: {error}"))
    })
}

pub(crate) fn response(id: Value, answer: Answer) -> Value {
    match answer {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        Err(Failure { code, message }) => json!({
            "jsonrpc": "2.0",
            "id": id,
            "error": { "code": code as i32, "message": message },
        }),
    }
}

pub(crate) fn notification(method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_message_is_answered() {
        for (body, id, code) in [
            ("{", Value::Null, -32_700),
            ("\u{0}", Value::Null, -32_700),
            ("[]", Value::Null, -32_600),
            ("1", Value::Null, -32_600),
            (r#"{"id":1,"method":"a"}"#, json!(1), -32_600),
            (r#"{"jsonrpc":"2.0","id":{},"method":"a"}"#, Value::Null, -32_600),
            (r#"{"jsonrpc":"2.0","id":"x","method":3}"#, json!("x"), -32_600),
            (r#"{"jsonrpc":"2.0","id":7}"#, json!(7), -32_600),
        ] {
            let answer = read(body.as_bytes()).expect_err(body);
            assert_eq!((&answer["id"], &answer["error"]["code"]), (&id, &json!(code)), "{body}");
        }
        assert_eq!(read(br#"{"jsonrpc":"2.0","id":1,"result":null}"#), Ok(Incoming::Response));
    }
}
