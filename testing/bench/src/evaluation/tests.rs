//! The model against known results of queueing theory, and small runs of it.

use mingle_geo::Baseline;

use super::figures::least_of_a_second;
use super::micro::Micro;
use super::model::{Model, Setup};
use super::tally::{Tally, Took};
use super::times::{Kind, Times};
use super::workload::Workload;

/// Returns times in which every handler takes the same time.
fn times_of(ns: u64) -> Times {
    let lines = Kind::ALL.map(|kind| format!("{kind:?} {ns} 0"));
    Times::parse(&lines.join("\n")).expect("they are sound")
}

fn small(system: Baseline) -> Setup {
    Setup { clients: 8, ..Setup::new(system, 2, Times::recorded()) }
}

fn ran(setup: Setup, workload: Box<dyn Workload>, seconds: u64) -> Tally {
    let mut model = Model::new(setup, workload).expect("the settings are sound");
    model.elect().expect("somebody leads");
    model.start_clients();
    model.run_for(300_000_000);
    model.count();
    model.run_for(seconds * 1_000_000_000);
    model.counted(seconds as f64)
}

/// Runs transactions that only read one partition: each takes the same time of the server.
fn reading(ns: u64, clients: usize) -> Tally {
    let setup = Setup { dcs: 1, clients, ..Setup::new(Baseline::Uniform, 1, times_of(ns)) };
    let setup = Setup { think_us: 20_000, ..setup };
    ran(setup, Box::new(Micro::new(100, 1, 0).with_updates(0)), 4)
}

#[test]
fn a_core_is_busy_for_what_it_does() {
    let (ns, clients) = (100_000, 40);
    let tally = reading(ns, clients);
    // Reads, and the replica's own ticks, 20 to 200 per second.
    let reads = tally.throughput() * ns as f64 / 1e9;
    let busy = tally.utilisation(0);
    assert!((reads..reads + 0.021).contains(&busy), "{busy} of which reads {reads}");
    assert!((0.1..0.4).contains(&busy), "{busy}");
}

#[test]
fn what_waits_waits_as_in_a_queue_of_constant_service() {
    let ns = 100_000;
    let tally = reading(ns, 120);
    let load = tally.utilisation(0);
    assert!((0.45..0.75).contains(&load), "{load}");
    // Two one-way delays of 100 µs, the service, and the mean wait of M/D/1; the clients are many
    // but finite.
    let service_us = ns as f64 / 1e3;
    let waits_us = load * service_us / (2.0 * (1.0 - load));
    let expected_us = 200.0 + service_us + waits_us;
    let found_us = tally.latency_us.mean();
    let waited_us = found_us - 200.0 - service_us;
    assert!((0.6..1.3).contains(&(waited_us / waits_us)), "{found_us} µs, expected {expected_us}");
}

#[test]
fn beyond_what_a_core_can_do_throughput_is_that() {
    let ns = 200_000;
    let tally = reading(ns, 800);
    let most = 1e9 / ns as f64;
    assert!(
        tally.throughput() <= most && tally.throughput() > 0.9 * most,
        "{}",
        tally.throughput()
    );
    assert!(tally.utilisation(0) > 0.99);
}

#[test]
fn seconds_without_a_commit_count_to_the_end() {
    let mut tally = Tally::new(1, 1);
    let took = Took { all_us: 10, commit_us: None };
    (0..20).for_each(|tenth| tally.on_committed(tenth * 100_000, 0, &took));
    let worst = |tally: &Tally| least_of_a_second(tally, &|slice| slice[0]);
    assert_eq!(worst(&tally), 10);
    tally.last_until(3_000_000);
    assert_eq!(worst(&tally), 0);
}

#[test]
fn one_seed_and_one_table_of_times_give_the_same_figures() {
    let of = |seed| {
        let setup = Setup { seed, ..small(Baseline::UniStore) };
        let tally = ran(setup, Box::new(Micro::new(500, 2, 10)), 1);
        (tally.committed, tally.aborted, tally.busy_ns, tally.latency_us.mean().to_bits())
    };
    assert_eq!(of(1), of(1));
    assert_ne!(of(1), of(2));
}

#[test]
fn every_system_runs_and_a_strong_commit_takes_the_distance() {
    for system in Baseline::ALL {
        let tally = ran(small(system), Box::new(Micro::new(500, 2, 10)), 1);
        let name = system.name();
        assert!(tally.committed > 20 && tally.failed == 0, "{name}: {tally:?}");
        let has_strong =
            matches!(system, Baseline::UniStore | Baseline::Strong | Baseline::RedBlue);
        assert_eq!(tally.strong > 0, has_strong, "{name}");
        for (dc, commits) in tally.commit_us.iter().enumerate().filter(|_| has_strong) {
            // The round trip to California or to Virginia.
            let least_us = [61_000, 61_000, 89_000][dc];
            let found_us = commits.min();
            assert!(commits.is_empty() || found_us >= least_us * 99 / 100, "{name}: {found_us} µs");
        }
        if !has_strong {
            assert!(tally.latency_us.value_at_quantile(0.99) < 30_000, "{name}");
        }
    }
}

#[test]
fn strong_transactions_go_on_without_the_leaders_data_center() {
    let mut model =
        Model::new(small(Baseline::UniStore), Box::new(Micro::new(500, 2, 20))).expect("sound");
    model.elect().expect("somebody leads");
    model.start_clients();
    model.run_for(1_000_000_000);
    model.lose(0);
    model.count();
    model.run_for(8_000_000_000);
    let tally = model.counted(8.0);
    let first_us = tally.first_strong_us.expect("one commits");
    // No transaction can commit before another leader exists, which takes missed heartbeats.
    assert!((250_000..8_000_000).contains(&first_us), "{first_us} µs");
}
