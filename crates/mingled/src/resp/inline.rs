//! Requests as lines.

use super::{Bytes, ProtocolError};

/// Splits a line into words. A word may be in double quotes, with `\n`, `\r`, `\t`, `\b`, `\a` and
/// `\xHH` as in C, or in single quotes, with `\'`.
pub fn split(line: &[u8]) -> Result<Vec<Bytes>, ProtocolError> {
    let (mut words, mut rest) = (Vec::new(), line);
    loop {
        let start = rest.iter().position(|byte| !byte.is_ascii_whitespace());
        let Some(start) = start else { return Ok(words) };
        rest = &rest[start..];
        let (word, after) = match rest {
            [b'"', inner @ ..] => double_quoted(inner)?,
            [b'\'', inner @ ..] => single_quoted(inner)?,
            _ => plain(rest)?,
        };
        if after.first().is_some_and(|byte| !byte.is_ascii_whitespace()) {
            return Err(ProtocolError::Quotes);
        }
        words.push(word.into());
        rest = after;
    }
}

type Word<'a> = (Vec<u8>, &'a [u8]);

fn plain(line: &[u8]) -> Result<Word<'_>, ProtocolError> {
    let end = line.iter().position(u8::is_ascii_whitespace).unwrap_or(line.len());
    let (word, after) = line.split_at(end);
    if word.iter().any(|byte| matches!(byte, b'"' | b'\'')) {
        return Err(ProtocolError::Quotes);
    }
    Ok((word.to_vec(), after))
}

fn single_quoted(mut line: &[u8]) -> Result<Word<'_>, ProtocolError> {
    let mut word = Vec::new();
    loop {
        line = match line {
            [] => return Err(ProtocolError::Quotes),
            [b'\\', b'\'', after @ ..] => {
                word.push(b'\'');
                after
            }
            [b'\'', after @ ..] => return Ok((word, after)),
            [byte, after @ ..] => {
                word.push(*byte);
                after
            }
        };
    }
}

fn double_quoted(mut line: &[u8]) -> Result<Word<'_>, ProtocolError> {
    let mut word = Vec::new();
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    loop {
        line = match line {
            [] => return Err(ProtocolError::Quotes),
            [b'"', after @ ..] => return Ok((word, after)),
            [b'\\', b'x', high, low, after @ ..]
                if let (Some(high), Some(low)) = (digit(*high), digit(*low)) =>
            {
                word.push(high << 4 | low);
                after
            }
            [b'\\', byte, after @ ..] => {
                word.push(match byte {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 8,
                    b'a' => 7,
                    other => *other,
                });
                after
            }
            [byte, after @ ..] => {
                word.push(*byte);
                after
            }
        };
    }
}
