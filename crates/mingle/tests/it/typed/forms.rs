//! The forms of a program and of its values.

use std::collections::BTreeSet;

use mingle::typed::Time;
use mingle::{Binding, Error, Session};

#[tokio::test]
async fn a_program_in_a_file_is_called_with_types() {
    use super::groups::{Database, Group, User};

    let db = Database::connect().await.expect("it opens");
    let ana: User = db.create_user("ana").await.expect("it always succeeds");
    assert_eq!((&ana, ana.name()), (&User::new("ana"), "ana"));
    let rust = Group::new("rust");
    db.join_group(&ana, &rust).await.expect("it always succeeds");
    assert_eq!(db.add_post(&rust, "hello").await, Ok(1));
    assert_eq!(db.check_inbox(&ana).await, Ok(vec!["hello".to_owned()]));
    db.set_closed(&rust, true).await.expect("it always succeeds");
    let error = db.add_post(&rust, "too late").await.expect_err("it is closed");
    let message = "the group is closed".to_owned();
    assert_eq!(error, Error::Require { code: Some("closed".into()), message });
}

#[tokio::test]
async fn what_the_command_writes_is_called_likewise() {
    use super::written::{Database, Group, User};

    let db = Database::connect().await.expect("it opens");
    let (ana, rust) = (User::new("ana"), Group::new("rust"));
    db.join_group(&ana, &rust).await.expect("it always succeeds");
    assert_eq!(db.add_post(&rust, "hello").await, Ok(1));
    assert_eq!(db.check_inbox(&ana).await, Ok(vec!["hello".to_owned()]));
    // It is the same program, so each may stand over the stores of the other.
    let other = super::groups::Database::over(db.untyped().clone()).expect("its text is the same");
    assert_eq!(other.check_inbox(&super::groups::User::new("ana")).await, Ok(Vec::new()));
}

/// All types, and names that are reserved in Rust.
mod odd {
    mingle::program! {
        store data: linearizable;

        struct Option { value: option<string>, parts: list<Option>, next: option<Option> }
        struct point { x: float, y: float }
        struct String { type: int, moveTo: bool, at: time, raw: bytes, of: ref Result }

        object Result in data { key self: bytes; n: int; }
        object Vec in data { key of: ref Result; all: map<ref Result, String>; }
        object Flag in data { key on: bool; n: int; }
        object Number in data { key n: int; f: float; }
        object Day in data { key start: time; points: list<point>; }

        transaction echo(a: Option, b: list<point>, c: option<option<string>>) -> Option {
            if c.is_some() && b.size() == 2 { return a; }
            return Option { value: none, parts: [], next: none };
        }
        transaction keep(in_: ref Vec, what: String) -> option<String> {
            in_.all.put(what.of, what);
            return in_.all.get(what.of);
        }
        transaction bytes(raw: bytes, maybe: option<bytes>) -> bytes { return maybe ?? raw; }
        transaction points(day: ref Day, points: list<point>) -> list<point> {
            day.points = points;
            return day.points;
        }
        transaction half(number: ref Number, f: float) -> float {
            number.f = f / 2.0;
            return number.f;
        }
        transaction flip(flag: ref Flag) -> ref Flag { return Flag[!flag.on]; }
        transaction later(day: ref Day, ms: int) -> time { return day.start + ms; }
        transaction connect(self: bool) -> bool { return self; }
        transaction async(fn: int) -> int { return fn; }
        transaction addOne(loop: option<int>) -> option<int> {
            match loop { some(n) => { return some(n + 1); } none => { return none; } }
        }
    }
}

#[tokio::test]
async fn every_type_comes_back_as_it_went() {
    use odd::{Database, Day, Flag, Number, Option, Point, Result, String, Vec};

    let db = Database::connect().await.expect("it opens");
    let inner = Option { value: None, parts: vec![], next: None };
    let parts = vec![inner.clone(), inner.clone()];
    let outer = Option { value: Some("é".into()), parts, next: Some(Box::new(inner.clone())) };
    let points = [Point { x: 1.5, y: -0.25 }, Point { x: f64::INFINITY, y: 0.0 }];
    assert_eq!(db.echo(&outer, &points, Some(None)).await.as_ref(), Ok(&outer));
    assert_eq!(db.echo(&outer, &points, None).await, Ok(inner.clone()));
    let of = Result::new([0, 255]);
    let what =
        String { r#type: 1, move_to: true, at: Time::from_millis(7), raw: vec![0], of: of.clone() };
    assert_eq!(db.keep(&Vec::new(of.clone()), &what).await, Ok(Some(what)));
    assert_eq!((of.self_(), Vec::new(of.clone()).of()), (&[0, 255][..], &of));
    assert_eq!(db.bytes(b"a", None).await, Ok(b"a".to_vec()));
    assert_eq!(db.bytes(b"a", Some(b"")).await, Ok(vec![]));
    let day = Day::new(Time::from_millis(1_000));
    assert_eq!(db.points(&day, &points).await, Ok(points.to_vec()));
    assert_eq!(db.half(&Number::new(3), 3.0).await, Ok(1.5));
    assert!(!db.flip(&Flag::new(true)).await.expect("it is local").on());
    assert_eq!(db.later(&day, 5).await, Ok(Time::from_millis(1_005)));
    assert_eq!(db.connect_(true).await, Ok(true));
    assert_eq!(db.r#async(4).await, Ok(4));
    assert_eq!((db.add_one(Some(1)).await, db.add_one(None).await), (Ok(Some(2)), Ok(None)));
    assert_eq!(BTreeSet::from([outer, inner]).len(), 2, "structs without floats are ordered");
}

#[test]
fn handles_and_structs_are_read_and_written_by_serde() {
    use odd::{Result, String};

    let of = Result::new([1]);
    let what = String { r#type: 1, move_to: true, at: Time::from_millis(7), raw: vec![2], of };
    let json = serde_json::to_value(&what).expect("it can be written");
    let expected =
        serde_json::json!({"type": 1, "moveTo": true, "at": 7_000, "raw": [2], "of": [1]});
    assert_eq!(json, expected);
    assert_eq!(serde_json::from_value::<String>(json).expect("it can be read"), what);
}

#[tokio::test]
async fn a_binding_and_a_folder_say_where_data_is() {
    use super::groups::{Database, User};

    let folder = tempfile::tempdir().expect("a folder for the test");
    let binding =
        Binding::parse("[stores.groups]\n[stores.inboxes]\nreplicas = 2").expect("it is right");
    let db = Database::connect().binding(&binding).folder(folder.path()).await;
    let db = db.expect("it opens");
    assert!(folder.path().read_dir().expect("it is a folder").count() > 0);
    let error = db.check_inbox(&User::new("ana")).session(&Session::at("r3")).await;
    let expected = "no store has a replica r3; there are r1, r2";
    assert_eq!(error, Err(Error::Misuse(expected.to_owned())));
    let wrong = Binding::parse("[stores.inbox]\nreplicas = 2").expect("it is right by itself");
    let error = Database::connect().binding(&wrong).await.expect_err("there is no such store");
    assert!(error.to_string().contains("stores.inbox"), "{error}");
}
