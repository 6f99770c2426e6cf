//! A TCP proxy between a client and a server for tests, which injects network faults.
//!
//! [`Proxy::start`] listens on loopback and passes on bytes in both directions. It can delay them,
//! refuse and cut connections, cut a request in the middle, lose an answer, and hang. It knows no
//! protocol: its unit is the *burst*, the bytes that a client has sent by the time the proxy reads.
//! For clients that send a request whole and wait for its answer, a burst is a request.
//!
//! ```
//! # use tokio::io::{AsyncReadExt, AsyncWriteExt};
//! # use tokio::net::{TcpListener, TcpStream};
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> std::io::Result<()> {
//! # let server = TcpListener::bind("127.0.0.1:0").await?;
//! # let upstream = server.local_addr()?;
//! # tokio::spawn(async move {
//! #     let (mut stream, _) = server.accept().await.unwrap();
//! #     let mut request = [0; 6];
//! #     stream.read_exact(&mut request).await.unwrap();
//! #     stream.write_all(b"done").await.unwrap();
//! # });
//! use mingle_proxy::{Fault, Proxy};
//!
//! let proxy = Proxy::start(upstream, 7).await?;
//! proxy.once_containing(b"COMMIT", Fault::LoseAnswer);
//!
//! let mut client = TcpStream::connect(proxy.address()).await?;
//! client.write_all(b"COMMIT").await?;
//! // The server has answered, and the client cannot know.
//! assert!(!matches!(client.read(&mut [0; 4]).await, Ok(1..)));
//! assert_eq!(proxy.counts().answers_lost, 1);
//! # Ok(())
//! # }
//! ```
//!
//! - [`proxy`]: the commands for tests.
//! - [`fault`]: the faults of a burst, and their probabilities.
//! - [`delay`]: the delays of bytes.
//! - [`statements`]: the statements that clients of PostgreSQL send.
//! - `link`: one connection through the proxy.

pub mod delay;
pub mod fault;
mod link;
pub mod proxy;
pub mod statements;

pub use delay::Delay;
pub use fault::{Counts, Fault, Rates};
pub use proxy::Proxy;
pub use statements::Watch;
