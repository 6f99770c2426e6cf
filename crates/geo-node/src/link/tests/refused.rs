//! Processes that are not peers.

use super::*;

/// Connects both processes; returns the reason at the end that refuses, and at the other one.
fn refused(own: [Hello; 2]) -> [Refused; 2] {
    refused_at(own, [0, 0])
}

/// The same, with clocks that are ahead by so many milliseconds.
fn refused_at(own: [Hello; 2], ahead_ms: [u64; 2]) -> [Refused; 2] {
    let (settings, [dialer, acceptor]) = (Settings::default(), own);
    let mut dialer = Connection::new(settings, dialer, 1, Some(DcId(0)), now(ahead_ms[0]));
    let mut acceptor = Connection::new(settings, acceptor, 2, None, now(ahead_ms[1]));
    let mut events = Vec::new();
    for _ in 0..3 {
        acceptor.receive(now(ahead_ms[1]), &dialer.take(usize::MAX), &mut events);
        acceptor.accept(now(ahead_ms[1]), &mut events);
        dialer.receive(now(ahead_ms[0]), &acceptor.take(usize::MAX), &mut events);
    }
    let ends = [dialer, acceptor].map(|end| end.closed().cloned());
    match ends {
        [Some(Closed::Refuses(by)), Some(Closed::Refused(of))]
        | [Some(Closed::Refused(of)), Some(Closed::Refuses(by))] => [by, of],
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_process_of_another_cluster_version_or_place_is_refused_at_both_ends() {
    let (peer, own) = (hello(1, 1), hello(0, 1));
    let versions = Versions { least: 40, most: 41 };
    let cases = [
        (Hello { cluster: 0xabc, ..peer }, own, Code::Cluster, "abc"),
        (Hello { versions, ..peer }, own, Code::Version, "versions 40 to 41"),
        (hello(0, 2), own, Code::Place, "process 0 of d0"),
        (peer, hello(2, 1), Code::Place, "d0 was dialed, and d2 answers"),
    ];
    for (dialer, acceptor, code, words) in cases {
        let [by, of] = refused([dialer, acceptor]);
        assert_eq!(by, of, "both ends know the reason");
        assert_eq!(by.code, code);
        assert!(by.why.contains(words), "{by}");
    }
    let [by, _] = refused([Hello { versions, ..peer }, own]);
    let both = format!("versions {} to {}", VERSIONS.least, VERSIONS.most);
    assert!(by.why.contains(&both), "{by}");
}

#[test]
fn a_clock_that_is_ahead_is_refused_whichever_end_dials() {
    for (ahead_ms, words) in [
        ([1_500, 0], "the clock of d1 is 1500 ms ahead of that of d0, at most 1000"),
        ([0, 2_500], "the clock of d0 is 2500 ms ahead of that of d1, at most 1000"),
    ] {
        let [by, of] = refused_at([hello(1, 1), hello(0, 1)], ahead_ms);
        assert_eq!((by.code, by == of), (Code::Clock, true));
        assert!(by.why.contains(words), "{by}");
    }
    // A clock within the bound is accepted.
    let pair = Pair::open(Settings::default(), 4);
    assert!(pair.ends[0].is_open());
}

#[test]
fn a_start_takes_the_place_of_an_earlier_one_only_after_that_has_lost_its_connection() {
    let mut peers = Peers::new(DcId(0), [DcId(1), DcId(2)]);
    assert_eq!(peers.meet(&hello(1, 5), 10), Ok(None));
    // The same process connects anew.
    assert_eq!(peers.meet(&hello(1, 5), 11), Ok(Some(10)));
    assert_eq!(peers.closed(0, 10), None, "it was replaced");
    let running = peers.meet(&hello(1, 6), 12).unwrap_err();
    assert_eq!((running.code, running.code.is_final()), (Code::Running, false));
    assert!(running.why.contains("start 5") && running.why.contains("start 6"), "{running}");
    let copy = peers.meet(&Hello { process: 9, ..hello(1, 5) }, 13).unwrap_err();
    assert_eq!((copy.code, copy.code.is_final()), (Code::Copy, true));
    assert!(copy.why.contains("two processes of d1"), "{copy}");
    assert_eq!(peers.connection(DcId(1)), Some(11), "it stands");
    assert_eq!(peers.closed(0, 11), Some(DcId(1)));
    assert_eq!(peers.meet(&hello(1, 6), 14), Ok(None));
    assert_eq!(peers.closed(0, 14), Some(DcId(1)));
    let outdated = peers.meet(&hello(1, 5), 15).unwrap_err();
    assert_eq!((outdated.code, outdated.code.is_final()), (Code::Outdated, true));
    assert_eq!(peers.connection(DcId(1)), None);
    // The first start of a later incarnation is later.
    assert_eq!(peers.meet(&Hello { incarnation: 1, ..hello(1, 1) }, 16), Ok(None));
    let unknown = peers.meet(&hello(5, 1), 17).unwrap_err();
    assert!(unknown.why.contains("d5 is no peer of d0, expected d1, d2"), "{unknown}");
}

#[test]
fn the_higher_data_center_dials_with_growing_delays() {
    let mut peers = Peers::new(DcId(1), [DcId(0), DcId(2)]);
    assert_eq!(peers.due(0), [DcId(0)]);
    assert!(peers.due(1_000_000).is_empty(), "the first attempt is under way");
    let (mut now_us, mut delays_ms) = (0, Vec::new());
    for _ in 0..8 {
        peers.not_dialed(now_us, DcId(0));
        let begin_us = now_us;
        while peers.due(now_us).is_empty() {
            now_us += 1_000;
        }
        delays_ms.push((now_us - begin_us) / 1_000);
    }
    assert_eq!(delays_ms, [50, 100, 200, 400, 800, 1_600, 2_000, 2_000]);
    assert_eq!(peers.meet(&hello(0, 1), 1), Ok(None));
    assert!(peers.due(now_us + 10_000_000).is_empty());
    peers.closed(now_us, 1);
    assert_eq!(peers.due(now_us + 50_000), [DcId(0)]);
}
