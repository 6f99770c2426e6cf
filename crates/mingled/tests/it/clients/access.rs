//! Users, rights and the audit log.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use mingled::access::{Audit, User, Users};
use mingled::commands::{all, find};

use super::{Raw, Started};

const USERS: &str = "
# the application
user app on >secret ~app:* %R~shared:* +@all -@admin -@dangerous +client|setname
user reader on >eyes %R~* +@read +acl|whoami
user writer on >hands %W~app:* +set +sinterstore %R~src:*
user away off >gone ~* +@all
user operator on >root ~* +@all
";

struct Guarded {
    started: Started,
    folder: tempfile::TempDir,
}

fn guarded(users: &str) -> Guarded {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("users.acl");
    fs::write(&file, users).expect("room");
    let audit = Audit::open(&folder.path().join("audit.log")).expect("room");
    let users = Users::open(file).expect("users");
    let started = Started::with(|settings| {
        settings.users = Some(Arc::new(users));
        settings.audit = Arc::new(audit);
    });
    Guarded { started, folder }
}

impl Guarded {
    fn client(&self, user: &str, password: &str) -> Raw {
        let mut client = self.started.client();
        assert_eq!(client.ask(&format!("AUTH {user} {password}")), "+OK");
        client
    }

    fn lines(&self) -> Vec<serde_json::Value> {
        let text = fs::read_to_string(self.folder.path().join("audit.log")).expect("the log");
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }
}

#[test]
fn nothing_runs_before_a_password() {
    let guarded = guarded(USERS);
    let mut client = guarded.started.client();
    client.expect(
        "
        GET a => -NOAUTH Authentication required.
        MULTI => -NOAUTH Authentication required.
        ACL WHOAMI => -NOAUTH Authentication required.
        AUTH secret => -WRONGPASS invalid username-password pair or user is disabled.
        AUTH app guess => -WRONGPASS invalid username-password pair or user is disabled.
        AUTH away gone => -WRONGPASS invalid username-password pair or user is disabled.
        AUTH app secret => +OK
        ACL WHOAMI => -NOPERM User app has no permissions to run the 'acl' command
        GET app:1 => nil
        RESET => +RESET
        GET app:1 => -NOAUTH Authentication required.
        ",
    );
    // Many requests that come together are refused one by one, and so are those of a transaction.
    let mut pipelined = guarded.started.client();
    pipelined.send("SET app:1 a\r\nGET app:1\r\nAUTH app secret\r\nSET app:1 b\r\nGET app:1\r\n");
    let replies: Vec<String> = (0..5).map(|_| super::shown(&pipelined.reply())).collect();
    assert!(replies[..2].iter().all(|reply| reply.starts_with("-NOAUTH")), "{replies:?}");
    assert_eq!(replies[2..], ["+OK", "+OK", "\"b\""]);

    // HELLO with a password; without one it tells how.
    let mut client = guarded.started.client();
    assert!(client.ask("HELLO 3").starts_with("-NOAUTH HELLO must be called"));
    assert!(client.ask("HELLO 2 AUTH app wrong").starts_with("-WRONGPASS"));
    assert!(client.ask("HELLO 2 AUTH app secret").contains("mingled"));
    assert_eq!(client.ask("GET app:1"), "\"b\"");
}

#[test]
fn wrong_passwords_close_the_connection() {
    let guarded = guarded(USERS);
    let mut client = guarded.started.client();
    for _ in 0..5 {
        assert!(client.ask("AUTH app guess").starts_with("-WRONGPASS"));
    }
    assert_eq!(client.next(), None);
    // Requests before a password are small.
    let mut client = guarded.started.client();
    let reply = super::shown(&client.call(&["GET".to_owned(), "x".repeat(1 << 20)]));
    assert!(reply.contains("16384"), "{reply}");
    let mut client = guarded.client("app", "secret");
    let long = "x".repeat(1 << 20);
    assert_eq!(super::shown(&client.call(&["SET", "app:long", &long])), "+OK");
}

#[test]
fn a_user_does_what_its_rules_allow() {
    let guarded = guarded(USERS);
    let no_key = "-NOPERM No permissions to access a key";
    let no = |user: &str, command: &str| {
        format!("-NOPERM User {user} has no permissions to run the '{command}' command")
    };
    guarded.client("app", "secret").expect(&format!(
        "
        SET app:a 1 => +OK
        SET other 1 => {no_key}
        MSET app:b 1 other 2 => {no_key}
        GET shared:a => nil
        SET shared:a 1 => {no_key}
        INCR shared:a => {no_key}
        CLIENT SETNAME me => +OK
        CLIENT LIST => {}
        FLUSHALL => {}
        FENCE d0 => {}
        KEYS * => {}
        MULTI => +OK
        SET app:b 1 => +QUEUED
        SET other 1 => {no_key}
        EXEC => -EXECABORT Transaction discarded because of previous errors.
        GET app:b => nil
        BEGIN => +OK
        SET other 1 => {no_key}
        SET app:b 2 => +OK
        COMMIT => +OK
        GET app:b => \"2\"
        WATCH other => {no_key}
        ",
        no("app", "client|list"),
        no("app", "flushall"),
        no("app", "fence"),
        no("app", "keys"),
    ));
    guarded.client("reader", "eyes").expect(&format!(
        "
        ACL WHOAMI => \"reader\"
        ACL LIST => {}
        GET app:b => \"2\"
        SET app:b 3 => {}
        ",
        no("reader", "acl|list"),
        no("reader", "set"),
    ));
    guarded.client("writer", "hands").expect(&format!(
        "
        SET app:c 1 => +OK
        SET app:c 1 GET => {no_key}
        SINTERSTORE app:d src:a src:b => :0
        SINTERSTORE app:d app:a src:b => {no_key}
        SINTERSTORE src:d src:a src:b => {no_key}
        "
    ));
}

#[test]
fn users_change_while_clients_are_connected() {
    let guarded = guarded(USERS);
    let mut app = guarded.client("app", "secret");
    let mut reader = guarded.client("reader", "eyes");
    let mut operator = guarded.client("operator", "root");
    let file = guarded.folder.path().join("users.acl");
    fs::write(&file, "user app on >secret ~* +@everything").expect("room");
    let reply = operator.ask("ACL LOAD");
    assert!(
        reply.contains("users.acl:1: the user app: found the category 'everything'"),
        "{reply}"
    );
    assert!(reply.contains("nothing was changed"), "{reply}");
    assert_eq!(app.ask("SET app:a 1"), "+OK");

    fs::write(&file, USERS.replace("~app:*", "~new:*")).expect("room");
    operator.expect("ACL LOAD => +OK");
    assert_eq!(reader.ask("GET app:a"), "\"1\"", "a connection of an unchanged user goes on");
    assert_eq!(app.ask("SET app:a 2"), "-NOAUTH the user app was changed: connect again");
    assert_eq!(app.next(), None);
    let mut app = guarded.client("app", "secret");
    assert_eq!(app.ask("SET new:a 1"), "+OK");
    assert_eq!(reader.ask("GET app:a"), "\"1\"");
}

#[test]
fn what_was_denied_is_shown_and_kept() {
    let guarded = guarded(USERS);
    let mut app = guarded.client("app", "secret");
    for _ in 0..3 {
        app.ask("GET other");
    }
    app.ask("AUTH app guess");
    app.ask("FLUSHALL");
    let mut operator = guarded.client("operator", "root");
    let log = operator.ask("ACL LOG");
    for part in
        ["\"reason\", \"key\", ", "\"object\", \"other\"", "\"count\", :3", "\"auth\"", "flushall"]
    {
        assert!(log.contains(part), "{part} in {log}");
    }
    let server = guarded.started.server.as_ref().expect("it runs");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let page = mingled::server::StatusPage::start(server, listener).expect("it starts");
    let (_, figures) = super::status::get(page.address(), "/metrics");
    for line in [
        "mingled_wrong_passwords_total 1",
        "mingled_denied_requests_total 4",
        "mingled_audit_failures_total 0",
    ] {
        assert!(figures.lines().any(|it| it == line), "{line} is missing in:\n{figures}");
    }
    drop(page);
    operator.ask("FLUSHALL");
    operator.expect("ACL LOG RESET => +OK\nACL LOG => []");
    let lines = guarded.lines();
    let has = |event: &str, user: &str, what: &str| {
        lines.iter().any(|it| it["event"] == event && it["user"] == user && it["what"] == what)
    };
    assert!(has("signed-in", "app", "AUTH"), "{lines:?}");
    assert!(has("refused", "app", "auth AUTH"), "{lines:?}");
    assert!(has("denied", "app", "key other"), "{lines:?}");
    assert!(has("denied", "app", "command flushall"), "{lines:?}");
    assert!(has("ran", "operator", "FLUSHALL"), "{lines:?}");
    let text = fs::read_to_string(guarded.folder.path().join("audit.log")).expect("the log");
    assert!(!text.contains("guess") && !text.contains("secret"), "{text}");
    assert!(operator.ask("INFO stats").contains("audit_log_failures:0"));
}

#[test]
fn acl_answers() {
    let guarded = guarded(USERS);
    let mut operator = guarded.client("operator", "root");
    operator.expect(
        "
        ACL WHOAMI => \"operator\"
        ACL USERS => [\"app\", \"away\", \"operator\", \"reader\", \"writer\"]
        ACL GETUSER missing => nil
        ACL DRYRUN app GET other => \"No permissions to access a key\"
        ACL DRYRUN app GET app:a => +OK
        ACL DRYRUN app FENCE d0 => \"User app has no permissions to run the \\'fence\\' command\"
        ACL DRYRUN missing GET a => -ERR User 'missing' not found
        ACL SETUSER app on => -ERR users are kept in a file: change it, then call ACL LOAD
        ACL CAT nothing => -ERR Unknown category 'nothing'
        ",
    );
    let list = operator.ask("ACL LIST");
    assert!(
        list.contains(
            "user app on #2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"
        )
    );
    assert!(!list.contains("secret"), "{list}");
    assert!(operator.ask("ACL CAT admin").contains("\"fence\""));
    let passwords =
        [operator.ask("ACL GENPASS"), operator.ask("ACL GENPASS"), operator.ask("ACL GENPASS 5")];
    assert_eq!(passwords.each_ref().map(|it| it.len() - 2), [64, 64, 2]);
    assert_ne!(passwords[0], passwords[1]);
    assert!(operator.ask("CLIENT INFO").contains("user=operator"));

    // A server without users.
    let started = Started::new();
    let mut client = started.client();
    client.expect(
        "
        ACL WHOAMI => \"default\"
        ACL LIST => [\"user default on nopass ~* +@all\"]
        ACL LOAD => -ERR this server has no file of users: start it with one
        ",
    );
    assert!(client.ask("AUTH a").starts_with("-ERR AUTH called without any password"));
}

/// A user as it is shown has the rights of the one that was given.
#[test]
fn shown_rules_are_the_given_ones() {
    let categories = mingled::access::CATEGORIES.map(|name| format!("-{name}"));
    let rules = [
        "on nopass allkeys allcommands",
        "off resetkeys %R~a* %W~b* %RW~c* nocommands +get +set -get +client|list",
        "on #2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b ~* +@all -@write +set -client|list",
        "on >a >b <a allkeys +@all -@admin -@dangerous -eval +xadd",
    ];
    let rules =
        rules.map(str::to_owned).into_iter().chain([format!("+@all {}", categories.join(" "))]);
    for rules in rules {
        let user = User::from_rules("u", &rules).unwrap_or_else(|why| panic!("{rules}: {why}"));
        let line = user.line();
        let again = User::from_rules("u", line.strip_prefix("user u ").expect("its name"));
        assert_eq!(again.as_ref().map(User::line), Ok(line.clone()), "{rules}");
        let again = again.expect("a user");
        for command in all() {
            let args = [command.name.into(), "a1".into(), "list".into()].map(bytes);
            assert_eq!(
                user.check(command, &args),
                again.check(command, &args),
                "{rules}: {}",
                command.name
            );
        }
    }
    // Every command is in some category, so the last one may run what is free only.
    let none =
        User::from_rules("u", &format!("on ~* +@all {}", categories.join(" "))).expect("rules");
    let may: Vec<&str> = all()
        .filter(|it| none.check(it, &[it.name.into()].map(bytes)).is_ok())
        .map(|it| it.name)
        .collect();
    assert_eq!(may, ["auth", "hello", "quit", "reset"]);
    assert!(find(b"acl").is_some());
}

fn bytes(text: String) -> mingled::resp::Bytes {
    text.as_bytes().into()
}

#[test]
fn a_wrong_file_is_refused_with_its_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("users.acl");
    let refused = |text: &str| {
        fs::write(&file, text).expect("room");
        Users::open(file.clone()).expect_err("a wrong file").to_string()
    };
    for (text, expected) in [
        ("", "has no users"),
        ("# only\n\n", "has no users"),
        ("user a on\nadmin b on", "users.acl:2: found a line that does not begin with `user NAME`"),
        ("user a on\n\nuser a off", "users.acl:3: the user a has two lines"),
        ("user a on maybe", "found the rule 'maybe', expected on, off"),
        ("user a +frobnicate", "found the command 'frobnicate', which does not exist"),
        ("user a #12", "a password hash is wrong, expected 64 hexadecimal digits"),
        ("user a %X~a", "found the rule '%X~a'"),
        ("user a (+get)", "make two users"),
        ("user a <secret", "takes away a password that the user does not have"),
        ("user", "does not begin with `user NAME`"),
    ] {
        let error = refused(text);
        assert!(error.contains(expected), "{text:?}: {error}");
        assert!(!error.contains("secret"), "{error}");
    }
    let missing = Users::open(Path::new("/nothing/users.acl").into()).expect_err("no file");
    assert!(missing.to_string().starts_with("/nothing/users.acl cannot be read"), "{missing}");
}

#[test]
fn a_library_signs_in() {
    let guarded = guarded(USERS);
    let address = guarded.started.address();
    for protocol in ["resp2", "resp3"] {
        let connect = |user: &str| {
            let url = format!("redis://{user}@{address}/?protocol={protocol}");
            redis::Client::open(url).expect("an address").get_connection()
        };
        let mut connection = connect("app:secret").expect("a right password");
        let found: String = redis::pipe()
            .set("app:a", protocol)
            .ignore()
            .get("app:a")
            .query::<Vec<String>>(&mut connection)
            .expect("its own items")
            .concat();
        assert_eq!(found, protocol);
        let refused = redis::cmd("GET").arg("other").query::<Option<String>>(&mut connection);
        let refused = refused.expect_err("another item");
        assert_eq!(refused.code(), Some("NOPERM"), "{refused}");
        assert!(connect("app:guess").is_err());
    }
}

#[test]
fn the_right_to_stores_of_programs_is_a_rule_of_its_own() {
    let guarded = guarded(
        "
user operator on >root ~* +@all
user shop on >a ~vault ~wall %R~feed +mingle
user halves on >a %R~feed %W~feed +mingle
user cache on >a ~* +@all -mingle
user every on >a ~* +@read +@write +@admin +@connection +@fast +@slow
user plain on >a ~* +@all -@all
",
    );
    let none = r#""User NAME has no permissions to run the \'mingle\' command""#;
    let no_store = "\"No permissions to access a key\"";
    let none_for = |user: &str| none.replace("NAME", user);
    guarded.client("operator", "root").expect(&format!(
        "
        ACL DRYRUN operator mingle vault anything => +OK
        ACL DRYRUN shop mingle vault wall => +OK
        ACL DRYRUN shop MINGLE => +OK
        ACL DRYRUN shop mingle vault feed => {no_store}
        ACL DRYRUN halves mingle feed => +OK
        ACL DRYRUN cache mingle vault => {}
        ACL DRYRUN every mingle vault => {}
        ACL DRYRUN plain mingle vault => {}
        MINGLE vault => -ERR unknown command 'MINGLE', with args beginning with: 'vault'
        ",
        none_for("cache"),
        none_for("every"),
        none_for("plain"),
    ));
    let line = guarded.client("operator", "root").ask("ACL LIST");
    assert!(line.contains("~vault ~wall %R~feed -@all +mingle"), "{line}");
    let error = User::from_rules("app", "+mingle|vault").expect_err("it has no parts");
    assert!(error.contains("found the command 'mingle', which does not exist"), "{error}");
}
