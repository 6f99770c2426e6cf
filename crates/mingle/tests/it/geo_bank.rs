//! The bank over data centers, with declared pairs of conflicting transactions: no account is
//! overdrawn, nothing is lost, and deposits conflict with no other transaction.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use crate::support::geo::{CITIES, Cities};
use mingle::{Binding, Error, Session};
use mingle_lang::generate::Random;
use mingle_runtime::stats::Counted;
use mingle_store::test_world::join_all;
use mingle_store::{BoxFuture, World};
use serde_json::Value as Json;

const TEXT: &str = include_str!("../../../../examples/bank_counters.mingle");
const EXAMPLE: &str = include_str!("../../../../examples/bank_counters.toml");

/// Transactions that take money out conflict with each other.
const LABELS: &str = "[\"withdraw\", \"withdraw\"], [\"withdraw\", \"transfer\"], \
    [\"transfer\", \"transfer\"], [\"open_account\", \"open_account\"]";

/// As `LABELS`, but withdrawals conflict with no other transaction.
const WITHOUT: &str = "[\"open_account\", \"open_account\"]";

const ACCOUNTS: usize = 3;

/// The placement of the two stores: both in one engine, or each in its own; and the level of the
/// accounts' store: linearizable, or causal.
#[derive(Clone, Copy, PartialEq)]
enum Engines {
    One,
    Two,
    Causal,
}

struct Bank {
    cities: Cities,
    /// By account: the sum of deposits that took effect for sure, less withdrawals.
    sure: Mutex<[i64; ACCOUNTS]>,
    /// The number of calls of each name that were answered as done.
    done: Mutex<BTreeMap<&'static str, usize>>,
    /// The number of calls with an unknown outcome.
    unknown: Mutex<usize>,
}

/// A call, and the change of each account's balance if it takes effect.
struct Called {
    name: &'static str,
    arguments: Vec<(&'static str, String)>,
    changes: Vec<(usize, i64)>,
}

fn account(index: usize) -> String {
    format!("a{index}")
}

impl Bank {
    fn new(seed: u64, conflicts: &str, engines: Engines) -> Self {
        let places = "datacenters = [\"oslo\", \"rome\", \"lima\"]\nbetween = \"40ms±20ms\"\n";
        let notifications = if engines == Engines::One { "with = \"accounts\"\n" } else { places };
        let binding = format!(
            "[runtime]\ndeadline = \"20s\"\n[stores.accounts]\npartitions = 2\n{places}\
             conflicts = [{conflicts}]\n[stores.notifications]\n{notifications}"
        );
        let text = match engines {
            Engines::Causal => TEXT.replace("accounts: linearizable", "accounts: causal"),
            Engines::One | Engines::Two => TEXT.to_owned(),
        };
        let cities = Cities::seeded(&text, &binding, seed);
        let bank = Self {
            cities,
            sure: Mutex::default(),
            done: Mutex::default(),
            unknown: Mutex::default(),
        };
        for index in 0..ACCOUNTS {
            let arguments = [("number", account(index)), ("owner", format!("c{index}"))];
            bank.now("oslo", "open_account", &arguments);
            bank.now("oslo", "deposit", &[("account", account(index)), ("amount", "20".into())]);
            bank.sure.lock().expect("no panic")[index] = 20;
        }
        bank.pass(3);
        bank
    }

    fn now(&self, city: &str, transaction: &str, arguments: &[(&str, String)]) -> Json {
        let session = Session::at(city);
        let called = self.cities.report(&session, transaction, arguments);
        let called = self.cities.world.block_on(called);
        called.unwrap_or_else(|error| panic!("{transaction} in {city}: {error}")).1
    }

    fn pass(&self, seconds: u64) {
        self.cities.world.block_on(self.cities.world.sleep(Duration::from_secs(seconds)));
    }

    fn draw(random: &mut Random) -> Called {
        let (one, amount) = (random.below(ACCOUNTS), 1 + random.below(30));
        let other = (one + 1) % ACCOUNTS;
        let (signed, amount) = (amount as i64, ("amount", amount.to_string()));
        let (name, arguments, changes) = match random.below(10) {
            0..4 => ("deposit", vec![("account", account(one)), amount], vec![(one, signed)]),
            4..8 => ("withdraw", vec![("account", account(one)), amount], vec![(one, -signed)]),
            _ => {
                let arguments = vec![("from", account(one)), ("to", account(other)), amount];
                ("transfer", arguments, vec![(one, -signed), (other, signed)])
            }
        };
        Called { name, arguments, changes }
    }

    async fn client(&self, number: usize, seed: u64, rounds: usize, lowest: &Mutex<i64>) {
        let world = &self.cities.world;
        let mut random = Random::new(seed.wrapping_mul(1_000_003).wrapping_add(number as u64));
        let session = Session::at(CITIES[number % 3]);
        for _ in 0..rounds {
            let Called { name, arguments, changes } = Self::draw(&mut random);
            let outcome = self.cities.report(&session, name, &arguments).await;
            self.note(name, &changes, &outcome.map(|_| ()));
            let seen = [("account", account(random.below(ACCOUNTS)))];
            if let Ok((_, balance)) = self.cities.report(&session, "balance", &seen).await {
                let mut lowest = lowest.lock().expect("no panic");
                *lowest = (*lowest).min(balance.as_i64().expect("a number"));
            }
            if random.below(5) == 0 {
                session.move_to(CITIES[random.below(3)]);
            }
            world.sleep(Duration::from_millis(random.below(40) as u64)).await;
        }
    }

    fn note(&self, name: &'static str, changes: &[(usize, i64)], outcome: &Result<(), Error>) {
        match outcome {
            Ok(()) => {
                *self.done.lock().expect("no panic").entry(name).or_default() += 1;
                let mut sure = self.sure.lock().expect("no panic");
                for (account, amount) in changes {
                    sure[*account] += amount;
                }
            }
            Err(Error::Unknown { .. } | Error::Incomplete { .. }) => {
                *self.unknown.lock().expect("no panic") += 1;
            }
            Err(
                Error::Require { .. }
                | Error::Store(_)
                | Error::Conflict { .. }
                | Error::Waiting { .. },
            ) => {}
            Err(error) => panic!("{name}: {error}"),
        }
    }

    /// Runs clients in every city while data centers stop. Returns the lowest balance that a client saw.
    fn run(&self, seed: u64, rounds: usize, stops: &[&[&str]]) -> i64 {
        let lowest = Mutex::new(0);
        let mut all: Vec<BoxFuture<'_, ()>> = Vec::new();
        for number in 0..9 {
            all.push(Box::pin(self.client(number, seed, rounds, &lowest)));
        }
        all.push(Box::pin(self.cities.stop("accounts", stops)));
        self.cities.world.block_on(join_all(all));
        self.pass(30);
        lowest.into_inner().expect("no panic")
    }

    /// The balances; checks that every data center has the same, and that they match the history.
    fn balances(&self) -> Vec<i64> {
        let in_city = |city: &str| -> Vec<i64> {
            let one = |index| {
                let balance = self.now(city, "balance", &[("account", account(index))]);
                balance.as_i64().expect("a number")
            };
            (0..ACCOUNTS).map(one).collect()
        };
        let balances = in_city("oslo");
        for city in CITIES {
            assert_eq!(in_city(city), balances, "{city}");
        }
        for (index, balance) in balances.iter().enumerate() {
            let object = self.cities.database.object("Account", &account(index));
            let (object, session) = (object.expect("there are accounts"), Session::default());
            let shown = self.cities.database.show(&object, &session, 100_000);
            let shown = self.cities.world.block_on(shown).expect("the stores answer");
            let entries = shown["history"].as_array().expect("a list").iter();
            let total: i64 = entries.map(|entry| entry["amount"].as_i64().expect("a number")).sum();
            assert_eq!(total, *balance, "the history of {}", account(index));
        }
        balances
    }

    fn done(&self, name: &str) -> usize {
        self.done.lock().expect("no panic").get(name).copied().unwrap_or(0)
    }

    fn conflicts_of(&self, name: &str) -> u64 {
        self.cities.geo("accounts").conflicts_of(name)
    }
}

fn check(seed: u64, engines: Engines, stops: &[&[&str]]) {
    println!("seed {seed}");
    let bank = Bank::new(seed, LABELS, engines);
    let lowest = bank.run(seed, 14, stops);
    assert!(lowest >= 0, "seed {seed}: somebody saw {lowest}");
    let balances = bank.balances();
    assert!(balances.iter().all(|balance| *balance >= 0), "seed {seed}: {balances:?}");
    if *bank.unknown.lock().expect("no panic") == 0 {
        assert_eq!(balances, *bank.sure.lock().expect("no panic"), "seed {seed}");
    }
    assert!(bank.done("deposit") > 20 && bank.done("withdraw") > 10, "seed {seed}");
    assert!(bank.conflicts_of("withdraw") > 0, "seed {seed}: nobody was in anybody's way");
    if engines != Engines::Two {
        assert_eq!(bank.conflicts_of("deposit"), 0, "seed {seed}: a deposit was in conflict");
    }
    let united = bank.cities.database.runtime().stats().get(Counted::United);
    assert_eq!(united > 0, engines == Engines::One);
    assert_eq!(bank.cities.geo("accounts").alarms(), Vec::<String>::new(), "seed {seed}");
}

#[test]
fn no_account_is_overdrawn_and_deposits_conflict_with_nobody() {
    for seed in 1..=3 {
        check(seed, Engines::One, &[]);
    }
}

#[test]
fn that_holds_while_data_centers_stop() {
    for seed in 4..=6 {
        check(seed, Engines::One, &[&["oslo"], &["lima"], &["oslo", "rome"], &["rome"]]);
    }
}

/// A transfer leaves witness rows on the accounts, which deposits must read: these conflict.
#[test]
fn no_account_is_overdrawn_where_notifications_are_elsewhere() {
    check(7, Engines::Two, &[]);
    check(8, Engines::Two, &[&["oslo"], &["rome"]]);
}

#[test]
fn no_account_of_a_causal_store_is_overdrawn() {
    for seed in 20..=23 {
        check(seed, Engines::Causal, &[]);
    }
    for seed in 24..=27 {
        check(seed, Engines::Causal, &[&["oslo"], &["lima"], &["oslo", "rome"], &["rome"]]);
    }
}

/// At a causal store only what is in a pair waits for other data centers.
#[test]
fn deposits_at_a_causal_store_never_wait() {
    let bank = Bank::new(12, LABELS, Engines::Causal);
    let world = &bank.cities.world;
    let (slowest, fastest) = (Mutex::new(Duration::ZERO), Mutex::new(Duration::MAX));
    let taken = Mutex::new(0_i64);
    let mut all: Vec<BoxFuture<'_, ()>> = Vec::new();
    for number in 0..9 {
        let (bank, slowest, fastest, taken) = (&bank, &slowest, &fastest, &taken);
        all.push(Box::pin(async move {
            let session = Session::at(CITIES[number % 3]);
            let arguments = [("account", account(0)), ("amount", "1".to_owned())];
            for _ in 0..20 {
                let (since, is_deposit) = (world.elapsed(), number < 6);
                let name = if is_deposit { "deposit" } else { "withdraw" };
                match bank.cities.report(&session, name, &arguments).await {
                    Ok((report, _)) if is_deposit => {
                        let mut slowest = slowest.lock().expect("no panic");
                        *slowest = (*slowest).max(world.elapsed().saturating_sub(since));
                        let attempts: u32 = report.phases.iter().map(|phase| phase.attempts).sum();
                        assert_eq!(attempts, 1, "a deposit was made again");
                    }
                    Ok(_) => {
                        let mut fastest = fastest.lock().expect("no panic");
                        *fastest = (*fastest).min(world.elapsed().saturating_sub(since));
                        *taken.lock().expect("no panic") += 1;
                    }
                    Err(Error::Require { .. }) => {}
                    Err(error) => panic!("{name}: {error}"),
                }
                world.sleep(Duration::from_millis(5)).await;
            }
        }));
    }
    world.block_on(join_all(all));
    let (slowest, fastest) = (slowest.into_inner(), fastest.into_inner());
    let (slowest, fastest) = (slowest.expect("no panic"), fastest.expect("no panic"));
    let shortest_trip = Duration::from_millis(20);
    assert!(slowest < shortest_trip, "a deposit took {slowest:?}");
    assert!(fastest >= shortest_trip, "a withdrawal took {fastest:?}");
    bank.pass(3);
    let taken = taken.into_inner().expect("no panic");
    assert!(taken > 10, "few withdrawals: {taken}");
    assert_eq!(bank.balances()[0], 20 + 6 * 20 - taken);
}

/// Three cities open one account at once: with the pair of the transaction with itself, a causal store
/// promises that a key is new.
#[test]
fn an_account_of_a_causal_store_is_opened_once() {
    let bank = Bank::new(14, LABELS, Engines::Causal);
    let calls = CITIES.map(|city| {
        let bank = &bank;
        let call: BoxFuture<'_, bool> = Box::pin(async move {
            let arguments = [("number", "new".to_owned()), ("owner", city.to_owned())];
            match bank.cities.report(&Session::at(city), "open_account", &arguments).await {
                Ok(_) => true,
                Err(Error::Exists(_)) => false,
                Err(error) => panic!("{city}: {error}"),
            }
        });
        call
    });
    let opened = bank.cities.world.block_on(join_all(calls.into()));
    assert_eq!(opened.into_iter().filter(|opened| *opened).count(), 1);
}

/// A data center that reaches no other takes deposits and refuses withdrawals, with the reason.
#[test]
fn a_data_center_that_is_alone_takes_deposits() {
    let bank = Bank::new(13, LABELS, Engines::Causal);
    for city in ["rome", "lima"] {
        bank.cities.geo("accounts").kill(city).expect("it is there");
    }
    let arguments = [("account", account(0)), ("amount", "7".to_owned())];
    bank.now("oslo", "deposit", &arguments);
    let session = Session::at("oslo");
    let refused = bank.cities.report(&session, "withdraw", &arguments);
    let refused = bank.cities.world.block_on(refused).expect_err("no majority");
    assert!(refused.to_string().contains("does not reach rome, lima"), "{refused}");
    for city in ["rome", "lima"] {
        bank.cities.geo("accounts").start(city).expect("it is there");
    }
    bank.pass(3);
    bank.now("rome", "withdraw", &arguments);
    bank.pass(3);
    assert_eq!(bank.balances()[0], 20);
}

/// The pairs matter: if withdrawals conflict with no other transaction, accounts are overdrawn.
#[test]
fn withdrawals_that_do_not_conflict_overdraw() {
    let overdrawn = (1..=4).filter(|seed| {
        let bank = Bank::new(*seed, WITHOUT, Engines::One);
        let lowest = bank.run(*seed, 14, &[]);
        assert_eq!(bank.conflicts_of("withdraw"), 0);
        let balances = bank.balances();
        assert_eq!(balances, *bank.sure.lock().expect("no panic"), "nothing is lost even so");
        lowest < 0
    });
    assert!(overdrawn.count() > 0);
}

/// Three cities take all of one account at once.
#[test]
fn one_of_three_gets_all_of_it_and_without_the_pair_each_does() {
    for (conflicts, engines, expected) in [
        (LABELS, Engines::One, 1),
        (WITHOUT, Engines::One, 3),
        (LABELS, Engines::Causal, 1),
        (WITHOUT, Engines::Causal, 3),
    ] {
        let bank = Bank::new(11, conflicts, engines);
        let all = [("account", account(0)), ("amount", "20".to_owned())];
        let calls = CITIES.map(|city| {
            let (bank, all) = (&bank, &all);
            let call: BoxFuture<'_, bool> = Box::pin(async move {
                let session = Session::at(city);
                match bank.cities.report(&session, "withdraw", all).await {
                    Ok(_) => true,
                    Err(Error::Require { .. }) => false,
                    Err(error) => panic!("{city}: {error}"),
                }
            });
            call
        });
        let got = bank.cities.world.block_on(join_all(calls.into()));
        assert_eq!(got.into_iter().filter(|got| *got).count(), expected);
        bank.pass(3);
        assert_eq!(bank.balances()[0], 20 - 20 * expected as i64);
    }
}

/// While one data center is down, conflicting withdrawals do not delay deposits elsewhere; the deposits
/// are there when it is back.
#[test]
fn deposits_are_made_at_once_while_a_data_center_is_down() {
    let bank = Bank::new(9, LABELS, Engines::One);
    bank.cities.geo("accounts").kill("lima").expect("it is there");
    let arguments = |amount: &str| [("account", account(0)), ("amount", amount.to_owned())];
    let world = &bank.cities.world;
    let mut all: Vec<BoxFuture<'_, ()>> = Vec::new();
    for number in 0..6 {
        let (bank, city) = (&bank, CITIES[number % 2]);
        all.push(Box::pin(async move {
            let session = Session::at(city);
            let name = if number < 2 { "deposit" } else { "withdraw" };
            for _ in 0..5 {
                let called = bank.cities.report(&session, name, &arguments("2")).await;
                match called {
                    Ok((report, _)) if name == "deposit" => {
                        let attempts: u32 = report.phases.iter().map(|phase| phase.attempts).sum();
                        assert_eq!(attempts, 1, "a deposit was made again");
                    }
                    Ok(_) | Err(Error::Require { .. }) => {}
                    Err(error) => panic!("{name} in {city}: {error}"),
                }
                world.sleep(Duration::from_millis(5)).await;
            }
        }));
    }
    world.block_on(join_all(all));
    assert!(bank.conflicts_of("withdraw") > 0 && bank.conflicts_of("deposit") == 0);
    bank.cities.geo("accounts").start("lima").expect("it is there");
    bank.pass(10);
    let balances = bank.balances();
    assert!(balances[0] >= 0, "{balances:?}");
}

/// A session that moves to another data center finds its own writes there, although they are in no pair.
#[test]
fn a_session_that_moves_sees_its_own_deposits() {
    let bank = Bank::new(10, LABELS, Engines::Two);
    let world = &bank.cities.world;
    for round in 1..=12 {
        let session = Session::at(CITIES[round % 3]);
        let deposit = [("account", account(1)), ("amount", "1".to_owned())];
        let deposited = world.block_on(bank.cities.report(&session, "deposit", &deposit));
        deposited.unwrap_or_else(|error| panic!("{error}"));
        session.move_to(CITIES[(round + 1) % 3]);
        let look = world.block_on(bank.cities.report(&session, "balance", &deposit[..1]));
        let (_, balance) = look.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(balance, 20 + round);
    }
}

#[test]
fn the_example_is_bound_as_it_says() {
    let program = mingle::compile(TEXT).expect("it is right");
    let binding = Binding::parse(EXAMPLE).expect("it is right");
    let notes = mingle::check_binding(&program, &binding).expect("all is listed that has to be");
    assert!(notes[0].contains("transfer with withdraw, withdraw with withdraw"), "{notes:?}");
    let listed = "    [\"open_account\", \"open_account\"],\n";
    let binding = Binding::parse(&EXAMPLE.replace(listed, "")).expect("it is right");
    let error = mingle::check_binding(&program, &binding).expect_err("two may open one account");
    assert!(error.to_string().contains("list [\"open_account\", \"open_account\"]"), "{error}");
}
