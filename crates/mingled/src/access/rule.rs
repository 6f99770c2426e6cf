//! The rules of users, in Redis's syntax.

use std::collections::{BTreeMap, BTreeSet};

use super::category::in_category;
use super::user::{KeyRule, PROGRAMS, Parts, User};
use crate::commands::{find, refusal};

/// The maximum length of a rule, in bytes.
const RULE_BYTES_MAX: usize = 4_096;

/// The number of digits of the hash of a password.
const HASH_DIGITS: usize = 64;

/// Applies a rule to a user.
///
/// # Errors
///
/// The rule, without a password that it has, and the expected ones.
pub fn apply(user: &mut User, rule: &str) -> Result<(), String> {
    if rule.len() > RULE_BYTES_MAX {
        return Err(format!(
            "a rule has {} bytes, at most {RULE_BYTES_MAX} are accepted",
            rule.len()
        ));
    }
    let lower = rule.to_ascii_lowercase();
    match lower.as_str() {
        "on" => user.is_on = true,
        "off" => user.is_on = false,
        "nopass" => {
            user.is_open = true;
            user.passwords.clear();
        }
        "resetpass" => {
            user.is_open = false;
            user.passwords.clear();
        }
        "allkeys" => user.keys = vec![KeyRule::all()],
        "resetkeys" => user.keys.clear(),
        // There is no publishing here.
        "allchannels"
        | "resetchannels"
        | "clearselectors"
        | "sanitize-payload"
        | "skip-sanitize-payload" => {}
        "allcommands" => of_category(user, "all", true)?,
        "nocommands" => of_category(user, "all", false)?,
        "reset" => *user = User::new(user.name.clone()),
        _ => return signed(user, rule, &lower),
    }
    Ok(())
}

/// Applies a rule that begins with a sign.
fn signed(user: &mut User, rule: &str, lower: &str) -> Result<(), String> {
    let Some(sign) = rule.chars().next() else { return Err("a rule is empty".into()) };
    let rest = &rule[sign.len_utf8()..];
    match sign {
        '>' => {
            user.is_open = false;
            user.passwords.insert(super::user::hash(rest.as_bytes()));
        }
        '<' => {
            if !user.passwords.remove(&super::user::hash(rest.as_bytes())) {
                return Err("a rule <… takes away a password that the user does not have".into());
            }
        }
        '#' => {
            user.is_open = false;
            user.passwords.insert(hash(rest)?);
        }
        '!' => {
            if !user.passwords.remove(&hash(rest)?) {
                return Err("a rule !… takes away a password that the user does not have".into());
            }
        }
        '~' => user.keys.push(KeyRule { reads: true, writes: true, pattern: rest.into() }),
        '%' => {
            let Some((kind, pattern)) = rest.split_once('~') else {
                return Err(unknown(rule));
            };
            let (reads, writes) = match kind.to_ascii_uppercase().as_str() {
                "R" => (true, false),
                "W" => (false, true),
                "RW" | "WR" => (true, true),
                _ => return Err(unknown(rule)),
            };
            user.keys.push(KeyRule { reads, writes, pattern: pattern.into() });
        }
        '&' => {}
        '(' => {
            return Err("rules in parentheses (selectors) are not supported: make two users".into());
        }
        '+' | '-' => {
            let (name, is_allowed) = (&lower[1..], sign == '+');
            match name.strip_prefix('@') {
                Some(category) => of_category(user, category, is_allowed)?,
                None => of_command(user, name, is_allowed)?,
            }
        }
        _ => return Err(unknown(rule)),
    }
    Ok(())
}

fn unknown(rule: &str) -> String {
    let shown: String = rule.chars().take(40).collect();
    format!(
        "found the rule '{}', expected on, off, nopass, >password, #hash, ~pattern, %R~pattern, %W~pattern, \
         allkeys, +command, -command, +@category, -@category, allcommands, nocommands, resetpass, resetkeys \
         or reset",
        shown.escape_default()
    )
}

fn hash(digits: &str) -> Result<[u8; 32], String> {
    let wrong = || format!("a password hash is wrong, expected {HASH_DIGITS} hexadecimal digits");
    if digits.len() != HASH_DIGITS || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return Err(wrong());
    }
    let mut hash = [0; 32];
    for (place, byte) in hash.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&digits[2 * place..2 * place + 2], 16).map_err(|_| wrong())?;
    }
    Ok(hash)
}

fn of_category(user: &mut User, category: &str, is_allowed: bool) -> Result<(), String> {
    let Some(commands) = in_category(category) else {
        let known = super::CATEGORIES.map(|name| &name[1..]).join(", ");
        let found = category.escape_default();
        return Err(format!("found the category '{found}', expected all, {known}"));
    };
    if category == "all" {
        user.rules.clear();
        user.commands.clear();
        if is_allowed {
            user.commands.insert(PROGRAMS, Parts::All);
        }
    }
    for command in commands {
        if is_allowed {
            user.commands.insert(command.name, Parts::All);
        } else {
            user.commands.remove(command.name);
        }
    }
    note(&mut user.rules, format!("{}@{category}", sign(is_allowed)));
    Ok(())
}

fn of_command(user: &mut User, name: &str, is_allowed: bool) -> Result<(), String> {
    let (command, part) = match name.split_once('|') {
        Some((command, part)) => (command, Some(part)),
        None => (name, None),
    };
    note(&mut user.rules, format!("{}{name}", sign(is_allowed)));
    if name == PROGRAMS {
        if is_allowed {
            user.commands.insert(PROGRAMS, Parts::All);
        } else {
            user.commands.remove(PROGRAMS);
        }
        return Ok(());
    }
    let Some(command) = find(command.as_bytes()) else {
        // A file of Redis names commands that are not here.
        if refusal(command.as_bytes()).is_some() {
            return Ok(());
        }
        return Err(format!(
            "found the command '{}', which does not exist",
            command.escape_default()
        ));
    };
    let commands: &mut BTreeMap<&'static str, Parts> = &mut user.commands;
    match (part, is_allowed) {
        (None, true) => drop(commands.insert(command.name, Parts::All)),
        (None, false) => drop(commands.remove(command.name)),
        (Some(part), true) => match commands.get_mut(command.name) {
            Some(Parts::All) => {}
            Some(Parts::Only(parts)) => drop(parts.insert(part.to_owned())),
            Some(Parts::Except(parts)) => drop(parts.remove(part)),
            None => {
                let only = BTreeSet::from([part.to_owned()]);
                commands.insert(command.name, Parts::Only(only));
            }
        },
        (Some(part), false) => match commands.get_mut(command.name) {
            Some(parts @ Parts::All) => {
                *parts = Parts::Except(BTreeSet::from([part.to_owned()]));
            }
            Some(Parts::Only(parts)) => drop(parts.remove(part)),
            Some(Parts::Except(parts)) => drop(parts.insert(part.to_owned())),
            None => {}
        },
    }
    Ok(())
}

fn sign(is_allowed: bool) -> char {
    if is_allowed { '+' } else { '-' }
}

/// Adds a rule on commands; an earlier one with the same text is gone.
fn note(rules: &mut Vec<String>, rule: String) {
    rules.retain(|other| *other != rule);
    rules.push(rule);
}
