//! Servers that never answer: connections that hang. Each call ends with its deadline, and names the server that
//! has not answered.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use mingle::{Call, CallReport, Error, Session};
use mingle_proxy::{Fault, Proxy};
use mingle_services::Engine;
use mingle_store::test_world::join_all;
use mingle_store::{BoxFuture, StoreError};

use crate::engines::site::{RealSite, block_on, bound, space};

const DEADLINE: Duration = Duration::from_secs(1);

/// The time beyond the deadline that a machine under load may need.
const GRACE: Duration = Duration::from_millis(1_500);

/// Longer than any call may take.
const HANG: Duration = Duration::from_mins(10);

fn program(level: &str) -> String {
    format!(
        "store notes: {level};
        object Note in notes {{ key name: string; text: string; }}
        transaction write(note: ref Note, text: string) {{ note.text = text; }}
        transaction look(note: ref Note) -> string {{ return note.text; }}
        transaction extend(note: ref Note) {{ note.text = note.text + \"!\"; }}\n"
    )
}

/// A program over one engine, with a proxy before each of its servers.
struct Hanging {
    site: RealSite,
    proxies: Vec<Proxy>,
}

impl Hanging {
    fn open(engine: Engine) -> Option<Self> {
        let mut binding = block_on(bound("notes", Some(engine), &space()))?;
        let server = block_on(mingle_services::shared(engine))?;
        let mut proxies = Vec::new();
        let mut addresses = String::new();
        for upstream in server.addresses() {
            let proxy = block_on(Proxy::start(upstream, 7)).expect("there is a port");
            let own = proxy.address();
            if engine == Engine::Cassandra {
                let told = upstream.ip();
                let _ = writeln!(addresses, "\"{told}\" = \"{own}\"");
            }
            binding = binding.replace(&upstream.to_string(), &own.to_string());
            proxies.push(proxy);
        }
        if engine == Engine::Cassandra {
            binding.extend(["[stores.notes.addresses]\n", &addresses]);
        }
        let level = if engine == Engine::Cassandra { "eventual" } else { "linearizable" };
        let site = RealSite::new(&program(level), &binding);
        Some(Self { site, proxies })
    }

    fn call(&self, transaction: &str, arguments: &[(&str, &str)]) -> Result<CallReport, Error> {
        let arguments = self.site.database.arguments(transaction, arguments.iter().copied())?;
        let call = Call {
            session: Session::default(),
            deadline: Some(DEADLINE),
            ..Call::new(transaction, arguments)
        };
        block_on(self.site.database.submit(call))
    }

    /// Makes a call, checks that it ends with its deadline, and returns its error.
    fn fails_in_time(&self, transaction: &str, arguments: &[(&str, &str)]) -> Error {
        let begin = Instant::now();
        let error = self.call(transaction, arguments).expect_err("no server answers");
        let took = begin.elapsed();
        assert!(took < DEADLINE + GRACE, "{transaction} took {took:?}: {error}");
        error
    }

    fn hang(&self) {
        for proxy in &self.proxies {
            proxy.hang(HANG);
        }
    }

    fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        self.proxies.iter().map(Proxy::address)
    }
}

const PUT: [(&str, &str); 2] = [("note", "a"), ("text", "one")];
const NOTE: [(&str, &str); 1] = [("note", "a")];

fn never_answers(engine: Engine) {
    let Some(hanging) = Hanging::open(engine) else { return };
    for (transaction, arguments) in
        [("write", &PUT[..]), ("extend", &NOTE[..]), ("look", &NOTE[..])]
    {
        hanging
            .call(transaction, arguments)
            .unwrap_or_else(|error| panic!("{transaction}: {error}"));
    }
    hanging.hang();
    for (transaction, arguments) in [("look", &NOTE[..]), ("extend", &NOTE[..])] {
        let error = hanging.fails_in_time(transaction, arguments);
        let Error::Store(StoreError::Unavailable { store, reason }) = &error else {
            panic!("{error}")
        };
        assert_eq!(&**store, "notes");
        let names_a_node = hanging.addresses().any(|address| reason.contains(&address.to_string()));
        assert!(names_a_node, "{engine}, {transaction}: no server is named: {reason}");
    }
    // A write without a read may have taken effect.
    let error = hanging.fails_in_time("write", &PUT);
    let is_open =
        matches!(&error, Error::Unknown { .. } | Error::Store(StoreError::Unavailable { .. }));
    assert!(is_open, "{engine}: {error}");
    assert!(error.to_string().contains("notes"), "{error}");
    // Several calls at once end in time as well, and later ones are refused at once.
    let begin = Instant::now();
    block_on(async {
        let calls = (0..20).map(|_| {
            let arguments = hanging.site.database.arguments("look", NOTE).expect("they fit");
            let call = Call { deadline: Some(DEADLINE), ..Call::new("look", arguments) };
            let submitted: BoxFuture<'_, _> = Box::pin(hanging.site.database.submit(call));
            submitted
        });
        for ended in join_all(calls.collect()).await {
            ended.expect_err("no server answers");
        }
    });
    assert!(begin.elapsed() < DEADLINE + GRACE, "twenty calls took {:?}", begin.elapsed());
    // The connections are given up: later calls open new ones, once the server can be reached again.
    for proxy in hanging.proxies {
        drop(proxy);
    }
}

#[test]
fn postgres_that_never_answers() {
    never_answers(Engine::Postgres);
}

#[test]
fn redis_that_never_answers() {
    never_answers(Engine::Redis);
}

#[test]
fn cassandra_that_never_answers() {
    never_answers(Engine::Cassandra);
}

/// A commit reaches its server, which never answers: the outcome is queried over another connection.
#[test]
fn a_commit_that_hangs_is_known_by_its_outcome() {
    for engine in [Engine::Postgres, Engine::Redis] {
        let Some(hanging) = Hanging::open(engine) else { continue };
        hanging.call("write", &PUT).expect("it is put");
        hanging.call("extend", &NOTE).expect("it is extended");
        hanging.proxies[0].once_matching(|burst| burst.len() > 150, Fault::Hang(HANG));
        let begin = Instant::now();
        let ended = hanging.call("write", &[("note", "a"), ("text", "two")]);
        assert!(
            begin.elapsed() < DEADLINE + GRACE,
            "{engine} took {:?}: {ended:?}",
            begin.elapsed()
        );
        assert_eq!(hanging.proxies[0].planned(), 0, "{engine}: nothing hung");
        match ended {
            Ok(_) | Err(Error::Unknown { .. }) => {}
            // The store has made sure that it never takes effect.
            Err(Error::Store(StoreError::Unavailable { .. })) => {
                let found = hanging.call("look", &NOTE).expect("another connection answers");
                let found = hanging.site.database.result_json("look", &found);
                assert_ne!(found, "two", "{engine}: it was said that nothing was written");
            }
            Err(error) => panic!("{engine}: a commit that was sent is {error}"),
        }
    }
}
