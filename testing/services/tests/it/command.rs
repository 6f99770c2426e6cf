//! The command: fetching, starting and stopping, and cleanup after its process is killed.

use crate::wire;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use mingle_services::process::Process;
use mingle_services::{Engine, Home, private};
use tempfile::TempDir;

/// Returns the command with a home of its own.
fn command(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mingle-services"));
    command.env("MINGLE_SERVICES", home).env_remove("CI");
    for engine in Engine::ALL {
        command.env_remove(engine.variable());
    }
    command
}

/// Creates a home that servers can reach as any user, with the files of the usual home.
fn new_home() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let usual = Home::find().unwrap();
    for entry in fs::read_dir(usual.path()).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name();
        let shown = name.to_string_lossy();
        if ["postgres-", "redis", "cassandra-"].iter().any(|engine| shown.starts_with(engine)) {
            symlink(entry.path(), folder.path().join(name)).unwrap();
        }
    }
    folder
}

/// Returns the output of a successful command.
fn printed(output: Output) -> String {
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{error}");
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the complaint of a failed command.
fn complaint(output: Output) -> String {
    assert!(!output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stderr).unwrap()
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !is_so() {
        assert!(Instant::now() < deadline, "in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Runs `hold`; returns it with the processes of the server that it holds.
fn hold(home: &Path, engine: Engine) -> (Child, Vec<Process>) {
    let mut holder = command(home);
    let holder = holder.args(["hold", engine.name()]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut holder = holder.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(holder.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let pids = line.split_whitespace().skip(1).map(|pid| pid.parse().unwrap());
    (holder, pids.map(|pid| Process::running(pid).unwrap()).collect())
}

#[tokio::test]
async fn nothing_is_left_of_a_process_that_is_killed() {
    for engine in Engine::ALL {
        if private(engine).await.is_none() {
            continue;
        }
        let home = new_home();
        let runs = home.path().join("runs");
        // Cassandra takes long to start.
        let ways = if engine == Engine::Cassandra { &[true][..] } else { &[true, false] };
        for is_killed in ways.iter().copied() {
            let (mut holder, servers) = hold(home.path(), engine);
            assert_eq!(servers.len(), if engine == Engine::Cassandra { 3 } else { 1 });
            assert_eq!(fs::read_dir(&runs).unwrap().count(), 1);
            if is_killed {
                holder.kill().unwrap();
            } else {
                drop(holder.stdin.take());
            }
            let status = holder.wait().unwrap();
            assert_eq!(status.success(), !is_killed);
            wait_until("it ends", || servers.iter().all(|server| !server.is_running()));
            wait_until("its folder goes", || fs::read_dir(&runs).unwrap().count() == 0);
        }
    }
}

#[tokio::test]
async fn a_started_server_goes_on_until_it_is_stopped() {
    for engine in [Engine::Postgres, Engine::Redis] {
        if private(engine).await.is_none() {
            continue;
        }
        let (home, name) = (new_home(), engine.name());
        let run = |task: &str| command(home.path()).args([task, name]).output().unwrap();
        assert_eq!(printed(run("status")), format!("{name}: fetched, not running\n"));
        let started = printed(run("start"));
        let url = started.strip_prefix(&format!("export {}=", engine.variable())).unwrap().trim();
        let address = url.rsplit_once('@').map_or(url, |(_, rest)| rest);
        let address = address.trim_start_matches("redis://").trim_end_matches("/postgres");
        let address = address.parse().unwrap();
        assert_eq!(printed(run("status")), format!("{name}: fetched, running at {url}\n"));
        assert_eq!(printed(run("start")), started, "one that runs is not started again");
        if engine == Engine::Postgres {
            wire::postgres(address, "create table kept (n int)").unwrap();
        } else {
            assert!(wire::redis(address, &["SET", "a", "b"]).unwrap().is_some());
        }
        let process = started_process(home.path());
        assert!(process.is_running());
        assert_eq!(printed(run("stop")), format!("{name}: stopped\n"));
        assert!(!process.is_running());
        assert_eq!(printed(run("stop")), format!("{name}: was not running\n"));
    }
}

/// Returns the one started process that the home records.
fn started_process(home: &Path) -> Process {
    let text = fs::read_to_string(home.join("started.txt")).unwrap();
    let words: Vec<&str> = text.split_whitespace().collect();
    Process { pid: words[1].parse().unwrap(), born: words[2].parse().unwrap() }
}

#[test]
fn a_process_that_only_has_the_number_of_a_server_is_let_be() {
    let home = tempfile::tempdir().unwrap();
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let mut bystander = Command::new("sleep").arg("1000").spawn().unwrap();
    let process = Process::running(bystander.id() as i32).unwrap();
    let line = format!("redis {} {} redis://127.0.0.1:1\n", process.pid, process.born - 1);
    fs::write(home.path().join("started.txt"), line).unwrap();
    let output = command(home.path()).args(["stop", "redis"]).output().unwrap();
    assert_eq!(printed(output), "redis: was not running\n");
    assert!(process.is_running());
    bystander.kill().unwrap();
    bystander.wait().unwrap();
}

#[test]
fn what_is_wrong_is_said() {
    let home = tempfile::tempdir().unwrap();
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let run = |words: &[&str]| command(home.path()).args(words).output().unwrap();
    let without_tools = |words: &[&str]| {
        let output = command(home.path()).args(words).env("PATH", "").output();
        complaint(output.unwrap())
    };
    assert!(complaint(run(&["fetch", "oracle"])).contains("no engine is called `oracle`"));
    assert!(complaint(run(&["fly"])).contains("no task `fly`"));
    assert!(complaint(run(&["start", "redis"])).contains("redis is not fetched: run"));
    let postgres = without_tools(&["fetch", "postgres"]);
    assert!(postgres.contains("cannot fetch postgres: `mvn` is needed"), "{postgres}");
    let typescript = without_tools(&["fetch", "typescript"]);
    assert!(typescript.contains("cannot fetch typescript: `npm` is needed"), "{typescript}");
    let mypy = without_tools(&["fetch", "mypy"]);
    assert!(mypy.contains("cannot fetch mypy: `python3` is needed"), "{mypy}");
    let redis = without_tools(&["fetch", "redis"]);
    assert!(redis.contains("cannot fetch redis: `apt-get` is needed"), "{redis}");
    let left: Vec<_> = fs::read_dir(home.path()).unwrap().map(|at| at.unwrap().path()).collect();
    assert!(left.iter().all(|path| !path.is_dir()), "{left:?}");
}

#[test]
fn an_address_that_is_told_is_used() {
    let home = tempfile::tempdir().unwrap();
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = command(home.path());
    let output = command.args(["status", "redis"]).env("MINGLE_REDIS", "redis://elsewhere:1");
    let shown = printed(output.output().unwrap());
    assert_eq!(shown, "redis: not fetched, told to use redis://elsewhere:1\n");
}
