//! Backups and the data centers that are given up and come back.

use super::super::serving::field;
use super::{Serving, backup, client_of, done, restore, single, text, until};

#[test]
fn a_data_center_that_came_back_has_a_backup_and_a_change_ends_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file");
    let mut serving = Serving::started(3, &[]);
    let mut client = serving.client(0);
    client.expect("SET a old => +OK\nRPUSH list a b => :2\nINCR n => :1\nBARRIER => +OK");
    serving.kill(2);
    until("its loss is seen", || field(&mut client, 2, "state") == "away");
    let mut other = serving.client(1);
    assert!(other.ask("BACKUP START").starts_with("\"MINGLEBK"));
    let fenced = client.ask("FENCE d2");
    assert!(fenced.starts_with("[\"name\", \"d2\""), "{fenced}");
    until("the other one knows it", || field(&mut serving.client(1), 2, "state") == "fenced");
    let ended = other.ask("BACKUP NEXT");
    assert!(ended.starts_with("-NOBACKUP the snapshot is not held any more"), "{ended}");
    client.expect("SET a new => +OK\nINCR n => :2");
    until("it is admitted", || client.ask("ADMIT d2").contains("\"incarnation\", :1"));
    serving.start(2, &["--incarnation", "1"]);
    let mut back = serving.client(2);
    until("it has copied the data", || back.ask("MGET a n") == "[\"new\", \"2\"]");
    until("its writes count", || back.ask("INCR n") == ":3");
    let report = backup(serving.address(2), &file);
    assert!(report.contains("backup of d2, incarnation 1"), "{report}");

    let mut restored = Serving::of("c2", 3, &[]);
    for dc in 0..3 {
        restore(&file, &restored, dc, &["--dcs", "3", "--cluster", "c2"]);
    }
    for dc in 0..3 {
        restored.start(dc, &[]);
    }
    restored.connected();
    let mut clients = [0, 1, 2].map(|dc| restored.client(dc));
    for client in &mut clients {
        client.expect("MGET a n => [\"new\", \"3\"]\nLRANGE list 0 -1 => [\"a\", \"b\"]");
        assert_eq!(field(client, 2, "incarnation"), "0");
    }
    until("a strong command", || clients[2].ask("LPOP list") == "\"a\"");
    clients[1].expect("INCR n => :4");
    until("they converge", || {
        clients.iter_mut().all(|it| it.ask("GET n") == "\"4\"" && it.ask("LLEN list") == ":1")
    });
    // A data center of the new cluster is lost and comes back as any other one.
    restored.kill(0);
    until("its loss is seen", || field(&mut clients[1], 0, "state") == "away");
    let fenced = clients[1].ask("FENCE d0");
    assert!(fenced.starts_with("[\"name\", \"d0\""), "{fenced}");
    until("it is admitted", || clients[1].ask("ADMIT d0").contains("\"incarnation\", :1"));
    restored.start(0, &["--incarnation", "1"]);
    let mut back = restored.client(0);
    until("it has copied the data", || back.ask("MGET a n") == "[\"new\", \"4\"]");
    until("its writes count", || back.ask("INCR n") == ":5");
}

#[test]
fn the_last_data_center_of_three_has_a_backup_with_all_that_it_acknowledged() {
    let folder = tempfile::tempdir().expect("a folder");
    let [file, data] = ["file", "data"].map(|name| folder.path().join(name));
    let mut serving = Serving::started(3, &[]);
    let mut client = serving.client(1);
    until("a majority answers", || client.ask("APPEND strong a") == ":1");
    client.expect("SET early 1 => +OK\nBARRIER => +OK");
    serving.kill(0);
    serving.kill(2);
    client.expect("SET late 1 => +OK\nINCR early => :2");
    backup(serving.address(1), &file);
    done(&["restore", "--file", text(&file), "--dir", text(&data)]);
    let center = single(&data, "4");
    let mut client = client_of(&center);
    client.expect("MGET strong early late => [\"a\", \"2\", \"1\"]\nAPPEND strong b => :2");
}
