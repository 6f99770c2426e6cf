//! The clients' observations and the final contents of a run.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use mingle::{Error, Session};
use mingle_model::Value;

use super::calls::{ClientCall, Object, Store};

/// The end of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum End {
    /// The call returned a result, including the logs it read, by object.
    Done {
        /// The logs that it read.
        seen: Vec<(Object, Vec<String>)>,
        /// A log as a weaker answer showed it.
        weaker: Option<(Object, Vec<String>)>,
        /// The mark that it read in the middle, or the level of its answer: see `answers.mingle`.
        mark: i64,
        /// True if the caller did not wait for the remaining stores.
        has_rest: bool,
        /// The number of its visits that the caller waited for.
        visits: usize,
    },
    /// The call returned an error.
    Failed(Error),
    /// The caller went away, or its process died.
    Unheard,
}

#[cfg(test)]
impl Operation {
    /// Returns a call on the objects number 0, by a client of its own that made the calls `after` before.
    /// It took effect and has read nothing.
    pub(super) fn done(kind: super::calls::Kind, tag: u32, after: &[usize]) -> Self {
        let mut random = mingle_model::random::Random::new(1);
        let call = ClientCall::draw(&mut random, &[kind], 1, tag);
        let visits = call.visits().len();
        Self {
            client: tag as usize,
            call,
            began: Duration::ZERO,
            ended: Duration::ZERO,
            end: End::Done { seen: Vec::new(), weaker: None, mark: 0, has_rest: false, visits },
            after: after.to_vec(),
            again: None,
        }
    }
}

impl End {
    /// True if the caller got a result.
    pub fn is_done(&self) -> bool {
        matches!(self, Self::Done { .. })
    }
}

/// The result of repeating a call by its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Again {
    /// The answer was the same as the first.
    Same,
    /// The answer was different.
    Otherwise(String),
    /// There was no answer: its process died, or a store was away.
    Unanswered,
    /// There was an answer, but none the first time.
    Late,
}

/// A call and its end.
#[derive(Clone, Debug)]
pub struct Operation {
    /// The index of the client.
    pub client: usize,
    /// The call.
    pub call: ClientCall,
    /// The begin of the call.
    pub began: Duration,
    /// The end of the call.
    pub ended: Duration,
    /// The manner of its end.
    pub end: End,
    /// The indices of the same client's earlier operations.
    pub after: Vec<usize>,
    /// The result of the repetition, if there was one.
    pub again: Option<Again>,
}

/// The final contents of an object at one replica.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Final {
    /// The object's log.
    pub entries: Vec<String>,
    /// The object's counter, the balance of an account, or the number of places taken.
    pub count: i64,
    /// The marks by tag.
    pub marks: BTreeMap<String, i64>,
}

/// The facts by which a run is judged.
#[derive(Debug, Default)]
pub struct History {
    /// All operations, in the order in which they ended.
    pub operations: Vec<Operation>,
    /// The final contents of the objects, at each replica of their store.
    pub finals: BTreeMap<Object, Vec<Final>>,
    /// The rows left at stores, except floors and programs.
    pub residue: Vec<String>,
    /// The stores that promise only the convergence of their replicas.
    pub eventual: BTreeSet<Store>,
    /// True if the feed may show one write of a commit before another.
    pub is_torn: bool,
    /// The stores that count one of several copies of a phase. The choice is settled once the
    /// copies have met; until then a log may show the copy at a later place.
    pub by_id: BTreeSet<Store>,
    /// The tasks that did not finish.
    pub stuck: Vec<String>,
}

impl History {
    /// Returns the operation that wrote each tag.
    pub fn by_tag(&self) -> HashMap<String, usize> {
        let tags = self.operations.iter().enumerate();
        tags.filter(|(_, operation)| !operation.call.writes().is_empty())
            .map(|(index, operation)| (operation.call.tag_text(), index))
            .collect()
    }

    /// Returns the final log of an object at its first replica.
    pub fn log(&self, object: Object) -> &[String] {
        self.finals
            .get(&object)
            .and_then(|replicas| replicas.first())
            .map_or(&[], |replica| &replica.entries)
    }
}

/// Returns the end of a call that gave a result.
pub fn done(call: &ClientCall, result: Option<&Value>, phases: usize, has_rest: bool) -> End {
    let (mut seen, mut weaker) = (Vec::new(), None);
    let mut mark = 0;
    if let Some(Value::Struct(fields)) = result {
        mark = fields[4].as_int().unwrap_or_default();
        let is_answer = |object: Object| mark < 0 && call.asked() == Some(object);
        let entries = |object: Object| -> Vec<String> {
            let place = match object.store() {
                Store::Bank => 0,
                Store::Shop => 1,
                Store::Wall => 2,
                Store::Feed => 3,
            };
            fields[place].as_list().map(|list| list.iter().map(text).collect()).unwrap_or_default()
        };
        let visits = call.visits();
        let read = visits.iter().take(phases).filter_map(|visit| visit.reads);
        seen.extend(read.filter(|object| !is_answer(*object)).map(|o| (o, entries(o))));
        let has_answer = |object: &Object| {
            mark == WEAKER && visits.iter().take(phases).any(|visit| visit.store == object.store())
        };
        weaker = call.asked().filter(has_answer).map(|object| (object, entries(object)));
    }
    End::Done { seen, weaker, mark, has_rest, visits: phases }
}

/// The mark of an answer at a weaker level than the store's own.
pub const WEAKER: i64 = -1;

/// The mark of an answer that did not come in time.
pub const LATE: i64 = -2;

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Joins a client's tokens into the session that it keeps between calls.
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
