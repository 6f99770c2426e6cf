//! Questions about instructions.

use mingle_lang::code::Instr;

/// True if the instruction needs its store.
pub(crate) fn visits(instr: &Instr) -> bool {
    match instr {
        Instr::Fetch(_) | Instr::Read { .. } | Instr::Write { .. } => true,
        Instr::ForStart { prefetch, .. } => !prefetch.is_empty(),
        _ => false,
    }
}

/// True if the instruction reads its store.
pub(crate) fn reads(instr: &Instr) -> bool {
    match instr {
        Instr::Fetch(_) | Instr::Read { .. } => true,
        Instr::ForStart { prefetch, .. } => !prefetch.is_empty(),
        _ => false,
    }
}
