//! Processes that are not the ones that their peers expect.

use std::fs;

use mingle_geo_node::link::Code;
use mingled::process::{StartError, Stopped};

use super::*;

fn notes(process: &Process) -> String {
    process.status().expect("it runs").notes.join("\n")
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).expect("a new folder");
    for entry in fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("a file");
        fs::copy(entry.path(), to.join(entry.file_name())).expect("it can be copied");
    }
}

#[test]
fn a_copy_of_a_process_is_refused_and_stops() {
    let mut cluster = Cluster::new(3);
    let first = cluster.processes.remove(&2).expect("it runs");
    add(&first.session(), &["a"], 1).expect("it commits");
    first.stop();
    let copied = cluster.folders.path().join("copy");
    copy(&cluster.folder(2), &copied);
    cluster.start(2, settings(&cluster.folder(2), 2, 3, false));
    cluster.connected();
    // Both are the second start of the same journal.
    let second = cluster.started(2, settings(&copied, 2, 3, false));
    let Stopped::Replaced { why, .. } = second.join() else { panic!("it is refused") };
    assert_eq!(why.code, Code::Copy);
    assert!(why.why.contains("two processes of d2 run with start 2"), "{why}");
    // The third start of the copy is later, but the process that runs keeps its place.
    let third = cluster.started(2, settings(&copied, 2, 3, false));
    until("it is refused", || notes(&third).contains("d2 is connected as start 2"));
    assert!(third.status().expect("it runs").connected.is_empty());
    let session = third.session();
    let refused = value(&session, "a").unwrap_err();
    assert!(
        matches!(&refused, SessionError::Suspended(why) if why.contains("start 3")),
        "{refused}"
    );
    cluster.connected();
    // The earlier one lives, so the later one stops.
    let stopped = third.join();
    assert!(
        matches!(&stopped, Stopped::Replaced { why, .. } if why.code == Code::Running),
        "{stopped}"
    );
    cluster.connected();
    add(&cluster.processes[&2].session(), &["a"], 1).expect("it serves");
}

#[test]
fn a_process_whose_journal_lacks_what_others_know_stops() {
    let mut cluster = Cluster::new(3);
    let stop = |cluster: &mut Cluster| cluster.processes.remove(&1).expect("it runs").stop();
    stop(&mut cluster);
    let copied = cluster.folders.path().join("backup");
    copy(&cluster.folder(1), &copied);
    cluster.start(1, settings(&cluster.folder(1), 1, 3, false));
    cluster.connected();
    let session = cluster.processes[&1].session();
    add(&session, &["a", "b", "c", "d"], 1).expect("it commits");
    until("the others know it", || value(&cluster.processes[&0].session(), "d") == Ok(1));
    drop(session);
    stop(&mut cluster);
    // Its folder is lost: an old copy is restored, or it is founded again. (The peers forget the number
    // of its last start with them, so they do not refuse it.)
    let lost = cluster.folders.path().join("lost");
    for (folder, is_founding) in [(copied, false), (lost, true)] {
        for dc in [0, 2] {
            cluster.processes.remove(&dc).expect("it runs").stop();
        }
        for dc in [0, 2] {
            cluster.start(dc, settings(&cluster.folder(dc), dc, 3, false));
        }
        // The clocks have gone on since then.
        sleep(Duration::from_millis(if is_founding { 0 } else { 4_000 }));
        let restored = cluster.started(1, settings(&folder, 1, 3, is_founding));
        let stopped = restored.join();
        let Stopped::Outdated(outdated) = stopped else { panic!("{stopped}") };
        assert!(outdated.found > outdated.expected, "{outdated}");
    }
    cluster.start(1, settings(&cluster.folder(1), 1, 3, false));
    until("it goes on", || value(&cluster.processes[&1].session(), "d") == Ok(1));
}

#[test]
fn a_process_of_another_cluster_is_refused_with_both_clusters() {
    let mut cluster = Cluster::new(2);
    let folder = cluster.folders.path().join("other");
    let other = Settings { cluster: 0xbad, ..settings(&folder, 1, 2, true) };
    let other = cluster.started(1, other);
    until("it is refused", || notes(&other).contains("different clusters"));
    let noted = notes(&other);
    assert!(noted.contains("0bad") && noted.contains("5eed"), "{noted}");
    until("the other end knows", || notes(&cluster.processes[&0]).contains("different clusters"));
    cluster.connected();
}

#[test]
fn a_wrong_address_is_noticed() {
    let mut cluster = Cluster::new(3);
    cluster.processes.remove(&2).expect("it runs").stop();
    // The addresses of the other two are confused.
    let (zero, one) = (cluster.addresses[&DcId(0)], cluster.addresses[&DcId(1)]);
    let peers = BTreeMap::from([(DcId(0), one), (DcId(1), zero)]);
    let settings = Settings { peers, ..settings(&cluster.folder(2), 2, 3, false) };
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let confused = Process::start(settings, listener).expect("its journal is sound");
    until("it is noticed", || notes(&confused).contains("d0 was dialed, and d1 answers"));
}

#[test]
fn settings_that_do_not_fit_are_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let address = "127.0.0.1:1".parse().expect("an address");
    let own = folder.path();
    let cases = [
        (settings(own, 1, 3, true), "no address for d0"),
        (
            Settings { peers: BTreeMap::from([(DcId(2), address)]), ..settings(own, 0, 3, true) },
            "only data centers with lower numbers",
        ),
        (Settings { dc_count: 9, ..settings(own, 0, 3, true) }, "dc_count is 9"),
        (settings(own, 0, 3, false), "has no journal"),
    ];
    for (settings, words) in cases {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let refused: StartError = Process::start(settings, listener).unwrap_err();
        assert!(refused.to_string().contains(words), "{refused}");
    }
}
