//! The invariants.

use std::hash::{DefaultHasher, Hash, Hasher};

use mingle_geo::DcId;
use mingle_geo::certify::Group;

use super::{Happening, World};

impl World {
    /// Checks a replica's state against others at the same log position; neither its position nor
    /// its configuration goes back.
    pub fn look(&mut self, dc: u8) {
        let node = &mut self.nodes[usize::from(dc)];
        let Some(group) = &node.group else { return };
        let now = (group.applied(), group.configuration().id());
        if now == node.seen {
            return;
        }
        assert!(now.0 >= node.seen.0 && now.1 >= node.seen.1, "d{dc}: {now:?} {:?}", node.seen);
        self.met.skipped += usize::from(now.1 > node.seen.1 + 1 && node.seen.1 > 0);
        node.seen = now;
        let state = postcard::to_stdvec(group.certifier()).expect("it has a form");
        let mut hasher = DefaultHasher::new();
        state.hash(&mut hasher);
        let (index, state) = (group.applied(), hasher.finish());
        let known = *self.states.entry(index).or_insert(state);
        assert_eq!(known, state, "two logs: d{dc} differs at {index}");
    }

    /// Checks that all members have the same complete log, with all votes that clients were told.
    pub fn check(&self) {
        let whole = *self.states.keys().next_back().expect("something happened");
        for dc in 0..self.dcs() {
            let group = self.nodes[usize::from(dc)].group.as_ref().expect("it runs");
            assert!(group.is_member() && !group.is_replaced(), "d{dc}: {group:?}");
            assert_eq!(group.applied(), whole, "d{dc} lacks some of the log");
            for (id, (begun_us, vote)) in &self.told {
                let found = group.certifier().vote(id, *begun_us);
                assert_eq!(found, Some(*vote), "a vote is lost: {id} at d{dc}");
            }
        }
    }

    /// True if all wanted members are in one configuration.
    pub fn is_settled(&self) -> bool {
        let groups = self.nodes.iter().map(|node| node.group.as_ref());
        let mut configurations = groups.map(|group| group.map(Group::configuration));
        let Some(Some(first)) = configurations.next() else { return false };
        let is_wanted = |(dc, last): (&DcId, &u32)| first.incarnation(*dc) == Some(*last);
        self.wanted.iter().all(is_wanted) && configurations.all(|one| one == Some(first))
    }

    /// Stops the clients and lets every message arrive.
    pub fn settle(&mut self) {
        self.run_until("one configuration", Self::is_settled);
        let before = self.met.votes;
        self.run_until("votes in it", |world| world.met.votes > before + 10);
        self.clients.iter_mut().for_each(|client| client.asks = None);
        self.queue.retain(|_, happening| !matches!(happening, Happening::Client(_)));
        self.run(5_000_000);
        self.check();
    }
}
