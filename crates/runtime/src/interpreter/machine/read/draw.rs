//! Keys that the store draws.

use mingle_lang::code::ReadSpec;
use mingle_lang::flat::Slot;
use mingle_lang::hir::ObjectId;
use mingle_model::{Name, Ref};
use mingle_store::{Data, Read};

use super::{Machine, Need};

impl Machine<'_> {
    /// Draws the key of an object of this kind. If the transaction itself has given this key before, the next attempt
    /// draws another one.
    pub(super) fn draw(
        &mut self,
        kind: ObjectId,
        operation: u32,
        read: &ReadSpec,
        dst: Slot,
    ) -> Option<Need> {
        let request = self.query(operation, read);
        if let Some(Data::Result(key)) = self.fetched.get(&request) {
            let declared = &self.program.objects[kind.index()].declared;
            let object = Ref::new(declared.name.clone(), key.clone());
            self.slots[dst.index()] = key.clone();
            let is_own = self.write_buffer.exists(&object) == Some(true);
            return is_own.then_some(Need::StartOver);
        }
        self.at -= 1;
        self.ask(vec![request])
    }

    /// True if one of these reads asks for data in a way of its store's own, so that any object may be behind it.
    /// A drawn key is a new one: nothing is behind it.
    pub fn has_queries(&self, reads: &[Read]) -> bool {
        let declared = |name: &Name| {
            let store = self.store.map(|store| &self.program.stores[store.index()]);
            store.and_then(|store| store.operations.iter().find(|known| known.name == *name))
        };
        reads.iter().any(|read| match read {
            Read::Query { operation, .. } => {
                declared(operation).is_none_or(|known| known.draws().is_none())
            }
            _ => false,
        })
    }
}
