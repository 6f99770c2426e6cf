//! The scripts. Each runs alone at the server, so each is one step for everybody else.

use redis::Value;

use crate::link::{Failed, Link};

/// One script.
#[derive(Clone, Debug)]
pub struct Script {
    /// Its text.
    pub text: String,
    /// What the server calls it.
    pub digest: String,
}

/// All of them.
#[derive(Clone, Debug)]
pub struct Scripts {
    /// Reads.
    pub read: Script,
    /// Commits.
    pub commit: Script,
    /// What became of a commit.
    pub outcome: Script,
    /// Replaces the catalog, unless somebody else has.
    pub catalog: Script,
}

const COMMON: &str = include_str!("lua/common.lua");
const FATE: &str = include_str!("lua/fate.lua");

/// A script that says what it is, and so is refused before it runs where it could fail in the
/// middle: at a server that has become a replica, that has no memory left, or whose disk fails. One
/// that frees or needs no memory may run without any left.
fn text(needs_memory: bool, parts: &[&str]) -> String {
    let flags = if needs_memory { "" } else { " flags=allow-oom" };
    format!("#!lua{flags}\n{}", parts.concat())
}

impl Scripts {
    /// Loads all scripts.
    ///
    /// # Errors
    ///
    /// When the server does not take them.
    pub async fn load(link: &Link) -> Result<Self, Failed> {
        let read = text(false, &[COMMON, include_str!("lua/read.lua")]);
        let commit = text(true, &[COMMON, FATE, include_str!("lua/commit.lua")]);
        let outcome = text(true, &[COMMON, FATE, include_str!("lua/outcome.lua")]);
        let catalog = text(true, &[include_str!("lua/catalog.lua")]);
        Ok(Self {
            read: load(link, read).await?,
            commit: load(link, commit).await?,
            outcome: load(link, outcome).await?,
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
