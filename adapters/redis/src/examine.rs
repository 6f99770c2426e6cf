//! The examination of a store's server, for an operator. It changes nothing.

use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use mingle_store::{Finding, StoreSchema, World};

use crate::config::RedisConfig;
use crate::link::{Failed, Link};
use crate::reply;
use crate::server::Server;
use crate::store::{Checked, check_operations};

/// Examines the server of a store: whether it answers, its version, settings and clock, and the scripts of the
/// program's operations. Changes nothing.
pub async fn examine(
    config: RedisConfig,
    schema: StoreSchema,
    world: Arc<dyn World>,
) -> Vec<Finding> {
    let Checked { mut operations, link, .. } = match Checked::new(&config, &schema, world) {
        Ok(checked) => checked,
        Err(error) => return vec![Finding::wrong("binding", error.to_string())],
    };
    let begin = Instant::now();
    let server = match Server::ask(&link).await {
        Ok(server) => server,
        Err(failed) => {
            let text = format!("{} does not answer: {}", link.place(), failed.reason());
            return vec![Finding::wrong("connection", text)];
        }
    };
    let took = begin.elapsed().as_millis();
    let mut findings = vec![
        Finding::good("connection", format!("{} answers in {took} ms", link.place())),
        Finding::good("version", format!("Redis {}", server.version())),
    ];
    if let Err(reason) = server.check() {
        findings.push(Finding::wrong("server", reason));
    }
    findings.push(durability(&config, &server));
    if let Some(why) = server.failover() {
        findings.push(Finding::warning("failover", why));
    }
    findings.push(clock(&link).await);
    if let Err(error) = check_operations(&link, &schema.store, &mut operations).await {
        findings.push(Finding::wrong("operations", error.to_string()));
    }
    findings
}

fn durability(config: &RedisConfig, server: &Server) -> Finding {
    match server.loses(config.known_durable) {
        None => Finding::good("durability", "a commit that was acknowledged survives a crash"),
        Some(why) if config.accept_loss => Finding::warning("durability", why),
        Some(why) => Finding::wrong(
            "durability",
            format!(
                "{why}. Set appendonly yes and appendfsync always, or accept that with `accept_loss`"
            ),
        ),
    }
}

async fn clock(link: &Link) -> Finding {
    let (begin, now) = (Instant::now(), SystemTime::now());
    let answer = link.ask(&["TIME"]).await;
    let took = i64::try_from(begin.elapsed().as_millis()).unwrap_or(i64::MAX);
    let parts = answer.and_then(|reply| reply::strings(reply).map_err(Failed::No));
    let number = |text: &Vec<u8>| String::from_utf8_lossy(text).parse::<i64>().ok();
    let shown = parts.as_deref().map(|parts| match parts {
        [seconds, micros] => number(seconds)
            .zip(number(micros))
            .map(|(seconds, micros)| seconds * 1000 + micros / 1000),
        _ => None,
    });
    match shown {
        Ok(Some(shown)) => {
            let now = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
            let now = i64::try_from(now).unwrap_or(i64::MAX);
            Finding::clock(shown - now - took / 2, took)
        }
        Ok(None) => Finding::warning("clock", "the answer to TIME was not understood"),
        Err(failed) => Finding::warning("clock", format!("TIME is refused: {}", failed.reason())),
    }
}
