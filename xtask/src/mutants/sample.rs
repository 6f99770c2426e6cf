//! All mistakes of a crate, and a sample of them that stays the same for unchanged code.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::generate::{Mutation, Place, mutations};
use super::plan::FOR_TESTS;
use super::weave::fit;
use crate::run::root;

/// A mistake in a crate.
#[derive(Clone, Debug)]
pub struct Mistake {
    /// The path of its file, from the root.
    pub file: String,
    pub line: usize,
    /// Its name in the list. It has no line numbers, because they change with the text above.
    pub name: String,
    pub mutation: Mutation,
}

/// The files of a crate and their mistakes.
#[derive(Default)]
pub struct Mistakes {
    pub texts: BTreeMap<String, String>,
    pub all: Vec<Mistake>,
}

impl Mistakes {
    /// Reads the files of a crate that are not tests.
    ///
    /// # Errors
    ///
    /// When a file cannot be read.
    pub fn of(folder: &str) -> Result<Self, String> {
        let mut mistakes = Self::default();
        mistakes.read_folder(&format!("{folder}/src"))?;
        let is_for_tests = |file: &str| FOR_TESTS.iter().any(|part| file.starts_with(part));
        mistakes.all.retain(|mistake| !is_for_tests(&mistake.file));
        Ok(mistakes)
    }

    fn read_folder(&mut self, folder: &str) -> Result<(), String> {
        let fail = |error: std::io::Error| format!("{folder}: {error}");
        let (mut files, mut folders, mut tests) = (Vec::new(), Vec::new(), Vec::new());
        for entry in fs::read_dir(root().join(folder)).map_err(fail)? {
            let path = entry.map_err(fail)?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_dir() {
                folders.push(name);
            } else if Path::new(&name).extension().is_some_and(|extension| extension == "rs") {
                files.push(name);
            }
        }
        files.sort();
        folders.sort();
        let mut found = Vec::new();
        for name in files {
            let file = format!("{folder}/{name}");
            let text = fs::read_to_string(root().join(&file)).map_err(fail)?;
            let (mutations, modules) = mutations(&text).map_err(|why| format!("{file}: {why}"))?;
            // Modules of `a.rs` are in `a`, those of `mod.rs` and of a root beside it.
            let stem = name.trim_end_matches(".rs").to_owned();
            let is_here = ["mod", "lib", "main"].contains(&&*stem);
            let place = |module: String| if is_here { module } else { format!("{stem}/{module}") };
            tests.extend(modules.into_iter().map(place).map(|module| format!("{folder}/{module}")));
            found.push((file, text, mutations));
        }
        for (file, text, mutations) in found {
            let is_test = tests.iter().any(|test| file == format!("{test}.rs"));
            if !is_test {
                self.all.extend(named(&file, &text, mutations));
                self.texts.insert(file, text);
            }
        }
        for name in folders {
            let inner = format!("{folder}/{name}");
            if !tests.contains(&inner) {
                self.read_folder(&inner)?;
            }
        }
        // The `cfg(test)` of a folder's module may stand in the file beside the folder.
        let is_test = |file: &str| {
            tests
                .iter()
                .any(|test| file.starts_with(&format!("{test}/")) || file == format!("{test}.rs"))
        };
        self.all.retain(|mistake| !is_test(&mistake.file));
        self.texts.retain(|file, _| !is_test(file));
        Ok(())
    }

    /// Returns `count` mistakes: a seed shuffles them so that a change of the code moves no other
    /// mistake.
    pub fn sample(&self, count: usize, seed: u64) -> Vec<Mistake> {
        let mut order: Vec<(u64, &Mistake)> =
            self.all.iter().map(|mistake| (hash(seed, &mistake.name), mistake)).collect();
        order.sort_by_key(|(hash, _)| *hash);
        let mut chosen: Vec<Mistake> = Vec::new();
        for (_, mistake) in order {
            let fits = chosen
                .iter()
                .all(|other| other.file != mistake.file || fit(&other.mutation, &mistake.mutation));
            if fits {
                chosen.push(mistake.clone());
            }
            if chosen.len() == count {
                break;
            }
        }
        chosen
    }
}

/// Gives each mistake of a file its name.
fn named(file: &str, text: &str, mutations: Vec<Mutation>) -> Vec<Mistake> {
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    let named = mutations.into_iter().map(|mutation| {
        let original = short(&text[mutation.range.clone()]);
        let becomes = short(&mutation.becomes);
        let told = match mutation.place {
            Place::Body if becomes.is_empty() => "returns at once".to_owned(),
            Place::Body => format!("returns `{becomes}` at once"),
            Place::Statement if becomes.is_empty() => format!("leaves out `{original}`"),
            _ => format!("`{original}` becomes `{becomes}`"),
        };
        let name = format!("{file} {}: {told}", mutation.function);
        let count = known.entry(name.clone()).or_default();
        *count += 1;
        let name = if *count == 1 { name } else { format!("{name} ({count})") };
        let line = text[..mutation.range.start].matches('\n').count() + 1;
        Mistake { file: file.to_owned(), line, name, mutation }
    });
    named.collect()
}

/// Returns a text in one line, cut in the middle if it is long.
fn short(text: &str) -> String {
    const END: usize = 60;
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let letters: Vec<char> = text.chars().collect();
    if letters.len() <= 2 * END {
        return text;
    }
    let (first, last) = (&letters[..END], &letters[letters.len() - END..]);
    format!("{} … {}", first.iter().collect::<String>(), last.iter().collect::<String>())
}

/// Computes FNV-1a over a seed and a text, mixed once more so that similar texts are far apart.
fn hash(seed: u64, text: &str) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in seed.to_le_bytes().into_iter().chain(text.bytes()) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^ (hash >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_mistakes_apart() {
        let text = "fn f() {\n    g(a);\n    g(a);\n}\nfn h() -> bool {\n    a <\n        b\n}\n";
        let (found, _) = mutations(text).expect("it is read");
        let found = named("x.rs", text, found);
        let names: Vec<String> =
            found.iter().map(|found| format!("{} {}", found.line, found.name)).collect();
        assert_eq!(
            names,
            [
                "1 x.rs f: returns at once",
                "2 x.rs f: leaves out `g(a);`",
                "3 x.rs f: leaves out `g(a);` (2)",
                "5 x.rs h: returns `true` at once",
                "5 x.rs h: returns `false` at once",
                "6 x.rs h: `a < b` becomes `a <= b`",
            ]
        );
        assert_eq!(short(&"ab".repeat(100)).chars().count(), 123);
    }

    #[test]
    fn a_sample_is_a_seeds_and_a_larger_one_begins_with_it() {
        let mistakes = Mistakes::of("xtask").expect("it is read");
        let names = |count, seed| -> Vec<String> {
            mistakes.sample(count, seed).into_iter().map(|mistake| mistake.name).collect()
        };
        assert!(mistakes.all.len() > 300, "{}", mistakes.all.len());
        assert_eq!(names(10, 1), names(10, 1));
        assert_ne!(names(10, 1), names(10, 2));
        assert_eq!(names(10, 1)[..], names(30, 1)[..10]);
    }

    #[test]
    fn what_is_for_tests_is_left_alone() {
        for part in FOR_TESTS {
            assert!(root().join(part).exists(), "{part}");
        }
        let mistakes = Mistakes::of("crates/runtime").expect("it is read");
        assert!(mistakes.all.iter().all(|mistake| !mistake.file.ends_with("mutants.rs")));
        assert!(mistakes.texts.contains_key("crates/runtime/src/mutants.rs"));
    }

    #[test]
    fn tests_in_files_of_their_own_are_left_alone() {
        let mistakes = Mistakes::of("adapters/embedded").expect("it is read");
        let has = |file: &str| mistakes.all.iter().any(|mistake| mistake.file == file);
        assert!(has("adapters/embedded/src/replicated/engine.rs"));
        assert!(!has("adapters/embedded/src/replicated/tests.rs"));
    }
}
