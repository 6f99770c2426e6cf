//! Programs that sign in, with and without encryption.

use std::fs;
use std::io::Write as _;
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use mingle::{Binding, Database, Error, Judgement, OpenError, Session};
use mingle_model::{Level, Value};
use mingle_runtime::TokioWorld;
use mingle_store::conformance::schema::{NUMBER, at, store_schema};
use mingle_store::conformance::{self, Factory};
use mingle_store::{BoxFuture, Commit, DataStore, Read, StoreError, StoreSchema, Write};
use mingle_store_mingled::wire::{Welcome, framed};
use mingle_store_mingled::{Cluster, Credentials, MingledConfig, Password, TlsConfig};
use mingled::access::{Audit, Tls, TlsFiles, Users};
use mingled::stores::ProgramSettings;
use serde_json::{Value as Json, json};
use tempfile::TempDir;

use super::block_on;
use super::conformance::Place;
use super::programs::{RUNTIME, TEXT};
use crate::clients::tls::Authority;

const USERS: &str = "
user shop on >secret ~vault ~wall +mingle
user half on >half ~vault +@all
user reader on >eyes %R~* +mingle
user cache on >secret ~* +@all -mingle
user away off >gone ~* +@all
";

/// The time after which a condition that must come is missed.
const PATIENCE: Duration = Duration::from_mins(1);

/// A data center with users, certificates, or both.
struct Guarded {
    place: Place,
    folder: TempDir,
    users: Option<Arc<Users>>,
    audit: Arc<Audit>,
    authority: Authority,
}

/// Starts a data center with these users; with TLS if `client_ca` says whether certificates of programs are needed.
fn guarded(users: Option<&str>, client_ca: Option<bool>) -> Guarded {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let audit = Arc::new(Audit::open(&path("audit.log")).expect("room"));
    let users = users.map(|users| {
        fs::write(path("users.acl"), users).expect("room");
        Arc::new(Users::open(path("users.acl")).expect("users"))
    });
    let authority = Authority::new();
    fs::write(path("ca.pem"), authority.pem()).expect("room");
    authority.issue(folder.path(), "server", "localhost");
    let tls = client_ca.map(|client_ca| {
        let files = TlsFiles {
            certificate: path("server.pem"),
            key: path("server.key"),
            client_ca: client_ca.then(|| path("ca.pem")),
        };
        Arc::new(Tls::open(files).expect("the files fit"))
    });
    let place = Place::guarded(ProgramSettings {
        users: users.clone(),
        tls,
        audit: audit.clone(),
        ..ProgramSettings::default()
    });
    Guarded { place, folder, users, audit, authority }
}

impl Guarded {
    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns a binding of the program with these keys.
    fn binding(&self, keys: &str) -> Binding {
        binding(&self.place.address().to_string(), keys).expect("a binding")
    }

    /// Returns the keys of TLS with the right authority.
    fn tls(&self) -> String {
        let roots = self.path("ca.pem");
        let roots = roots.display();
        format!("tls = true\nserver_name = \"localhost\"\nroot_certificates = \"{roots}\"\n")
    }

    /// Opens the program, and returns the error.
    async fn refusal(&self, keys: &str) -> String {
        let opened = open(&self.binding(keys)).await.map(|_| ());
        let error = opened.expect_err(keys);
        assert!(error.is_misconfiguration() && !error.is_unavailable(), "{error}");
        let error = error.to_string();
        assert!(!error.contains("secret"), "{error}");
        error
    }

    /// Writes other users, which count at once.
    fn change(&self, users: &str) {
        fs::write(self.path("users.acl"), users).expect("room");
        self.users.as_ref().expect("it has users").reload().expect("they are right");
    }
}

fn binding(address: &str, keys: &str) -> Result<Binding, String> {
    let store =
        |name| format!("[stores.{name}]\nengine = \"mingled\"\naddress = \"{address}\"\n{keys}\n");
    let runtime = format!("{RUNTIME}deadline = \"2s\"\n");
    let text = [runtime, store("vault"), store("wall")].concat();
    Binding::parse(&text).map_err(|error| error.to_string())
}

async fn open(binding: &Binding) -> Result<Database, OpenError> {
    let program = mingle::compile(TEXT).expect("the program compiles");
    Database::open(program, binding, None).await
}

async fn call(database: &Database, name: &str, arguments: &[(&str, &str)]) -> Result<Json, Error> {
    let arguments = database.arguments(name, arguments.iter().copied()).expect("they fit");
    let report = database.call(name, arguments, Session::default()).await?;
    Ok(database.result_json(name, &report))
}

/// Writes and reads.
async fn use_it(database: &Database, value: &str) {
    let filled = call(database, "fill", &[("box", "tea"), ("value", value)]).await;
    assert_eq!(filled, Ok(json!(null)));
    let number: i64 = value.parse().expect("a number");
    assert_eq!(call(database, "left", &[("box", "tea")]).await, Ok(json!(number)));
}

fn keys(user: &str, password: &str) -> String {
    format!("user = \"{user}\"\npassword = \"{password}\"")
}

#[test]
fn a_program_signs_in_and_has_the_stores_of_its_user() {
    let guarded = guarded(Some(USERS), None);
    block_on(async {
        let database = open(&guarded.binding(&keys("shop", "secret"))).await.expect("it opens");
        use_it(&database, "3").await;
        for (keys, expected) in [
            (String::new(), "it needs a user and a password (NOAUTH): set user and password in"),
            (
                keys("shop", "guess"),
                "the user or the password is wrong, or the user is off (WRONGPASS)",
            ),
            (keys("nobody", "secret"), "(WRONGPASS)"),
            (keys("away", "gone"), "(WRONGPASS)"),
            (keys("cache", "secret"), "the user cache may have no stores (NOPERM): add +mingle"),
            (keys("half", "half"), "the user half may not have the store wall (NOPERM): add ~wall"),
            (keys("reader", "eyes"), "the user reader may not have the store vault (NOPERM)"),
        ] {
            let error = guarded.refusal(&keys).await;
            let start = format!("the data center at {} refuses: ", guarded.place.address());
            assert!(error.starts_with(&start) && error.contains(expected), "{error}");
        }
        // The stores are open already: a user without rights does not get them from others.
        assert_eq!(call(&database, "left", &[("box", "tea")]).await, Ok(json!(3)));
    });
    assert_eq!((guarded.audit.wrong_passwords(), guarded.audit.denied()), (3, 3));
    let denials: Vec<_> = guarded.audit.denials(10).into_iter().rev().collect();
    let found: Vec<_> = denials.iter().map(|it| (it.reason, &*it.object, &*it.user)).collect();
    let expected = [
        ("auth", "mingle", "shop"),
        ("auth", "mingle", "nobody"),
        ("auth", "mingle", "away"),
        ("command", "mingle", "cache"),
        ("key", "wall", "half"),
        ("key", "vault", "reader"),
    ];
    assert_eq!(found, expected);
    let log = fs::read_to_string(guarded.path("audit.log")).expect("the log");
    assert!(log.contains("\"event\":\"signed-in\"") && log.contains("\"user\":\"shop\""), "{log}");
    for password in ["secret", "guess", "gone", "eyes"] {
        assert!(!log.contains(password), "{log}");
    }
    guarded.place.stop();
}

#[test]
fn a_default_user_needs_no_password_and_a_server_without_users_takes_none() {
    let open_to_all = guarded(Some("user default on nopass ~vault ~wall +mingle"), None);
    let without = guarded(None, None);
    block_on(async {
        use_it(&open(&open_to_all.binding("")).await.expect("it opens"), "1").await;
        use_it(&open(&without.binding("")).await.expect("it opens"), "1").await;
        let error = without.refusal(&keys("shop", "secret")).await;
        assert!(
            error.contains("it has no users: take user and password out of the binding"),
            "{error}"
        );
    });
    open_to_all.place.stop();
    without.place.stop();
}

#[test]
fn a_user_that_changes_signs_in_again() {
    let guarded = guarded(Some(USERS), None);
    let password = guarded.path("password");
    fs::write(&password, "secret\n").expect("room");
    let keys = format!("user = \"shop\"\npassword_file = {password:?}");
    block_on(async {
        let database = open(&guarded.binding(&keys)).await.expect("it opens");
        use_it(&database, "1").await;
        // Others change: nothing ends.
        guarded.change(&USERS.replace(">half", ">other"));
        use_it(&database, "2").await;
        // A new password, which the program's file has as well: the calls go on.
        guarded.change(&USERS.replace("shop on >secret", "shop on >changed"));
        fs::write(&password, "changed\n").expect("room");
        use_it(&database, "3").await;
        // One that the file does not have.
        guarded.change(&USERS.replace("shop on >secret", "shop on >third"));
        let error = call(&database, "left", &[("box", "tea")]).await.expect_err("it is refused");
        assert!(error.to_string().contains("(WRONGPASS)"), "{error}");
        fs::write(&password, "third").expect("room");
        let begin = Instant::now();
        // The store counts as away for a while.
        while call(&database, "left", &[("box", "tea")]).await != Ok(json!(3)) {
            assert!(begin.elapsed() < PATIENCE, "it does not come back");
        }
        // A right is taken away.
        guarded.change(&USERS.replace("shop on >secret ~vault ~wall", "shop on >third ~vault"));
        let error = call(&database, "left", &[("box", "tea")]).await.expect_err("it is refused");
        assert!(error.to_string().contains("may not have the store wall"), "{error}");
    });
    guarded.place.stop();
}

/// Opens the store of the suite with credentials.
async fn store(guarded: &Guarded, password: Password) -> Arc<dyn DataStore> {
    let config = MingledConfig {
        credentials: Some(Credentials::new("suite", password)),
        ..MingledConfig::at(guarded.place.address().to_string())
    };
    let schema = store_schema(Level::Causal);
    let (name, world) = (schema.store.clone(), Arc::new(TokioWorld::new()));
    let cluster = Cluster::open(config, &[schema], world).await;
    let cluster = cluster.unwrap_or_else(|error| panic!("{error}"));
    cluster.store(&name).expect("it was opened")
}

#[test]
fn a_transaction_ends_with_the_change_of_its_user() {
    let users = "user suite on >secret ~* +@all";
    let guarded = guarded(Some(users), None);
    let password = guarded.path("password");
    fs::write(&password, "secret").expect("room");
    block_on(async {
        let store = store(&guarded, Password::File(password.clone())).await;
        let (session, reads) =
            (mingle_store::Session::default(), [Read::Register(at("x", NUMBER))]);
        let mut begun = store.begin(&session).await.expect("it serves");
        let before = begun.read(&reads).await.expect("it answers");
        guarded.change(&users.replace(">secret", ">changed"));
        fs::write(&password, "changed").expect("room");
        let write = Write::Assign(at("x", NUMBER), Value::Int(1));
        let commit = Commit { writes: vec![write], ..Commit::default() };
        let refused = begun.commit(commit).await;
        let Err(StoreError::Unavailable { reason, .. }) = &refused else { panic!("{refused:?}") };
        assert!(reason.contains("the user of the binding was changed"), "{reason}");
        // The next one signs in with the new password, and finds nothing of the one that ended.
        let mut begun = store.begin(&session).await.expect("it serves");
        let answers = begun.read(&reads).await.expect("it answers");
        assert_eq!(answers[0].data, before[0].data);
    });
    guarded.place.stop();
}

#[test]
fn connections_are_encrypted_and_both_ends_are_checked() {
    let guarded = guarded(Some(USERS), Some(false));
    let (sign_in, roots) = (keys("shop", "secret"), guarded.path("ca.pem"));
    let stranger = Authority::new();
    fs::write(guarded.path("stranger.pem"), stranger.pem()).expect("room");
    let other = guarded.path("stranger.pem");
    block_on(async {
        let database =
            open(&guarded.binding(&format!("{}{sign_in}", guarded.tls()))).await.expect("it opens");
        use_it(&database, "3").await;
        let plain = guarded.refusal(&sign_in).await;
        assert!(plain.contains("it accepts only TLS: set tls = true in the binding"), "{plain}");
        let start =
            format!("no trusted connection to the data center at {}: ", guarded.place.address());
        for (keys, expected) in [
            (
                format!("tls = true\nserver_name = \"localhost\"\nroot_certificates = {other:?}\n"),
                "its certificate is by no known authority: name a file",
            ),
            (
                format!("tls = true\nroot_certificates = {roots:?}\n"),
                "its certificate has another name",
            ),
            (
                format!("tls = true\nserver_name = \"elsewhere\"\nroot_certificates = {roots:?}\n"),
                "set server_name to a name that the certificate has",
            ),
        ] {
            let error = guarded.refusal(&format!("{keys}{sign_in}")).await;
            assert!(error.starts_with(&start) && error.contains(expected), "{error}");
        }
        // Another certificate, by a new authority: those that know it connect.
        stranger.issue(guarded.folder.path(), "server", "localhost");
        let keys =
            format!("tls = true\nserver_name = \"localhost\"\nroot_certificates = {other:?}\n");
        let begin = Instant::now();
        while open(&guarded.binding(&format!("{keys}{sign_in}"))).await.is_err() {
            assert!(begin.elapsed() < PATIENCE, "the new certificate does not count");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        use_it(&database, "4").await;
    });
    let log = fs::read_to_string(guarded.path("audit.log")).expect("the log");
    assert!(
        log.contains("\"event\":\"handshake\"") && log.contains("a program without TLS"),
        "{log}"
    );
    assert!(log.contains("the certificates have changed"), "{log}");
    guarded.place.stop();
}

#[test]
fn certificates_of_programs_are_checked() {
    let guarded = guarded(None, Some(true));
    guarded.authority.issue(guarded.folder.path(), "program", "shop");
    Authority::new().issue(guarded.folder.path(), "stranger", "shop");
    let with = |name: &str| {
        let (certificate, key) =
            (guarded.path(&format!("{name}.pem")), guarded.path(&format!("{name}.key")));
        format!("{}client_certificate = {certificate:?}\nclient_key = {key:?}", guarded.tls())
    };
    block_on(async {
        use_it(&open(&guarded.binding(&with("program"))).await.expect("it opens"), "1").await;
        let error = guarded.refusal(&guarded.tls()).await;
        assert!(
            error.contains("it wants a certificate of the program: set client_certificate"),
            "{error}"
        );
        let error = guarded.refusal(&with("stranger")).await;
        assert!(
            error.contains("it does not accept the certificate in client_certificate"),
            "{error}"
        );
    });
    // Files that do not belong together are found without the data center.
    let mixed = with("program").replace("program.key", "stranger.key");
    let error = binding("127.0.0.1:1", &mixed).expect_err("they do not fit");
    assert!(
        error.contains("stores.vault.client_key: it does not fit client_certificate"),
        "{error}"
    );
    guarded.place.stop();
}

#[test]
fn a_program_with_tls_is_told_that_the_server_has_none() {
    let plain = guarded(None, None);
    block_on(async {
        let error = plain.refusal(&plain.tls()).await;
        assert!(error.contains("it does not speak TLS: set [tls] at the data center"), "{error}");
        use_it(&open(&plain.binding("")).await.expect("it opens"), "1").await;
    });
    plain.place.stop();
}

#[test]
fn an_examination_says_what_is_wrong() {
    let guarded = guarded(Some(USERS), Some(false));
    let program = mingle::compile(TEXT).expect("the program compiles");
    block_on(async {
        let world: Arc<TokioWorld> = Arc::new(TokioWorld::new());
        let tls = guarded.tls();
        for (keys, expected) in [
            (format!("{tls}{}", keys("shop", "secret")), [Ok(()), Ok(())]),
            (
                format!("{tls}{}", keys("half", "half")),
                [Ok(()), Err("add ~wall to it in users_file")],
            ),
            (
                format!("{tls}{}", keys("shop", "guess")),
                [Err("(WRONGPASS)"), Err("compare user and password")],
            ),
            (tls.clone(), [Err("(NOAUTH)"), Err("set user and password in the binding")]),
            (keys("shop", "secret"), [Err("set tls = true in the binding"); 2]),
        ] {
            let binding = guarded.binding(&keys);
            let examined = mingle::examine(&program, &binding, None, world.clone()).await;
            let examined = examined.expect("the binding fits");
            for (found, expected) in examined.stores.iter().zip(expected) {
                let text = &found.findings[0].text;
                match expected {
                    Ok(()) => {
                        assert_eq!(found.worst(), Judgement::Good, "{text}");
                        assert!(text.contains("answers in"), "{text}");
                    }
                    Err(expected) => {
                        assert_eq!(found.worst(), Judgement::Wrong, "{text}");
                        assert!(text.contains(expected) && !text.contains("secret"), "{text}");
                    }
                }
            }
        }
        // It has declared nothing: a program with another declaration opens the stores.
        let other = "store vault: linearizable; store wall: causal;
            object Box in vault { key name: string; value: string; }
            object Note in wall { key name: string; sum: counter; }
            transaction name(box: ref Box) -> string { return box.value; }
            transaction note(name: string) { Note[name].sum.add(1); }";
        let other = mingle::compile(other).expect("the program compiles");
        let binding = guarded.binding(&format!("{tls}{}", keys("shop", "secret")));
        Database::open(other, &binding, None).await.expect("it opens");
    });
    guarded.place.stop();
}

#[test]
fn an_older_server_says_which_version_it_speaks() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound").to_string();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        let reason = "it speaks only version 2 of the protocol".to_owned();
        stream.write_all(&framed(&Welcome::Refused { reason, may_come: false })).expect("it reads");
        std::io::copy(&mut stream, &mut std::io::sink()).expect("it is connected");
    });
    let error = block_on(async {
        let binding = binding(&address, &keys("shop", "secret")).expect("a binding");
        open(&binding).await.map(|_| ()).expect_err("it is refused").to_string()
    });
    assert!(error.ends_with("refuses: it speaks only version 2 of the protocol"), "{error}");
    server.join().expect("it ends");
}

/// Stores in data centers with users and TLS.
struct GuardedFactory(Mutex<Vec<Guarded>>);

impl GuardedFactory {
    async fn open_at(&self, schema: StoreSchema) -> Arc<dyn DataStore> {
        let guarded = guarded(Some("user suite on >secret ~* +mingle"), Some(false));
        let config = MingledConfig {
            credentials: Some(Credentials::new("suite", Password::Text("secret".into()))),
            tls: Some(TlsConfig {
                root_certificates: Some(guarded.authority.pem().into_bytes()),
                server_name: Some("localhost".into()),
                identity: None,
            }),
            ..MingledConfig::at(guarded.place.address().to_string())
        };
        let (name, world) = (schema.store.clone(), Arc::new(TokioWorld::new()));
        let cluster = Cluster::open(config, &[schema], world).await;
        let cluster = cluster.unwrap_or_else(|error| panic!("{error}"));
        self.0.lock().expect("no test panics with the lock").push(guarded);
        cluster.store(&name).expect("it was opened")
    }
}

impl Factory for GuardedFactory {
    fn level(&self) -> Level {
        Level::Linearizable
    }

    fn keeps_indexes(&self) -> bool {
        true
    }

    fn draws_keys(&self) -> bool {
        false
    }

    fn is_apart(&self) -> bool {
        false
    }

    fn open(&self, schema: StoreSchema) -> BoxFuture<'_, Arc<dyn DataStore>> {
        Box::pin(self.open_at(schema))
    }

    fn reopen(
        &self,
        _: Arc<dyn DataStore>,
        _: StoreSchema,
    ) -> BoxFuture<'_, Option<Arc<dyn DataStore>>> {
        // Starts again are a matter of the other suites.
        Box::pin(std::future::ready(None))
    }
}

#[test]
fn the_suite_of_adapters_passes_with_users_and_tls() {
    let factory = GuardedFactory(Mutex::default());
    block_on(conformance::run(&factory)).assert_passed();
}
