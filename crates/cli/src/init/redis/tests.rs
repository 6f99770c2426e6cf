//! The text of files from untrusted keys: with any names, the files hold the design and no more.

use mingle_store_redis::Contents;

use super::binding::binding;
use super::design::design;
use super::patterns::Key;
use super::sampled::Sampled;
use crate::init::hostile::Random;
use crate::init::text::{Next, next, program};

impl Sampled {
    fn add(&mut self, name: String, key_type: &str, contents: Contents) {
        let fields = match &contents {
            Contents::Hash(pairs) => Some(pairs.iter().map(|(field, _)| field.clone()).collect()),
            _ => None,
        };
        self.keys.push(Key { name, of: key_type.into(), fields });
        self.contents.push(contents);
        self.expire.push(false);
    }
}

/// Hashes, lists of the same objects, and single keys.
fn sampled(random: &mut Random) -> Sampled {
    let mut sampled = Sampled::default();
    let (user, inbox, field) = (random.name("user"), random.name("inbox"), random.name("mail"));
    for number in 0..3 {
        let pairs = vec![(field.clone().into_bytes(), random.name("x").into_bytes())];
        sampled.add(format!("{user}:{number}"), "hash", Contents::Hash(pairs));
        let lines = vec![random.name("line").into_bytes()];
        sampled.add(format!("{user}:{number}:{inbox}"), "list", Contents::List(lines));
    }
    sampled.add(random.name("single"), "string", Contents::String(b"x".to_vec(), 1));
    sampled.add(random.name("board"), "zset", Contents::Unknown);
    sampled.add("safe:1".into(), "string", Contents::String(b"1".to_vec(), 1));
    sampled.odd.push(b"\xff\n\x1b".to_vec());
    sampled
}

#[test]
fn hostile_names_add_nothing() {
    let mut random = Random(4);
    let mut most = 0;
    for round in 0..2_000 {
        let sampled = sampled(&mut random);
        let design = design("cache", &sampled);
        let text = program(&design);
        let checked = mingle_lang::check(&*text);
        assert!(!checked.has_errors(), "round {round}: {:?}\n{text}", checked.diagnostics);
        let compiled = checked.program.as_ref().expect("a program");
        assert_eq!(compiled.checked.objects.len(), design.objects.len(), "{text}");
        assert!(!design.objects.iter().any(|object| object.name == "Evil"), "{text}");
        assert!(compiled.plans.iter().all(|plan| plan.name.starts_with("find_")), "{text}");
        let is_odd = |c: char| c.is_control() && c != '\n';
        assert!(!text.contains(is_odd) && !text.contains(['\u{2028}', '\u{202e}']), "{text:?}");

        let text = binding(&design, "redis://h/0");
        let bound: toml::Table = text.parse().expect("it is TOML");
        let store = bound["stores"]["cache"].as_table().expect("a store");
        assert_eq!((bound.len(), store.len()), (1, 3), "{store:?}");
        let objects = store["objects"].as_table().expect("objects");
        assert_eq!(objects.len(), design.objects.len());
        // The engine accepts the mapping of each program.
        let parsed = mingle::Binding::parse(&text).expect("it is a binding");
        let compiled = mingle::compile(&program(&design)).expect("a program");
        mingle::check_binding(&compiled, &parsed).expect("they fit");
        most = most.max(design.objects.len());

        let after = Next { effects: String::new(), commands: Vec::new(), variable: None };
        let said = next(&design, "cache.mingle", &after);
        assert!(!said.contains(is_odd), "{said:?}");
    }
    assert!(most > 1, "names without braces are mapped");
}
