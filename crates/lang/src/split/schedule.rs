//! The order within a block that needs the fewest round trips.
//!
//! Reads whose refs are known are sent together, as early as possible. Local statements move up to
//! make refs known. Statements that write, may fail or branch keep their order. A read passes a
//! write only if that write cannot change the value read: an answer that was fetched early is
//! joined with the transaction's own writes at the place where the program reads it.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap, HashSet, VecDeque};

use super::Mutation;
use super::tree::{Node, Prefetch};
use crate::flat::{Flat, Kind, Operand, ReadKind, Slot, StmtId, WriteKind};
use crate::hir::StoreId;

/// Orders the blocks of a phase, and adds the fetches.
pub(crate) fn schedule(flat: &Flat, mutation: Mutation, nodes: Vec<Node>) -> Vec<Node> {
    let mut assignments: HashMap<Slot, usize> = HashMap::new();
    for (_, stmt) in flat.live_statements() {
        for dst in stmt.dsts() {
            *assignments.entry(dst).or_default() += 1;
        }
    }
    let mutable =
        assignments.into_iter().filter(|(_, count)| *count > 1).map(|(slot, _)| slot).collect();
    Scheduler { flat, mutation, mutable }.block(nodes)
}

struct Scheduler<'a> {
    flat: &'a Flat,
    mutation: Mutation,
    /// Slots that more than one statement assigns.
    mutable: HashSet<Slot>,
}

/// A node and its properties, while its block is ordered.
struct Item {
    node: Node,
    uses: Vec<Slot>,
    assigns: Vec<Slot>,
    /// True if the node keeps its place among the other pinned nodes.
    pinned: bool,
    /// The read, if its answer may be fetched before its turn.
    fetch: Option<StmtId>,
    /// True if the node uses a slot that this block assigns more than once: then even its fetch
    /// waits for its turn.
    tied: bool,
    fetched: bool,
}

/// The items that wait for slots.
struct Waiting {
    pending: HashMap<Slot, usize>,
    users: HashMap<Slot, Vec<usize>>,
    unmet: Vec<usize>,
    /// Local statements that are ready, in program order.
    locals: BinaryHeap<Reverse<usize>>,
    /// Reads whose refs are known.
    fetches: Vec<usize>,
    /// Reads that were fetched and are not pinned.
    reads: BinaryHeap<Reverse<usize>>,
}

impl Waiting {
    fn new(items: &[Item]) -> Self {
        let mut waiting = Self {
            pending: HashMap::new(),
            users: HashMap::new(),
            unmet: vec![0; items.len()],
            locals: BinaryHeap::new(),
            fetches: Vec::new(),
            reads: BinaryHeap::new(),
        };
        for slot in items.iter().flat_map(|item| &item.assigns) {
            *waiting.pending.entry(*slot).or_default() += 1;
        }
        for (index, item) in items.iter().enumerate().filter(|(_, item)| !item.tied) {
            for slot in item.uses.iter().filter(|slot| waiting.pending.contains_key(slot)) {
                waiting.unmet[index] += 1;
                waiting.users.entry(*slot).or_default().push(index);
            }
            if waiting.unmet[index] == 0 {
                waiting.ready(items, index);
            }
        }
        waiting
    }

    fn ready(&mut self, items: &[Item], index: usize) {
        if items[index].fetch.is_some() {
            self.fetches.push(index);
        } else if !items[index].pinned {
            self.locals.push(Reverse(index));
        }
    }

    /// True if all assignments of a slot in this block are done.
    fn is_assigned(&self, slot: Slot) -> bool {
        self.pending.get(&slot).is_none_or(|count| *count == 0)
    }

    /// Counts an item's assignments as done, and readies the items that waited only for them.
    fn done(&mut self, items: &[Item], index: usize) {
        for slot in &items[index].assigns {
            let Some(count) = self.pending.get_mut(slot) else { continue };
            *count -= 1;
            if *count > 0 {
                continue;
            }
            for user in self.users.remove(slot).unwrap_or_default() {
                self.unmet[user] -= 1;
                if self.unmet[user] == 0 {
                    self.ready(items, user);
                }
            }
        }
    }
}

impl Scheduler<'_> {
    fn block(&self, nodes: Vec<Node>) -> Vec<Node> {
        let nodes: Vec<Node> = nodes.into_iter().map(|node| self.inner(node)).collect();
        let mut ordered = Vec::new();
        let mut part = Vec::new();
        for node in nodes {
            // Statements after a branch that may return, or after a command, stay after it.
            let is_barrier = Self::returns(&node) || self.commands(&node);
            part.push(node);
            if is_barrier {
                ordered.extend(self.order(std::mem::take(&mut part)));
            }
        }
        ordered.extend(self.order(part));
        ordered
    }

    fn inner(&self, node: Node) -> Node {
        match node {
            Node::If(id, then, otherwise) => Node::If(id, self.block(then), self.block(otherwise)),
            Node::While(id, head, body) => Node::While(id, self.block(head), self.block(body)),
            Node::For(id, columns, _, body) => {
                let (prefetch, body) = self.prefetch(body);
                Node::For(id, columns, prefetch, body)
            }
            other => other,
        }
    }

    /// Orders a loop's body. The first fetch of the body is done for many rounds at once, for the
    /// reads that depend on nothing that the rounds change.
    fn prefetch(&self, body: Vec<Node>) -> (Option<Prefetch>, Vec<Node>) {
        if body.iter().any(|node| self.commands(node)) {
            return (None, self.block(body));
        }
        let ordered = self.block(body);
        let assigned: HashSet<Slot> = ordered.iter().flat_map(|node| self.assigns(node)).collect();
        let mut known: HashSet<Slot> = HashSet::new();
        let (mut steps, mut reads, mut rest) = (Vec::new(), Vec::new(), Vec::new());
        let mut first_fetch = true;
        for node in ordered {
            let is_known = |slot: &Slot| {
                !self.mutable.contains(slot) && (known.contains(slot) || !assigned.contains(slot))
            };
            match &node {
                Node::Run(id) if self.is_local(*id) && self.uses(&node).iter().all(&is_known) => {
                    known.extend(
                        self.assigns(&node).into_iter().filter(|slot| !self.mutable.contains(slot)),
                    );
                    steps.push(node.clone());
                    rest.push(node);
                }
                Node::Replay(_, slot) if !self.mutable.contains(slot) => {
                    known.insert(*slot);
                    steps.push(node.clone());
                    rest.push(node);
                }
                Node::Fetch(fetched) if first_fetch => {
                    first_fetch = false;
                    let (early, late): (Vec<StmtId>, Vec<StmtId>) = fetched
                        .iter()
                        .partition(|id| self.uses(&Node::Run(**id)).iter().all(&is_known));
                    reads.extend(early);
                    if !late.is_empty() {
                        rest.push(Node::Fetch(late));
                    }
                }
                _ => rest.push(node),
            }
        }
        if reads.is_empty() {
            return (None, rest);
        }
        let needed = self.needed_steps(steps, &reads);
        (Some(Prefetch { steps: needed, reads }), rest)
    }

    /// Returns the steps on which the refs of these reads depend.
    fn needed_steps(&self, steps: Vec<Node>, reads: &[StmtId]) -> Vec<Node> {
        let mut needed: HashSet<Slot> =
            reads.iter().flat_map(|id| self.uses(&Node::Run(*id))).collect();
        let mut kept: Vec<Node> = Vec::new();
        for step in steps.into_iter().rev() {
            if self.assigns(&step).iter().any(|slot| needed.contains(slot)) {
                needed.extend(self.uses(&step));
                kept.push(step);
            }
        }
        kept.reverse();
        kept
    }

    /// Orders nodes among which control only goes forward.
    fn order(&self, nodes: Vec<Node>) -> Vec<Node> {
        let mut items = self.items(nodes);
        let mut waiting = Waiting::new(&items);
        let mut pinned =
            (0..items.len()).filter(|index| items[*index].pinned).collect::<VecDeque<usize>>();
        let mut ordered = Vec::with_capacity(items.len() + 2);
        loop {
            // The order is: local statements, then all fetches that are ready, then the reads that
            // use them.
            let next = if let Some(local) = waiting.locals.pop() {
                local.0
            } else {
                let is_known =
                    |slot: &Slot| self.mutable.contains(slot) || waiting.is_assigned(*slot);
                let head = pinned.front().copied().filter(|head| {
                    let item = &items[*head];
                    item.tied && item.fetch.is_some() && item.uses.iter().all(is_known)
                });
                waiting.fetches.extend(head);
                let ready: BTreeSet<usize> =
                    std::mem::take(&mut waiting.fetches).into_iter().collect();
                let ready: Vec<usize> =
                    ready.into_iter().filter(|index| !items[*index].fetched).collect();
                if !ready.is_empty() {
                    ordered.push(Node::Fetch(
                        ready.iter().filter_map(|index| items[*index].fetch).collect(),
                    ));
                }
                for index in ready {
                    items[index].fetched = true;
                    if !items[index].pinned {
                        waiting.reads.push(Reverse(index));
                    }
                }
                match waiting.reads.pop() {
                    Some(read) => read.0,
                    None => match pinned.pop_front() {
                        Some(head) => head,
                        None => break,
                    },
                }
            };
            waiting.done(&items, next);
            ordered.push(std::mem::replace(&mut items[next].node, Node::Fetch(Vec::new())));
        }
        ordered
    }

    fn items(&self, nodes: Vec<Node>) -> Vec<Item> {
        let reassigned: HashSet<Slot> = nodes
            .iter()
            .flat_map(|node| self.assigns(node))
            .filter(|slot| self.mutable.contains(slot))
            .collect();
        let mut writes: Vec<(StoreId, &WriteKind)> = Vec::new();
        let mut items = Vec::new();
        for node in nodes {
            let (uses, assigns) = (self.uses(&node), self.assigns(&node));
            let is_tied = self.mutation != Mutation::VariablesPass
                && uses.iter().chain(&assigns).any(|slot| reassigned.contains(slot));
            let read = self.read_of(&node);
            let after_write = read.is_some_and(|(store, kind)| {
                writes.iter().any(|(written, write)| *written == store && write.may_change(kind))
            }) && self.mutation != Mutation::ReadsPassWrites;
            let is_answered = matches!(&node, Node::Run(id) if self.has_policy(*id));
            let is_free = match &node {
                Node::Run(id) => self.is_local(*id) || read.is_some(),
                Node::Replay(..) => true,
                Node::Record(..) => true,
                _ => false,
            };
            let fetch = match &node {
                // A query after a write of this phase is sent when that write was sent.
                Node::Run(id)
                    if read.is_some_and(|(_, kind)| {
                        !(after_write && matches!(kind, ReadKind::Query(_)))
                    }) && !self.has_policy(*id) =>
                {
                    Some(*id)
                }
                _ => None,
            };
            self.writes_of(&node, &mut writes);
            items.push(Item {
                pinned: !is_free || is_tied || after_write || is_answered,
                tied: is_tied,
                fetch,
                fetched: false,
                node,
                uses,
                assigns,
            });
        }
        items
    }

    fn read_of(&self, node: &Node) -> Option<(StoreId, &ReadKind)> {
        match node {
            Node::Run(id) => match &self.flat.get(*id).kind {
                Kind::Read(access) => Some((access.store, &access.kind)),
                _ => None,
            },
            _ => None,
        }
    }

    /// True if a read has a policy: it is asked where it stands, since its bound begins there.
    fn has_policy(&self, id: StmtId) -> bool {
        matches!(&self.flat.get(id).kind, Kind::Read(access) if access.answering.is_some())
    }

    fn is_local(&self, id: StmtId) -> bool {
        matches!(
            self.flat.get(id).kind,
            Kind::Local { .. }
                | Kind::Copy { .. }
                | Kind::Now { .. }
                | Kind::Unique { .. }
                | Kind::Endorse { .. }
        )
    }

    fn writes_of<'a>(&'a self, node: &Node, writes: &mut Vec<(StoreId, &'a WriteKind)>) {
        match node {
            Node::Run(id) => {
                if let Kind::Write(access) = &self.flat.get(*id).kind {
                    let write = (access.store, &access.kind);
                    // Each write once: every later read is compared with all of them.
                    if !writes.contains(&write) {
                        writes.push(write);
                    }
                }
            }
            Node::If(_, a, b) | Node::While(_, a, b) => {
                a.iter().chain(b).for_each(|node| self.writes_of(node, writes));
            }
            Node::For(_, _, _, body) => body.iter().for_each(|node| self.writes_of(node, writes)),
            _ => {}
        }
    }

    /// True if a branch of this node contains a `return`.
    fn returns(node: &Node) -> bool {
        match node {
            Node::Return(..) => true,
            Node::If(_, a, b) => a.iter().chain(b).any(Self::returns),
            _ => false,
        }
    }

    /// True if this node contains a command.
    fn commands(&self, node: &Node) -> bool {
        let mut writes = Vec::new();
        self.writes_of(node, &mut writes);
        writes.iter().any(|(_, kind)| matches!(kind, WriteKind::Command(_)))
    }

    /// Returns the slots that a node and its inner nodes use.
    fn uses(&self, node: &Node) -> Vec<Slot> {
        let operands = |id: StmtId| -> Vec<Slot> {
            self.flat.get(id).operands().into_iter().filter_map(Operand::slot).collect()
        };
        let mut uses = match node {
            Node::Run(id)
            | Node::If(id, ..)
            | Node::While(id, ..)
            | Node::For(id, ..)
            | Node::Return(id, _) => operands(*id),
            Node::Record(_, slot) => vec![*slot],
            Node::Replay(..) | Node::Fetch(_) => Vec::new(),
        };
        for inner in inner_nodes(node) {
            uses.extend(self.uses(inner));
        }
        if !inner_nodes(node).is_empty() {
            let assigned: HashSet<Slot> = self.assigns(node).into_iter().collect();
            uses.retain(|slot| !assigned.contains(slot) || self.mutable.contains(slot));
        }
        uses
    }

    /// Returns the slots that a node and its inner nodes assign.
    fn assigns(&self, node: &Node) -> Vec<Slot> {
        let mut assigns = match node {
            Node::Run(id) | Node::For(id, ..) => self.flat.get(*id).dsts(),
            Node::Replay(_, slot) => vec![*slot],
            _ => Vec::new(),
        };
        for inner in inner_nodes(node) {
            assigns.extend(self.assigns(inner));
        }
        assigns
    }
}

fn inner_nodes(node: &Node) -> Vec<&Node> {
    match node {
        Node::If(_, a, b) | Node::While(_, a, b) => a.iter().chain(b).collect(),
        Node::For(_, _, _, body) => body.iter().collect(),
        _ => Vec::new(),
    }
}
