//! Message Groups with `groups` in PostgreSQL, far away, and `inboxes` near; with both in PostgreSQL;
//! and the first version written by hand.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mingle::{Binding, Database, Session};
use mingle_lang::Program;
use mingle_lang::explain::ExplainedPhase;
use mingle_model::random::Random;
use mingle_model::{Ref, Time, Value};
use mingle_store::wrap::distance::Distance;
use mingle_store::{Commit, DataStore, Write};
use tokio::task::JoinHandle;

use super::outbox::{self, Link, Outbox};
use super::servers::Servers;
use super::{Options, Progress};
use crate::groups::{self, MIX, Size};
use crate::hand::Inboxes;
use crate::measured::Measured;
use crate::predict;
use crate::rounds::Rounds;

/// The sides of the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Mixed,
    AllFar,
    ByHand,
}

impl Side {
    pub const ALL: [Self; 3] = [Self::Mixed, Self::AllFar, Self::ByHand];

    pub fn title(self) -> &'static str {
        match self {
            Self::Mixed => "mixed",
            Self::AllFar => "all in PostgreSQL",
            Self::ByHand => "mixed by hand",
        }
    }

    fn program(self) -> String {
        match self {
            Self::AllFar => groups::all_linearizable(),
            Self::Mixed | Self::ByHand => groups::PROGRAM.to_owned(),
        }
    }
}

/// The measurements.
pub struct Outcome {
    pub measured: [Measured; 3],
    /// Throughput of the mixed version divided by the throughput with all in PostgreSQL.
    pub by_all_far: Rounds,
    /// Throughput of the mixed version divided by the throughput of the version by hand.
    pub by_hand: Rounds,
    /// Latencies by transaction, in ms, of the first two sides, as predicted from the round trips that
    /// `mingle explain` counts.
    pub predicted: [Vec<f64>; 2],
}

impl Outcome {
    /// The throughput ratio of the first two sides as predicted from round trips: with a fixed number of
    /// clients, throughput is inversely proportional to the mean latency.
    pub fn predicted_ratio(&self) -> f64 {
        let mean = |side: Side| {
            predict::mean_ms(&self.predicted[side as usize], &self.measured[side as usize])
        };
        mean(Side::AllFar) / mean(Side::Mixed)
    }

    /// The departure of the measured ratio from the predicted one, in percent.
    pub fn departure(&self) -> f64 {
        (self.by_all_far.median() / self.predicted_ratio() - 1.0) * 100.0
    }
}

/// The target of a client's calls.
enum Caller {
    Database(Arc<Database>),
    ByHand(Arc<Outbox>, Link),
}

impl Caller {
    /// Calls a transaction; returns the number of attempts after the first.
    async fn call(&self, transaction: &str, arguments: Vec<Value>) -> Result<u64, String> {
        let (outbox, link) = match self {
            Self::Database(database) => {
                let called = database.call(transaction, arguments, Session::default()).await;
                let report = called.map_err(|error| error.to_string())?;
                let again = report.phases.iter().map(|phase| phase.attempts.saturating_sub(1));
                return Ok(again.map(u64::from).sum());
            }
            Self::ByHand(outbox, link) => (outbox, link),
        };
        let object = |index: usize| -> &Ref {
            arguments[index].as_ref_value().expect("the mix draws a ref here")
        };
        match transaction {
            "check_inbox" => outbox.check_inbox(object(0)).await.map(|_| ()),
            "add_post" => outbox.add_post(link, object(0), &arguments[1]).await.map(|_| ()),
            "join_group" => outbox.join_group(link, object(0), object(1)).await,
            _ => outbox.create_user(&arguments[0], Time::from_millis(1_000)).await.map(|_| ()),
        }?;
        Ok(link.take_again())
    }
}

/// All sides, ready to be called.
struct Site {
    callers: [Vec<Caller>; 3],
    inboxes: Inboxes,
    emptying: JoinHandle<Result<(), String>>,
}

/// Measures all sides in turn, forwards and backwards in each round.
pub async fn measure(
    options: &Options,
    servers: &Servers,
    progress: &Progress,
) -> Result<Outcome, String> {
    progress.say("filling");
    servers.set_distance(Distance::default());
    let mut site = Site::open(options, servers).await?;
    servers.settle().await?;
    servers.set_distance(options.far);
    let mut measured = [Measured::new()?, Measured::new()?, Measured::new()?];
    let (mut by_all_far, mut by_hand) = (Rounds::default(), Rounds::default());
    for side in Side::ALL {
        // Connections are made and statements prepared.
        progress.say(&format!("{}: warming up", side.title()));
        let seconds = options.warm_up * 3.0;
        site.block(options, side, u64::MAX, (seconds, 0.0)).await?;
    }
    for round in 0..options.rounds {
        let mut of_round = [Measured::new()?, Measured::new()?, Measured::new()?];
        let there_and_back = Side::ALL.into_iter().chain(Side::ALL.into_iter().rev());
        for (place, side) in there_and_back.enumerate() {
            progress.say(side.title());
            let number = (round * 2 + place / Side::ALL.len()) as u64;
            let seconds = (options.warm_up, options.seconds);
            of_round[side as usize].add(&site.block(options, side, number, seconds).await?)?;
            progress.step();
        }
        let [mixed, all_far, hand] = [0, 1, 2].map(|side: usize| of_round[side].throughput());
        by_all_far.push(mixed / all_far);
        by_hand.push(mixed / hand);
        for (all, one) in measured.iter_mut().zip(&of_round) {
            all.add(one)?;
        }
    }
    site.close(servers).await?;
    Ok(Outcome { measured, by_all_far, by_hand, predicted: predictions(options)? })
}

/// The latencies of the first two sides, as predicted from round trips.
fn predictions(options: &Options) -> Result<[Vec<f64>; 2], String> {
    let of = |side: Side| -> Result<Vec<f64>, String> {
        let text = side.program();
        let phases = predict::phases(&text, &*groups::compile(&text)?);
        let distance =
            |phase: &ExplainedPhase| if is_far(phase) { options.far } else { options.near };
        Ok(predict::by_transaction(&phases, &distance))
    };
    Ok([of(Side::Mixed)?, of(Side::AllFar)?])
}

fn is_far(phase: &ExplainedPhase) -> bool {
    phase.store.as_deref() == Some("groups")
}

/// The database of a side that is a program.
async fn open(options: &Options, servers: &Servers, side: Side) -> Result<Database, String> {
    let schema = if side == Side::Mixed { "mixed" } else { "all_far" };
    let mut text = format!(
        "[stores.groups]\nengine = \"postgres\"\nurl = \"{}\"\nschema = \"{schema}\"\npool = {}\n\
         round_trip = \"{:?}\"\n",
        servers.far(),
        options.clients + 16,
        options.far.mean
    );
    if side == Side::Mixed {
        let _ = write!(text, "[stores.inboxes]\ndistance = \"{}\"\n", options.near);
    }
    let binding = Binding::parse(&text).map_err(|error| error.to_string())?;
    let program = groups::compile(&side.program())?;
    let opened = Database::open(program, &binding, None).await;
    opened.map_err(|error| error.to_string())
}

/// The near store of a side.
pub async fn near(distance: Distance) -> Result<Arc<dyn DataStore>, String> {
    let program = groups::compile(groups::PROGRAM)?;
    let text = format!("[stores.groups]\n[stores.inboxes]\ndistance = \"{distance}\"\n");
    let binding = Binding::parse(&text).map_err(|error| error.to_string())?;
    let world = Arc::new(mingle_runtime::TokioWorld::new());
    let opened = Database::open_idle(program.clone(), &binding, None, world, |_, store| store);
    let opened = opened.await.map_err(|error| error.to_string())?;
    Ok(store_of(&opened, &program, "User").clone())
}

/// The store that keeps a kind of objects.
fn store_of<'a>(database: &'a Database, program: &Program, kind: &str) -> &'a Arc<dyn DataStore> {
    let objects = &program.checked.objects;
    let object = objects.iter().find(|object| *object.declared.name == *kind);
    database.runtime().store(object.expect("the program declares it").store)
}

impl Site {
    async fn open(options: &Options, servers: &Servers) -> Result<Self, String> {
        let size = options.size();
        let databases = [
            Arc::new(open(options, servers, Side::Mixed).await?),
            Arc::new(open(options, servers, Side::AllFar).await?),
        ];
        for database in &databases {
            let program = database.program().clone();
            write(store_of(database, &program, "User"), users(size)).await?;
            write(store_of(database, &program, "Group"), members(size, &program)?).await?;
        }
        let store = near(options.near).await?;
        write(&store, users(size)).await?;
        let inboxes = || Inboxes {
            store: store.clone(),
            session: mingle_store::Session::default(),
            user_kind: "User".into(),
        };
        let (outbox, emptying) = Outbox::open(&servers.far(), inboxes).await?;
        outbox::fill(servers.near(), &pairs(size)).await?;
        let mut by_hand = Vec::new();
        for _ in 0..options.clients {
            by_hand.push(Caller::ByHand(outbox.clone(), Link::open(&servers.far()).await?));
        }
        let [mixed, all_far] = databases.map(|database| {
            (0..options.clients).map(|_| Caller::Database(database.clone())).collect()
        });
        Ok(Self { callers: [mixed, all_far, by_hand], inboxes: inboxes(), emptying })
    }

    /// Runs the clients of a side for a warm-up time and a measured time, both in seconds.
    async fn block(
        &mut self,
        options: &Options,
        side: Side,
        number: u64,
        (before, counted): (f64, f64),
    ) -> Result<Measured, String> {
        let from = Instant::now() + Duration::from_secs_f64(before);
        let until = from + Duration::from_secs_f64(counted);
        let callers = std::mem::take(&mut self.callers[side as usize]);
        let clients: Vec<_> = callers
            .into_iter()
            .enumerate()
            .map(|(client, caller)| {
                let calls = Calls::new(options, number, client);
                tokio::spawn(calls.run(caller, from, until))
            })
            .collect();
        let mut measured = Measured::new()?;
        for client in clients {
            let (caller, of_client) = client.await.map_err(|error| error.to_string())?;
            measured.add(&of_client?)?;
            self.callers[side as usize].push(caller);
        }
        measured.seconds = counted;
        Ok(measured)
    }

    /// Stops the task that empties the outbox, and checks that no delivery was left in it.
    async fn close(self, servers: &Servers) -> Result<(), String> {
        let Self { callers, inboxes, emptying } = self;
        drop(callers);
        emptying.await.map_err(|error| error.to_string())??;
        let link = Link::open(servers.near()).await?;
        match outbox::relay(&link, &inboxes, 0.0).await? {
            0 => Ok(()),
            left => Err(format!("{left} deliveries by hand were left in the outbox")),
        }
    }
}

/// The source of a client's calls in a block. Blocks of the same number make the same calls.
struct Calls {
    random: Random,
    size: Size,
    fresh: usize,
}

impl Calls {
    fn new(options: &Options, number: u64, client: usize) -> Self {
        let seed = number.wrapping_mul(1_000_003).wrapping_add(client as u64);
        let random = Random::new(options.seed.wrapping_mul(1_000_000_007) ^ seed);
        // The names of new users are unique to the block.
        let fresh = (number as usize % 1_000 * 1_000 + client) * 1_000_000;
        Self { random, size: options.size(), fresh }
    }

    async fn run(
        mut self,
        caller: Caller,
        from: Instant,
        until: Instant,
    ) -> (Caller, Result<Measured, String>) {
        let measured = self.calls(&caller, from, until).await;
        (caller, measured)
    }

    async fn calls(
        &mut self,
        caller: &Caller,
        from: Instant,
        until: Instant,
    ) -> Result<Measured, String> {
        let mut measured = Measured::new()?;
        loop {
            let (index, arguments) = groups::draw(&mut self.random, self.size, &mut self.fresh);
            let begin = Instant::now();
            let called = caller.call(MIX[index].0, arguments).await;
            let now = Instant::now();
            match called {
                Ok(again) if now >= from && now < until => {
                    measured.record(index, now - begin);
                    measured.again += again;
                }
                Ok(_) => {}
                // Failures are counted at any time, so that they are reported.
                Err(why) => {
                    measured.failed += 1;
                    measured.why.get_or_insert(format!("{}: {why}", MIX[index].0));
                }
            }
            if now >= until {
                return Ok(measured);
            }
        }
    }
}

/// The initial members of groups: pairs of a group's and a user's number.
fn memberships(size: Size) -> impl Iterator<Item = (usize, usize)> {
    (0..size.groups).flat_map(move |group| {
        (0..size.members).map(move |member| (group, (group * size.members + member) % size.users))
    })
}

fn pairs(size: Size) -> Vec<(String, String)> {
    memberships(size)
        .map(|(group, user)| (format!("group{group}"), format!("user{user}")))
        .collect()
}

fn users(size: Size) -> Vec<Write> {
    (0..size.users).map(|number| Write::Create(groups::user(number))).collect()
}

fn members(size: Size, program: &Program) -> Result<Vec<Write>, String> {
    let declared = program.checked.objects.iter().find(|o| &*o.declared.name == "Group");
    let index = declared.and_then(|object| object.declared.field_index("members"));
    let field = index.ok_or("the program has no members")? as u16;
    let insert = |(group, user)| {
        let address = mingle_store::Address { object: groups::group(group), field };
        Write::Insert(address, Value::Ref(groups::user(user)))
    };
    Ok(memberships(size).map(insert).collect())
}

/// The number of writes in one commit while a store is filled.
const FILL_AT_ONCE: usize = 2_000;

/// Fills a store.
pub async fn write(store: &Arc<dyn DataStore>, writes: Vec<Write>) -> Result<(), String> {
    for writes in writes.chunks(FILL_AT_ONCE) {
        let filled = async {
            let transaction = store.begin(&mingle_store::Session::default()).await?;
            transaction.commit(Commit { writes: writes.to_vec(), ..Commit::default() }).await
        };
        filled.await.map_err(|error| error.to_string())?;
    }
    Ok(())
}
