//! Programs of several files.

mod hostile;
mod random;

use std::collections::BTreeMap;

use mingle_lang::diagnostic::{render_human, render_short, to_json};
use mingle_lang::files::{Unreadable, load};
use mingle_lang::format::format;
use mingle_lang::incremental::Incremental;
use mingle_lang::syntax::{Source, lex, parse};
use mingle_lang::{Checked, check, check_source};

/// Reads a program from these files, the first of which is its root.
fn source(files: &[(&str, &str)]) -> Source {
    let map: BTreeMap<&str, &str> = files.iter().copied().collect();
    let mut read = |path: &str| {
        let found = map.get(path).map(|text| (*text).to_owned());
        found.ok_or_else(|| Unreadable("there is no such file".into()))
    };
    load(files[0].0, files[0].1, &mut read)
}

fn checked(files: &[(&str, &str)]) -> Checked {
    check_source(source(files))
}

/// Returns the diagnostics, one on each line.
fn short(files: &[(&str, &str)]) -> String {
    let checked = checked(files);
    let short = render_short(&checked.source, files[0].0, &checked.diagnostics);
    assert_eq!(checked.program.is_some(), !checked.has_errors());
    // An editor sees the same.
    let version = Incremental::default().check_source(source(files));
    assert_eq!(short, render_short(&version.source, files[0].0, &version.diagnostics));
    short
}

fn human(files: &[(&str, &str)]) -> String {
    let checked = checked(files);
    render_human(&checked.source, files[0].0, &checked.diagnostics, false)
}

const ITEMS: &str = "store shop: linearizable;\n\nobject Item in shop {\n    key name: string;\n    left: int;\n}\n";

#[test]
fn names_of_all_files_are_one_namespace() {
    let files = [
        (
            "main.mingle",
            "import \"parts/sales.mingle\";\nstore feed: causal;\nobject Post in feed { key id: string; shown: int; }\n",
        ),
        (
            "parts/sales.mingle",
            "import \"../items.mingle\";\ntransaction sell(item: ref Item, post: ref Post) {\n    item.left -= 1;\n    post.shown = item.left;\n}\n",
        ),
        ("items.mingle", ITEMS),
    ];
    assert_eq!(short(&files), "");
    let program = checked(&files).program.expect("it is right");
    let expected = files[2].1.to_owned()
        + files[1].1.split_once('\n').expect("an import").1
        + files[0].1.split_once('\n').expect("an import").1;
    assert_eq!(&*program.text, expected, "each file stands after those that it imports");
    let stores: Vec<_> = program.checked.stores.iter().map(|store| &*store.name).collect();
    assert_eq!(stores, ["shop", "feed"]);
}

#[test]
fn a_file_that_is_imported_twice_counts_once() {
    let files = [
        (
            "main.mingle",
            "import \"a.mingle\";\nimport \"./b.mingle\";\nimport \"x/../a.mingle\";\n",
        ),
        (
            "a.mingle",
            "import \"items.mingle\";\ntransaction one(item: ref Item) { item.left = 1; }\n",
        ),
        (
            "b.mingle",
            "import \"items.mingle\";\ntransaction two(item: ref Item) { item.left = 2; }\n",
        ),
        ("items.mingle", ITEMS),
    ];
    assert_eq!(short(&files), "");
    let source = source(&files);
    let names: Vec<_> = source.files.iter().map(|file| &*file.name).collect();
    assert_eq!(names, ["items.mingle", "a.mingle", "b.mingle", "main.mingle"]);
}

#[test]
fn a_circle_is_refused_with_its_files() {
    let files = [
        ("main.mingle", "import \"a.mingle\";\n"),
        ("a.mingle", "import \"b.mingle\";\n"),
        (
            "b.mingle",
            "// the way back\nimport \"a.mingle\";\nimport \"main.mingle\";\nimport \"b.mingle\";\n",
        ),
    ];
    let said = human(&files);
    for chain in [
        "a.mingle imports b.mingle imports a.mingle",
        "main.mingle imports a.mingle imports b.mingle imports main.mingle",
        "b.mingle imports b.mingle",
    ] {
        assert!(said.contains(&format!("note: {chain}\n")), "{said}");
    }
    assert_eq!(
        short(&files),
        "b.mingle:2:8: error[M0701]: \"a.mingle\" is imported in a circle\n\
         b.mingle:3:8: error[M0701]: \"main.mingle\" is imported in a circle\n\
         b.mingle:4:8: error[M0701]: \"b.mingle\" is imported in a circle\n"
    );
}

#[test]
fn a_mistake_is_shown_in_its_file_and_line() {
    let files = [
        (
            "app/main.mingle",
            "import \"items.mingle\";\n\ntransaction sell(item: ref Item, how: int) {\n    item.lft -= 1;\n}\n\nobject Item in shop {\n    key name: string;\n}\n",
        ),
        (
            "app/items.mingle",
            "\u{feff}store shop: linearizable;\r\nobject Item in shop {\r\n    key name: string;\r\n    left: int;\r\n}\r\nfn f() -> int { \"1\" }",
        ),
    ];
    insta::assert_snapshot!("mistakes_across_files", human(&files));
    assert!(short(&files).starts_with("app/items.mingle:6:17: error[M0201]"), "{}", short(&files));
    let checked = checked(&files);
    let json = to_json(&checked.source, "app/main.mingle", &checked.diagnostics, &[]);
    let twice = json["diagnostics"].as_array().expect("a list").iter();
    let twice = twice.into_iter().find(|found| found["code"] == "M0102").expect("it is there");
    assert_eq!((&twice["file"], &twice["start"]["line"]), (&"app/main.mingle".into(), &7.into()));
    let first = &twice["labels"][1];
    assert_eq!((&first["file"], &first["start"]["line"]), (&"app/items.mingle".into(), &2.into()));
}

#[test]
fn the_path_of_a_flow_leads_through_its_files() {
    let files = [
        (
            "main.mingle",
            "import \"data.mingle\";\nimport \"rate.mingle\";\n\ntransaction pay(page: ref Page, account: ref Account) {\n    account.sum = rated(page.visits);\n}\n",
        ),
        (
            "data.mingle",
            "store bank: linearizable;\nstore pages: causal;\nobject Account in bank { key id: string; sum: int; }\nobject Page in pages { key id: string; visits: int; }\n",
        ),
        (
            "rate.mingle",
            "fn rated(visits: int) -> int {\n    let rate = visits * 2;\n    rate\n}\n",
        ),
    ];
    insta::assert_snapshot!("a_flow_across_files", human(&files));
    let checked = checked(&files);
    let json = to_json(&checked.source, "main.mingle", &checked.diagnostics, &[]).to_string();
    assert!(json.contains("\"M0301\"") && json.contains("\"file\":\"main.mingle\""), "{json}");
}

#[test]
fn a_missing_file_hides_no_other_mistake_and_causes_none() {
    let files = [(
        "main.mingle",
        "import \"gone.mingle\";\nstore s: causal;\ntransaction t(item: ref Item) -> int { return \"1\"; }\n",
    )];
    assert_eq!(
        short(&files),
        "main.mingle:1:8: error[M0701]: \"gone.mingle\" cannot be imported: there is no such file\n\
         main.mingle:3:47: error[M0201]: expected `int`, found `string`\n"
    );
}

#[test]
fn a_broken_file_breaks_no_other() {
    let files = [
        ("main.mingle", "import \"a.mingle\";\nstore s: ;\n"),
        ("a.mingle", "object O in s { key id: string; n: int; /* no end\n"),
    ];
    let said = short(&files);
    assert!(said.contains("main.mingle:2:10: error[M0001]: expected the store's level"), "{said}");
    assert!(said.lines().all(|line| line.contains("M0001")), "{said}");
}

#[test]
fn imports_stand_at_the_head() {
    for (text, expected) in [
        (
            "store s: causal;\nimport \"a.mingle\";\n",
            "2:1: error[M0001]: an import stands after an item",
        ),
        (
            "import a;\n",
            "1:8: error[M0001]: expected the path of a file in double quotes, found `a`",
        ),
        (
            "import \"a.mingle\"\nstore s: causal;\n",
            "1:8: error[M0001]: expected `;` after the path, found `store`",
        ),
        ("import 'a.mingle';\n", "1:8: error[M0001]: "),
        (
            "import \"a.mingle\" as a;\n",
            "1:19: error[M0001]: expected `;` after the path, found `as`",
        ),
    ] {
        let said = short(&[("main.mingle", text), ("a.mingle", "")]);
        assert!(said.starts_with(&format!("main.mingle:{expected}")), "{text}: {said}");
        assert_eq!(said.lines().count(), 1, "{text}: {said}");
    }
    let said = render_short(&lex(""), "x", &check("import \"a.mingle\";").diagnostics);
    assert!(said.contains("the program came as one text, without files"), "{said}");
}

#[test]
fn import_stays_a_name() {
    let text = "store s: causal;\nobject O in s { key import: string; }\ntransaction t(import: ref O) { import.delete(); }\n";
    assert_eq!(check(text).diagnostics, []);
}

#[test]
fn imports_are_laid_out_in_their_order() {
    let text = "// head\nimport  \"b.mingle\" ; // near\n\n\nimport \"a.mingle\";store s:causal;\n";
    let source = lex(text);
    let (tree, mistakes) = parse(&source);
    assert_eq!(mistakes, []);
    let expected =
        "// head\nimport \"b.mingle\"; // near\n\nimport \"a.mingle\";\n\nstore s: causal;\n";
    assert_eq!(format(&source, &tree), expected);
    let source = lex("import \"a.mingle\"; // all\n// end");
    assert_eq!(format(&source, &parse(&source).0), "import \"a.mingle\"; // all\n\n// end\n");
}

#[test]
fn the_joined_text_depends_on_contents_alone() {
    let (root, rest) =
        ("import \"i.mingle\";\n", "transaction t(item: ref Item) { item.left = 1; }\n");
    let whole = format!("{ITEMS}{rest}");
    let joined = |files: &[(&str, &str)]| source(files).joined_text();
    let main = format!("{root}{rest}");
    assert_eq!(joined(&[("main.mingle", &main), ("i.mingle", ITEMS)]), whole);
    assert_eq!(joined(&[("/far/away/x.mingle", &main), ("/far/away/i.mingle", ITEMS)]), whole);
    // A comment at the end of a file documents nothing in the next one, and a file may lack a last
    // line end or begin with a byte order mark.
    let odd = format!("\u{feff}import \"i.mingle\"; // all\r\n{rest}");
    let items = format!("{ITEMS}/// the end");
    let joined = joined(&[("main.mingle", &odd), ("i.mingle", &items)]);
    assert_eq!(
        joined,
        format!("{ITEMS}// the end\n // all\r\n{rest}").replace("// the end", "//  the end")
    );
    assert_eq!(check(joined).syntax.items[2].docs, "");
}
