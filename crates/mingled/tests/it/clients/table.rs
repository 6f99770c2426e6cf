//! The replies of commands, as Redis's documentation has them.

use super::Started;

const WRONG: &str = "-WRONGTYPE Operation against a key holding the wrong kind of value";

fn check(script: &str) {
    let mut started = Started::new();
    started.client().expect(&script.replace("=> WRONGTYPE", &format!("=> {WRONG}")));
    started.stop();
}

#[test]
fn strings_answer_as_documented() {
    check(
        r#"
        GET a => nil
        SET a Hello => +OK
        GET a => "Hello"
        STRLEN a => :5
        APPEND a " World" => :11
        GETRANGE a 0 3 => "Hell"
        SUBSTR a 0 3 => "Hell"
        GETRANGE a -5 -100 => ""
        GETRANGE a -3 -1 => "rld"
        GETRANGE a 0 -1 => "Hello World"
        GETRANGE a 10 100 => "d"
        SETRANGE a 6 Redis => :11
        GET a => "Hello Redis"
        SETRANGE pad 6 Redis => :11
        GET pad => "\x00\x00\x00\x00\x00\x00Redis"
        SETRANGE none 0 "" => :0
        EXISTS none => :0
        SETRANGE a -1 x => -ERR offset is out of range
        MSET x 1 y two => +OK
        MGET x y z => ["1", "two", nil]
        MSET x => -ERR wrong number of arguments for 'mset' command
        MSETNX x 2 w 3 => :0
        EXISTS w => :0
        MSETNX v 2 w 3 => :1
        INCR x => :2
        INCRBY x 40 => :42
        DECR x => :41
        DECRBY x 2 => :39
        GET x => "39"
        INCR y => -ERR value is not an integer or out of range
        SET max 9223372036854775807 => +OK
        INCR max => -ERR increment or decrement would overflow
        INCRBY new 0 => :0
        GET new => "0"
        SET f 10.50 => +OK
        INCRBYFLOAT f 0.1 => "10.6"
        INCRBYFLOAT f -5 => "5.6"
        INCRBYFLOAT y 1 => -ERR value is not a valid float
        SET e 5.0e3 => +OK
        INCRBYFLOAT e 2.0e2 => "5200"
        SETNX x 1 => :0
        SETNX fresh 1 => :1
        GETSET x 7 => "39"
        GETDEL x => "7"
        GETDEL x => nil
        SET k v NX => +OK
        SET k w NX => nil
        SET k w XX GET => "v"
        SET none w XX => nil
        SET k u NX GET => "w"
        GET k => "w"
        SET k v EX 100 => +OK
        TTL k => :100
        SET k v KEEPTTL => +OK
        TTL k => :100
        SET k v => +OK
        TTL k => :-1
        SET k v EX 0 => -ERR invalid expire time in 'set' command
        SET k v EX x => -ERR value is not an integer or out of range
        SET k v FOO => -ERR syntax error
        SET k v PXAT 1 => +OK
        EXISTS k => :0
        SETEX k 10 v => +OK
        PSETEX p 10000 v => +OK
        TTL p => :10
        GETEX k PERSIST => "v"
        TTL k => :-1
        GETEX k EX 50 => "v"
        TTL k => :50
        SETEX k -1 v => -ERR invalid expire time in 'setex' command
        LPUSH l a => :1
        GET l => WRONGTYPE
        INCR l => WRONGTYPE
        APPEND l x => WRONGTYPE
        SET l string => +OK
        GET l => "string"
        SET nul "a\x00b" => +OK
        GET nul => "a\x00b"
        SET long 0007 => +OK
        INCR long => -ERR value is not an integer or out of range
        "#,
    );
}

#[test]
fn names_answer_as_documented() {
    check(
        r#"
        MSET a 1 b 2 => +OK
        EXISTS a b c a => :3
        DEL a c a => :1
        UNLINK b => :1
        TYPE a => +none
        SET a 1 => +OK
        LPUSH l x => :1
        SADD s x => :1
        ZADD z 1 x => :1
        HSET h f v => :1
        TYPE a => +string
        TYPE l => +list
        TYPE s => +set
        TYPE z => +zset
        TYPE h => +hash
        TTL a => :-1
        TTL none => :-2
        PTTL none => :-2
        EXPIRETIME a => :-1
        EXPIRE a 100 => :1
        TTL a => :100
        EXPIRE a 50 GT => :0
        EXPIRE a 200 GT => :1
        EXPIRE a 300 NX => :0
        EXPIRE a 150 LT => :1
        TTL a => :150
        EXPIRE a 1 NX XX => -ERR NX and XX, GT or LT options at the same time are not compatible
        EXPIRE a 1 FOO => -ERR Unsupported option FOO
        PERSIST a => :1
        PERSIST a => :0
        EXPIREAT a 33177117420 => :1
        EXPIRETIME a => :33177117420
        PEXPIRETIME a => :33177117420000
        PEXPIREAT a 33177117420000 => :1
        PEXPIRE a 1500 => :1
        TOUCH a none => :1
        TTL a => :1
        EXPIRE none 10 => :0
        EXPIRE a -1 => :1
        EXISTS a => :0
        SET a 1 EX 100 => +OK
        RENAME a b => +OK
        TTL b => :100
        RENAME none b => -ERR no such key
        RENAMENX b l => :0
        RENAMENX b c => :1
        COPY c d => :1
        COPY l d => :0
        COPY l d REPLACE => :1
        LRANGE d 0 -1 => ["x"]
        COPY d d => -ERR source and destination objects are the same
        TTL d => :-1
        COPY z z2 => :1
        ZSCORE z2 x => "1"
        RENAME h h2 => +OK
        HGETALL h2 => ["f", "v"]
        RENAME s z => +OK
        SMEMBERS z => ["x"]
        FLUSHALL SYNC => +OK
        FLUSHDB => +OK
        FLUSHALL FOO => -ERR syntax error
        DBSIZE => :0
        RANDOMKEY => nil
        SCAN 0 COUNT 1000 => ["0", []]
        SET only 1 => +OK
        RANDOMKEY => "only"
        KEYS o* => ["only"]
        KEYS x* => []
        DBSIZE => :1
        SCAN 0 COUNT 1000 MATCH x* => ["0", []]
        SCAN 0 TYPE list COUNT 1000 => ["0", []]
        SCAN 0 TYPE string COUNT 1000 => ["0", ["only"]]
        SCAN x => -ERR invalid cursor
        "#,
    );
}

#[test]
fn hashes_answer_as_documented() {
    check(
        r#"
        HSET h f Hello g World => :2
        HSET h f Hi n 1 n 2 => :1
        HGET h f => "Hi"
        HGET h none => nil
        HGET none f => nil
        HMGET h f none n => ["Hi", nil, "2"]
        HGETALL h => ["f", "Hi", "g", "World", "n", "2"]
        HLEN h => :3
        HKEYS h => ["f", "g", "n"]
        HVALS h => ["Hi", "World", "2"]
        HEXISTS h f => :1
        HEXISTS h none => :0
        HSTRLEN h g => :5
        HINCRBY h n 5 => :7
        HINCRBY h m -3 => :-3
        HINCRBY h f 1 => -ERR hash value is not an integer
        HINCRBYFLOAT h n 0.5 => "7.5"
        HINCRBYFLOAT h f 1 => -ERR hash value is not a float
        HSETNX h f x => :0
        HSETNX h new x => :1
        HMSET h a 1 b 2 => +OK
        HSET h f => -ERR wrong number of arguments for 'hset' command
        HDEL h a b none a => :2
        HSCAN h 0 MATCH f => ["0", ["f", "Hi"]]
        HSCAN h 0 MATCH f NOVALUES => ["0", ["f"]]
        HRANDFIELD none => nil
        HRANDFIELD none 5 => []
        HDEL h f g n m new => :5
        EXISTS h => :0
        HSET e f v => :1
        EXPIRE e 100 => :1
        HDEL e f => :1
        HSET e f v => :1
        TTL e => :-1
        HRANDFIELD e => "f"
        HRANDFIELD e -3 => ["f", "f", "f"]
        HRANDFIELD e 3 WITHVALUES => ["f", "v"]
        SET s 1 => +OK
        HGET s f => WRONGTYPE
        HSET s f v => WRONGTYPE
        "#,
    );
}

#[test]
fn sets_answer_as_documented() {
    check(
        r#"
        SADD a x y z x => :3
        SADD a x w => :1
        SCARD a => :4
        SISMEMBER a x => :1
        SISMEMBER a none => :0
        SMISMEMBER a x none w => [:1, :0, :1]
        SMEMBERS a => ["w", "x", "y", "z"]
        SREM a w none w => :1
        SADD b y z q => :3
        SINTER a b => ["y", "z"]
        SINTER a none => []
        SUNION a b => ["q", "x", "y", "z"]
        SDIFF a b => ["x"]
        SINTERCARD 2 a b => :2
        SINTERCARD 2 a b LIMIT 1 => :1
        SINTERCARD 0 a => -ERR numkeys should be greater than 0
        SINTERSTORE c a b => :2
        SMEMBERS c => ["y", "z"]
        SUNIONSTORE c a b => :4
        SDIFFSTORE c a b => :1
        SDIFFSTORE c b b => :0
        EXISTS c => :0
        SMOVE a b x => :1
        SMOVE a b none => :0
        SMEMBERS b => ["q", "x", "y", "z"]
        SPOP one => nil
        SADD one m => :1
        SPOP one => "m"
        EXISTS one => :0
        SREM a y => :1
        SPOP a 10 => ["z"]
        SPOP a -1 => -ERR value is out of range, must be positive
        SRANDMEMBER none => nil
        SRANDMEMBER none 3 => []
        SADD r m => :1
        SRANDMEMBER r => "m"
        SRANDMEMBER r -2 => ["m", "m"]
        SRANDMEMBER r 5 => ["m"]
        SSCAN r 0 => ["0", ["m"]]
        SADD n 1 01 => :2
        SISMEMBER n 1 => :1
        SET s 1 => +OK
        SADD s x => WRONGTYPE
        SUNION r s => WRONGTYPE
        SUNIONSTORE s r => :1
        TYPE s => +set
        "#,
    );
}

#[test]
fn lists_answer_as_documented() {
    check(
        r#"
        RPUSH l a b c => :3
        LPUSH l y z => :5
        LRANGE l 0 -1 => ["z", "y", "a", "b", "c"]
        LRANGE l 1 2 => ["y", "a"]
        LRANGE l -100 1 => ["z", "y"]
        LRANGE l 5 10 => []
        LLEN l => :5
        LINDEX l 0 => "z"
        LINDEX l -1 => "c"
        LINDEX l 5 => nil
        LINDEX l -6 => nil
        LPOP l => "z"
        RPOP l => "c"
        LPOP l 2 => ["y", "a"]
        LPOP none => nil
        LPOP none 2 => nil
        RPOP l -1 => -ERR value is out of range, must be positive
        LPUSHX none a => :0
        RPUSHX l c d => :3
        LSET l 0 B => +OK
        LSET l -1 D => +OK
        LSET l 5 x => -ERR index out of range
        LSET none 0 x => -ERR no such key
        LRANGE l 0 -1 => ["B", "c", "D"]
        LINSERT l BEFORE c x => :4
        LINSERT l AFTER c y => :5
        LINSERT l AFTER none y => :-1
        LINSERT none AFTER c y => :0
        LRANGE l 0 -1 => ["B", "x", "c", "y", "D"]
        RPUSH r a b a c a => :5
        LREM r 2 a => :2
        LRANGE r 0 -1 => ["b", "c", "a"]
        RPUSH r a => :4
        LREM r -1 a => :1
        LRANGE r 0 -1 => ["b", "c", "a"]
        LREM r 0 none => :0
        LTRIM r 0 1 => +OK
        LRANGE r 0 -1 => ["b", "c"]
        LTRIM r 5 6 => +OK
        EXISTS r => :0
        RPUSH p a b c 1 2 3 c c => :8
        LPOS p c => :2
        LPOS p c RANK 2 => :6
        LPOS p c RANK -1 => :7
        LPOS p c COUNT 2 => [:2, :6]
        LPOS p c RANK -1 COUNT 2 => [:7, :6]
        LPOS p c COUNT 0 MAXLEN 3 => [:2]
        LPOS p none => nil
        LPOS p none COUNT 0 => []
        RPUSH m a b c => :3
        LMOVE m n RIGHT LEFT => "c"
        LMOVE m n LEFT RIGHT => "a"
        LRANGE n 0 -1 => ["c", "a"]
        RPOPLPUSH n n => "a"
        LRANGE n 0 -1 => ["a", "c"]
        RPOPLPUSH none n => nil
        LMOVE m n UP LEFT => -ERR syntax error
        SET s 1 => +OK
        LPUSH s x => WRONGTYPE
        LMOVE m s LEFT LEFT => WRONGTYPE
        LRANGE m 0 -1 => ["b"]
        "#,
    );
}

#[test]
fn sorted_sets_answer_as_documented() {
    check(
        r#"
        ZADD z 1 one 2 two 3 three => :3
        ZADD z 1 one 2 uno => :1
        ZADD z CH 5 one 2 two => :1
        ZADD z NX 9 one 9 nine => :1
        ZADD z XX 8 nine 8 none => :0
        ZADD z GT CH 1 nine => :0
        ZADD z LT CH 1 one => :1
        ZADD z INCR 1.5 two => "3.5"
        ZADD z NX INCR 1 two => nil
        ZADD z NX GT 1 a => -ERR GT, LT, and/or NX options at the same time are not compatible
        ZADD z x a => -ERR value is not a valid float
        ZADD z 1 => -ERR wrong number of arguments for 'zadd' command
        ZADD z 1 a 2 => -ERR syntax error
        ZSCORE z two => "3.5"
        ZSCORE z none => nil
        ZMSCORE z one none => ["1", nil]
        ZCARD z => :5
        ZRANGE z 0 -1 WITHSCORES => ["one", "1", "uno", "2", "three", "3", "two", "3.5", "nine", "8"]
        ZRANGE z 0 0 REV => ["nine"]
        ZREVRANGE z 0 1 WITHSCORES => ["nine", "8", "two", "3.5"]
        ZRANGEBYSCORE z (1 3 => ["uno", "three"]
        ZRANGEBYSCORE z -inf +inf LIMIT 1 2 => ["uno", "three"]
        ZREVRANGEBYSCORE z +inf (3 => ["nine", "two"]
        ZRANGE z 3 (1 BYSCORE REV => ["three", "uno"]
        ZRANGE z 0 1 LIMIT 0 1 => -ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX
        ZRANGEBYSCORE z x 1 => -ERR min or max is not a float
        ZCOUNT z 2 (8 => :3
        ZRANK z two => :3
        ZREVRANK z two => :1
        ZRANK z none => nil
        ZRANK z two WITHSCORE => [:3, "3.5"]
        ZINCRBY z 2 one => "3"
        ZINCRBY z 0.5 one => "3.5"
        ZINCRBY z 1 one => "4.5"
        ZINCRBY new 7 a => "7"
        ZREM z one none one => :1
        ZPOPMIN z => ["uno", "2"]
        ZPOPMAX z 2 => ["nine", "8", "two", "3.5"]
        ZPOPMIN none => []
        ZREMRANGEBYSCORE z 3 3 => :1
        EXISTS z => :0
        ZADD l 0 a 0 b 0 c 0 d => :4
        ZRANGEBYLEX l [b (d => ["b", "c"]
        ZREVRANGEBYLEX l + [c => ["d", "c"]
        ZLEXCOUNT l - + => :4
        ZREMRANGEBYLEX l - (b => :1
        ZREMRANGEBYRANK l -1 -1 => :1
        ZRANGE l [b + BYLEX => ["b", "c"]
        ZRANGEBYLEX l b c => -ERR min or max not valid string range item
        ZRANGESTORE st l 0 0 => :1
        ZADD u 1 a 2 b => :2
        ZADD v 10 b 20 c => :2
        ZUNION 2 u v WITHSCORES => ["a", "1", "b", "12", "c", "20"]
        ZINTER 2 u v WITHSCORES => ["b", "12"]
        ZDIFF 2 u v => ["a"]
        ZUNION 2 u v WEIGHTS 2 1 AGGREGATE MAX WITHSCORES => ["a", "2", "b", "10", "c", "20"]
        ZUNIONSTORE o 2 u v => :3
        ZINTERSTORE o 2 u v => :1
        ZDIFFSTORE o 2 u v => :1
        ZINTERCARD 2 u v => :1
        ZSCAN u 0 => ["0", ["a", "1", "b", "2"]]
        ZRANDMEMBER none => nil
        ZRANDMEMBER o -2 => ["a", "a"]
        ZADD i inf a => :1
        ZINCRBY i -inf a => -ERR resulting score is not a number (NaN)
        ZSCORE i a => "inf"
        SET s 1 => +OK
        ZADD s 1 a => WRONGTYPE
        "#,
    );
}

#[test]
fn connections_answer_as_documented() {
    check(
        r#"
        PING => +PONG
        PING hello => "hello"
        ECHO hello => "hello"
        SELECT 0 => +OK
        SELECT 1 => -ERR DB index is out of range: there is database 0 only
        CLIENT GETNAME => nil
        CLIENT SETNAME me => +OK
        CLIENT GETNAME => "me"
        CLIENT SETNAME "a b" => -ERR Client names cannot contain spaces, newlines or special characters.
        CLIENT SETINFO LIB-NAME test => +OK
        CLIENT NO-EVICT on => +OK
        CONFIG GET databases => ["databases", "1"]
        CONFIG GET none => []
        COMMAND INFO none => [nil]
        COMMAND GETKEYS SET a b => ["a"]
        COMMAND GETKEYS ZUNIONSTORE d 2 a b => ["d", "a", "b"]
        COMMAND GETKEYS MSET a 1 b 2 => ["a", "b"]
        GET => -ERR wrong number of arguments for 'get' command
        NOSUCH a b => -ERR unknown command 'NOSUCH', with args beginning with: 'a' 'b'
        EVAL x 0 => -ERR EVAL is not supported: there are no scripts: use MULTI, or BEGIN STRONG and COMMIT
        HELLO 4 => -NOPROTO unsupported protocol version
        RESET => +RESET
        CLIENT GETNAME => nil
        AUTH user password => -ERR AUTH called without any password configured: this server has no file of users
        WAIT 0 0 => :0
        BARRIER => +OK
        "#,
    );
}
