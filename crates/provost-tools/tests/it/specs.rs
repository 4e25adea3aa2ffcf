//! The specs for the model and the engine.

use std::fmt::Write;

use expect_test::expect_file;
use provost_tools::builtin;

#[test]
fn specs_are_these() {
    let mut text = String::new();
    for spec in builtin().specs() {
        let schema: serde_json::Value = spec.input_schema.read().unwrap();
        writeln!(
            text,
            "# {}\n{}\naccess: {:?}, subject: {:?}, aliases: {:?}, idempotent: {}, timeout: {} ms, output: {} bytes\n{}\n",
            spec.name,
            spec.description,
            spec.access,
            spec.subject,
            spec.aliases,
            spec.idempotent,
            spec.timeout_ms,
            spec.output_bytes_max,
            serde_json::to_string_pretty(&schema).unwrap()
        )
        .unwrap();
    }
    expect_file!["specs.txt"].assert_eq(&text);
}

#[test]
fn specs_are_the_same_at_every_start() {
    assert_eq!(builtin().specs(), builtin().specs());
}
