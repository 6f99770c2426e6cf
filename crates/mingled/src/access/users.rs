//! The users of a server, in a file.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::user::User;

/// The maximum length of the file, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

type Table = BTreeMap<String, Arc<User>>;

/// An error in the file of users: the file, the line, what was found and what was expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsersError(String);

impl fmt::Display for UsersError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UsersError {}

/// The users of a server. Their file has the lines of an `aclfile` of Redis:
///
/// ```text
/// # the application
/// user app on >a-long-password ~app:* +@all -@admin -@dangerous
/// user operator on #5e884898da28047151d0e56f8dc6292773603d0d6aabbdd62a11ef721d1542d8 ~* +@all
/// ```
///
/// Without a line for the user `default`, connections may do nothing before they give a password.
#[derive(Debug)]
pub struct Users {
    file: PathBuf,
    table: Mutex<Arc<Table>>,
    /// The number of times at which the file was read.
    generation: AtomicU64,
}

impl Users {
    /// Reads the users in a file.
    ///
    /// # Errors
    ///
    /// The file, the line, what was found and what was expected.
    pub fn open(file: PathBuf) -> Result<Self, UsersError> {
        let table = Mutex::new(Arc::new(read(&file)?));
        Ok(Self { file, table, generation: AtomicU64::new(1) })
    }

    /// Reads the file again. Connections whose users have changed are closed at their next request.
    ///
    /// # Errors
    ///
    /// As for [`open`](Self::open); then the users stay as they were.
    pub fn reload(&self) -> Result<(), UsersError> {
        let table = Arc::new(read(&self.file)?);
        *self.table() = table;
        self.generation.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    /// Returns the file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Returns a number that changes when the users do.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Returns the user of this name.
    pub fn get(&self, name: &str) -> Option<Arc<User>> {
        self.table().get(name).cloned()
    }

    /// Returns the user of this name and password, if it is on.
    pub fn authenticate(&self, name: &[u8], password: &[u8]) -> Option<Arc<User>> {
        let user = std::str::from_utf8(name).ok().and_then(|name| self.get(name));
        // An unknown name takes the time of a wrong password.
        let user = user.unwrap_or_else(|| Arc::new(User::new(String::new())));
        let is_right = user.has_password(password);
        (is_right && user.is_on()).then_some(user)
    }

    /// Returns all users in the order of their names.
    pub fn all(&self) -> Vec<Arc<User>> {
        self.table().values().cloned().collect()
    }

    fn table(&self) -> MutexGuard<'_, Arc<Table>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read(file: &Path) -> Result<Table, UsersError> {
    let fault = |why: String| UsersError(format!("{} cannot be read: {why}", file.display()));
    let length = fs::metadata(file).map_err(|error| fault(error.to_string()))?.len();
    if length > FILE_BYTES_MAX {
        return Err(fault(format!("it has {length} bytes, at most {FILE_BYTES_MAX} are accepted")));
    }
    let text = fs::read_to_string(file).map_err(|error| fault(error.to_string()))?;
    let mut table = Table::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let wrong = |why: String| UsersError(format!("{}:{number}: {why}", file.display()));
        let user = user(line).map_err(wrong)?;
        if table.contains_key(user.name()) {
            return Err(wrong(format!("the user {} has two lines", user.name())));
        }
        table.insert(user.name().to_owned(), Arc::new(user));
    }
    if table.is_empty() {
        return Err(UsersError(format!(
            "{} has no users, expected lines such as: user app on >password ~app:* +@all -@admin",
            file.display()
        )));
    }
    Ok(table)
}

fn user(line: &str) -> Result<User, String> {
    let mut words = line.split_ascii_whitespace();
    let (first, name) = (words.next(), words.next());
    let Some(name) = name.filter(|_| first == Some("user")) else {
        return Err("found a line that does not begin with `user NAME`".into());
    };
    if name.chars().any(|letter| letter.is_control() || letter.is_whitespace()) || name.len() > 256
    {
        return Err("the name of a user has at most 256 bytes, without control characters".into());
    }
    User::from_rules(name, &words.collect::<Vec<_>>().join(" "))
        .map_err(|why| format!("the user {name}: {why}"))
}
