//! Data centers with their settings in files.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::Raw;
use super::serving::{field, free_addresses, until};

pub const CLUSTER: &str = "5f0c9be2a7d14c3b8e6f1a2b3c4d5e6f";
const OTHER: &str = "00000000000000000000000000000bad";

/// A process that is killed with the test.
pub struct Configured(Child);

impl Configured {
    pub fn start(file: &Path) -> (Self, Raw) {
        let mut child = Command::new(env!("CARGO_BIN_EXE_mingled"))
            .args(["serve", "--config"])
            .arg(file)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let out = child.stdout.take().expect("the output is piped");
        let started = Self(child);
        let mut line = String::new();
        BufReader::new(out).read_line(&mut line).expect("a text");
        let address = line.split([' ', ',']).find_map(|word| word.parse().ok());
        let address = address.unwrap_or_else(|| panic!("no address in {line:?}"));
        (started, Raw::connect(address))
    }

    /// Kills the process.
    pub fn kill(&mut self) {
        self.0.kill().expect("it runs");
    }

    /// Stops the process, and returns the errors that it has printed.
    pub fn errors(mut self) -> String {
        let pid = rustix::process::Pid::from_child(&self.0);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it runs");
        let mut text = String::new();
        let errors = self.0.stderr.as_mut().expect("the errors are piped");
        errors.read_to_string(&mut text).expect("a text");
        text
    }
}

impl Drop for Configured {
    fn drop(&mut self) {
        // By its id. It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Writes the file of a data center, and returns its path.
pub fn file(folder: &Path, dc: usize, cluster: &str, peers: &[std::net::SocketAddr]) -> PathBuf {
    let peers: Vec<String> =
        peers.iter().enumerate().map(|(dc, peer)| format!("d{dc} = \"{peer}\"\n")).collect();
    let text = format!(
        "cluster = \"{cluster}\"
data_center = \"d{dc}\"
folder = \"data-{dc}\"
listen = \"127.0.0.1:0\"
strong_only = [\"lock:*\"]
token_key_file = \"key\"
token_minutes = 5

[data_centers]
{}
[labels]
withdraw = [\"withdraw\"]
deposit = []

[limits]
clients = 20
",
        peers.concat()
    );
    let path = folder.join(format!("d{dc}.toml"));
    std::fs::write(&path, text).expect("room");
    path
}

#[test]
fn a_process_of_another_cluster_is_refused_with_both_ids() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("key"), "a key that all of them have").expect("room");
    let peers = free_addresses(3);
    let files = [CLUSTER, CLUSTER, OTHER].into_iter().enumerate();
    let files = files.map(|(dc, cluster)| file(folder.path(), dc, cluster, &peers));
    let mut started: Vec<(Configured, Raw)> = files.map(|it| Configured::start(&it)).collect();
    until("the first two are connected", || field(&mut started[0].1, 1, "state") == "connected");
    let (mut why, client) = (String::new(), &mut started[2].1);
    until("the third is refused", || {
        why = field(client, 0, "why");
        why.contains("different clusters")
    });
    assert!(why.contains(CLUSTER) && why.contains(OTHER), "{why}");
    assert_eq!(field(client, 0, "state"), "away");
    client.expect("SET a third => +OK");
    // The settings of the file hold.
    let first = &mut started[0].1;
    assert_eq!(field(first, 2, "state"), "away");
    first.expect(
        "
        GET a => nil
        BEGIN STRONG LABEL withdraw => +OK
        ABORT => +OK
        BEGIN => +OK
        SET lock:a 1 => -ERR this SET is strong, and the transaction is causal: use BEGIN STRONG
        ABORT => +OK
        CONFIG GET maxclients => [\"maxclients\", \"20\"]
        SETNX lock:a me => :1
        ",
    );
    assert!(first.ask("SESSION TOKEN").starts_with('"'));
    let errors: Vec<String> = started.into_iter().map(|(it, _)| it.errors()).collect();
    for errors in [&errors[0], &errors[2]] {
        assert!(errors.contains(CLUSTER) && errors.contains(OTHER), "{errors}");
        let times = errors.matches("different clusters").count();
        assert!(times <= 3, "it is said once for each data center, not {times} times");
    }
    assert!(folder.path().join("data-0/journal").is_dir(), "it is beside the file");
}

#[test]
fn data_centers_with_other_shared_settings_are_refused() {
    for (from, to) in [
        ("lock:*", "look:*"),
        ("withdraw = [\"withdraw\"]", "withdraw = [\"withdraw\", \"deposit\"]"),
        ("listen", "partitions = 2\nlisten"),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("key"), "a key that all of them have").expect("room");
        let peers = free_addresses(2);
        let first = file(folder.path(), 0, CLUSTER, &peers);
        let second = file(folder.path(), 1, CLUSTER, &peers);
        let text = std::fs::read_to_string(&second).expect("it was written");
        std::fs::write(&second, text.replacen(from, to, 1)).expect("room");
        let mut started = [first, second].map(|it| Configured::start(&it));
        let mut why = String::new();
        until("they refuse each other", || {
            why = field(&mut started[1].1, 0, "why");
            why.contains("settings that all data centers share")
        });
        assert!(why.contains("found digest") && why.contains("expected"), "{why}");
        assert_eq!(field(&mut started[0].1, 1, "state"), "away");
    }
}

fn checked(file: &Path) -> (bool, String) {
    let ended = Command::new(env!("CARGO_BIN_EXE_mingled"))
        .arg("check-config")
        .arg(file)
        .output()
        .expect("it starts");
    let text = if ended.status.success() { ended.stdout } else { ended.stderr };
    (ended.status.success(), String::from_utf8_lossy(&text).into_owned())
}

#[test]
fn wrong_settings_are_refused_with_the_line_and_the_expected_value() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = file(folder.path(), 1, CLUSTER, &free_addresses(3));
    let good = std::fs::read_to_string(&path).expect("it was written");
    let (is_good, summary) = checked(&path);
    assert!(is_good && summary.contains("data center   d1, 4 partitions"), "{summary}");
    assert!(summary.contains("strong only   lock:*"), "{summary}");
    assert!(summary.contains("status page   none"), "{summary}");
    for (from, to, line, expected) in [
        ("cluster = ", "claster = ", 1, "unknown field `claster`, expected one of `cluster`"),
        (CLUSTER, "c1", 1, "cluster is 'c1', expected 32 hexadecimal digits"),
        (
            "\"d1\"\nf",
            "\"d7\"\nf",
            2,
            "data_center is 'd7', expected one of [data_centers], d0 to d2",
        ),
        ("\"d1\"\nf", "\"rome\"\nf", 2, "found data center 'rome', expected d0, d1, …"),
        ("127.0.0.1:0", "here", 4, "listen is 'here', expected an address such as 127.0.0.1:6399"),
        ("listen = ", "status = 80\nlisten = ", 4, "invalid type: integer `80`, expected a string"),
        ("listen = ", "status = \"80\"\nlisten = ", 4, "status is '80', expected an address such"),
        ("lock:*", "", 5, "strong_only has '', expected a pattern of names, such as 'lock:*'"),
        ("minutes = 5", "minutes = 0", 7, "token_minutes is 0, expected 1 to 1000000"),
        ("listen = ", "slow_ms = -1\nlisten = ", 4, "invalid value: integer `-1`, expected u64"),
        ("minutes = 5", "minutes = \"5\"", 7, "invalid type: string \"5\", expected u64"),
        ("d2 = ", "d3 = ", 9, "[data_centers] has 'd0, d1, d3', expected d0 and the next ones"),
        ("clients = 20", "clients = 0", 19, "limits.clients is 0, expected 1 to 100000"),
        ("clients = 20", "memory = 1", 19, "unknown field `memory`, expected one of `clients`"),
        ("deposit = []", "deposit = [\"rob\"]", 16, "conflicts with 'rob', expected one of"),
        ("listen = ", "durability = \"often\"\nlisten = ", 4, "expected memory, disk or uniform"),
        ("folder = ", "folder = 5 #", 3, "invalid type: integer `5`, expected path string"),
        ("cluster = ", "cluster : ", 1, ""),
    ] {
        let text = good.replacen(from, to, 1);
        assert_ne!(text, good, "{from}");
        std::fs::write(&path, text).expect("room");
        let (is_good, error) = checked(&path);
        let place = format!("d1.toml:{line}: ");
        assert!(!is_good && error.contains(&place) && error.contains(expected), "{to}: {error}");
    }
    let without = good.replacen("cluster", "# cluster", 1);
    std::fs::write(&path, without).expect("room");
    let (_, error) = checked(&path);
    assert!(error.contains("cluster is missing") && error.contains("for a new cluster"), "{error}");
    let shown = good.replacen("listen", "status = \"[::1]:9399\"\nlisten", 1);
    std::fs::write(&path, shown).expect("room");
    let (is_good, summary) = checked(&path);
    assert!(is_good && summary.contains("status page   http://[::1]:9399/"), "{summary}");
    let public = good.replacen("127.0.0.1:0", "0.0.0.0:6399", 1);
    std::fs::write(&path, public).expect("room");
    let (_, error) = checked(&path);
    assert!(error.contains("0.0.0.0:6399 is not on loopback"), "{error}");
    let (_, error) = checked(&folder.path().join("none.toml"));
    assert!(error.contains("none.toml cannot be read: "), "{error}");
}

#[test]
fn other_machines_need_passwords_and_encryption() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = file(folder.path(), 0, CLUSTER, &free_addresses(1));
    let good = std::fs::read_to_string(&path).expect("it was written");
    let public = good.replacen("127.0.0.1:0", "0.0.0.0:6399", 1);
    let write =
        |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("room");
    let with = |members: &str, tables: &str| {
        let text = public.replacen("listen", &format!("{members}\nlisten"), 1);
        write("d0.toml", &format!("{text}\n{tables}"));
        checked(&path)
    };
    let (_, error) = with("", "");
    assert!(error.contains("need passwords, in a file of users"), "{error}");
    write("users.acl", "user default on nopass ~* +@all\nuser app on >secret ~* +@all");
    let users = "users_file = \"users.acl\"";
    let (_, error) = with(users, "");
    assert!(
        error.contains("the user default of") && error.contains("needs no password"),
        "{error}"
    );
    write("users.acl", "user default off nopass\nuser app on >secret ~* +@all");
    let (_, error) = with(users, "");
    assert!(error.contains("passwords would cross the network as they are"), "{error}");
    let (is_good, summary) = with(&format!("{users}\nplain_text = true"), "");
    assert!(is_good && summary.contains("users.acl\ntls           none"), "{summary}");
    let far =
        good.replacen("[data_centers]\nd0 = \"127.0.0.1", "[data_centers]\nd0 = \"10.0.0.1", 1);
    write("d0.toml", &far);
    let (_, error) = checked(&path);
    assert!(error.contains("data would cross the network as it is: set [peer_tls]"), "{error}");
    let tls = "[tls]\ncertificate = \"server.pem\"\nkey = \"server.key\"";
    let (_, error) = with(users, tls);
    assert!(error.contains("server.pem: "), "{error}");
    let pair = rcgen::generate_simple_self_signed(vec!["localhost".into()]).expect("a certificate");
    write("server.pem", &pair.cert.pem());
    write("server.key", &pair.signing_key.serialize_pem());
    let (is_good, summary) = with(&format!("{users}\naudit_file = \"audit.log\""), tls);
    assert!(is_good && summary.contains("server.pem\npeer tls      none\naudit log"), "{summary}");
    let (_, error) = with(users, "[tls]\ncertificate = \"server.pem\"");
    assert!(error.contains("missing field `key`"), "{error}");
    write("users.acl", "user app on >secret ~* +@al");
    let (_, error) = with(users, tls);
    assert!(error.contains("users.acl:1: the user app: found the category 'al'"), "{error}");
    let status = public.replacen("127.0.0.1:0\"", "127.0.0.1:0\"\nstatus = \"0.0.0.0:1\"", 1);
    write("d0.toml", &status.replacen("0.0.0.0:6399", "127.0.0.1:0\"\nstatus = \"0.0.0.0:1", 1));
    let (_, error) = checked(&path);
    assert!(error.contains("0.0.0.0:1 is not on loopback, as the status page must be"), "{error}");
}

#[test]
fn programs_of_other_machines_need_passwords_and_encryption() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = file(folder.path(), 0, CLUSTER, &free_addresses(1));
    let good = std::fs::read_to_string(&path).expect("it was written");
    let write =
        |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("room");
    let with = |address: &str, members: &str, tables: &str| {
        let members = format!("engine = \"{address}\"\n{members}\nlisten");
        write("d0.toml", &format!("{}\n{tables}", good.replacen("listen", &members, 1)));
        checked(&path)
    };
    let (is_good, summary) = with("127.0.0.1:6398", "", "");
    let expected = "programs      127.0.0.1:6398, not encrypted, without users\n";
    assert!(is_good && summary.contains(expected), "{summary}");
    let far = "0.0.0.0:6398";
    let (_, error) = with(far, "", "");
    assert!(
        error.contains("0.0.0.0:6398 is not on loopback: programs of other machines"),
        "{error}"
    );
    write("users.acl", "user default on nopass ~* +@all\nuser shop on >secret ~vault +mingle");
    let users = "users_file = \"users.acl\"";
    let (_, error) = with(far, users, "");
    assert!(
        error.contains("the user default of") && error.contains("needs no password"),
        "{error}"
    );
    write("users.acl", "user shop on >secret ~vault +mingle");
    let (_, error) = with(far, users, "");
    assert!(error.contains("passwords would cross the network as they are"), "{error}");
    let (is_good, summary) = with(far, &format!("{users}\nplain_text = true"), "");
    let expected = "programs      0.0.0.0:6398, not encrypted, with users\n";
    assert!(is_good && summary.contains(expected), "{summary}");
    let pair = rcgen::generate_simple_self_signed(vec!["localhost".into()]).expect("a certificate");
    write("server.pem", &pair.cert.pem());
    write("server.key", &pair.signing_key.serialize_pem());
    let tls = "[tls]\ncertificate = \"server.pem\"\nkey = \"server.key\"";
    let (is_good, summary) = with("[::]:6398", users, tls);
    let expected = "programs      [::]:6398, encrypted, with users\n";
    assert!(is_good && summary.contains(expected), "{summary}");
    let (is_good, summary) = {
        write("d0.toml", &good);
        checked(&path)
    };
    assert!(is_good && summary.contains("programs      none\n"), "{summary}");
}

#[test]
fn a_process_has_the_users_and_certificates_of_its_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = file(folder.path(), 0, CLUSTER, &free_addresses(1));
    let good = std::fs::read_to_string(&path).expect("it was written");
    std::fs::write(folder.path().join("key"), "a key that all of them have").expect("room");
    std::fs::write(folder.path().join("users.acl"), "user app on >secret ~* +@all").expect("room");
    let members = "users_file = \"users.acl\"\naudit_file = \"audit.log\"\nlisten";
    std::fs::write(&path, good.replacen("listen", members, 1)).expect("room");
    let (started, mut client) = Configured::start(&path);
    assert!(client.ask("GET a").starts_with("-NOAUTH"));
    client.expect("AUTH app secret => +OK\nSET a 1 => +OK");
    let errors = started.errors();
    assert!(errors.is_empty(), "{errors}");
    let log = std::fs::read_to_string(folder.path().join("audit.log")).expect("the log");
    assert!(log.contains("\"event\":\"signed-in\"") && log.contains("\"user\":\"app\""), "{log}");
}
