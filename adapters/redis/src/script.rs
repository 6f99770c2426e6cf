//! The scripts. The server runs each one alone, so for other clients each is one atomic step.

use redis::Value;

use crate::link::{Failed, Link};

/// One script.
#[derive(Clone, Debug)]
pub struct Script {
    /// Its text.
    pub text: String,
    /// The server's name for it.
    pub digest: String,
}

/// All scripts.
#[derive(Clone, Debug)]
pub struct Scripts {
    /// Reads.
    pub read: Script,
    /// Commits.
    pub commit: Script,
    /// Queries the outcome of a commit.
    pub outcome: Script,
    /// Makes indexes over objects that are there.
    pub indexes: Script,
    /// Replaces the catalog, unless another process has replaced it.
    pub catalog: Script,
}

const COMMON: &str = include_str!("lua/common.lua");
const INDEXING: &str = include_str!("lua/indexing.lua");
const FATE: &str = include_str!("lua/fate.lua");

/// Adds the header to a script. With it, the server refuses the script before it runs in the states
/// in which it could fail halfway: as a replica, out of memory, or with a failing disk. A script
/// that frees memory or needs none may run without free memory.
fn text(needs_memory: bool, parts: &[&str]) -> String {
    let flags = if needs_memory { "" } else { " flags=allow-oom" };
    format!("#!lua{flags}\n{}", parts.concat())
}

impl Scripts {
    /// Loads all scripts.
    ///
    /// # Errors
    ///
    /// When the server refuses them.
    pub async fn load(link: &Link) -> Result<Self, Failed> {
        let read = text(false, &[COMMON, include_str!("lua/read.lua")]);
        let commit = text(true, &[COMMON, INDEXING, FATE, include_str!("lua/commit.lua")]);
        let outcome = text(true, &[COMMON, FATE, include_str!("lua/outcome.lua")]);
        let indexes = text(true, &[COMMON, INDEXING, include_str!("lua/indexes.lua")]);
        let catalog = text(true, &[include_str!("lua/catalog.lua")]);
        Ok(Self {
            read: load(link, read).await?,
            commit: load(link, commit).await?,
            outcome: load(link, outcome).await?,
            indexes: load(link, indexes).await?,
            catalog: load(link, catalog).await?,
        })
    }
}

async fn load(link: &Link, text: String) -> Result<Script, Failed> {
    match link.ask(&["SCRIPT", "LOAD", &text]).await? {
        Value::BulkString(digest) => {
            Ok(Script { text, digest: String::from_utf8_lossy(&digest).into_owned() })
        }
        other => Err(Failed::No(format!("SCRIPT LOAD answered {other:?}"))),
    }
}
