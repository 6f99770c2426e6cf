//! The right to make a backup, and its encryption.

use std::sync::Arc;

use mingled::access::{Audit, Tls, TlsFiles, Users};

use super::super::Started;
use super::super::tls::Authority;
use super::{done, refused, text};

#[test]
fn a_backup_needs_the_right_of_an_operator() {
    let folder = tempfile::tempdir().expect("a folder");
    let [users, file, secret, log] =
        ["users", "file", "secret", "log"].map(|name| folder.path().join(name));
    let rules = "user app on >words ~* +@all -@admin\nuser operator on >root ~* +@all\n";
    std::fs::write(&users, rules).expect("room");
    std::fs::write(&secret, "root\n").expect("room");
    let audit = Audit::open(&log).expect("room");
    let mut started = Started::with(|settings| {
        settings.users = Some(Arc::new(Users::open(users).expect("users")));
        settings.audit = Arc::new(audit);
    });
    let address = started.address().to_string();
    let arguments = ["backup", "--from", &address, "--to", text(&file)];
    let as_user = |user: &'static str| [&arguments[..], &["--user", user]].concat();
    let none = refused(&arguments);
    assert!(none.contains("NOAUTH"), "{none}");
    let wrong = refused(&[&as_user("app")[..], &["--password-file", text(&secret)]].concat());
    assert!(wrong.contains("WRONGPASS"), "{wrong}");
    let without = refused(&as_user("operator"));
    assert!(without.contains("--password-file, or the variable MINGLED_PASSWORD"), "{without}");
    std::fs::write(&secret, "words").expect("room");
    let denied = refused(&[&as_user("app")[..], &["--password-file", text(&secret)]].concat());
    assert!(denied.contains("NOPERM User app has no permissions to run the 'backup'"), "{denied}");
    assert!(!file.exists());
    std::fs::write(&secret, "root\n").expect("room");
    done(&[&as_user("operator")[..], &["--password-file", text(&secret)]].concat());
    done(&["check-backup", text(&file)]);
    started.stop();
    let log = std::fs::read_to_string(&log).expect("the log");
    assert_eq!(log.matches("command backup").count(), 1, "it was denied once: {log}");
    assert_eq!(log.matches("BACKUP").count(), 1, "its beginning is noted, and no more: {log}");
}

#[test]
fn a_backup_is_encrypted_as_other_connections_are() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let authority = Authority::new();
    std::fs::write(path("ca.pem"), authority.pem()).expect("room");
    for (name, host) in [("server", "localhost"), ("client", "operator")] {
        authority.issue(folder.path(), name, host);
    }
    let files = TlsFiles {
        certificate: path("server.pem"),
        key: path("server.key"),
        client_ca: Some(path("ca.pem")),
    };
    let tls = Tls::open(files).expect("the files fit");
    let mut started = Started::with(|settings| settings.tls = Some(Arc::new(tls)));
    let (file, address) = (path("file"), started.address().to_string());
    let (ca, certificate, key) = (path("ca.pem"), path("client.pem"), path("client.key"));
    let arguments = ["backup", "--from", &address, "--to", text(&file)];
    let encrypted = [&arguments[..], &["--tls-ca", text(&ca)]].concat();
    let signed =
        [&encrypted[..], &["--tls-certificate", text(&certificate), "--tls-key", text(&key)]]
            .concat();
    for wrong in [&arguments[..], &encrypted, &signed] {
        assert!(refused(wrong).contains(&address), "{wrong:?}");
        assert!(!file.exists());
    }
    done(&[&signed[..], &["--tls-name", "localhost"]].concat());
    done(&["check-backup", text(&file)]);
    started.stop();
}
