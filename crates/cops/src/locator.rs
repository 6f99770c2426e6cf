//! The map from keys to servers, which differs from data center to data center (thesis §4.2).

use mingle_model::random::mix;

use crate::clock::NodeId;

/// The number of data centers and of servers in each.
#[derive(Clone, Copy, Debug)]
pub struct Locator {
    dcs: u8,
    servers: u16,
}

impl Locator {
    /// Creates the map for `dcs` data centers, at most 4, of `servers` servers each.
    ///
    /// # Errors
    ///
    /// If a number is 0, or there are more data centers than a node id can name.
    pub fn new(dcs: u8, servers: u16) -> Result<Self, String> {
        if dcs == 0 || dcs > 4 {
            return Err(format!("{dcs} data centers, expected 1 to 4"));
        }
        if servers == 0 || servers > 1 << 14 {
            return Err(format!("{servers} servers in a data center, expected 1 to 16384"));
        }
        Ok(Self { dcs, servers })
    }

    /// Returns the server of a key in a data center.
    pub fn server(&self, dc: u8, key: u32) -> NodeId {
        let place = mix(u64::from(key) ^ (u64::from(dc) << 32)) % u64::from(self.servers);
        NodeId::new(dc, place as u16)
    }

    /// Returns the data centers.
    pub fn dcs(&self) -> impl Iterator<Item = u8> + use<> {
        0..self.dcs
    }

    /// Returns all servers of a data center.
    pub fn servers(&self, dc: u8) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.servers).map(move |server| NodeId::new(dc, server))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_divided_otherwise_in_another_data_center() {
        let locator = Locator::new(2, 3).unwrap();
        let places = |dc| (0..64).map(|key| locator.server(dc, key)).collect::<Vec<_>>();
        let together = |dc: Vec<NodeId>| (0..63).filter(|key| dc[*key] == dc[key + 1]).count();
        assert!(places(0).iter().all(|node| node.dc() == 0));
        assert_ne!(together(places(0)), 0);
        let other: Vec<bool> = (0..63).map(|key| places(0)[key] == places(0)[key + 1]).collect();
        let same: Vec<bool> = (0..63).map(|key| places(1)[key] == places(1)[key + 1]).collect();
        assert_ne!(other, same);
    }

    #[test]
    fn a_system_without_servers_is_refused() {
        assert!(Locator::new(0, 1).unwrap_err().contains("0 data centers"));
        assert!(Locator::new(5, 1).unwrap_err().contains("expected 1 to 4"));
        assert!(Locator::new(1, 0).unwrap_err().contains("0 servers"));
    }
}
