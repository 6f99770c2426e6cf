//! Decoding of scripts' replies.

use redis::Value;

/// A description of a reply that is not of the script's form.
pub type Odd = String;

/// Returns the parts of a reply.
///
/// # Errors
///
/// When it has no parts.
pub fn array(reply: Value) -> Result<Vec<Value>, Odd> {
    match reply {
        Value::Array(parts) => Ok(parts),
        other => Err(format!("expected an array from a script, found {}", shown(&other))),
    }
}

/// Returns the parts of a reply of fixed length; missing parts at its end are nil.
///
/// # Errors
///
/// When it has no parts.
pub fn parts<const N: usize>(reply: Value) -> Result<[Value; N], Odd> {
    let mut found = array(reply)?.into_iter();
    Ok(std::array::from_fn(|_| found.next().unwrap_or_default()))
}

/// Returns the bytes; none for nil.
///
/// # Errors
///
/// When the reply is anything else.
pub fn bytes(reply: Value) -> Result<Option<Vec<u8>>, Odd> {
    match reply {
        Value::Nil => Ok(None),
        Value::BulkString(bytes) => Ok(Some(bytes)),
        Value::SimpleString(text) => Ok(Some(text.into_bytes())),
        Value::Okay => Ok(Some(b"OK".to_vec())),
        Value::Int(number) => Ok(Some(number.to_string().into_bytes())),
        other => Err(format!("expected a string, found {}", shown(&other))),
    }
}

/// Returns the text; empty for nil.
///
/// # Errors
///
/// When the reply is anything else.
pub fn text(reply: Value) -> Result<String, Odd> {
    let bytes = bytes(reply)?.unwrap_or_default();
    String::from_utf8(bytes).map_err(|_| "expected text, found other bytes".into())
}

/// Returns the number; 0 for nil, and for a string without a number.
///
/// # Errors
///
/// When the reply is anything else.
pub fn number(reply: Value) -> Result<u64, Odd> {
    Ok(text(reply)?.parse().unwrap_or(0))
}

/// Returns the strings of an array.
///
/// # Errors
///
/// When the reply is anything else.
pub fn strings(reply: Value) -> Result<Vec<Vec<u8>>, Odd> {
    if reply == Value::Nil {
        return Ok(Vec::new());
    }
    let strings = array(reply)?.into_iter().map(|part| Ok(bytes(part)?.unwrap_or_default()));
    strings.collect()
}

/// Formats a reply for a message.
pub fn shown(reply: &Value) -> String {
    format!("{reply:?}").chars().take(80).collect()
}
