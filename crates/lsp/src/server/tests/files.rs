//! Programs of several files.

use mingle_lang::files::Unreadable;

use super::*;
use crate::files::Disk;

const MAIN: &str = "file:///app/main.mingle";
const ITEMS: &str = "file:///app/parts/items.mingle";

const MAIN_TEXT: &str = "import \"parts/items.mingle\";\n\ntransaction sell(item: ref Item) {\n    item.left -= 1;\n}\n";
const ITEMS_TEXT: &str =
    "store shop: linearizable;\nobject Item in shop { key name: string; left: int; }\n";

/// A disk with the two files; that of the items has a mistake.
fn disk() -> Disk {
    let read = |path: &str| match path {
        "/app/main.mingle" => Ok(MAIN_TEXT.to_owned()),
        "/app/parts/items.mingle" => Ok(ITEMS_TEXT.replace("left: int", "left: in")),
        _ => Err(Unreadable("there is no such file".into())),
    };
    let list = |folder: &str| match folder {
        "/app" => vec!["/app/main.mingle".to_owned()],
        _ => Vec::new(),
    };
    Disk { read, list }
}

fn started() -> Server {
    let mut server = Server::with_disk(disk());
    tell(&mut server, Some(0), "initialize", json!({ "capabilities": {} }));
    assert_eq!(drain(&mut server).len(), 1);
    server
}

fn open_at(server: &mut Server, uri: &str, text: &str) {
    let document = json!({ "uri": uri, "languageId": "mingle", "version": 1, "text": text });
    tell(server, None, "textDocument/didOpen", json!({ "textDocument": document }));
}

fn replace(server: &mut Server, uri: &str, text: &str) {
    let params = json!({
        "textDocument": { "uri": uri, "version": 2 },
        "contentChanges": [{ "text": text }],
    });
    tell(server, None, "textDocument/didChange", params);
}

/// Returns what is published last for each file.
fn published(server: &mut Server) -> BTreeMap<String, Vec<Value>> {
    let messages = drain(server).into_iter().map(|message| message["params"].clone());
    let lists = messages.map(|params| {
        let uri = params["uri"].as_str().expect("a list of a file").to_owned();
        (uri, params["diagnostics"].as_array().expect("a list").clone())
    });
    lists.collect()
}

fn ask_at(server: &mut Server, method: &str, uri: &str, place: (u32, u32), more: &Value) -> Value {
    drain(server);
    let mut params = json!({
        "textDocument": { "uri": uri },
        "position": { "line": place.0, "character": place.1 },
    });
    if let (Some(params), Some(more)) = (params.as_object_mut(), more.as_object()) {
        params.extend(more.clone());
    }
    tell(server, Some(7), method, params);
    let answers = drain(server);
    let answer = answers.iter().find(|answer| answer["id"] == 7).expect("it is answered");
    answer["result"].clone()
}

#[test]
fn diagnostics_stand_in_the_file_that_they_are_about() {
    let mut server = started();
    open_at(&mut server, MAIN, MAIN_TEXT);
    let found = published(&mut server);
    assert_eq!(found[MAIN], Vec::<Value>::new());
    assert_eq!(found[ITEMS][0]["range"]["start"], json!({ "line": 1, "character": 46 }));
    // The open text wins over the disk, and takes the mistake back.
    open_at(&mut server, ITEMS, ITEMS_TEXT);
    let found = published(&mut server);
    assert_eq!((&found[MAIN], &found[ITEMS]), (&Vec::new(), &Vec::new()));
    // A change there is a mistake here, and leads there.
    replace(&mut server, ITEMS, &ITEMS_TEXT.replace("left: int", "left: string"));
    let found = published(&mut server);
    assert_eq!(found[MAIN][0]["code"], "M0201", "{found:?}");
    assert_eq!(found[MAIN][0]["range"]["start"]["line"], 3);
    replace(&mut server, ITEMS, &format!("{ITEMS_TEXT}{}", MAIN_TEXT.split_once('\n').unwrap().1));
    let found = published(&mut server);
    let related = &found[MAIN][0]["relatedInformation"][1]["location"];
    assert_eq!((&found[MAIN][0]["code"], &related["uri"]), (&json!("M0102"), &json!(ITEMS)));
    assert_eq!(related["range"]["start"]["line"], 3);
    // What the disk has counts again once the file is closed.
    tell(&mut server, None, "textDocument/didClose", json!({ "textDocument": { "uri": ITEMS } }));
    let found = published(&mut server);
    assert_eq!((found[MAIN].len(), found[ITEMS].len()), (0, 1), "{found:?}");
    tell(&mut server, None, "textDocument/didClose", json!({ "textDocument": { "uri": MAIN } }));
    let found = published(&mut server);
    assert_eq!((found[MAIN].len(), found[ITEMS].len()), (0, 0), "{found:?}");
}

#[test]
fn a_file_is_checked_within_the_program_that_imports_it() {
    let text = format!("{ITEMS_TEXT}transaction two(item: ref Item) {{ item.left = both(1); }}\n");
    let mut server = started();
    open_at(&mut server, ITEMS, &text);
    let found = published(&mut server);
    assert_eq!(found[ITEMS][0]["code"], "M0101", "no file has `both`");
    open_at(&mut server, MAIN, &format!("{MAIN_TEXT}fn both(x: int) -> int {{ x + x }}\n"));
    let found = published(&mut server);
    assert_eq!((&found[ITEMS], &found[MAIN]), (&Vec::new(), &Vec::new()));
    let none = json!({});
    let place = ask_at(&mut server, "textDocument/definition", ITEMS, (2, 48), &none);
    assert_eq!((&place["uri"], &place["range"]["start"]["line"]), (&json!(MAIN), &json!(5)));
}

#[test]
fn names_lead_from_file_to_file() {
    let mut server = started();
    open_at(&mut server, MAIN, MAIN_TEXT);
    open_at(&mut server, ITEMS, ITEMS_TEXT);
    let none = json!({});
    let left = ask_at(&mut server, "textDocument/definition", MAIN, (3, 10), &none);
    assert_eq!(left["uri"], ITEMS);
    assert_eq!(left["range"]["start"], json!({ "line": 1, "character": 40 }));
    let path = ask_at(&mut server, "textDocument/definition", MAIN, (0, 12), &none);
    assert_eq!(path["uri"], ITEMS);
    let with_declared = json!({ "context": { "includeDeclaration": true } });
    let places = ask_at(&mut server, "textDocument/references", ITEMS, (1, 41), &with_declared);
    let files: Vec<_> = places.as_array().unwrap().iter().map(|place| &place["uri"]).collect();
    assert_eq!(files, [ITEMS, MAIN]);
    let hover = ask_at(&mut server, "textDocument/hover", MAIN, (2, 28), &none).to_string();
    assert!(hover.contains("object Item in shop"), "{hover}");
    let new = json!({ "newName": "stock" });
    let renamed = ask_at(&mut server, "textDocument/rename", MAIN, (3, 10), &new);
    let changes = &renamed["changes"];
    assert_eq!(changes[ITEMS][0]["range"]["start"], json!({ "line": 1, "character": 40 }));
    assert_eq!(changes[MAIN][0]["range"]["start"], json!({ "line": 3, "character": 9 }));
    // A name that another file has.
    let new = json!({ "newName": "name" });
    assert_eq!(ask_at(&mut server, "textDocument/rename", MAIN, (3, 10), &new), Value::Null);
    let offered = ask_at(&mut server, "textDocument/completion", MAIN, (3, 9), &none).to_string();
    assert!(offered.contains("\"left\"") && offered.contains("\"name\""), "{offered}");
    let outline = ask_at(&mut server, "textDocument/documentSymbol", MAIN, (0, 0), &none);
    let names: Vec<_> = outline.as_array().unwrap().iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["sell"]);
    let range = json!({ "range": { "start": { "line": 0, "character": 0 }, "end": { "line": 9, "character": 0 } } });
    let hints = ask_at(&mut server, "textDocument/inlayHint", MAIN, (0, 0), &range);
    assert_eq!(hints[0]["position"], json!({ "line": 3, "character": 19 }), "{hints}");
    let wide = MAIN_TEXT.replace("import ", "import   ");
    replace(&mut server, MAIN, &wide);
    let options = json!({ "options": { "tabSize": 4, "insertSpaces": true } });
    let edits = ask_at(&mut server, "textDocument/formatting", MAIN, (0, 0), &options);
    assert_eq!(edits[0]["newText"], "import \"parts/items.mingle\";\n", "{edits}");
}
