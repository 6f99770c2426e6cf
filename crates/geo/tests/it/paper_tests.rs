//! A list of the paper's properties and of our promises, each with the tests that fail if it is
//! violated.
//!
//! The paper is Bravo, Gotsman, de Régil, Wei: *UniStore*, USENIX ATC 2021. A test that is named here
//! and no longer there is an error, and so is a trap without a script of its own.

// It reads its own sources.
#![allow(clippy::disallowed_methods)]

use std::collections::BTreeSet;
use std::path::Path;

/// A claim, with the tests that would fail if it were violated, by file and name.
struct Claim {
    /// The place of the claim.
    place: &'static str,
    /// The claim, in short.
    says: &'static str,
    tests: &'static [(&'static str, &'static str)],
}

const PAPER: &[Claim] = &[
    Claim {
        place: "§3, Causality Preservation",
        says: "what comes before something seen is seen, sessions' order included",
        tests: &[
            ("golden/alice_and_bob.rs", "who_sees_the_message_sees_the_deposit"),
            ("golden/migration.rs", "a_session_that_moves_reads_what_it_wrote"),
            ("random/mod.rs", "with_data_centers_cut_off"),
        ],
    },
    Claim {
        place: "§3, Return Value Consistency",
        says: "a read shows all operations before it and nothing else, and its transaction's own",
        tests: &[
            ("golden/skipped_operations.rs", "a_reader_elsewhere_sees_a_prefix_without_gaps"),
            ("golden/last_writer_order.rs", "what_was_overwritten_does_not_come_back"),
            ("types.rs", "one_site_alone_agrees_with_the_plain_model"),
        ],
    },
    Claim {
        place: "§3, Eventual Visibility",
        says: "what a data center commits that is not lost comes to be visible everywhere",
        tests: &[
            ("golden/third_data_center.rs", "seven_data_centers_hear_of_each_other"),
            ("golden/forwarding.rs", "a_lost_link_alone_is_enough"),
            ("random/mod.rs", "over_bad_links"),
        ],
    },
    Claim {
        place: "§3, replicated data types",
        says: "replicas with the same updates have the same state, and deposits add up",
        tests: &[
            ("golden/deposits.rs", "concurrent_deposits_add_up"),
            ("types.rs", "sites_that_have_the_same_operations_have_the_same_state"),
            ("types.rs", "the_order_of_versions_gives_the_same_state"),
        ],
    },
    Claim {
        place: "§3, Conflict Ordering",
        says: "of two strong transactions that conflict one has seen the other",
        tests: &[
            ("certify/scripts.rs", "of_two_that_conflict_the_second_must_have_seen_the_first"),
            ("certify/scripts.rs", "labels_say_what_conflicts"),
            ("strong/mod.rs", "invariants_hold_whatever_crashes"),
        ],
    },
    Claim {
        place: "§4, Figure 1",
        says: "a dependency of a failed data center is forwarded",
        tests: &[("golden/forwarding.rs", "a_dependency_of_a_lost_data_center_is_forwarded")],
    },
    Claim {
        place: "§4, Figure 2",
        says: "a strong transaction is in nobody's way whose past died with its data center",
        tests: &[("strong/scripts.rs", "a_strong_transaction_waits_until_its_past_survives")],
    },
    Claim {
        place: "§1, the overdraft",
        says: "of two withdrawals at once the second has seen the first",
        tests: &[
            ("strong/scripts.rs", "an_account_is_not_overdrawn"),
            ("strong/scripts.rs", "deposits_do_not_conflict_with_withdrawals"),
        ],
    },
    Claim {
        place: "§5.1, Property 1",
        says: "a replica stores what its knownVec says",
        tests: &[("golden/properties.rs", "property_1_what_is_known_is_stored")],
    },
    Claim {
        place: "§5.1, Property 2",
        says: "a data center stores what stableVec says",
        tests: &[("golden/properties.rs", "property_2_what_is_stable_is_known_in_all_partitions")],
    },
    Claim {
        place: "§5.1, Property 3",
        says: "f + 1 data centers store what uniformVec says",
        tests: &[
            (
                "golden/properties.rs",
                "property_3_what_is_uniform_is_known_at_f_plus_1_data_centers",
            ),
            ("vector.rs", "uniform_is_the_best_group"),
        ],
    },
    Claim {
        place: "§5.1, Property 4",
        says: "what is within uniformVec comes to be visible at all correct data centers",
        tests: &[("golden/properties.rs", "property_4_what_is_within_uniform_survives")],
    },
    Claim {
        place: "§5.6, on-demand durability",
        says: "a barrier returns once what the client has seen is uniform",
        tests: &[(
            "golden/exposure.rs",
            "a_barrier_ends_when_f_losses_are_survived_and_not_before",
        )],
    },
    Claim {
        place: "§5.6, client migration",
        says: "after an attach a client sees all that it has seen elsewhere",
        tests: &[
            ("golden/migration.rs", "a_session_that_moves_reads_what_it_wrote"),
            ("golden/migration.rs", "an_attach_waits_for_what_is_not_there"),
            ("golden/migration.rs", "another_process_goes_on_with_a_token_and_must_attach"),
        ],
    },
    Claim {
        place: "§6.1, Property 5",
        says: "strong transactions that conflict are seen in the order of strong timestamps",
        tests: &[
            (
                "certify/scripts.rs",
                "a_snapshot_that_reaches_to_the_strong_timestamp_may_still_lack_the_transaction",
            ),
            (
                "certify/random.rs",
                "whatever_vanishes_conflicts_are_ordered_and_deliveries_complete",
            ),
        ],
    },
    Claim {
        place: "§6.1, Property 6",
        says: "a replica stores the strong transactions that its knownVec says",
        tests: &[
            (
                "golden/strong.rs",
                "properties_6_and_7_hold_while_partitions_deliver_at_their_own_pace",
            ),
            ("golden/strong.rs", "delivered_transactions_show_in_snapshots_and_survive_restarts"),
        ],
    },
    Claim {
        place: "§6.1, Property 7",
        says: "a data center stores the strong transactions that stableVec says",
        tests: &[(
            "golden/strong.rs",
            "properties_6_and_7_hold_while_partitions_deliver_at_their_own_pace",
        )],
    },
    Claim {
        place: "§6.3",
        says: "a vote is given once, and follows from the log alone",
        tests: &[
            ("certify/scripts.rs", "what_was_refused_is_never_prepared"),
            ("certify/scripts.rs", "a_kept_state_goes_on_as_the_log_would"),
            ("certify/scripts.rs", "a_decision_counts_once"),
        ],
    },
    Claim {
        place: "§6.3, line 3:9",
        says: "a partition without strong transactions holds nobody back",
        tests: &[(
            "certify/scripts.rs",
            "an_advance_lets_an_idle_partition_deliver_and_holds_for_what_follows",
        )],
    },
];

const PROMISES: &[Claim] = &[
    Claim {
        place: "promised",
        says: "causal+ for every history",
        tests: &[
            ("random/mod.rs", "without_faults"),
            ("random/mod.rs", "with_clocks_that_jump"),
            ("golden/clocks.rs", "concurrent_writes_end_the_same_in_whatever_order_they_come"),
        ],
    },
    Claim {
        place: "promised",
        says: "snapshot reads",
        tests: &[
            ("golden/old_snapshot.rs", "a_thousand_versions_later_a_snapshot_still_reads_its_own"),
            (
                "golden/folding.rs",
                "a_running_transaction_reads_its_snapshot_and_a_longer_one_is_refused",
            ),
            (
                "golden/coordinator_lost.rs",
                "a_reader_waits_for_what_is_prepared_below_its_snapshot",
            ),
        ],
    },
    Claim {
        place: "promised",
        says: "atomic visibility",
        tests: &[
            ("golden/replication.rs", "a_transaction_of_two_partitions_shows_in_both_or_in_none"),
            (
                "golden/stale_prepared.rs",
                "an_old_preparation_waits_for_the_others_and_then_commits_with_them",
            ),
            (
                "golden/coordinator_lost.rs",
                "a_commit_is_remembered_while_a_participant_is_still_prepared",
            ),
        ],
    },
    Claim {
        place: "promised",
        says: "eventual visibility of everything from a data center that is not fenced",
        tests: &[
            ("golden/transfer.rs", "everything_counts_once"),
            ("random/mod.rs", "with_state_transfers"),
            ("random/mod.rs", "with_crashes"),
        ],
    },
    Claim {
        place: "promised",
        says: "nothing before an acknowledged barrier is lost with f data centers",
        tests: &[
            ("golden/properties.rs", "property_4_what_is_within_uniform_survives"),
            ("golden/exposure.rs", "a_durable_session_is_answered_when_its_commit_is_uniform"),
            ("random/mod.rs", "with_a_data_center_lost"),
        ],
    },
    Claim {
        place: "promised",
        says: "causal transactions never wait for another data center",
        tests: &[
            ("golden/exposure.rs", "two_local_sessions_see_each_other_though_cut_off"),
            ("golden/wait_deadline.rs", "waits_for_what_does_not_come_end"),
        ],
    },
    Claim {
        place: "promised",
        says: "except a session's first ones after its own strong commit",
        tests: &[("golden/strong.rs", "a_read_waits_for_the_strong_transactions_of_its_past")],
    },
    Claim {
        place: "promised",
        says: "a session goes on elsewhere with its past, or is told what is lost",
        tests: &[
            ("golden/migration.rs", "what_is_lost_is_named"),
            ("golden/migration.rs", "a_commit_without_an_answer_is_found_elsewhere"),
        ],
    },
    Claim {
        place: "promised",
        says: "nothing that was said is taken back by a crash",
        tests: &[
            ("golden/disk.rs", "a_commit_is_acknowledged_only_once_it_is_on_disk"),
            ("golden/disk.rs", "what_is_not_on_disk_is_neither_announced_nor_replicated_nor_read"),
        ],
    },
    Claim {
        place: "promised",
        says: "a commit that is asked for again counts once",
        tests: &[
            ("golden/idempotency.rs", "what_is_sent_again_counts_once"),
            ("golden/idempotency.rs", "the_outcome_survives_a_restart"),
        ],
    },
    Claim {
        place: "promised",
        says: "of operations with one id one counts, and none below a floor",
        tests: &[
            ("golden/operation_ids.rs", "helpers_at_several_data_centers_count_once"),
            (
                "golden/operation_ids.rs",
                "below_the_floor_nothing_is_accepted_and_nothing_is_remembered",
            ),
            ("types.rs", "they_do_where_operations_repeat"),
        ],
    },
    Claim {
        place: "promised",
        says: "what a strong transaction takes away of a sum it has seen",
        tests: &[("strong/single.rs", "a_strong_reset_takes_away_what_its_transaction_saw")],
    },
    Claim {
        place: "promised",
        says: "any replica finishes a strong transaction, whoever is lost",
        tests: &[
            ("certify/network/mod.rs", "whatever_crashes_logs_agree_and_everything_ends"),
            ("strong/leader_lost.rs", "a_commit_is_not_lost_with_its_leader"),
            (
                "strong/leader_lost.rs",
                "a_commit_whose_coordinator_is_lost_too_is_seen_as_a_whole_or_not_at_all",
            ),
        ],
    },
    Claim {
        place: "promised",
        says: "strict serializability among strong transactions",
        tests: &[
            (
                "strong/timestamps.rs",
                "no_strong_transaction_comes_before_one_that_was_acknowledged_when_it_began",
            ),
            ("strong/mod.rs", "invariants_hold_whatever_crashes"),
        ],
    },
    Claim {
        place: "promised",
        says: "what only strong transactions write no causal one does",
        tests: &[(
            "strong/single.rs",
            "a_causal_write_to_what_only_strong_transactions_write_is_refused",
        )],
    },
    Claim {
        place: "promised",
        says: "of a data center that is given up all below the cut stays, and nothing above it",
        tests: &[(
            "strong/fence.rs",
            "what_is_below_the_cut_reaches_everyone_and_what_is_above_vanishes",
        )],
    },
];

/// Traps that others fell into, each with the file of its script.
const TRAPS: &[(&str, &str)] = &[
    ("concurrent last-writer-wins versions in the wrong order", "golden/last_writer_order.rs"),
    ("a version list cut at a fixed length", "golden/old_snapshot.rs"),
    ("a coordinator that vanished holds a partition's clock back", "golden/coordinator_lost.rs"),
    ("stale prepared entries dropped", "golden/stale_prepared.rs"),
    ("a heartbeat that overtakes transactions", "golden/heartbeat.rs"),
    ("replication that blocks from the third data center on", "golden/third_data_center.rs"),
    ("snapshots that skip operations", "golden/skipped_operations.rs"),
    ("updates lost to clock skew", "golden/clock_skew.rs"),
    ("clocks that step backwards", "golden/clock_steps_back.rs"),
    ("equal key ranges assumed in all data centers", "golden/key_ranges.rs"),
    ("dependency checks without a deadline", "golden/wait_deadline.rs"),
    ("one slow partition that delays visibility everywhere", "golden/slow_partition.rs"),
    ("a client's vector from the future drags the clock along", "golden/outside_vectors.rs"),
    ("a later strong transaction with the earlier timestamp", "strong/timestamps.rs"),
    ("voting again from an empty disk", "certify/members/scripts.rs"),
    (
        "one corrupt log entry that takes the rest with it",
        "../../../../adapters/embedded/tests/it/geo_members_kept.rs",
    ),
    ("a vote from state outside the log", "strong/votes.rs"),
    ("the leader lost between vote and decision", "strong/leader_lost.rs"),
    ("two sides that have each folded what the other lacks", "golden/folded_apart.rs"),
    ("the causality violation of UniStore §1", "golden/alice_and_bob.rs"),
    ("deposits at once, UniStore §3", "golden/deposits.rs"),
    ("a lost dependency, UniStore Figure 1", "golden/forwarding.rs"),
    ("migration, UniStore §5.6", "golden/migration.rs"),
];

/// The text of a source file.
fn source(file: &str) -> String {
    let path = match file {
        "types.rs" => "src/types/tests.rs".to_owned(),
        "vector.rs" => "src/vector.rs".to_owned(),
        _ => format!("tests/it/{file}"),
    };
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{file} is not there: {error}"))
}

/// The names of the tests in a file.
fn tests_in(text: &str) -> BTreeSet<&str> {
    let mut names = BTreeSet::new();
    let mut is_test = false;
    for line in text.lines().map(str::trim) {
        if line == "#[test]" {
            is_test = true;
        } else if let Some(rest) = line.strip_prefix("fn ") {
            let name = rest.split('(').next().filter(|_| is_test);
            names.extend(name);
            is_test = false;
        }
    }
    names
}

#[test]
fn every_test_that_is_named_is_there() {
    for claim in PAPER.iter().chain(PROMISES) {
        let Claim { place, says, tests } = claim;
        assert!(!tests.is_empty(), "nothing holds us to {place}: {says}");
        for (file, name) in *tests {
            let is_there = tests_in(&source(file)).contains(name);
            assert!(is_there, "{place}, {says}: there is no test {name} in {file}");
        }
    }
}

#[test]
fn the_properties_of_the_paper_are_all_named() {
    for number in 1..=7 {
        let place = format!("Property {number}");
        assert!(PAPER.iter().any(|claim| claim.place.ends_with(&place)), "{place} is not named");
    }
    let said: BTreeSet<&str> = PAPER.iter().chain(PROMISES).map(|claim| claim.says).collect();
    assert_eq!(said.len(), PAPER.len() + PROMISES.len(), "one is named twice");
}

#[test]
fn every_trap_has_a_script_of_its_own() {
    let mut files = BTreeSet::new();
    for (trap, file) in TRAPS {
        assert!(!tests_in(&source(file)).is_empty(), "{trap}: {file} tests nothing");
        assert!(files.insert(file), "{trap}: {file} stands for another trap");
    }
}

/// A script that is not compiled tests nothing.
#[test]
fn golden_scripts_open_with_a_claim_and_are_all_compiled() {
    let main = source("golden/mod.rs");
    let compiled = main.lines().filter_map(|line| line.strip_prefix("mod ")?.strip_suffix(';'));
    let compiled: BTreeSet<String> =
        compiled.filter(|name| *name != "support").map(|name| format!("{name}.rs")).collect();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/golden");
    let files = folder.read_dir().expect("a folder").map(|file| file.expect("a file").file_name());
    let files = files.map(|name| name.into_string().expect("a name"));
    let there: BTreeSet<String> = files.filter(|name| name != "mod.rs").collect();
    assert_eq!(compiled, there);
    for file in &there {
        let text = source(&format!("golden/{file}"));
        let claim: Vec<&str> = text.lines().map_while(|line| line.strip_prefix("//! ")).collect();
        let claim = claim.join(" ");
        assert!(claim.ends_with('.') && claim.len() > 20, "{file} opens with no claim: {claim:?}");
    }
}
