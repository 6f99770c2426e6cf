//! Commands of Redis that the server refuses, with the reasons.

/// Groups of names, each with the reason.
pub const REFUSED: &[(&[&str], &str)] = &[
    (
        &["eval", "evalsha", "eval_ro", "evalsha_ro", "script", "function", "fcall", "fcall_ro"],
        "there are no scripts: use MULTI, or BEGIN STRONG and COMMIT",
    ),
    (
        &[
            "xadd",
            "xack",
            "xautoclaim",
            "xclaim",
            "xdel",
            "xgroup",
            "xinfo",
            "xlen",
            "xpending",
            "xrange",
            "xread",
            "xreadgroup",
            "xrevrange",
            "xsetid",
            "xtrim",
        ],
        "there are no streams: use lists or sorted sets",
    ),
    (
        &["blmove", "blmpop", "blpop", "brpop", "brpoplpush", "bzmpop", "bzpopmax", "bzpopmin"],
        "no command waits for data: ask again",
    ),
    (
        &[
            "psubscribe",
            "publish",
            "pubsub",
            "punsubscribe",
            "spublish",
            "ssubscribe",
            "subscribe",
            "sunsubscribe",
            "unsubscribe",
        ],
        "there is no publishing: use lists",
    ),
    (&["move", "swapdb"], "there is database 0 only"),
    (
        &["bitcount", "bitfield", "bitfield_ro", "bitop", "bitpos", "getbit", "setbit"],
        "there are no bit operations: use GETRANGE and SETRANGE",
    ),
    (&["pfadd", "pfcount", "pfdebug", "pfmerge"], "there are no HyperLogLogs: use sets"),
    (
        &[
            "geoadd",
            "geodist",
            "geohash",
            "geopos",
            "georadius",
            "georadius_ro",
            "georadiusbymember",
            "georadiusbymember_ro",
            "geosearch",
            "geosearchstore",
        ],
        "there are no geographic indexes",
    ),
    (&["sort", "sort_ro"], "the server does not sort: use a sorted set"),
    (
        &["dump", "restore", "migrate", "object", "debug", "memory"],
        "the form in which an item is stored is internal",
    ),
    (
        &[
            "cluster",
            "readonly",
            "readwrite",
            "asking",
            "failover",
            "replicaof",
            "slaveof",
            "psync",
            "replconf",
            "role",
            "sync",
            "waitaof",
        ],
        "replication is between data centers: use BARRIER and DATACENTERS",
    ),
    (&["bgrewriteaof", "bgsave", "lastsave", "save"], "every commit is on disk before its answer"),
    (
        &["latency", "lolwut", "module", "monitor", "shutdown"],
        "this part of Redis is not in this version",
    ),
    (&["lcs", "lmpop", "zmpop"], "this command is not in this version"),
];

/// Returns the reason for the refusal of a command of Redis; `None` for other names.
pub fn refusal(name: &[u8]) -> Option<&'static str> {
    let name = name.to_ascii_lowercase();
    let group = REFUSED.iter().find(|(names, _)| names.iter().any(|it| it.as_bytes() == name));
    group.map(|(_, reason)| *reason)
}
