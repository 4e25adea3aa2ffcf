//! When locks are taken and released, and the log lines without them.

use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant};

use provost_power::KeepAwakeOptions;

use crate::child::Holder;
use crate::logind::{Logind, Manner};

const IDLE: &str = "Provost, Provost agent loop: idle, block";
const SLEEP: &str = "Provost, Provost agent loop: sleep, block";

/// Releases at once.
const PROMPT: KeepAwakeOptions = options(0, 3_000);
/// Never releases by itself within a test.
const LINGERING: KeepAwakeOptions = options(600_000, 3_000);
/// Gives the system little time.
const HURRIED: KeepAwakeOptions = options(0, 50);

const fn options(linger_ms: u64, answer_max_ms: u64) -> KeepAwakeOptions {
    KeepAwakeOptions {
        linger: Duration::from_millis(linger_ms),
        answer_max: Duration::from_millis(answer_max_ms),
        blocks_sleep: true,
    }
}

#[test]
fn a_guard_holds_off_idling_only_unless_sleep_is_asked_for() {
    let logind = Logind::start(Manner::Grants);
    let mut holder = Holder::new(logind.address(), KeepAwakeOptions { blocks_sleep: false, ..PROMPT });
    holder.order("hold");
    logind.wait_until_held(1);
    assert_eq!(holder.line(), "DEBUG provost_power::keeper: the machine is kept awake");
    assert_eq!(logind.held(), [IDLE]);
    holder.order("release");
    logind.wait_until_held(0);
    assert_eq!(logind.asked(), [IDLE]);
    assert_eq!(holder.end(), [""; 0]);
}

#[test]
fn a_guard_that_is_to_hold_off_idling_and_sleep_holds_off_nothing_else() {
    let logind = Logind::start(Manner::Grants);
    let mut holder = Holder::new(logind.address(), PROMPT);
    holder.order("hold");
    logind.wait_until_held(2);
    assert_eq!(logind.held(), [IDLE, SLEEP]);
    assert_eq!(holder.line(), "DEBUG provost_power::keeper: the machine is kept awake");
    holder.order("release");
    logind.wait_until_held(0);
    assert_eq!(logind.asked(), [IDLE, SLEEP]);
    assert_eq!(holder.end(), [""; 0]);
}

#[test]
fn guards_that_overlap_share_the_locks_until_the_last_is_gone() {
    let logind = Logind::start(Manner::Grants);
    let mut holder = Holder::new(logind.address(), PROMPT);
    for order in ["hold", "hold", "hold", "release", "hold", "release", "release"] {
        holder.order(order);
        logind.wait_until_held(2);
    }
    holder.order("release");
    logind.wait_until_held(0);
    assert_eq!(logind.asked(), [IDLE, SLEEP]);
    holder.order("hold");
    logind.wait_until_held(2);
    assert_eq!(logind.asked(), [IDLE, IDLE, SLEEP, SLEEP]);
}

#[test]
fn what_follows_soon_finds_the_locks_still_held() {
    let logind = Logind::start(Manner::Grants);
    let mut holder = Holder::new(logind.address(), LINGERING);
    holder.order("hold and release often");
    holder.order("hold");
    logind.wait_until_held(2);
    assert_eq!(holder.line(), "DEBUG provost_power::keeper: the machine is kept awake");
    holder.order("release");
    assert_eq!(holder.end(), [""; 0]);
    logind.wait_until_held(0);
    assert_eq!(logind.asked(), [IDLE, SLEEP]);
}

#[test]
fn after_a_short_while_without_a_guard_the_locks_are_let_go() {
    let logind = Logind::start(Manner::Grants);
    let mut holder = Holder::new(logind.address(), options(150, 3_000));
    holder.order("hold");
    logind.wait_until_held(2);
    holder.order("release");
    let released = Instant::now();
    logind.wait_until_held(0);
    let lingered = released.elapsed();
    assert!(lingered >= Duration::from_millis(100), "{lingered:?}");
}

#[test]
fn a_wait_between_attempts_holds_on_without_a_guard() {
    let logind = Logind::start(Manner::Grants);
    let mut holder = Holder::new(logind.address(), PROMPT);
    holder.order("hold");
    logind.wait_until_held(2);
    holder.order("release later");
    // If it had been released, these would have requested it again.
    holder.order("hold");
    holder.order("release");
    assert_eq!(logind.held(), [IDLE, SLEEP]);
    holder.order("end");
    logind.wait_until_held(0);
    assert_eq!(logind.asked(), [IDLE, SLEEP]);
}

#[test]
fn a_panic_lets_go() {
    let logind = Logind::start(Manner::Grants);
    let mut holder = Holder::new(logind.address(), PROMPT);
    holder.order("panic");
    holder.order("hold");
    logind.wait_until_held(2);
    holder.order("panic");
    holder.order("release");
    logind.wait_until_held(0);
}

#[test]
fn its_end_lets_go_whatever_guards_are_left() {
    let logind = Logind::start(Manner::Grants);
    let mut holder = Holder::new(logind.address(), LINGERING);
    holder.order("hold");
    logind.wait_until_held(2);
    holder.order("end");
    logind.wait_until_held(0);
}

#[test]
fn a_killed_process_lets_go() {
    let logind = Logind::start(Manner::Grants);
    let mut holder = Holder::new(logind.address(), LINGERING);
    holder.order("hold");
    logind.wait_until_held(2);
    holder.kill();
    logind.wait_until_held(0);
}

#[test]
fn where_sleep_is_refused_idling_is_still_held_off() {
    let logind = Logind::start(Manner::RefusesSleep);
    let mut holder = Holder::new(logind.address(), PROMPT);
    holder.order("hold");
    assert_eq!(
        holder.line(),
        "DEBUG provost_power::keeper: the machine is kept awake only in part why=\"sleep: system: \
         org.freedesktop.DBus.Error.AccessDenied: sleep may not be held off\""
    );
    assert_eq!(logind.held(), [IDLE]);
    holder.order("release");
    logind.wait_until_held(0);
}

#[test]
fn a_logind_that_never_answers_delays_nothing_and_is_told_of() {
    let logind = Logind::start(Manner::NeverAnswers);
    let mut holder = Holder::new(logind.address(), HURRIED);
    let took = holder.order("hold");
    assert!(took < Duration::from_millis(500), "{took:?}");
    logind.wait_until_asked(2);
    assert_eq!(
        holder.line(),
        "DEBUG provost_power::keeper: the machine may fall asleep while agents work \
         why=\"idle: the system hasn't answered; sleep: the system hasn't answered\""
    );
    for _ in 0..20 {
        holder.order("release");
        let took = holder.order("hold");
        assert!(took < Duration::from_millis(500), "{took:?}");
    }
    // Until it has answered there is no further request, and no further log line.
    assert_eq!(holder.end(), [""; 0]);
    assert_eq!(logind.asked().len(), 2);
}

#[test]
fn a_bus_that_never_answers_delays_nothing_and_is_told_of() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bus");
    let _bus = UnixListener::bind(&path).unwrap();
    let mut holder = Holder::new(&format!("unix:path={}", path.display()), HURRIED);
    let took = holder.order("hold");
    assert!(took < Duration::from_millis(500), "{took:?}");
    let line = holder.line();
    assert!(line.contains("idle: the system hasn't answered; sleep: the system hasn't answered"), "{line}");
    assert_eq!(holder.end(), [""; 0]);
}

#[test]
fn without_a_bus_one_line_says_so() {
    let mut holder = Holder::new("unix:path=/nowhere/bus", PROMPT);
    holder.order("hold");
    let why = "Failed to connect to address `unix:path=/nowhere/bus`: No such file or directory (os error 2)";
    let told = format!(
        "DEBUG provost_power::keeper: the machine may fall asleep while agents work \
         why=\"idle: system: {why}; sleep: system: {why}\""
    );
    assert_eq!(holder.line(), told);
    holder.order("release");
    holder.order("hold");
    assert_eq!(holder.end(), [""; 0]);
}
