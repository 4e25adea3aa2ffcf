//! Addresses of `provost worker` that can't be right, whatever its engine is.

use crate::support::Scene;

#[test]
fn an_address_of_a_worker_that_cannot_be_right_is_refused_before_the_engine_is_asked() {
    let scene = Scene::new();
    let refused = |args: &[&str]| {
        let args = [&["worker", "--engine", "restate://127.0.0.1:9"], args].concat();
        let done = scene.provost(&args);
        assert_eq!(done.status, 2, "{done:?}");
        done.stderr
    };
    let one = "127.0.0.1:39080";
    let other = "127.0.0.1:39081";
    let same = refused(&["--listen", one, "--health", one]);
    assert!(same.contains("--health: the engine calls the worker at 127.0.0.1:39080"), "{same}");
    let same = refused(&["--listen", one, "--shared", other, "--health", other]);
    assert!(same.contains("--health: the engine calls the worker at 127.0.0.1:39081"), "{same}");
    let same = refused(&["--listen", one, "--shared", one, "--health", other]);
    assert!(same.contains("--shared: 127.0.0.1:39080 is the worker's own address"), "{same}");
    for flag in ["--advertise", "--advertise-shared"] {
        let login = refused(&["--shared", other, flag, "http://ann:secret@10.0.0.7:9080"]);
        assert!(login.contains(&format!("{flag}: the address has a login")), "{login}");
        assert!(!login.contains("secret"), "{login}");
    }
}
