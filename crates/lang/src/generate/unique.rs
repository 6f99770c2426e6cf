//! Random writes of fields of `unique`s.

use super::declared::UNIQUE;
use super::{Generator, KEYS, Kind};

impl Generator {
    /// Writes a `unique` of a store, if it has one and a write may fail here; returns true if it did.
    pub(super) fn claim(&mut self, store: usize) -> bool {
        if !UNIQUE.contains(&store) || !self.may_fail(store) {
            return false;
        }
        self.written.insert(store);
        let rank = self.rank(store);
        let badge = format!("Badge{store}");
        let key = *self.random.pick(&KEYS);
        let object = format!("{badge}[\"{key}\"]");
        let color = match self.random.below(3) {
            0 => self.expr(Kind::Int, rank, 1),
            _ => self.random.below(40).to_string(),
        };
        let shape = self.expr(Kind::Maybe, rank, 1);
        let of = self.reference(store, rank, 1);
        let line = match self.random.below(11) {
            0 | 1 => format!("{object}.color = {color};"),
            2 => format!("{object}.color += {color};"),
            3 | 4 => format!("{object}.shape = {shape};"),
            5 => format!("{object}.shape = none;"),
            6 => format!("{object}.of = {of};"),
            7 => format!("put {badge} {{ name: \"{key}\", color: {color} }};"),
            8 => format!("put {badge} {{ name: \"{key}\", shape: {shape}, of: {of} }};"),
            9 => format!("new {badge} {{ color: {color}, of: {of}, shape: {shape} }};"),
            _ => format!("{object}.delete();"),
        };
        self.line(&line);
        true
    }
}
