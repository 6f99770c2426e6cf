//! `mingle lsp` from end to end: JSON-RPC over its pipes.

mod client;
mod examples;
mod protocol;

use client::{Client, URI, at, edited, position};
use serde_json::{Value, json};

const TEXT: &str = "\
store groups: linearizable;
store inboxes: causal;
object Group in groups {
    key name: string;
    closed: bool;
    members: set<ref User>;
}
object User in inboxes {
    key name: string;
    unread: log<string>;
}
/// Delivers.
transaction add_post(group: ref Group, post: string) -> int {
    require !group.closed else \"closed\" as closed;
    var delivered = 0;
    for member in group.members {
        member.unread.append(post);
        delivered += 1;
    }
    return delivered;
}
";

fn find(text: &str, part: &str) -> usize {
    text.find(part).unwrap_or_else(|| panic!("`{part}` is there"))
}

fn hover(client: &mut Client, text: &str, byte: usize) -> String {
    let hover = client.ask("textDocument/hover", at(text, byte));
    hover["contents"]["value"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn hover_says_what_a_value_depends_on_and_where_it_runs() {
    let mut client = Client::greeted();
    assert_eq!(client.open(TEXT), Vec::<Value>::new());
    let shown = hover(&mut client, TEXT, find(TEXT, "delivered;\n}"));
    assert!(shown.contains("var delivered: int"), "{shown}");
    assert!(shown.contains("Depends on `groups` (linearizable)"), "{shown}");
    assert!(shown.contains("line 16, `group.members`: read from"), "{shown}");
    let shown = hover(&mut client, TEXT, find(TEXT, "member.unread"));
    assert!(shown.contains("member: ref User"), "{shown}");
    assert!(shown.contains("phase 2 at `inboxes` (causal), which writes"), "{shown}");
    let shown = hover(&mut client, TEXT, find(TEXT, "post: string"));
    assert!(shown.contains("Depends on no store's data"), "{shown}");
    let shown = hover(&mut client, TEXT, find(TEXT, "append"));
    assert!(shown.contains("operation `append` of `log<string>`"), "{shown}");
    let shown = hover(&mut client, TEXT, find(TEXT, "add_post"));
    assert!(shown.contains("Delivers."), "{shown}");
    assert_eq!(client.end(), Some(0));
}

#[test]
fn hints_say_where_statements_run() {
    let mut client = Client::greeted();
    client.open(TEXT);
    let range = json!({ "start": position(TEXT, 0), "end": position(TEXT, TEXT.len()) });
    let params = json!({ "textDocument": { "uri": URI }, "range": range });
    let hints = client.ask("textDocument/inlayHint", params);
    let mut shown = TEXT.to_owned();
    for hint in hints.as_array().expect("a list").iter().rev() {
        let at = client::byte(TEXT, &hint["position"]);
        shown.insert_str(at, hint["label"].as_str().expect("text"));
    }
    assert!(shown.contains("as closed;@ groups\n"), "{shown}");
    assert!(shown.contains("for member in group.members@ groups {"), "{shown}");
    assert!(shown.contains("append(post);@ inboxes\n"), "{shown}");
    assert_eq!(client.end(), Some(0));
}

fn labels(client: &mut Client, text: &str) -> Vec<String> {
    let byte = find(text, "|");
    let text = text.replacen('|', "", 1);
    client.open(&text);
    let items = client.ask("textDocument/completion", at(&text, byte));
    let items = items.as_array().expect("a list").iter();
    items.map(|item| item["label"].as_str().expect("text").to_owned()).collect()
}

#[test]
fn completion_offers_what_can_stand_there() {
    let mut client = Client::greeted();
    for (old, new, offered, not) in [
        ("delivered += 1;", "delivered += 1; group.|", "members", "post"),
        ("delivered += 1;", "delivered += 1; member.unread.a|", "append", "members"),
        ("delivered += 1;", "|", "member", "struct"),
        ("delivered += 1;", "|", "for", "transaction"),
        ("return delivered;", "return |;", "delivered", "member"),
        ("return delivered;", "put | ", "User", "delivered"),
        ("return delivered;", "put User { | };", "name", "unread"),
        ("closed: bool", "closed: |", "bool", "for"),
        ("closed: bool;", "closed: bool; index by |;", "closed", "for"),
        ("closed: bool;", "closed: bool; unique |", "closed", "for"),
        ("ref User>", "ref |>", "Group", "bool"),
        ("causal", "|", "eventual", "bool"),
        ("in inboxes", "in |", "groups", "User"),
        ("store inboxes", "| store inboxes", "transaction", "let"),
    ] {
        let labels = labels(&mut client, &TEXT.replacen(old, new, 1));
        assert!(labels.iter().any(|label| label == offered), "{new}: {labels:?}");
        assert!(!labels.iter().any(|label| label == not), "{new}: {labels:?}");
    }
    let indexed = TEXT.replacen("closed: bool;", "closed: bool; index by closed as open;", 1);
    assert_ne!(indexed, TEXT);
    let indexes = labels(&mut client, &indexed.replacen("return delivered;", "Group.|", 1));
    assert_eq!(indexes, ["open"]);
    let mut arms = |arms: &str| {
        let found = format!("match group.members.size() by 5ms {{ {arms} }} return delivered;");
        labels(&mut client, &TEXT.replacen("return delivered;", &found, 1)).join(" ")
    };
    assert_eq!(arms("|"), "linearizable snapshot causal eventual late some none");
    assert_eq!(arms("causal(n) => { group.exists(); } |"), "linearizable snapshot eventual late");
    assert_eq!(arms("l| => { }"), "linearizable snapshot causal eventual late some none");
    assert_eq!(arms("some(n) => { if n > 0 { return 1; } } |"), "none");
    assert!(arms("causal(n) => { | }").contains("let"), "an arm has statements");
    let inside = labels(&mut client, &TEXT.replacen("/// Delivers", "/// Del|ivers", 1));
    assert!(inside.is_empty(), "{inside:?}");
    assert_eq!(client.end(), Some(0));
}

#[test]
fn names_that_clash_are_refused() {
    let mut client = Client::greeted();
    let text = TEXT.replacen("var delivered", "let other = post; var delivered", 1);
    client.open(&text);
    let mut refuse = |part: &str, new: &str, why: &str| {
        let mut params = at(&text, find(&text, part));
        params["newName"] = json!(new);
        let answer = client.answer("textDocument/rename", params);
        assert_eq!(answer["error"]["code"], -32_803, "{part}: {answer}");
        let message = answer["error"]["message"].as_str().expect("a message");
        assert!(message.contains(why), "{message}");
    };
    refuse("delivered", "for", "reserved word");
    refuse("delivered", "1x", "is no name");
    refuse("delivered", "a b", "is no name");
    refuse("delivered", "", "is no name");
    refuse("delivered", "other", "declared twice");
    refuse("delivered", "post", "expected `string`, found `int`");
    refuse("other", "post", "another `post` would be meant");
    refuse("closed", "members", "twice");
    refuse("User", "Group", "twice");
    refuse("groups", "int", "");
    refuse("causal", "weak", "no name that this program declares");
    refuse("append", "add", "no name that this program declares");
    assert_eq!(client.end(), Some(0));
}

#[test]
fn edits_are_followed_through_broken_versions() {
    let mut client = Client::greeted();
    client.open(TEXT);
    let mut text = TEXT.to_owned();
    for (version, (old, new)) in
        (2..).zip([("0;", "\"😀\";"), ("\"😀\";", ";"), ("= ;", "= 7 + x;"), (" + x;", ";")])
    {
        let start = find(&text, old);
        let range = json!({
            "start": position(&text, start),
            "end": position(&text, start + old.len()),
        });
        text.replace_range(start..start + old.len(), new);
        let params = json!({
            "textDocument": { "uri": URI, "version": version },
            "contentChanges": [{ "range": range, "text": new }],
        });
        client.tell("textDocument/didChange", params);
        let found = client.diagnostics().len();
        assert_eq!(found, mingle_lang::check(text.as_str()).diagnostics.len(), "{text}");
        // The answer is also given while the document has errors.
        let shown = hover(&mut client, &text, find(&text, "member.unread"));
        assert!(shown.contains("member: ref User"), "{shown}");
    }
    let params = json!({
        "textDocument": { "uri": URI, "version": 9 },
        "contentChanges": [{ "text": "store s: strong;" }],
    });
    client.tell("textDocument/didChange", params);
    assert_eq!(client.diagnostics()[0]["code"], "M0101");
    assert_eq!(edited("ab", &json!([])), "ab");
    assert_eq!(client.end(), Some(0));
}
