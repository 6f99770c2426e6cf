//! The facts as figures for Prometheus.

use std::fmt;
use std::sync::atomic::{AtomicI64, AtomicU64};

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

use super::facts::{DataCenter, Facts};
use crate::process::Stage;

type Labels = Vec<(&'static str, String)>;
type Seconds = Gauge<f64, AtomicU64>;
type Number = Gauge<i64, AtomicI64>;

/// The states of a data center other than this one.
const STATES: [&str; 4] = ["connected", "away", "fencing", "fenced"];

/// Returns the figures in the OpenMetrics text format.
///
/// # Errors
///
/// Those of the encoder; none are expected.
pub fn figures(facts: &Facts) -> Result<String, fmt::Error> {
    let mut all = Registry::with_prefix("mingled");
    of_process(&mut all, facts);
    of_clients(&mut all, facts);
    of_data_centers(&mut all, &facts.data_center, &facts.data_centers);
    of_progress(&mut all, facts);
    let mut text = String::new();
    encode(&mut text, &all)?;
    Ok(text)
}

fn of_process(all: &mut Registry, facts: &Facts) {
    let build = vec![
        ("version", facts.version.to_owned()),
        ("data_center", facts.data_center.clone()),
        ("cluster", facts.cluster.clone()),
    ];
    all.register("build", "The version, and the place of this data center", Info::new(build));
    let gauge = |number: u64| ConstGauge::new(i64::try_from(number).unwrap_or(i64::MAX));
    all.register("ready", "1 while clients are served", gauge(facts.is_ready.into()));
    all.register("boot", "Number of this start", gauge(facts.boot.into()));
    let uptime = gauge(facts.uptime_seconds);
    all.register_with_unit("uptime", "Time since the start", Unit::Seconds, uptime);
    let notes = "Ends of connections between data centers, and alarms";
    all.register("notes", notes, ConstCounter::new(facts.noted));
    let replayed = "Frames dropped because they were repeated or of another connection";
    all.register("replayed_frames", replayed, ConstCounter::new(facts.replayed_frames));
}

fn of_clients(all: &mut Registry, facts: &Facts) {
    let clients = &facts.clients;
    let gauge = |number: usize| ConstGauge::new(i64::try_from(number).unwrap_or(i64::MAX));
    all.register("clients", "Connections of clients", gauge(clients.connected));
    all.register("clients_max", "Maximum number of connections of clients", gauge(clients.at_most));
    let accepted = "Connections of clients that were accepted";
    all.register("clients_accepted", accepted, ConstCounter::new(clients.accepted));
    let refused = "Connections of clients that were refused because there were too many";
    all.register("clients_refused", refused, ConstCounter::new(clients.refused));
    all.register("requests", "Requests of clients", ConstCounter::new(clients.requests));
    let slow = "Requests that took long; SLOWLOG has the last of them";
    all.register("slow_requests", slow, ConstCounter::new(clients.slow_requests));
    let wrong = "Wrong passwords; ACL LOG has the last of them";
    all.register("wrong_passwords", wrong, ConstCounter::new(clients.wrong_passwords));
    let denied = "Requests that their users may not send; ACL LOG has the last of them";
    all.register("denied_requests", denied, ConstCounter::new(clients.denied));
    let lost = "Events that could not be written to the audit log";
    all.register("audit_failures", lost, ConstCounter::new(clients.audit_failures));
}

fn of_data_centers(all: &mut Registry, own: &str, centers: &[DataCenter]) {
    let (state, since, lag, incarnation) = (
        Family::<Labels, Number>::default(),
        Family::<Labels, Seconds>::default(),
        Family::<Labels, Seconds>::default(),
        Family::<Labels, Counter>::default(),
    );
    let others = centers.iter().filter(|center| center.name != own);
    for center in others {
        let of = || vec![("data_center", center.name.clone())];
        for one in STATES {
            let labels = vec![("data_center", center.name.clone()), ("state", one.to_owned())];
            state.get_or_create(&labels).set((center.state == one).into());
        }
        since.get_or_create(&of()).set(center.since_ms as f64 / 1000.0);
        if let Some(lag_ms) = center.lag_ms {
            lag.get_or_create(&of()).set(lag_ms as f64 / 1000.0);
        }
        incarnation.get_or_create(&of()).inc_by(center.incarnation.into());
    }
    all.register("data_center_state", "1 for the state of each other data center", state);
    let text = "Time since 1970 at which the state of each other data center began";
    all.register_with_unit("data_center_state_since", text, Unit::Seconds, since);
    let text = "Age of the latest state of each other data center that is here";
    all.register_with_unit("data_center_lag", text, Unit::Seconds, lag);
    let text = "Incarnations of each other data center that were given up";
    all.register("data_center_incarnations", text, incarnation);
}

fn of_progress(all: &mut Registry, facts: &Facts) {
    let (uniform, folded, held) = (
        Family::<Labels, Seconds>::default(),
        Family::<Labels, Seconds>::default(),
        Family::<Labels, Number>::default(),
    );
    for center in &facts.data_centers {
        let labels = vec![("data_center", center.name.clone())];
        if let Some(ms) = center.uniform_age_ms {
            uniform.get_or_create(&labels).set(ms as f64 / 1000.0);
        }
        if let Some(ms) = center.folded_age_ms {
            folded.get_or_create(&labels).set(ms as f64 / 1000.0);
        }
    }
    for stage in [Stage::Uniformity, Stage::Folding].map(|stage| stage.to_string()) {
        let count = facts.held_back.iter().filter(|held| held.stage == stage).count();
        let labels = vec![("stage", stage)];
        held.get_or_create(&labels).set(i64::try_from(count).unwrap_or(i64::MAX));
    }
    let text = "Age of the latest transactions of each data center that are uniform here";
    all.register_with_unit("uniform_age", text, Unit::Seconds, uniform);
    let text = "Age of the latest transactions of each data center that are folded here";
    all.register_with_unit("folded_age", text, Unit::Seconds, folded);
    let text = "Data centers whose transactions are held back for longer than usual, by stage";
    all.register("held_back", text, held);
    let gauge = |number: usize| ConstGauge::new(i64::try_from(number).unwrap_or(i64::MAX));
    let text = "Operations that are not folded";
    all.register("unfolded_operations", text, gauge(facts.unfolded_operations));
    let text = "Approximate bytes of operations that are not folded";
    all.register_with_unit("unfolded", text, Unit::Bytes, gauge(facts.unfolded_bytes));
    let text = "Approximate bytes of transactions that are kept for other data centers";
    all.register_with_unit("kept", text, Unit::Bytes, gauge(facts.kept_bytes));
}
