//! Single logs.

use mingle_geo::certify::{
    Access, Certifier, CertifierConfig, Conflicts, Decision, Dropped, Entry, Vote, decide,
};
use mingle_geo::replica::Delivery;
use mingle_geo::{DcId, PartitionId, Timestamp, Vector};

use crate::certify::{id, prepare, proposal, touch};

const PARTITION: PartitionId = PartitionId(0);

fn certifier(conflicts: Conflicts) -> Certifier {
    Certifier::new(CertifierConfig::new(PARTITION, conflicts))
}

fn deliver(certifier: &Certifier, after: Timestamp) -> Option<Delivery> {
    certifier.deliver(after).expect("it is kept")
}

fn yes(vote: Option<Vote>) -> Timestamp {
    match vote {
        Some(Vote::Yes(proposed)) => proposed,
        other => panic!("expected a vote for it, found {other:?}"),
    }
}

fn writes(name: &str) -> Vec<mingle_geo::certify::Touch> {
    vec![touch(name, Access::Write, "")]
}

#[test]
fn of_two_that_conflict_the_second_must_have_seen_the_first() {
    let mut certifier = certifier(Conflicts::default());
    certifier.apply(&prepare(proposal(1, &[0], writes("x"))));
    let first = yes(certifier.vote(&id(1), 1_000));
    certifier.apply(&prepare(proposal(2, &[0], vec![touch("x", Access::Read, "")])));
    let Some(Vote::Conflict(until)) = certifier.vote(&id(2), 2_000) else { panic!("a conflict") };
    assert_eq!(until[DcId::STRONG], first);
    // On a snapshot that contains the other transaction, it commits.
    let mut again = proposal(3, &[0], vec![touch("x", Access::Read, "")]);
    again.snap_vec = until;
    certifier.apply(&prepare(again));
    assert!(yes(certifier.vote(&id(3), 3_000)) > first);
    // A transaction that writes an item must have seen the item's reader.
    let mut writer = proposal(4, &[0], writes("x"));
    writer.snap_vec = until;
    certifier.apply(&prepare(writer));
    assert!(matches!(certifier.vote(&id(4), 4_000), Some(Vote::Conflict(_))));
}

#[test]
fn a_snapshot_that_reaches_to_the_strong_timestamp_may_still_lack_the_transaction() {
    let mut certifier = certifier(Conflicts::default());
    let mut first = proposal(1, &[0], writes("x"));
    first.snap_vec[DcId(1)] = Timestamp::new(500, PARTITION);
    certifier.apply(&prepare(first));
    let timestamp = yes(certifier.vote(&id(1), 1_000));
    let mut second = proposal(2, &[0], writes("x"));
    second.snap_vec[DcId::STRONG] = timestamp;
    certifier.apply(&prepare(second.clone()));
    assert!(matches!(certifier.vote(&id(2), 2_000), Some(Vote::Conflict(_))));
    (second.id, second.begun_us) = (id(3), 3_000);
    second.snap_vec[DcId(1)] = Timestamp::new(500, PARTITION);
    certifier.apply(&prepare(second));
    yes(certifier.vote(&id(3), 3_000));
}

#[test]
fn an_undecided_transaction_is_in_the_way_until_it_is_decided() {
    for decision in [Decision::Abort, Decision::Commit(Timestamp::new(9_000, PartitionId(1)))] {
        let mut certifier = certifier(Conflicts::default());
        certifier.apply(&prepare(proposal(1, &[0, 1], writes("x"))));
        let proposed = yes(certifier.vote(&id(1), 1_000));
        certifier.apply(&prepare(proposal(2, &[0], writes("x"))));
        assert!(matches!(certifier.vote(&id(2), 2_000), Some(Vote::Conflict(_))));
        // Delivery stops below the undecided proposal, even if others commit.
        certifier.apply(&prepare(proposal(3, &[0], writes("y"))));
        let other = yes(certifier.vote(&id(3), 3_000));
        assert!(other > proposed);
        let first = deliver(&certifier, Timestamp::ZERO).expect("an empty prefix");
        assert!(first.to < proposed && first.transactions.is_empty());
        certifier.apply(&Entry::Decide { id: id(1), begun_us: 1_000, decision });
        let delivery = deliver(&certifier, first.to).expect("what is decided");
        let ids: Vec<_> = delivery.transactions.iter().map(|one| one.id.sequence).collect();
        match decision {
            // Delivery is in timestamp order, not log order.
            Decision::Commit(_) => assert_eq!(ids, [3, 1]),
            Decision::Abort => assert_eq!(ids, [3]),
        }
        certifier.apply(&prepare(proposal(4, &[0], writes("x"))));
        let vote = certifier.vote(&id(4), 4_000);
        assert_eq!(matches!(vote, Some(Vote::Yes(_))), decision == Decision::Abort);
        // All later proposals have higher timestamps.
        certifier.apply(&prepare(proposal(5, &[0], writes("z"))));
        assert!(yes(certifier.vote(&id(5), 5_000)) > delivery.to);
    }
}

#[test]
fn what_was_refused_is_never_prepared() {
    let mut certifier = certifier(Conflicts::default());
    certifier.apply(&Entry::Refuse { id: id(1), begun_us: 1_000 });
    certifier.apply(&prepare(proposal(1, &[0, 1], writes("x"))));
    assert_eq!(certifier.vote(&id(1), 1_000), Some(Vote::No));
    assert_eq!(certifier.undecided().count(), 0);
    // A prepared transaction can no longer be refused.
    certifier.apply(&prepare(proposal(2, &[0, 1], writes("x"))));
    certifier.apply(&Entry::Refuse { id: id(2), begun_us: 2_000 });
    let proposed = yes(certifier.vote(&id(2), 2_000));
    let votes = [certifier.vote(&id(2), 2_000), Some(Vote::Yes(Timestamp::ZERO))];
    assert_eq!(decide(votes), Some(Decision::Commit(proposed)));
}

#[test]
fn a_decision_counts_once() {
    let mut certifier = certifier(Conflicts::default());
    certifier.apply(&prepare(proposal(1, &[0, 1], writes("x"))));
    let timestamp = Timestamp::new(7_000, PartitionId(1));
    for _ in 0..2 {
        let decision = Decision::Commit(timestamp);
        certifier.apply(&Entry::Decide { id: id(1), begun_us: 1_000, decision });
    }
    // The prepare arrives once more, too late.
    certifier.apply(&prepare(proposal(1, &[0, 1], writes("x"))));
    assert_eq!(certifier.outcome(&id(1)), Some(Decision::Commit(timestamp)));
    let delivery = deliver(&certifier, Timestamp::ZERO).expect("one");
    assert_eq!(delivery.transactions.len(), 1);
    assert_eq!(deliver(&certifier, delivery.to), None);
}

#[test]
fn an_advance_lets_an_idle_partition_deliver_and_holds_for_what_follows() {
    let mut certifier = certifier(Conflicts::default());
    let to = Timestamp::new(50_000, PartitionId(3));
    certifier.apply(&Entry::Advance { to });
    assert_eq!(certifier.complete(), to);
    certifier.apply(&prepare(proposal(1, &[0], writes("x"))));
    assert!(yes(certifier.vote(&id(1), 1_000)) > to);
}

#[test]
fn labels_say_what_conflicts() {
    let mut certifier = certifier(Conflicts::new([("withdraw", "withdraw")]));
    let labelled = |label| vec![touch("account", Access::Write, label)];
    certifier.apply(&prepare(proposal(1, &[0], labelled("deposit"))));
    certifier.apply(&prepare(proposal(2, &[0], labelled("withdraw"))));
    yes(certifier.vote(&id(2), 2_000));
    certifier.apply(&prepare(proposal(3, &[0], labelled("deposit"))));
    yes(certifier.vote(&id(3), 3_000));
    certifier.apply(&prepare(proposal(4, &[0], labelled("withdraw"))));
    assert!(matches!(certifier.vote(&id(4), 4_000), Some(Vote::Conflict(_))));
    // A touch without a label conflicts as if no labels existed.
    certifier.apply(&prepare(proposal(5, &[0], vec![touch("account", Access::Read, "")])));
    assert!(matches!(certifier.vote(&id(5), 5_000), Some(Vote::Conflict(_))));
}

#[test]
fn a_snapshot_below_what_the_index_remembers_is_refused() {
    let mut config = CertifierConfig::new(PARTITION, Conflicts::default());
    config.index_max = 2;
    let mut certifier = Certifier::new(config);
    for sequence in 1..=4 {
        let mut next = proposal(sequence, &[0], writes(&format!("k{sequence}")));
        next.snap_vec[DcId::STRONG] = Timestamp::new((sequence - 1) * 1_000, PARTITION);
        certifier.apply(&prepare(next));
    }
    let forgotten = yes(certifier.vote(&id(2), 2_000));
    assert_eq!(certifier.remembered().1, 2);
    // It might conflict with the first, which is forgotten.
    let mut late = proposal(5, &[0], writes("k1"));
    certifier.apply(&prepare(late.clone()));
    let Some(Vote::Conflict(until)) = certifier.vote(&id(5), 5_000) else { panic!("refused") };
    assert_eq!(until, Vector::ZERO.with(DcId::STRONG, forgotten));
    (late.id, late.begun_us, late.snap_vec) = (id(6), 6_000, until);
    certifier.apply(&prepare(late));
    yes(certifier.vote(&id(6), 6_000));
}

#[test]
fn ends_are_forgotten_when_nobody_can_ask() {
    let mut config = CertifierConfig::new(PARTITION, Conflicts::default());
    config.outcome_ms_max = 10;
    let mut certifier = Certifier::new(config);
    for sequence in 1..=40 {
        certifier.apply(&prepare(proposal(sequence, &[0], writes(&format!("k{sequence}")))));
    }
    // Another participant of a committed transaction may still be undecided, as far as this one
    // knows.
    assert_eq!(certifier.remembered().0, 40);
    let mut next = proposal(41, &[0], writes("last"));
    next.stable = yes(certifier.vote(&id(35), 35_000));
    certifier.apply(&prepare(next));
    assert_eq!(certifier.remembered().0, 10);
    // A forgotten transaction is too old to begin again.
    certifier.apply(&prepare(proposal(3, &[0], writes("k3"))));
    assert_eq!(certifier.vote(&id(3), 3_000), Some(Vote::No));
    assert_eq!(certifier.outcome(&id(3)), None);
}

#[test]
fn transactions_are_kept_for_those_that_lag_but_not_for_ever() {
    let mut config = CertifierConfig::new(PARTITION, Conflicts::default());
    config.keep_max = 10;
    let mut certifier = Certifier::new(config);
    for sequence in 1..=8 {
        certifier.apply(&prepare(proposal(sequence, &[0], writes(&format!("k{sequence}")))));
    }
    let all = deliver(&certifier, Timestamp::ZERO).expect("all of them");
    assert_eq!(all.transactions.len(), 8);
    // All partitions have delivered four of them.
    let mut next = proposal(9, &[0], writes("k9"));
    next.everywhere = all.transactions[3].timestamp();
    certifier.apply(&prepare(next));
    assert_eq!(certifier.deliver(Timestamp::ZERO), Err(Dropped));
    let rest = deliver(&certifier, all.transactions[3].timestamp()).expect("the rest");
    assert_eq!(rest.transactions.len(), 5);
    // They are kept while no other replica is known to have them, since this may be their only
    // place.
    for sequence in 10..=30 {
        certifier.apply(&prepare(proposal(sequence, &[0], writes(&format!("k{sequence}")))));
    }
    let late = deliver(&certifier, rest.to).expect("those that came since");
    assert_eq!(late.transactions.len(), 21);
    let mut next = proposal(31, &[0], writes("k31"));
    next.uniform = late.to;
    certifier.apply(&prepare(next));
    assert_eq!(certifier.deliver(rest.to), Err(Dropped));
    let rest = deliver(&certifier, late.transactions[10].timestamp()).expect("the newest");
    assert_eq!(rest.transactions.len(), 11);
}

#[test]
fn a_kept_state_goes_on_as_the_log_would() {
    let mut certifier = certifier(Conflicts::new([("a", "b")]));
    for sequence in 1..=20 {
        let label = ["", "a", "b"][sequence as usize % 3];
        let touches = vec![touch(&format!("k{}", sequence % 4), Access::Write, label)];
        certifier.apply(&prepare(proposal(sequence, &[0, 1], touches)));
    }
    let kept = postcard::to_stdvec(&certifier).expect("it has a form");
    let mut restored: Certifier = postcard::from_bytes(&kept).expect("that form");
    assert_eq!(restored, certifier);
    let decision = Decision::Commit(Timestamp::new(99_000, PartitionId(1)));
    let entry = Entry::Decide { id: id(1), begun_us: 1_000, decision };
    certifier.apply(&entry);
    restored.apply(&entry);
    assert_eq!(restored.deliver(Timestamp::ZERO), certifier.deliver(Timestamp::ZERO));
    assert_eq!(restored, certifier);
}
