//! The server's description of itself, and the check that a store can be kept there.

use std::collections::BTreeMap;

use redis::Value as Reply;

use crate::link::{Failed, Link};
use crate::reply;

/// The oldest version that knows scripts with flags.
const VERSION_MIN: u32 = 7;

/// The server's description of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Server {
    info: BTreeMap<String, String>,
    /// Its settings; none if it does not report them.
    settings: Option<BTreeMap<String, String>>,
}

impl Server {
    /// Asks a server.
    ///
    /// # Errors
    ///
    /// When it cannot be reached, or refuses `INFO`.
    pub async fn ask(link: &Link) -> Result<Self, Failed> {
        let text = reply::text(link.ask(&["INFO"]).await?).map_err(Failed::No)?;
        let pairs = text.lines().filter_map(|line| line.trim_end().split_once(':'));
        let info = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let words = ["CONFIG", "GET", "appendonly", "appendfsync", "no-appendfsync-on-rewrite"];
        let settings = match link.ask(&words).await {
            Ok(found) => settings(found),
            Err(Failed::No(_)) => None,
            Err(failed) => return Err(failed),
        };
        Ok(Self { info, settings })
    }

    fn says(&self, name: &str) -> &str {
        self.info.get(name).map_or("", String::as_str)
    }

    /// Returns a setting of the server; none if it is not reported.
    fn set(&self, name: &str) -> Option<&str> {
        self.settings.as_ref()?.get(name).map(String::as_str)
    }

    /// Returns the server's version.
    pub fn version(&self) -> &str {
        self.says("redis_version")
    }

    /// Checks for promises that cannot be kept here at all.
    ///
    /// # Errors
    ///
    /// The reason why a store cannot be kept here, and a remedy.
    pub fn check(&self) -> Result<(), String> {
        let version = self.says("redis_version");
        let major: u32 = version.split('.').next().unwrap_or("").parse().unwrap_or(0);
        if major < VERSION_MIN {
            return Err(format!(
                "the server is of version {version:?}; at least {VERSION_MIN}.0 is needed, whose \
                 scripts do not begin where they cannot end"
            ));
        }
        let role = self.says("role");
        if role != "master" {
            return Err(format!(
                "the server is a replica (role {role}); it shows what is old, and what is written \
                 must go to the primary"
            ));
        }
        if self.says("cluster_enabled") == "1" {
            return Err("the server is part of a cluster, where one commit cannot write keys of \
                        several nodes; take a server without cluster mode"
                .into());
        }
        let policy = self.says("maxmemory_policy");
        if policy != "noeviction" {
            return Err(format!(
                "the server removes keys when memory runs short (maxmemory-policy {policy}); what \
                 was acknowledged is kept only with noeviction"
            ));
        }
        Ok(())
    }

    /// Describes the acknowledged commits that a crash would lose; none if it loses none. A server
    /// that does not report its settings counts as durable if the operator asserts it.
    pub fn loses(&self, known_durable: bool) -> Option<String> {
        if known_durable && self.settings.is_none() {
            return None;
        }
        let set = |name| self.set(name);
        if self.says("aof_enabled") != "1" {
            return Some(
                "it keeps no log of writes (appendonly no): a crash of the server loses \
                         everything since its last snapshot"
                    .into(),
            );
        }
        match set("appendfsync") {
            Some("always") => {}
            Some(other) => {
                return Some(format!(
                    "it does not wait for its disk (appendfsync {other}): a crash of its machine \
                     loses what was acknowledged {}",
                    if other == "everysec" { "in the last second or two" } else { "lately" }
                ));
            }
            None => {
                return Some(
                    "it does not tell whether it waits for its disk (CONFIG GET is not \
                             allowed); if it does not, a crash loses what was acknowledged \
                             lately. If you know that it does, say so with `known_durable`"
                        .into(),
                );
            }
        }
        if set("no-appendfsync-on-rewrite") == Some("yes") {
            return Some(
                "it does not wait for its disk while it rewrites its log \
                         (no-appendfsync-on-rewrite yes): a crash of its machine then loses what \
                         was acknowledged meanwhile"
                    .into(),
            );
        }
        None
    }

    /// Describes the commits that a failover would lose; none if there is no replica.
    pub fn failover(&self) -> Option<String> {
        let count: u32 = self.says("connected_slaves").parse().unwrap_or(0);
        (count > 0).then(|| {
            format!(
                "it has {count} replicas, which get writes after they were acknowledged: if one of \
                 them takes its place, the last of them may be lost, and reads of the former \
                 primary may be old"
            )
        })
    }
}

fn settings(found: Reply) -> Option<BTreeMap<String, String>> {
    let texts = reply::strings(found).ok()?;
    let text = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).into_owned();
    Some(texts.chunks_exact(2).map(|pair| (text(&pair[0]), text(&pair[1]))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(info: &[(&str, &str)], settings: Option<&[(&str, &str)]>) -> Server {
        let fine = [
            ("redis_version", "7.2.4"),
            ("role", "master"),
            ("cluster_enabled", "0"),
            ("maxmemory_policy", "noeviction"),
            ("aof_enabled", "1"),
        ];
        let map = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let mut all = map(&fine);
        all.extend(map(info));
        Server { info: all, settings: settings.map(map) }
    }

    #[test]
    fn a_server_is_refused_for_what_it_is() {
        assert_eq!(server(&[], None).check(), Ok(()));
        for (name, value, said) in [
            ("redis_version", "6.2.1", "6.2.1"),
            ("role", "slave", "replica"),
            ("cluster_enabled", "1", "cluster"),
            ("maxmemory_policy", "allkeys-lru", "allkeys-lru"),
        ] {
            let refused = server(&[(name, value)], None).check();
            assert!(refused.as_ref().is_err_and(|why| why.contains(said)), "{name}: {refused:?}");
        }
    }

    #[test]
    fn what_a_crash_loses_is_said() {
        let safe = [("appendfsync", "always"), ("no-appendfsync-on-rewrite", "no")];
        assert_eq!(server(&[], Some(&safe)).loses(false), None);
        let rewriting = [("appendfsync", "always"), ("no-appendfsync-on-rewrite", "yes")];
        for (server, said) in [
            (server(&[("aof_enabled", "0")], Some(&safe)), "appendonly no"),
            (server(&[], Some(&[("appendfsync", "everysec")])), "everysec"),
            (server(&[], Some(&rewriting)), "no-appendfsync-on-rewrite"),
            (server(&[], None), "CONFIG GET"),
        ] {
            let loses = server.loses(false).expect("something is lost");
            assert!(loses.contains(said), "{loses}");
            // The operator's assertion is only used if the server reports nothing.
            assert_eq!(server.loses(true).is_none(), said == "CONFIG GET");
        }
    }
}
