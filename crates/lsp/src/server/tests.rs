mod files;

use super::*;

const URI: &str = "file:///a.mingle";

/// Creates a running server with one open document.
fn open(text: &str) -> Server {
    let mut server = Server::default();
    let params = json!({ "capabilities": {} });
    tell(&mut server, Some(0), "initialize", params);
    let document = json!({ "uri": URI, "languageId": "mingle", "version": 1, "text": text });
    tell(&mut server, None, "textDocument/didOpen", json!({ "textDocument": document }));
    assert_eq!(drain(&mut server).len(), 2);
    server
}

fn tell(server: &mut Server, id: Option<i64>, method: &str, params: Value) {
    let mut message = json!({ "jsonrpc": "2.0", "method": method, "params": params });
    if let Some(id) = id {
        message["id"] = json!(id);
    }
    server.receive(message.to_string().as_bytes());
}

fn drain(server: &mut Server) -> Vec<Value> {
    std::iter::from_fn(|| server.poll()).collect()
}

fn ask(server: &mut Server, method: &str, line: u32, character: u32) -> Value {
    let params = json!({
        "textDocument": { "uri": URI },
        "position": { "line": line, "character": character },
    });
    tell(server, Some(7), method, params);
    let answers = drain(server);
    assert_eq!(answers.len(), 1, "{answers:?}");
    answers[0]["result"].clone()
}

fn change(server: &mut Server, version: i32, start: u32, end: u32, text: &str) {
    let place = |character: u32| json!({ "line": 0, "character": character });
    let range = json!({ "start": place(start), "end": place(end) });
    let params = json!({
        "textDocument": { "uri": URI, "version": version },
        "contentChanges": [{ "range": range, "text": text }],
    });
    tell(server, None, "textDocument/didChange", params);
}

#[test]
fn of_several_edits_the_last_version_is_checked() {
    let mut server = open("store s: causal;");
    for (version, letter) in (2..).zip("strong".chars()) {
        let at = 9 + version as u32 - 2;
        change(&mut server, version, at, if version == 2 { 15 } else { at }, &letter.to_string());
    }
    let messages = drain(&mut server);
    assert_eq!(messages.len(), 1, "{messages:?}");
    let params = &messages[0]["params"];
    assert_eq!(
        (&params["version"], &params["diagnostics"][0]["code"]),
        (&json!(7), &json!("M0101"))
    );
}

#[test]
fn what_is_taken_back_in_time_is_not_done() {
    let mut server = open("store s: causal;");
    tell(&mut server, Some(1), "shutdown", Value::Null);
    tell(&mut server, None, "$/cancelRequest", json!({ "id": 1 }));
    tell(&mut server, None, "$/cancelRequest", json!({ "id": 99 }));
    let messages = drain(&mut server);
    assert_eq!(messages.len(), 1);
    assert_eq!((&messages[0]["id"], &messages[0]["error"]["code"]), (&json!(1), &json!(-32_800)));
    // The server still answers.
    assert!(ask(&mut server, "textDocument/hover", 0, 6).is_object());
    assert_eq!(server.exit_code(), None);
}

#[test]
fn the_exit_code_says_whether_the_client_said_goodbye() {
    let mut server = Server::default();
    tell(&mut server, None, "exit", Value::Null);
    assert!(drain(&mut server).is_empty());
    assert_eq!(server.exit_code(), Some(1));
    let mut server = open("");
    tell(&mut server, Some(1), "shutdown", Value::Null);
    tell(&mut server, None, "exit", Value::Null);
    assert_eq!(drain(&mut server).len(), 1);
    assert_eq!(server.exit_code(), Some(0));
}

#[test]
fn places_beyond_the_text_are_no_mistake() {
    for text in ["", "\n", "store s: causal;", "// 😀", "transaction t() { o.", "\r\r\n{"] {
        let mut server = open(text);
        for (line, character) in [(0, 0), (0, 3), (0, 99), (1, 0), (99, 99), (u32::MAX, u32::MAX)] {
            for method in ["hover", "definition", "completion", "documentHighlight"] {
                ask(&mut server, &format!("textDocument/{method}"), line, character);
            }
        }
    }
}

#[test]
fn no_prefix_of_a_program_stops_the_server() {
    let text = include_str!("../../../../examples/cart.mingle");
    for end in (0..text.len()).step_by(7).filter(|end| text.is_char_boundary(*end)) {
        let mut server = open(&text[..end]);
        let line = text[..end].matches('\n').count() as u32;
        let items = ask(&mut server, "textDocument/completion", line, 1_000);
        assert!(items.is_array(), "{items}");
        ask(&mut server, "textDocument/hover", line, 1_000);
        let range = json!({ "start": { "line": 0, "character": 0 }, "end": { "line": line, "character": 9 } });
        let params = json!({ "textDocument": { "uri": URI }, "range": range });
        tell(&mut server, Some(1), "textDocument/inlayHint", params.clone());
        let mut params = params;
        params["context"] = json!({ "diagnostics": [] });
        tell(&mut server, Some(2), "textDocument/codeAction", params);
        let answers = drain(&mut server);
        assert!(answers.iter().all(|answer| answer["result"].is_array()), "{answers:?}");
    }
}

/// The edit of a warning leaves the program as it was, without the warning.
#[test]
fn a_warning_can_be_allowed_where_it_stands() {
    let text = "store s: eventual;
object Day in s { key id: string; lines: log<string>; count: counter; }
transaction record(day: ref Day, is_new: bool) {
    if is_new {
        day.lines.append(\"a\");
\tday.count.add(1);
    }
}
";
    let before = mingle_lang::check(text).diagnostics;
    assert_eq!(before.iter().map(|found| found.code.text()).collect::<Vec<_>>(), ["W0502"]);
    let mut server = open(text);
    let line = json!({ "line": 5, "character": 4 });
    let params = json!({
        "textDocument": { "uri": URI },
        "range": { "start": line, "end": line },
        "context": { "diagnostics": [] },
    });
    tell(&mut server, Some(7), "textDocument/codeAction", params);
    let answers = drain(&mut server);
    let answer = answers.iter().find(|answer| answer["id"] == 7).expect("it is answered");
    let actions = answer["result"].as_array().expect("a list");
    let allow = actions.iter().find(|one| one["title"] == "Allow W0502 here, with a reason");
    let edits = &allow.expect("it is offered")["edit"]["changes"][URI];
    assert_eq!(edits[0]["range"]["start"], json!({ "line": 5, "character": 1 }));
    let new = edits[0]["newText"].as_str().expect("text");
    let allowed = text.replace("\tday", &format!("\t{new}day"));
    assert_eq!(mingle_lang::check(allowed.as_str()).diagnostics, [], "{allowed}");
    assert!(allowed.contains("\"\n\tday.count"), "{allowed}");
}

#[test]
fn a_range_that_makes_no_sense_changes_nothing() {
    let mut server = open("store s: causal;");
    for start in [json!(-1), json!("0"), json!(1.5), Value::Null] {
        let place = json!({ "line": start, "character": 0 });
        let change = json!({ "range": { "start": place, "end": place }, "text": "x" });
        let document = json!({ "uri": URI, "version": 2 });
        let params = json!({ "textDocument": document, "contentChanges": [change] });
        tell(&mut server, None, "textDocument/didChange", params);
        let said = drain(&mut server).into_iter().map(|message| message.to_string());
        let said: String = said.collect();
        assert!(said.contains("the parameters do not fit"), "{said}");
    }
    let hover = ask(&mut server, "textDocument/hover", 0, 6);
    assert!(hover.to_string().contains("store s"), "{hover}");
}

#[test]
fn values_of_an_enum_are_completed_found_and_renamed() {
    let mut server = open(
        "store s: causal;\nenum Status { open, paid = \"p\" }\nobject O in s { key k: int; s: Status; }\n\
         transaction t(o: ref O) { o.s = Status.paid; }\n",
    );
    let items = ask(&mut server, "textDocument/completion", 3, 39);
    let labels: Vec<&str> = items
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|item| item["label"].as_str())
        .collect();
    assert_eq!(labels, ["open", "paid"], "{items}");
    let types = ask(&mut server, "textDocument/completion", 2, 31);
    assert!(types.to_string().contains("\"label\":\"Status\""), "{types}");
    let hover = ask(&mut server, "textDocument/hover", 3, 41);
    assert!(hover.to_string().contains("paid = \\\"p\\\""), "{hover}");
    let params = json!({
        "textDocument": { "uri": URI },
        "position": { "line": 3, "character": 41 },
        "newName": "settled",
    });
    tell(&mut server, Some(8), "textDocument/rename", params);
    let renamed = drain(&mut server).remove(0);
    let edits = renamed["result"]["changes"][URI].as_array().expect("edits").len();
    assert_eq!(edits, 2, "{renamed}");
    let symbols = ask(&mut server, "textDocument/documentSymbol", 0, 0);
    assert_eq!(symbols[1]["children"][1]["name"], "paid", "{symbols}");
}
