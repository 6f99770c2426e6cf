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
        let floors: Vec<RaiseFloor> = floors.collect();
        if floors.is_empty() {
            return;
        }
        self.net.with(|inner| {
            let client = inner.add_client();
            for floor in floors {
                for dc in 0..self.config.datacenters.len() as u8 {
                    for partition in 0..self.config.partitions {
                        let to = Address::Replica(DcId(dc), PartitionId(partition));
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
