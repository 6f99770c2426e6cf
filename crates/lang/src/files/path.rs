//! Paths of imports.

/// Returns the path of an imported file: `path`, seen from the folder of `importer`. `.` and `..` are
/// resolved in the text alone; a path above the folder of the root file begins with `..`.
///
/// # Errors
///
/// The text says what is expected of a path.
///
/// # Examples
///
/// ```
/// use mingle_lang::files::resolve;
///
/// assert_eq!(resolve("shop/main.mingle", "../common/./money.mingle").unwrap(), "common/money.mingle");
/// assert!(resolve("main.mingle", "/etc/items.mingle").is_err());
/// ```
pub fn resolve(importer: &str, path: &str) -> Result<String, &'static str> {
    if path.is_empty() {
        return Err("expected a path; this one is empty");
    }
    if path.contains('\\') {
        return Err("expected `/` between folders, not `\\`");
    }
    if path.chars().any(|found| found == ':' || found.is_control()) {
        return Err("expected a path without `:` and control characters");
    }
    if path.starts_with('/') {
        return Err("expected a relative path; this one is absolute");
    }
    if path.ends_with(".test.mingle") {
        return Err("expected a part of a program; this is a file of tests");
    }
    let name = path.rsplit('/').next().unwrap_or_default();
    if name.strip_suffix(".mingle").is_none_or(str::is_empty) {
        return Err("expected the name of a file that ends with `.mingle`");
    }
    let folder = importer.rsplit_once('/').map(|(folder, _)| format!("{folder}/"));
    Ok(normal(&format!("{}{path}", folder.unwrap_or_default())))
}

/// Returns a path without `.`, and without `..` except at its start.
pub fn normal(path: &str) -> String {
    let is_absolute = path.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => drop(parts.pop()),
            ".." if is_absolute => {}
            part => parts.push(part),
        }
    }
    format!("{}{}", if is_absolute { "/" } else { "" }, parts.join("/"))
}
