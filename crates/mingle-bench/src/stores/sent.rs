//! What is sent to the server: statements and round trips, as a proxy sees them.
//!
//! The frontend's messages of PostgreSQL's protocol: a byte for the kind, the length as 32 bits, the
//! rest. Of them `Parse` gives a statement a name, `Bind` says which one follows, `Execute` runs it,
//! and `Query` is one by itself.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mingle_proxy::{Fault, Proxy};

/// The statements of one round trip.
pub type Trip = Vec<String>;

/// Sees what one client sends.
pub struct Watch {
    pub proxy: Proxy,
    bursts: Arc<Mutex<Vec<Vec<u8>>>>,
    /// Statements by name.
    prepared: HashMap<String, String>,
}

impl Watch {
    /// A proxy that looks at what it passes on.
    pub async fn start(server: SocketAddr) -> Result<Self, String> {
        let proxy = Proxy::start(server, 1).await.map_err(|error| error.to_string())?;
        let bursts: Arc<Mutex<Vec<Vec<u8>>>> = Arc::default();
        let seen = bursts.clone();
        // A fault that matches nothing is shown every burst.
        let look = move |burst: &[u8]| {
            seen.lock().unwrap_or_else(PoisonError::into_inner).push(burst.to_vec());
            false
        };
        proxy.once_matching(look, Fault::Hang(Duration::ZERO));
        Ok(Self { proxy, bursts, prepared: HashMap::new() })
    }

    /// What was sent since the last time.
    pub fn take(&mut self) -> Vec<Trip> {
        let bursts =
            std::mem::take(&mut *self.bursts.lock().unwrap_or_else(PoisonError::into_inner));
        let trips = bursts.iter().map(|burst| self.statements(burst));
        let trips: Vec<Trip> = trips.collect();
        trips.into_iter().filter(|trip| !trip.is_empty()).collect()
    }

    fn statements(&mut self, mut burst: &[u8]) -> Trip {
        let mut statements = Vec::new();
        let mut bound = String::new();
        while let Some((kind, body, rest)) = message(burst) {
            burst = rest;
            match kind {
                b'P' => {
                    let (name, after) = text(body);
                    self.prepared.insert(name, text(after).0);
                }
                b'B' => bound = text(text(body).1).0,
                b'E' => statements.push(self.prepared.get(&bound).cloned().unwrap_or_default()),
                b'Q' => statements.push(text(body).0),
                _ => {}
            }
        }
        statements
    }
}

/// The first message: its kind, what it holds, and what follows it.
fn message(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (kind, rest) = bytes.split_first()?;
    let length = u32::from_be_bytes(*rest.first_chunk()?) as usize;
    let (body, rest) = rest.split_at_checked(length)?;
    Some((*kind, body.get(4..)?, rest))
}

/// A text that ends with a zero, and what follows it.
fn text(bytes: &[u8]) -> (String, &[u8]) {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    let rest = bytes.get(end + 1..).unwrap_or_default();
    (String::from_utf8_lossy(&bytes[..end]).into_owned(), rest)
}
