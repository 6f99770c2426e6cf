//! Floors of operation ids.

use mingle_geo::message::{Message, RaiseFloor};
use mingle_geo::{Address, DcId, Envelope, PartitionId};
use mingle_store::record::read_floor;
use mingle_store::{RecordKind, Write};

use super::store::Shared;

impl Shared {
    /// Tells all replicas about raised floors, so that they can forget the ids below.
    pub fn raise_floors(&self, writes: &[Write]) {
        let floors = writes.iter().filter_map(|write| match write {
            Write::Record(key, value) if key.kind == RecordKind::Floor => {
                Some(RaiseFloor { origin: key.origin()?, sequence: read_floor(value) })
            }
            _ => None,
        });
        self.raise(floors.collect());
    }

    /// Tells the replicas that can be reached from here about raised floors.
    pub(super) fn raise(&self, floors: Vec<RaiseFloor>) {
        if floors.is_empty() {
            return;
        }
        self.net.with(|inner| {
            let client = inner.add_client();
            for floor in floors {
                let here = inner.here();
                let all = (0..self.config.datacenters.len() as u8).map(DcId);
                // The programs that use the store tell data centers that are processes of their own.
                for dc in all.filter(|dc| here.is_none_or(|here| here == *dc)) {
                    for partition in 0..self.config.partitions {
                        let to = Address::Replica(dc, PartitionId(partition));
                        let message = Message::RaiseFloor(floor.clone());
                        inner.send(Address::Client(client), Envelope { to, message });
                    }
                }
            }
            inner.settle();
            inner.remove_client(client);
        });
    }
}
