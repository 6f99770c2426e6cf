//! Which reads of a phase are its last: a store that is told so need not be told the end.

use std::collections::BTreeSet;

use crate::code::{Instr, ReadSpec};
use crate::flat::{Operand, Slot};
use crate::split::phases::Mode;

/// The instructions of a phase after whose reads it needs nothing more of its store: neither reads
/// nor writes. A loop is among them if that holds once all of its rounds were fetched for.
pub(crate) fn last_reads(mode: Mode, code: &[Instr]) -> BTreeSet<usize> {
    if mode == Mode::Write || !code.iter().any(reads) {
        return BTreeSet::new();
    }
    (0..code.len()).filter(|at| reads(&code[*at]) && is_last(code, *at)).collect()
}

fn reads(instr: &Instr) -> bool {
    !specs(instr).is_empty()
}

/// What an instruction asks its store for.
fn specs(instr: &Instr) -> &[ReadSpec] {
    match instr {
        Instr::Fetch(specs) | Instr::ForStart { prefetch: specs, .. } => specs,
        Instr::Read { read, .. } => std::slice::from_ref(read),
        _ => &[],
    }
}

fn is_last(code: &[Instr], at: usize) -> bool {
    let (first, is_loop) = match &code[at] {
        Instr::ForStart { end, .. } => (vec![*end, at + 1], true),
        _ => (vec![at + 1], false),
    };
    let asked = specs(&code[at]);
    // Those that are not plainly among what was asked.
    let mut others: Vec<&ReadSpec> = Vec::new();
    let after = reachable(code, first, Except::RoundsOf(at), |next| match &code[next] {
        _ if next == at => false,
        Instr::Fetch(_) | Instr::Write { .. } => false,
        Instr::ForStart { prefetch, .. } => prefetch.is_empty(),
        Instr::Read { read, .. } => {
            // What a loop fetches for a round, that round finds: its slots are the loop's own.
            if !(is_loop && asked.contains(read)) {
                others.push(read);
            }
            true
        }
        _ => true,
    });
    let Some(after) = after else { return false };
    let assigned: BTreeSet<Slot> = after.iter().flat_map(|i| assigns(&code[*i])).collect();
    others.into_iter().all(|read| {
        (asked.contains(read) && is_settled(read, &assigned)) || was_asked(code, at, read)
    })
}

/// Whether a read was asked for on every way to `at`, and means the same ever since.
fn was_asked(code: &[Instr], at: usize, read: &ReadSpec) -> bool {
    let asks = |i: &usize| matches!(&code[*i], Instr::Fetch(specs) if specs.contains(read));
    (0..at).filter(asks).any(|fetch| {
        let since = reachable(code, vec![fetch + 1], Except::Nothing, |_| true).unwrap_or_default();
        let assigned: BTreeSet<Slot> = since.iter().flat_map(|i| assigns(&code[*i])).collect();
        let goes_round =
            reachable(code, vec![0], Except::Instr(fetch), |next| next != at).is_none();
        is_settled(read, &assigned) && !goes_round
    })
}

/// Whether what a read names is none of these.
fn is_settled(read: &ReadSpec, assigned: &BTreeSet<Slot>) -> bool {
    let mut operands = read.object.iter().chain(&read.args);
    !operands.any(|operand| matches!(operand, Operand::Slot(slot) if assigned.contains(slot)))
}

/// The instructions that may run from these on; none if one of them is not allowed.
fn reachable(
    code: &[Instr],
    from: Vec<usize>,
    except: Except,
    mut is_allowed: impl FnMut(usize) -> bool,
) -> Option<BTreeSet<usize>> {
    let mut reached = BTreeSet::new();
    let mut waiting = from;
    while let Some(at) = waiting.pop() {
        if at >= code.len() || except == Except::Instr(at) || !reached.insert(at) {
            continue;
        }
        if !is_allowed(at) {
            return None;
        }
        match &code[at] {
            Instr::ForNext(start) if except == Except::RoundsOf(*start) => {}
            Instr::Jump(target) | Instr::WhileNext(target) | Instr::ForNext(target) => {
                waiting.push(*target);
            }
            Instr::JumpUnless(_, target) => waiting.extend([*target, at + 1]),
            Instr::ForStart { end, .. } => waiting.extend([*end, at + 1]),
            Instr::Return { .. } => {}
            _ => waiting.push(at + 1),
        }
    }
    Some(reached)
}

/// What is left out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Except {
    Nothing,
    Instr(usize),
    /// Further rounds of the loop that starts here.
    RoundsOf(usize),
}

fn assigns(instr: &Instr) -> Vec<Slot> {
    match instr {
        Instr::Local { dst, .. }
        | Instr::Copy { dst, .. }
        | Instr::Now { dst }
        | Instr::Unique { dst, .. }
        | Instr::Replay { dst, .. } => vec![*dst],
        Instr::Read { dsts, .. } => dsts.clone(),
        Instr::Write { dst, .. } => dst.iter().copied().collect(),
        Instr::ForStart { columns, .. } => columns.iter().map(|(_, slot)| *slot).collect(),
        _ => Vec::new(),
    }
}
