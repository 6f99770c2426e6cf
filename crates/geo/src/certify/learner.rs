//! Learning of chosen entries from accepted messages, without waiting for the leader's decision.
//! This saves one trip between data centers (`geo.md`, "Certification": accepted votes are copied).
//!
//! An entry is chosen once a majority has accepted it in one ballot. A follower that accepts knows
//! of two replicas that have: itself, and the leader of the ballot, which writes before it sends.
//! With three data centers that is a majority. With more, followers send each other copies of their
//! accepted messages to the leader.
//!
//! A chosen entry is in every later leader's log at the same index. So it never changes, although
//! the library reports it as decided only later.

use std::collections::BTreeMap;

use omnipaxos::ballot_leader_election::Ballot;
use omnipaxos::util::NodeId;

/// The known accepted positions of all replicas.
#[derive(Debug)]
pub struct Learner {
    own: NodeId,
    /// All node numbers, including this one.
    nodes: Vec<NodeId>,
    /// For each replica: the highest ballot in which it is known to have accepted, and the index up
    /// to which it has.
    accepted: BTreeMap<NodeId, (Ballot, usize)>,
}

impl Learner {
    /// Creates the learner of the replica with node number `own`, among `nodes`.
    pub fn new(own: NodeId, nodes: Vec<NodeId>) -> Self {
        Self { own, nodes, accepted: BTreeMap::new() }
    }

    fn majority(&self) -> usize {
        self.nodes.len() / 2 + 1
    }

    /// Records that a replica has accepted the log up to an index in a ballot. For this replica it
    /// becomes true once its writes are on disk.
    pub fn accepted(&mut self, node: NodeId, ballot: Ballot, index: usize) {
        for node in [node, ballot.pid] {
            let known = self.accepted.entry(node).or_insert((ballot, index));
            if (ballot, index) > *known {
                *known = (ballot, index);
            }
        }
    }

    /// Returns the replicas that get a copy of this replica's accepted message to the leader of a
    /// ballot. There are none if this replica and the leader are a majority.
    pub fn copied_to(&self, ballot: Ballot) -> impl Iterator<Item = NodeId> {
        let (own, leader) = (self.own, ballot.pid);
        let nodes = if self.majority() > 2 { self.nodes.as_slice() } else { &[] };
        nodes.iter().copied().filter(move |node| *node != own && *node != leader)
    }

    /// Returns the index up to which this replica's entries are chosen. `is_hasty` is a planted
    /// mistake: all entries that it has count as chosen.
    pub fn chosen(&self, is_hasty: bool) -> usize {
        let Some((ballot, own)) = self.accepted.get(&self.own) else { return 0 };
        if is_hasty {
            return *own;
        }
        let same = self.accepted.values().filter(|(of, _)| of == ballot);
        let mut indices: Vec<usize> = same.map(|(_, index)| (*index).min(*own)).collect();
        indices.sort_unstable_by(|one, other| other.cmp(one));
        indices.get(self.majority() - 1).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ballot(n: u32, pid: NodeId) -> Ballot {
        Ballot::with(1, n, 0, pid)
    }

    #[test]
    fn of_three_the_leader_and_a_follower_are_a_majority() {
        let mut learner = Learner::new(2, (1..=3).collect());
        assert_eq!(learner.chosen(false), 0);
        learner.accepted(2, ballot(1, 1), 7);
        assert_eq!(learner.chosen(false), 7);
        assert_eq!(learner.copied_to(ballot(1, 1)).count(), 0);
    }

    #[test]
    fn of_five_a_third_is_needed() {
        let mut learner = Learner::new(2, (1..=5).collect());
        learner.accepted(2, ballot(1, 1), 7);
        assert_eq!(learner.chosen(false), 0);
        assert_eq!(learner.copied_to(ballot(1, 1)).collect::<Vec<_>>(), [3, 4, 5]);
        learner.accepted(4, ballot(1, 1), 5);
        assert_eq!(learner.chosen(false), 5);
        learner.accepted(5, ballot(1, 1), 9);
        assert_eq!(learner.chosen(false), 7, "it has no more");
    }

    #[test]
    fn numbers_need_not_follow_each_other() {
        let mut learner = Learner::new(11, vec![1, 2, 11, 20, 5]);
        learner.accepted(11, ballot(1, 1), 7);
        assert_eq!(learner.copied_to(ballot(1, 1)).collect::<Vec<_>>(), [2, 20, 5]);
        learner.accepted(20, ballot(1, 1), 7);
        assert_eq!(learner.chosen(false), 7);
    }

    #[test]
    fn what_was_accepted_in_different_ballots_does_not_add_up() {
        let mut learner = Learner::new(2, (1..=5).collect());
        learner.accepted(3, ballot(1, 1), 9);
        learner.accepted(4, ballot(1, 1), 9);
        learner.accepted(2, ballot(2, 5), 9);
        assert_eq!(learner.chosen(false), 0);
        learner.accepted(3, ballot(2, 5), 9);
        assert_eq!(learner.chosen(false), 9);
    }

    #[test]
    fn an_earlier_word_that_comes_late_takes_nothing_back() {
        let mut learner = Learner::new(2, (1..=3).collect());
        learner.accepted(2, ballot(2, 1), 9);
        learner.accepted(2, ballot(1, 3), 4);
        assert_eq!(learner.chosen(false), 9);
    }
}
