//! Watching files by reading them again: the same on every system, network folders included.

use std::path::{Path, PathBuf};
use std::time::Duration;

/// The time between two looks.
pub const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Files, and their contents when they were last looked at.
pub struct Watched {
    files: Vec<File>,
}

struct File {
    path: PathBuf,
    known: Content,
    /// A new content that was seen once; the file may still be being written.
    seen_once: Option<Content>,
}

#[derive(PartialEq, Eq)]
enum Content {
    /// The file is missing, or cannot be read.
    Missing,
    /// Its bytes.
    Bytes(Vec<u8>),
}

impl Content {
    fn of(path: &Path) -> Self {
        std::fs::read(path).map_or(Self::Missing, Self::Bytes)
    }
}

impl Watched {
    /// Looks at files for the first time. A file that is missing may be made later.
    pub fn new(paths: impl IntoIterator<Item = PathBuf>) -> Self {
        let look = |path: PathBuf| {
            let known = Content::of(&path);
            File { path, known, seen_once: None }
        };
        Self { files: paths.into_iter().map(look).collect() }
    }

    /// Watches further files, too; those that are watched already stay as they were last seen.
    pub fn add(&mut self, paths: impl IntoIterator<Item = PathBuf>) {
        let is_new = |path: &PathBuf| self.files.iter().all(|file| file.path != *path);
        let new: Vec<PathBuf> = paths.into_iter().filter(is_new).collect();
        self.files.extend(Self::new(new).files);
    }

    /// Looks again; returns a file that has changed. An editor may empty a file before it writes it, so a
    /// change counts once two looks find the same content.
    pub fn changed(&mut self) -> Option<&Path> {
        let mut found = None;
        for (index, file) in self.files.iter_mut().enumerate() {
            let content = Content::of(&file.path);
            if content == file.known {
                file.seen_once = None;
            } else if file.seen_once.as_ref() == Some(&content) {
                file.known = content;
                file.seen_once = None;
                found = Some(index);
            } else {
                file.seen_once = Some(content);
            }
        }
        found.map(|index| self.files[index].path.as_path())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_told_once_it_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let (one, two) = (folder.path().join("one"), folder.path().join("two"));
        let write = |file: &Path, text: &str| std::fs::write(file, text).expect("it is written");
        write(&one, "1");
        let mut watched = Watched::new([one.clone(), two.clone()]);
        assert_eq!(watched.changed(), None);
        write(&two, "");
        assert_eq!(watched.changed(), None, "it may be being written");
        write(&two, "made");
        assert_eq!(watched.changed(), None);
        assert_eq!(watched.changed(), Some(two.as_path()));
        assert_eq!(watched.changed(), None);
        let three = folder.path().join("three");
        watched.add([one.clone(), three.clone()]);
        write(&three, "new");
        assert_eq!(watched.changed(), None);
        assert_eq!(watched.changed(), Some(three.as_path()));
        write(&one, "2");
        std::fs::remove_file(&two).expect("it is removed");
        assert_eq!(watched.changed(), None);
        assert!(watched.changed().is_some());
        assert_eq!(watched.changed(), None);
    }
}
