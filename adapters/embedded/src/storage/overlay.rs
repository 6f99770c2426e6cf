//! Uncommitted changes over a view that stays unchanged.

use std::ops::Bound;

use super::{Bytes, Changes, Direction, StorageError, View, Visit};

/// A view with changes on top.
#[derive(Clone, Copy)]
pub struct Overlay<'a> {
    base: &'a dyn View,
    changes: &'a Changes,
}

impl<'a> Overlay<'a> {
    /// `base` as it would be with `changes` made.
    pub fn new(base: &'a dyn View, changes: &'a Changes) -> Self {
        Self { base, changes }
    }
}

impl View for Overlay<'_> {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, StorageError> {
        match self.changes.get(key) {
            Some(changed) => Ok(changed.clone()),
            None => self.base.get(key),
        }
    }

    fn range(
        &self,
        lower: &[u8],
        upper: Option<&[u8]>,
        direction: Direction,
        visit: &mut Visit<'_>,
    ) -> Result<(), StorageError> {
        let end = upper.map_or(Bound::Unbounded, Bound::Excluded);
        let ours = self.changes.range::<[u8], _>((Bound::Included(lower), end));
        let ours: Box<dyn Iterator<Item = (&Bytes, &Option<Bytes>)>> = match direction {
            Direction::Forward => Box::new(ours),
            Direction::Backward => Box::new(ours.rev()),
        };
        let mut ours = ours.peekable();
        let is_before = |ours: &[u8], theirs: &[u8]| match direction {
            Direction::Forward => ours < theirs,
            Direction::Backward => ours > theirs,
        };
        let mut goes_on = true;
        self.base.range(lower, upper, direction, &mut |key, value| {
            while let Some((k, v)) = ours.next_if(|(k, _)| is_before(k, key)) {
                if let Some(v) = v
                    && !visit(k, v)
                {
                    goes_on = false;
                    return false;
                }
            }
            goes_on = match ours.next_if(|(k, _)| ***k == *key) {
                Some((_, None)) => true,
                Some((k, Some(v))) => visit(k, v),
                None => visit(key, value),
            };
            goes_on
        })?;
        if goes_on {
            for (k, v) in ours {
                if let Some(v) = v
                    && !visit(k, v)
                {
                    break;
                }
            }
        }
        Ok(())
    }
}

/// A view with changes on top that can be added to.
pub struct Draft<'a> {
    base: &'a dyn View,
    /// The differences from the base.
    pub changes: Changes,
}

impl<'a> Draft<'a> {
    /// A draft over `base` that starts with `changes`.
    pub fn new(base: &'a dyn View, changes: Changes) -> Self {
        Self { base, changes }
    }

    /// Sets a row.
    pub fn put(&mut self, key: impl Into<Bytes>, value: impl Into<Bytes>) {
        self.changes.insert(key.into(), Some(value.into()));
    }

    /// Removes a row, if it is there.
    pub fn remove(&mut self, key: impl Into<Bytes>) {
        self.changes.insert(key.into(), None);
    }

    /// The rows whose keys start with `prefix`.
    ///
    /// # Errors
    ///
    /// When the disk fails.
    pub fn rows(&self, prefix: &[u8]) -> Result<Vec<(Bytes, Bytes)>, StorageError> {
        let mut rows = Vec::new();
        self.scan(prefix, None, Direction::Forward, &mut |key, value| {
            rows.push((key.into(), value.into()));
            true
        })?;
        Ok(rows)
    }

    /// The keys that start with `prefix`.
    ///
    /// # Errors
    ///
    /// When the disk fails.
    pub fn keys(&self, prefix: &[u8]) -> Result<Vec<Bytes>, StorageError> {
        let mut keys = Vec::new();
        self.scan(prefix, None, Direction::Forward, &mut |key, _| {
            keys.push(key.into());
            true
        })?;
        Ok(keys)
    }
}

impl View for Draft<'_> {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, StorageError> {
        Overlay::new(self.base, &self.changes).get(key)
    }

    fn range(
        &self,
        lower: &[u8],
        upper: Option<&[u8]>,
        direction: Direction,
        visit: &mut Visit<'_>,
    ) -> Result<(), StorageError> {
        Overlay::new(self.base, &self.changes).range(lower, upper, direction, visit)
    }
}
