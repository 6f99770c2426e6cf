//! The sessions seen on a link, so that each is named in full only once.

use std::collections::BTreeMap;

use mingle_model::Origin;

/// The number of sessions remembered at both ends; beyond it the oldest one is forgotten.
pub const SESSIONS_MAX: usize = 4_096;

/// The sessions that were seen, with their last sequence numbers.
#[derive(Clone, Debug, Default)]
pub struct Sessions {
    /// A ring, once it is full.
    met: Vec<(Origin, u64)>,
    next: usize,
}

impl Sessions {
    /// Returns the session in a place, with its last sequence number.
    pub fn get(&mut self, place: usize) -> Option<&mut (Origin, u64)> {
        self.met.get_mut(place)
    }

    /// Adds a session; returns its place, and the session that it replaces.
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

/// [`Sessions`] with an index, for the sending end.
#[derive(Clone, Debug, Default)]
pub struct Places {
    sessions: Sessions,
    places: BTreeMap<Origin, usize>,
}

impl Places {
    /// Returns the place of a session, if it was seen.
    pub fn find(&self, origin: Origin) -> Option<usize> {
        self.places.get(&origin).copied()
    }

    /// Adds a session and returns its place.
    pub fn add(&mut self, origin: Origin) -> usize {
        let (place, forgotten) = self.sessions.add(origin);
        if let Some(forgotten) = forgotten {
            self.places.remove(&forgotten);
        }
        self.places.insert(origin, place);
        place
    }

    /// Returns the last sequence number of the session in a place that was found or added.
    pub fn last(&mut self, place: usize) -> &mut u64 {
        &mut self.sessions.get(place).expect("the place was found or added").1
    }
}
