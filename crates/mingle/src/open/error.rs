//! The reasons why a database could not be opened.

use std::fmt;

/// The reason why a database could not be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OpenError {
    /// The binding names a store or an operation that the program does not have.
    Binding(String),
    /// A store of the embedded engine could not be opened.
    #[cfg(feature = "embedded")]
    Embedded(mingle_store_embedded::OpenError),
    /// A store in PostgreSQL could not be opened.
    #[cfg(feature = "postgres")]
    Postgres(mingle_store_postgres::OpenError),
    /// A store in Redis could not be opened.
    #[cfg(feature = "redis")]
    Redis(mingle_store_redis::OpenError),
    /// A store in Cassandra could not be opened.
    #[cfg(feature = "cassandra")]
    Cassandra(mingle_store_cassandra::OpenError),
    /// A store in a cluster of `mingled` could not be opened.
    #[cfg(feature = "mingled")]
    Mingled(mingle_store_mingled::OpenError),
    /// A store behind a worker could not be opened.
    #[cfg(feature = "worker")]
    Worker(mingle_store_worker::OpenError),
}

impl OpenError {
    /// True if the binding is at fault, rather than the store or its data.
    pub fn is_misconfiguration(&self) -> bool {
        match self {
            Self::Binding(_) => true,
            #[cfg(feature = "embedded")]
            Self::Embedded(error) => {
                use mingle_store_embedded::OpenError as Error;
                matches!(error, Error::Config { .. } | Error::Operation { .. })
            }
            #[cfg(feature = "postgres")]
            Self::Postgres(error) => {
                use mingle_store_postgres::OpenError as Error;
                matches!(
                    error,
                    Error::Config { .. } | Error::Operation { .. } | Error::Mapping { .. }
                )
            }
            #[cfg(feature = "redis")]
            Self::Redis(error) => {
                use mingle_store_redis::OpenError as Error;
                matches!(
                    error,
                    Error::Config { .. }
                        | Error::Unfit { .. }
                        | Error::Operation { .. }
                        | Error::Mapping { .. }
                )
            }
            #[cfg(feature = "cassandra")]
            Self::Cassandra(error) => {
                use mingle_store_cassandra::OpenError as Error;
                matches!(
                    error,
                    Error::Config { .. } | Error::Operation { .. } | Error::Mapping { .. }
                )
            }
            #[cfg(feature = "mingled")]
            Self::Mingled(error) => {
                use mingle_store_mingled::OpenError as Error;
                matches!(
                    error,
                    Error::Config { .. } | Error::Refused { .. } | Error::Untrusted { .. }
                )
            }
            #[cfg(feature = "worker")]
            Self::Worker(error) => {
                use mingle_store_worker::OpenError as Error;
                matches!(error, Error::Config { .. } | Error::Refused { .. })
            }
        }
    }

    /// True if the data in the folder were written under other declarations, which this program changes.
    pub fn is_changed_declaration(&self) -> bool {
        match self {
            #[cfg(feature = "embedded")]
            Self::Embedded(error) => {
                matches!(error, mingle_store_embedded::OpenError::Changed { .. })
            }
            _ => false,
        }
    }

    /// True if the store may be away only for a while: it does not answer, another process has its folder,
    /// or its disk fails.
    pub fn is_unavailable(&self) -> bool {
        match self {
            Self::Binding(_) => false,
            #[cfg(feature = "embedded")]
            Self::Embedded(error) => {
                use mingle_store_embedded::OpenError as Error;
                matches!(error, Error::Locked { .. } | Error::Storage { .. })
            }
            #[cfg(feature = "postgres")]
            Self::Postgres(error) => {
                matches!(error, mingle_store_postgres::OpenError::Unavailable { .. })
            }
            #[cfg(feature = "redis")]
            Self::Redis(error) => {
                matches!(error, mingle_store_redis::OpenError::Unavailable { .. })
            }
            #[cfg(feature = "cassandra")]
            Self::Cassandra(error) => {
                matches!(error, mingle_store_cassandra::OpenError::Unavailable { .. })
            }
            #[cfg(feature = "mingled")]
            Self::Mingled(error) => {
                matches!(error, mingle_store_mingled::OpenError::Unavailable { .. })
            }
            #[cfg(feature = "worker")]
            Self::Worker(error) => {
                matches!(error, mingle_store_worker::OpenError::Unavailable { .. })
            }
        }
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Binding(message) => f.write_str(message),
            #[cfg(feature = "embedded")]
            Self::Embedded(error) => write!(f, "{error}"),
            #[cfg(feature = "postgres")]
            Self::Postgres(error) => write!(f, "{error}"),
            #[cfg(feature = "redis")]
            Self::Redis(error) => write!(f, "{error}"),
            #[cfg(feature = "cassandra")]
            Self::Cassandra(error) => write!(f, "{error}"),
            #[cfg(feature = "mingled")]
            Self::Mingled(error) => write!(f, "{error}"),
            #[cfg(feature = "worker")]
            Self::Worker(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for OpenError {}
