//! With sequential commits, all delivered in between, replicas behave as one copy.

use mingle_model::random::Random;
use mingle_model::{Level, Value};
use mingle_store::conformance::model::Model;
use mingle_store::conformance::schema::{COUNT, LINES, MARKS, NUMBER, TAGS, TEXT, at, thing};
use mingle_store::{Commit, Read, Write};

use crate::support::{Bench, operation};

const KEYS: [&str; 2] = ["a", "ab"];
const REPLICAS: [&str; 3] = ["r1", "r2", "r3"];

fn random_write(random: &mut Random) -> Write {
    let key = *random.pick(&KEYS);
    let text = Value::from(format!("t{}", random.below(4)));
    let number = Value::Int(random.below(100) as i64);
    match random.below(13) {
        0 => Write::Create(thing(key)),
        1 => Write::Delete(thing(key)),
        2 => Write::Assign(at(key, TEXT), text),
        3 => Write::Assign(at(key, NUMBER), number),
        4 | 5 => Write::Add(at(key, COUNT), random.below(100) as i128 - 50),
        6 | 7 => Write::Insert(at(key, TAGS), text),
        8 => Write::Remove(at(key, TAGS), text),
        9 => Write::Put(at(key, MARKS), text, number),
        10 => Write::Erase(at(key, MARKS), text),
        11 => Write::Append(at(key, LINES), text),
        _ => Write::Clear(at(key, *random.pick(&[TAGS, MARKS, LINES]))),
    }
}

fn reads(key: &str) -> Vec<Read> {
    vec![
        Read::Exists(thing(key)),
        Read::Register(at(key, TEXT)),
        Read::Register(at(key, NUMBER)),
        Read::Counter(at(key, COUNT)),
        Read::SetSize(at(key, TAGS)),
        Read::Elements(at(key, TAGS)),
        Read::MapSize(at(key, MARKS)),
        Read::Entries(at(key, MARKS)),
        Read::LogSize(at(key, LINES)),
        Read::LogLast(at(key, LINES), 3),
        Read::LogSlice { address: at(key, LINES), from: 1, count: 2 },
    ]
}

/// Half of the commits are operations, and another replica commits a copy of each later.
#[test]
fn random_histories_do_what_the_model_does() {
    for level in [Level::Causal, Level::Eventual] {
        for seed in 0..40 {
            let mut random = Random::new(seed);
            let bench = Bench::new(level);
            let mut model = Model::default();
            for step in 0..40 {
                let replica = *random.pick(&REPLICAS);
                let writes: Vec<Write> =
                    (0..=random.below(3)).map(|_| random_write(&mut random)).collect();
                model.write_all(&writes);
                let operation = random.one_in(2).then(|| operation(step));
                let commit = Commit { writes, operation, ..Commit::default() };
                bench.commit(replica, commit.clone());
                bench.deliver();
                if operation.is_some() && random.one_in(2) {
                    let replica = *random.pick(&REPLICAS);
                    bench.commit(replica, commit);
                    bench.deliver();
                }
                for key in KEYS {
                    for read in reads(key) {
                        let expected = model.read(&read);
                        for replica in REPLICAS {
                            let found = bench.data(replica, read.clone());
                            assert_eq!(
                                found, expected,
                                "{level} seed {seed} step {step}, {read:?} at {replica}"
                            );
                        }
                    }
                }
            }
        }
    }
}
