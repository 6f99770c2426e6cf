//! Detection of a phase's last reads: a store that is told about them needs no message at the end.

use std::collections::BTreeSet;

use crate::code::Instr;
use crate::split::phases::Mode;

/// Returns the instructions whose reads are the phase's last use of its store: no read or write
/// follows. A loop is among them if that holds once all of its rounds were prefetched. `loose`
/// holds the reads without an earlier fetch.
pub(crate) fn last_reads(mode: Mode, code: &[Instr], loose: &BTreeSet<usize>) -> BTreeSet<usize> {
    if mode == Mode::Write {
        return BTreeSet::new();
    }
    let asks = |at: usize| match &code[at] {
        Instr::Fetch(_) => true,
        Instr::ForStart { prefetch, .. } => !prefetch.is_empty(),
        _ => loose.contains(&at),
    };
    let is_in_loop = in_loops(code);
    // For each instruction, true if a read follows from there on. Backward jumps occur only in
    // loops.
    let mut is_needed = vec![false; code.len() + 1];
    let mut last = BTreeSet::new();
    for at in (0..code.len()).rev() {
        let goes_on = match &code[at] {
            Instr::Jump(target) => is_needed[*target],
            Instr::JumpUnless(_, target) => is_needed[at + 1] || is_needed[*target],
            Instr::ForStart { end, .. } => is_needed[at + 1] || is_needed[*end],
            Instr::Return { .. } => false,
            _ => is_needed[at + 1],
        };
        if asks(at) && !goes_on && !is_in_loop[at] {
            last.insert(at);
        }
        is_needed[at] = goes_on || asks(at);
    }
    last
}

/// For each instruction, true if it may run more than once. The start of a loop is outside the
/// loop.
fn in_loops(code: &[Instr]) -> Vec<bool> {
    let mut ends: Vec<usize> = Vec::new();
    let mut whiles = 0;
    let mut found = Vec::with_capacity(code.len());
    for (at, instr) in code.iter().enumerate() {
        while ends.last().is_some_and(|end| *end <= at) {
            ends.pop();
        }
        whiles -= usize::from(matches!(instr, Instr::WhileEnd));
        found.push(whiles > 0 || !ends.is_empty());
        match instr {
            Instr::WhileStart => whiles += 1,
            Instr::ForStart { end, .. } => ends.push(*end),
            _ => {}
        }
    }
    found
}
