//! The address of a database, and the password in it.

/// An address of a database, split into the parts that this command needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// The part before the password: `postgres://user`.
    before: String,
    password: Option<String>,
    /// The part after the password: `@host:port/database?…`.
    after: String,
    /// The name of the database; in Redis its number.
    pub database: String,
}

/// The beginnings of addresses of PostgreSQL.
pub const POSTGRES: [&str; 2] = ["postgres://", "postgresql://"];

/// The beginnings of addresses of Redis and Valkey.
pub const REDIS: [&str; 4] = ["redis://", "rediss://", "valkey://", "valkeys://"];

/// The parameter of an address that gives the password.
const PASSWORD_KEY: &str = "password=";

impl Address {
    /// Parses an address that begins with one of these schemes; none if it begins with no one of them.
    pub fn parse(url: &str, schemes: &[&str]) -> Option<Self> {
        let scheme = schemes.iter().find(|scheme| url.starts_with(**scheme))?;
        let rest = &url[scheme.len()..];
        let (place, parameters) = rest.split_once('?').unwrap_or((rest, ""));
        let path = place.rsplit_once('/').map_or("", |(_, path)| path);
        let user = place.rsplit_once('@').map_or("", |(credentials, _)| credentials);
        let user_name = user.split(':').next().unwrap_or_default();
        // As in libpq, the default name of the database is the user's name.
        let database = if path.is_empty() { user_name } else { path }.to_owned();
        if let Some((name, password)) = user.split_once(':') {
            let after = &rest[user.len()..];
            return Some(Self {
                before: format!("{scheme}{name}:"),
                password: Some(password.to_owned()),
                after: after.to_owned(),
                database,
            });
        }
        let of_parameter = parameters.split('&').find_map(|it| it.strip_prefix(PASSWORD_KEY));
        let Some(password) = of_parameter else {
            return Some(Self {
                before: url.to_owned(),
                password: None,
                after: String::new(),
                database,
            });
        };
        let at = url.len() - parameters.len();
        let key = format!("{PASSWORD_KEY}{password}");
        let found = parameters.find(&key).map_or(at, |found| at + found) + PASSWORD_KEY.len();
        Some(Self {
            before: url[..found].to_owned(),
            password: Some(password.to_owned()),
            after: url[found + password.len()..].to_owned(),
            database,
        })
    }

    /// Returns the address with a variable in place of the password, and the variable's name and
    /// value; none if there is no password, or if the address has a variable there already.
    pub fn without_password(self, name: &str) -> (String, Option<(String, String)>) {
        match self.password {
            Some(password) if !password.starts_with("${") => {
                let variable = format!("{}_PASSWORD", name.to_uppercase());
                let address = format!("{}${{{variable}}}{}", self.before, self.after);
                (address, Some((variable, password)))
            }
            password => (self.before + &password.unwrap_or_default() + &self.after, None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_becomes_a_variable_wherever_it_stands() {
        for (url, address, password) in [
            (
                "postgres://app:s%40c@db:5433/shop?sslmode=require",
                "postgres://app:${S_PASSWORD}@db:5433/shop?sslmode=require",
                Some("s%40c"),
            ),
            (
                "postgresql://db/shop?user=app&password=secret&sslmode=require",
                "postgresql://db/shop?user=app&password=${S_PASSWORD}&sslmode=require",
                Some("secret"),
            ),
            ("postgres://app@db/shop", "postgres://app@db/shop", None),
            ("postgres://app:${P}@db/shop", "postgres://app:${P}@db/shop", None),
        ] {
            let parsed = Address::parse(url, &POSTGRES).expect("it is an address");
            assert_eq!(parsed.database, "shop", "{url}");
            let (without, variable) = parsed.without_password("s");
            assert_eq!(without, address);
            assert_eq!(variable.map(|(_, value)| value).as_deref(), password, "{url}");
        }
        let of_user = Address::parse("postgres://app@db", &POSTGRES).expect("an address");
        assert_eq!(of_user.database, "app");
        assert_eq!(Address::parse("redis://db/0", &POSTGRES), None);
        let redis = Address::parse("rediss://:s3@db:6380/0", &REDIS).expect("an address");
        let (without, variable) = redis.without_password("s");
        assert_eq!(without, "rediss://:${S_PASSWORD}@db:6380/0");
        assert_eq!(variable.map(|(_, value)| value).as_deref(), Some("s3"));
    }
}
