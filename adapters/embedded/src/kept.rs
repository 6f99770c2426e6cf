//! Opening a store that is kept in a folder, and giving it another name.

use std::collections::BTreeSet;
use std::path::Path;

use mingle_model::Name;
use mingle_store::{RecordKind, StoreSchema};

use crate::config::{EmbeddedConfig, OpenError};
use crate::encoding::key;
use crate::folder::Folder;
use crate::limits::REPLICAS_MAX;
use crate::open::broken;
use crate::storage::contain::contain;
use crate::storage::disk::{DiskError, DiskStorage, sync_folder};
use crate::storage::{Direction, Storage, StorageError};

/// Opens the file of a store; makes the file if it was never made.
///
/// # Errors
///
/// When the file is in use, missing although it was made, empty or damaged, or the disk fails.
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

/// Runs `open` on the content of a store's storage; content that makes no sense counts as damage.
pub fn contained<T>(
    is_durable: bool,
    config: &EmbeddedConfig,
    schema: &StoreSchema,
    open: impl FnOnce() -> Result<T, OpenError>,
) -> Result<T, OpenError> {
    if !is_durable {
        // In memory, such content is a bug of the engine.
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

/// Returns the stores whose files are in a folder.
///
/// # Errors
///
/// When the folder cannot be read.
pub fn stores(folder: &Path) -> Result<BTreeSet<String>, OpenError> {
    Folder(folder).kept().map_err(|error| OpenError::Folder {
        folder: folder.to_path_buf(),
        reason: error.to_string(),
    })
}

/// Renames a store of a folder, with all its content. A repeated call changes nothing.
///
/// # Errors
///
/// When the store is in use, when the folder has unfinished transactions (they contain the store's name), or
/// when the disk fails.
pub fn rename(folder: &Path, from: &Name, to: &Name) -> Result<(), OpenError> {
    let place = Folder(folder);
    let failed =
        |reason: String| OpenError::Storage { store: from.clone(), path: place.file(from), reason };
    if !stores(folder)?.contains(&**to) {
        for store in stores(folder)? {
            check_finished(folder, &store.as_str().into())?;
        }
        std::fs::rename(place.file(from), place.file(to))
            .and_then(|()| sync_folder(&place.file(to)))
            .map_err(|error| failed(error.to_string()))?;
    }
    // If an earlier attempt was cut off after it renamed the file, only this step is left.
    place.rename(from, to).map_err(|error| failed(error.to_string()))
}

/// Checks that no unfinished transaction has left anything in a store.
fn check_finished(folder: &Path, store: &Name) -> Result<(), OpenError> {
    let path = Folder(folder).file(store);
    let failed =
        |reason: String| OpenError::Storage { store: store.clone(), path: path.clone(), reason };
    let disk = DiskStorage::open(&path, false).map_err(|error| match error {
        DiskError::Locked => {
            OpenError::Locked { store: store.clone(), folder: folder.to_path_buf() }
        }
        other => failed(other.to_string()),
    })?;
    let view = disk.snapshot().map_err(|error| failed(error.to_string()))?;
    let mut is_finished = true;
    for replica in 0..REPLICAS_MAX {
        let replica = u8::try_from(replica).expect("there are at most 64");
        let rows = key::by_transaction(replica, None);
        for prefix in [rows, key::records(replica, RecordKind::Intent)] {
            let seen = view.scan(&prefix, None, Direction::Forward, &mut |_, _| {
                is_finished = false;
                false
            });
            seen.map_err(|error| failed(error.to_string()))?;
        }
    }
    if is_finished {
        return Ok(());
    }
    let reason = "transactions are not finished, and name the store as it was called: finish them with the program as it was (`mingle recover`), and rename it then";
    Err(OpenError::Config { store: store.clone(), reason: reason.into() })
}
