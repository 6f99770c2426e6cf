//! `mingle gen`.

use super::{BAD, GOOD, folder, mingle, mingle_with};

/// The generated file, which the tests of `mingle` compile and call.
const GENERATED: &str = include_str!("../../../../mingle/tests/generated/message_groups.rs");

#[test]
fn a_program_becomes_rust() {
    let text = include_str!("../../../../../examples/message_groups.mingle");
    let folder = folder(&[("message_groups.mingle", text)]);
    let run = mingle(folder.path(), &["gen", "rust", "message_groups.mingle"]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    assert_eq!(
        run.stdout, GENERATED,
        "write it again: mingle gen rust examples/message_groups.mingle"
    );
    let piped = mingle_with(folder.path(), &["gen", "rust", "-"], text).stdout;
    assert_eq!(piped.replace("<stdin>", "message_groups.mingle"), GENERATED);
}

#[test]
fn a_program_becomes_clients() {
    let folder = folder(&[("send.mingle", GOOD)]);
    for (language, method) in [
        ("typescript", "  send(to: User, text: string, options?: CallOptions): Promise<void>;\n"),
        ("python", "    def send(self, to: User, text: str, *, options: Options | None = None)"),
        ("go", "Send(ctx context.Context, to User, text string, options ...CallOption) error {\n"),
    ] {
        let run = mingle(folder.path(), &["gen", language, "send.mingle"]);
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{language}");
        let first = run.stdout.lines().next().unwrap_or_default();
        assert!(
            first.ends_with(&format!("from send.mingle by `mingle gen {language}`.")),
            "{first}"
        );
        assert!(run.stdout.contains(method), "{}", run.stdout);
        let piped = mingle_with(folder.path(), &["gen", language, "-"], GOOD).stdout;
        let named = piped.replace("<stdin>", "send.mingle").replace("ackage stdin", "ackage send");
        assert_eq!(named, run.stdout);
    }
}

#[test]
fn a_client_has_its_runtime_or_imports_it() {
    let folder = folder(&[("send.mingle", GOOD)]);
    for (language, import, declared) in [
        ("typescript", "} from \"mingle-client\";\n", "export class Session {"),
        ("python", "from mingle_client import (\n", "class Session:\n"),
        ("go", "import mingleclient \"", "type Session struct {\n"),
    ] {
        let generate = |runtime: &str| {
            mingle(folder.path(), &["gen", language, "--runtime", runtime, "send.mingle"]).stdout
        };
        let (embedded, imported) = (generate("embed"), generate("import"));
        assert_eq!(embedded, mingle(folder.path(), &["gen", language, "send.mingle"]).stdout);
        assert!(embedded.contains(declared) && !embedded.contains(import), "{embedded}");
        assert!(imported.contains(import) && !imported.contains(declared), "{imported}");
        let runtime = mingle(folder.path(), &["gen", &format!("{language}-runtime")]).stdout;
        assert!(runtime.contains(declared), "{runtime}");
    }
}

#[test]
fn a_client_in_go_has_the_package_that_the_caller_names() {
    let folder = folder(&[("send.mingle", GOOD)]);
    let path = "shop.example/internal/mingleclient";
    let words =
        ["gen", "go", "--package", "post", "--runtime", "import", "--module", path, "send.mingle"];
    let run = mingle(folder.path(), &words);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    assert!(run.stdout.contains("\npackage post\n"), "{}", run.stdout);
    assert!(run.stdout.contains(&format!("\nimport mingleclient \"{path}\"\n")), "{}", run.stdout);
    for (words, expected) in [
        (["--package", "func"].as_slice(), "expected a name of a package"),
        (&["--package", "a-b"], "expected a name of a package"),
        (&["--module", "a b", "--runtime", "import"], "expected an import path"),
        (&["--module", path], "--module needs --runtime import"),
    ] {
        let words = [&["gen", "go"], words, &["send.mingle"]].concat();
        let run = mingle(folder.path(), &words);
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""));
        assert!(run.stderr.contains(expected), "{}", run.stderr);
    }
}

#[test]
fn a_program_with_errors_becomes_nothing() {
    let folder = folder(&[("bad.mingle", BAD)]);
    for language in ["rust", "typescript", "python", "go"] {
        let run = mingle(folder.path(), &["gen", language, "bad.mingle"]);
        assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""));
        assert!(run.stderr.contains("bad.mingle:9:8"), "{}", run.stderr);
    }
}
