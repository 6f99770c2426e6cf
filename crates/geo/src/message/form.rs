//! Forms of types whose bytes have reserved fields.

use serde::{Deserialize, Serialize};

use super::{Address, Handout, KnownVecLocal, SiblingVecs, UniformVecLocal};
use crate::timestamp::{DcId, PartitionId, Timestamp};
use crate::vector::Vector;

/// The partitions that a vector covers, by their placement on the processes of a data center. Both
/// fields are 0 in version 1: a vector covers the sender's partition, or all of its data center.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Covered {
    placement_epoch: u32,
    partitions_covered: u16,
}

impl Covered {
    /// Checks that the fields are 0.
    pub fn check(self) -> Result<(), String> {
        let Self { placement_epoch, partitions_covered } = self;
        if self == Self::default() {
            return Ok(());
        }
        Err(format!(
            "a vector covers {partitions_covered} partitions of placement {placement_epoch}, expected \
             placement 0: this build has one process in each data center"
        ))
    }
}

fn check_node(node: u32, boot: u32) -> Result<(), String> {
    if (node, boot) == (0, 0) {
        return Ok(());
    }
    Err(format!(
        "an address names process {node} at its start {boot}, expected process 0: this build has one \
         process in each data center"
    ))
}

/// The form of an [`Address`].
#[derive(Serialize, Deserialize)]
#[serde(rename = "Address")]
pub enum AddressForm {
    Client { node: u32, boot: u32, client: u64 },
    Replica { node: u32, dc: DcId, partition: PartitionId },
}

impl From<Address> for AddressForm {
    fn from(address: Address) -> Self {
        match address {
            Address::Client(client) => Self::Client { node: 0, boot: 0, client },
            Address::Replica(dc, partition) => Self::Replica { node: 0, dc, partition },
        }
    }
}

impl TryFrom<AddressForm> for Address {
    type Error = String;

    fn try_from(form: AddressForm) -> Result<Self, String> {
        match form {
            AddressForm::Client { node, boot, client } => {
                check_node(node, boot).map(|()| Self::Client(client))
            }
            AddressForm::Replica { node, dc, partition } => {
                check_node(node, 0).map(|()| Self::Replica(dc, partition))
            }
        }
    }
}

/// Defines the form of a message with vectors: its fields, and the partitions that they cover.
macro_rules! covered {
    ($($form:ident of $type:ident { $($field:ident: $of:ty,)* })*) => {
        $(
            #[derive(Serialize, Deserialize)]
            pub struct $form {
                $($field: $of,)*
                covered: Covered,
            }

            impl From<$type> for $form {
                fn from(message: $type) -> Self {
                    let $type { $($field,)* } = message;
                    Self { $($field,)* covered: Covered::default() }
                }
            }

            impl TryFrom<$form> for $type {
                type Error = String;

                fn try_from(form: $form) -> Result<Self, String> {
                    let $form { $($field,)* covered } = form;
                    covered.check().map(|()| Self { $($field,)* })
                }
            }
        )*
    };
}

covered! {
    HandoutForm of Handout {
        stable_vec: Vector,
        uniform_vec: Vector,
        epoch: u32,
        incarnation: u32,
    }
    KnownVecLocalForm of KnownVecLocal {
        epoch: u32,
        partition: PartitionId,
        known_vec: Vector,
        snapshot_floor: Vector,
        clock: Timestamp,
    }
    SiblingVecsForm of SiblingVecs {
        epoch: u32,
        dc: DcId,
        known_vec: Vector,
        stable_vec: Vector,
    }
    UniformVecLocalForm of UniformVecLocal {
        epoch: u32,
        partition: PartitionId,
        uniform_vec: Vector,
    }
}
