//! Programs of several files, from the disk.

use serde_json::{Value, json};

use super::{folder, mingle, mingle_with};

const MAIN: &str = "import \"parts/items.mingle\";\n\nstore feed: causal;\n\nobject Post in feed {\n    key id: string;\n    left: int;\n}\n\ntransaction sell(item: ref Item, post: ref Post) -> int {\n    item.left -= 1;\n    post.left = item.left;\n    return item.left;\n}\n";
const ITEMS: &str = "store shop: linearizable;\n\nobject Item in shop {\n    key name: string;\n    left: int;\n}\n";

fn two() -> tempfile::TempDir {
    let tests =
        "test \"a sale\" { sell(Item[\"tea\"], Post[\"p\"]); expect Item[\"tea\"].left == -1; }\n";
    folder(&[
        ("app/main.mingle", MAIN),
        ("app/parts/items.mingle", ITEMS),
        ("app/main.test.mingle", tests),
    ])
}

#[test]
fn every_command_takes_a_program_of_several_files() {
    let folder = two();
    let run = |args: &[&str]| {
        let run = mingle(folder.path(), args);
        assert_eq!(run.code, Some(0), "{args:?}: {}{}", run.stdout, run.stderr);
        run.stdout
    };
    assert_eq!(run(&["check", "app/main.mingle"]), "");
    assert_eq!(run(&["check", "app/main.test.mingle"]), "");
    assert_eq!(run(&["fmt", "--check", "app/main.mingle", "app/parts/items.mingle"]), "");
    let explained = run(&["explain", "app/main.mingle", "sell"]);
    assert!(explained.contains("post.left = item.left"), "{explained}");
    assert_eq!(run(&["run", "app/main.mingle", "sell", "item=tea", "post=p"]), "-1\n");
    assert!(run(&["show", "app/main.mingle", "Item", "tea"]).contains("\"left\":-1"));
    assert!(run(&["test", "app/main.mingle"]).contains("1 "));
    assert!(run(&["gen", "typescript", "app/main.mingle"]).contains("sell("));
    run(&["doctor", "app/main.mingle"]);
    run(&["recover", "app/main.mingle"]);
    let repl = mingle_with(folder.path(), &["repl", "app/main.mingle"], "sell(\"tea\", \"p\")\n");
    assert!(repl.stdout.contains("-2"), "{}{}", repl.stdout, repl.stderr);
    // From standard input, imports are relative to the current folder.
    let app = folder.path().join("app");
    let check = mingle_with(&app, &["check", "-"], MAIN);
    assert_eq!((check.code, check.stdout.as_str()), (Some(0), ""));
}

#[test]
fn the_generated_code_is_that_of_the_joined_text() {
    let folder = two();
    let joined = format!("{ITEMS}{}", MAIN.split_once('\n').expect("an import").1);
    std::fs::create_dir(folder.path().join("one")).expect("a folder");
    std::fs::write(folder.path().join("one/main.mingle"), joined).expect("it is written");
    for language in ["typescript", "rust", "python"] {
        let [several, one] = ["app/main.mingle", "one/main.mingle"]
            .map(|file| mingle(folder.path(), &["gen", language, file]).stdout);
        assert_eq!(several, one, "{language}");
    }
    let [several, one] = ["app/main.mingle", "one/main.mingle"]
        .map(|file| mingle(folder.path(), &["explain", "--format", "json", file]).stdout);
    assert_eq!(several, one);
}

#[test]
fn a_mistake_has_the_name_of_its_file_in_every_format() {
    let broken = ITEMS.replace("left: int", "left: inn");
    let folder = folder(&[("app/main.mingle", MAIN), ("app/parts/items.mingle", &broken)]);
    let run = |format: &str| {
        let run = mingle(folder.path(), &["check", "--format", format, "app/main.mingle"]);
        assert_eq!(run.code, Some(1));
        run.stdout
    };
    assert!(run("short").starts_with("app/parts/items.mingle:5:11: error["), "{}", run("short"));
    let human = run("human");
    assert!(human.contains("--> app/parts/items.mingle:5:11\n"), "{human}");
    assert!(human.contains("5 |     left: inn;"), "{human}");
    let json: Value = serde_json::from_str(&run("json")).expect("it is JSON");
    let first = &json["diagnostics"][0];
    assert_eq!(first["file"], "app/parts/items.mingle");
    assert_eq!(first["start"], json!({ "line": 5, "column": 11 }));
    // The file by itself is formatted, also if other files have mistakes.
    let run = mingle(folder.path(), &["fmt", "--check", "app/parts/items.mingle"]);
    assert_eq!(run.code, Some(0), "{}", run.stdout);
}

#[test]
fn a_named_file_that_another_imports_is_checked_as_its_part() {
    let part = "transaction fill(item: ref Item) { item.left = 9; }\n";
    let main = format!("import \"part.mingle\";\n{ITEMS}");
    let folder = folder(&[
        ("main.mingle", &main),
        ("part.mingle", part),
        ("a.mingle", "import \"b.mingle\";\n"),
        ("b.mingle", "import \"a.mingle\";\n"),
    ]);
    let check = |files: &[&str]| {
        mingle(folder.path(), &[&["check", "--format", "short"], files].concat()).stdout
    };
    assert_eq!(check(&["part.mingle", "main.mingle"]), "");
    assert!(check(&["part.mingle"]).contains("error[M0101]"));
    assert_eq!(check(&["a.mingle", "b.mingle"]).lines().count(), 2, "a circle");
}

#[test]
fn files_that_cannot_be_read_are_named_at_their_imports() {
    let imports =
        ["gone", "folder", "bytes", "large"].map(|name| format!("import \"{name}.mingle\";\n"));
    let folder = folder(&[("main.mingle", &imports.concat()), ("folder.mingle/x", "")]);
    std::fs::write(folder.path().join("bytes.mingle"), b"// \n\xff").expect("it is written");
    // It takes no space, and is not read.
    let large = std::fs::File::create(folder.path().join("large.mingle")).expect("it is made");
    large.set_len((1 << 30) + 1).expect("it has a hole");
    let run = mingle(folder.path(), &["check", "--format", "short", "main.mingle"]);
    assert_eq!(run.code, Some(1));
    assert_eq!(
        run.stdout,
        "main.mingle:1:8: error[M0701]: \"gone.mingle\" cannot be imported: there is no such file\n\
         main.mingle:2:8: error[M0701]: \"folder.mingle\" cannot be imported: it is a folder\n\
         main.mingle:3:8: error[M0701]: \"bytes.mingle\" cannot be imported: it is not UTF-8: see line 2\n\
         main.mingle:4:8: error[M0701]: \"large.mingle\" cannot be imported: it has 1073741825 bytes, more than 1073741824\n"
    );
}

#[cfg(unix)]
#[test]
fn links_lead_to_their_files() {
    use std::os::unix::fs::symlink;

    let folder = folder(&[
        (
            "main.mingle",
            "import \"a.mingle\";\nimport \"alias.mingle\";\nimport \"self/a.mingle\";\ntransaction fill(item: ref Item) { item.left = 1; }\n",
        ),
        ("a.mingle", ITEMS),
        ("round.mingle", "import \"one.mingle\";\n"),
        ("back.mingle", "import \"self/back.mingle\";\n"),
    ]);
    let link = |to: &str, name: &str| symlink(to, folder.path().join(name)).expect("a link");
    link("a.mingle", "alias.mingle");
    link(".", "self");
    link("two.mingle", "one.mingle");
    link("one.mingle", "two.mingle");
    let check = |file: &str| mingle(folder.path(), &["check", "--format", "short", file]).stdout;
    assert_eq!(check("main.mingle"), "", "three paths of one file");
    let round = check("round.mingle");
    assert!(round.starts_with("round.mingle:1:8: error[M0701]: \"one.mingle\" cannot"), "{round}");
    assert!(check("back.mingle").contains("\"self/back.mingle\" is imported in a circle"));
}
