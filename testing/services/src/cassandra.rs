//! Cassandra: from a Maven registry, three nodes in three data centers.
//!
//! Each node has a loopback address of its own, `127.0.0.1` to `127.0.0.3`, at the same port,
//! because clients expect one port for all nodes. The data centers are `dc1` to `dc3`. A write is
//! on disk before it is acknowledged.

use std::ffi::OsString;
use std::fs;
use std::io::{Error as IoError, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::path::Path;
use std::time::Duration;

use crate::error::Error;
use crate::home::{hand_over, publish};
use crate::packages::{from_maven, java};
use crate::server::{Options, Place};
use crate::tool::{Launch, output};

pub(crate) const FOLDER: &str = "cassandra-5.0.9";

/// The addresses at which the nodes listen.
pub(crate) const HOSTS: [Ipv4Addr; 3] =
    [Ipv4Addr::LOCALHOST, Ipv4Addr::new(127, 0, 0, 2), Ipv4Addr::new(127, 0, 0, 3)];

/// The Maven project that lists the dependencies.
const POM: &str = include_str!("cassandra.pom.xml");

/// The digest of all archives.
const ARCHIVES_SHA256: &str = "90f2eff50e78c0dd376fcfb320b2b0e40834f10da3a2e5ad657e5ae993a0a9dd";

/// The folder of a node's settings, below the node's folder.
const SETTINGS: &str = "settings";

/// The non-public packages of the Java runtime that Cassandra uses.
const EXPORTS: [&str; 5] = [
    "java.base/jdk.internal.misc",
    "java.base/jdk.internal.ref",
    "java.base/sun.nio.ch",
    "java.management.rmi/com.sun.jmx.remote.internal.rmi",
    "java.rmi/sun.rmi.registry",
];
const OPENS: [&str; 8] = [
    "java.base/java.io",
    "java.base/java.lang",
    "java.base/java.nio",
    "java.base/java.util",
    "java.base/jdk.internal.ref",
    "java.base/jdk.internal.reflect",
    "java.base/sun.nio.ch",
    "jdk.management/com.sun.management.internal",
];

/// The format of a node's log, and its destination, the error output.
const LOGGING: &str = r#"<configuration>
  <appender name="out" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%-5level %date{HH:mm:ss} %logger{0} - %msg%n</pattern></encoder>
  </appender>
  <root level="INFO"><appender-ref ref="out"/></root>
</configuration>
"#;

/// Fills a folder with the archives.
pub(crate) fn fetch(folder: &Path) -> Result<(), Error> {
    let version = output(java(), ["--version"], None)?;
    if !version.split_whitespace().nth(1).is_some_and(|version| version.starts_with("17.")) {
        let found = version.lines().next().unwrap_or_default();
        let what = "Cassandra needs Java 17, and JAVA_HOME or the path leads to";
        return Err(Error::new(format!("{what} `{found}`")));
    }
    from_maven(folder, POM, ARCHIVES_SHA256)?;
    publish(folder)
}

/// Creates the folders and the settings of a node.
pub(crate) fn prepare(place: &Place, options: &Options) -> Result<(), Error> {
    let settings = place.folder.join(SETTINGS);
    for folder in [place.data(), settings.clone(), place.folder.join("tmp")] {
        fs::create_dir_all(&folder).map_err(Error::of(folder.display()))?;
        hand_over(&folder)?;
    }
    let center = place.index + 1;
    let files = [
        ("cassandra.yaml", yaml(place, options)),
        ("cassandra-rackdc.properties", format!("dc=dc{center}\nrack=rack1\n")),
        ("logback.xml", LOGGING.to_owned()),
    ];
    for (name, text) in files {
        let path = settings.join(name);
        fs::write(&path, text).map_err(Error::of(path.display()))?;
        hand_over(&path)?;
    }
    Ok(())
}

/// Returns the settings of a node, as YAML.
fn yaml(place: &Place, options: &Options) -> String {
    let data = place.data();
    let at = |name: &str| format!("{:?}", data.join(name).to_string_lossy());
    let seeds = HOSTS.map(|host| format!("{host}:{}", place.inner_port)).join(",");
    let seeds = format!(
        "[{{class_name: org.apache.cassandra.locator.SimpleSeedProvider, \
         parameters: [{{seeds: {seeds:?}}}]}}]"
    );
    // One token for each node: thirds of the ring.
    let token = (place.index as i64 - 1) * (i64::MAX / 3 * 2);
    let host = place.address.ip().to_string();
    let mut settings = vec![
        ("cluster_name", format!("{:?}", cluster(place))),
        ("num_tokens", "1".to_owned()),
        ("initial_token", token.to_string()),
        ("auto_bootstrap", "false".to_owned()),
        ("partitioner", "org.apache.cassandra.dht.Murmur3Partitioner".to_owned()),
        ("endpoint_snitch", "GossipingPropertyFileSnitch".to_owned()),
        ("seed_provider", seeds),
        ("listen_address", host.clone()),
        ("rpc_address", host),
        ("storage_port", place.inner_port.to_string()),
        ("native_transport_port", place.address.port().to_string()),
        // After a timeout the outcome is unknown, and a test on a loaded machine could not
        // continue.
        ("read_request_timeout", "10s".to_owned()),
        ("write_request_timeout", "10s".to_owned()),
        ("cas_contention_timeout", "10s".to_owned()),
        ("commitlog_sync", "batch".to_owned()),
        ("commitlog_directory", at("commitlog")),
        ("data_file_directories", format!("[{}]", at("data"))),
        ("saved_caches_directory", at("caches")),
        ("hints_directory", at("hints")),
    ];
    settings.retain(|(name, _)| options.settings.iter().all(|(own, _)| own != name));
    let own = options.settings.iter().map(|(name, value)| (name.as_str(), value.clone()));
    let lines = settings.into_iter().chain(own).map(|(name, value)| format!("{name}: {value}"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the name that the nodes of one server share; no other server has it.
fn cluster(place: &Place) -> String {
    format!("mingle-{}-{}", place.address.port(), place.inner_port)
}

/// Returns the command that runs a node.
pub(crate) fn launch(files: &Path, place: &Place, options: &Options) -> Launch {
    let settings = place.folder.join(SETTINGS);
    let joined = |before: &str, path: &Path| {
        let mut word = OsString::from(before);
        word.push(path);
        word
    };
    // An optimizing compiler takes long to compile.
    let own = if options.is_for_load {
        ["-Xms768m", "-Xmx768m", "-XX:+TieredCompilation"]
    } else {
        ["-Xms384m", "-Xmx384m", "-XX:TieredStopAtLevel=1"]
    };
    let fixed = [
        "-XX:+UseSerialGC",
        "-XX:-UsePerfData",
        "-Djdk.attach.allowAttachSelf=true",
        "-Dcassandra.ring_delay_ms=1000",
        // Half of this is how long a node that has not joined yet may be silent; by default that follows
        // from the delay above. On a loaded machine it is silent for longer, and a node that has removed it
        // never takes over its schema again.
        "-Dcassandra.gossip_quarantine_delay_ms=120000",
        "-Dcassandra.superuser_setup_delay_ms=0",
        "-Dcassandra.skip_wait_for_gossip_to_settle=0",
        // A node that missed a schema change asks for it again, by default after one or two
        // minutes.
        "-Dcassandra.migration_delay_ms=1000",
        "-Dcassandra.schema_pull_interval_ms=1000",
    ];
    let mut arguments: Vec<OsString> = own.into_iter().chain(fixed).map(OsString::from).collect();
    for (option, packages) in [("--add-exports", &EXPORTS[..]), ("--add-opens", &OPENS[..])] {
        arguments.extend(packages.iter().map(|name| format!("{option}={name}=ALL-UNNAMED").into()));
    }
    // Files that a node leaves are in its folder, and are removed with it.
    arguments.push(joined("-Djava.io.tmpdir=", &place.folder.join("tmp")));
    arguments.push(joined("-Duser.home=", &place.folder.join("tmp")));
    arguments.push(joined("-Dcassandra.storagedir=", &place.data()));
    arguments.push(joined("-Dcassandra.config=file://", &settings.join("cassandra.yaml")));
    arguments.push(joined("-javaagent:", &files.join("jamm-0.4.0.jar")));
    arguments.push("-cp".into());
    let mut path = settings.into_os_string();
    path.push(":");
    path.push(files.join("*"));
    arguments.push(path);
    arguments.push("org.apache.cassandra.service.CassandraDaemon".into());
    Launch { program: java(), arguments, environment: Vec::new() }
}

/// True if the node accepts queries, belongs to our server, and sees all of its nodes with its own
/// schema version. Data that it then reads from all replicas is on all nodes.
pub(crate) fn is_ready(place: &Place) -> bool {
    let answer = || -> std::io::Result<bool> {
        let mut connection = Connection::open(place.address)?;
        let local = connection.query("SELECT cluster_name FROM system.local", ONE)?;
        let name = cluster(place);
        let is_ours = local.windows(name.len()).any(|part| part == name.as_bytes());
        let peers = connection.query("SELECT COUNT(*) FROM system.peers_v2", ONE)?;
        let knows_all = peers.ends_with(&(HOSTS.len() as u64 - 1).to_be_bytes());
        // A node may know another one without having reached it.
        connection.query("SELECT session_id FROM system_traces.sessions", ALL)?;
        // Each node creates some tables at its start, and learns of the others' tables later.
        let own = connection.query("SELECT schema_version FROM system.local", ONE)?;
        let version = own.last_chunk::<UUID_BYTES>();
        let others = connection.query("SELECT schema_version FROM system.peers_v2", ONE)?;
        let same = others
            .windows(UUID_BYTES)
            .filter(|part| version.is_some_and(|version| part == version));
        Ok(is_ours && knows_all && same.count() == HOSTS.len() - 1)
    };
    answer().unwrap_or(false)
}

/// Consistency levels, as the protocol numbers them.
const ONE: u16 = 1;
const ALL: u16 = 5;

/// The length of a schema version, in bytes.
const UUID_BYTES: usize = 16;

/// The part of the native protocol, version 4, that is needed to find out if a node is up.
struct Connection {
    stream: TcpStream,
}

impl Connection {
    fn open(address: SocketAddrV4) -> std::io::Result<Self> {
        let patience = Duration::from_secs(10);
        let stream = TcpStream::connect_timeout(&address.into(), patience)?;
        stream.set_read_timeout(Some(patience))?;
        let mut connection = Self { stream };
        // STARTUP with one option, answered by READY, or by AUTHENTICATE if the settings demand it;
        // the initial user is known.
        let options = [&[0, 1][..], &short("CQL_VERSION"), &short("3.0.0")].concat();
        let (kind, body) = connection.exchange(1, &options)?;
        match kind {
            2 => {}
            3 => {
                let token = b"\0cassandra\0cassandra";
                let token = [&(token.len() as u32).to_be_bytes()[..], token].concat();
                connection.ask(15, &token, 16)?;
            }
            _ => return Err(unexpected(kind, &body)),
        }
        Ok(connection)
    }

    /// Returns the RESULT of a QUERY, undecoded.
    fn query(&mut self, query: &str, consistency: u16) -> std::io::Result<Vec<u8>> {
        let length = (query.len() as u32).to_be_bytes();
        let flags = [0];
        let body = [&length[..], query.as_bytes(), &consistency.to_be_bytes(), &flags].concat();
        self.ask(7, &body, 8)
    }

    fn ask(&mut self, operation: u8, body: &[u8], expected: u8) -> std::io::Result<Vec<u8>> {
        let (kind, body) = self.exchange(operation, body)?;
        if kind == expected { Ok(body) } else { Err(unexpected(kind, &body)) }
    }

    /// Sends a frame; returns the kind and the body of the answer.
    fn exchange(&mut self, operation: u8, body: &[u8]) -> std::io::Result<(u8, Vec<u8>)> {
        let length = (body.len() as u32).to_be_bytes();
        let frame = [&[4, 0, 0, 0, operation][..], &length, body].concat();
        self.stream.write_all(&frame)?;
        let mut head = [0; 9];
        self.stream.read_exact(&mut head)?;
        let [_, _, _, _, kind, length @ ..] = head;
        let mut body = Vec::new();
        let length = u64::from(u32::from_be_bytes(length));
        (&mut self.stream).take(length).read_to_end(&mut body)?;
        Ok((kind, body))
    }
}

fn unexpected(kind: u8, body: &[u8]) -> IoError {
    let text = String::from_utf8_lossy(body).into_owned();
    IoError::new(ErrorKind::InvalidData, format!("kind {kind}: {text}"))
}

/// Encodes a short string of the protocol.
fn short(text: &str) -> Vec<u8> {
    [&(text.len() as u16).to_be_bytes()[..], text.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::{Engine, Server, private};

    fn connect(server: &Server, index: usize) -> Connection {
        let std::net::SocketAddr::V4(address) = server.addresses()[index] else {
            panic!("{:?} are not of version 4", server.addresses());
        };
        Connection::open(address).unwrap()
    }

    /// True if the answer to a query contains these bytes.
    fn has(connection: &mut Connection, query: &str, consistency: u16, bytes: &[u8]) -> bool {
        let answer = connection.query(query, consistency).unwrap();
        answer.windows(bytes.len()).any(|part| part == bytes)
    }

    #[tokio::test]
    async fn cassandra_keeps_what_it_acknowledged_when_nodes_are_killed() {
        const QUORUM: u16 = 4;
        let Some(server) = private(Engine::Cassandra).await else { return };
        let mut first = connect(&server, 0);
        let change = |query: &str, connection: &mut Connection| {
            connection.query(query, QUORUM).unwrap();
        };
        let copies = "{'class': 'NetworkTopologyStrategy', 'dc1': 1, 'dc2': 1, 'dc3': 1}";
        change(&format!("CREATE KEYSPACE test WITH replication = {copies}"), &mut first);
        change("CREATE TABLE test.kept (id int PRIMARY KEY, value text)", &mut first);
        for (index, center) in ["dc1", "dc2", "dc3"].into_iter().enumerate() {
            let query = "SELECT data_center FROM system.local";
            let mut connection = connect(&server, index);
            assert!(has(&mut connection, query, ONE, center.as_bytes()));
            // The other nodes learn of the table later, which drivers have to handle.
            let deadline = Instant::now() + Duration::from_mins(1);
            while connection.query("SELECT value FROM test.kept", ONE).is_err() {
                assert!(Instant::now() < deadline, "{center} does not know the table");
            }
        }

        // A boolean: four bytes of length and one byte of value.
        let (applied, refused) = ([0, 0, 0, 1, 1], [0, 0, 0, 1, 0]);
        let insert = "INSERT INTO test.kept (id, value) VALUES (1, 'before') IF NOT EXISTS";
        assert!(has(&mut first, insert, QUORUM, &applied));
        assert!(has(&mut connect(&server, 2), insert, QUORUM, &refused));

        server.kill9_node(1).await.unwrap();
        assert_eq!(server.processes().len(), 2);
        change("INSERT INTO test.kept (id, value) VALUES (2, 'between')", &mut first);
        assert!(first.query("SELECT * FROM test.kept", ALL).is_err());
        server.restart().await.unwrap();
        let mut second = connect(&server, 1);
        assert!(has(&mut second, "SELECT value FROM test.kept", ALL, b"between"));

        server.kill9().await.unwrap();
        assert!(server.processes().is_empty());
        server.restart().await.unwrap();
        for index in 0..HOSTS.len() {
            let mut connection = connect(&server, index);
            for (id, value) in [(1, "before"), (2, "between")] {
                let query = format!("SELECT value FROM test.kept WHERE id = {id}");
                assert!(has(&mut connection, &query, QUORUM, value.as_bytes()));
            }
        }
    }

    #[test]
    fn settings_of_ones_own_take_precedence() {
        let place = Place {
            folder: "folder".into(),
            index: 2,
            address: SocketAddrV4::new(HOSTS[2], 10_000),
            inner_port: 10_001,
        };
        let options = Options::default().setting("commitlog_sync", "periodic").setting("new", "1");
        let yaml = yaml(&place, &options);
        let lines: Vec<&str> = yaml.lines().collect();
        for line in ["commitlog_sync: periodic", "new: 1", "listen_address: 127.0.0.3"] {
            assert_eq!(lines.iter().filter(|found| **found == line).count(), 1, "{yaml}");
        }
        assert!(!lines.contains(&"commitlog_sync: batch"));
    }
}
