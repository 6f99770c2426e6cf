//! The folder of all files, and the user that runs the servers.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::Error;
use crate::process::Process;
use crate::tool::tool;

/// The user and group of the servers if this process is root, which PostgreSQL refuses: `nobody`.
const NOBODY: u32 = 65534;

/// The folder of fetched files and of the data of running servers.
#[derive(Clone, Debug)]
pub struct Home {
    path: PathBuf,
}

impl Home {
    /// Finds the folder that `MINGLE_SERVICES` names, or `target/services` in the workspace. If
    /// this process is root and [`NOBODY`] cannot reach that folder, it is a folder in the
    /// temporary directory.
    ///
    /// # Errors
    ///
    /// If the folder cannot be created, or belongs to another user.
    pub fn find() -> Result<Self, Error> {
        let named = std::env::var_os("MINGLE_SERVICES").filter(|path| !path.is_empty());
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let workspace = here.ancestors().nth(2).unwrap_or(here);
        let path = named.map_or_else(|| workspace.join("target/services"), PathBuf::from);
        Self::at(&path)
    }

    /// Like [`Home::find`], for a given folder.
    ///
    /// # Errors
    ///
    /// If the folder cannot be created, or belongs to another user.
    pub fn at(path: &Path) -> Result<Self, Error> {
        let path = make(path)?;
        if !is_root() || path.ancestors().all(is_open) {
            return Ok(Self { path });
        }
        let name: String = path.to_string_lossy().replace('/', "-");
        let instead = make(&std::env::temp_dir().join(format!("mingle-services{name}")))?;
        let shown = instead.display();
        let metadata = fs::metadata(&instead).map_err(Error::of(shown.to_string()))?;
        if metadata.uid() != 0 || metadata.mode() & 0o022 != 0 {
            return Err(Error::new(format!("{shown} is not ours alone: delete it")));
        }
        let passable = fs::Permissions::from_mode(0o755);
        fs::set_permissions(&instead, passable).map_err(Error::of(shown.to_string()))?;
        Ok(Self { path: instead })
    }

    /// Returns the folder itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Creates the folder `name` by filling another one and renaming it, so that it is either
    /// complete or absent. If two processes do so, the second discards its own.
    pub(crate) fn complete(
        &self,
        name: &str,
        fill: impl FnOnce(&Path) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.clear_unfinished(name)?;
        let unfinished = make(&self.path.join(format!("{name}.{}.part", std::process::id())))?;
        let target = self.path.join(name);
        let filled = fill(&unfinished).and_then(|()| {
            fs::rename(&unfinished, &target).or_else(|error| {
                let is_there = target.is_dir();
                if is_there { Ok(()) } else { Err(Error::of(target.display())(error)) }
            })
        });
        if unfinished.exists() {
            fs::remove_dir_all(&unfinished).map_err(Error::of(unfinished.display()))?;
        }
        filled
    }

    /// Removes the unfinished folders of processes that are gone.
    fn clear_unfinished(&self, name: &str) -> Result<(), Error> {
        for entry in fs::read_dir(&self.path).map_err(Error::of(self.path.display()))? {
            let path = entry.map_err(Error::of(self.path.display()))?.path();
            let shown = path.file_name().unwrap_or_default().to_string_lossy();
            let rest = shown.strip_prefix(name).and_then(|rest| rest.strip_prefix('.'));
            let pid = rest.and_then(|rest| rest.strip_suffix(".part")?.parse().ok());
            if pid.is_some_and(|pid: i32| {
                pid as u32 == std::process::id() || Process::running(pid).is_none()
            }) {
                fs::remove_dir_all(&path).map_err(Error::of(path.display()))?;
            }
        }
        Ok(())
    }

    /// Creates a folder for the data of a server that lasts as long as this process.
    pub(crate) fn new_run(&self, name: &str) -> Result<PathBuf, Error> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let runs = make(&self.path.join("runs"))?;
        hand_over(&runs)?;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let run = make(&runs.join(format!("{name}-{}-{number}", std::process::id())))?;
        hand_over(&run)?;
        Ok(run)
    }
}

fn make(path: &Path) -> Result<PathBuf, Error> {
    fs::create_dir_all(path)
        .and_then(|()| path.canonicalize())
        .map_err(Error::of(format!("cannot make the folder {}", path.display())))
}

/// True if other users may pass through a folder.
fn is_open(folder: &Path) -> bool {
    fs::metadata(folder).is_ok_and(|metadata| metadata.mode() & 0o001 != 0)
}

/// True if this process is root, so that servers must run as another user.
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Gives a file or folder to the user that runs the servers, with access for no other.
pub(crate) fn hand_over(path: &Path) -> Result<(), Error> {
    let metadata = fs::metadata(path).map_err(Error::of(path.display()))?;
    if metadata.is_dir() {
        let private = fs::Permissions::from_mode(0o700);
        fs::set_permissions(path, private).map_err(Error::of(path.display()))?;
    }
    if is_root() {
        chown(path, Some(NOBODY), Some(NOBODY)).map_err(Error::of(path.display()))?;
    }
    Ok(())
}

/// Makes a command run as the user that runs the servers.
pub(crate) fn unprivileged(command: &mut Command) -> &mut Command {
    if is_root() { command.uid(NOBODY).gid(NOBODY) } else { command }
}

/// Lets all users read a folder's contents, independent of an archive's modes and the umask.
pub(crate) fn publish(folder: &Path) -> Result<(), Error> {
    tool("chmod", ["-R".as_ref(), "a+rX".as_ref(), folder.as_os_str()])
}

/// Copies a folder with its contents for the user that runs the servers.
pub(crate) fn copy_for_server(from: &Path, to: &Path) -> Result<(), Error> {
    fs::create_dir_all(to).map_err(Error::of(to.display()))?;
    hand_over(to)?;
    for entry in fs::read_dir(from).map_err(Error::of(from.display()))? {
        let entry = entry.map_err(Error::of(from.display()))?;
        let target = to.join(entry.file_name());
        if entry.file_type().map_err(Error::of(from.display()))?.is_dir() {
            copy_for_server(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), &target).map_err(Error::of(target.display()))?;
            hand_over(&target)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_complete_or_not_there() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home { path: folder.path().to_path_buf() };
        let names = || -> Vec<String> {
            let entries = fs::read_dir(folder.path()).unwrap();
            entries.map(|at| at.unwrap().file_name().into_string().unwrap()).collect()
        };
        let fill = |text: &'static str| {
            move |at: &Path| fs::write(at.join("file"), text).map_err(Error::of("cannot write"))
        };
        let broken = home.complete("engine", |at| fill("half")(at).and(Err(Error::new("broken"))));
        assert_eq!(broken, Err(Error::new("broken")));
        assert!(names().is_empty(), "{:?}", names());

        // The remains of a process that cannot have finished them: no process has such an id.
        fs::create_dir(folder.path().join("engine.2147483647.part")).unwrap();
        fs::create_dir(folder.path().join("other.2147483647.part")).unwrap();
        home.complete("engine", fill("first")).unwrap();
        home.complete("engine", fill("second")).unwrap();
        let mut names = names();
        names.sort();
        assert_eq!(names, ["engine", "other.2147483647.part"]);
        let kept = fs::read_to_string(folder.path().join("engine/file")).unwrap();
        assert_eq!(kept, "first", "whoever is second throws its own away");
    }
}
