//! The server's diagnostics of every example equal those of the command.

use mingle_lang::diagnostic::Diagnostic;
use mingle_lang::syntax::{Source, TokenKind, lex};
use serde_json::{Value, json};

use super::client::{Client, URI, at, edited, helped, position};
use crate::cli::{folder, mingle};

macro_rules! examples {
    ($($name:literal),*) => {
        [$(($name, include_str!(concat!("../../../../../../examples/", $name, ".mingle")))),*]
    };
}

const EXAMPLES: [(&str, &str); 8] = examples![
    "bank",
    "cart",
    "contest",
    "contest_rejected",
    "contest_strong",
    "message_groups",
    "shop_feed/shop",
    "ticket_shop"
];

/// Returns the examples, and a program that is not ASCII and has mistakes, each with both kinds of
/// line ends.
fn programs() -> Vec<String> {
    let mut programs: Vec<String> = EXAMPLES.iter().map(|(_, text)| (*text).to_owned()).collect();
    programs.push(
        "store läden: causal;\n/// Grüße 😀\nobject Ware in läden { key n: string; s: counter; }\n\
        transaction t(w: ref Ware) { w.s.add(\"😀\"); let ü = w.x; let z = 1; w.s.add(q) }\n"
            .into(),
    );
    let with_returns: Vec<String> =
        programs.iter().map(|text| text.replace('\n', "\r\n")).collect();
    programs.extend(with_returns);
    programs
}

fn names(source: &Source) -> impl Iterator<Item = usize> + '_ {
    let names = source.tokens.iter().filter(|token| token.kind == TokenKind::Ident);
    names.map(|token| token.start as usize)
}

/// Returns a diagnostic in the form that the server must give, as far as it is data.
fn expected(source: &Source, found: &Diagnostic) -> Value {
    let text = &source.text;
    let range = |span| {
        let bytes = source.bytes(span);
        json!({ "start": position(text, bytes.start), "end": position(text, bytes.end) })
    };
    let is_path = found.labels.len() > 1 || found.labels[0].span != found.span;
    let labels = found.labels.iter().filter(|_| is_path).map(|label| {
        json!({ "location": { "uri": URI, "range": range(label.span) }, "message": label.message })
    });
    json!({
        "code": found.code.text(),
        "severity": if found.severity().name() == "error" { 1 } else { 2 },
        "title": found.title,
        "range": range(found.span),
        "labels": labels.collect::<Vec<_>>(),
    })
}

fn shown(found: &Value) -> Value {
    let message = found["message"].as_str().expect("a message");
    json!({
        "code": found["code"],
        "severity": found["severity"],
        "title": message.lines().next(),
        "range": found["range"],
        "labels": found.get("relatedInformation").unwrap_or(&json!([])),
    })
}

#[test]
fn diagnostics_are_those_of_check() {
    for text in programs() {
        let mut client = Client::greeted();
        let found = client.open(&text);
        let checked = mingle_lang::check(text.as_str());
        let expected: Vec<Value> = checked
            .diagnostics
            .iter()
            .map(|found| self::expected(&checked.source, found))
            .collect();
        assert_eq!(found.iter().map(shown).collect::<Vec<_>>(), expected, "{text}");
        // Each help is also an action that changes the text in the same way.
        for diagnostic in &checked.diagnostics {
            let bytes = checked.source.bytes(diagnostic.span);
            let range = json!({
                "start": position(&text, bytes.start),
                "end": position(&text, bytes.end),
            });
            let params = json!({
                "textDocument": { "uri": URI },
                "range": range,
                "context": { "diagnostics": [] },
            });
            let actions = client.ask("textDocument/codeAction", params);
            for help in diagnostic.help.iter().filter(|help| !help.edits.is_empty()) {
                let actions = actions.as_array().expect("a list");
                let texts: Vec<String> = actions
                    .iter()
                    .filter(|action| action["title"] == help.message)
                    .map(|action| edited(&text, &action["edit"]["changes"][URI]))
                    .collect();
                assert!(texts.contains(&helped(&text, help)), "{}: {actions:?}", help.message);
            }
        }
        assert_eq!(client.end(), Some(0));
    }
}

#[test]
fn hover_knows_every_name() {
    for text in programs() {
        let mut client = Client::greeted();
        client.open(&text);
        let is_good = !mingle_lang::check(text.as_str()).has_errors();
        for byte in names(&lex(text.as_str())) {
            let hover = client.ask("textDocument/hover", at(&text, byte));
            let definition = client.ask("textDocument/definition", at(&text, byte));
            if !definition.is_null() || is_good && hover.is_object() {
                let shown = hover["contents"]["value"].as_str().expect("text");
                assert!(!shown.is_empty());
            }
            client.ask("textDocument/completion", at(&text, byte));
        }
        client.ask("textDocument/documentSymbol", json!({ "textDocument": { "uri": URI } }));
        assert_eq!(client.end(), Some(0));
    }
}

/// Returns the places and the content of a text's diagnostics, by token: renaming moves no token.
fn diagnosed(text: &str) -> Vec<String> {
    let found = mingle_lang::check(text).diagnostics;
    found.iter().map(|found| format!("{:?} {}", found.span, found.code)).collect()
}

#[test]
fn every_declared_name_is_renamed_everywhere() {
    for (name, text) in EXAMPLES {
        let mut client = Client::greeted();
        client.open(text);
        let source = lex(text);
        let mut declared = 0;
        for byte in names(&source) {
            let definition = client.ask("textDocument/definition", at(text, byte));
            if definition["range"]["start"] != position(text, byte) {
                continue;
            }
            declared += 1;
            let mut params = at(text, byte);
            params["context"] = json!({ "includeDeclaration": true });
            let references = client.ask("textDocument/references", params);
            let mut params = at(text, byte);
            params["newName"] = json!("a_new_name");
            let edit = client.ask("textDocument/rename", params);
            let edits = &edit["changes"][URI];
            let count = |list: &Value| list.as_array().map(Vec::len);
            assert_eq!(count(edits), count(&references), "{name}, byte {byte}");
            let renamed = edited(text, edits);
            assert_eq!(diagnosed(&renamed), diagnosed(text), "{renamed}");
        }
        assert!(declared > 8, "{name} declares more than {declared} names");
        assert_eq!(client.end(), Some(0));
    }
}

#[test]
fn layout_is_that_of_fmt() {
    for (name, text) in EXAMPLES {
        // The program without its layout, as far as that changes no token.
        let loose = text.replace("    ", " \t").replace(" = ", "=").replace('{', "{\n\n\n");
        for text in [text.to_owned(), loose.clone(), loose.replace('\n', "\r\n")] {
            let mut client = Client::greeted();
            client.open(&text);
            let params = json!({
                "textDocument": { "uri": URI },
                "options": { "tabSize": 8, "insertSpaces": false },
            });
            let edits = client.ask("textDocument/formatting", params);
            let folder = folder(&[("program.mingle", &text)]);
            let run = mingle(folder.path(), &["fmt", "program.mingle"]);
            assert_eq!(run.code, Some(0), "{name}: {}", run.stdout);
            let formatted = std::fs::read_to_string(folder.path().join("program.mingle"));
            assert_eq!(edited(&text, &edits), formatted.expect("it is there"), "{name}");
            assert_eq!(client.end(), Some(0));
        }
    }
}
