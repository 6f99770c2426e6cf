//! A program over its stores.

mod shown;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use mingle_lang::Program;
use mingle_lang::hir::StoreId;
use mingle_model::{Ref, Type, Value};
use mingle_runtime::{Call, CallReport, Error, Runtime, Session, SessionScope, TokioWorld};
use mingle_store::{DataStore, World};

use crate::binding::{Binding, StoreBinding};
use crate::check::check_binding;
use crate::open::{
    Known, OpenError, in_place_of, is_all_embedded, open_store, opening_order, store_schema,
};
use crate::scope::scope;
use crate::texts;
pub use shown::absent_fields;

/// The number of elements of each collection that [`Database::show`] gives by default.
pub const SHOWN_MAX: usize = 100;

/// A program over its stores.
pub struct Database {
    pub(crate) runtime: Arc<Runtime>,
    /// True while this process finishes transactions that earlier processes left.
    pub(crate) is_catching_up: Arc<AtomicBool>,
    warnings: Vec<String>,
    scope: SessionScope,
    /// Stores with functions beyond [`mingle_store::DataStore`], by engine.
    #[cfg_attr(not(any(feature = "embedded", feature = "postgres")), allow(dead_code))]
    pub(crate) known: Known,
}

impl Database {
    /// Opens the stores of a program: in `folder`, or in memory. Must be called on a tokio
    /// runtime, on which transactions then run.
    ///
    /// A folder belongs to one process at a time. If all stores are in the folder, every unfinished
    /// transaction was left by a process that has ended; this process starts to finish them at once, in
    /// the background. Otherwise it does so as soon as the other process gives no sign of life.
    ///
    /// # Errors
    ///
    /// When the binding does not fit the program, or a store cannot be opened.
    pub async fn open(
        program: Arc<Program>,
        binding: &Binding,
        folder: Option<&Path>,
    ) -> Result<Self, OpenError> {
        Self::open_in(program, binding, folder, Arc::new(TokioWorld::new())).await
    }

    /// As [`Database::open`], in a world that the caller supplies.
    ///
    /// # Errors
    ///
    /// As [`Database::open`].
    pub async fn open_in(
        program: Arc<Program>,
        binding: &Binding,
        folder: Option<&Path>,
        world: Arc<dyn World>,
    ) -> Result<Self, OpenError> {
        Self::open_wrapped(program, binding, folder, world, |_, store| store).await
    }

    /// As [`Database::open_in`]; `wrap` receives each store with its name and can wrap it: with faults,
    /// counters, or a recorder of histories.
    ///
    /// # Errors
    ///
    /// As [`Database::open`].
    pub async fn open_wrapped(
        program: Arc<Program>,
        binding: &Binding,
        folder: Option<&Path>,
        world: Arc<dyn World>,
        wrap: impl FnMut(&str, Arc<dyn DataStore>) -> Arc<dyn DataStore>,
    ) -> Result<Self, OpenError> {
        let database = Self::open_idle(program, binding, folder, world, wrap).await?;
        if folder.is_some() && is_all_embedded(database.program(), binding) {
            database.catch_up();
        }
        database.runtime.start_sweeps();
        Ok(database)
    }

    /// As [`Database::open_wrapped`], but transactions that other processes left stay as they are until
    /// [`Database::recover`] is called, or a transaction meets them.
    ///
    /// # Errors
    ///
    /// As [`Database::open`].
    pub async fn open_idle(
        program: Arc<Program>,
        binding: &Binding,
        folder: Option<&Path>,
        world: Arc<dyn World>,
        wrap: impl FnMut(&str, Arc<dyn DataStore>) -> Arc<dyn DataStore>,
    ) -> Result<Self, OpenError> {
        Self::open_stores(program, binding, (folder, false), world, wrap).await
    }

    /// Opens the stores; the flag beside the folder allows leaving out stores that are away.
    pub(crate) async fn open_stores(
        program: Arc<Program>,
        binding: &Binding,
        (folder, may_be_away): (Option<&Path>, bool),
        world: Arc<dyn World>,
        mut wrap: impl FnMut(&str, Arc<dyn DataStore>) -> Arc<dyn DataStore>,
    ) -> Result<Self, OpenError> {
        let mut warnings = check_binding(&program, binding)?;
        #[cfg(feature = "embedded")]
        if let Some(folder) = folder {
            crate::open::renamed::rename_stores(&program, binding, folder)?;
        }
        let mut stores: BTreeMap<usize, Arc<dyn DataStore>> = BTreeMap::new();
        let mut known = Known::default();
        for id in opening_order(&program, binding) {
            let declared = &program.checked.stores[id.index()];
            let opened = open_store((&program, id), binding, folder, &world, &mut known).await;
            let opened = match opened {
                Err(error) if may_be_away && error.is_unavailable() => {
                    in_place_of((&program, id), binding, &error)
                }
                opened => opened?,
            };
            warnings.extend(opened.warnings);
            stores.insert(id.index(), wrap(&declared.name, opened.store));
        }
        let stores = stores.into_values().collect();
        let scope = scope(&program, binding, folder, &*world);
        let runtime = Runtime::new(program, stores, world, binding.settings.clone());
        let plans = runtime.program().plans.iter();
        let refused = plans.filter_map(|plan| runtime.check_plan(plan).err());
        for error in refused {
            let warning = format!("every call is refused: {error}");
            // The check of the binding may have found it.
            if !warnings.contains(&warning) {
                warnings.push(warning);
            }
        }
        Ok(Self { warnings, scope, known, ..Self::over(runtime) })
    }

    /// A database over open stores. The caller decides whether it looks for transactions that other
    /// processes left, by [`Runtime::start_sweeps`].
    pub fn over(runtime: Arc<Runtime>) -> Self {
        Self {
            runtime,
            is_catching_up: Arc::default(),
            warnings: Vec::new(),
            scope: SessionScope::default(),
            known: Known::default(),
        }
    }

    /// The scope of sessions of this program over these stores. A key made for this scope refuses the
    /// tokens of other scopes. Changes of transactions do not change the scope.
    pub fn session_scope(&self) -> SessionScope {
        self.scope
    }

    /// The program's declarations for a store, without bodies of operations.
    pub fn store_schema(&self, store: StoreId) -> mingle_store::StoreSchema {
        store_schema(self.program(), store, &StoreBinding::default())
    }

    /// Warnings about the setup of the stores, one sentence each: data that a server could lose, and
    /// constraints that could refuse a write after the transaction has committed elsewhere.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The stores that cannot serve, as far as this process knows without asking a server: an error for
    /// each store whose disk has failed. Such a store tries to open its file again, at most once a
    /// second, when a call uses it or this function is called.
    pub async fn failed_stores(&self) -> Vec<mingle_store::StoreError> {
        let mut failed = Vec::new();
        for index in 0..self.program().checked.stores.len() {
            let store = self.runtime.store(StoreId(index as u32));
            failed.extend(store.health().await.err());
        }
        failed
    }

    /// The stores and replicas that do not answer this process at present. Calls that must visit one are
    /// refused before they write anything; this process asks it again every second.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn shown(database: &mingle::Database) {
    /// for away in database.away() {
    ///     println!("{away}");
    /// }
    /// # }
    /// ```
    pub fn away(&self) -> Vec<mingle_runtime::Away> {
        self.runtime.away()
    }

    /// Lets a session go on without the transactions that were lost with data centers that were given
    /// up, and returns them. Before this, calls that need them are refused. Nothing is done again.
    ///
    /// # Examples
    ///
    /// ```
    /// use mingle::{Binding, Database, Session};
    ///
    /// # tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(async {
    /// let text = "store inboxes: causal;
    ///     object User in inboxes { key name: string; inbox: log<string>; }
    ///     transaction send(to: ref User, text: string) { to.inbox.append(text); }";
    /// let binding = "[stores.inboxes]\ndatacenters = [\"oslo\", \"rome\", \"lima\"]\nbetween = \"400ms\"";
    /// let binding = Binding::parse(binding).unwrap();
    /// let database = Database::open(mingle::compile(text).unwrap(), &binding, None).await.unwrap();
    /// let send = database.arguments("send", [("to", "ana"), ("text", "hello")]).unwrap();
    /// let session = Session::at("oslo");
    /// database.call("send", send.clone(), session.clone()).await.unwrap();
    ///
    /// // It burns down before anybody else has heard of that.
    /// let inboxes = database.geo("inboxes").unwrap();
    /// inboxes.kill("oslo").unwrap();
    /// inboxes.give_up("oslo").await.unwrap();
    /// session.move_to("rome");
    /// let error = database.call("send", send.clone(), session.clone()).await.unwrap_err();
    /// assert!(error.to_string().contains("is lost"), "{error}");
    /// assert_eq!(&*database.accept_losses(&session)[0].store, "inboxes");
    /// database.call("send", send, session).await.unwrap();
    /// # });
    /// ```
    pub fn accept_losses(&self, session: &Session) -> Vec<mingle_runtime::Loss> {
        self.runtime.accept_losses(session)
    }

    /// The lost transactions that a session has seen: those lost with data centers that were given up.
    pub fn losses(&self, session: &Session) -> Vec<mingle_runtime::Loss> {
        self.runtime.losses(session)
    }

    /// The runtime.
    pub fn runtime(&self) -> &Arc<Runtime> {
        &self.runtime
    }

    /// The program.
    pub fn program(&self) -> &Arc<Program> {
        self.runtime.program()
    }

    /// Calls a transaction.
    ///
    /// # Errors
    ///
    /// See [`Error`].
    pub async fn call(
        &self,
        transaction: &str,
        arguments: Vec<Value>,
        session: Session,
    ) -> Result<CallReport, Error> {
        self.submit(Call { session, ..Call::new(transaction, arguments) }).await
    }

    /// Calls a transaction with all options of a call. With [`Call::until`] the caller gets the result
    /// as soon as that store, and all stores before it, have committed.
    ///
    /// # Errors
    ///
    /// See [`Error`].
    pub async fn submit(&self, call: Call) -> Result<CallReport, Error> {
        self.runtime.call(call).await
    }

    /// Parses arguments: the texts of `string`, `time` and refs with a string key are taken as they
    /// are, all others are read as JSON.
    ///
    /// # Errors
    ///
    /// [`Error::Misuse`], which says which value was expected.
    pub fn arguments<'a>(
        &self,
        transaction: &str,
        named: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Vec<Value>, Error> {
        texts::arguments(self.program(), transaction, named)
    }

    /// Reads a value from its text, as on a command line.
    ///
    /// # Errors
    ///
    /// A message with the expected and the found value.
    pub fn read_text(&self, text: &str, value_type: &Type) -> Result<Value, String> {
        texts::read_text(self.program(), text, value_type)
    }

    /// The object with a key that is written as text.
    ///
    /// # Errors
    ///
    /// [`Error::Misuse`] when there is no such kind, or the key does not fit.
    pub fn object(&self, kind: &str, key: &str) -> Result<Ref, Error> {
        texts::object(self.program(), kind, key)
    }
}
