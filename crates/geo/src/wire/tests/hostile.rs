//! Messages that decode but that no replica or session sends: a replica refuses or ignores them.

use mingle_model::random::Random;

use super::generate::generate_variant;
use super::{MESSAGES, SEED};
use crate::certify::{CertifierConfig, Conflicts, GroupConfig};
use crate::config::Config;
use crate::message::{Address, Message};
use crate::record::Output;
use crate::replica::Input;
use crate::strong::StrongReplica;
use crate::timestamp::{DcId, Now, PartitionId};

/// The replica of the first partition of the first of three data centers.
fn replica() -> StrongReplica {
    let partition = PartitionId(0);
    let certifier = CertifierConfig::new(partition, Conflicts::default());
    let config = Config::new(DcId(0), 3, partition, 2);
    StrongReplica::restore(config, GroupConfig::new(DcId(0), 3, certifier), Vec::new())
        .expect("the settings are sound")
}

fn source(random: &mut Random) -> Address {
    match random.below(3) {
        0 => Address::Client(random.bits() % 5),
        1 => Address::Replica(DcId(0), PartitionId(1)),
        _ => Address::Replica(DcId(1 + random.below(2) as u8), PartitionId(0)),
    }
}

#[test]
fn messages_that_no_process_sends_end_no_replica() {
    let mut random = Random::new(SEED);
    for round in 0..600 {
        let (mut replica, mut out) = (replica(), Vec::new());
        let mut now = Now { wall_us: 1_700_000_000_000_000, mono_us: 0 };
        for _ in 0..150 {
            let number = random.below(MESSAGES as usize) as u32;
            let Some(message) = generate_variant::<Message>(&mut random, number) else { continue };
            // Usually the source is the one that the message names, so that more of it is used.
            let claimed = message.claimed_sender(DcId(0), PartitionId(0));
            let from = match claimed {
                Some(claimed) if !random.one_in(4) => claimed,
                _ => source(&mut random),
            };
            let text = format!("round {round}, seed {SEED}: {from:?} sends {message:?}");
            let handled = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                replica.handle(now, Input::Message { from, message }, &mut out);
            }));
            assert!(handled.is_ok(), "{text}");
            if random.one_in(5) {
                now = Now { wall_us: now.wall_us + 7_000, mono_us: now.mono_us + 7_000 };
                replica.handle(now, Input::Tick, &mut out);
            }
            let last = out.drain(..).filter_map(|output| match output {
                Output::Persist(persist) => Some(persist.index),
                _ => None,
            });
            if let Some(index) = last.max() {
                replica.handle(now, Input::Persisted { index }, &mut out);
                out.clear();
            }
        }
    }
}
