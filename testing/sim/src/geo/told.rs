//! Partitions of one data center tell each other what is uniform.
//!
//! Sessions see what is uniform at one partition, and the others must come to serve them, also while the
//! rest of the world is cut off: what a data center has shown, all of it has.

use mingle_geo::Vector;

use super::live::PROGRESS_US;
use super::node::Node;
use super::world::World;

/// The uniform data of a data center's partitions, joined, and since when they are known to be.
pub(super) type Told = Option<(u64, Vector)>;

impl World<'_> {
    /// Checks that what one partition knows to be uniform, the others of its data center know some time
    /// later, unless a fault there is to blame.
    pub fn check_told(&mut self) {
        for dc in 0..self.setup.config.dc_count {
            let is_changing = self.lost | self.fencing != 0 || self.is_admitting();
            let of_dc: Vec<&Node> = self.nodes.iter().filter(|node| node.dc == dc).collect();
            let vectors: Vec<Vector> = of_dc
                .iter()
                .filter_map(|node| Some(node.replica()?.replica().uniform_vec()))
                .collect();
            if is_changing || self.is_blamed(dc) || vectors.len() < of_dc.len() {
                self.told[usize::from(dc)] = None;
                continue;
            }
            if let Some((since_us, told)) = self.told[usize::from(dc)] {
                if self.now_us <= since_us + PROGRESS_US {
                    continue;
                }
                if let Some(behind) = vectors.iter().position(|vector| !vector.covers(&told)) {
                    let (lacks, dc) = (vectors[behind], format!("d{dc} p{behind}"));
                    let how = format!("{dc} has {lacks}, and others there had {told}");
                    return self.breaks("a data center's partitions agree on what is uniform", how);
                }
            }
            let mut joined = Vector::ZERO;
            for vector in &vectors {
                joined.join(vector);
            }
            self.told[usize::from(dc)] = Some((self.now_us, joined));
        }
    }
}
