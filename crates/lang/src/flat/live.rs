//! The live statements: writes, `require`, `return`, `while`, and everything that they use.

use super::{Flat, Kind, Stmt, StmtId};

/// Marks the live statements; a read whose value is not used is dropped.
pub(super) fn mark(flat: &mut Flat) {
    mark_but(flat, &[]);
}

/// Like [`mark`]; but the loops in `loops`, in ascending order, are live only if some statement
/// depends on their contents.
pub(super) fn mark_but(flat: &mut Flat, loops: &[StmtId]) {
    let mut defs: Vec<Vec<StmtId>> = vec![Vec::new(); flat.slots.len()];
    for (index, stmt) in flat.statements.iter().enumerate() {
        for dst in stmt.dsts() {
            defs[dst.index()].push(StmtId(index as u32));
        }
    }
    let is_root = |(index, stmt): (usize, &Stmt)| {
        let id = StmtId(index as u32);
        let is_root = match stmt.kind {
            Kind::Write(_)
            | Kind::Hold(_)
            | Kind::Require { .. }
            | Kind::Return { .. }
            | Kind::Agree { .. } => true,
            Kind::While { .. } => loops.binary_search(&id).is_err(),
            _ => false,
        };
        is_root.then_some(id)
    };
    let mut queue: Vec<StmtId> = flat.statements.iter().enumerate().filter_map(is_root).collect();
    let mut live = vec![false; flat.statements.len()];
    while let Some(id) = queue.pop() {
        if std::mem::replace(&mut live[id.index()], true) {
            continue;
        }
        let stmt = flat.get(id);
        queue.extend(stmt.parent);
        // A live loop needs its number of rounds; each of its lists is live only if its items are
        // used.
        let operands = match &stmt.kind {
            Kind::For { count, .. } => vec![count],
            _ => stmt.operands(),
        };
        for slot in operands.into_iter().filter_map(super::Operand::slot) {
            for def in &defs[slot.index()] {
                queue.push(*def);
                if let Kind::For { columns, .. } = &flat.get(*def).kind {
                    let lists = columns.iter().filter(|(_, item)| *item == slot);
                    let lists = lists.filter_map(|(list, _)| list.slot());
                    queue.extend(lists.flat_map(|list| defs[list.index()].iter().copied()));
                }
            }
        }
    }
    flat.live = live;
}
