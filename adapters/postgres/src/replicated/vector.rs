//! The updates that servers have seen: for each server all updates up to a number.

use mingle_model::{Name, Stamp};

/// Numbers by server, in the order of the servers' names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Vector(pub Vec<i64>);

impl Vector {
    /// Converts it to the form that sessions carry.
    pub fn stamp(&self, names: &[Name]) -> Stamp {
        let numbers = self.0.iter().map(|number| u64::try_from(*number).unwrap_or_default());
        names.iter().cloned().zip(numbers).collect()
    }

    /// Converts it from a session's stamp; a server that the stamp does not name has 0.
    pub fn of(stamp: &Stamp, names: &[Name]) -> Self {
        let numbers = names.iter().map(|name| i64::try_from(stamp.of(name)).unwrap_or(i64::MAX));
        Self(numbers.collect())
    }

    /// True if it includes all updates in `other`.
    pub fn covers(&self, other: &Self) -> bool {
        other.0.iter().enumerate().all(|(index, number)| self.at(index) >= *number)
    }

    /// Returns the number of the server at this index, from 0.
    pub fn at(&self, index: usize) -> i64 {
        self.0.get(index).copied().unwrap_or_default()
    }

    /// Returns it as a PostgreSQL array literal.
    pub fn literal(&self) -> String {
        let numbers: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        format!("{{{}}}", numbers.join(","))
    }
}

/// Returns the updates that every server has. `known` holds for each server, by its index, the
/// updates that the others know it to have. A server always has its own updates.
pub fn everywhere(known: &[Vector]) -> Vector {
    let number = |origin: usize| {
        let others = known.iter().enumerate().filter(|(server, _)| *server != origin);
        others.map(|(_, vector)| vector.at(origin)).min().unwrap_or_default()
    };
    Vector((0..known.len()).map(number).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everywhere_is_what_all_others_have_of_each() {
        let known = [[0, 5, 2], [9, 0, 4], [7, 6, 0]].map(|vector| Vector(vector.to_vec()));
        assert_eq!(everywhere(&known), Vector(vec![7, 5, 2]));
    }

    #[test]
    fn a_stamp_comes_back() {
        let names: Vec<Name> = vec!["oslo".into(), "paris".into()];
        let vector = Vector(vec![0, 7]);
        assert_eq!(Vector::of(&vector.stamp(&names), &names), vector);
        assert!(vector.covers(&Vector::default()) && !Vector::default().covers(&vector));
        assert_eq!(vector.literal(), "{0,7}");
    }
}
