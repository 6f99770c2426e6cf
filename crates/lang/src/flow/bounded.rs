//! Takes from bounded counters.

use super::{Analysis, Slice};
use crate::diagnostic::m0607::{self, Misplaced};
use crate::diagnostic::Diagnostics;
use crate::flat::Kind;
use crate::ops::Op;

impl Analysis<'_> {
    /// M0607: an endorsed value that depends on a take. The statements of the slice run twice.
    pub(super) fn check_no_takes(&self, slice: &Slice, diagnostics: &mut Diagnostics) {
        for (_, stmt) in self.flat.live_statements().filter(|(id, _)| slice.contains(*id)) {
            if let Kind::Local { op: Op::MayTake(_) | Op::MayGive(_), .. } = &stmt.kind {
                diagnostics.push(m0607::render(Misplaced::Endorsed, stmt.span));
            }
        }
    }
}
