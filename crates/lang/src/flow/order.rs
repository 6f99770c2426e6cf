//! The order in which a transaction visits its stores.

use super::Analysis;
use super::rules::{Need, Needs};
use crate::diagnostic::{Diagnostics, m0305};
use crate::hir::StoreId;

impl Analysis<'_> {
    /// Stronger stores first, then as data flows, then as declared. On a cycle: reports it, and
    /// gives the order of declaration.
    pub(super) fn visiting_order(
        &self,
        needs: &Needs,
        diagnostics: &mut Diagnostics,
    ) -> Vec<StoreId> {
        let mut left = self.stores.clone();
        let mut order = Vec::new();
        while !left.is_empty() {
            let next = left.iter().position(|store| {
                !left.iter().any(|other| self.comes_before(*other, *store, needs))
            });
            let Some(next) = next else {
                self.report_cycle(&left, needs, diagnostics);
                order.extend(left);
                return order;
            };
            order.push(left.remove(next));
        }
        order
    }

    fn comes_before(&self, a: StoreId, b: StoreId, needs: &Needs) -> bool {
        if a == b {
            return false;
        }
        let (level_a, level_b) = (self.program.level_of(a), self.program.level_of(b));
        self.levels().is_stronger(level_a, level_b)
            || self.transaction.isolated.is_some() && level_a == level_b && a < b
            || needs.needs.iter().any(|need| need.before == a && need.after == b)
    }

    /// Finds a shortest cycle of needs among stores that block each other, and reports it.
    fn report_cycle(&self, left: &[StoreId], needs: &Needs, diagnostics: &mut Diagnostics) {
        let within = |need: &&Need| left.contains(&need.before) && left.contains(&need.after);
        let inner: Vec<&Need> = needs.needs.iter().filter(within).collect();
        let mut best: Option<(&Need, Vec<&Need>)> = None;
        for first in &inner {
            if let Some(back) = shortest_way(&inner, first.after, first.before)
                && best.as_ref().is_none_or(|(_, way)| back.len() < way.len())
            {
                best = Some((first, back));
            }
        }
        if let Some((there, back)) = best {
            let last = back.last().expect("a way has a step");
            let mut diagnostic = self.cycle_error(there, last);
            for step in &back[..back.len() - 1] {
                for label in self.path_labels(&step.by, self.bit_of(step.before)) {
                    diagnostic = diagnostic.with_label(label.span, label.message);
                }
            }
            diagnostics.push_distinct(diagnostic);
            return;
        }
        // Without a cycle of data, `isolated` forbids the one way that data flows.
        let name = |store: StoreId| self.program.stores[store.index()].name.to_string();
        if let (Some(isolated), Some(need)) =
            (self.transaction.isolated, inner.iter().find(|need| need.after < need.before))
        {
            let path = self.path_labels(&need.by, self.bit_of(need.before));
            let span = self.flat.get(need.by.stmt).span;
            diagnostics.push_distinct(m0305::render_isolated(
                span,
                isolated,
                &name(need.before),
                &name(need.after),
                path,
            ));
        }
    }
}

fn shortest_way<'a>(needs: &[&'a Need], from: StoreId, to: StoreId) -> Option<Vec<&'a Need>> {
    let mut ways: Vec<(StoreId, Vec<&'a Need>)> = vec![(from, Vec::new())];
    let mut seen = vec![from];
    let mut at = 0;
    while at < ways.len() {
        let (store, way) = ways[at].clone();
        if store == to {
            return Some(way);
        }
        for need in needs.iter().filter(|need| need.before == store) {
            if !seen.contains(&need.after) || need.after == to && store != to {
                seen.push(need.after);
                ways.push((need.after, way.iter().copied().chain([*need]).collect()));
            }
        }
        at += 1;
    }
    None
}
