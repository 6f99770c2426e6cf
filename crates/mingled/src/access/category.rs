//! The categories of commands, with the names that Redis gives them.

use crate::commands::{Class, Command, Group, Keys, all};

/// The names of all categories, as Redis has them, with their sign. Some have no command here.
pub const CATEGORIES: [&str; 21] = [
    "@admin",
    "@bitmap",
    "@blocking",
    "@connection",
    "@dangerous",
    "@fast",
    "@geo",
    "@hash",
    "@hyperloglog",
    "@keyspace",
    "@list",
    "@pubsub",
    "@read",
    "@scripting",
    "@set",
    "@slow",
    "@sortedset",
    "@stream",
    "@string",
    "@transaction",
    "@write",
];

/// Commands that operators run.
const ADMIN: &[&str] = &["acl", "admit", "backup", "config", "fence", "slowlog"];

/// Commands that concern more than the items that they name, or show what others do.
const DANGEROUS: &[&str] = &[
    "acl",
    "admit",
    "backup",
    "client",
    "config",
    "datacenters",
    "fence",
    "flushall",
    "flushdb",
    "info",
    "keys",
    "slowlog",
];

/// Commands whose time depends on the data beyond what they name, or on other data centers.
const SLOW: &[&str] = &[
    "barrier", "commit", "copy", "exec", "lindex", "linsert", "lpos", "lrange", "lrem", "lset",
    "ltrim", "wait",
];

/// Returns the categories of a command.
pub fn categories(command: &Command) -> Vec<&'static str> {
    let has_keys = command.keys != Keys::None;
    let of_group = match command.group {
        Group::Server => "@connection",
        Group::Generic => "@keyspace",
        Group::String => "@string",
        Group::Hash => "@hash",
        Group::Set => "@set",
        Group::List => "@list",
        Group::SortedSet => "@sortedset",
        Group::Transaction => "@transaction",
    };
    let is_whole = ["dbsize", "randomkey", "flushall", "flushdb", "keys", "scan"];
    let is_whole = is_whole.contains(&command.name);
    let is_admin = ADMIN.contains(&command.name);
    let is_slow = is_admin
        || is_whole
        || SLOW.contains(&command.name)
        || command.class == Class::Strong
        || command.class_of.is_some()
        || !matches!(command.keys, Keys::None | Keys::Range(1, 1, 1));
    let mut found = vec![of_group, if is_slow { "@slow" } else { "@fast" }];
    if command.writes() {
        found.push("@write");
    } else if has_keys || is_whole {
        found.push("@read");
    }
    if is_admin {
        found.push("@admin");
    }
    if DANGEROUS.contains(&command.name) {
        found.push("@dangerous");
    }
    found.sort_unstable();
    found
}

/// Returns the commands of a category, which is named without its sign; `None` if there is no such category. `all` has every command.
pub fn in_category(name: &str) -> Option<Vec<&'static Command>> {
    if name == "all" {
        return Some(all().collect());
    }
    let known = *CATEGORIES.iter().find(|known| known[1..] == *name)?;
    Some(all().filter(|command| categories(command).contains(&known)).collect())
}
