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
    Go,
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

/// The module of the clients and scripts; `MODULE` stands for the path of the runtime's.
const GO_MODULE: &str = "module workshop

go 1.24

require MODULE v0.0.0

replace MODULE => ./runtime
";

impl Language {
    pub const ALL: [Self; 3] = [Self::TypeScript, Self::Python, Self::Go];

    /// Returns the name of the language for `mingle gen`.
    pub fn name(self) -> &'static str {
        match self {
            Self::TypeScript => "typescript",
            Self::Python => "python",
            Self::Go => "go",
        }
    }

    pub fn extension(self) -> &'static str {
        match self {
            Self::TypeScript => "ts",
            Self::Python => "py",
            Self::Go => "go",
        }
    }

    /// Returns the path of a client or script of this name. In Go each has a folder, whose name is the package's.
    pub fn file(self, name: &str) -> String {
        let extension = self.extension();
        if self == Self::Go {
            let package = name.replace('_', "");
            return format!("{package}/{package}.{extension}");
        }
        format!("{name}.{extension}")
    }

    /// Returns the folder with all clients and scripts; none if their checkers were not fetched.
    pub fn workshop(self) -> Option<&'static Workshop> {
        static TYPESCRIPT: OnceLock<Workshop> = OnceLock::new();
        static PYTHON: OnceLock<Workshop> = OnceLock::new();
        static GO: OnceLock<Workshop> = OnceLock::new();
        let (checker, workshop) = match self {
            Self::TypeScript => (Checker::TypeScript, &TYPESCRIPT),
            Self::Python => (Checker::Mypy, &PYTHON),
            Self::Go => (Checker::Go, &GO),
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
            Language::Go => workshop.check_go(checker),
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
            for (runtime, part) in [("embed", "clients"), ("import", "imported")] {
                let text = self.client(&program, runtime).expect("the program has no errors");
                self.write(&format!("{part}/{}", self.language.file(&name)), text);
            }
            self.clients += 1;
        }
        self.write_package();
    }

    /// Writes a file, and its folder if there is none.
    fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.folder.join(path);
        fs::create_dir_all(path.parent().expect("a file is in a folder")).expect("a folder");
        fs::write(path, text).expect("the file is written");
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
        match self.language {
            Language::TypeScript => {
                let package = "node_modules/mingle-client";
                self.write(&format!("{package}/package.json"), PACKAGE);
                self.write(&format!("{package}/index.ts"), mingle_gen::typescript::runtime());
            }
            Language::Python => self.write("mingle_client.py", mingle_gen::python::runtime()),
            Language::Go => {
                let module = format!("module {}\n\ngo 1.24\n", mingle_gen::go::module());
                self.write("runtime/go.mod", module);
                self.write("runtime/mingleclient.go", mingle_gen::go::runtime());
            }
        }
    }

    fn write_scripts(&self) {
        let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/clients/scripts");
        for entry in fs::read_dir(scripts).expect("the scripts are there") {
            let path = entry.expect("the scripts are there").path();
            if path.extension().is_some_and(|extension| extension == self.language.extension()) {
                let name = path.file_stem().expect("a file's name").to_string_lossy().into_owned();
                let text = fs::read(&path).expect("the script is read");
                self.write(&self.language.file(&name), text);
            }
        }
        for (name, text) in book::scripts(self.language) {
            self.write(&self.language.file(&name), text);
        }
        if self.language == Language::TypeScript {
            for (name, text) in tutorial::scripts() {
                self.write(name, text);
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

    /// Compiles all clients and scripts, and checks their form.
    fn check_go(&self, checker: &[PathBuf]) {
        self.write("go.mod", GO_MODULE.replace("MODULE", &mingle_gen::go::module()));
        self.check(checker, &["build", "-o", "out/", "./..."]);
        self.check(checker, &["vet", "./..."]);
        let go = fs::canonicalize(&checker[0]).expect("the command is there");
        let wrong = self.check(&[go.with_file_name("gofmt")], &["-l", "."]);
        assert_eq!(wrong, "", "gofmt would change these files");
    }

    /// Runs a checker, and returns its output.
    fn check(&self, checker: &[PathBuf], words: &[&str]) -> String {
        let mut command = Command::new(&checker[0]);
        command.args(&checker[1..]).args(words).current_dir(&self.folder);
        // Nothing is loaded from elsewhere. Only Go knows these variables.
        command.envs([("GOFLAGS", "-mod=mod"), ("GOPROXY", "off"), ("GOTOOLCHAIN", "local")]);
        let output = command.stdin(Stdio::null()).output().expect("the checker runs");
        assert!(output.status.success(), "{:?}: {}", self.language, shown(&output));
        shown(&output)
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
            Language::Go => Command::new(self.folder.join("out").join(script)),
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
