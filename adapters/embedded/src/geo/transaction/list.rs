//! Lists of objects.

use std::sync::Arc;

use mingle_geo::Key;
use mingle_model::{Name, Ref};
use mingle_store::listing::cursor;
use mingle_store::{Data, Listed, Listing, StoreError};

use super::super::touch::Use;
use super::super::{answer, name};
use super::GeoTransaction;
use crate::builtin;
use crate::limits::KEYS_MAX;

impl GeoTransaction {
    /// Returns a page of the objects of a kind, in the order of their keys. Its cursor is the name of the last one.
    pub(in super::super) async fn list(&mut self, listing: &Listing) -> Result<Listed, StoreError> {
        let shared = Arc::clone(&self.shared);
        let refused = |why: String| shared.core.refused(why);
        let id = shared.core.layout.kind(&listing.kind).map_err(refused)?.id;
        let prefix = name::presences(id);
        let after = listing.place().map_err(refused)?;
        let from = [&*prefix, after.as_deref().unwrap_or_default()].concat();
        let (mut listed, mut last) = (Listed::default(), None);
        let first = Key::new(mingle_geo::Kind::Register, &from);
        self.scan(first, &prefix, |key, state| {
            if !answer::exists(state) || (after.is_some() && *key.name == *from) {
                return true;
            }
            if listed.objects.len() == listing.most {
                listed.next = last.take();
                return false;
            }
            let object = name::object_key(&key.name, prefix.len());
            listed.objects.push(Ref::new(listing.kind.clone(), object));
            last = Some(cursor(key.name.get(prefix.len()..).unwrap_or_default()));
            true
        })
        .await?;
        Ok(listed)
    }

    /// Returns the keys of all objects of a kind.
    pub(super) async fn keys(&mut self, kind: &Name) -> Result<(Data, u64), StoreError> {
        let shared = Arc::clone(&self.shared);
        let id = shared.core.layout.kind(kind).map_err(|why| shared.core.refused(why))?.id;
        let prefix = name::presences(id);
        self.uses.add(name::list(&prefix), Use::Read);
        let mut keys = Vec::new();
        let first = Key::new(mingle_geo::Kind::Register, &prefix);
        self.scan(first, &prefix, |key, state| {
            if answer::exists(state) {
                keys.push(name::object_key(&key.name, prefix.len()));
            }
            keys.len() <= KEYS_MAX
        })
        .await?;
        if keys.len() > KEYS_MAX {
            return Err(shared.core.refused(builtin::too_many_keys(kind)));
        }
        Ok((Data::Values(keys), 0))
    }
}
