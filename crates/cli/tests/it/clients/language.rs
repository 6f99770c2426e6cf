//! The languages of clients: their clients are written, checked once, and run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use mingle_services::Checker;

use super::{book, mingle, root};
use crate::cli::tutorial;

/// A language that clients are written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    TypeScript,
    Python,
}

/// A folder with a client for each program, and the scripts that use them, all of them checked.
pub struct Workshop {
    folder: PathBuf,
    language: Language,
    /// The number of clients.
    pub clients: usize,
}

/// The configuration for browsers, which makes only their types available.
const BROWSER: &str = r#"{
  "compilerOptions": {
    "strict": true, "exactOptionalPropertyTypes": true, "noUncheckedIndexedAccess": true,
    "noImplicitOverride": true, "noPropertyAccessFromIndexSignature": true,
    "noImplicitReturns": true, "noFallthroughCasesInSwitch": true, "noUnusedLocals": true,
    "noUnusedParameters": true, "erasableSyntaxOnly": true, "isolatedModules": true,
    "verbatimModuleSyntax": true, "noEmit": true, "types": [],
    "target": "es2022", "lib": ["es2022", "dom", "dom.iterable"],
    "module": "es2022", "moduleResolution": "bundler"
  },
  "include": ["clients/*.ts", "imported/*.ts"]
}
"#;

/// The manifest of the runtime package, as far as a type checker needs it.
const PACKAGE: &str = r#"{
  "name": "mingle-client", "type": "module", "exports": { ".": { "types": "./index.ts" } }
}
"#;

/// The configuration for Node; `TYPES` stands for the folder of its types.
const NODE: &str = r#"{
  "compilerOptions": {
    "strict": true, "exactOptionalPropertyTypes": true, "noUncheckedIndexedAccess": true,
    "declaration": true, "skipLibCheck": true, "typeRoots": [TYPES], "types": ["node"],
    "target": "es2022", "lib": ["es2022"], "module": "nodenext", "outDir": "out", "rootDir": "."
  },
  "include": ["clients/*.ts", "*.ts"]
}
"#;

impl Language {
    pub const ALL: [Self; 2] = [Self::TypeScript, Self::Python];

    /// Returns the name of the language for `mingle gen`.
    pub fn name(self) -> &'static str {
        match self {
            Self::TypeScript => "typescript",
            Self::Python => "python",
        }
    }

    pub fn extension(self) -> &'static str {
        match self {
            Self::TypeScript => "ts",
            Self::Python => "py",
        }
    }

    /// Returns the folder with all clients and scripts; none if their checkers were not fetched.
    pub fn workshop(self) -> Option<&'static Workshop> {
        static TYPESCRIPT: OnceLock<Workshop> = OnceLock::new();
        static PYTHON: OnceLock<Workshop> = OnceLock::new();
        let (checker, workshop) = match self {
            Self::TypeScript => (Checker::TypeScript, &TYPESCRIPT),
            Self::Python => (Checker::Mypy, &PYTHON),
        };
        let words = mingle_services::checker(checker)?;
        Some(workshop.get_or_init(|| Workshop::new(self, &words)))
    }
}

impl Workshop {
    fn new(language: Language, checker: &[PathBuf]) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(language.name());
        fs::remove_dir_all(&folder).ok();
        for part in ["clients", "imported"] {
            fs::create_dir_all(folder.join(part)).expect("a folder for the clients");
        }
        let mut workshop = Self { folder, language, clients: 0 };
        workshop.write_clients();
        workshop.write_scripts();
        match language {
            Language::TypeScript => workshop.check_typescript(checker),
            Language::Python => workshop.check_python(checker),
        }
        workshop
    }

    /// Writes a client for each example that has no errors, for the odd program, and for the
    /// chapter's program.
    fn write_clients(&mut self) {
        let examples = root().join("examples");
        let examples = fs::read_dir(examples).expect("the examples are there");
        let mut programs: Vec<PathBuf> = examples.map(|entry| entry.unwrap().path()).collect();
        programs.retain(|path| path.extension().is_some_and(|extension| extension == "mingle"));
        programs.push(root().join("examples/shop_feed/shop.mingle"));
        programs.push(root().join("crates/gen/tests/odd.mingle"));
        let of_chapter = self.folder.join("stall.mingle");
        fs::write(&of_chapter, book::program()).expect("the program is written");
        programs.push(of_chapter);
        for program in programs {
            let name = program.file_stem().expect("a file's name").to_string_lossy().into_owned();
            if name == "contest_rejected" {
                let refused = self.client(&program, "embed").is_none();
                assert!(refused, "the example is there to be refused");
                continue;
            }
            let file = format!("{name}.{}", self.language.extension());
            for (runtime, part) in [("embed", "clients"), ("import", "imported")] {
                let text = self.client(&program, runtime).expect("the program has no errors");
                fs::write(self.folder.join(part).join(&file), text).expect("the client is written");
            }
            self.clients += 1;
        }
        self.write_package();
    }

    /// Returns the client for a program; none if the program has errors.
    fn client(&self, program: &Path, runtime: &str) -> Option<Vec<u8>> {
        let mut command = mingle();
        command.args(["gen", self.language.name(), "--runtime", runtime]).arg(program);
        let output = command.output().expect("the command runs");
        output.status.success().then_some(output.stdout)
    }

    /// Writes the package that clients with `--runtime import` import.
    fn write_package(&self) {
        let package = self.folder.join("node_modules/mingle-client");
        let files = match self.language {
            Language::TypeScript => vec![
                (package.join("package.json"), PACKAGE.to_owned()),
                (package.join("index.ts"), mingle_gen::typescript::runtime()),
            ],
            Language::Python => {
                vec![(self.folder.join("mingle_client.py"), mingle_gen::python::runtime())]
            }
        };
        for (path, text) in files {
            fs::create_dir_all(path.parent().expect("a file is in a folder")).expect("a folder");
            fs::write(path, text).expect("the package is written");
        }
    }

    fn write_scripts(&self) {
        let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/clients/scripts");
        for entry in fs::read_dir(scripts).expect("the scripts are there") {
            let path = entry.expect("the scripts are there").path();
            if path.extension().is_some_and(|extension| extension == self.language.extension()) {
                let name = path.file_name().expect("a file's name");
                fs::copy(&path, self.folder.join(name)).expect("the script is copied");
            }
        }
        for (name, text) in book::scripts(self.language) {
            fs::write(self.folder.join(name), text).expect("the script is written");
        }
        if self.language == Language::TypeScript {
            for (name, text) in tutorial::scripts() {
                fs::write(self.folder.join(name), text).expect("the script is written");
            }
        }
    }

    fn check_typescript(&self, checker: &[PathBuf]) {
        let compiler = checker.last().expect("a command has words");
        let packages = compiler.ancestors().find(|path| path.ends_with("node_modules"));
        let types = packages.expect("the compiler is a package").join("@types");
        let node = NODE.replace("TYPES", &format!("{:?}", types.to_string_lossy()));
        for (name, text) in [
            ("package.json", "{ \"private\": true, \"type\": \"module\" }\n"),
            ("browser.json", BROWSER),
            ("node.json", &node),
        ] {
            fs::write(self.folder.join(name), text).expect("the settings are written");
        }
        for project in ["browser.json", "node.json"] {
            self.check(checker, &["--project", project]);
        }
    }

    fn check_python(&self, checker: &[PathBuf]) {
        for part in ["clients", "imported"] {
            let file = self.folder.join(part).join("__init__.py");
            fs::write(file, "").expect("a package is made");
        }
        self.check(checker, &["--strict", "--python-version", "3.10", "."]);
    }

    fn check(&self, checker: &[PathBuf], words: &[&str]) {
        let mut command = Command::new(&checker[0]);
        command.args(&checker[1..]).args(words).current_dir(&self.folder);
        let output = command.stdin(Stdio::null()).output().expect("the checker runs");
        assert!(output.status.success(), "{:?}: {}", self.language, shown(&output));
    }

    /// Runs a script to its end; returns its output.
    pub fn run(&self, script: &str, words: &[&str]) -> String {
        self.run_with(script, words, &[])
    }

    /// As [`Workshop::run`], with additional environment variables.
    pub fn run_with(&self, script: &str, words: &[&str], variables: &[(&str, &str)]) -> String {
        let mut command = match self.language {
            Language::TypeScript => {
                let mut command = Command::new("node");
                command.arg(self.folder.join("out").join(format!("{script}.js")));
                command
            }
            Language::Python => {
                let mut command = Command::new("python3");
                command.arg("-B").arg(self.folder.join(format!("{script}.py")));
                command
            }
        };
        command.args(words).envs(variables.iter().copied()).stdin(Stdio::null());
        let output = command.output().expect("the script runs");
        assert!(output.status.success(), "{:?}, {script}: {}", self.language, shown(&output));
        String::from_utf8(output.stdout).expect("UTF-8")
    }
}

fn shown(output: &Output) -> String {
    let text = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
    String::from_utf8_lossy(&text).into_owned()
}
