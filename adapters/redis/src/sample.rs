//! A sample of the keys of a server, for writing a first mapping. It changes nothing.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use mingle_model::Name;
use mingle_store::World;
use redis::{Cmd, Value as Reply};

use crate::config::{OpenError, RedisConfig};
use crate::limits::{SAMPLE_BATCH, SAMPLE_ITEMS, SAMPLE_SCAN, SAMPLE_STRING_BYTES};
use crate::link::{Failed, Link};
use crate::reply;
use crate::server::Server;

/// Looks at the keys of a server, with commands that only read: `SCAN`, `TYPE`, `PTTL`, and a bounded part of the
/// contents of a key.
///
/// # Examples
///
/// ```no_run
/// # async fn sampled(
/// #     world: std::sync::Arc<dyn mingle_store::World>,
/// # ) -> Result<(), mingle_store_redis::OpenError> {
/// use std::time::Duration;
/// use mingle_store_redis::{RedisConfig, Sampler};
///
/// let config = RedisConfig::at("redis://127.0.0.1:6379/0");
/// let sampler = Sampler::connect("cache", &config, Duration::from_secs(30), world).await?;
/// let sample = sampler.keys(1_000).await?;
/// println!("{} of {} keys", sample.keys.len(), sample.total);
/// # Ok(())
/// # }
/// ```
pub struct Sampler {
    link: Link,
    store: Name,
    world: Arc<dyn World>,
    /// The time after which no further keys are asked for.
    until: Duration,
}

/// A sample of keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// The number of keys in the database.
    pub total: u64,
    /// The keys, in no order.
    pub keys: Vec<SampledKey>,
    /// The number of keys that the user may not read.
    pub forbidden: u64,
    /// True if time ran out before the wanted number of keys was found.
    pub is_late: bool,
}

/// A key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampledKey {
    /// Its name.
    pub name: Vec<u8>,
    /// Its type, in the server's words: `hash`.
    pub key_type: String,
    /// True if it has a time to live.
    pub expires: bool,
}

/// A part of the contents of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Contents {
    /// The first bytes of a string, and its length.
    String(Vec<u8>, u64),
    /// Fields of a hash, with their values.
    Hash(Vec<(Vec<u8>, Vec<u8>)>),
    /// Elements of a set.
    Set(Vec<Vec<u8>>),
    /// The first elements of a list.
    List(Vec<Vec<u8>>),
    /// Nothing: the key is gone, has another type, or cannot be read.
    Unknown,
}

impl Sampler {
    /// Connects to a server, and checks that a store can be kept there. Looks for keys no longer than `patience`.
    ///
    /// # Errors
    ///
    /// When the server cannot be reached, or a store cannot be kept there. Error messages call the store `store`.
    pub async fn connect(
        store: &str,
        config: &RedisConfig,
        patience: Duration,
        world: Arc<dyn World>,
    ) -> Result<Self, OpenError> {
        let store: Name = store.into();
        let link = Link::new(config, Arc::clone(&world))
            .map_err(|reason| OpenError::Config { store: store.clone(), reason })?;
        let until = world.elapsed() + patience;
        let sampler = Self { link, store, world, until };
        let server = Server::ask(&sampler.link).await;
        let server = server.map_err(|failed| sampler.failed("INFO", &failed))?;
        let unfit = |reason| OpenError::Unfit { store: sampler.store.clone(), reason };
        server.check().map_err(unfit)?;
        Ok(sampler)
    }

    fn failed(&self, command: &str, failed: &Failed) -> OpenError {
        let store = self.store.clone();
        match failed {
            Failed::No(reason) => OpenError::Config {
                store,
                reason: format!(
                    "the server refuses {command}, which is needed to look at its keys: {reason}"
                ),
            },
            other => OpenError::Unavailable {
                store,
                reason: format!("{} does not answer: {}", self.link.place(), other.reason()),
            },
        }
    }

    fn is_late(&self) -> bool {
        self.world.elapsed() >= self.until
    }

    /// Returns up to `most` keys: those that the server comes upon first, in an order that says nothing about them.
    ///
    /// # Errors
    ///
    /// When the server does not answer, or forbids `DBSIZE` or `SCAN`.
    pub async fn keys(&self, most: usize) -> Result<Sample, OpenError> {
        let odd = |reason: String| self.failed("SCAN", &Failed::No(reason));
        let total = self.link.ask(&["DBSIZE"]).await;
        let total = total.map_err(|failed| self.failed("DBSIZE", &failed))?;
        let mut sample = Sample { total: reply::number(total).map_err(odd)?, ..Sample::default() };
        let (mut seen, mut cursor) = (BTreeSet::new(), "0".to_owned());
        while seen.len() < most {
            if self.is_late() {
                sample.is_late = true;
                break;
            }
            let found = self.link.ask(&["SCAN", &cursor, "COUNT", SAMPLE_SCAN]).await;
            let found = found.map_err(|failed| self.failed("SCAN", &failed))?;
            let [next, names] = reply::parts(found).map_err(odd)?;
            let names = reply::strings(names).map_err(odd)?;
            // A part of an answer, too, is a part at random, as long as it is its beginning.
            for name in names {
                if seen.len() < most {
                    seen.insert(name);
                }
            }
            cursor = reply::text(next).map_err(odd)?;
            if cursor == "0" {
                break;
            }
        }
        let names: Vec<Vec<u8>> = seen.into_iter().collect();
        for batch in names.chunks(SAMPLE_BATCH) {
            if self.is_late() {
                sample.is_late = true;
                break;
            }
            let commands: Vec<Cmd> =
                batch.iter().flat_map(|name| [one("TYPE", name), one("PTTL", name)]).collect();
            let replies = self.link.ask_all(&commands).await;
            let replies = replies.map_err(|failed| self.failed("TYPE", &failed))?;
            for (name, pair) in batch.iter().zip(replies.chunks(2)) {
                let [of, left] = pair else { continue };
                match reply::text(of.clone()) {
                    // A key that ran out meanwhile.
                    Ok(of) if of == "none" => {}
                    Ok(key_type) => sample.keys.push(SampledKey {
                        name: name.clone(),
                        key_type,
                        expires: matches!(left, Reply::Int(left) if *left >= 0),
                    }),
                    Err(_) => sample.forbidden += 1,
                }
            }
        }
        Ok(sample)
    }

    /// Returns a part of the contents of each of some keys; of none when time has run out.
    ///
    /// # Errors
    ///
    /// When the server does not answer.
    pub async fn contents(&self, keys: &[&SampledKey]) -> Result<Vec<Contents>, OpenError> {
        let mut all = Vec::with_capacity(keys.len());
        for batch in keys.chunks(SAMPLE_BATCH) {
            if self.is_late() {
                break;
            }
            let commands: Vec<Cmd> = batch.iter().flat_map(|key| look(key)).collect();
            let replies = self.link.ask_all(&commands).await;
            let replies = replies.map_err(|failed| self.failed("HSCAN", &failed))?;
            let contents = batch.iter().zip(replies.chunks(2));
            all.extend(contents.map(|(key, pair)| contents_of(&key.key_type, pair)));
        }
        all.resize(keys.len(), Contents::Unknown);
        Ok(all)
    }
}

fn one(command: &str, name: &[u8]) -> Cmd {
    let mut words = Cmd::new();
    words.arg(command).arg(name);
    words
}

/// Returns the two commands that look at a key: its length or type, and a part of its contents.
fn look(key: &SampledKey) -> [Cmd; 2] {
    let name = &key.name;
    let with = |command: &str, more: &[&str]| {
        let mut words = one(command, name);
        words.arg(more);
        words
    };
    match key.key_type.as_str() {
        "string" => {
            let last = (SAMPLE_STRING_BYTES - 1).to_string();
            [one("STRLEN", name), with("GETRANGE", &["0", &last])]
        }
        "hash" => [one("TYPE", name), with("HSCAN", &["0", "COUNT", SAMPLE_ITEMS])],
        "set" => [one("TYPE", name), with("SSCAN", &["0", "COUNT", SAMPLE_ITEMS])],
        "list" => [one("TYPE", name), with("LRANGE", &["0", SAMPLE_ITEMS])],
        _ => [one("TYPE", name), one("TYPE", name)],
    }
}

fn contents_of(key_type: &str, pair: &[Reply]) -> Contents {
    let [first, second] = pair else { return Contents::Unknown };
    let scanned = || {
        let [_, items] = reply::parts(second.clone())?;
        reply::strings(items)
    };
    let found = match key_type {
        "string" => reply::bytes(second.clone()).and_then(|bytes| {
            let length = reply::number(first.clone())?;
            Ok(Contents::String(bytes.unwrap_or_default(), length))
        }),
        "hash" => scanned().map(|items| {
            let pairs = items.chunks_exact(2);
            Contents::Hash(pairs.map(|pair| (pair[0].clone(), pair[1].clone())).collect())
        }),
        "set" => scanned().map(Contents::Set),
        "list" => reply::strings(second.clone()).map(Contents::List),
        _ => Ok(Contents::Unknown),
    };
    found.unwrap_or(Contents::Unknown)
}
