//! Descriptions of the server and of its commands.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

use mingle_geo::Delay;

use super::Shared;
use super::admin::REDIS_VERSION;
use super::slow::ENTRIES_MAX;
use crate::access::categories;
use crate::commands::{Class, Command, Group, Keys};
use crate::process::{HeldBack, Progress};
use crate::resp::{Bytes, Reply};

/// Returns the settings for `CONFIG GET`.
pub fn settings(shared: &Shared) -> Vec<(&'static str, String)> {
    let settings = &shared.settings;
    let seconds = |time: Option<std::time::Duration>| time.map_or(0, |time| time.as_secs());
    vec![
        ("appendfsync", "always".into()),
        ("appendonly", "yes".into()),
        ("databases", "1".into()),
        ("maxclients", settings.connections_max.to_string()),
        ("maxmemory", "0".into()),
        ("maxmemory-policy", "noeviction".into()),
        ("port", shared.address.port().to_string()),
        ("proto-max-bulk-len", settings.limits.argument_bytes.to_string()),
        ("save", String::new()),
        (
            "slowlog-log-slower-than",
            settings.slow.map_or("-1".into(), |it| it.as_micros().to_string()),
        ),
        ("slowlog-max-len", ENTRIES_MAX.to_string()),
        ("timeout", seconds(settings.idle).to_string()),
    ]
}

/// A part of `INFO`: its name and its lines.
type Section = (&'static str, Vec<(&'static str, String)>);

/// Returns the text of `INFO` with these sections, or all.
pub fn info(shared: &Shared, wanted: &[Bytes]) -> String {
    let all = [b"all".as_slice(), b"default", b"everything"];
    let is_wanted = |name: &str| {
        let takes = |word: &Bytes| {
            word.eq_ignore_ascii_case(name.as_bytes())
                || all.iter().any(|all| word.eq_ignore_ascii_case(all))
        };
        wanted.is_empty() || wanted.iter().any(takes)
    };
    let mut text = String::new();
    let sections = of_server(shared).into_iter().chain(of_data(shared));
    for (name, lines) in sections.filter(|(name, _)| is_wanted(name)) {
        let _ = write!(text, "# {name}\r\n");
        for (name, value) in lines {
            let _ = write!(text, "{name}:{value}\r\n");
        }
        text.push_str("\r\n");
    }
    text
}

/// Returns the sections on the server and its clients.
fn of_server(shared: &Shared) -> [Section; 3] {
    let count = |of: &AtomicU64| of.load(Ordering::Relaxed).to_string();
    let server = vec![
        ("redis_version", REDIS_VERSION.into()),
        ("server_name", "mingled".into()),
        ("mingled_version", env!("CARGO_PKG_VERSION").into()),
        ("redis_mode", "standalone".into()),
        ("process_id", std::process::id().to_string()),
        ("tcp_port", shared.address.port().to_string()),
        ("uptime_in_seconds", shared.started.elapsed().as_secs().to_string()),
    ];
    let clients = vec![
        ("connected_clients", shared.connections().len().to_string()),
        ("maxclients", shared.settings.connections_max.to_string()),
    ];
    let stats = vec![
        ("total_connections_received", count(&shared.accepted)),
        ("total_commands_processed", count(&shared.requests)),
        ("rejected_connections", count(&shared.refused)),
        ("slow_requests", shared.slow.noted().to_string()),
        ("audit_log_failures", shared.audit.failed().to_string()),
    ];
    [("Server", server), ("Clients", clients), ("Stats", stats)]
}

/// Returns the sections on the data.
fn of_data(shared: &Shared) -> [Section; 4] {
    let status = shared.process.status().unwrap_or_default();
    let settings = &shared.settings;
    let replication = vec![
        ("role", "master".into()),
        ("connected_slaves", "0".into()),
        ("data_center", settings.dc.to_string()),
        ("data_centers", settings.dc_count.to_string()),
        ("connected_data_centers", status.connected.len().to_string()),
        ("boot", status.boot.to_string()),
    ];
    [
        ("Persistence", vec![("loading", "0".into()), ("aof_enabled", "1".into())]),
        ("Replication", replication),
        ("Progress", progress(&status.progress)),
        ("Cluster", vec![("cluster_enabled", "0".into())]),
    ]
}

/// Returns the lines on how far transactions have come; one for each that is held back.
fn progress(progress: &Progress) -> Vec<(&'static str, String)> {
    let ages = |delays: &[Delay]| {
        let age = |delay: &Delay| {
            let ms = progress.age_ms(delay).map_or_else(|| "-".to_owned(), |ms| ms.to_string());
            format!("{}={ms}", delay.origin)
        };
        delays.iter().map(age).collect::<Vec<_>>().join(",")
    };
    let mut lines = vec![
        ("uniform_age_ms", ages(&progress.uniform)),
        ("folded_age_ms", ages(&progress.folded)),
        ("unfolded_operations", progress.unfolded.0.to_string()),
        ("unfolded_bytes", progress.unfolded.1.to_string()),
        ("kept_bytes", progress.kept_bytes.to_string()),
    ];
    let held = progress.held_back().into_iter().map(|held| {
        let HeldBack { stage, origin, since_ms, why } = held;
        let since = since_ms.map_or_else(|| "-".to_owned(), |since_ms| since_ms.to_string());
        ("held_back", format!("stage={stage},of={origin},since_ms={since},why={why}"))
    });
    lines.extend(held);
    lines
}

/// Returns the flags of a command.
fn flags(command: &Command) -> Vec<Reply> {
    let mut flags = Vec::new();
    if command.writes() {
        flags.push("write");
    } else if command.keys != Keys::None {
        flags.push("readonly");
    }
    if matches!(command.keys, Keys::Counted(_) | Keys::FirstAndCounted(_)) {
        flags.push("movablekeys");
    }
    flags.into_iter().map(Reply::Simple).collect()
}

/// Returns the entry of `COMMAND INFO`.
pub fn description(command: &Command) -> Reply {
    let (first, last, step) = match command.keys {
        Keys::None | Keys::Counted(_) => (0, 0, 0),
        Keys::Range(first, last, step) => (first as i64, last, step as i64),
        Keys::FirstAndCounted(_) => (1, 1, 1),
    };
    let numbers = [first, last, step].map(Reply::Integer);
    let mut parts =
        vec![Reply::text(command.name), Reply::Integer(command.arity), Reply::Set(flags(command))];
    parts.extend(numbers);
    let categories = categories(command).into_iter().map(Reply::Simple);
    parts.push(Reply::Set(categories.collect()));
    parts.extend([Reply::Array(Vec::new()), Reply::Array(Vec::new()), Reply::Array(Vec::new())]);
    Reply::Array(parts)
}

/// Returns the entry of `COMMAND DOCS`.
pub fn documentation(command: &Command) -> (Reply, Reply) {
    let group = match command.group {
        Group::Server => "server",
        Group::Generic => "generic",
        Group::String => "string",
        Group::Hash => "hash",
        Group::Set => "set",
        Group::List => "list",
        Group::SortedSet => "sorted-set",
        Group::Transaction => "transactions",
    };
    let class = match command.class {
        _ if command.class_of.is_some() => "causal or strong",
        Class::Read => "read",
        Class::Blind | Class::Causal => "causal",
        Class::Strong => "strong",
    };
    let pairs = [
        ("summary", command.summary),
        ("group", group),
        ("consistency", class),
        ("difference", command.difference),
    ];
    let pairs = pairs.into_iter().filter(|(_, text)| !text.is_empty());
    let pairs = pairs.map(|(name, text)| (Reply::text(name), Reply::text(text)));
    (Reply::text(command.name), Reply::Map(pairs.collect()))
}
