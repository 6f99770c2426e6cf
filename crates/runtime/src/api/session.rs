//! Sessions: the stamps and waits that a client's transactions must respect (the technical report,
//! §4).

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, Mac};
use mingle_model::{Name, Stamp, TransactionId};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::api::settings::TOKEN_BYTES_MAX;
use crate::protocol::leans::Leans;
use crate::protocol::wait_set::WaitSet;

/// A client's session with all that it has seen. Clones are the same session: its calls may run
/// side by side, and each call builds on all that earlier calls have seen.
///
/// # Examples
///
/// ```
/// use mingle_runtime::session::{Session, SessionKey};
///
/// let key = SessionKey::new([7; 32]);
/// let session = Session::at("r2");
/// let token = session.token(&key);
/// let resumed = Session::from_token(&key, &token).unwrap();
/// assert_eq!(resumed.replica().as_deref(), Some("r2"));
/// assert!(Session::from_token(&SessionKey::new([8; 32]), &token).is_err());
/// ```
#[derive(Clone, Default)]
pub struct Session(Arc<Mutex<State>>);

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct State {
    replica: Option<Name>,
    wait_set: WaitSet,
    leans: Leans,
}

/// The state in a token of version 2.
#[derive(Deserialize)]
struct State2 {
    replica: Option<Name>,
    wait_set: WaitSet,
}

impl From<State2> for State {
    fn from(State2 { replica, wait_set }: State2) -> Self {
        Self { replica, wait_set, leans: Leans::default() }
    }
}

/// The key that signs tokens, so that a client cannot forge one. All servers that accept each
/// other's tokens use the same key.
#[derive(Clone)]
pub struct SessionKey {
    key: [u8; 32],
    scope: SessionScope,
}

/// The scope to which sessions belong. A session names stores, replicas and transactions, which
/// mean something else, or nothing, to another program or over other stores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionScope {
    program: [u8; DIGEST_BYTES],
    binding: [u8; DIGEST_BYTES],
}

impl SessionScope {
    /// Returns the scope of a program's declarations and of the places of its data, each as a text.
    pub fn of(program: &str, binding: &str) -> Self {
        let digest = |text: &str| {
            let mut digest = [0; DIGEST_BYTES];
            digest.copy_from_slice(&Sha256::digest(text)[..DIGEST_BYTES]);
            digest
        };
        Self { program: digest(program), binding: digest(binding) }
    }

    fn bytes(&self) -> [u8; SCOPE_BYTES] {
        let mut bytes = [0; SCOPE_BYTES];
        let (program, binding) = bytes.split_at_mut(DIGEST_BYTES);
        program.copy_from_slice(&self.program);
        binding.copy_from_slice(&self.binding);
        bytes
    }
}

impl SessionKey {
    /// Creates a key from these bytes.
    pub fn new(bytes: [u8; 32]) -> Self {
        Self { key: bytes, scope: SessionScope::default() }
    }

    /// Returns the same key for the sessions of one program over its stores: it refuses other
    /// tokens.
    ///
    /// # Examples
    ///
    /// ```
    /// use mingle_runtime::session::{Session, SessionKey, SessionScope};
    /// use mingle_runtime::TokenError;
    ///
    /// let key = |binding| SessionKey::new([7; 32]).in_scope(SessionScope::of("shop", binding));
    /// let token = Session::default().token(&key("here"));
    /// assert!(Session::from_token(&key("here"), &token).is_ok());
    /// assert_eq!(Session::from_token(&key("there"), &token), Err(TokenError::Binding));
    /// ```
    #[must_use]
    pub fn in_scope(self, scope: SessionScope) -> Self {
        Self { scope, ..self }
    }

    fn mac(&self, bytes: &[u8]) -> Hmac<Sha256> {
        let mut mac =
            Hmac::<Sha256>::new_from_slice(&self.key).expect("HMAC takes keys of any size");
        mac.update(bytes);
        mac
    }
}

impl fmt::Debug for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionKey(..)")
    }
}

/// The reason why a token was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenError {
    /// The token is longer than any that was ever given out.
    TooLong(usize),
    /// The text is no token, or only a part of one.
    Malformed,
    /// The token was signed with another key, or changed.
    Signature,
    /// The token has a version that this library does not know.
    Version(u8),
    /// The token belongs to a program that declares other data.
    Program,
    /// The token belongs to other stores.
    Binding,
}

impl fmt::Display for TokenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong(length) => write!(
                f,
                "a session token has at most {TOKEN_BYTES_MAX} characters, this one has {length}"
            ),
            Self::Malformed => f.write_str("this is no session token"),
            Self::Signature => {
                f.write_str("the session token was signed with another key, or changed since")
            }
            Self::Version(version) => {
                write!(f, "the session token is of version {version}, expected {VERSION_READ_MIN} or {VERSION}")
            }
            Self::Program => f.write_str(
                "the session token is of another program: one that declares other stores or objects",
            ),
            Self::Binding => f.write_str(
                "the session token is of another binding: the same program over other stores",
            ),
        }
    }
}

impl std::error::Error for TokenError {}

const VERSION: u8 = 3;
const VERSION_READ_MIN: u8 = 2;
const SIGNATURE_BYTES: usize = 32;
const DIGEST_BYTES: usize = 16;
const SCOPE_BYTES: usize = 2 * DIGEST_BYTES;

impl Session {
    /// Creates a session that stays at this replica, in every store that has one of that name.
    pub fn at(replica: impl Into<Name>) -> Self {
        let state = State { replica: Some(replica.into()), ..State::default() };
        Self(Arc::new(Mutex::new(state)))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the replica at which the session stays, if any.
    pub fn replica(&self) -> Option<Name> {
        self.state().replica.clone()
    }

    /// Moves to another replica. There the session sees all that it has seen before, or waits. A call at
    /// a store of level `eventual` may run at the replica of before, as long as only that one is
    /// known to have what the session has seen there.
    pub fn move_to(&self, replica: impl Into<Name>) {
        self.state().replica = Some(replica.into());
    }

    /// Returns the session as text, which a client may keep: versioned, signed and bounded in
    /// length. It belongs to the scope of the key.
    ///
    /// # Panics
    ///
    /// Never: the size of a session is bounded before it gets here.
    pub fn token(&self, key: &SessionKey) -> String {
        let state = self.state().clone();
        let mut head = vec![VERSION];
        head.extend_from_slice(&key.scope.bytes());
        let mut bytes = postcard::to_extend(&state, head).expect("memory takes it");
        let signature = key.mac(&bytes).finalize().into_bytes();
        bytes.extend_from_slice(&signature);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Restores a session from its token.
    ///
    /// # Errors
    ///
    /// If the text is no token signed with this key, or is of another scope.
    pub fn from_token(key: &SessionKey, token: &str) -> Result<Self, TokenError> {
        if token.len() > TOKEN_BYTES_MAX {
            return Err(TokenError::TooLong(token.len()));
        }
        let bytes = URL_SAFE_NO_PAD.decode(token).map_err(|_| TokenError::Malformed)?;
        let signed = bytes.len().checked_sub(SIGNATURE_BYTES).ok_or(TokenError::Malformed)?;
        let (payload, signature) = bytes.split_at(signed);
        key.mac(payload).verify_slice(signature).map_err(|_| TokenError::Signature)?;
        match payload.split_first() {
            Some((version @ (&VERSION_READ_MIN | &VERSION), rest)) => {
                let state = in_scope(rest, &key.scope)?;
                let state = match *version {
                    VERSION => postcard::from_bytes(state),
                    _ => postcard::from_bytes::<State2>(state).map(State::from),
                };
                Ok(Self(Arc::new(Mutex::new(state.map_err(|_| TokenError::Malformed)?))))
            }
            Some((version, _)) => Err(TokenError::Version(*version)),
            None => Err(TokenError::Malformed),
        }
    }

    /// Adds all that `other` has seen. If two requests began from one token, neither is lost.
    pub fn join(&self, other: &Self) {
        if Arc::ptr_eq(&self.0, &other.0) {
            return;
        }
        let theirs = other.state().clone();
        let mut state = self.state();
        state.wait_set.join(&theirs.wait_set);
        state.leans.join(&theirs.leans);
    }

    /// Forgets the data that the session has seen of a store beyond `visible`. Use it if this data
    /// will not come, or not soon, since the data center that had it is gone. No lost write is
    /// repeated. Returns true if the session had seen such data.
    ///
    /// # Examples
    ///
    /// ```
    /// use mingle_runtime::session::Session;
    ///
    /// let session = Session::at("oslo");
    /// assert!(!session.accept_loss("inboxes", &Default::default()), "it has seen nothing");
    /// ```
    pub fn accept_loss(&self, store: &str, visible: &Stamp) -> bool {
        let mut state = self.state();
        state.leans.release(store, |_| true);
        state.wait_set.cut(store, visible)
    }

    /// Returns the transactions and stamps that the session waits for.
    pub fn worklist(&self) -> WaitSet {
        self.state().wait_set.clone()
    }

    /// True if the session has seen nothing that any store could lack.
    pub(crate) fn has_seen_nothing(&self) -> bool {
        let state = self.state();
        state.wait_set.is_empty() && state.leans == Leans::default()
    }

    /// Returns the number of transactions that the session waits for.
    pub(crate) fn waits(&self) -> usize {
        self.state().wait_set.len()
    }

    pub(crate) fn learn(&self, learned: &WaitSet) {
        self.state().wait_set.join(learned);
    }

    pub(crate) fn is_over(&self, store: &str, ids: impl IntoIterator<Item = TransactionId>) {
        let mut state = self.state();
        for id in ids {
            state.wait_set.is_over(store, id);
        }
    }

    /// Drops transactions that a replica of `store` has, and leans on that replica instead.
    pub(crate) fn lean(
        &self,
        store: &Name,
        replica: Option<&Name>,
        ids: impl IntoIterator<Item = TransactionId>,
    ) {
        let mut state = self.state();
        for id in ids {
            state.wait_set.is_over(store, id);
            state.leans.lean(store, replica, [id]);
        }
    }

    /// Ends the need for a replica of `store` for the transactions up to those for which `is_everywhere`
    /// holds.
    pub(crate) fn release(&self, store: &str, is_everywhere: impl Fn(TransactionId) -> bool) {
        self.state().leans.release(store, is_everywhere);
    }

    /// Returns the replicas that the session leans on.
    pub(crate) fn leans(&self) -> Leans {
        self.state().leans.clone()
    }

    /// Returns the replicas of `store` that the session leans on.
    pub(crate) fn leans_on(&self, store: &str) -> BTreeSet<Option<Name>> {
        self.state().leans.replicas(store)
    }

    pub(crate) fn is_everywhere(&self, store: &str, everywhere: &Stamp) {
        self.state().wait_set.is_everywhere(store, everywhere);
    }

    /// Forgets all stamps. Only a planted fault does that.
    pub(crate) fn forget_seen(&self) {
        self.state().wait_set.forget_seen();
    }
}

/// Returns the state in a token that belongs to this scope.
fn in_scope<'t>(payload: &'t [u8], scope: &SessionScope) -> Result<&'t [u8], TokenError> {
    let (found, state) = payload.split_at_checked(SCOPE_BYTES).ok_or(TokenError::Malformed)?;
    let (program, binding) = found.split_at(DIGEST_BYTES);
    if program != scope.program {
        return Err(TokenError::Program);
    }
    if binding != scope.binding {
        return Err(TokenError::Binding);
    }
    Ok(state)
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.state().fmt(f)
    }
}

impl PartialEq for Session {
    fn eq(&self, other: &Self) -> bool {
        if Arc::ptr_eq(&self.0, &other.0) {
            return true;
        }
        let theirs = other.state().clone();
        *self.state() == theirs
    }
}

#[cfg(test)]
mod tests {
    use mingle_model::Origin;

    use super::*;
    use crate::protocol::wait_set::Awaited;

    fn id(sequence: u64) -> TransactionId {
        TransactionId { origin: Origin(7), sequence }
    }

    /// Signs the parts of a state as a token of this version.
    fn signed(key: &SessionKey, version: u8, state: &impl Serialize) -> String {
        let mut head = vec![version];
        head.extend_from_slice(&key.scope.bytes());
        let mut bytes = postcard::to_extend(state, head).unwrap();
        let signature = key.mac(&bytes).finalize().into_bytes();
        bytes.extend_from_slice(&signature);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    #[test]
    fn a_token_keeps_the_replica_that_the_session_leans_on() {
        let (feed, r1, key) = (Name::from("feed"), Name::from("r1"), SessionKey::new([7; 32]));
        let session = Session::at("r1");
        let awaited = Awaited { intent: feed.clone(), is_reader: false };
        let mut waits = WaitSet::default();
        waits.wait_at(&feed, id(1), awaited.clone());
        waits.wait_at(&feed, id(2), awaited);
        session.learn(&waits);
        session.lean(&feed, Some(&r1), [id(1)]);
        session.move_to("r3");
        let again = Session::from_token(&key, &session.token(&key)).unwrap();
        assert_eq!(again, session);
        assert_eq!(again.leans_on("feed"), BTreeSet::from([Some(r1)]));
        assert_eq!(again.waits(), 1, "the other one is still named");
        assert!(!again.accept_loss("feed", &Stamp::default()), "it has seen no stamp there");
        assert_eq!(again.leans_on("feed"), BTreeSet::new(), "the client gives up what it had seen");
    }

    #[test]
    fn tokens_of_the_version_before_are_read() {
        let (key, feed) = (SessionKey::new([7; 32]), Name::from("feed"));
        let mut waits = WaitSet::default();
        waits.wait_at(&feed, id(1), Awaited { intent: feed.clone(), is_reader: false });
        let token = signed(&key, 2, &(Some(Name::from("r2")), waits.clone()));
        let session = Session::from_token(&key, &token).unwrap();
        assert_eq!((session.replica().as_deref(), session.worklist()), (Some("r2"), waits));
        let newer = signed(&key, 4, &());
        let error = Session::from_token(&key, &newer).unwrap_err();
        assert_eq!(error.to_string(), "the session token is of version 4, expected 2 or 3");
    }
}
