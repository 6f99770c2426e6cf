//! What clients saw, and what was left in the end.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use mingle::{Error, Session};
use mingle_model::Value;

use super::calls::{ClientCall, Object, Store};

/// How a call ended.
#[derive(Clone, Debug, PartialEq)]
pub enum End {
    /// With a result; the logs it gives, by object.
    Done {
        /// The logs that it read.
        seen: Vec<(Object, Vec<String>)>,
        /// What it read in the middle.
        mark: i64,
        /// Stores follow that the caller has not waited for.
        has_rest: bool,
        /// How many of its visits the caller has waited for.
        visits: usize,
    },
    /// With an error.
    Failed(Error),
    /// Its caller went away, or its process died.
    Unheard,
}

impl End {
    /// Whether the caller was given a result.
    pub fn is_done(&self) -> bool {
        matches!(self, Self::Done { .. })
    }
}

/// What became of a call that was made again by its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Again {
    /// It was answered as the first time.
    Same,
    /// It was answered otherwise.
    Otherwise(String),
    /// It was not answered: its process died, or a store was away.
    Unanswered,
    /// It was answered, and the first time it was not.
    Late,
}

/// A call, and how it ended.
#[derive(Clone, Debug)]
pub struct Operation {
    /// Which client.
    pub client: usize,
    /// What it called.
    pub call: ClientCall,
    /// When it began and ended.
    pub began: Duration,
    /// When it ended.
    pub ended: Duration,
    /// How.
    pub end: End,
    /// Operations of the same client that came before it: their indices.
    pub after: Vec<usize>,
    /// What became of it when it was made again.
    pub again: Option<Again>,
}

/// What an object held in the end, at one replica.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Final {
    /// Its log.
    pub entries: Vec<String>,
    /// Its counter, or an account's balance, or the places that are taken.
    pub count: i64,
    /// Marks by tag.
    pub marks: BTreeMap<String, i64>,
}

/// A run, as far as it can be judged.
#[derive(Debug, Default)]
pub struct History {
    /// All operations, in the order in which they ended.
    pub operations: Vec<Operation>,
    /// What objects held in the end, at each replica of their store.
    pub finals: BTreeMap<Object, Vec<Final>>,
    /// What was left at stores besides floors and programs.
    pub residue: Vec<String>,
    /// Stores that promise no more than that their replicas converge.
    pub eventual: BTreeSet<Store>,
    /// Whether the feed shows one write of a commit before another.
    pub is_torn: bool,
    /// Stores that count one of several copies of a phase. Which one is settled once the copies have
    /// met; until then a log may show it at a later place.
    pub by_id: BTreeSet<Store>,
    /// What did not come to rest.
    pub stuck: Vec<String>,
}

impl History {
    /// The operation that wrote each tag.
    pub fn by_tag(&self) -> HashMap<String, usize> {
        let tags = self.operations.iter().enumerate();
        tags.filter(|(_, operation)| !operation.call.writes().is_empty())
            .map(|(index, operation)| (operation.call.tag_text(), index))
            .collect()
    }

    /// The final log of an object at its first replica.
    pub fn log(&self, object: Object) -> &[String] {
        self.finals
            .get(&object)
            .and_then(|replicas| replicas.first())
            .map_or(&[], |replica| &replica.entries)
    }
}

/// The end of a call that gave a result.
pub fn done(call: &ClientCall, result: Option<&Value>, phases: usize, has_rest: bool) -> End {
    let mut seen = Vec::new();
    let mut mark = 0;
    if let Some(Value::Struct(fields)) = result {
        let visits = call.visits();
        for visit in visits.iter().take(phases) {
            let Some(object) = visit.reads else { continue };
            let place = match visit.store {
                Store::Bank => 0,
                Store::Shop => 1,
                Store::Wall => 2,
                Store::Feed => 3,
            };
            let entries = fields[place].as_list().map(|list| list.iter().map(text).collect());
            seen.push((object, entries.unwrap_or_default()));
        }
        mark = fields[4].as_int().unwrap_or_default();
    }
    End::Done { seen, mark, has_rest, visits: phases }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// A client's token, as it keeps it between calls.
pub fn joined(key: &mingle::SessionKey, tokens: &[String]) -> Session {
    let session = Session::default();
    for token in tokens {
        let other = Session::from_token(key, token).expect("the client kept what it was given");
        if let Some(replica) = other.replica() {
            session.move_to(replica);
        }
        session.join(&other);
    }
    session
}
