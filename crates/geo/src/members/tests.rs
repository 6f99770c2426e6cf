//! Tests of membership.

use super::*;

const D0: DcId = DcId(0);

fn fence(incarnation: u32) -> Entry {
    Entry::Fence { dc: D0, incarnation, quorum: Quorum::of(3, 1) }
}

fn frozen(by: u8, known: u64) -> Entry {
    frozen_in(1, by, known)
}

/// A report in `epoch`.
fn frozen_in(epoch: u32, by: u8, known: u64) -> Entry {
    Entry::Frozen { dc: D0, incarnation: 0, by: DcId(by), known: Timestamp(known), epoch }
}

/// One of five data centers is given up.
fn fence_of_five(dc: u8) -> Entry {
    Entry::Fence { dc: DcId(dc), incarnation: 0, quorum: Quorum::of(5, 2) }
}

fn standing(log: &Membership) -> Standing {
    log.members().of(D0).standing
}

fn after(entries: &[Entry]) -> Membership {
    let mut log = Membership::default();
    for entry in entries {
        log.apply(entry);
    }
    log
}

#[test]
fn the_cut_is_the_highest_of_the_first_reports() {
    let log = after(&[fence(0), frozen(2, 7), frozen(1, 3), frozen(3, 9)]);
    assert_eq!(log.members().cut_of(D0, 0), Some(Timestamp(7)));
    assert_eq!(log.members().epoch(), 2);
    assert!(log.members().is_over(D0, 0) && !log.members().is_over(D0, 1));
    assert_eq!(log.members().cuts_after(1).count(), 1);
    assert_eq!(log.members().cuts_after(2).count(), 0);
}

#[test]
fn nobody_reports_twice_nor_on_itself() {
    let log = after(&[fence(0), frozen(1, 3), frozen(1, 8), frozen(0, 9)]);
    assert_eq!(log.members().of(D0).standing, Standing::Fencing);
    assert!(log.has(&frozen(1, 3)) && !log.has(&frozen(2, 3)));
}

#[test]
fn what_comes_too_late_or_too_early_has_no_effect() {
    for entries in [vec![frozen(1, 3), frozen(2, 3)], vec![fence(1)], Vec::new()] {
        assert_eq!(after(&entries).members(), &Members::default());
    }
    let fenced = [fence(0), frozen(1, 3), frozen(2, 4)];
    let again = [fence(0), frozen(1, 3), frozen(2, 4), fence(0), frozen(3, 9)];
    assert_eq!(after(&fenced), after(&again));
    assert!(after(&fenced).has(&fence(0)));
}

#[test]
fn only_the_next_incarnation_is_admitted_and_only_after_a_cut() {
    let admit = |incarnation| Entry::Admit { dc: D0, incarnation };
    for entries in [vec![admit(0), admit(1)], vec![fence(0), admit(1)]] {
        assert_eq!(after(&entries).members().of(D0).incarnation, 0);
    }
    let log = after(&[fence(0), frozen(1, 3), frozen(2, 4), admit(2), admit(1), fence(0)]);
    let members = log.members();
    assert_eq!(members.of(D0), Member { incarnation: 1, standing: Standing::In });
    assert_eq!((members.epoch(), members.cut_of(D0, 0)), (3, Some(Timestamp(4))));
    assert_eq!(members.admitted(), [(D0, 1)]);
    assert!(members.is_over(D0, 0) && !members.is_over(D0, 1));
    assert!(log.has(&admit(1)) && !log.has(&admit(2)) && !log.has(&fence(1)));
}

#[test]
fn what_goes_on_from_members_asks_for_reports_anew() {
    let before = after(&[fence(0), frozen(1, 3)]);
    let quorum = Quorum::of(3, 1);
    let mut log = Membership::resume(before.members().clone(), quorum);
    log.apply(&frozen(2, 7));
    assert_eq!(log.members().of(D0).standing, Standing::Fencing);
    log.apply(&frozen(1, 3));
    assert_eq!(log.members().cut_of(D0, 0), Some(Timestamp(7)));
    let resumed = Membership::resume(log.members().clone(), quorum);
    assert_eq!(resumed, log, "there is nothing to be reported");
}

#[test]
fn a_cut_that_one_alone_has_reached_does_not_stand() {
    let reports = [fence_of_five(0), frozen(1, 9), frozen(2, 5), frozen(3, 7)];
    let mut log = after(&reports);
    assert_eq!(standing(&log), Standing::Settling);
    assert_eq!((log.members().cut_of(D0, 0), log.members().cuts_after(0).count()), (None, 0));
    assert_eq!(log.members().bound_of(D0, 0), Some(Timestamp(9)));
    assert!(log.members().is_over(D0, 0));
    log.apply(&Entry::Admit { dc: D0, incarnation: 1 });
    // One report is too low, and the other reporter has reported before.
    for entry in [frozen_in(2, 2, 8), frozen_in(2, 1, 9)] {
        assert!(log.has(&entry));
        log.apply(&entry);
        assert_eq!((standing(&log), log.members().epoch()), (Standing::Settling, 2));
    }
    // A reporter that had more drops the excess.
    for entry in [frozen_in(2, 2, 9), frozen(4, 11)] {
        let mut log = log.clone();
        assert!(!log.has(&entry));
        log.apply(&entry);
        assert_eq!((standing(&log), log.members().epoch()), (Standing::Fenced, 3));
        assert_eq!(log.members().cut_of(D0, 0), Some(Timestamp(9)));
        // Vectors were clipped when the cut was set, one epoch earlier.
        assert_eq!(log.members().cuts_after(2).count(), 0);
    }
}

#[test]
fn what_an_incarnation_said_is_not_said_by_the_next() {
    let (dc, incarnation) = (DcId(1), 0);
    let cut_off = |by, epoch| Entry::Frozen { dc, incarnation, by, known: Timestamp(1), epoch };
    let mut log = after(&[fence_of_five(0), fence_of_five(1)]);
    for by in [2, 3, 4] {
        log.apply(&cut_off(DcId(by), 2));
    }
    log.apply(&Entry::Admit { dc, incarnation: 1 });
    assert!(log.members().is_in(dc));
    assert!(log.has(&frozen_in(2, 1, 9)), "it comes late");
    assert!(!log.has(&frozen_in(4, 1, 5)));
}

#[test]
fn a_cut_that_nobody_can_reach_any_more_is_agreed_on_anew() {
    let reports = [fence_of_five(0), frozen(1, 9), frozen(2, 5), frozen(3, 7)];
    let mut log = after(&reports);
    log.apply(&fence_of_five(2));
    assert_eq!(standing(&log), Standing::Settling, "another has all of it");
    log.apply(&fence_of_five(1));
    assert_eq!((standing(&log), log.members().epoch()), (Standing::Fencing, 4));
    assert_eq!(log.members().bound_of(D0, 0), None);
    // A report of an earlier epoch does not count: the reporter may have accepted more since.
    assert!(log.has(&frozen_in(3, 3, 7)));
    for entry in [frozen_in(3, 3, 7), frozen_in(4, 3, 8), frozen_in(4, 4, 8)] {
        log.apply(&entry);
    }
    assert_eq!(standing(&log), Standing::Fencing);
    // A data center that is given up itself does not report; its next incarnation may.
    let Some(reports) = log.reports.get(&DcId(2)) else { panic!("{log:?}") };
    let quorum = Quorum { reports: 2, ..reports.quorum };
    let mut resumed = Membership::resume(log.members().clone(), quorum);
    for by in [3, 4] {
        resumed.apply(&frozen_in(4, by, 8));
    }
    assert_eq!(resumed.members().cut_of(D0, 0), Some(Timestamp(8)));
    assert_eq!(resumed.members().cuts_after(3).count(), 1);
}

#[test]
fn who_is_given_up_itself_does_not_report() {
    let quorum = Quorum::of(3, 1);
    let other = Entry::Fence { dc: DcId(1), incarnation: 0, quorum };
    let log = after(&[fence(0), other, frozen(1, 3), frozen(2, 4)]);
    assert_eq!(log.members().of(D0).standing, Standing::Fencing);
}

/// Members of five data centers, the last of which was lost and admitted again, then `entries`.
fn after_a_return(entries: &[Entry]) -> Membership {
    let last = |by| Entry::Frozen {
        dc: DcId(4),
        incarnation: 0,
        by: DcId(by),
        known: Timestamp(1),
        epoch: 1,
    };
    let admit = Entry::Admit { dc: DcId(4), incarnation: 1 };
    let mut log = after(&[fence_of_five(4), last(0), last(1), last(2), admit]);
    assert_eq!((log.members().epoch(), log.members().admitted()), (3, vec![(DcId(4), 1)]));
    for entry in entries {
        log.apply(entry);
    }
    log
}

#[test]
fn an_incarnation_does_not_count_for_what_the_previous_one_had() {
    // The fourth may be the only one that has what the first and the last were counted for.
    let mut log = after_a_return(&[fence_of_five(0)]);
    for (by, known) in [(1, 5), (2, 7), (4, 6)] {
        log.apply(&frozen_in(4, by, known));
        assert_eq!(standing(&log), Standing::Fencing, "{by}");
    }
    let mut mistaken = log.clone();
    log.apply(&frozen_in(4, 3, 9));
    assert_eq!(log.members().bound_of(D0, 0), Some(Timestamp(9)));
    // If that one is given up as well, all that are left have reported.
    mistaken.apply(&fence_of_five(3));
    assert_eq!(mistaken.members().bound_of(D0, 0), Some(Timestamp(7)));
    assert_eq!(mistaken.members().of(DcId(3)).standing, Standing::Fencing);
    assert_eq!(mistaken.members().epoch(), 6, "the cut begins an epoch of its own");
    assert_eq!(mistaken.members().bounds_after(5).count(), 1);
}

#[test]
fn three_in_their_first_incarnation_need_not_wait_for_one_that_came_back() {
    let reports = [frozen_in(4, 1, 5), frozen_in(4, 2, 7), frozen_in(4, 3, 9)];
    let log = after_a_return(&[&[fence_of_five(0)], &reports[..]].concat());
    assert_eq!(log.members().bound_of(D0, 0), Some(Timestamp(9)));
}

#[test]
fn fewer_reports_than_the_quorum_never_cut_off() {
    let mut log = after_a_return(&[fence_of_five(0), frozen_in(4, 2, 7), frozen_in(4, 4, 6)]);
    for dc in [1, 3] {
        log.apply(&fence_of_five(dc));
        assert_eq!(standing(&log), Standing::Fencing, "{dc}: more are lost than may be");
    }
}

#[test]
fn a_quorum_knows_the_number_of_data_centers() {
    for dc_count in 2..=DCS_MAX as u8 {
        for f in 0..dc_count {
            let quorum = Quorum::of(dc_count, f);
            let others = usize::from(dc_count) - 1;
            assert_eq!(quorum.others(), others, "{dc_count}, {f}");
            assert!(quorum.settled() <= usize::from(quorum.reports), "{dc_count}, {f}");
            let members = Members::default();
            let needed = members.needed(D0, quorum, (1..dc_count).map(DcId));
            assert_eq!(needed, usize::from(quorum.reports), "{dc_count}, {f}");
        }
    }
}

#[test]
fn with_two_losses_some_reporter_has_what_was_shown() {
    // One data center is lost and admitted again, then the first one is lost, while another is away.
    // Of the two that counted for a transaction of the first, one that still has it reports.
    let mut checked = 0;
    for counted in (0u8..32).filter(|set| set & 1 == 0 && set.count_ones() == 2) {
        for (back, away) in (1..5).flat_map(|back| (1..5).map(move |away| (back, away))) {
            let mut log = Membership::default();
            log.apply(&fence_of_five(back));
            for by in (0..5).filter(|by| *by != back).take(3) {
                let (dc, by, known, epoch) = (DcId(back), DcId(by), Timestamp(1), 1);
                log.apply(&Entry::Frozen { dc, incarnation: 0, by, known, epoch });
            }
            log.apply(&Entry::Admit { dc: DcId(back), incarnation: 1 });
            log.apply(&fence_of_five(0));
            let epoch = log.members().epoch();
            for by in (1..5).filter(|by| *by != away || back == away) {
                let has = counted >> by & 1 == 1 && by != back;
                log.apply(&frozen_in(epoch, by, if has { 9 } else { 5 }));
            }
            checked += 1;
            let what = format!("counted {counted:05b}, back {back}, away {away}");
            match log.members().bound_of(D0, 0) {
                Some(cut) => assert_eq!(cut, Timestamp(9), "{what}"),
                None => assert_ne!(back, away, "{what}: all have reported"),
            }
        }
    }
    assert_eq!(checked, 6 * 16);
}
