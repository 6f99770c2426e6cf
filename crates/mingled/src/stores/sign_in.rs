//! The settings of the listener for programs: users and their rights, encryption, and bounds.

use std::sync::Arc;
use std::time::Duration;

use mingle_model::Name;
use mingle_store_mingled::wire::SignIn;

use crate::access::{Audit, AuditEvent, Denied, PROGRAMS, Tls, User, Users};

/// The largest number of bytes of a name that the log of denials quotes.
const QUOTED: usize = 64;

/// The time in which a program must have signed in, with the handshake of TLS, unless a setting says otherwise.
pub const SIGN_IN_WITHIN: Duration = Duration::from_secs(10);

/// The time in which the bytes of a request must go on coming once it has begun, and in which all declarations of a
/// program must come, unless a setting says otherwise.
pub const REQUEST_WITHIN: Duration = Duration::from_secs(30);

/// The maximum number of connections that have not signed in, unless a setting says otherwise.
pub const STRANGERS_MAX: usize = 100;

/// The settings of a listener for programs. Users, encryption and log are those of clients of Redis.
///
/// # Examples
///
/// ```
/// use mingled::stores::{ProgramSettings, STRANGERS_MAX};
///
/// let settings = ProgramSettings::default();
/// assert!(settings.users.is_none() && settings.tls.is_none());
/// assert_eq!(settings.strangers_max, STRANGERS_MAX);
/// ```
#[derive(Clone, Debug)]
pub struct ProgramSettings {
    /// The users; without them every program may have every store.
    pub users: Option<Arc<Users>>,
    /// The encryption of connections; without it there is none.
    pub tls: Option<Arc<Tls>>,
    /// The log of events that concern security.
    pub audit: Arc<Audit>,
    /// The time in which a program must have signed in, with the handshake of TLS.
    pub sign_in: Duration,
    /// The time in which the bytes of a request must go on coming once it has begun, and in which all declarations of a
    /// program must come.
    pub request: Duration,
    /// The maximum number of connections that have not signed in. For one more the oldest of them is closed.
    pub strangers_max: usize,
}

impl Default for ProgramSettings {
    fn default() -> Self {
        Self {
            users: None,
            tls: None,
            audit: Arc::default(),
            sign_in: SIGN_IN_WITHIN,
            request: REQUEST_WITHIN,
            strangers_max: STRANGERS_MAX,
        }
    }
}

/// The user of a connection.
#[derive(Debug)]
pub struct SignedIn {
    /// None if there are no users.
    user: Option<Arc<User>>,
    /// The generation of users at which it was looked up.
    generation: u64,
}

impl ProgramSettings {
    /// Signs the user of a program in.
    ///
    /// # Errors
    ///
    /// The reason, with what to do.
    pub(super) fn sign_in(&self, given: Option<&SignIn>, client: &str) -> Result<SignedIn, String> {
        let Some(users) = &self.users else {
            return match given {
                None => Ok(SignedIn { user: None, generation: 0 }),
                Some(_) => Err(
                    "it has no users: take user and password out of the binding, or give the data \
                                center users_file"
                        .into(),
                ),
            };
        };
        let generation = users.generation();
        let user = match given {
            Some(SignIn { user: name, password }) => {
                let found = users.authenticate(name.as_bytes(), password.as_bytes());
                found.ok_or_else(|| {
                    self.audit.deny("auth", PROGRAMS, &shown(name), client);
                    "the user or the password is wrong, or the user is off (WRONGPASS): compare user and password \
                     in the binding with users_file of the data center"
                })?
            }
            None => users.get("default").filter(|it| it.needs_no_password()).ok_or(
                "it needs a user and a password (NOAUTH): set user and password in the binding",
            )?,
        };
        let signed_in = SignedIn { user: Some(user), generation };
        self.check(&signed_in, &[], client)?;
        if given.is_some() {
            self.audit.note(AuditEvent::SignedIn, client, signed_in.name(), PROGRAMS);
        }
        Ok(signed_in)
    }

    /// Checks that a user may have these stores.
    ///
    /// # Errors
    ///
    /// The reason, with what to do.
    pub(super) fn check(
        &self,
        signed_in: &SignedIn,
        stores: &[Name],
        client: &str,
    ) -> Result<(), String> {
        let Some(user) = &signed_in.user else { return Ok(()) };
        let checked = user.check_programs(stores.iter().map(|store| &**store));
        let Err(denied) = checked else { return Ok(()) };
        let (name, file) = (user.name(), "users_file of the data center");
        let (reason, object, text) = match denied {
            Denied::Command(right) => {
                let text = format!(
                    "the user {name} may have no stores (NOPERM): add +{right} to it in {file}"
                );
                ("command", right, text)
            }
            Denied::Key(store) => {
                let store = String::from_utf8_lossy(&store).into_owned();
                let text = format!(
                    "the user {name} may not have the store {store} (NOPERM): add ~{store} to it in {file}"
                );
                ("key", shown(&store), text)
            }
        };
        self.audit.deny(reason, &object, name, client);
        Err(text)
    }

    /// True if the user of a connection is as it was when it signed in.
    pub(super) fn is_current(&self, signed_in: &mut SignedIn) -> bool {
        let (Some(users), Some(user)) = (&self.users, &signed_in.user) else { return true };
        let generation = users.generation();
        if signed_in.generation == generation {
            return true;
        }
        signed_in.generation = generation;
        users.get(user.name()).as_ref() == Some(user)
    }
}

impl SignedIn {
    fn name(&self) -> &str {
        self.user.as_ref().map_or("", |user| user.name())
    }
}

fn shown(text: &str) -> String {
    text.as_bytes()[..text.len().min(QUOTED)].escape_ascii().to_string()
}
