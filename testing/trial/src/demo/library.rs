//! An unmodified library for Redis, if this machine has one.

use std::process::Command;

use super::story::Story;
use crate::center::Cluster;

/// A program for the library `redis` of Python.
const PROGRAM: &str = r"
import sys
import redis

client = redis.Redis(host=sys.argv[1], port=int(sys.argv[2]), decode_responses=True)
client.set('py:name', 'ana')
assert client.get('py:name') == 'ana'
client.hset('py:hash', mapping={'a': 1, 'b': 2})
assert client.hgetall('py:hash') == {'a': '1', 'b': '2'}
with client.pipeline() as pipe:
    pipe.watch('py:count')
    count = int(pipe.get('py:count') or 0)
    pipe.multi()
    pipe.set('py:count', count + 1)
    pipe.incr('py:count')
    assert pipe.execute() == [True, count + 2]
print(redis.__version__)
";

/// Runs the library's program against d0.
pub fn try_out(cluster: &Cluster, story: &Story) -> Result<(), String> {
    let has_library = Command::new("python3").args(["-c", "import redis"]).output();
    if !has_library.is_ok_and(|ended| ended.status.success()) {
        story.tell("redis-py is not tried: python3 with the package redis is not on this machine");
        return Ok(());
    }
    let address = cluster.address(0).ok_or("d0 does not run")?;
    let (host, port) = (address.ip().to_string(), address.port().to_string());
    let ended = Command::new("python3").args(["-c", PROGRAM, &host, &port]).output();
    let ended = ended.map_err(|error| format!("python3: {error}"))?;
    if !ended.status.success() {
        let error = String::from_utf8_lossy(&ended.stderr).into_owned();
        return Err(format!("redis-py fails: {}", error.trim_end()));
    }
    let version = String::from_utf8_lossy(&ended.stdout).trim().to_owned();
    story.tell(format!("redis-py {version}, unmodified: strings, hashes, WATCH and MULTI work"));
    Ok(())
}
