//! A program's connections to the data centers of a cluster.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::join_all;
use mingle_model::{Name, Origin, Stamp, TransactionId};
use mingle_store::record::read_floor;
use mingle_store::{
    Capabilities, EngineId, Once, Outcome, RecordKind, StoreError, StoreSchema, World, Write,
};

use crate::config::{MingledConfig, OpenError};
use crate::link::{Connection, Failed, Link};
use crate::schema::{declared, digest};
use crate::wire::{Answered, Given, Program, Progress, Request, framed};

/// The first id of engines in clusters; engines in this process have lower ones.
const FIRST_ENGINE: u64 = 1 << 63;

/// The number of times that a request is sent whose connection was closed because its user has changed.
pub(crate) const SIGN_INS_MAX: usize = 3;

/// The reason of a request that was not carried out because the user has changed.
pub(crate) const CHANGED: &str = "the user of the binding was changed";

/// A program's connections to the data centers of a cluster.
pub struct Cluster {
    /// The connections to each data center, in the order of their names.
    links: Vec<Arc<Link>>,
    /// Names and capabilities of its stores, in the order of their numbers.
    pub(crate) stores: Vec<Capabilities>,
    pub(crate) id: EngineId,
    world: Arc<dyn World>,
    /// The newest answers on data centers that were given up; `seen` is not used.
    progress: Mutex<Progress>,
}

impl Cluster {
    /// Connects to a data center, and opens all stores of a program that are in its cluster. Of several data centers
    /// the first one that answers is asked; the others are connected once they are used.
    ///
    /// # Errors
    ///
    /// When no data center can be reached, when one refuses the stores (it has other declarations of an
    /// object, or does not support a store), when the binding names other data centers than there are, or when a store
    /// has a `unique` or draws keys.
    pub async fn open(
        config: MingledConfig,
        schemas: &[StoreSchema],
        world: Arc<dyn World>,
    ) -> Result<Arc<Self>, OpenError> {
        static NEXT: AtomicU64 = AtomicU64::new(FIRST_ENGINE);
        for schema in schemas {
            check_builtins(schema)?;
        }
        let program: Program = schemas.iter().map(declared).collect();
        let frame = framed(&program);
        let digest = digest(&frame[4..]);
        let links = Link::all(&config, &(frame, digest));
        let (address, mut stores) = open_first(&links).await?;
        let is_same = stores.len() == schemas.len()
            && stores.iter().zip(schemas).all(|(found, schema)| found.store == schema.store);
        if !is_same {
            let reason = "it has opened other stores than those that it was asked for".into();
            return Err(OpenError::Refused { address, reason });
        }
        for store in &mut stores {
            check_names(store, &config)?;
            store.may_lose_answers = true;
            store.round_trip = config.round_trip;
            if store.replicas.len() == 1 {
                // A single copy needs no name.
                store.replicas.clear();
            }
        }
        let id = EngineId(NEXT.fetch_add(1, Ordering::Relaxed));
        Ok(Arc::new(Self { links, stores, id, world, progress: Mutex::default() }))
    }

    /// Connects to each data center without opening stores, and returns its address and the number of its cluster.
    ///
    /// # Errors
    ///
    /// For each: when it cannot be reached, is not trusted, is of another cluster than the configuration says, or when the
    /// user may not have the store, if one is given.
    pub async fn probe(
        config: MingledConfig,
        store: Option<&Name>,
    ) -> Vec<(String, Result<u128, OpenError>)> {
        let links = Link::all(&config, &(Vec::new(), [0; 32]));
        let probe =
            |link: Arc<Link>| async move { (link.address().to_owned(), link.probe(store).await) };
        join_all(links.into_iter().map(probe)).await
    }

    pub(crate) fn number(&self, name: &str) -> Option<u16> {
        let place = self.stores.iter().position(|store| *store.store == *name)?;
        u16::try_from(place).ok()
    }

    pub(crate) fn capabilities(&self, number: u16) -> &Capabilities {
        &self.stores[usize::from(number)]
    }

    pub(crate) fn name(&self, number: u16) -> Name {
        self.capabilities(number).store.clone()
    }

    /// Returns the place of a data center in the list of connections; without a name, that of the first one.
    pub(crate) fn place(&self, replica: Option<&Name>) -> usize {
        let place = |name| self.links.iter().position(|link| link.name() == Some(name));
        replica.and_then(place).unwrap_or(0)
    }

    pub(crate) fn address(&self, place: usize) -> &str {
        self.links[place].address()
    }

    pub(crate) fn unavailable(&self, number: u16, place: usize, reason: &str) -> StoreError {
        let link = &self.links[place];
        let name = link.name().map(|name| format!(" {name}")).unwrap_or_default();
        let address = link.address();
        let reason = format!("its data center{name} at {address} cannot be reached: {reason}");
        StoreError::Unavailable { store: self.name(number), reason }
    }

    /// Returns the error for an answer that does not fit its request.
    pub(crate) fn mixed_up(&self, number: u16, place: usize) -> StoreError {
        self.unavailable(number, place, "it answers something else than it was asked")
    }

    pub(crate) async fn connect(
        &self,
        number: u16,
        place: usize,
    ) -> Result<Connection, StoreError> {
        let connected = self.links[place].connect().await;
        connected.map_err(|reason| self.unavailable(number, place, &reason))
    }

    /// Sends a request outside of transactions.
    async fn ask(&self, number: u16, place: usize, request: &Request) -> Result<Given, StoreError> {
        for _ in 0..SIGN_INS_MAX {
            let connection = self.connect(number, place).await?;
            let asked = connection.ask::<Answered>(request).await;
            let (connection, answered) = asked
                .map_err(|failed: Failed| self.unavailable(number, place, &failed.reason()))?;
            if matches!(answered, Ok(Given::Again)) {
                self.user_changed(place);
                continue;
            }
            connection.keep();
            return answered;
        }
        Err(self.unavailable(number, place, CHANGED))
    }

    /// Notes that the user of the connections to a data center has changed: later ones sign in again.
    pub(crate) fn user_changed(&self, place: usize) {
        self.links[place].forget_idle();
    }

    /// Ends a transaction that a caller has dropped.
    pub(crate) fn end(&self, connection: Connection) {
        self.world.spawn(Box::pin(async move { connection.tell(&Request::Drop).await }));
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the data centers that were given up, as far as this program knows.
    pub(crate) fn departed(&self) -> BTreeSet<Name> {
        self.progress().departed.clone()
    }

    /// Returns the stamp without the commits that were lost with data centers, as far as this program knows.
    pub(crate) fn kept(&self, seen: &Stamp) -> Stamp {
        seen.kept(&self.progress().ends)
    }

    /// Asks every data center that was not given up, at once.
    async fn ask_all(
        &self,
        number: u16,
        request: &Request,
    ) -> Vec<(usize, Result<Given, StoreError>)> {
        let departed = self.departed();
        let is_gone = |link: &Link| link.name().is_some_and(|name| departed.contains(name));
        let alive = self.links.iter().enumerate().filter(|(_, link)| !is_gone(link));
        let ask = |place| async move { (place, self.ask(number, place, request).await) };
        join_all(alive.map(|(place, _)| ask(place))).await
    }

    /// Returns the stamp that every data center has seen.
    ///
    /// # Errors
    ///
    /// When one does not answer that was not given up.
    pub(crate) async fn everywhere(&self, number: u16) -> Result<Stamp, StoreError> {
        let (mut met, mut away): (Option<Stamp>, Vec<(usize, StoreError)>) = (None, Vec::new());
        for (place, answer) in self.ask_all(number, &Request::Everywhere(number)).await {
            match answer {
                Ok(Given::Everywhere(progress)) => {
                    match &mut met {
                        Some(met) => met.meet(&progress.seen),
                        None => met = Some(progress.seen.clone()),
                    }
                    let mut known = self.progress();
                    if progress.epoch >= known.epoch {
                        *known = progress;
                    }
                }
                Ok(_) => return Err(self.mixed_up(number, place)),
                Err(error) => away.push((place, error)),
            }
        }
        let departed = self.departed();
        let is_missed = |(place, _): &(usize, StoreError)| {
            self.links[*place].name().is_none_or(|name| !departed.contains(name))
        };
        match away.into_iter().find(is_missed) {
            Some((_, error)) => Err(error),
            None => Ok(met.unwrap_or_default()),
        }
    }

    /// Returns the outcome of a commit at a store. At a strong store each data center knows it. At others each
    /// answers for itself; then the commit has taken effect if one says so, and has not if all others have barred it.
    ///
    /// # Errors
    ///
    /// When no data center answers.
    pub(crate) async fn outcome(
        &self,
        number: u16,
        id: TransactionId,
    ) -> Result<Outcome, StoreError> {
        let request = Request::Outcome(number, id);
        if self.capabilities(number).once == Once::Serial {
            let mut failed = None;
            for place in 0..self.links.len() {
                match self.ask(number, place, &request).await {
                    Ok(Given::Outcome(outcome)) => return Ok(outcome),
                    Ok(_) => failed = Some(self.mixed_up(number, place)),
                    Err(error) => failed = Some(error),
                }
            }
            return Err(failed.unwrap_or_else(|| self.mixed_up(number, 0)));
        }
        let departed = self.departed();
        let answers = self.ask_all(number, &request).await;
        let said = |outcome| {
            answers
                .iter()
                .any(|(_, answer)| matches!(answer, Ok(Given::Outcome(it)) if *it == outcome))
        };
        if said(Outcome::Committed) {
            return Ok(Outcome::Committed);
        }
        let is_barred = |answer: &Result<Given, StoreError>| {
            matches!(answer, Ok(Given::Outcome(Outcome::NotCommitted)))
        };
        if !answers.is_empty() && answers.iter().all(|(_, answer)| is_barred(answer)) {
            // A data center that was left out may have been admitted meanwhile, without their bars.
            let is_as_before = departed.is_empty()
                || self.everywhere(number).await.is_ok() && self.departed() == departed;
            return Ok(if is_as_before { Outcome::NotCommitted } else { Outcome::Unknown });
        }
        if answers.iter().any(|(_, answer)| answer.is_ok()) {
            // One that does not answer may have been given up: the next question leaves it out.
            let _ = self.everywhere(number).await;
            return Ok(Outcome::Unknown);
        }
        let first = answers.into_iter().next();
        let (place, answer) = first.unwrap_or_else(|| (0, Err(self.mixed_up(number, 0))));
        answer.and_then(|_| Err(self.mixed_up(number, place)))
    }

    /// Returns the floors that these writes raise, if there are other data centers to be told of them.
    pub(crate) fn floors(&self, writes: &[Write]) -> Vec<(Origin, u64)> {
        if self.links.len() < 2 {
            return Vec::new();
        }
        let floors = writes.iter().filter_map(|write| match write {
            Write::Record(key, value) if key.kind == RecordKind::Floor => {
                Some((key.origin()?, read_floor(value)))
            }
            _ => None,
        });
        floors.collect()
    }

    /// Tells the other data centers about floors that were raised at one, so that they forget the operations below.
    /// One that is not reached learns of the next ones.
    pub(crate) fn tell_floors(
        self: &Arc<Self>,
        number: u16,
        at: usize,
        floors: Vec<(Origin, u64)>,
    ) {
        if floors.is_empty() {
            return;
        }
        let cluster = Arc::clone(self);
        self.world.spawn(Box::pin(async move {
            let request = Request::Floors(number, floors);
            let others = (0..cluster.links.len()).filter(|place| *place != at);
            // A floor is a hint: without it ids are kept for longer.
            let told = others.map(|place| cluster.ask(number, place, &request));
            let _ = join_all(told).await;
        }));
    }
}

/// Refuses the queries that data centers do not serve.
///
/// # Errors
///
/// When a store has a `unique` or draws keys.
fn check_builtins(schema: &StoreSchema) -> Result<(), OpenError> {
    let checked = schema.refuse_all_but_indexes("a store of mingled");
    checked.map_err(|reason| OpenError::Config { store: schema.store.clone(), reason })
}

/// Opens the stores at the first data center that answers, and returns its address.
async fn open_first(links: &[Arc<Link>]) -> Result<(String, Vec<Capabilities>), OpenError> {
    let mut away = None;
    for link in links {
        match link.open().await {
            Ok(stores) => return Ok((link.address().to_owned(), stores)),
            Err(error @ OpenError::Unavailable { .. }) => away = away.or(Some(error)),
            Err(error) => return Err(error),
        }
    }
    let address = String::new();
    let reason = "the binding has no address".to_owned();
    Err(away.unwrap_or(OpenError::Unavailable { address, reason }))
}

/// Checks that the binding names the data centers of a store.
fn check_names(store: &Capabilities, config: &MingledConfig) -> Result<(), OpenError> {
    let wrong = |reason| Err(OpenError::Config { store: store.store.clone(), reason });
    let (found, named) = (&store.replicas, config.servers.keys());
    if config.servers.is_empty() && found.len() > 1 {
        let example: Vec<String> =
            found.iter().map(|name| format!("{name} = \"HOST:PORT\"")).collect();
        return wrong(format!(
            "its cluster has {} data centers: instead of `address`, give the address of each, `servers = {{ {} }}`",
            found.len(),
            example.join(", ")
        ));
    }
    let is_same = found.len() == config.servers.len()
        && named.clone().all(|name| found.iter().any(|known| **known == **name));
    if config.servers.is_empty() || is_same {
        return Ok(());
    }
    let named: Vec<&str> = named.map(String::as_str).collect();
    let found: Vec<&str> = found.iter().map(|name| &**name).collect();
    wrong(format!(
        "`servers` names {}, and the data centers of its cluster are {}",
        named.join(", "),
        found.join(", ")
    ))
}
