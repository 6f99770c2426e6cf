//! `mingle repl`, from a pipe.

use std::io::{BufRead, BufReader, Write};

use serde_json::{Value, json};

use super::new::Background;
use super::{folder, mingle, mingle_with};

const GROUPS: &str = include_str!("../../../../../examples/message_groups.mingle");

const TYPED: &str = r#"
        create_user("ana")
        // nothing to answer
        join_group("ana", "rust")
        add_post("rust", "hello")
        User["ana"].unread
        User["nobody"]
        create_usr("bo")
        add_post("rust")
        add_post("rust", 1)
        User["ana"].inbox
        what is this
        set_closed("rust", true)
        add_post("rust", "more")
        check_inbox("ana");
        User["bo"].unread
        exit
        check_inbox("ana")
    "#;

#[test]
fn one_result_a_line_and_errors_do_not_end_it() {
    let folder = folder(&[("groups.mingle", GROUPS)]);
    let run = mingle_with(folder.path(), &["repl", "groups.mingle"], TYPED);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    let answers: Vec<Value> = run
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).expect("each line is JSON"))
        .collect();
    let good = |at: usize| &answers[at];
    assert_eq!(answers.len(), 14, "{}", run.stdout);
    assert_eq!(*good(0), json!("ana"));
    assert_eq!(*good(1), Value::Null);
    assert_eq!(*good(2), json!(1));
    assert_eq!(*good(3), json!(["hello"]));
    assert_eq!(*good(4), Value::Null);
    for answer in &answers[5..=9] {
        let error = &answer["error"];
        assert_eq!(error["code"], "misuse", "{answer}");
        assert!(error["message"].is_string(), "{answer}");
    }
    assert_eq!(*good(10), Value::Null);
    let closed = json!({ "error": { "code": "closed", "message": "the group is closed" } });
    assert_eq!(*good(11), closed);
    assert_eq!(*good(12), json!(["hello"]));
    assert_eq!(*good(13), json!([]));
}

#[test]
fn a_server_that_holds_the_data_answers_in_the_same_words() {
    let (here, there) =
        (folder(&[("groups.mingle", GROUPS)]), folder(&[("groups.mingle", GROUPS)]));
    let mut dev = Background::start(there.path(), &["dev", "--listen", "127.0.0.1:0"]);
    dev.expect("listening on http://");
    let [own, served] =
        [&here, &there].map(|folder| mingle_with(folder.path(), &["repl", "groups.mingle"], TYPED));
    assert_eq!((served.code, served.stderr.as_str()), (Some(0), ""));
    assert_eq!(served.stdout, own.stdout);
    // A server that ends meanwhile is named.
    let mut talk = std::process::Command::new(env!("CARGO_BIN_EXE_mingle"))
        .args(["repl", "groups.mingle"])
        .current_dir(there.path())
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("the command starts");
    let mut stdin = talk.stdin.take().expect("it is piped");
    let mut answers = BufReader::new(talk.stdout.take().expect("it is piped")).lines();
    stdin.write_all(b"User[\"ana\"].unread\n").expect("it reads");
    assert!(answers.next().is_some_and(|line| line.is_ok()));
    drop(dev);
    stdin.write_all(b"check_inbox(\"ana\")\n").expect("it reads");
    let gone = answers.next().expect("it answers").expect("it answers in UTF-8");
    drop(stdin);
    assert!(talk.wait().expect("it ends").success());
    assert!(gone.contains("\"code\":\"store\"") && gone.contains("does not answer"), "{gone}");
}

#[test]
fn fields_of_what_does_not_exist_are_defaults() {
    let program = "store s: causal;\n\
                   object O in s { key id: string; n: int = 7; tags: set<int>; }\n\
                   transaction t(o: ref O) { o.n = 1; o.tags.clear(); }\n";
    let folder = folder(&[("o.mingle", program)]);
    let typed = "O[\"x\"]\nO[\"x\"].n\nO[\"x\"].tags\nO[\"x\"].id\n";
    let run = mingle_with(folder.path(), &["repl", "o.mingle"], typed);
    assert_eq!(run.stdout, "null\n7\n[]\n\"x\"\n", "{}", run.stderr);
}

#[test]
fn help_says_what_the_program_has() {
    let folder = folder(&[("groups.mingle", GROUPS)]);
    let run = mingle_with(folder.path(), &["repl", "groups.mingle"], "help\n");
    let help: Value = serde_json::from_str(&run.stdout).expect("it is JSON");
    let help = help.as_str().expect("it is a string");
    assert!(help.contains("add_post(group: ref Group, post: string) -> int"), "{help}");
    assert!(help.contains("User[name: string]"), "{help}");
}

#[test]
fn a_second_process_is_told_that_the_data_is_in_use() {
    let folder = folder(&[("groups.mingle", GROUPS)]);
    let mut first = std::process::Command::new(env!("CARGO_BIN_EXE_mingle"))
        .args(["repl", "groups.mingle"])
        .current_dir(folder.path())
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("the command starts");
    // The first answer of this process shows that it has opened the data.
    let mut stdin = first.stdin.take().expect("it is piped");
    std::io::Write::write_all(&mut stdin, b"create_user(\"ana\")\n").expect("it reads");
    let stdout = first.stdout.take().expect("it is piped");
    let mut answers = std::io::BufRead::lines(std::io::BufReader::new(stdout));
    answers.next().expect("it answers").expect("it answers in UTF-8");

    let second = mingle(folder.path(), &["show", "groups.mingle", "User", "ana"]);
    drop(stdin);
    first.wait().expect("the first one ends");
    assert_eq!((second.code, second.stdout.as_str()), (Some(4), ""), "{}", second.stderr);
    assert!(second.stderr.contains("in use"), "{}", second.stderr);
    let third = mingle(folder.path(), &["show", "groups.mingle", "User", "ana"]);
    assert_eq!(third.code, Some(0), "{}", third.stderr);
}
