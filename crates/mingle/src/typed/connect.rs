//! Opening the stores of a program.

use std::fmt;
use std::marker::PhantomData;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use mingle_model::Value;
use mingle_runtime::{Error, Session};

use super::call::Call;
use crate::binding::Binding;
use crate::database::Database;
use crate::open::OpenError;

/// A program that was checked when its host was compiled, over open stores.
pub trait Program: Sized {
    /// The program's text.
    const TEXT: &'static str;

    /// Creates the program over stores that are open for it.
    #[doc(hidden)]
    fn from_handle(handle: Handle) -> Self;
}

/// The stores of a program, and the client whose calls they serve.
#[derive(Clone)]
pub struct Handle {
    database: Arc<Database>,
    /// The client's session; without one, each call is made by a client of its own.
    session: Option<Session>,
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").field("session", &self.session).finish_non_exhaustive()
    }
}

impl Handle {
    /// Creates a handle over stores that are open for the program `P`.
    ///
    /// # Errors
    ///
    /// [`Error::Misuse`] when the stores are open for another program.
    pub fn new<P: Program>(database: Arc<Database>) -> Result<Self, Error> {
        if *database.program().text != *P::TEXT {
            let message = "the stores are open for another program, or another version of it";
            return Err(Error::Misuse(message.into()));
        }
        Ok(Self { database, session: None })
    }

    /// Returns a handle to the same stores for one client.
    #[must_use]
    pub fn with_session(&self, session: &Session) -> Self {
        Self { database: self.database.clone(), session: Some(session.clone()) }
    }

    /// Returns the part of the API that is the same for all programs.
    pub fn database(&self) -> &Arc<Database> {
        &self.database
    }

    /// Creates a call of a transaction; it runs when it is awaited.
    pub fn call<T, const N: usize>(&self, transaction: &str, arguments: [Value; N]) -> Call<T> {
        let session = self.session.clone().unwrap_or_default();
        let call = mingle_runtime::Call::new(transaction, arguments.into());
        Call::new(self.database.clone(), mingle_runtime::Call { session, ..call })
    }
}

/// A request to open the stores of a program; awaiting it opens them. Without a binding, each store is
/// embedded; without a folder, embedded stores are in memory.
#[must_use = "stores are opened once this is awaited"]
pub struct Connect<P> {
    binding: Binding,
    folder: Option<PathBuf>,
    program: PhantomData<fn() -> P>,
}

impl<P: Program> Connect<P> {
    #[doc(hidden)]
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        Self { binding: Binding::default(), folder: None, program: PhantomData }
    }

    /// Sets the binding, which names the engine of each store.
    pub fn binding(self, binding: &Binding) -> Self {
        Self { binding: binding.clone(), ..self }
    }

    /// Sets the folder in which embedded stores keep their data.
    pub fn folder(self, folder: impl Into<PathBuf>) -> Self {
        Self { folder: Some(folder.into()), ..self }
    }

    async fn open(self) -> Result<P, OpenError> {
        let program = crate::compile(P::TEXT);
        let program = program.expect("a program that is generated code was checked before");
        let database = Database::open(program, &self.binding, self.folder.as_deref()).await?;
        Ok(P::from_handle(Handle { database: Arc::new(database), session: None }))
    }
}

impl<P: Program + 'static> IntoFuture for Connect<P> {
    type Output = Result<P, OpenError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.open())
    }
}
