//! The objects of a kind, in the order of their keys.

use mingle_model::{Name, Ref, Value};
use mingle_store::listing::cursor;
use mingle_store::{Data, Listed, Listing};

use super::{Found, Reading, presence};
use crate::builtin;
use crate::core::Failure;
use crate::encoding::row::Header;
use crate::encoding::{key, order};
use crate::limits::KEYS_MAX;
use crate::storage::{Direction, prefix_end};

/// The key of an object, if it exists, and the place after its other rows, if there is one.
type Next = (Option<Value>, Option<Vec<u8>>);

impl Reading<'_> {
    /// Returns a page of the objects of a kind, in the order of their keys. Its cursor is the place after the last one.
    ///
    /// # Errors
    ///
    /// When the disk fails, no such kind lives here, or the cursor is none.
    pub fn list(&mut self, listing: &Listing) -> Result<Listed, Failure> {
        let prefix = key::objects(self.replica, self.core.layout.kind(&listing.kind)?.id);
        let mut from = key::with(&prefix, &listing.place()?.unwrap_or_default());
        let mut listed = Listed::default();
        while let Some((object, next)) = self.next_object(&prefix, &from)? {
            if let Some(object) = object {
                if listed.objects.len() == listing.most {
                    listed.next = Some(cursor(from.get(prefix.len()..).unwrap_or_default()));
                    break;
                }
                listed.objects.push(Ref::new(listing.kind.clone(), object));
            }
            let Some(next) = next else { break };
            from = next;
        }
        Ok(listed)
    }

    pub(super) fn keys(&mut self, kind: &Name) -> Result<Found, Failure> {
        let id = self.core.layout.kind(kind)?.id;
        let row = self.fetch(key::kind(self.replica, id), true)?;
        let header = row.as_deref().map(Header::decode).unwrap_or_default();
        if header.count > KEYS_MAX as u64 {
            return Err(builtin::too_many_keys(kind).into());
        }
        let prefix = key::objects(self.replica, id);
        let mut from = prefix.clone();
        let mut keys = Vec::new();
        while let Some((object, next)) = self.next_object(&prefix, &from)? {
            keys.extend(object);
            let Some(next) = next else { break };
            from = next;
        }
        Ok((Data::Values(keys), header.version))
    }

    /// Returns the object whose rows come next.
    fn next_object(&mut self, prefix: &[u8], from: &[u8]) -> Result<Option<Next>, Failure> {
        let mut found = None;
        self.scan(prefix, Some(from), Direction::Forward, |key, row| {
            let mut rest = &key[prefix.len()..];
            let object = order::decode(&mut rest);
            // The presence comes first, since its field is 0.
            let exists = rest == [0, 0] && presence(Some(row)).exists;
            found = Some((exists.then_some(object), prefix_end(&key[..key.len() - rest.len()])));
            false
        })?;
        Ok(found)
    }
}
