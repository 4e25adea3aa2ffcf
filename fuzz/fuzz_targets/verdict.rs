//! Every answer of a judge is parsed without a panic, and as achieved only if it has exactly one verdict that says
//! so.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/provost-harness/tests/it/verdict_law.rs"]
mod verdict_law;

fuzz_target!(|answer: &[u8]| {
    if let Ok(answer) = std::str::from_utf8(answer) {
        let _ = verdict_law::check(answer);
    }
});
