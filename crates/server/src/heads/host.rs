//! A host with its port, as in the `Host` header of a request (RFC 9110, section 7.2).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The host that a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Host<'a> {
    name: &'a str,
    address: Option<IpAddr>,
}

impl<'a> Host<'a> {
    /// Parses a whole text as `NAME`, `NAME:PORT`, `[ADDRESS]` or `[ADDRESS]:PORT`.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let (name, address, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (inner, port) = rest.split_once(']')?;
                (inner, Some(IpAddr::V6(inner.parse::<Ipv6Addr>().ok()?)), port)
            }
            None => {
                let end = text.find(':').unwrap_or(text.len());
                let (name, port) = text.split_at(end);
                let allowed =
                    |byte: u8| byte.is_ascii_alphanumeric() || b"-._~%!$&'()*+,;=".contains(&byte);
                if name.is_empty() || !name.bytes().all(allowed) {
                    return None;
                }
                (name, name.parse::<Ipv4Addr>().ok().map(IpAddr::V4), port)
            }
        };
        let is_port = match port.strip_prefix(':') {
            Some(digits) => {
                digits.bytes().all(|byte| byte.is_ascii_digit())
                    && (digits.is_empty() || digits.parse::<u16>().is_ok())
            }
            None => port.is_empty(),
        };
        is_port.then_some(Self { name, address })
    }

    /// True if the host names this machine, as seen from this machine.
    pub(crate) fn is_loopback(self) -> bool {
        self.name.eq_ignore_ascii_case("localhost")
            || self.address.is_some_and(|address| address.is_loopback())
    }
}

#[cfg(test)]
mod tests {
    use super::Host;

    #[test]
    fn names_of_this_machine_are_known() {
        for (host, expected) in [
            ("localhost", Some(true)),
            ("LocalHost:8080", Some(true)),
            ("localhost:", Some(true)),
            ("127.0.0.1:8080", Some(true)),
            ("127.1.2.3", Some(true)),
            ("[::1]:8080", Some(true)),
            ("[::2]:8080", Some(false)),
            ("192.168.0.1", Some(false)),
            ("localhost.example.org:8080", Some(false)),
            ("127.0.0.1.example.org", Some(false)),
            ("localhost.", Some(false)),
            ("", None),
            (":80", None),
            ("localhost:8080.example.org", None),
            ("127.0.0.1:80:80", None),
            ("localhost:99999", None),
            ("localhost:+80", None),
            ("[::1].example.org", None),
            ("[::1", None),
            ("[localhost]", None),
            ("::1", None),
            ("me@localhost", None),
            ("local host", None),
            ("localhost/", None),
        ] {
            assert_eq!(Host::parse(host).map(Host::is_loopback), expected, "{host}");
        }
    }
}
