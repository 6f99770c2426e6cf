//! Learning what is chosen from what was accepted, without waiting for the leader to say so: one trip
//! between data centers less (`geo.md`, "Certification": accepted votes are copied).
//!
//! An entry is chosen once a majority has accepted it in one ballot. A follower that accepts knows of
//! two: itself, and the leader of the ballot, which had written what it sends before it sent it. Of
//! three data centers that is a majority. Where there are more, followers send copies of what they
//! tell the leader to each other.
//!
//! What is chosen is in every later leader's log, at the same index: so it stays what it is, though
//! the library will call it decided only later.

use std::collections::BTreeMap;

use omnipaxos::ballot_leader_election::Ballot;
use omnipaxos::util::NodeId;

/// What is known of who has accepted what.
#[derive(Debug)]
pub struct Learner {
    own: NodeId,
    /// All, this one included.
    nodes: Vec<NodeId>,
    /// By replica: the highest ballot in which it is known to have accepted, and up to where.
    accepted: BTreeMap<NodeId, (Ballot, usize)>,
}

impl Learner {
    /// Of the replica with number `own`, of these.
    pub fn new(own: NodeId, nodes: Vec<NodeId>) -> Self {
        Self { own, nodes, accepted: BTreeMap::new() }
    }

    fn majority(&self) -> usize {
        self.nodes.len() / 2 + 1
    }

    /// A replica has accepted the log up to an index, in a ballot. Of this replica: it will have,
    /// once what it has written is on disk.
    pub fn accepted(&mut self, node: NodeId, ballot: Ballot, index: usize) {
        for node in [node, ballot.pid] {
            let known = self.accepted.entry(node).or_insert((ballot, index));
            if (ballot, index) > *known {
                *known = (ballot, index);
            }
        }
    }

    /// To whom a copy is sent of what this replica tells the leader of a ballot: nobody, if those two
    /// are a majority.
    pub fn copied_to(&self, ballot: Ballot) -> impl Iterator<Item = NodeId> {
        let (own, leader) = (self.own, ballot.pid);
        let nodes = if self.majority() > 2 { self.nodes.as_slice() } else { &[] };
        nodes.iter().copied().filter(move |node| *node != own && *node != leader)
    }

    /// Up to where this replica has entries that are chosen. `is_hasty` is a mistake: it takes for
    /// chosen what it has.
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
