//! Opening a store that is kept in a folder.

use std::path::Path;

use mingle_store::StoreSchema;

use crate::config::{EmbeddedConfig, OpenError};
use crate::encoding::key;
use crate::folder::Folder;
use crate::open::broken;
use crate::storage::contain::contain;
use crate::storage::disk::{DiskError, DiskStorage};
use crate::storage::{Storage, StorageError};

/// Opens the file of a store, which is made if it never was.
///
/// # Errors
///
/// When the file is in use, gone although it was made, empty or damaged, or the disk fails.
pub fn open_disk(folder: &Path, schema: &StoreSchema) -> Result<DiskStorage, OpenError> {
    let place = Folder(folder);
    let path = place.file(&schema.store);
    let failed = |reason: String| OpenError::Storage {
        store: schema.store.clone(),
        path: path.clone(),
        reason,
    };
    let made =
        place.make().and_then(|()| place.made()).map_err(|error| failed(error.to_string()))?;
    let was_made = made.contains(&*schema.store);
    let disk = DiskStorage::open(&path, !was_made).map_err(|error| match error {
        DiskError::Locked => {
            OpenError::Locked { store: schema.store.clone(), folder: folder.to_path_buf() }
        }
        DiskError::Gone => failed(format!(
            "the file is gone, and the store was made here before; put a copy of it in its place, or remove the line {} from {} to begin with an empty store",
            schema.store,
            place.list().display()
        )),
        DiskError::Failed(error) => failed(error.to_string()),
    })?;
    let catalog = disk.snapshot().and_then(|view| view.get(key::CATALOG));
    if was_made && catalog.map_err(|error| failed(error.to_string()))?.is_none() {
        return Err(failed(
            "the file has no store in it, and the store was made here before".into(),
        ));
    }
    Ok(disk)
}

/// Takes what a store keeps from its storage: where that makes no sense, it is damaged.
pub fn contained<T>(
    is_durable: bool,
    config: &EmbeddedConfig,
    schema: &StoreSchema,
    open: impl FnOnce() -> Result<T, OpenError>,
) -> Result<T, OpenError> {
    if !is_durable {
        // In memory it is a mistake of ours.
        return open();
    }
    let damaged = |panic| Err(broken(config, schema, &StorageError::damaged(panic)));
    contain(open).unwrap_or_else(damaged)
}

/// Notes that a store was made, once it is open.
pub fn note_made(config: &EmbeddedConfig, schema: &StoreSchema) -> Result<(), OpenError> {
    let Some(folder) = &config.folder else { return Ok(()) };
    let noted = Folder(folder).note(&schema.store);
    noted.map_err(|error| broken(config, schema, &StorageError::new(error)))
}
