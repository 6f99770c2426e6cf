//! A failing disk, and files that are damaged or missing.

use std::fs;
use std::path::Path;

use crate::cli::{folder, mingle};

/// Two stores, so that each file has a sibling.
const TEXT: &str = "store bank: linearizable; store feed: causal;
    object Account in bank { key owner: string; balance: int; }
    object Inbox in feed { key owner: string; lines: log<string>; }
    transaction pay(to: ref Account) -> int { to.balance += 10; return to.balance; }
    transaction tell(to: ref Inbox) -> int { to.lines.append(\"x\"); return to.lines.size(); }
    ";

fn used() -> tempfile::TempDir {
    let folder = folder(&[("bank.mingle", TEXT)]);
    for call in [["pay", "to=ana"], ["tell", "to=ana"]] {
        let args = [&["run", "bank.mingle"], &call[..]].concat();
        assert_eq!(mingle(folder.path(), &args).code, Some(0));
    }
    folder
}

/// Checks that the commands that open stores end with code 4, and name the store and its file.
#[track_caller]
fn is_refused(folder: &Path, store: &str, why: &str) {
    for args in
        [&["run", "bank.mingle", "pay", "to=ana"][..], &["show", "bank.mingle", "Inbox", "ana"]]
    {
        let run = mingle(folder, args);
        assert_eq!(run.code, Some(4), "{args:?}: {}", run.stderr);
        let file = format!("{store}.redb");
        for part in [&format!("store {store}"), &file, why] {
            assert!(run.stderr.contains(part), "{args:?}: {} lacks {part}", run.stderr);
        }
        assert!(!run.stderr.contains("panicked"), "{}", run.stderr);
    }
}

#[test]
fn a_file_that_is_damaged_empty_or_gone_is_named() {
    let folder = used();
    let file = folder.path().join(".mingle/bank/feed.redb");
    let whole = fs::read(&file).expect("the store was made");
    let used: Vec<usize> = (4096..whole.len()).filter(|at| whole[*at] != 0).collect();
    let mut damaged = whole.clone();
    used.iter().step_by(7).for_each(|at| damaged[*at] ^= 0x20);
    fs::write(&file, &damaged).expect("it can be written");
    is_refused(folder.path(), "feed", "the file is damaged");
    fs::write(&file, "").expect("it can be written");
    is_refused(folder.path(), "feed", "it is empty");
    fs::remove_file(&file).expect("it can be removed");
    is_refused(folder.path(), "feed", "the file is gone");
    fs::write(&file, &whole).expect("it can be written");
    let run = mingle(folder.path(), &["run", "bank.mingle", "tell", "to=ana"]);
    assert_eq!((run.code, run.stdout.trim()), (Some(0), "2"), "{}", run.stderr);
}

/// The file must not be written beyond a limit in bytes, as on a full disk.
#[cfg(target_os = "linux")]
#[test]
fn a_server_whose_disk_fails_is_not_ready_until_it_works_again() {
    use std::time::{Duration, Instant};

    use rustix::process::{Pid, Resource, Rlimit, prlimit};

    let folder = used();
    let serving = crate::cli::serve::Serving::start_ignoring(folder.path(), "XFSZ");
    let pid = Pid::from_raw(serving.id().cast_signed()).expect("it is a process");
    let limit = |most: Option<u64>| {
        let limit = Rlimit { current: most, maximum: None };
        prlimit(Some(pid), Resource::Fsize, limit).expect("the process is ours");
    };
    let ready = || serving.get("/readyz");
    assert!(ready().starts_with("HTTP/1.1 200"), "{}", ready());
    assert!(serving.call("pay", "", r#"{"to":"ana"}"#).ends_with(r#"{"result":20}"#));

    limit(Some(0));
    let failed = serving.call("pay?deadline_ms=100", "", r#"{"to":"ana"}"#);
    assert!(failed.starts_with("HTTP/1.1 50"), "{failed}");
    let answer = ready();
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    assert!(answer.contains("store bank is unavailable: its disk failed"), "{answer}");
    assert!(serving.get("/healthz").starts_with("HTTP/1.1 200"));

    limit(None);
    let until = Instant::now() + Duration::from_mins(1);
    while !ready().starts_with("HTTP/1.1 200") {
        assert!(Instant::now() < until, "it does not open again: {}", ready());
        std::thread::sleep(Duration::from_millis(20));
    }
    let balance = serving.call("pay", "", r#"{"to":"ana"}"#);
    // The failed call took effect completely, or not at all.
    let is_fine = balance.ends_with(r#"{"result":30}"#) || balance.ends_with(r#"{"result":40}"#);
    assert!(is_fine, "{balance}");
}

/// An account, and an inbox with more lines than redb keeps of a file in memory.
#[cfg(target_os = "linux")]
const LONG: &str = "store bank: linearizable; store feed: causal;
    object Account in bank { key owner: string; balance: int; }
    object Inbox in feed { key owner: string; lines: log<string>; }
    transaction pay(to: ref Account) -> int { to.balance += 10; return to.balance; }
    transaction fill(to: ref Inbox, line: string) {
        var n = 0;
        while n < 20 { to.lines.append(line); n += 1; }
    }
    transaction line(to: ref Inbox, n: int) -> list<string> { return to.lines.slice(n, 1); }
    ";

/// The bytes of an open store's file change, as on a failing disk; later the file is restored.
#[cfg(target_os = "linux")]
#[test]
fn a_server_whose_file_goes_bad_is_not_ready_until_the_file_is_restored() {
    use std::time::{Duration, Instant};

    use crate::cli::serve::Serving;

    const LINES: usize = 180;
    let folder = folder(&[("bank.mingle", LONG)]);
    let text = "x".repeat(500_000);
    let serving = Serving::start_ignoring(folder.path(), "XFSZ");
    for _ in 0..LINES / 20 {
        let body = format!(r#"{{"to":"ana","line":"{text}"}}"#);
        let filled = serving.call("fill?deadline_ms=30000", "", &body);
        assert!(filled.starts_with("HTTP/1.1 200"), "{}", &filled[..filled.len().min(500)]);
    }
    let ready = || serving.get("/readyz");
    let file = folder.path().join(".mingle/bank/feed.redb");
    let whole = fs::read(&file).expect("the store was made");
    // One letter of each page is changed: redb by itself would return the changed text.
    let mut damaged = whole.clone();
    damaged.chunks_mut(4096).skip(1).for_each(|page| page[2000] ^= 1);
    fs::write(&file, &damaged).expect("it can be written");

    let line = |n: usize| {
        serving.call("line?deadline_ms=30000", "", &format!(r#"{{"to":"ana","n":{n}}}"#))
    };
    let expected = format!(r#"{{"result":["{text}"]}}"#);
    // Only data that redb has in memory is shown.
    let failed = (0..LINES).map(line).find(|answer| !answer.ends_with(&expected));
    let failed = failed.expect("some lines are read from the file");
    assert!(failed.starts_with("HTTP/1.1 503"), "{}", &failed[..failed.len().min(500)]);
    assert!(failed.contains("store feed") && failed.contains("the file is damaged"), "{failed}");
    let answer = ready();
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    assert!(answer.contains("store feed is unavailable"), "{answer}");
    assert!(serving.get("/healthz").starts_with("HTTP/1.1 200"));
    // The other store still serves.
    let paid = serving.call("pay", "", r#"{"to":"ana"}"#);
    assert!(paid.ends_with(r#"{"result":10}"#), "{paid}");

    fs::write(&file, &whole).expect("it can be written");
    let until = Instant::now() + Duration::from_mins(1);
    while !ready().starts_with("HTTP/1.1 200") {
        assert!(Instant::now() < until, "it does not open again: {}", ready());
        std::thread::sleep(Duration::from_millis(20));
    }
    for n in 0..LINES {
        assert!(line(n).ends_with(&expected), "line {n}");
    }
}
