//! The commands that a connection runs.

use super::ServerCommand as Of;
use super::table::{Class, Command, Keys};

pub const CONNECTION: &[Command] = &[
    Command::server("acl", -2, Of::Acl, "Shows users and rights, what was denied, and reads the file of users again.")
        .differs("Has `WHOAMI`, `USERS`, `LIST`, `GETUSER`, `CAT`, `GENPASS`, `LOAD`, `LOG` and `DRYRUN`; users are changed in their file."),
    Command::server("admit", 2, Of::Admit, "Admits a data center that was given up; its process starts anew with the next incarnation.")
        .differs("Not in Redis."),
    Command::server("auth", -2, Of::Auth, "Signs a user in.")
        .differs("After five wrong passwords the connection is closed."),
    Command::server("backup", 2, Of::Backup, "Returns the items of all types at one vector, a frame with each reply: `START`, `NEXT` until nil, `STOP`.")
        .differs("Not in Redis. `mingled backup` writes the replies to a file."),
    Command::server("barrier", 1, Of::Barrier, "Waits until all that the connection read or wrote survives the loss of data centers.")
        .differs("Not in Redis."),
    Command::server("client", -2, Of::Client, "Names and describes connections.")
        .differs("Has `ID`, `GETNAME`, `SETNAME`, `SETINFO`, `INFO`, `LIST`, `NO-EVICT`, `NO-TOUCH` and `REPLY ON`."),
    Command::server("command", -1, Of::Command, "Describes commands.")
        .differs("Has `COUNT`, `DOCS`, `GETKEYS`, `INFO` and `LIST`."),
    Command::server("config", -2, Of::Config, "Returns settings.").differs("Has `GET` only."),
    Command::server("datacenters", 1, Of::DataCenters, "Lists the data centers: the state and its beginning, the incarnation, the lag, and why a connection ended.")
        .differs("Not in Redis."),
    Command::server("echo", 2, Of::Echo, "Returns its argument."),
    Command::server("fence", -2, Of::Fence, "Gives up a data center that is lost.")
        .differs("Not in Redis. With `FORCE`, also one that is connected."),
    Command::server("hello", -1, Of::Hello, "Chooses the version of the protocol."),
    Command::server("info", -1, Of::Info, "Describes the server."),
    Command::server("ping", -1, Of::Ping, "Answers."),
    Command::server("quit", -1, Of::Quit, "Closes the connection."),
    Command::server("reset", 1, Of::Reset, "Ends the transaction and forgets the name and the protocol."),
    Command::server("select", 2, Of::Select, "Accepts database 0, the only one."),
    Command::server("session", -2, Of::Session, "Returns a token of the session, continues from one, or sets when commits are acknowledged.")
        .differs("Not in Redis. Has `TOKEN`, `ATTACH token` and `DURABLE [memory|disk|uniform]`."),
    Command::server("slowlog", -2, Of::SlowLog, "Lists the last requests that took long: `GET [count]`, `LEN`, `RESET`.")
        .differs("The time has all that a client waits for: the disk, and other data centers. Tokens are not kept."),
    Command::server("time", 1, Of::Time, "Returns the time of the machine."),
    Command::server("wait", 3, Of::Wait, "Waits as `BARRIER`, and returns the number of other data centers that are connected.")
        .differs("The numbers of replicas and milliseconds are not used."),
];

pub const NAMES: &[Command] = &[
    Command::server("dbsize", 1, Of::DbSize, "Counts the items.")
        .differs("It reads all items, not at one snapshot."),
    Command {
        class: Class::Causal,
        ..Command::server("flushall", -1, Of::Flush, "Deletes all items.")
    }
    .differs("It deletes in several transactions."),
    Command {
        class: Class::Causal,
        ..Command::server("flushdb", -1, Of::Flush, "Deletes all items.")
    }
    .differs("It deletes in several transactions."),
    Command::server("keys", 2, Of::Keys, "Returns the names that match a pattern.")
        .differs("Not at one snapshot."),
    Command::server("randomkey", 1, Of::RandomKey, "Returns a random name."),
    Command::server("scan", -2, Of::Scan, "Returns the names in steps.")
        .differs("The cursor is a position in an order of hashes; the server remembers nothing."),
];

pub const TRANSACTIONS: &[Command] = &[
    Command::server("abort", 1, Of::Abort, "Gives up the transaction of `BEGIN`.")
        .differs("Not in Redis."),
    Command::server("begin", -1, Of::Begin, "Begins a transaction, `CAUSAL` or `STRONG`.")
        .differs("Not in Redis. `BEGIN STRONG LABEL l` labels its uses of items."),
    Command::server("commit", 1, Of::Commit, "Commits the transaction of `BEGIN`.")
        .differs("Not in Redis."),
    Command::server("discard", 1, Of::Discard, "Gives up the queued commands."),
    Command::server("exec", 1, Of::Exec, "Runs the queued commands in one transaction.")
        .differs("Causal unless it has a strong command, a `WATCH` or a key of `strong_only`."),
    Command::server("multi", 1, Of::Multi, "Begins to queue commands."),
    Command::server(
        "outcome",
        2,
        Of::Outcome,
        "Asks for the outcome of this connection's last commit, if it was unknown.",
    )
    .differs("Not in Redis."),
    Command::server("unwatch", 1, Of::Unwatch, "Forgets the watched items."),
    Command {
        keys: Keys::ALL,
        ..Command::server(
            "watch",
            -2,
            Of::Watch,
            "Lets `EXEC` answer nil if one of the items has changed.",
        )
    },
];
