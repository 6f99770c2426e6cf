//! Checks the `conflicts` key of a binding: the program must have the listed transactions, and two
//! transactions that are not listed must be safe if both commit without seeing each other.

use mingle_lang::changes::Changes;
use mingle_lang::hir::StoreId;
use mingle_lang::{Plan, Program};
use mingle_model::Level;
use mingle_store_embedded::limits::CONFLICTS_MAX;

use crate::binding::{Binding, ConflictPairs, EmbeddedBinding, Engine};
use crate::open::OpenError;
use crate::strong_only::{names, pairs_of};

/// Checks the conflicts that a binding declares; returns a note for each store that declares some.
pub(crate) fn check_conflicts(
    program: &Program,
    binding: &Binding,
) -> Result<Vec<String>, OpenError> {
    let mut notes = Vec::new();
    for (index, store) in program.checked.stores.iter().enumerate() {
        let Some(bound) = binding.stores.get(&*store.name) else { continue };
        let Engine::Embedded(embedded) = &bound.engine else { continue };
        let id = StoreId(index as u32);
        let Some(pairs) = pairs_of(program, id, embedded) else { continue };
        let checked = check_patterns(program, id, embedded).and_then(|()| {
            let key = if embedded.conflicts.is_some() { "conflicts" } else { "strong_only" };
            let checked = check_store(program, id, embedded, &pairs);
            checked.map_err(|why| why.into_iter().map(|why| format!("{key}: {why}")).collect())
        });
        checked.map_err(|why: Vec<String>| {
            let path = format!("stores.{}", store.name);
            let all = why.into_iter().map(|why| format!("{path}.{why}")).collect::<Vec<_>>();
            OpenError::Binding(all.join("\n"))
        })?;
        notes.push(note(&store.name, &pairs));
    }
    Ok(notes)
}

/// Refuses a pattern that names nothing of a store.
fn check_patterns(
    program: &Program,
    store: StoreId,
    bound: &EmbeddedBinding,
) -> Result<(), Vec<String>> {
    let objects = program.checked.objects.iter().filter(|object| object.store == store);
    let fields = objects.flat_map(|object| {
        let name = &object.declared.name;
        object.declared.fields.iter().map(move |field| format!("{name}.{}", field.name))
    });
    let fields: Vec<String> = fields.collect();
    let is_none = |pattern: &&String| !fields.iter().any(|field| names(pattern, field));
    let wrong = bound.strong_only.iter().filter(is_none).map(|pattern| {
        let known = if fields.is_empty() { "none".to_owned() } else { fields.join(", ") };
        format!("strong_only: {pattern:?} names no field of the store; its fields are {known}")
    });
    let wrong: Vec<String> = wrong.collect();
    if wrong.is_empty() { Ok(()) } else { Err(wrong) }
}

fn note(store: &str, pairs: &ConflictPairs) -> String {
    let pairs: Vec<String> =
        pairs.iter().map(|(one, other)| format!("{one} with {other}")).collect();
    let listed = if pairs.is_empty() { "none".to_owned() } else { pairs.join(", ") };
    format!(
        "store {store} is causal but for the pairs of transactions that conflict: {listed}; what others decide, they may decide without having seen each other"
    )
}

fn check_store(
    program: &Program,
    store: StoreId,
    bound: &EmbeddedBinding,
    pairs: &ConflictPairs,
) -> Result<(), Vec<String>> {
    let declared = &program.checked.stores[store.index()];
    let level = program.checked.levels.carrier(declared.level);
    if !matches!(level, Level::Linearizable | Level::Causal) {
        let name = &declared.name;
        return Err(vec![format!(
            "is for a linearizable or a causal store, and {name} is {level}"
        )]);
    }
    if bound.places().len() < 2 {
        return Err(vec!["is for a store of several data centers, and it has one".into()]);
    }
    let visiting: Vec<&Plan> = program
        .plans
        .iter()
        .map(|plan| &**plan)
        .filter(|plan| plan.phases.iter().any(|phase| phase.store == Some(store)))
        .collect();
    let listed = bound.conflicts.iter().flatten();
    let wrong = listed.flat_map(|(one, other)| [one, other]);
    let wrong = wrong.filter_map(|name| check_name(program, &visiting, &declared.name, name));
    let wrong: Vec<String> = wrong.collect();
    if !wrong.is_empty() {
        return Err(wrong);
    }
    if pairs.len() > CONFLICTS_MAX {
        let found = pairs.len();
        return Err(vec![format!("expected at most {CONFLICTS_MAX} pairs, found {found}")]);
    }
    let clashes = clashes(program, store, &visiting, pairs);
    if clashes.is_empty() { Ok(()) } else { Err(clashes) }
}

fn check_name(program: &Program, visiting: &[&Plan], store: &str, name: &str) -> Option<String> {
    if visiting.iter().any(|plan| *plan.name == *name) {
        return None;
    }
    if program.plan(name).is_some() {
        return Some(format!("the transaction {name} does not visit store {store}"));
    }
    let known: Vec<&str> = visiting.iter().map(|plan| &*plan.name).collect();
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    Some(format!("the program has no transaction {name}; those that visit {store} are {known}"))
}

/// Returns a sentence for each pair that must be listed and is not.
fn clashes(
    program: &Program,
    store: StoreId,
    visiting: &[&Plan],
    pairs: &ConflictPairs,
) -> Vec<String> {
    let changes: Vec<Changes> =
        visiting.iter().map(|plan| Changes::of(&program.checked, plan, store)).collect();
    let mut found = Vec::new();
    for (at, (one, ours)) in visiting.iter().zip(&changes).enumerate() {
        for (other, theirs) in visiting.iter().zip(&changes).skip(at) {
            let (one, other) = (&one.name, &other.name);
            if pairs.contains(&(one.min(other).clone(), one.max(other).clone())) {
                continue;
            }
            let Some(clash) = ours.clash(theirs, &program.checked) else { continue };
            let who = if one == other {
                format!("two of {one} need")
            } else {
                format!("{one} and {other} need")
            };
            found.push(format!(
                "{who} not see each other unless they are listed, and would lose what they write: {clash}; list [\"{one}\", \"{other}\"]"
            ));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check_binding;

    const BANK: &str = "store accounts: linearizable; store feed: causal;
        object Account in accounts {
            key number: string; balance: counter; owner: string; tags: set<string>; lines: log<int>;
        }
        object Feed in feed { key name: string; lines: log<string>; }
        transaction deposit(account: ref Account, amount: int) {
            account.balance.add(amount);
            account.lines.append(amount);
        }
        transaction withdraw(account: ref Account, amount: int) {
            require account.balance.value() >= amount else \"too low\";
            account.balance.add(-amount);
        }
        transaction rename(account: ref Account, owner: string) { account.owner = owner; }
        transaction open(number: string) -> ref Account { return new Account { number: number }; }
        transaction close(account: ref Account) { account.delete(); }
        transaction double(account: ref Account) {
            var balance = account.balance.value();
            if balance < 100 { balance = balance * 1; }
            account.balance.add(balance);
        }
        transaction draw() -> ref Account { return new Account { owner: \"nobody\" }; }
        transaction look(account: ref Account) -> int { return account.balance.value(); }
        transaction tell(feed: ref Feed) { feed.lines.append(\"x\"); }";

    /// All pairs that must be listed.
    const ALL: &str = "[\"rename\", \"rename\"], [\"open\", \"open\"], [\"double\", \"double\"],
        [\"double\", \"deposit\"], [\"withdraw\", \"double\"], [\"close\", \"deposit\"],
        [\"close\", \"withdraw\"], [\"close\", \"rename\"], [\"close\", \"open\"],
        [\"close\", \"double\"], [\"close\", \"close\"]";

    fn check(conflicts: &str) -> Result<Vec<String>, String> {
        let program = mingle_lang::check(BANK).program.expect("it is right");
        let text =
            format!("[stores.feed]\n[stores.accounts]\ndatacenters = 3\nconflicts = [{conflicts}]");
        let binding = Binding::parse(&text).map_err(|error| error.to_string())?;
        check_binding(&program, &binding).map_err(|error| error.to_string())
    }

    #[test]
    fn what_would_be_lost_has_to_be_listed() {
        let notes = check(ALL).expect("all is listed that has to be");
        assert!(notes[0].contains("close with withdraw, "), "{notes:?}");
        for (left_out, expected) in [
            (
                "[\"rename\", \"rename\"]",
                "two of rename need not see each other unless they are listed, and would lose what they write: the one assigns Account.owner, and the other assigns it; list [\"rename\", \"rename\"]",
            ),
            ("[\"open\", \"open\"]", "the one makes, if it does not exist, Account, and"),
            (
                "[\"double\", \"double\"]",
                "the first one adds to Account.balance what it has computed from it",
            ),
            (
                "[\"double\", \"deposit\"]",
                "deposit and double need not see each other unless they are listed, and would lose what they write: the second one adds to Account.balance what",
            ),
            (
                "[\"close\", \"rename\"]",
                "the one assigns Account.owner, and the other deletes, with all else of the object, it",
            ),
            ("[\"close\", \"open\"]", "list [\"open\", \"close\"]"),
        ] {
            let error = check(&ALL.replace(left_out, "[\"close\", \"close\"]"));
            let error = error.expect_err(left_out);
            assert!(error.starts_with("stores.accounts.conflicts: "), "{error}");
            assert!(error.contains(expected), "{error}");
            assert_eq!(error.lines().count(), 1, "{error}");
        }
        assert_eq!(check("").expect_err("much is missing").lines().count(), 11);
    }

    /// The list of a causal store is judged as that of a linearizable one.
    #[test]
    fn a_causal_store_has_such_a_list_too() {
        let text = BANK.replace("store accounts: linearizable", "store accounts: causal");
        let program = mingle_lang::check(&text).program.expect("it is right");
        for (listed, clashes) in [(ALL, 0), ("", 11)] {
            let text = format!(
                "[stores.accounts]\ndatacenters = 3\nconflicts = [{listed}]\n[stores.feed]"
            );
            let binding = Binding::parse(&text).expect("it is right");
            match check_binding(&program, &binding) {
                Ok(notes) => assert!(clashes == 0 && notes[0].contains("close with withdraw, ")),
                Err(error) => assert_eq!(error.to_string().lines().count(), clashes, "{error}"),
            }
        }
    }

    /// Transactions that write a named field are in all pairs of each other.
    #[test]
    fn fields_can_be_named_instead_of_pairs() {
        let text = BANK.replace("store accounts: linearizable", "store accounts: causal");
        let program = mingle_lang::check(&text).program.expect("it is right");
        let checked = |strong_only: &str| {
            let text = format!(
                "[stores.feed]\n[stores.accounts]\ndatacenters = 3\nstrong_only = [{strong_only}]"
            );
            let binding = Binding::parse(&text).map_err(|error| error.to_string())?;
            check_binding(&program, &binding).map_err(|error| error.to_string())
        };
        let notes = checked("\"Account.ow*\", \"Account.balance\", \"Account\"");
        let notes = notes.expect("each writes the account");
        assert!(notes[0].contains("deposit with withdraw"), "{notes:?}");
        assert!(!notes[0].contains("look") && !notes[0].contains("tell"), "{notes:?}");
        let error = checked("\"Account.owner\"").expect_err("deposits and closing clash");
        assert!(error.starts_with("stores.accounts.strong_only: "), "{error}");
        assert!(error.contains("list [\"deposit\", \"close\"]"), "{error}");
        assert!(!error.contains("\"rename\""), "they write what is named: {error}");
        for wrong in ["Accont", "Account.own", "Feed.lines", "", "*.*.*"] {
            let error = checked(&format!("\"{wrong}\"")).expect_err(wrong);
            let expected =
                format!("strong_only: {wrong:?} names no field of the store; its fields");
            assert!(error.contains(&expected), "{error}");
        }
        for (pattern, name, expected) in [
            ("Account", "Account.owner", true),
            ("Account", "Account", true),
            ("Account.*", "Account", false),
            ("A*t.*n*", "Account.owner", true),
            ("*", "Account.owner", true),
            ("A*x", "Account.owner", false),
        ] {
            assert_eq!(names(pattern, name), expected, "{pattern} and {name}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        for (conflicts, expected) in [
            ("[\"pay\", \"open\"]", "no transaction pay; those that visit accounts are deposit,"),
            ("[\"tell\", \"open\"]", "the transaction tell does not visit store accounts"),
            (
                "[\"open\"]",
                "stores.accounts.conflicts: expected pairs of transactions, found [open]",
            ),
            ("\"open\"", "conflicts: expected a list of pairs of transactions"),
        ] {
            let error = check(conflicts).expect_err(expected);
            assert!(error.contains(expected), "{error}");
        }
        let text = BANK.replace("store feed: causal", "store feed: eventual");
        let program = mingle_lang::check(&text).program.expect("it is right");
        for (text, expected) in [
            (
                "[stores.accounts]\n[stores.feed]\ndatacenters = 3\nconflicts = []",
                "stores.feed.conflicts: is for a linearizable or a causal store, and feed is eventual",
            ),
            (
                "[stores.feed]\n[stores.accounts]\ndatacenters = 1\nconflicts = []",
                "is for a store of several data centers, and it has one",
            ),
            (
                "[stores.accounts]\nconflicts = []",
                "stores.accounts.conflicts: is for a store with datacenters",
            ),
        ] {
            let checked = Binding::parse(text).map_err(|error| error.to_string());
            let checked = checked.and_then(|binding| {
                check_binding(&program, &binding).map_err(|error| error.to_string())
            });
            let error = checked.expect_err(expected);
            assert!(error.contains(expected), "{error}");
        }
    }
}
