//! Data centers that are gone for good: giving one up, and admitting it again.
//!
//! The core implements both (`mingle_geo::members`). The other data centers agree on how much of
//! its data stays. Data that only it had are lost, at all data centers alike, and sessions that
//! have seen lost data are told. It comes back with empty disks, as another incarnation, and copies
//! the data of the others.

use std::time::Duration;

use mingle_geo::members::Standing;
use mingle_geo::{DcId, Timestamp};
use mingle_model::{Name, Stamp};
use mingle_store::StoreError;

use super::cluster::Phase;
use super::net::{Change, Inner};
use super::store::{GeoStore, Shared};

/// Interval at which a caller that waits for a change looks again.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Interval at which an unanswered request for a change is repeated.
const ASK_EVERY: Duration = Duration::from_millis(500);

/// Longest wait for a change; after it, the change goes on by itself and the caller gets an error.
const CHANGE_WAIT_MAX: Duration = Duration::from_secs(20);

/// The status of a data center, as returned by [`GeoStore::status`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatacenterStatus {
    /// Its name.
    pub name: Name,
    /// Number of times it was admitted again.
    pub incarnation: u32,
    /// Its state.
    pub state: DatacenterState,
}

/// The state of a data center.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DatacenterState {
    /// It runs.
    Up,
    /// It was stopped, and still has all its data.
    Down,
    /// Its data are gone or cannot be read, for this reason. It never serves again and must be
    /// given up.
    Lost(String),
    /// It is being given up: the others have not all reported the data they have of it.
    BeingGivenUp,
    /// It was given up.
    GivenUp,
    /// It was admitted again and is copying the data of the others.
    ComingUp {
        /// Number of partitions copied so far.
        taken_over: u16,
        /// Number of partitions in all.
        partitions: u16,
    },
}

impl DatacenterState {
    /// The words for all states.
    pub const WORDS: [&str; 6] = ["up", "down", "lost", "being given up", "given up", "coming up"];

    /// Returns the word for this state, one of [`WORDS`](Self::WORDS).
    pub fn word(&self) -> &'static str {
        let place = match self {
            Self::Up => 0,
            Self::Down => 1,
            Self::Lost(_) => 2,
            Self::BeingGivenUp => 3,
            Self::GivenUp => 4,
            Self::ComingUp { .. } => 5,
        };
        Self::WORDS[place]
    }
}

/// The result of [`GeoStore::give_up`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenUp {
    /// The incarnation of the data center that was given up.
    pub incarnation: u32,
    /// Commits of it up to this time are kept, in microseconds since 1970.
    pub cut_us: u64,
    /// Number of transactions that only it had, which are lost; none if its own data are gone too,
    /// so that the number is unknown.
    pub lost: Option<usize>,
}

/// The result of [`GeoStore::admit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admitted {
    /// The incarnation of the data center that runs now.
    pub incarnation: u32,
}

impl GeoStore {
    /// Returns the status of each data center.
    pub fn status(&self) -> Vec<DatacenterStatus> {
        let shared = &self.shared;
        let partitions = shared.config.partitions;
        let names = (0..).map(DcId).zip(self.datacenters());
        let statuses = names.map(|(dc, name)| {
            let (incarnation, phase) =
                shared.net.with(|inner| (inner.members().of(dc).incarnation, inner.phase(dc)));
            let state = match phase {
                Phase::Up => DatacenterState::Up,
                Phase::Down => DatacenterState::Down,
                Phase::Lost(why) => DatacenterState::Lost(why),
                Phase::BeingGivenUp => DatacenterState::BeingGivenUp,
                Phase::GivenUp => DatacenterState::GivenUp,
                Phase::ComingUp(taken_over) => DatacenterState::ComingUp { taken_over, partitions },
            };
            DatacenterStatus { name: name.clone(), incarnation, state }
        });
        statuses.collect()
    }

    /// True if both stores share their data centers: giving up or admitting one applies to both.
    pub fn shares_datacenters_with(&self, other: &Self) -> bool {
        self.shared.engine.id() == other.shared.engine.id()
    }

    /// Gives up a data center that does not run, for good: the others agree on the data they have
    /// of it. These data stay; any other data it had are lost and never accepted again. It can be
    /// [admitted](Self::admit) again, with empty disks.
    ///
    /// A change that takes longer than 20 s goes on by itself.
    ///
    /// # Errors
    ///
    /// When no data center has this name, it runs, or it was given up before; when too few of the
    /// others run and reach each other, or they do not agree in time.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::collections::BTreeMap;
    /// # use std::sync::Arc;
    /// # use mingle_model::{Level, Schema};
    /// # use mingle_store::{StoreSchema, TestWorld};
    /// use mingle_store_embedded::{DatacenterState, Embedded, EmbeddedConfig, GeoConfig};
    ///
    /// # let schema = StoreSchema {
    /// #     store: "inboxes".into(),
    /// #     level: Level::Causal,
    /// #     schema: Arc::new(Schema::default()),
    /// #     operations: BTreeMap::new(),
    /// # };
    /// # let world = TestWorld::new(1);
    /// let geo = GeoConfig::new(["oslo", "rome", "lima"]);
    /// let config = EmbeddedConfig::in_memory().with_geo(geo);
    /// let store = Embedded::open_geo(&config, &schema, world.clone())?;
    /// world.block_on(async {
    ///     store.kill("oslo")?;
    ///     store.give_up("oslo").await?;
    ///     assert_eq!(store.status()[0].state, DatacenterState::GivenUp);
    ///     assert!(store.start("oslo").is_err());
    ///     assert_eq!(store.admit("oslo").await?.incarnation, 1);
    ///     assert_eq!(store.status()[0].state, DatacenterState::Up);
    ///     Ok::<(), mingle_store::StoreError>(())
    /// }).unwrap();
    /// # Ok::<(), mingle_store_embedded::OpenError>(())
    /// ```
    pub async fn give_up(&self, datacenter: &str) -> Result<GivenUp, StoreError> {
        let shared = &self.shared;
        let dc = shared.dc(datacenter)?;
        let incarnation = shared.net.with(|inner| inner.members().of(dc).incarnation);
        match shared.net.with(|inner| inner.phase(dc)) {
            Phase::Down | Phase::Lost(_) | Phase::BeingGivenUp => {}
            Phase::Up | Phase::ComingUp(_) => {
                let reason = format!("its data center {datacenter} runs, and is not given up");
                return Err(shared.core.refused(reason));
            }
            Phase::GivenUp => {
                let reason = format!("its data center {datacenter} was given up already");
                return Err(shared.core.refused(reason));
            }
        }
        shared.check_others(dc)?;
        let cut = || shared.net.with(|inner| inner.cut(dc, incarnation));
        shared.change(Change::GiveUp(dc, incarnation), || cut().is_some()).await?;
        let at = cut().unwrap_or_default();
        let lost = shared.own()?.with(|inner| inner.lost_with(dc, at));
        Ok(GivenUp { incarnation, cut_us: at.micros(), lost })
    }

    /// Brings back a data center that was given up: with empty disks, as another incarnation. It
    /// copies the data of the others, and serves from then on. If it was admitted before and is
    /// still copying, this call waits for it.
    ///
    /// A change that takes longer than 20 s goes on by itself: [`status`](Self::status) tells its
    /// progress.
    ///
    /// # Errors
    ///
    /// When no data center has this name, or it was not given up; when too few of the others run
    /// and reach each other, or it does not come up in time.
    pub async fn admit(&self, datacenter: &str) -> Result<Admitted, StoreError> {
        let shared = &self.shared;
        let dc = shared.dc(datacenter)?;
        let before = shared.net.with(|inner| inner.members().of(dc));
        let incarnation = match shared.net.with(|inner| inner.phase(dc)) {
            Phase::GivenUp => before.incarnation + 1,
            Phase::ComingUp(_) => before.incarnation,
            Phase::BeingGivenUp => {
                let reason = format!("its data center {datacenter} is still being given up");
                return Err(shared.core.unavailable(reason));
            }
            Phase::Up | Phase::Down | Phase::Lost(_) => {
                let reason = format!("its data center {datacenter} was not given up");
                return Err(shared.core.refused(reason));
            }
        };
        shared.check_others(dc)?;
        if before.standing == Standing::Fenced {
            self.begin_anew(dc, incarnation).await?;
            let is_in = || shared.net.with(|inner| inner.members().of(dc).incarnation);
            shared.change(Change::Admit(dc, incarnation), || is_in() == incarnation).await?;
        }
        let shown = shared.own()?.with(|inner| inner.shown_by_others(dc));
        let has_all = || {
            shared.net.with(|inner| {
                inner.stay_busy();
                !inner.is_coming_up(dc) && inner.is_ready(dc) && inner.visible(dc).covers(&shown)
            })
        };
        if !shared.wait(has_all).await {
            return Err(shared.not_ready(dc, CHANGE_WAIT_MAX));
        }
        Ok(Admitted { incarnation })
    }

    /// Removes the old incarnation's data before any other replica hears of the new incarnation.
    async fn begin_anew(&self, dc: DcId, incarnation: u32) -> Result<(), StoreError> {
        let shared = &self.shared;
        shared
            .own()?
            .with(
                |inner| {
                    if inner.incarnation(dc) == incarnation { Ok(()) } else { inner.renew(dc) }
                },
            )
            .map_err(|why| shared.core.refused(why))?;
        shared.on_disk().await?;
        shared.own()?.with(|inner| inner.set_up(dc, true));
        Ok(())
    }
}

impl Shared {
    /// Returns the error for a data center that does not run.
    pub(super) fn down(&self, dc: DcId) -> StoreError {
        let name = self.name(dc);
        let reason = match self.net.with(|inner| inner.phase(dc)) {
            Phase::Lost(why) => format!(
                "its data center {name} has lost its data, since {why}: `mingle datacenters PROGRAM give-up {name}` \
                 gives it up, and `mingle datacenters PROGRAM admit {name}` brings it back"
            ),
            Phase::BeingGivenUp | Phase::GivenUp => format!(
                "its data center {name} was given up: `mingle datacenters PROGRAM admit {name}` brings it back"
            ),
            Phase::Up | Phase::Down | Phase::ComingUp(_) => {
                format!("its data center {name} is down")
            }
        };
        self.core.unavailable(reason)
    }

    /// Returns the error for a data center that does not serve yet.
    pub(super) fn not_ready(&self, dc: DcId, waited: Duration) -> StoreError {
        let name = self.name(dc);
        let reason = match self.net.with(|inner| inner.phase(dc)) {
            Phase::ComingUp(taken_over) => format!(
                "its data center {name} was admitted again, and has taken over {taken_over} of {} partitions so far",
                self.config.partitions
            ),
            _ => format!("its data center {name} is not ready after {waited:?}"),
        };
        self.core.unavailable(reason)
    }

    /// Checks that a data center that was stopped can start with the data it had.
    pub(super) fn check_may_start(&self, dc: DcId) -> Result<(), StoreError> {
        match self.net.with(|inner| inner.phase(dc)) {
            Phase::Up | Phase::Down | Phase::ComingUp(_) => Ok(()),
            Phase::Lost(_) | Phase::BeingGivenUp | Phase::GivenUp => Err(self.down(dc)),
        }
    }

    /// Checks that nothing that a session has seen is lost; it may still be on its way.
    pub(super) fn check_kept(&self, after: &Stamp) -> Result<(), StoreError> {
        let Some((dc, seen, cut)) = self.net.with(|inner| inner.lost_of(after)) else {
            return Ok(());
        };
        let name = self.name(dc);
        let [seen, cut] = [seen, cut].map(Timestamp::micros);
        Err(self.core.refused(format!(
            "its data center {name} was given up, and of what the session has seen there, up to {seen} us, \
             what came after {cut} us is lost: accept the loss, or begin another session"
        )))
    }

    /// Checks that enough other data centers can agree on a change of this one.
    fn check_others(&self, dc: DcId) -> Result<(), StoreError> {
        let name = self.name(dc);
        if self.config.datacenters.len() < 2 {
            let reason =
                format!("{name} is its only data center: there is no other to agree on it");
            return Err(self.core.refused(reason));
        }
        let Some((left, needed)) = self.own()?.with(|inner| inner.too_few_without(dc)) else {
            return Ok(());
        };
        let left: Vec<&str> = left.iter().map(|dc| &**self.name(*dc)).collect();
        let left = if left.is_empty() {
            "none does".into()
        } else {
            format!("only {} do", left.join(", "))
        };
        Err(self.core.unavailable(format!(
            "to give up {name} or bring it back, {needed} other data centers have to run and reach each other, and {left}"
        )))
    }

    /// Asks for a change until it is made and all reachable data centers know it and have it on
    /// disk.
    async fn change(&self, change: Change, is_made: impl Fn() -> bool) -> Result<(), StoreError> {
        let (Change::GiveUp(dc, _) | Change::Admit(dc, _)) = change;
        let own = self.own()?;
        let client = own.with(Inner::add_client);
        let mut asked_at: Option<Duration> = None;
        let mut refused = None;
        let is_done = self
            .wait(|| {
                let now = self.core.world.elapsed();
                let is_due = asked_at.is_none_or(|at| at + ASK_EVERY <= now);
                refused = own.with(|inner| {
                    if is_due {
                        inner.ask(client, change);
                    }
                    inner.refused(client)
                });
                if is_due {
                    asked_at = Some(now);
                }
                refused.is_some() || is_made() && own.with(|inner| inner.have_heard(dc))
            })
            .await;
        own.with(|inner| inner.remove_client(client));
        if let Some(refusal) = refused {
            return Err(self.core.refused(refusal.to_string()));
        }
        if !is_done {
            return Err(self.late(dc, &own.with(|inner| inner.awaited_for(dc))));
        }
        self.on_disk().await
    }

    /// Returns the error for a change that was not made in time.
    fn late(&self, dc: DcId, awaited: &[DcId]) -> StoreError {
        let name = self.name(dc);
        if awaited.is_empty() {
            return self.core.unavailable(format!(
                "the other data centers have not agreed on {name} after {CHANGE_WAIT_MAX:?}; once they can, they will"
            ));
        }
        let awaited: Vec<&str> = awaited.iter().map(|dc| &**self.name(*dc)).collect();
        self.core.unavailable(format!(
            "{name} is being given up, but after {CHANGE_WAIT_MAX:?} no report has come of what {} had of it; the change \
             is made once it comes, or once those are given up as well",
            awaited.join(", ")
        ))
    }

    /// Waits until everything queued so far is written to disk.
    async fn on_disk(&self) -> Result<(), StoreError> {
        let own = self.own()?;
        let (until, _) = own.with(Inner::written);
        let is_there = || self.core.is_broken() || own.with(Inner::written).1 >= until;
        let is_there = self.wait(is_there).await;
        self.core.check()?;
        if is_there {
            return Ok(());
        }
        Err(self.core.unavailable(format!("its disk has not written after {CHANGE_WAIT_MAX:?}")))
    }

    /// Waits until the predicate holds, at most `CHANGE_WAIT_MAX`; returns its last value.
    async fn wait(&self, mut is_so: impl FnMut() -> bool) -> bool {
        let begin = self.core.world.elapsed();
        loop {
            if is_so() {
                return true;
            }
            if self.core.world.elapsed().saturating_sub(begin) >= CHANGE_WAIT_MAX {
                return false;
            }
            self.core.world.sleep(LOOK_EVERY).await;
        }
    }
}
