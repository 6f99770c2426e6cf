//! Sessions that were met on a link, so that each is named in full only once.

use std::collections::BTreeMap;

use mingle_model::Origin;

/// So many are remembered at both ends; beyond, the one that came first is forgotten.
pub const SESSIONS_MAX: usize = 4_096;

/// The sessions that were met, with what was last said of each.
#[derive(Clone, Debug, Default)]
pub struct Sessions {
    /// A ring, once it is full.
    met: Vec<(Origin, u64)>,
    next: usize,
}

impl Sessions {
    /// The last sequence of a session in a place.
    pub fn get(&mut self, place: usize) -> Option<&mut (Origin, u64)> {
        self.met.get_mut(place)
    }

    /// Remembers a session, and says where; and which one is forgotten for it.
    pub fn add(&mut self, origin: Origin) -> (usize, Option<Origin>) {
        let place = self.next;
        self.next = (self.next + 1) % SESSIONS_MAX;
        if place < self.met.len() {
            let forgotten = std::mem::replace(&mut self.met[place], (origin, 0));
            return (place, Some(forgotten.0));
        }
        self.met.push((origin, 0));
        (place, None)
    }
}

/// The same, at the end that looks for places.
#[derive(Clone, Debug, Default)]
pub struct Places {
    sessions: Sessions,
    places: BTreeMap<Origin, usize>,
}

impl Places {
    /// Where a session is, if it was met.
    pub fn find(&self, origin: Origin) -> Option<usize> {
        self.places.get(&origin).copied()
    }

    /// Remembers a session.
    pub fn add(&mut self, origin: Origin) -> usize {
        let (place, forgotten) = self.sessions.add(origin);
        if let Some(forgotten) = forgotten {
            self.places.remove(&forgotten);
        }
        self.places.insert(origin, place);
        place
    }

    /// What was last said of the session in a place that was found or added.
    pub fn last(&mut self, place: usize) -> &mut u64 {
        &mut self.sessions.get(place).expect("the place was found or added").1
    }
}
