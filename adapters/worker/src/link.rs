//! Connections to a worker: HTTP/1.1, one request at a time on each; idle connections are kept.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue};
use hyper::{Method, Request, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::config::WorkerConfig;
use crate::limits::{ANSWER_BYTES_MAX, IDLE_FOR, IDLE_MAX};
use crate::wire;

/// Requests to one worker.
pub(crate) struct Link {
    host: String,
    port: u16,
    authority: HeaderValue,
    authorization: Option<HeaderValue>,
    tls: Option<(TlsConnector, ServerName<'static>)>,
    connect_within: Duration,
    idle: Mutex<Vec<(Instant, Sender)>>,
}

type Sender = SendRequest<Full<Bytes>>;

/// An answer that arrived.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) body: Bytes,
}

/// A problem, with the parts that this crate uses.
pub(crate) struct Problem {
    pub(crate) code: String,
    pub(crate) detail: String,
}

impl Answer {
    /// Returns the problem, if the answer reports one.
    pub(crate) fn problem(&self) -> Option<Problem> {
        if self.status.is_success() {
            return None;
        }
        let json: serde_json::Value = serde_json::from_slice(&self.body).unwrap_or_default();
        let text = |name: &str| json[name].as_str().map(str::to_owned);
        Some(Problem {
            code: text("code").unwrap_or_default(),
            detail: text("detail").unwrap_or_else(|| format!("it answers {}", self.status)),
        })
    }
}

/// The reason why there is no answer.
#[derive(Debug)]
pub(crate) enum Failed {
    /// Nothing was sent.
    NotSent(String),
    /// The request may have arrived.
    Lost(String),
}

impl Failed {
    pub(crate) fn reason(self) -> String {
        match self {
            Self::NotSent(reason) | Self::Lost(reason) => reason,
        }
    }
}

/// The parts of a worker's address.
pub(crate) struct Place {
    encrypted: bool,
    host: String,
    port: u16,
    authority: HeaderValue,
}

impl Place {
    pub(crate) fn of(url: &str) -> Result<Self, String> {
        let expected =
            || format!("expected http://HOST:PORT or https://HOST:PORT as worker, found {url:?}");
        let uri: Uri = url.parse().map_err(|_| expected())?;
        let (scheme, authority) = uri.scheme_str().zip(uri.authority()).ok_or_else(expected)?;
        let encrypted = match scheme {
            "http" => false,
            "https" => true,
            _ => return Err(expected()),
        };
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        let is_plain_path = matches!(uri.path(), "" | "/") && uri.query().is_none();
        if !is_plain_path || host.is_empty() || url.contains(['@', '#']) {
            return Err(expected());
        }
        let rest = &authority.as_str()[authority.host().len()..];
        let port = match (rest.strip_prefix(':'), encrypted) {
            (Some(port), _) => port.parse().ok().filter(|port| *port != 0).ok_or_else(expected)?,
            (None, true) => 443,
            (None, false) => 80,
        };
        let authority = HeaderValue::try_from(authority.as_str()).map_err(|_| expected())?;
        Ok(Self { encrypted, host, port, authority })
    }
}

impl Link {
    /// Checks the binding; does not connect yet.
    pub(crate) fn new(config: &WorkerConfig) -> Result<Self, String> {
        let Place { encrypted, host: name, port, authority } = Place::of(&config.url)?;
        let authorization = config.token.as_ref().map(|token| {
            let value = HeaderValue::try_from(format!("Bearer {token}"));
            let mut value = value.map_err(|_| "token: it is no text of visible characters")?;
            value.set_sensitive(true);
            Ok::<_, String>(value)
        });
        let tls = encrypted.then(|| tls(config, &name));
        Ok(Self {
            host: name,
            port,
            authority,
            authorization: authorization.transpose()?,
            tls: tls.transpose()?,
            connect_within: config.connect_timeout,
            idle: Mutex::default(),
        })
    }

    /// Sends a request, and waits for the whole answer.
    pub(crate) async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Vec<u8>,
        within: Duration,
    ) -> Result<Answer, Failed> {
        let request = self.request(method, path, body).map_err(Failed::NotSent)?;
        let answered = tokio::time::timeout(within, self.send(request)).await;
        answered.map_err(|_| Failed::Lost(format!("no answer within {within:?}")))?
    }

    async fn send(&self, mut request: Request<Full<Bytes>>) -> Result<Answer, Failed> {
        loop {
            let idle = self.idle();
            let is_new = idle.is_none();
            let mut sender = match idle {
                Some(sender) => sender,
                None => {
                    let connected = tokio::time::timeout(self.connect_within, self.connect()).await;
                    let late = |_| format!("no connection within {:?}", self.connect_within);
                    let connected = connected.map_err(late).and_then(|connected| connected);
                    connected.map_err(Failed::NotSent)?
                }
            };
            let response = match sender.try_send_request(request).await {
                Ok(response) => response,
                Err(mut error) => match error.take_message() {
                    // The server had closed the idle connection: nothing was sent.
                    Some(unsent) if !is_new => {
                        request = unsent;
                        continue;
                    }
                    Some(_) => return Err(Failed::NotSent(error.into_error().to_string())),
                    None => return Err(Failed::Lost(error.into_error().to_string())),
                },
            };
            let status = response.status();
            let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
            let body = body.map_err(|error| Failed::Lost(error.to_string()))?.to_bytes();
            if sender.ready().await.is_ok() {
                self.keep(sender);
            }
            return Ok(Answer { status, body });
        }
    }

    fn request(
        &self,
        method: Method,
        path: &str,
        body: Vec<u8>,
    ) -> Result<Request<Full<Bytes>>, String> {
        let mut builder = Request::builder().method(method).uri(path);
        builder = builder.header(HOST, self.authority.clone());
        if !body.is_empty() {
            builder = builder.header(CONTENT_TYPE, wire::CONTENT_TYPE);
        }
        if let Some(authorization) = &self.authorization {
            builder = builder.header(AUTHORIZATION, authorization.clone());
        }
        builder.body(Full::new(body.into())).map_err(|error| error.to_string())
    }

    /// Returns an open connection that was used recently.
    fn idle(&self) -> Option<Sender> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some((since, sender)) = idle.pop() {
            if sender.is_ready() && since.elapsed() < IDLE_FOR {
                return Some(sender);
            }
        }
        None
    }

    fn keep(&self, sender: Sender) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE_MAX {
            idle.push((Instant::now(), sender));
        }
    }

    async fn connect(&self) -> Result<Sender, String> {
        let connected = TcpStream::connect((self.host.as_str(), self.port)).await;
        let stream = connected.map_err(|error| error.to_string())?;
        let _ = stream.set_nodelay(true);
        match &self.tls {
            None => speak(stream).await,
            Some((connector, name)) => {
                let stream = connector.connect(name.clone(), stream).await;
                speak(stream.map_err(|error| format!("tls: {error}"))?).await
            }
        }
    }
}

async fn speak<S>(stream: S) -> Result<Sender, String>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let begun = http1::handshake(TokioIo::new(stream)).await;
    let (sender, connection) = begun.map_err(|error| error.to_string())?;
    // The task ends with the connection, which ends when its sender is dropped.
    tokio::spawn(async move {
        let _ = connection.await;
    });
    Ok(sender)
}

fn tls(config: &WorkerConfig, host: &str) -> Result<(TlsConnector, ServerName<'static>), String> {
    let mut roots = RootCertStore::empty();
    match &config.root_certificates {
        Some(pem) => {
            for certificate in CertificateDer::pem_slice_iter(pem) {
                let certificate =
                    certificate.map_err(|error| format!("root_certificates: {error}"))?;
                roots.add(certificate).map_err(|error| format!("root_certificates: {error}"))?;
            }
            if roots.is_empty() {
                return Err("root_certificates: expected certificates in PEM, found none".into());
            }
        }
        None => {
            let found = rustls_native_certs::load_native_certs();
            roots.add_parsable_certificates(found.certs);
        }
    }
    let name = ServerName::try_from(host.to_owned()).map_err(|error| error.to_string())?;
    let provider = Arc::new(ring::default_provider());
    let client = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok((TlsConnector::from(Arc::new(client)), name))
}
