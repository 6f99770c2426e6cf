//! Precedence between nodes: a graph with reasons on its edges, its order, or a shortest cycle.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::limits::CYCLE_EDGES_MAX;

/// The reason why one node comes before another. Keys and transactions are numbers of the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    So,
    /// Real time: edges to, along and from the line of moments.
    Rt,
    /// A transaction begins before it commits; this is not counted as a step.
    Inside,
    Wr {
        key: usize,
    },
    WwRecorded {
        key: usize,
    },
    WwForced {
        key: usize,
        reader: usize,
    },
    WwOverlap {
        key: usize,
    },
    Rw {
        key: usize,
        writer: usize,
    },
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrow {
    pub to: usize,
    pub reason: Reason,
}

/// One step of a cycle.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub from: usize,
    pub to: usize,
    pub reason: Reason,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Graph {
    pub arrows: Vec<Vec<Arrow>>,
}

impl Graph {
    pub fn new(count: usize) -> Self {
        Self { arrows: vec![Vec::new(); count] }
    }

    pub fn add(&mut self, from: usize, to: usize, reason: Reason) {
        self.arrows[from].push(Arrow { to, reason });
    }

    pub fn count(&self) -> usize {
        self.arrows.len()
    }

    /// Returns the number of arrows to each node.
    pub fn indegrees(&self) -> Vec<usize> {
        let mut degrees = vec![0; self.count()];
        for arrow in self.arrows.iter().flatten() {
            degrees[arrow.to] += 1;
        }
        degrees
    }

    /// Returns the nodes in an order that all arrows follow, always taking the smallest free node
    /// first; none if there is a cycle.
    pub fn order(&self) -> Option<Vec<usize>> {
        let mut degrees = self.indegrees();
        let free = (0..self.count()).filter(|node| degrees[*node] == 0);
        let mut free: BinaryHeap<Reverse<usize>> = free.map(Reverse).collect();
        let mut order = Vec::with_capacity(self.count());
        while let Some(Reverse(node)) = free.pop() {
            order.push(node);
            for arrow in &self.arrows[node] {
                degrees[arrow.to] -= 1;
                if degrees[arrow.to] == 0 {
                    free.push(Reverse(arrow.to));
                }
            }
        }
        (order.len() == self.count()).then_some(order)
    }

    /// Returns a shortest cycle, counting runs of session order and of real time as one step; none
    /// if there is no cycle. At the bound on edges, returns the shortest one so far.
    pub fn shortest_cycle(&self) -> Option<Vec<Step>> {
        let mut component = vec![usize::MAX; self.count()];
        for (number, members) in self.cyclic_components().iter().enumerate() {
            for node in members {
                component[*node] = number;
            }
        }
        let mut search = CycleSearch::new(self, component);
        let mut best: Option<(usize, Vec<Step>)> = None;
        for start in 0..self.count() {
            let bound = best.as_ref().map_or(usize::MAX, |(length, _)| *length);
            if let Some(found) = search.from(start, bound) {
                best = Some(found);
            }
            if search.edges > CYCLE_EDGES_MAX && best.is_some() {
                break;
            }
        }
        best.map(|(_, steps)| steps)
    }

    /// Returns a shortest path from one node to another, counted in the same way; none if there is
    /// none.
    pub fn path(&self, from: usize, to: usize) -> Option<Vec<Step>> {
        let mut closed = self.clone();
        for arrows in &mut closed.arrows {
            arrows.retain(|arrow| arrow.to != from);
        }
        closed.add(to, from, Reason::Inside);
        let mut search = CycleSearch::new(&closed, vec![0; self.count()]);
        let (_, mut steps) = search.from(from, usize::MAX)?;
        steps.pop();
        Some(steps)
    }

    /// Returns the strongly connected components that have a cycle (Tarjan 1972, without
    /// recursion).
    fn cyclic_components(&self) -> Vec<Vec<usize>> {
        const NEW: usize = usize::MAX;
        let (mut number, mut low) = (vec![NEW; self.count()], vec![0; self.count()]);
        let (mut stack, mut on_stack) = (Vec::new(), vec![false; self.count()]);
        let (mut next, mut components) = (0, Vec::new());
        for root in 0..self.count() {
            let mut calls = if number[root] == NEW { vec![(root, 0)] } else { Vec::new() };
            while let Some((node, place)) = calls.pop() {
                if place == 0 {
                    (number[node], low[node]) = (next, next);
                    next += 1;
                    stack.push(node);
                    on_stack[node] = true;
                }
                if let Some(arrow) = self.arrows[node].get(place) {
                    calls.push((node, place + 1));
                    if number[arrow.to] == NEW {
                        calls.push((arrow.to, 0));
                    } else if on_stack[arrow.to] {
                        low[node] = low[node].min(number[arrow.to]);
                    }
                    continue;
                }
                if let Some(&(parent, _)) = calls.last() {
                    low[parent] = low[parent].min(low[node]);
                }
                if low[node] == number[node] {
                    let start = stack.iter().rposition(|member| *member == node).unwrap_or(0);
                    let members = stack.split_off(start);
                    for member in &members {
                        on_stack[*member] = false;
                    }
                    let loops = self.arrows[node].iter().any(|arrow| arrow.to == node);
                    if members.len() > 1 || loops {
                        components.push(members);
                    }
                }
            }
        }
        components
    }
}

/// The number of states of a node, by the kind of run that reached it: continuing a run costs
/// nothing.
const RUNS: usize = 3;

fn run(reason: Reason) -> usize {
    match reason {
        Reason::So => 1,
        Reason::Rt => 2,
        _ => 0,
    }
}

/// Returns the state after an arrow, and the cost of the arrow.
fn follow(state: usize, reason: Reason) -> (usize, usize) {
    match reason {
        Reason::Inside => (state, 0),
        Reason::So | Reason::Rt if run(reason) == state => (state, 0),
        _ => (run(reason), 1),
    }
}

struct CycleSearch<'g> {
    graph: &'g Graph,
    component: Vec<usize>,
    /// For each node and run, the lowest cost to reach it.
    costs: Vec<usize>,
    came: Vec<Option<(usize, Step)>>,
    touched: Vec<usize>,
    edges: u64,
}

impl<'g> CycleSearch<'g> {
    fn new(graph: &'g Graph, component: Vec<usize>) -> Self {
        let states = graph.count() * RUNS;
        Self {
            graph,
            component,
            costs: vec![usize::MAX; states],
            came: vec![None; states],
            touched: Vec::new(),
            edges: 0,
        }
    }

    /// Returns a shortest cycle through `start` that is shorter than the bound.
    fn from(&mut self, start: usize, mut bound: usize) -> Option<(usize, Vec<Step>)> {
        if self.component[start] == usize::MAX {
            return None;
        }
        for state in self.touched.drain(..) {
            self.costs[state] = usize::MAX;
            self.came[state] = None;
        }
        let mut open = VecDeque::from([(start * RUNS, 0)]);
        self.costs[start * RUNS] = 0;
        self.touched.push(start * RUNS);
        let mut found = None;
        while let Some((state, cost)) = open.pop_front() {
            if cost >= bound {
                break;
            }
            if cost > self.costs[state] {
                continue;
            }
            let node = state / RUNS;
            for arrow in &self.graph.arrows[node] {
                self.edges += 1;
                if self.component[arrow.to] != self.component[start] {
                    continue;
                }
                let (run, price) = follow(state % RUNS, arrow.reason);
                let (next, total) = (arrow.to * RUNS + run, cost + price);
                let step = Step { from: node, to: arrow.to, reason: arrow.reason };
                if arrow.to == start && total < bound {
                    // A step without cost may still lead back at a lower cost.
                    (bound, found) = (total, Some((state, step)));
                } else if total < self.costs[next] {
                    self.costs[next] = total;
                    self.came[next] = Some((state, step));
                    self.touched.push(next);
                    if price == 0 {
                        open.push_front((next, total));
                    } else {
                        open.push_back((next, total));
                    }
                }
            }
        }
        found.map(|(state, step)| (bound, self.path(state, step)))
    }

    fn path(&self, mut state: usize, last: Step) -> Vec<Step> {
        let mut steps = vec![last];
        while let Some((before, step)) = self.came[state] {
            steps.push(step);
            state = before;
        }
        steps.reverse();
        steps
    }
}
