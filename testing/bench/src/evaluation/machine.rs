//! A replica of the model: its inputs and its outputs.

use std::time::Instant;

use mingle_geo::certify::{CertifierConfig, GroupConfig};
use mingle_geo::wire::{VERSION, put_message, put_record, take_message};
use mingle_geo::{DcId, Envelope, Input, Now, Output, PartitionId, Record, Replica, StrongReplica};

use super::model::Setup;
use super::times::size_out;
use super::workload::Workload;

/// The interval at which replicas exchange their progress (§8: 5 ms).
const ADVANCE_EVERY_MS: u64 = 5;

/// A replica.
pub enum Machine {
    Plain(Box<Replica>),
    Strong(Box<StrongReplica>),
}

impl Machine {
    pub fn handle(&mut self, now: Now, input: Input, out: &mut Vec<Output>) {
        match self {
            Self::Plain(replica) => replica.handle(now, input, out),
            Self::Strong(replica) => replica.handle(now, input, out),
        }
    }

    pub fn replica(&self) -> &Replica {
        match self {
            Self::Plain(replica) => replica,
            Self::Strong(replica) => replica.replica(),
        }
    }
}

/// Creates the replica of a partition in a data center, with its part in certification.
pub fn machine(
    setup: &Setup,
    workload: &dyn Workload,
    dc: u8,
    partition: u16,
    install: Record,
) -> Result<Machine, String> {
    let config = setup.config(dc, partition);
    if !setup.system.has_groups() {
        let replica = Replica::restore(config, [install]).map_err(|error| error.to_string())?;
        return Ok(Machine::Plain(Box::new(replica)));
    }
    let conflicts = setup.system.conflicts(workload.conflicts());
    let certifier = CertifierConfig::new(PartitionId(partition), conflicts);
    // All leaders are at the first data center (§8).
    let priority = u32::from(dc == 0);
    let group = GroupConfig::new(DcId(dc), setup.dcs, certifier);
    let group = GroupConfig { priority, advance_every_ms: ADVANCE_EVERY_MS, ..group };
    StrongReplica::restore(config, group, [install])
        .map(|replica| Machine::Strong(Box::new(replica)))
}

/// Performs the outputs of an input; writes are durable at once. Returns the size of the outputs.
pub fn drain(
    machine: &mut Machine,
    now: Now,
    outputs: &mut Vec<Output>,
    sends: &mut Vec<Envelope>,
    mut keep: impl FnMut(&Record),
) -> usize {
    let mut size = 0;
    loop {
        let mut last = None;
        for output in outputs.drain(..) {
            size += size_out(&output);
            match output {
                Output::Send(envelope) => sends.push(envelope),
                Output::Persist(persist) => {
                    persist.records.iter().for_each(&mut keep);
                    sends.extend(persist.then);
                    last = Some(persist.index);
                }
                Output::Alarm(_) => {}
            }
        }
        let Some(index) = last else { return size };
        machine.handle(now, Input::Persisted { index }, outputs);
    }
}

/// Handles an input as a server would, from its bytes to the bytes of its outputs; returns the time
/// in nanoseconds and the size.
pub fn timed(
    machine: &mut Machine,
    now: Now,
    input: Input,
    outputs: &mut Vec<Output>,
    sends: &mut Vec<Envelope>,
) -> (u64, usize) {
    let encoded = match &input {
        Input::Message { message, .. } => {
            let mut bytes = Vec::new();
            put_message(&mut bytes, message);
            Some(bytes)
        }
        _ => None,
    };
    let began = Instant::now();
    let input = match (input, &encoded) {
        (Input::Message { from, message }, Some(bytes)) => {
            let message = take_message(VERSION, bytes).unwrap_or(message);
            Input::Message { from, message }
        }
        (input, _) => input,
    };
    machine.handle(now, input, outputs);
    let mut bytes = Vec::with_capacity(1 << 12);
    let size = drain(machine, now, outputs, sends, |record| {
        put_record(&mut bytes, record);
    });
    for envelope in sends.iter() {
        put_message(&mut bytes, &envelope.message);
    }
    let ns = began.elapsed().as_nanos() as u64;
    std::hint::black_box(&bytes);
    (ns, size)
}
