//! Idempotency keys.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use axum::http::{HeaderMap, HeaderName};
use mingle::CallKey;

use crate::access::Rights;
use crate::limits::KEY_CHARS_MAX;
use crate::problem::{Code, Problem};

/// The header that contains the key.
pub(crate) const HEADER: HeaderName = HeaderName::from_static("idempotency-key");

/// Returns the key of a call, if it has one. Keys of different callers are different keys.
pub(crate) fn key_of(headers: &HeaderMap, rights: &Rights) -> Result<Option<CallKey>, Problem> {
    let mut values = headers.get_all(&HEADER).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(Problem::new(Code::InvalidArgument, "there are two Idempotency-Key headers"));
    }
    let bytes = value.as_bytes();
    let is_good = (1..=KEY_CHARS_MAX).contains(&bytes.len());
    match std::str::from_utf8(bytes) {
        Ok(text) if is_good && bytes.iter().all(u8::is_ascii_graphic) => {
            Ok(Some(CallKey::new(&rights.name, text)))
        }
        _ => Err(Problem::new(
            Code::InvalidArgument,
            format!("an Idempotency-Key has 1 to {KEY_CHARS_MAX} visible ASCII characters"),
        )),
    }
}

/// The keys of the calls that run in this process.
#[derive(Debug, Default)]
pub(crate) struct Running(Arc<Mutex<HashSet<CallKey>>>);

/// A running call with a key; dropping it removes the key.
pub(crate) struct Entered {
    running: Arc<Mutex<HashSet<CallKey>>>,
    key: CallKey,
}

impl Running {
    /// Begins a call with a key; fails if a call with the same key is running.
    pub(crate) fn enter(&self, key: Option<CallKey>) -> Result<Option<Entered>, Problem> {
        let Some(key) = key else { return Ok(None) };
        if !self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key) {
            return Err(Problem::new(
                Code::InProgress,
                "a call with this Idempotency-Key is still running",
            )
            .retryable(true));
        }
        Ok(Some(Entered { running: self.0.clone(), key }))
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(values: &[&str]) -> Result<Option<CallKey>, Code> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(&HEADER, value.parse().expect("it is a header"));
        }
        key_of(&headers, &Rights::all()).map_err(|problem| problem.code())
    }

    #[test]
    fn a_call_has_one_key_of_visible_characters_or_none() {
        let longest = "k".repeat(KEY_CHARS_MAX);
        assert_eq!(key(&[]), Ok(None));
        let own = |text: &str| Ok(Some(CallKey::new(&Rights::all().name, text)));
        for good in ["a", "order-17", &longest] {
            assert_eq!(key(&[good]), own(good));
        }
        for wrong in
            [&["a", "b"][..], &["a", "a"], &[""], &["a b"], &["ä"], &[&format!("{longest}k")]]
        {
            assert_eq!(key(wrong), Err(Code::InvalidArgument), "{wrong:?}");
        }
    }
}
