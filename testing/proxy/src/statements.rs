//! The statements that a client sends to PostgreSQL, by round trip.
//!
//! The frontend's messages of PostgreSQL's protocol have a byte for the kind, the length as 32
//! bits, and the contents. `Parse` gives a statement a name, `Bind` names the statement that
//! follows, `Execute` runs it, and `Query` is a statement by itself.

use std::collections::HashMap;
use std::io::Result;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::{Fault, Proxy};

/// The statements of one round trip, in order.
pub type Trip = Vec<String>;

/// A recorder of the bytes that clients of one process send. A round trip is a burst, so each must
/// be sent whole, as a client on one thread does.
///
/// ```
/// # use tokio::io::{AsyncReadExt, AsyncWriteExt};
/// # use tokio::net::{TcpListener, TcpStream};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> std::io::Result<()> {
/// # let server = TcpListener::bind("127.0.0.1:0").await?;
/// # let upstream = server.local_addr()?;
/// # tokio::spawn(async move {
/// #     let (mut stream, _) = server.accept().await.unwrap();
/// #     let mut request = [0; 11];
/// #     stream.read_exact(&mut request).await.unwrap();
/// #     stream.write_all(b"done").await.unwrap();
/// # });
/// use mingle_proxy::Watch;
///
/// let mut watch = Watch::start(upstream).await?;
/// let mut client = TcpStream::connect(watch.proxy.address()).await?;
/// client.write_all(b"Q\0\0\0\x0aBEGIN\0").await?;
/// client.read_exact(&mut [0; 4]).await?;
/// assert_eq!(watch.take(), [["BEGIN"]]);
/// # Ok(())
/// # }
/// ```
pub struct Watch {
    /// The proxy to which clients connect.
    pub proxy: Proxy,
    bursts: Arc<Mutex<Vec<Vec<u8>>>>,
    /// Statements by name.
    prepared: HashMap<String, String>,
}

impl Watch {
    /// Starts a proxy in front of this server that records the bytes passed on.
    ///
    /// # Errors
    ///
    /// When there is no port to listen on.
    pub async fn start(server: SocketAddr) -> Result<Self> {
        let proxy = Proxy::start(server, 1).await?;
        let bursts: Arc<Mutex<Vec<Vec<u8>>>> = Arc::default();
        let seen = bursts.clone();
        // A fault that matches nothing sees every burst.
        let look = move |burst: &[u8]| {
            seen.lock().unwrap_or_else(PoisonError::into_inner).push(burst.to_vec());
            false
        };
        proxy.once_matching(look, Fault::Hang(Duration::ZERO));
        Ok(Self { proxy, bursts, prepared: HashMap::new() })
    }

    /// Returns the statements sent since the last call, without those that only prepare statements.
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

/// Returns the first message: its kind, its contents, and the bytes after it.
fn message(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (kind, rest) = bytes.split_first()?;
    let length = u32::from_be_bytes(*rest.first_chunk()?) as usize;
    let (body, rest) = rest.split_at_checked(length)?;
    Some((*kind, body.get(4..)?, rest))
}

/// Returns a text that ends with a zero byte, and the bytes after it.
fn text(bytes: &[u8]) -> (String, &[u8]) {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    let rest = bytes.get(end + 1..).unwrap_or_default();
    (String::from_utf8_lossy(&bytes[..end]).into_owned(), rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(kind: u8, body: &[u8]) -> Vec<u8> {
        [&[kind][..], &(body.len() as u32 + 4).to_be_bytes(), body].concat()
    }

    #[tokio::test]
    async fn statements_are_known_by_the_name_that_they_were_prepared_under() {
        let nobody = SocketAddr::from(([127, 0, 0, 1], 1));
        let mut watch = Watch::start(nobody).await.expect("there is a port");
        let parse = sent(b'P', b"s1\0SELECT $1\0\0\0");
        let bind = |name: &str| sent(b'B', format!("\0{name}\0\0\0\0\0\0\0").as_bytes());
        let (run, begin) = (sent(b'E', b"\0\0\0\0\0"), sent(b'Q', b"BEGIN\0"));
        assert!(watch.statements(&parse).is_empty(), "it only prepares");
        let both = [begin, bind("s1"), run.clone(), bind("s2"), run].concat();
        assert_eq!(watch.statements(&both), ["BEGIN", "SELECT $1", ""], "nobody prepared s2");
        for end in 0..both.len() {
            assert!(watch.statements(&both[..end]).len() < 3, "{end} bytes");
        }
        assert!(watch.statements(b"Q\0\0\0\x03").is_empty(), "it is shorter than its length");
    }
}
