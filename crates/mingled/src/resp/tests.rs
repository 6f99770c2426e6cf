//! Tests of the decoder: any pieces, an oracle, limits.

use mingle_model::random::Random;
use redis_protocol::resp2::decode::decode;
use redis_protocol::resp2::types::OwnedFrame;

use super::{Bytes, Decoder, Limits, Protocol, ProtocolError, Reply, format_double};

const SMALL: Limits =
    Limits { argument_bytes: 40, request_bytes: 90, arguments: 6, line_bytes: 50, depth: 3 };

/// Returns the seed; `MINGLE_SEED` overrides it.
fn seed() -> u64 {
    let Ok(text) = std::env::var("MINGLE_SEED") else { return 1 };
    text.parse().unwrap_or_else(|_| panic!("MINGLE_SEED: expected a number, found {text:?}"))
}

type Decoded = Result<Vec<Bytes>, ProtocolError>;

/// Decodes bytes that come in these pieces, up to a fatal error.
fn decoded<'a>(pieces: impl IntoIterator<Item = &'a [u8]>, limits: Limits) -> (Vec<Decoded>, bool) {
    let (mut decoder, mut found) = (Decoder::new(limits), Vec::new());
    for piece in pieces {
        decoder.feed(piece);
        loop {
            match decoder.next_request() {
                Ok(None) => break,
                Ok(Some(request)) => found.push(Ok(request)),
                Err(error) => {
                    found.push(Err(error.clone()));
                    if error.is_fatal() {
                        assert_eq!(decoder.next_request(), Err(error), "it stays");
                        return (found, false);
                    }
                }
            }
        }
    }
    (found, decoder.is_within_request())
}

fn array(words: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

fn random_words(random: &mut Random) -> Vec<Vec<u8>> {
    let count = 1 + random.below(5);
    let word = |random: &mut Random| {
        let length = random.below(20);
        (0..length).map(|_| *random.pick(b"ab\r\n*$:1 \"'\0\xff")).collect()
    };
    (0..count).map(|_| word(random)).collect()
}

/// Returns bytes of a few requests, some of them damaged.
fn random_stream(random: &mut Random) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..=random.below(4) {
        match random.below(8) {
            0 => bytes.extend_from_slice(b"GET \"a\\x41\" 'it\\'s'\r\n"),
            1 => bytes.extend_from_slice(b"*2\r\n+get\r\n:12\r\n"),
            2 => bytes.extend_from_slice(b"*2\r\n$1\r\na\r\n%1\r\n:1\r\n*1\r\n#t\r\n"),
            3 => bytes
                .extend_from_slice(b"*3\r\n=7\r\ntxt:abc\r\n|1\r\n+a\r\n:1\r\n$1\r\nb\r\n_\r\n"),
            4 => bytes.extend_from_slice(&array(&[vec![b'x'; random.below(60)]])),
            _ => {
                let words = random_words(random);
                bytes.extend_from_slice(&array(&words));
            }
        }
    }
    for _ in 0..random.below(3) {
        let place = random.below(bytes.len());
        match random.below(3) {
            0 => bytes[place] = random.bits() as u8,
            1 => _ = bytes.remove(place),
            _ => bytes.insert(place, *random.pick(b"*$:\r\n-09a")),
        }
    }
    bytes
}

#[test]
fn any_pieces_of_a_stream_give_the_same_requests() {
    let seed = seed();
    println!("seed {seed}");
    let mut random = Random::new(seed);
    for _ in 0..20_000 {
        let stream = random_stream(&mut random);
        let whole = decoded([stream.as_slice()], SMALL);
        let single = decoded(stream.chunks(1), SMALL);
        assert_eq!(single, whole, "single bytes of {}", stream.escape_ascii());
        let size = 1 + random.below(7);
        assert_eq!(decoded(stream.chunks(size), SMALL), whole, "pieces of {size}");
    }
}

/// Returns the arguments of a frame that is an array of strings and not empty.
fn strings(frame: OwnedFrame) -> Option<Vec<Bytes>> {
    let OwnedFrame::Array(frames) = frame else { return None };
    let strings = frames.into_iter().map(|frame| match frame {
        OwnedFrame::BulkString(bytes) => Some(bytes.into()),
        _ => None,
    });
    strings.collect::<Option<Vec<Bytes>>>().filter(|strings| !strings.is_empty())
}

/// True if a number in the stream is not in its shortest form, which the oracle accepts.
fn has_long_number(stream: &[u8]) -> bool {
    let text = stream.escape_ascii().to_string();
    ["$0", "*0", "$+", "*+", "$-", "*-"].iter().any(|form| text.contains(form))
}

#[test]
fn an_independent_decoder_finds_the_same_requests() {
    let seed = seed();
    println!("seed {seed}");
    let (mut random, mut both, mut neither) = (Random::new(seed), 0, 0);
    for _ in 0..30_000 {
        let stream = random_stream(&mut random);
        if !stream.starts_with(b"*") || has_long_number(&stream) {
            continue;
        }
        let (found, _) = decoded([stream.as_slice()], Limits::default());
        // The oracle does not look at the two bytes after a string.
        if matches!(found.first(), Some(Err(ProtocolError::StringEnd { .. }))) {
            continue;
        }
        let first = found.into_iter().next().and_then(Result::ok);
        let expected = decode(&stream).ok().flatten().and_then(|(frame, _)| strings(frame));
        match (&first, &expected) {
            (Some(_), Some(_)) => both += 1,
            (None, None) => neither += 1,
            // Numbers, texts and verbatim strings are arguments here.
            (Some(_), None)
                if stream
                    .windows(3)
                    .any(|it| it[0] == b'\n' && b"+:,(=".contains(&it[1]) || it[..2] == *b"*0") =>
            {
                continue;
            }
            _ => {}
        }
        assert_eq!(first, expected, "{}", stream.escape_ascii());
    }
    assert!(both > 1_000 && neither > 1_000, "{both} accepted, {neither} refused");
}

#[test]
fn an_independent_decoder_reads_replies() {
    use redis_protocol::resp3::decode::complete::decode as decode_three;
    let reply = Reply::Array(vec![
        Reply::OK,
        Reply::Error("ERR a\r\nb".into()),
        Reply::Integer(-5),
        Reply::text("a\r\nb"),
        Reply::Null,
        Reply::NullArray,
        Reply::Map(vec![(Reply::text("a"), Reply::Double(0.5))]),
        Reply::Set(vec![Reply::Boolean(true)]),
        Reply::Verbatim("text".into()),
        Reply::Double(f64::INFINITY),
        Reply::Array(Vec::new()),
    ]);
    let two = reply.encoded(Protocol::Two);
    let (frame, length) = decode(&two).expect("it is a reply").expect("it is complete");
    assert_eq!(length, two.len());
    let OwnedFrame::Array(parts) = frame else { panic!("{frame:?}") };
    let strings = |texts: &[&str]| {
        let strings = texts.iter().map(|text| OwnedFrame::BulkString(text.as_bytes().to_vec()));
        OwnedFrame::Array(strings.collect())
    };
    assert_eq!(parts[1], OwnedFrame::Error("ERR a  b".into()));
    assert_eq!((&parts[4], &parts[5]), (&OwnedFrame::Null, &OwnedFrame::Null));
    assert_eq!(parts[6], strings(&["a", "0.5"]));
    assert_eq!(parts[7], OwnedFrame::Array(vec![OwnedFrame::Integer(1)]));
    assert_eq!(parts[9], OwnedFrame::BulkString(b"inf".to_vec()));
    let three = reply.encoded(Protocol::Three);
    let (frame, length) = decode_three(&three).expect("it is a reply").expect("it is complete");
    assert_eq!(length, three.len());
    let shown = format!("{frame:?}");
    for part in
        ["Map", "Set", "Double { data: 0.5", "Boolean { data: true", "VerbatimString", "Null"]
    {
        assert!(shown.contains(part), "{part} in {shown}");
    }
}

#[test]
fn errors_name_the_bytes_and_the_bound() {
    for (stream, expected) in [
        (&b"*9\r\n"[..], "invalid multibulk length: found '9', expected a number of at most 6"),
        (b"*1\r\n$01\r\n", "invalid bulk length: found '01'"),
        (b"*1\r\n$41\r\n", "found an argument of 41 bytes, at most 40 are accepted"),
        (b"*1\r\n!1\r\na\r\n", "expected '$', got '!': arguments are strings"),
        (b"*1\r\n*1\r\n*1\r\n*1\r\n", "arrays of more than 3 levels"),
        (b"*1\r\n$1\r\nabc", "found 'bc' after a string, expected CR and LF"),
    ] {
        let complete = [stream, &[b'x'; 41], b"\r\n"].concat();
        let (found, _) = decoded([complete.as_slice()], SMALL);
        let Some(Err(error)) = found.first() else { panic!("{found:?}") };
        assert!(error.to_string().contains(expected), "{error}, expected {expected}");
    }
}

#[test]
fn a_long_string_that_is_refused_takes_no_memory() {
    let mut decoder = Decoder::new(SMALL);
    decoder.feed(b"*2\r\n$1000000000000\r\n");
    for _ in 0..1_000 {
        decoder.feed(&[b'x'; 1_000]);
        assert_eq!(decoder.next_request(), Ok(None));
        assert!(decoder.buffered() < 3_000, "{}", decoder.buffered());
    }
}

#[test]
fn doubles_have_the_form_of_redis() {
    for (number, expected) in [
        (0.0, "0"),
        (-0.0, "-0"),
        (3.0, "3"),
        (-17.5, "-17.5"),
        (0.1, "0.1"),
        (0.000_125, "0.000125"),
        (0.000_012_5, "1.25e-5"),
        (1e-7, "1e-7"),
        (1.5e300, "1.5e+300"),
        (1e17, "100000000000000000"),
        (1.234_567_890_123_456_7e19, "12345678901234567000"),
        (f64::MAX, "1.7976931348623157e+308"),
        (f64::MIN_POSITIVE, "2.2250738585072014e-308"),
        (f64::INFINITY, "inf"),
        (f64::NAN, "nan"),
    ] {
        assert_eq!(format_double(number), expected);
        if number.is_finite() {
            assert_eq!(format_double(number).parse(), Ok(number), "it reads back");
        }
    }
}
