//! The address of a keyspace.

use crate::exit::Failure;

/// The beginning of an address.
pub const SCHEME: &str = "cassandra://";

/// The port where no port is given.
const PORT: &str = "9042";

/// An address of a keyspace, as `cassandra://user:password@host:port,host:port/keyspace?datacenter=NAME&tls=true`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Address {
    /// Nodes, as `host:port`.
    pub nodes: Vec<String>,
    /// The keyspace; empty if none is named.
    pub keyspace: String,
    /// The data centers at which sessions stay; empty stands for all that have copies of the keyspace.
    pub datacenters: Vec<String>,
    /// The user and the password.
    pub credentials: Option<(String, String)>,
    /// True if connections are encrypted.
    pub is_encrypted: bool,
}

impl Address {
    /// Parses the part of an address after [`SCHEME`].
    ///
    /// # Errors
    ///
    /// When it has another form.
    pub fn parse(rest: &str) -> Result<Self, Failure> {
        let (place, parameters) = rest.split_once('?').unwrap_or((rest, ""));
        let (place, keyspace) = place.split_once('/').unwrap_or((place, ""));
        let (user, hosts) = match place.rsplit_once('@') {
            Some((user, hosts)) => (Some(user), hosts),
            None => (None, place),
        };
        let credentials = match user.map(|user| user.split_once(':')) {
            None => None,
            Some(Some((user, password))) => Some((decoded(user)?, decoded(password)?)),
            Some(None) => {
                return Err(wrong("a password after the user", "cassandra://user:password@host"));
            }
        };
        let nodes: Vec<String> = hosts.split(',').map(node).collect::<Result<_, _>>()?;
        let mut address =
            Self { nodes, keyspace: decoded(keyspace)?, credentials, ..Self::default() };
        for parameter in parameters.split('&').filter(|parameter| !parameter.is_empty()) {
            match parameter.split_once('=') {
                Some(("datacenter", name)) => address.datacenters.push(decoded(name)?),
                Some(("tls", "true")) => address.is_encrypted = true,
                Some(("tls", "false")) => address.is_encrypted = false,
                _ => {
                    return Err(Failure::usage(format!(
                        "expected `datacenter=NAME` or `tls=true` in the address, found `{parameter}`"
                    )));
                }
            }
        }
        Ok(address)
    }

    /// Returns the address with a variable in place of the password, and the variable's name and value; none if there
    /// is no password, or if the address has a variable there already.
    pub fn without_password(mut self, name: &str) -> (Self, Option<(String, String)>) {
        let Some((_, password)) = &mut self.credentials else { return (self, None) };
        if password.starts_with("${") {
            return (self, None);
        }
        let variable = format!("{}_PASSWORD", name.to_uppercase());
        let value = std::mem::replace(password, format!("${{{variable}}}"));
        (self, Some((variable, value)))
    }
}

fn wrong(expected: &str, example: &str) -> Failure {
    Failure::usage(format!("expected {expected}, as in `{example}`"))
}

/// Returns a node with its port.
fn node(host: &str) -> Result<String, Failure> {
    if host.is_empty() {
        return Err(wrong("the host of each node", "cassandra://10.0.0.1:9042,10.1.0.1:9042/shop"));
    }
    // The colons of an address of IPv6 are in brackets.
    let after = host.rsplit_once(']').map_or(host, |(_, after)| after);
    Ok(if after.contains(':') { host.to_owned() } else { format!("{host}:{PORT}") })
}

/// Returns a part of an address with the characters for which `%` and two hexadecimal digits stand.
fn decoded(part: &str) -> Result<String, Failure> {
    let odd =
        || Failure::usage(format!("`{part}` in the address is no text with `%` and two digits"));
    let (mut bytes, mut rest) = (Vec::new(), part.as_bytes());
    while let [first, after @ ..] = rest {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digits = rest.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()).ok_or_else(odd)?;
        bytes.push(byte);
        rest = &rest[2..];
    }
    String::from_utf8(bytes).map_err(|_| odd())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_nodes_a_keyspace_and_a_user() {
        let given = "app:s%40c%3a@10.0.0.1,[::1],db:9043/shop?datacenter=oslo&tls=true";
        let address = Address::parse(given).expect("an address");
        assert_eq!(address.nodes, ["10.0.0.1:9042", "[::1]:9042", "db:9043"]);
        assert_eq!((&*address.keyspace, address.is_encrypted), ("shop", true));
        assert_eq!(address.datacenters, ["oslo"]);
        let (without, variable) = address.without_password("shop");
        assert_eq!(without.credentials, Some(("app".into(), "${SHOP_PASSWORD}".into())));
        assert_eq!(variable, Some(("SHOP_PASSWORD".into(), "s@c:".into())));

        let (kept, variable) =
            Address::parse("app:${P}@db/shop").expect("an address").without_password("shop");
        assert_eq!(kept.credentials, Some(("app".into(), "${P}".into())));
        assert_eq!(variable, None);
    }

    #[test]
    fn an_address_of_another_form_is_refused() {
        for (given, words) in [
            ("", "the host of each node"),
            ("a,,b/shop", "the host of each node"),
            ("app@db/shop", "a password after the user"),
            ("db/shop?tls=yes", "found `tls=yes`"),
            ("db/sh%4", "`sh%4` in the address"),
            ("db/%ff", "`%ff` in the address"),
        ] {
            let refused = Address::parse(given).expect_err("it has another form");
            assert!(refused.message.contains(words), "{given}: {}", refused.message);
        }
    }
}
