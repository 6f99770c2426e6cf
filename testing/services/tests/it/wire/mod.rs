//! The part of the servers' protocols that the tests need.

use std::io::{BufRead, BufReader, Error, ErrorKind, Read, Result, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Returns the error for a message that violates the protocol, or for an error of the server.
fn odd(what: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidData, what.into())
}

fn connect(address: SocketAddr) -> Result<BufReader<TcpStream>> {
    let patience = Duration::from_secs(20);
    let stream = TcpStream::connect_timeout(&address, patience)?;
    stream.set_read_timeout(Some(patience))?;
    Ok(BufReader::new(stream))
}

/// Asks PostgreSQL, as its superuser and in the database `postgres`; the rows' values as text.
pub fn postgres(address: SocketAddr, query: &str) -> Result<Vec<Vec<String>>> {
    let mut stream = connect(address)?;
    let startup =
        [&196_608_i32.to_be_bytes()[..], b"user\0postgres\0database\0postgres\0\0"].concat();
    let message = |body: &[u8]| [&(body.len() as u32 + 4).to_be_bytes()[..], body].concat();
    stream.get_mut().write_all(&message(&startup))?;
    rows(&mut stream)?;
    let query = [b"Q", message(format!("{query}\0").as_bytes()).as_slice()].concat();
    stream.get_mut().write_all(&query)?;
    rows(&mut stream)
}

/// Reads messages until the server is ready for a query.
fn rows(stream: &mut impl Read) -> Result<Vec<Vec<String>>> {
    let (mut rows, mut refused) = (Vec::new(), None);
    loop {
        let mut head = [0; 5];
        stream.read_exact(&mut head)?;
        let [kind, length @ ..] = head;
        let mut body = vec![0; u32::from_be_bytes(length) as usize - 4];
        stream.read_exact(&mut body)?;
        match kind {
            b'Z' => return refused.map_or(Ok(rows), Err),
            b'E' => refused = Some(odd(String::from_utf8_lossy(&body))),
            b'D' => rows.push(row(&body)?),
            _ => {}
        }
    }
}

fn row(mut body: &[u8]) -> Result<Vec<String>> {
    let mut take = |count: usize| body.split_off(..count).ok_or_else(|| odd("a short row"));
    let mut values = Vec::new();
    let count = take(2)?;
    for _ in 0..u16::from_be_bytes([count[0], count[1]]) {
        let length = i32::from_be_bytes(take(4)?.try_into().map_err(|_| odd("a short row"))?);
        let value = usize::try_from(length).map_or(Ok(&b"null"[..]), &mut take)?;
        values.push(String::from_utf8_lossy(value).into_owned());
    }
    Ok(values)
}

/// Gives Redis one command; its answer as text, `None` if it is null.
pub fn redis(address: SocketAddr, words: &[&str]) -> Result<Option<String>> {
    let mut stream = connect(address)?;
    let words: Vec<String> =
        words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len())).collect();
    stream.get_mut().write_all(format!("*{}\r\n{}", words.len(), words.concat()).as_bytes())?;
    let mut line = String::new();
    stream.read_line(&mut line)?;
    let rest = line.get(1..).ok_or_else(|| odd("no answer"))?.trim_end();
    match line.as_bytes()[0] {
        b'+' | b':' => Ok(Some(rest.to_owned())),
        b'$' if rest == "-1" => Ok(None),
        b'$' => {
            let mut value = vec![0; rest.parse().map_err(|_| odd(rest))?];
            stream.read_exact(&mut value)?;
            Ok(Some(String::from_utf8_lossy(&value).into_owned()))
        }
        _ => Err(odd(line)),
    }
}
