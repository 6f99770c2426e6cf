//! The invariants at the end.

use std::collections::{BTreeMap, VecDeque};

use mingle_geo::{DcId, Timestamp};
use mingle_model::TransactionId;

use super::World;

impl World {
    pub fn check(&self) {
        for partition in 0..self.partitions {
            let groups = (0..self.dcs).map(|dc| self.nodes[&(dc, partition)].group.as_ref());
            let logs = groups.map(|group| group.expect("it runs"));
            let logs: Vec<_> = logs.map(|group| (group.applied(), group.certifier())).collect();
            assert!(logs.windows(2).all(|pair| pair[0] == pair[1]), "partition {partition}");
        }
        for ((dc, partition), node) in &self.nodes {
            let group = node.group.as_ref().expect("it runs");
            let left = group.certifier().undecided().count();
            assert_eq!(left, 0, "d{dc} partition {partition} has undecided transactions");
            let all: BTreeMap<_, _> = node
                .delivered
                .iter()
                .flat_map(|delivery| &delivery.transactions)
                .map(|one| ((*partition, one.timestamp()), one.id))
                .collect();
            let agreed = self.agreed.iter().filter(|((at, _), _)| at == partition);
            let agreed: BTreeMap<_, _> = agreed.map(|(at, id)| (*at, *id)).collect();
            let differ = agreed.iter().find(|(at, id)| all.get(at) != Some(id));
            assert_eq!(differ, None, "d{dc} partition {partition}");
            assert_eq!(all.len(), agreed.len(), "d{dc} partition {partition}");
        }
        for (id, commit_vec) in &self.acknowledged {
            let writes =
                self.all[id].iter().enumerate().filter(|(_, part)| !part.updates.is_empty());
            for (index, part) in writes {
                let partition = part.participants[index].0;
                let at = (partition, commit_vec[DcId::STRONG]);
                assert_eq!(self.agreed.get(&at), Some(id), "an acknowledged commit is lost");
            }
        }
        let delivered: BTreeMap<Timestamp, TransactionId> =
            self.agreed.iter().map(|((_, timestamp), id)| (*timestamp, *id)).collect();
        assert!(delivered.values().all(|id| !self.aborted.contains(id)));
        let readers = self.acknowledged.iter().map(|(id, at)| (at[DcId::STRONG], *id));
        let committed: BTreeMap<Timestamp, TransactionId> = readers.chain(delivered).collect();
        let committed: VecDeque<_> = committed.into_iter().collect();
        for (index, (_, later)) in committed.iter().enumerate() {
            for (before, earlier) in committed.iter().take(index) {
                let has_seen = self.all[later][0].snap_vec[DcId::STRONG] >= *before;
                assert!(has_seen || !self.conflict(earlier, later), "{earlier} and {later}");
            }
        }
    }

    fn conflict(&self, a: &TransactionId, b: &TransactionId) -> bool {
        let touches = |id| self.all[id].iter().flat_map(|part| &part.touches);
        touches(a).any(|a| touches(b).any(|b| self.conflicts.between(a, b)))
    }
}
