//! API tokens: each token's rights to call transactions and to look at objects.
//!
//! A file of tokens holds only the SHA-256 of each token. Tokens are long and random, so no slower
//! hash is needed against guessing.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;

use mingle_lang::Program;
use mingle_model::Principal;
use mingle_store::Admission;
use mingle_store_worker::Principals;
use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::limits::TOKENS_MAX;

/// The rights of a token.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rights {
    /// The name of the token's holder. Idempotency keys belong to this name.
    pub name: String,
    transactions: BTreeSet<String>,
    objects: BTreeSet<String>,
    /// The kinds of objects that the holder may list.
    lists: BTreeSet<String>,
    /// The stores at which the holder may use the worker.
    worker: BTreeSet<String>,
    /// The programs that the worker runs for the holder; none for all programs.
    programs: Option<BTreeSet<[u8; 32]>>,
    /// The transactions that each of the holder's callers may call; without a list, all.
    principals: Option<Principals>,
}

impl Rights {
    /// Rights to everything.
    pub(crate) fn all() -> Self {
        let all = BTreeSet::from([ALL.to_owned()]);
        Self {
            name: String::new(),
            transactions: all.clone(),
            objects: all.clone(),
            lists: all.clone(),
            worker: all,
            programs: None,
            principals: None,
        }
    }

    /// Creates rights to run these programs at all stores, and to do nothing else.
    #[cfg(test)]
    pub(crate) fn held_to(name: &str, programs: impl IntoIterator<Item = [u8; 32]>) -> Self {
        let worker = BTreeSet::from([ALL.to_owned()]);
        let programs = Some(programs.into_iter().collect());
        Self { name: name.to_owned(), worker, programs, ..Self::default() }
    }

    /// True if the holder may send phases to the worker of this store.
    pub fn may_work_at(&self, store: &str) -> bool {
        allows(&self.worker, store)
    }

    /// True if the holder may send phases to the worker of any store.
    pub fn may_work(&self) -> bool {
        !self.worker.is_empty()
    }

    /// True if the worker runs a program for the holder; `program` is the SHA-256 of its text.
    pub fn may_run(&self, program: &[u8; 32]) -> bool {
        self.programs.as_ref().is_none_or(|programs| programs.contains(program))
    }

    /// True if the worker runs every program for the holder.
    pub fn may_run_all(&self) -> bool {
        self.programs.is_none()
    }

    /// The principal of calls with this token; none if the server has no tokens.
    pub fn principal(&self) -> Option<Principal> {
        Principal::new(self.name.as_str()).ok()
    }

    /// The transactions that the worker runs for each of the holder's callers; none if the holder decides that.
    pub fn principals(&self) -> Option<&Principals> {
        self.principals.as_ref()
    }

    /// True if the holder may call this transaction.
    pub fn may_call(&self, transaction: &str) -> bool {
        allows(&self.transactions, transaction)
    }

    /// True if the holder may look at objects of this kind.
    pub fn may_see(&self, object: &str) -> bool {
        allows(&self.objects, object)
    }

    /// True if the holder may list the objects of this kind, so that their keys are no secret.
    pub fn may_list(&self, object: &str) -> bool {
        allows(&self.lists, object) && self.may_see(object)
    }
}

const ALL: &str = "*";

fn allows(allowed: &BTreeSet<String>, name: &str) -> bool {
    allowed.contains(name) || allowed.contains(ALL)
}

/// Tokens, by their digests.
#[derive(Clone, Debug, Default)]
pub struct Tokens(HashMap<[u8; 32], Arc<Rights>>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    tokens: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    sha256: String,
    #[serde(default)]
    transactions: BTreeSet<String>,
    #[serde(default)]
    objects: BTreeSet<String>,
    #[serde(default)]
    lists: BTreeSet<String>,
    #[serde(default)]
    worker: BTreeSet<String>,
    programs: Option<Vec<String>>,
    principals: Option<Principals>,
}

/// An error in a file of tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokensError(String);

impl fmt::Display for TokensError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TokensError {}

impl Tokens {
    /// Reads tokens from TOML, and checks them against the program.
    ///
    /// # Errors
    ///
    /// When the text is no such file, or names a thing that the program does not have.
    ///
    /// # Examples
    ///
    /// ```
    /// use mingle_server::Tokens;
    ///
    /// let program = mingle::compile("store s: causal; object O in s { key k: int; n: int; }
    ///     transaction bump(o: ref O) { o.n += 1; }").unwrap();
    /// // printf %s secret | sha256sum
    /// let text = "[[tokens]]
    ///     name = \"till\"
    ///     sha256 = \"2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b\"
    ///     transactions = [\"bump\"]";
    /// let tokens = Tokens::parse(text, &program).unwrap();
    /// let till = tokens.find("secret").unwrap();
    /// assert!(till.may_call("bump") && !till.may_see("O"));
    /// assert!(tokens.find("guess").is_none());
    /// ```
    pub fn parse(text: &str, program: &Program) -> Result<Self, TokensError> {
        let file: File = toml::from_str(text)
            .map_err(|error| TokensError(error.to_string().trim().to_owned()))?;
        if file.tokens.len() > TOKENS_MAX {
            let count = file.tokens.len();
            return Err(TokensError(format!("there are {count} tokens, and at most {TOKENS_MAX}")));
        }
        let mut tokens = HashMap::new();
        for entry in file.tokens {
            let (digest, rights) = entry.check(program)?;
            let wrong = |why: String| TokensError(format!("token {:?}: {why}", rights.name));
            let twice = wrong("the same sha256 stands there twice".to_owned());
            if tokens.insert(digest, Arc::new(rights)).is_some() {
                return Err(twice);
            }
        }
        Ok(Self(tokens))
    }

    /// The rights of a token; none if the token is unknown.
    pub fn find(&self, token: &str) -> Option<&Arc<Rights>> {
        // The time to look up a digest reveals nothing about the tokens.
        let digest: [u8; 32] = Sha256::digest(token).into();
        self.0.get(&digest)
    }
}

impl Entry {
    /// The digest of the token, and its rights, checked against the program.
    fn check(self, program: &Program) -> Result<([u8; 32], Rights), TokensError> {
        let Self { name, sha256, transactions, objects, lists, worker, programs, principals } =
            self;
        let schema = program.schema();
        let name_of = name.clone();
        let wrong = |why: String| TokensError(format!("token {name_of:?}: {why}"));
        if !name.is_empty() {
            Principal::new(name.as_str()).map_err(|why| wrong(why.to_string()))?;
        }
        if principals.is_some() && (programs.is_none() || worker.is_empty()) {
            let why = "principals needs worker and programs, whose transactions it lists";
            return Err(wrong(why.to_owned()));
        }
        for listed in principals.iter().flat_map(Principals::names).filter(|name| *name != ALL) {
            Principal::new(listed).map_err(|why| wrong(why.to_string()))?;
        }
        let digest = from_hex(&sha256)
            .ok_or_else(|| wrong("sha256 is not 64 hexadecimal digits".to_owned()))?;
        for unknown in transactions.iter().filter(|found| *found != ALL) {
            if program.plan(unknown).is_none() {
                return Err(wrong(format!("the program has no transaction {unknown:?}")));
            }
        }
        for unknown in objects.iter().chain(&lists).filter(|found| *found != ALL) {
            if !schema.objects.contains_key(unknown.as_str()) {
                return Err(wrong(format!("the program has no object {unknown:?}")));
            }
        }
        if let Some(unseen) = lists.iter().find(|listed| !allows(&objects, listed)) {
            return Err(wrong(format!("lists has {unseen:?}, which objects lacks")));
        }
        let stores = &program.checked.stores;
        for unknown in worker.iter().filter(|found| *found != ALL) {
            if !stores.iter().any(|store| *store.name == **unknown) {
                return Err(wrong(format!("the program has no store {unknown:?}")));
            }
        }
        let digest_of = |text: &String| {
            from_hex(text)
                .ok_or_else(|| wrong(format!("program {text:?} is not 64 hexadecimal digits")))
        };
        let programs = programs.map(|programs| programs.iter().map(digest_of).collect());
        let programs = programs.transpose()?;
        Ok((digest, Rights { name, transactions, objects, lists, worker, programs, principals }))
    }
}

/// Callers are identified by the names of their tokens: if several tokens have the same name, the
/// rights of one of them are enough.
impl Admission for Tokens {
    fn admits(&self, principal: Option<&Principal>, transaction: &str) -> bool {
        principal.is_none_or(|principal| {
            let named = self.0.values().filter(|rights| rights.name == principal.as_str());
            named.into_iter().any(|rights| rights.may_call(transaction))
        })
    }
}

fn from_hex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    let digits = text.as_bytes();
    if digits.len() != 64 {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        let digit = |at: usize| char::from(pair[at]).to_digit(16);
        *byte = (digit(0)? * 16 + digit(1)?) as u8;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_makes_no_sense_is_refused_with_the_reason() {
        let text = "store s: causal; object O in s { key k: int; n: int; }
            transaction bump(o: ref O) { o.n += 1; }";
        let program = mingle::compile(text).expect("the program is good");
        let digest = "ab".repeat(32);
        for (rest, expected) in [
            (
                format!("sha256 = \"{digest}\"\ntransactions = [\"bmup\"]"),
                "no transaction \"bmup\"",
            ),
            (format!("sha256 = \"{digest}\"\nobjects = [\"P\"]"), "no object \"P\""),
            (format!("sha256 = \"{digest}\"\nobject = [\"O\"]"), "unknown field `object`"),
            (format!("sha256 = \"{}\"", &digest[1..]), "64 hexadecimal digits"),
            (format!("sha256 = \"{}\"", "é".repeat(32)), "64 hexadecimal digits"),
            (
                format!("sha256 = \"{digest}\"\n[[tokens]]\nname = \"b\"\nsha256 = \"{digest}\""),
                "twice",
            ),
        ] {
            let text = format!("[[tokens]]\nname = \"a\"\n{rest}");
            let error = Tokens::parse(&text, &program).expect_err(&text).to_string();
            assert!(error.contains(expected), "{error} should contain {expected}");
        }
    }
}
