//! Declarations that contain or call themselves: structs, keys, functions.

/// The cycles of a graph of declarations, found in time linear in the graph.
pub(super) struct Cycles {
    /// For each node, the strongly connected component that it belongs to.
    component: Vec<usize>,
    on_cycle: Vec<bool>,
    leads_to_cycle: Vec<bool>,
    /// The nodes; outside of cycles, each node stands after the nodes that lead to it.
    finished_last: Vec<usize>,
}

impl Cycles {
    /// Finds the cycles; `edges[a]` holds the nodes that `a` leads to.
    pub(super) fn of(edges: &[Vec<usize>]) -> Self {
        let backward = reversed(edges);
        let mut component = vec![usize::MAX; edges.len()];
        let mut sizes = Vec::new();
        let finished_last = finished_last(edges);
        for &root in &finished_last {
            if component[root] != usize::MAX {
                continue;
            }
            component[root] = sizes.len();
            let (mut size, mut queue) = (0, vec![root]);
            while let Some(node) = queue.pop() {
                size += 1;
                for before in &backward[node] {
                    if component[*before] == usize::MAX {
                        component[*before] = sizes.len();
                        queue.push(*before);
                    }
                }
            }
            sizes.push(size);
        }
        let is_on_cycle = |node: usize| sizes[component[node]] > 1 || edges[node].contains(&node);
        let on_cycle: Vec<bool> = (0..edges.len()).map(is_on_cycle).collect();
        let mut leads_to_cycle = on_cycle.clone();
        let mut queue: Vec<usize> = (0..edges.len()).filter(|node| on_cycle[*node]).collect();
        while let Some(node) = queue.pop() {
            for before in &backward[node] {
                if !std::mem::replace(&mut leads_to_cycle[*before], true) {
                    queue.push(*before);
                }
            }
        }
        Self { component, on_cycle, leads_to_cycle, finished_last }
    }

    /// Returns the first node of each cycle.
    pub(super) fn firsts(&self) -> Vec<usize> {
        let mut seen = vec![false; self.component.len()];
        let nodes = 0..self.component.len();
        nodes
            .filter(|node| {
                self.on_cycle[*node] && !std::mem::replace(&mut seen[self.component[*node]], true)
            })
            .collect()
    }

    /// True if both nodes stand on one cycle.
    pub(super) fn share_one(&self, a: usize, b: usize) -> bool {
        self.on_cycle[a] && self.component[a] == self.component[b]
    }

    /// True if some path from this node never ends.
    pub(super) fn leads_to_one(&self, node: usize) -> bool {
        self.leads_to_cycle[node]
    }

    /// Returns the nodes that lead to no cycle, each after all the nodes that it leads to.
    pub(super) fn inside_out(&self) -> impl Iterator<Item = usize> + '_ {
        self.finished_last.iter().rev().copied().filter(|node| !self.leads_to_cycle[*node])
    }
}

fn reversed(edges: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut backward = vec![Vec::new(); edges.len()];
    for (from, targets) in edges.iter().enumerate() {
        for to in targets {
            backward[*to].push(from);
        }
    }
    backward
}

/// Returns the nodes in the reverse of the order in which a depth-first search leaves them.
fn finished_last(edges: &[Vec<usize>]) -> Vec<usize> {
    let (mut seen, mut finished) = (vec![false; edges.len()], Vec::new());
    for root in 0..edges.len() {
        if std::mem::replace(&mut seen[root], true) {
            continue;
        }
        let mut stack = vec![(root, 0)];
        while let Some((node, next)) = stack.pop() {
            let Some(to) = edges[node].get(next) else {
                finished.push(node);
                continue;
            };
            stack.push((node, next + 1));
            if !std::mem::replace(&mut seen[*to], true) {
                stack.push((*to, 0));
            }
        }
    }
    finished.reverse();
    finished
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cycle_is_found_once() {
        // 0 leads to the cycle of 1, 2 and 3; that leads to 4, which contains itself; 5 is alone.
        let cycles = Cycles::of(&[vec![1], vec![2], vec![3, 5], vec![1, 4], vec![4], Vec::new()]);
        assert_eq!(cycles.firsts(), [1, 4]);
        assert!(cycles.share_one(1, 3) && !cycles.share_one(3, 4) && !cycles.share_one(0, 0));
        assert_eq!(cycles.inside_out().collect::<Vec<_>>(), [5]);
        assert!((0..5).all(|node| cycles.leads_to_one(node)) && !cycles.leads_to_one(5));
    }
}
