//! The protocol: message order, protocol errors, and several documents.

use serde_json::{Value, json};

use super::client::{Client, URI, at};

fn code(answer: &Value) -> i64 {
    answer["error"]["code"].as_i64().unwrap_or_else(|| panic!("an error: {answer}"))
}

#[test]
fn nothing_is_answered_before_initialize_or_after_shutdown() {
    let mut client = Client::start();
    assert_eq!(code(&client.answer("textDocument/hover", json!({}))), -32_002);
    client.ask("initialize", json!({ "capabilities": {} }));
    assert_eq!(code(&client.answer("initialize", json!({ "capabilities": {} }))), -32_600);
    client.ask("shutdown", Value::Null);
    assert_eq!(code(&client.answer("textDocument/hover", json!({}))), -32_600);
    client.tell("exit", Value::Null);
    assert_eq!(client.wait(), Some(0));
}

#[test]
fn an_end_without_goodbye_is_a_failure() {
    let mut client = Client::greeted();
    client.tell("exit", Value::Null);
    assert_eq!(client.wait(), Some(1));
    assert_eq!(Client::greeted().wait(), Some(1));
    // The input ends within a message.
    let mut client = Client::greeted();
    client.send_raw(b"Content-Length: 100\r\n\r\n{");
    assert_eq!(client.wait(), Some(1));
}

#[test]
fn what_is_no_message_is_answered_and_survived() {
    let mut client = Client::greeted();
    client.send_raw(b"Content-Length: 3\r\n\r\n{{{");
    let answer = client.next();
    assert_eq!((code(&answer), &answer["id"]), (-32_700, &Value::Null));
    client.send(&json!({ "jsonrpc": "2.0", "id": 5 }));
    let answer = client.next();
    assert_eq!((code(&answer), &answer["id"]), (-32_600, &json!(5)));
    assert_eq!(code(&client.answer("textDocument/nonsense", json!({}))), -32_601);
    let answer = client.answer("textDocument/hover", json!({ "textDocument": 3 }));
    assert_eq!(code(&answer), -32_602);
    let message = answer["error"]["message"].as_str().expect("a message");
    assert!(message.contains("do not fit"), "{message}");
    client.tell("$/nonsense", json!({}));
    assert_eq!(client.end(), Some(0));
}

#[test]
fn documents_that_are_not_open_are_named() {
    let mut client = Client::greeted();
    let answer = client.answer("textDocument/hover", at("", 0));
    assert_eq!(code(&answer), -32_602);
    assert!(answer["error"]["message"].as_str().is_some_and(|message| message.contains(URI)));
    client.tell("textDocument/didClose", json!({ "textDocument": { "uri": URI } }));
    let logged = client.next();
    assert_eq!(logged["method"], "window/logMessage");
    assert!(logged["params"]["message"].as_str().is_some_and(|message| message.contains(URI)));
    assert_eq!(client.end(), Some(0));
}

#[test]
fn a_request_can_be_taken_back() {
    let mut client = Client::greeted();
    client.open("store s: causal;");
    // Both messages are sent in one piece, so that the server may see both before it begins. The
    // server may also be quicker.
    let mut bytes = Vec::new();
    let mut hover = at("store s: causal;", 6);
    for id in 100..400 {
        hover["id"] = json!(id);
        let request = json!({
            "jsonrpc": "2.0", "id": id, "method": "textDocument/hover", "params": hover,
        });
        mingle_lsp::frame::write(&mut bytes, &request).expect("a vector takes it");
    }
    let cancel = json!({ "jsonrpc": "2.0", "method": "$/cancelRequest", "params": { "id": 399 } });
    mingle_lsp::frame::write(&mut bytes, &cancel).expect("a vector takes it");
    client.send_raw(&bytes);
    let mut answered: Vec<i64> = (100..400)
        .map(|_| {
            let answer = client.next();
            let id = answer["id"].as_i64().expect("an id");
            let is_cancelled = answer["error"]["code"] == -32_800;
            assert!(answer["result"].is_object() || id == 399 && is_cancelled, "{answer}");
            id
        })
        .collect();
    answered.sort_unstable();
    assert!(answered.into_iter().eq(100..400), "each is answered once");
    assert_eq!(client.end(), Some(0));
}

#[test]
fn several_documents_are_kept_apart() {
    let mut client = Client::greeted();
    for (name, text, count) in
        [("a", "store s: strong;", 1), ("b", "store s: causal", 1), ("c", "", 0)]
    {
        let uri = format!("file:///{name}.mingle");
        let document = json!({ "uri": uri, "languageId": "mingle", "version": 1, "text": text });
        client.tell("textDocument/didOpen", json!({ "textDocument": document }));
        let message = client.next();
        assert_eq!(message["params"]["uri"], uri);
        assert_eq!(message["params"]["diagnostics"].as_array().map(Vec::len), Some(count));
    }
    client.tell("textDocument/didClose", json!({ "textDocument": { "uri": "file:///a.mingle" } }));
    let message = client.next();
    assert_eq!(message["params"], json!({ "uri": "file:///a.mingle", "diagnostics": [] }));
    assert_eq!(client.end(), Some(0));
}

#[test]
fn columns_are_bytes_for_a_client_that_wants_them() {
    let text = "store äö: causal; store t: strong;";
    let bytes = text.find("strong").expect("it is there");
    for (offered, encoding, column) in [
        (json!(["utf-8", "utf-16"]), "utf-8", bytes),
        (json!(["utf-16"]), "utf-16", bytes - 2),
        (json!(["utf-32"]), "utf-16", bytes - 2),
    ] {
        let mut client = Client::start();
        let general = json!({ "positionEncodings": offered });
        let result = client.ask("initialize", json!({ "capabilities": { "general": general } }));
        assert_eq!(result["capabilities"]["positionEncoding"], encoding);
        let found = client.open(text);
        assert_eq!(found[0]["range"]["start"]["character"], json!(column), "{encoding}");
        assert_eq!(client.end(), Some(0));
    }
}

#[test]
fn codes_lead_to_their_explanations() {
    let mut client = Client::start();
    let options = json!({ "explainScheme": "mingle-explain" });
    client.ask("initialize", json!({ "capabilities": {}, "initializationOptions": options }));
    let found = client.open("store s: strong;");
    assert_eq!(found[0]["codeDescription"]["href"], "mingle-explain:/M0101.md");
    let page = client.ask("mingle/explain", json!({ "code": "M0101" }));
    assert!(page.as_str().is_some_and(|page| page.contains("M0101")));
    assert_eq!(code(&client.answer("mingle/explain", json!({ "code": "M9" }))), -32_602);
    assert_eq!(client.end(), Some(0));
}
