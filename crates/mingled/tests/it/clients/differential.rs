//! The same commands to this server and to Redis.
//!
//! One client at a time changes each name, so both must give the same replies. Known differences are in
//! [`same`].

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use mingle_model::random::Random;
use mingle_services::Engine;
use redis_protocol::resp2::types::OwnedFrame;

use super::{Raw, Started, seed, shown};

/// The number of clients, each with names of its own. Strong commands wait, so many run at once.
const CLIENTS: usize = 40;

/// The number of commands of a client.
const COMMANDS: usize = 60;

/// The forms of commands. A word with `$` stands for a random one; see [`word`].
const FORMS: &str = "\
    GET $k|SET $k $v|SET $k $v EX 1000|SET $k $v NX|SET $k $v XX|SET $k $v GET|SET $k $v KEEPTTL|\
    SET $k $v NX GET|SET $k $v PX $e|MGET $k $k|MSET $k $v $k $v|MSETNX $k $v $k $v|SETEX $k 1000 $v|\
    PSETEX $k 1000000 $v|GETSET $k $v|GETDEL $k|GETEX $k EX 1000|GETEX $k PERSIST|SETNX $k $v|\
    APPEND $k $v|STRLEN $k|GETRANGE $k $i $i|SETRANGE $k $p $v|INCR $k|DECR $k|INCRBY $k $i|\
    DECRBY $k $i|INCRBYFLOAT $k $x|DEL $k|DEL $k $k|UNLINK $k|EXISTS $k $k|TYPE $k|TTL $k|\
    EXPIRE $k 1000|EXPIRE $k -1|EXPIRE $k 2000 NX|EXPIRE $k 3000 XX|EXPIRE $k 500 LT|\
    EXPIRE $k 5000 GT|PERSIST $k|EXPIREAT $k 33177117420|EXPIRETIME $k|RENAME $k $k|RENAMENX $k $k|\
    COPY $k $k|COPY $k $k REPLACE|\
    HSET $k $f $v|HSET $k $f $v $f $v|HMSET $k $f $v|HGET $k $f|HMGET $k $f $f|HGETALL $k|\
    HDEL $k $f|HDEL $k $f $f|HEXISTS $k $f|HLEN $k|HKEYS $k|HVALS $k|HINCRBY $k $f $i|\
    HINCRBYFLOAT $k $f $x|HSETNX $k $f $v|HSTRLEN $k $f|HSCAN $k 0|HRANDFIELD $k 100|\
    SADD $k $f|SADD $k $f $f|SREM $k $f|SREM $k $f $f|SISMEMBER $k $f|SMISMEMBER $k $f $f|\
    SMEMBERS $k|SCARD $k|SPOP $k 100|SRANDMEMBER $k 100|SMOVE $k $k $f|SINTER $k $k|SUNION $k $k|\
    SDIFF $k $k|SINTERSTORE $k $k $k|SUNIONSTORE $k $k $k|SDIFFSTORE $k $k $k|SINTERCARD 2 $k $k|\
    SINTERCARD 2 $k $k LIMIT 1|SSCAN $k 0|\
    LPUSH $k $f|RPUSH $k $f $f|LPUSHX $k $f|RPUSHX $k $f|LPOP $k|RPOP $k|LPOP $k $p|RPOP $k $p|\
    LLEN $k|LRANGE $k 0 -1|LRANGE $k $i $i|LINDEX $k $i|LSET $k $i $f|LREM $k $i $f|LTRIM $k $i $i|\
    LINSERT $k BEFORE $f $f|LINSERT $k AFTER $f $f|LMOVE $k $k LEFT RIGHT|LMOVE $k $k RIGHT RIGHT|\
    RPOPLPUSH $k $k|LPOS $k $f|LPOS $k $f RANK $i COUNT $p|\
    ZADD $k $s $f|ZADD $k $s $f $s $f|ZADD $k NX $s $f|ZADD $k XX CH $s $f|ZADD $k GT CH $s $f|\
    ZADD $k LT $s $f|ZADD $k INCR $s $f|ZADD $k NX INCR $s $f|ZREM $k $f|ZREM $k $f $f|ZSCORE $k $f|\
    ZMSCORE $k $f $f|ZINCRBY $k $s $f|ZCARD $k|ZCOUNT $k $b $b|ZRANK $k $f|ZREVRANK $k $f|\
    ZRANGE $k 0 -1 WITHSCORES|ZRANGE $k $i $i|ZRANGE $k $i $i REV|ZRANGE $k $b $b BYSCORE|\
    ZRANGE $k $b $b BYSCORE REV LIMIT $i $i|ZRANGE $q $l $l BYLEX|ZREVRANGE $k $i $i WITHSCORES|\
    ZRANGEBYSCORE $k $b $b WITHSCORES|ZRANGEBYSCORE $k $b $b LIMIT $p $i|ZREVRANGEBYSCORE $k $b $b|\
    ZPOPMIN $k|ZPOPMAX $k $p|ZREMRANGEBYSCORE $k $b $b|ZREMRANGEBYRANK $k $i $i|ZSCAN $k 0|\
    ZRANGESTORE $k $k $i $i|ZUNION 2 $k $k WITHSCORES|ZINTER 2 $k $k WITHSCORES|ZDIFF 2 $k $k|\
    ZUNIONSTORE $k 2 $k $k AGGREGATE MAX|ZINTERSTORE $k 2 $k $k WEIGHTS 2 3|ZDIFFSTORE $k 2 $k $k|\
    ZINTERCARD 2 $k $k|ZRANDMEMBER $k 100|ZLEXCOUNT $q $l $l|ZREMRANGEBYLEX $q $l $l|\
    SET $o $m|INCR $o|DECR $o|INCRBY $o $m|DECRBY $o $m|HSET $q-h $f $m|HINCRBY $q-h $f $m|\
    ZADD $q 0 $f 0 $f|ZADD $q 0 $f|ZREM $q $f|ZREVRANGEBYLEX $q $l $l|\
    SET $k|GET|HSET $k $f|ZADD $k $f $s|SET $k $v $f|LSET $k $f $f|INCRBY $k $f|EXPIRE $k $f";

/// Commands whose replies have no order.
const UNORDERED: [&str; 14] = [
    "SMEMBERS",
    "SINTER",
    "SUNION",
    "SDIFF",
    "SPOP",
    "SRANDMEMBER",
    "SSCAN",
    "HKEYS",
    "HVALS",
    "HSCAN",
    "HGETALL",
    "HRANDFIELD",
    "ZSCAN",
    "ZRANDMEMBER",
];

type Command = Vec<String>;

/// Returns a random word for a word of a form.
fn word(of: &str, random: &mut Random) -> String {
    let words: &[&str] = match of {
        // The name of the client comes before it.
        "$k" => &["$1", "$2", "$3", "$4"],
        // Names in order make sense with equal scores only.
        "$q" => &["$8", "$9"],
        "$o" => &["$6", "$7"],
        "$m" => &["9223372036854775807", "-9223372036854775808", "5"],
        // A brief time to live would end at different moments.
        "$e" => &["0", "-1", "1000000"],
        "$v" => &["1", "10", "-3", "x", "abc", "0.5", "", "007"],
        "$f" => &["a", "b", "c", "1"],
        "$i" => &["0", "1", "2", "-1", "-2", "3", "100", "-100"],
        "$p" => &["0", "1", "2", "5"],
        "$x" => &["1", "0.5", "-2.25", "1e2", "x"],
        "$s" => &["1", "2", "-1", "1.5", "0.25", "3"],
        "$b" => &["-inf", "+inf", "0", "(1", "2", "1.5"],
        "$l" => &["-", "+", "[a", "(b", "[c"],
        _ if of.ends_with("-h") => return word("$q", random) + "-h",
        other => return other.to_owned(),
    };
    (*random.pick(words)).to_owned()
}

fn command(random: &mut Random) -> Command {
    let forms: Vec<&str> = FORMS.split('|').map(str::trim).collect();
    let form = random.pick(&forms[..]);
    form.split(' ').map(|of| word(of, random)).collect()
}

/// Returns random commands, some of them within transactions.
fn sequence(random: &mut Random) -> Vec<Command> {
    let mut commands = Vec::new();
    while commands.len() < COMMANDS {
        if !random.one_in(12) {
            commands.push(command(random));
            continue;
        }
        commands.push(vec!["MULTI".into()]);
        for _ in 0..random.below(5) {
            commands.push(command(random));
        }
        commands.push(vec![if random.one_in(5) { "DISCARD" } else { "EXEC" }.into()]);
    }
    commands
}

/// Gives the names of a command a common beginning, which keeps them on one slot too.
fn named(command: &Command, client: &str) -> Command {
    command.iter().map(|word| word.replace('$', client)).collect()
}

/// True if both replies mean the same.
fn same(command: &str, own: &OwnedFrame, other: &OwnedFrame) -> bool {
    use OwnedFrame as Frame;
    match (own, other) {
        // The first words are the same; the texts of a few errors say more here.
        (Frame::Error(own), Frame::Error(other)) => {
            own == other || own.split(' ').next() == other.split(' ').next() && says_more(own)
        }
        // The clocks of both servers are read at different times.
        (Frame::Integer(own), Frame::Integer(other)) if matches!(command, "TTL" | "EXPIRETIME") => {
            (own - other).abs() <= 1
        }
        (Frame::Array(_), Frame::Array(_)) if UNORDERED.contains(&command) => {
            sorted(own, command) == sorted(other, command)
        }
        (Frame::Array(own), Frame::Array(other)) if command == "EXEC" => {
            own.len() == other.len()
                && own.iter().zip(other).all(|(own, other)| {
                    // The commands are not known here, so any order will do, and any second.
                    same("TTL", own, other) || deep(own) == deep(other)
                })
        }
        _ => own == other,
    }
}

/// Shows a reply without any order.
fn deep(frame: &OwnedFrame) -> String {
    let OwnedFrame::Array(parts) = frame else { return shown(frame) };
    let mut parts: Vec<String> = parts.iter().map(deep).collect();
    parts.sort();
    format!("{parts:?}")
}

fn says_more(own: &str) -> bool {
    ["ERR string exceeds maximum", "ERR value is out of range"].iter().any(|it| own.starts_with(it))
}

/// Sorts a reply without an order; pairs stay together.
fn sorted(frame: &OwnedFrame, command: &str) -> Vec<String> {
    let OwnedFrame::Array(parts) = frame else { return vec![shown(frame)] };
    let is_paired = matches!(command, "HGETALL" | "HSCAN" | "ZSCAN");
    let mut shown: Vec<String> = if command.ends_with("SCAN") && parts.len() == 2 {
        let inner = if is_paired { "HGETALL" } else { "SMEMBERS" };
        return sorted(&parts[1], inner);
    } else if is_paired {
        parts.chunks(2).map(|pair| pair.iter().map(shown_of).collect()).collect()
    } else {
        parts.iter().map(shown_of).collect()
    };
    shown.sort();
    shown
}

fn shown_of(frame: &OwnedFrame) -> String {
    shown(frame)
}

/// The numbers of commands that this server gets at once, in turn.
const AT_ONCE: [usize; 6] = [1, 6, 2, 12, 1, 4];

/// Runs commands on both, in pipelines here and one by one at Redis; returns the first difference.
fn difference(
    commands: &[Command],
    client: &str,
    own: &mut Raw,
    other: &mut Raw,
) -> Option<(usize, String)> {
    let commands: Vec<Command> = commands.iter().map(|command| named(command, client)).collect();
    let (mut place, mut sizes) = (0, AT_ONCE.into_iter().cycle());
    while place < commands.len() {
        let end = commands.len().min(place + sizes.next().unwrap_or(1));
        commands[place..end].iter().for_each(|command| own.post(command));
        for (place, command) in (place..end).zip(&commands[place..end]) {
            let (found, expected) = (own.reply(), other.call(command));
            if !same(&command[0], &found, &expected) {
                return Some((place, format!("{} instead of {}", shown(&found), shown(&expected))));
            }
        }
        place = end;
    }
    None
}

/// Removes commands as long as there is a difference.
fn shrink(
    mut commands: Vec<Command>,
    first: (usize, String),
    client: &str,
    [own, other]: [SocketAddr; 2],
) -> String {
    let mut attempt = 0;
    let mut differs = |commands: &[Command]| {
        attempt += 1;
        let client = format!("{client}{attempt}-");
        difference(commands, &client, &mut Raw::connect(own), &mut Raw::connect(other))
    };
    let (place, mut shown) = first;
    commands.truncate(place + 1);
    let mut place = commands.len().saturating_sub(1);
    while place > 0 {
        place -= 1;
        let mut fewer = commands.clone();
        fewer.remove(place);
        if let Some((last, text)) = differs(&fewer) {
            fewer.truncate(last + 1);
            place = place.min(last);
            (commands, shown) = (fewer, text);
        }
    }
    let lines: Vec<String> = commands.iter().map(|command| command.join(" ")).collect();
    format!("{}\n{shown}", lines.join("\n"))
}

#[test]
fn random_commands_have_the_replies_of_redis() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let Some(redis) = runtime.block_on(mingle_services::shared(Engine::Redis)) else { return };
    let other = *redis.addresses().first().expect("an address");
    let mut started = Started::new();
    let own = started.address();
    let seed = seed();
    println!("seed {seed}");
    let (is_over, commands) = (AtomicBool::new(false), AtomicUsize::new(0));
    let found = thread::scope(|scope| {
        let clients = (0..CLIENTS).map(|number| {
            let (is_over, commands) = (&is_over, &commands);
            scope.spawn(move || {
                let mut random = Random::new(seed.wrapping_mul(1_000).wrapping_add(number as u64));
                let sequence = sequence(&mut random);
                let client = format!("mingled-{}-{seed}-{number}-", std::process::id());
                let (mut here, mut there) = (Raw::connect(own), Raw::connect(other));
                let found = difference(&sequence, &client, &mut here, &mut there);
                commands.fetch_add(sequence.len(), Ordering::Relaxed);
                let first = found.filter(|_| !is_over.swap(true, Ordering::Relaxed))?;
                Some(shrink(sequence, first, &client, [own, other]))
            })
        });
        let clients: Vec<_> = clients.collect();
        let found = clients.into_iter().map(|client| client.join().expect("it ends"));
        found.collect::<Vec<_>>().into_iter().flatten().next()
    });
    started.stop();
    println!("{} commands", commands.into_inner());
    if let Some(found) = found {
        panic!("seed {seed}:\n{found}");
    }
}
