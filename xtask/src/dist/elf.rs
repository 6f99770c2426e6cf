//! The requirements of a Linux program on the system: its shared libraries, and the newest version
//! of the C library's interface among the symbols that it uses.

/// The requirements of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// The shared libraries, such as `libc.so.6`.
    pub libraries: Vec<String>,
    /// The version of glibc.
    pub glibc: (u32, u32),
}

/// The types of entries of the dynamic section.
const NEEDED: u64 = 1;
const STRING_TABLE: u64 = 5;
const STRING_TABLE_SIZE: u64 = 10;

/// The types of segments.
const LOAD: u32 = 1;
const DYNAMIC: u32 = 2;

/// Reads the requirements of a 64-bit little-endian program.
///
/// # Errors
///
/// If the bytes are not such a program.
pub fn needs(bytes: &[u8]) -> Result<Needs, String> {
    read(bytes).ok_or_else(|| "this is no 64-bit ELF program with shared libraries".into())
}

struct Segment {
    kind: u32,
    offset: u64,
    address: u64,
    size: u64,
}

fn read(bytes: &[u8]) -> Option<Needs> {
    if bytes.get(..6)? != b"\x7fELF\x02\x01" {
        return None;
    }
    let segments = segments(bytes)?;
    let dynamic = segments.iter().find(|segment| segment.kind == DYNAMIC)?;
    let (mut names, mut table, mut table_size) = (Vec::new(), None, None);
    for at in (dynamic.offset..dynamic.offset + dynamic.size).step_by(16) {
        match (u64_at(bytes, at)?, u64_at(bytes, at + 8)?) {
            (NEEDED, name) => names.push(name),
            (STRING_TABLE, address) => table = Some(address),
            (STRING_TABLE_SIZE, size) => table_size = Some(size),
            _ => {}
        }
    }
    let address = table?;
    let is_there =
        |it: &&Segment| it.kind == LOAD && (it.address..it.address + it.size).contains(&address);
    let segment = segments.iter().find(is_there)?;
    let start = usize::try_from(address - segment.address + segment.offset).ok()?;
    let texts = bytes.get(start..start.checked_add(usize::try_from(table_size?).ok()?)?)?;
    let text = |from: u64| {
        let rest = texts.get(usize::try_from(from).ok()?..)?;
        let text = rest.split(|byte| *byte == 0).next()?;
        Some(String::from_utf8_lossy(text).into_owned())
    };
    let libraries = names.into_iter().map(text).collect::<Option<Vec<_>>>()?;
    let all = texts.split(|byte| *byte == 0).map(String::from_utf8_lossy);
    let glibc =
        all.filter_map(|text| version(text.strip_prefix("GLIBC_")?)).max().unwrap_or_default();
    Some(Needs { libraries, glibc })
}

fn segments(bytes: &[u8]) -> Option<Vec<Segment>> {
    let (table, size, count) = (u64_at(bytes, 32)?, u16_at(bytes, 54)?, u16_at(bytes, 56)?);
    let entry = |index: u16| {
        let at = table + u64::from(index) * u64::from(size);
        let kind = u64_at(bytes, at)? as u32;
        let (offset, address) = (u64_at(bytes, at + 8)?, u64_at(bytes, at + 16)?);
        Some(Segment { kind, offset, address, size: u64_at(bytes, at + 32)? })
    };
    (0..count).map(entry).collect()
}

fn u64_at(bytes: &[u8], at: u64) -> Option<u64> {
    let at = usize::try_from(at).ok()?;
    let found = bytes.get(at..at.checked_add(8)?)?;
    Some(u64::from_le_bytes(found.try_into().ok()?))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at.checked_add(2)?)?.try_into().ok()?))
}

/// Reads `2.34` or `2.2.5`; the last of three numbers is not used.
fn version(text: &str) -> Option<(u32, u32)> {
    let (major, rest) = text.split_once('.')?;
    let minor = rest.split('.').next()?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        assert_eq!(version("2.34"), Some((2, 34)));
        assert_eq!(version("2.2.5"), Some((2, 2)));
        assert_eq!(version("PRIVATE"), None);
        assert!(version("2.34") > version("2.4"));
    }

    #[test]
    fn what_is_no_program_is_refused() {
        assert!(needs(b"#!/bin/sh\n").is_err());
        assert!(needs(b"\x7fELF\x02\x01").is_err());
    }

    /// This test itself is a program that needs the C library.
    #[cfg(all(
        target_os = "linux",
        target_env = "gnu",
        target_pointer_width = "64",
        target_endian = "little"
    ))]
    #[test]
    fn this_program_needs_the_c_library() {
        let path = std::env::current_exe().expect("this program has a path");
        let needs = needs(&std::fs::read(path).expect("it can be read")).expect("it is a program");
        assert!(needs.libraries.iter().any(|name| name == "libc.so.6"), "{needs:?}");
        assert!(needs.glibc >= (2, 2), "{needs:?}");
    }
}
