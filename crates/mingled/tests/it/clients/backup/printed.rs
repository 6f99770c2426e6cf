//! Items as text.

use serde_json::{Value as Json, json};

use super::{Started, backup, client_of, done, fill, refused, single, text};

#[test]
fn items_are_printed_as_json_and_as_commands_that_make_them_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let [data, file, again] = ["data", "file", "again"].map(|name| folder.path().join(name));
    let center = single(&data, "4");
    let mut client = client_of(&center);
    let _ = fill(&mut client);
    client.expect("DEL long => :1\nEXPIRE later 1 => :1");
    client.expect("SET later 1 PXAT 99999999999999 => +OK");
    done(&["backup", "--from", &center.address.to_string(), "--to", text(&file)]);
    let used = refused(&["dump", text(&data)]);
    assert!(used.contains("has opened this folder"), "{used}");
    center.kill();

    let printed = done(&["dump", text(&file)]);
    let lines = sorted(&printed);
    let find = |key: &str| {
        let json = lines.iter().map(|line| serde_json::from_str(line).expect("JSON"));
        let mut found = json.filter(|line: &Json| line["key"] == key);
        found.next().unwrap_or_else(|| panic!("{key}"))
    };
    let bytes = json!({ "bytes": "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vMDEyMzQ1Njc4OTo7PD0+P0BBQkNERUZHSElKS0xNTk9QUVJTVFVWV1hZWltcXV5fYGFiY2RlZmdoaWprbG1ub3BxcnN0dXZ3eHl6e3x9fn+AgYKDhIWGh4iJiouMjY6PkJGSk5SVlpeYmZqbnJ2en6ChoqOkpaanqKmqq6ytrq+wsbKztLW2t7i5uru8vb6/wMHCw8TFxsfIycrLzM3Oz9DR0tPU1dbX2Nna29zd3t/g4eLj5OXm5+jp6uvs7e7v8PHy8/T19vf4+fr7/P3+/w==" });
    assert_eq!(find("text"), json!({ "type": "string", "key": "text", "value": "a \"text\"" }));
    assert_eq!(find("later")["expires_at_ms"], json!(99_999_999_999_999u64));
    assert_eq!(find("hash")["value"], json!([["", bytes], ["a", "42"]]));
    assert_eq!(find("list")["value"], json!(["first", "a", bytes, "", "z"]));
    assert_eq!(find("least")["value"], json!("-9223372036854775808"));
    assert!(!printed.contains("\"gone\""), "it was deleted");
    // The folder has the same items.
    assert_eq!(sorted(&done(&["dump", text(&data)])), lines);

    let commands = done(&["dump", "--form", "commands", text(&file)]);
    let mut started = Started::new();
    let mut client = started.client();
    for line in commands.lines() {
        let reply = client.ask(line);
        assert!(!reply.starts_with('-'), "{line}: {reply}");
    }
    backup(started.address(), &again);
    started.stop();
    assert_eq!(sorted(&done(&["dump", text(&again)])), lines);
}

fn sorted(printed: &str) -> Vec<String> {
    let mut lines: Vec<String> = printed.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}
