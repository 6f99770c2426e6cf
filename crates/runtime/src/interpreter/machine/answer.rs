//! Reads with a policy: the request, and the answer with its level.
//!
//! Such a read is asked alone, where the program reaches it, since its bound begins there. Its answer is
//! seen through the transaction's own writes like any other, but serves no other read: another one may
//! be of another level.

use mingle_lang::code::ReadSpec;
use mingle_lang::flat::{Answering, ReadKind, Slot};
use mingle_lang::hir::{CollectionRead, Policy};
use mingle_model::{LevelId, Name, Value};
use mingle_store::{Address, Data, Read};
use rustc_hash::FxHashMap;

use super::slice::weight;
use super::{Machine, Need};
use crate::api::error::Error;
use crate::interpreter::write_buffer::FieldWrites;

/// A read with a policy.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The requests to the store, for one answer.
    pub reads: Vec<Read>,
    /// The policy.
    pub answering: Answering,
    /// The level of the store.
    pub own: LevelId,
}

/// The answer to a read with a policy.
#[derive(Clone, Debug, PartialEq)]
pub enum Answered {
    /// An answer of this level.
    Of {
        /// The level.
        level: Name,
        /// The data, by request.
        data: Vec<Data>,
    },
    /// No answer came in time.
    Late,
}

impl Answered {
    /// The answer as data, as it is pinned.
    pub fn to_data(&self) -> Vec<Data> {
        let (level, data) = match self {
            Self::Of { level, data } => (&**level, data.as_slice()),
            Self::Late => (Value::LATE, &[][..]),
        };
        std::iter::once(Data::Result(Value::from(level))).chain(data.iter().cloned()).collect()
    }

    /// Reads an answer from its pinned data; none if that is no answer.
    pub fn from_data(mut data: Vec<Data>) -> Option<Self> {
        if data.is_empty() {
            return None;
        }
        let Data::Result(Value::String(level)) = data.remove(0) else { return None };
        Some(if *level == *Value::LATE { Self::Late } else { Self::Of { level, data } })
    }
}

impl<'a> Machine<'a> {
    /// Hands in the answer to the read that was asked for last.
    pub fn supply_answer(&mut self, answer: Answered) {
        self.answered = Some(answer);
    }

    /// Runs a read with a policy: asks for its answer, or takes it.
    pub(super) fn answered_read(
        &mut self,
        read: &'a ReadSpec,
        dsts: &'a [Slot],
        answering: Answering,
    ) -> Result<Option<Need>, Error> {
        match self.answered.take() {
            None => Ok(Some(self.ask_answer(read, answering))),
            Some(Answered::Late) => {
                self.slots[dsts[0].index()] = Value::late();
                Ok(None)
            }
            Some(Answered::Of { level, data }) => {
                let mut answers = FxHashMap::default();
                for (read, data) in std::mem::take(&mut self.awaited).into_iter().zip(data) {
                    self.spend(weight(&data))?;
                    self.check_labels(&read, &data)?;
                    answers.insert(read, data);
                }
                let fetched = std::mem::replace(&mut self.fetched, answers);
                let done = self.overlaid(read, dsts, &mut Vec::new());
                self.fetched = fetched;
                assert!(done?, "the store answers every request of a read");
                if let Policy::By(_) = answering.policy {
                    let slot = &mut self.slots[dsts[0].index()];
                    *slot = Value::answer(&level, std::mem::replace(slot, Value::NONE));
                }
                Ok(None)
            }
        }
    }

    /// Asks for an answer; the instruction is repeated once it is there.
    fn ask_answer(&mut self, read: &ReadSpec, answering: Answering) -> Need {
        let own = self.program.level_of(self.store.expect("a phase that reads visits a store"));
        let mut reads = Vec::new();
        self.requests(read, &mut reads);
        self.own_elements(read, &mut reads);
        self.awaited.clone_from(&reads);
        self.at -= 1;
        Need::Answer(Asked { reads, answering, own })
    }

    /// Adds the requests that tell how this transaction's own writes change the size of a collection.
    fn own_elements(&self, read: &ReadSpec, reads: &mut Vec<Read>) {
        let ReadKind::Collection(_, field, CollectionRead::SetSize | CollectionRead::MapSize) =
            &read.kind
        else {
            return;
        };
        let object = self.object(read);
        let address = || Address { object: object.clone(), field: *field };
        match self.view(&object, *field).writes {
            Some(FieldWrites::Set(_, elements)) => {
                let elements = elements.keys().cloned();
                reads.extend(elements.map(|element| Read::Contains(address(), element)));
            }
            Some(FieldWrites::Map(_, entries)) => {
                let keys = entries.keys().cloned();
                reads.extend(keys.map(|key| Read::Entry(address(), key)));
            }
            _ => {}
        }
    }
}
