//! The rows of a store before it is opened: their form, and the catalog.

use mingle_store::StoreSchema;

use super::{broken, is_serializable, refused};
use crate::catalog::Catalog;
use crate::config::{EmbeddedConfig, OpenError};
use crate::encoding::key;
use crate::limits::SHARED_INDEXES_MAX;
use crate::storage::{Direction, Storage, StorageError};

/// The rows of a store before it is opened.
pub struct Rows {
    /// The rows.
    pub storage: Box<dyn Storage>,
    /// The name of their form.
    pub form: String,
    /// True if several programs have the store at the same time, each with indexes of its own.
    pub is_shared: bool,
}

/// Refuses more indexes than a store of several programs has.
pub fn check_count(
    is_shared: bool,
    catalog: Option<&Catalog>,
    schema: &StoreSchema,
) -> Result<(), OpenError> {
    let count = catalog.map_or(0, |catalog| catalog.indexes().len());
    if !is_shared || count <= SHARED_INDEXES_MAX {
        return Ok(());
    }
    Err(refused(
        schema,
        format!(
            "its programs have declared {count} indexes, and at most {SHARED_INDEXES_MAX} are kept"
        ),
    ))
}

/// Returns the catalog of a store, if it was opened before.
pub fn load_catalog(
    storage: &dyn Storage,
    config: &EmbeddedConfig,
    schema: &StoreSchema,
) -> Result<Option<Catalog>, OpenError> {
    let row = storage
        .snapshot()
        .and_then(|view| view.get(key::CATALOG))
        .map_err(|error| broken(config, schema, &error))?;
    let Some(row) = row else { return Ok(None) };
    let catalog = Catalog::decode(&row).ok_or_else(|| {
        let why = match Catalog::unknown_format(&row) {
            Some(format) => format!(
                "its catalog has format {format}, of another version of this engine: open it with the version of Mingle that wrote it"
            ),
            None => "its catalog cannot be read".to_owned(),
        };
        broken(config, schema, &StorageError::new(why))
    })?;
    Ok(Some(catalog))
}

/// Returns the name of the form of a store's rows.
pub fn form_of(config: &EmbeddedConfig, schema: &StoreSchema) -> String {
    let Some(geo) = &config.geo else { return "replicas".into() };
    let certified = if is_serializable(schema.level) { ", certified" } else { "" };
    match geo.partitions {
        1 => format!("data centers of 1 partition{certified}"),
        many => format!("data centers of {many} partitions{certified}"),
    }
}

/// Checks the form of the rows: replicas, data centers and other partitions use different forms.
pub fn check_form(
    is_kept: bool,
    storage: &dyn Storage,
    wanted: &str,
    (config, schema): (&EmbeddedConfig, &StoreSchema),
) -> Result<(), OpenError> {
    if !is_kept {
        return Ok(());
    }
    let row = storage.snapshot().and_then(|view| view.get(key::FORM));
    let row = row.map_err(|error| broken(config, schema, &error))?;
    // Stores made before data centers existed have no such row.
    let kept = row.map_or("replicas".into(), |row| String::from_utf8_lossy(&row).into_owned());
    if kept == wanted {
        return Ok(());
    }
    let (store, what) = (schema.store.clone(), "its copies".into());
    Err(OpenError::Changed { store, what, kept, wanted: wanted.to_owned() })
}

/// Refuses a moved object: it would leave its rows behind in the old store, unseen.
pub fn check_moved(
    catalog: &Catalog,
    storage: &dyn Storage,
    config: &EmbeddedConfig,
    schema: &StoreSchema,
) -> Result<(), OpenError> {
    let failed = |error: &StorageError| broken(config, schema, error);
    let view = storage.snapshot().map_err(|error| failed(&error))?;
    for (id, name, store) in catalog.moved(schema) {
        for replica in 0..config.replicas.len() {
            let replica = u8::try_from(replica).expect("there are at most 64 replicas");
            let mut has_rows = false;
            let mut visit = |_: &[u8], _: &[u8]| {
                has_rows = true;
                false
            };
            view.scan(&key::objects(replica, id), None, Direction::Forward, &mut visit)
                .map_err(|error| failed(&error))?;
            if has_rows {
                return Err(OpenError::Changed {
                    store: schema.store.clone(),
                    what: format!("object {name}"),
                    kept: format!("in {}", schema.store),
                    wanted: format!("in {store}"),
                });
            }
        }
    }
    Ok(())
}
