//! Clients that send what they must not, or do not read.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use mingle_model::random::Random;
use mingled::resp::Limits;

use super::{Raw, Started, seed, shown};

/// Sends bytes on a new connection, and returns all replies until the server closes it.
fn last_words(started: &Started, bytes: &[u8]) -> String {
    let mut client = started.client();
    client.send(bytes);
    let mut replies = String::new();
    // The end may come as a reset.
    let _ = client.stream.read_to_string(&mut replies);
    replies
}

#[test]
fn requests_without_an_end_close_the_connection_with_the_reason() {
    let mut started = Started::new();
    for (bytes, expected) in [
        ("*x\r\n", "invalid multibulk length: found 'x'"),
        ("*99999999999\r\n", "expected a number of at most 1048576"),
        ("*1\r\n$x\r\n", "invalid bulk length: found 'x'"),
        ("*1\r\n$-2\r\n", "invalid bulk length: found '-2'"),
        ("*1\r\n$+4\r\nPING\r\n", "invalid bulk length: found '+4'"),
        ("*1\r\nPING\r\n", "expected '$', got 'P'"),
        ("*1\r\n$4\r\nPINGxx", "found 'xx' after a string"),
        ("*1\n", "ends with LF alone"),
        (&"a".repeat(70_000), "too big inline request"),
        (&"*1\r\n".repeat(9), "arrays of more than 8 levels"),
    ] {
        let replies = last_words(&started, bytes.as_bytes());
        let is_error = replies.starts_with("-ERR Protocol error: ");
        assert!(is_error && replies.contains(expected), "{replies:?}, expected {expected:?}");
    }
    started.client().expect("PING => +PONG");
    started.stop();
}

#[test]
fn after_requests_with_a_known_end_the_connection_continues() {
    let limits = Limits { argument_bytes: 1_000, request_bytes: 1_500, ..Limits::default() };
    let mut started = Started::with(|settings| settings.limits = limits);
    let mut client = started.client();
    let long = format!("*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1001\r\n{}\r\n", "x".repeat(1_001));
    let wide = format!("*3\r\n$3\r\nSET\r\n$800\r\n{0}\r\n$800\r\n{0}\r\n", "x".repeat(800));
    for (bytes, expected) in [
        (long.as_str(), "an argument of 1001 bytes, at most 1000 are accepted"),
        (&wide, "a request with more than 1500 bytes of arguments"),
        ("*2\r\n$3\r\nGET\r\n$-1\r\n", "expected '$', got '$'"),
        ("*2\r\n$3\r\nGET\r\n*2\r\n$1\r\na\r\n*1\r\n:1\r\n", "expected '$', got '*'"),
        ("*2\r\n$3\r\nGET\r\n_\r\n", "expected '$', got '_'"),
        ("GET \"a\r\n", "unbalanced quotes in request"),
        ("GET a\"b\"\r\n", "unbalanced quotes in request"),
    ] {
        client.send(bytes);
        let reply = shown(&client.reply());
        let is_error = reply.starts_with("-ERR Protocol error: ");
        assert!(is_error && reply.contains(expected), "{reply:?}, expected {expected:?}");
        client.expect("PING => +PONG");
    }
    client.expect("MULTI => +OK");
    client.send("GET \"a\r\n");
    assert!(shown(&client.reply()).contains("unbalanced quotes"));
    let aborted = client.ask("EXEC");
    assert!(aborted.starts_with("-EXECABORT "), "{aborted}");
    // Empty requests are none.
    client.send("\r\n*0\r\n*-1\r\n   \r\n");
    client.expect("PING => +PONG");
    started.stop();
}

#[test]
fn random_bytes_neither_stop_the_server_nor_another_client() {
    let seed = seed();
    println!("seed {seed}");
    let mut random = Random::new(seed);
    let mut started = Started::new();
    let mut other = started.client();
    for round in 0..150 {
        let pieces =
            ["*2\r\n", "$3\r\nGET\r\n", "$1\r\na\r\n", "GET a\r\n", "\r\n", "*", "$-1\r\n"];
        let mut bytes = Vec::new();
        for _ in 0..random.below(12) {
            if random.one_in(3) {
                let count = random.below(9);
                bytes.extend((0..count).map(|_| random.bits() as u8));
            } else {
                bytes.extend_from_slice(random.pick(&pieces).as_bytes());
            }
        }
        let mut stream = TcpStream::connect(started.address()).expect("the server accepts");
        let _ = stream.write_all(&bytes);
        other.expect(&format!("ECHO {round} => \"{round}\""));
    }
    started.stop();
}

#[test]
fn pipelined_requests_have_replies_in_their_order() {
    let mut started = Started::new();
    let mut client = started.client();
    let requests: Vec<String> = (0..2_000).map(|number| format!("INCRBY a {number}\r\n")).collect();
    client.send(requests.concat());
    let mut sum = 0;
    for number in 0..2_000 {
        sum += number;
        assert_eq!(shown(&client.reply()), format!(":{sum}"));
    }
    client.send("SET a 1\r\nQUIT\r\nSET a 2\r\n");
    assert_eq!(shown(&client.reply()), "+OK");
    assert_eq!(shown(&client.reply()), "+OK");
    assert!(client.next().is_none(), "nothing after QUIT is run");
    started.client().expect("GET a => \"1\"");
    started.stop();
}

#[test]
fn silent_and_slow_clients_are_closed_with_the_reason() {
    let brief = Duration::from_millis(300);
    let mut started = Started::with(|settings| {
        settings.idle = Some(brief);
        settings.request = brief;
        settings.write = brief;
    });
    let silent = last_words(&started, b"");
    assert_eq!(silent, "-ERR no request came for 300 ms, so the connection is closed\r\n");
    let slow = last_words(&started, b"*2\r\n$3\r\nGET\r\n");
    assert_eq!(
        slow,
        "-ERR the request is not complete after 300 ms, so the connection is closed\r\n"
    );
    // A client that does not read fills the buffers of both ends, and is closed.
    let mut client = started.client();
    let text = "x".repeat(1 << 20);
    assert_eq!(shown(&client.call(&["SET", "a", &text])), "+OK");
    let mut requests = b"GET a\r\n".repeat(200);
    requests.extend_from_slice(b"SET done 1\r\n");
    client.send(requests);
    let mut other = started.client();
    let gone = std::time::Instant::now() + super::PATIENCE;
    while other.ask("CLIENT LIST").matches(" addr=").count() > 1 {
        assert!(std::time::Instant::now() < gone, "the client that does not read is still there");
        std::thread::sleep(Duration::from_millis(20));
    }
    other.expect("GET done => nil");
    started.stop();
}

#[test]
fn the_client_too_many_is_told_so() {
    let mut started = Started::with(|settings| settings.connections_max = 2);
    let (mut one, mut two) = (started.client(), started.client());
    one.expect("PING => +PONG");
    two.expect("PING => +PONG");
    let refused = last_words(&started, b"");
    assert_eq!(refused, "-ERR max number of clients reached: at most 2 are accepted\r\n");
    drop(one);
    let deadline = std::time::Instant::now() + super::PATIENCE;
    loop {
        let mut next = Raw::connect(started.address());
        next.send("PING\r\n");
        if shown(&next.reply()) == "+PONG" {
            break;
        }
        assert!(std::time::Instant::now() < deadline, "the place is free again");
    }
    started.stop();
}

#[test]
fn stopping_ends_all_connections() {
    let mut started = Started::new();
    let mut clients: Vec<Raw> = (0..5).map(|_| started.client()).collect();
    clients[0].expect("PING => +PONG");
    started.stop();
    for client in &mut clients {
        assert!(client.next().is_none());
    }
}
