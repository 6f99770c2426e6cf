//! The page with the table of commands.

use std::fmt::Write as _;

use super::refused::REFUSED;
use super::table::{Class, Command, Group, Keys, all};

/// Returns the tables of all commands, as Markdown.
pub fn table_page() -> String {
    let mut page = String::new();
    let groups = [
        (Group::String, "Strings"),
        (Group::Hash, "Hashes"),
        (Group::Set, "Sets"),
        (Group::List, "Lists"),
        (Group::SortedSet, "Sorted sets"),
        (Group::Generic, "Items of any type"),
        (Group::Transaction, "Transactions"),
        (Group::Server, "Connections and the server"),
    ];
    for (group, title) in groups {
        let _ = writeln!(page, "### {title}\n\n| command | class | effect | differs from Redis |");
        let _ = writeln!(page, "| --- | --- | --- | --- |");
        for command in all().filter(|command| command.group == group) {
            let name = command.name.to_uppercase();
            let Command { summary, difference, .. } = command;
            let _ = writeln!(page, "| `{name}` | {} | {summary} | {difference} |", class(command));
        }
        page.push('\n');
    }
    page.push_str("### Refused\n\n| commands | reason |\n| --- | --- |\n");
    for (names, reason) in REFUSED {
        let names: Vec<String> =
            names.iter().map(|name| format!("`{}`", name.to_uppercase())).collect();
        let _ = writeln!(page, "| {} | {reason} |", names.join(", "));
    }
    page
}

fn class(command: &Command) -> &'static str {
    if command.class_of.is_some() {
        return "causal or strong";
    }
    match command.class {
        Class::Read if command.keys == Keys::None => "",
        Class::Read => "read",
        Class::Blind | Class::Causal => "causal",
        Class::Strong => "strong",
    }
}
