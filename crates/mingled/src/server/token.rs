//! Tokens: the place that a session has reached, as a text that moves it to another data center.
//!
//! A token has an authentication code of a key that all data centers of the cluster have, so no client can
//! make one up. It ends after a while ([`Tokens::lifetime`]). It names the start of the process that made it;
//! all that the session had written was on that process's disk before.

use std::fmt;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, Mac as _};
use mingle_geo::session::Token;
use mingle_geo::{DcId, Timestamp, Vector};
use sha2::Sha256;

use crate::process::Mark;

/// The form of a token; other forms are refused.
const FORM: u8 = 1;

/// The number of bytes of the authentication code.
const CODE_BYTES: usize = 32;

/// The number of bytes before the code: form, cluster, time, data center, incarnation, start, process,
/// two epochs and a vector.
const BODY_BYTES: usize = 1 + 16 + 8 + 1 + 4 + 4 + 8 + 4 + 4 + 8 * COLUMNS;

/// The number of entries of a vector.
const COLUMNS: usize = mingle_geo::vector::DCS_MAX + 1;

/// The time by which the clock of the data center that made a token may be ahead, in milliseconds.
const AHEAD_MS_MAX: u64 = 5_000;

/// The settings of tokens.
#[derive(Clone, PartialEq, Eq)]
pub struct Tokens {
    /// The key, at least [`KEY_BYTES_MIN`](Self::KEY_BYTES_MIN) bytes, which all data centers have.
    pub key: Vec<u8>,
    /// The time for which a token is accepted.
    pub lifetime: Duration,
}

/// The key is not shown.
impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens").field("lifetime", &self.lifetime).finish_non_exhaustive()
    }
}

/// The reason why a token is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenError {
    /// It is no token, or not one of this form.
    Malformed,
    /// Its code is not that of the cluster's key.
    Forged,
    /// It is of another cluster that has the same key.
    Cluster {
        /// The cluster of the token.
        found: u128,
        /// This cluster.
        expected: u128,
    },
    /// It was made too long ago.
    Expired {
        /// Its age in milliseconds.
        age_ms: u64,
        /// The maximum.
        most_ms: u64,
    },
    /// It was made in the future.
    Early {
        /// The time until then, in milliseconds.
        ahead_ms: u64,
    },
}

impl fmt::Display for TokenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed => {
                f.write_str("BADTOKEN this is no token, expected one of SESSION TOKEN")
            }
            Self::Forged => {
                f.write_str("BADTOKEN the token is not signed with the key of this cluster")
            }
            Self::Cluster { found, expected } => {
                write!(f, "BADTOKEN the token is of cluster {found:032x}, expected {expected:032x}")
            }
            Self::Expired { age_ms, most_ms } => write!(
                f,
                "EXPIRED the token was made {age_ms} ms ago, and is accepted for {most_ms} ms"
            ),
            Self::Early { ahead_ms } => write!(
                f,
                "BADTOKEN the token was made {ahead_ms} ms in the future: the clock of a machine is wrong"
            ),
        }
    }
}

impl Tokens {
    /// The minimum length of a key.
    pub const KEY_BYTES_MIN: usize = 16;

    fn code(&self, body: &[u8]) -> Hmac<Sha256> {
        let mut code =
            Hmac::<Sha256>::new_from_slice(&self.key).expect("a key may have any length");
        code.update(body);
        code
    }

    /// Returns the token for a mark of this cluster, made at this time.
    pub fn token(&self, cluster: u128, mark: &Mark, now_ms: u64) -> String {
        let Mark { token, boot, process } = mark;
        let mut bytes = vec![FORM];
        bytes.extend(cluster.to_le_bytes());
        bytes.extend(now_ms.to_le_bytes());
        bytes.push(token.dc.0);
        bytes.extend(token.incarnation.to_le_bytes());
        bytes.extend(boot.to_le_bytes());
        bytes.extend(process.to_le_bytes());
        bytes.extend(token.epoch.to_le_bytes());
        bytes.extend(token.newest.to_le_bytes());
        for (_, entry) in token.past_vec.iter() {
            bytes.extend(entry.0.to_le_bytes());
        }
        let code = self.code(&bytes).finalize().into_bytes();
        bytes.extend(code);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Returns the mark of a token, if it is of this cluster and not too old.
    pub fn mark(&self, cluster: u128, token: &[u8], now_ms: u64) -> Result<Mark, TokenError> {
        let bytes = URL_SAFE_NO_PAD.decode(token).map_err(|_| TokenError::Malformed)?;
        if bytes.len() != BODY_BYTES + CODE_BYTES {
            return Err(TokenError::Malformed);
        }
        let (body, code) = bytes.split_at(BODY_BYTES);
        self.code(body).verify_slice(code).map_err(|_| TokenError::Forged)?;
        let mut rest = Rest(body);
        if rest.take::<1>() != [FORM] {
            return Err(TokenError::Malformed);
        }
        let found = u128::from_le_bytes(rest.take());
        if found != cluster {
            return Err(TokenError::Cluster { found, expected: cluster });
        }
        let made_ms = u64::from_le_bytes(rest.take());
        let (age_ms, ahead_ms) = (now_ms.saturating_sub(made_ms), made_ms.saturating_sub(now_ms));
        let most_ms = self.lifetime.as_millis() as u64;
        if age_ms >= most_ms {
            return Err(TokenError::Expired { age_ms, most_ms });
        }
        if ahead_ms > AHEAD_MS_MAX {
            return Err(TokenError::Early { ahead_ms });
        }
        let [dc] = rest.take();
        let (dc, incarnation) = (DcId(dc), u32::from_le_bytes(rest.take()));
        let (boot, process) = (u32::from_le_bytes(rest.take()), u64::from_le_bytes(rest.take()));
        let (epoch, newest) = (u32::from_le_bytes(rest.take()), u32::from_le_bytes(rest.take()));
        let mut past_vec = Vector::ZERO;
        for column in 0..COLUMNS {
            past_vec[DcId(column as u8)] = Timestamp(u64::from_le_bytes(rest.take()));
        }
        Ok(Mark { token: Token { dc, incarnation, past_vec, epoch, newest }, boot, process })
    }
}

/// The bytes of a token that are not read yet. Its length was checked.
struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    fn take<const COUNT: usize>(&mut self) -> [u8; COUNT] {
        let (first, rest) = self.0.split_first_chunk().expect("the length was checked");
        self.0 = rest;
        *first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLUSTER: u128 = 7;
    const NOW_MS: u64 = 1_700_000_000_000;

    fn tokens(key: &str) -> Tokens {
        Tokens { key: key.into(), lifetime: Duration::from_mins(1) }
    }

    fn mark() -> Mark {
        let past_vec = Vector::ZERO.with(DcId(1), Timestamp(5)).with(DcId::STRONG, Timestamp(9));
        let token = Token { dc: DcId(1), incarnation: 2, past_vec, epoch: 3, newest: 4 };
        Mark { token, boot: 6, process: 0xabc }
    }

    #[test]
    fn a_token_is_read_as_it_was_made() {
        let tokens = tokens("a key of the cluster");
        let text = tokens.token(CLUSTER, &mark(), NOW_MS);
        assert_eq!(tokens.mark(CLUSTER, text.as_bytes(), NOW_MS + 59_999), Ok(mark()));
    }

    #[test]
    fn each_wrong_token_has_an_error_of_its_own() {
        let good = tokens("a key of the cluster");
        let text = good.token(CLUSTER, &mark(), NOW_MS);
        let bytes = text.as_bytes();
        let most_ms = 60_000;
        for (found, expected) in [
            (good.mark(CLUSTER, b"x", NOW_MS), TokenError::Malformed),
            (good.mark(CLUSTER, &bytes[4..], NOW_MS), TokenError::Malformed),
            (tokens("another key, of a thief").mark(CLUSTER, bytes, NOW_MS), TokenError::Forged),
            (good.mark(8, bytes, NOW_MS), TokenError::Cluster { found: CLUSTER, expected: 8 }),
            (
                good.mark(CLUSTER, bytes, NOW_MS + 60_000),
                TokenError::Expired { age_ms: 60_000, most_ms },
            ),
            (good.mark(CLUSTER, bytes, NOW_MS - 5_001), TokenError::Early { ahead_ms: 5_001 }),
        ] {
            assert_eq!(found, Err(expected));
        }
    }

    #[test]
    fn a_token_with_any_other_byte_is_refused() {
        let tokens = tokens("a key of the cluster");
        let text = tokens.token(CLUSTER, &mark(), NOW_MS);
        for place in 0..text.len() {
            let mut other = text.clone().into_bytes();
            other[place] = if other[place] == b'A' { b'B' } else { b'A' };
            let found = tokens.mark(CLUSTER, &other, NOW_MS);
            assert!(
                matches!(found, Err(TokenError::Forged | TokenError::Malformed)),
                "byte {place}: {found:?}"
            );
        }
    }
}
