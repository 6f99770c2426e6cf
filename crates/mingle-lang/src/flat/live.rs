//! What something depends on: writes, `require`, `return`, `while`, and what they use.

use super::{Flat, Kind, StmtId};

/// Marks the statements that something depends on; a read whose value is not used is dropped.
pub(super) fn mark(flat: &mut Flat) {
    let mut defs: Vec<Vec<StmtId>> = vec![Vec::new(); flat.slots.len()];
    for (index, stmt) in flat.statements.iter().enumerate() {
        for dst in stmt.dsts() {
            defs[dst.index()].push(StmtId(index as u32));
        }
    }
    let roots = flat.statements.iter().enumerate().filter(|(_, stmt)| {
        matches!(
            stmt.kind,
            Kind::Write(_)
                | Kind::Require { .. }
                | Kind::Return { .. }
                | Kind::While { .. }
                | Kind::Agree { .. }
        )
    });
    let mut queue: Vec<StmtId> = roots.map(|(index, _)| StmtId(index as u32)).collect();
    let mut live = vec![false; flat.statements.len()];
    while let Some(id) = queue.pop() {
        if std::mem::replace(&mut live[id.index()], true) {
            continue;
        }
        let stmt = flat.get(id);
        queue.extend(stmt.parent);
        // A loop lives for its rounds; each list in it lives only if its items are used.
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
