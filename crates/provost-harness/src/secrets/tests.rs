//! The secrets here are assembled at run time: repository scanners find none in this file.

use std::borrow::Cow;
use std::fs;
use std::path::Path;

use proptest::prelude::*;
use secrecy::SecretString;
use serde_json::{Value, json};

use super::Redactor;

const LETTERS: &[u8] = b"a1B2c3D4e5F6g7H8i9J0kLmNoPqRsTuVwXyZ";

/// `prefix` followed by this many letters and digits.
fn fake(prefix: &str, count: usize) -> String {
    let letters = LETTERS.iter().cycle().take(count).map(|letter| char::from(*letter));
    prefix.chars().chain(letters).collect()
}

fn knowing(values: &[&str]) -> Redactor {
    Redactor::new(values.iter().map(|value| SecretString::from(*value)))
}

/// `before`, the secret, `after`: only the secret is removed.
#[track_caller]
fn check_in(before: &str, secret: &str, after: &str) {
    let text = format!("{before}{secret}{after}");
    assert_eq!(Redactor::default().redact(&text), format!("{before}[secret]{after}"), "{text}");
}

#[track_caller]
fn check(secret: &str) {
    for (before, after) in
        [("", ""), ("KEY=", "\n"), ("\"", "\","), ("the key ", ". Then"), ("ключ ", "，次")]
    {
        check_in(before, secret, after);
    }
}

#[track_caller]
fn check_none(text: &str) {
    let redacted = Redactor::default().redact(text).into_owned();
    assert_eq!(redacted, text);
    assert!(matches!(Redactor::default().redact(text), Cow::Borrowed(_)), "{text}");
}

#[test]
fn keys_of_providers_are_found() {
    for (prefix, count) in [
        ("sk-", 48),
        ("sk-", 20),
        ("sk-ant-api03-", 95),
        ("sk-proj-", 120),
        ("sk-svcacct-", 60),
        ("sk-admin-", 60),
        ("AIza", 35),
        ("gsk_", 52),
        ("xai-", 80),
        ("hf_", 34),
    ] {
        check(&fake(prefix, count));
    }
    check(&format!("sk-or-v1-{}", "0123456789abcdef".repeat(4)));
}

#[test]
fn tokens_of_hosts_clouds_chat_and_payment_are_found() {
    for (prefix, count) in [
        ("ghp_", 36),
        ("gho_", 36),
        ("ghs_", 36),
        ("github_pat_", 82),
        ("glpat-", 20),
        ("npm_", 36),
        ("xoxb-123456789012-", 24),
        ("xoxp-", 30),
        ("xapp-1-", 30),
        ("sk_live_", 24),
        ("rk_live_", 24),
    ] {
        check(&fake(prefix, count));
    }
    check(&format!("AKIA{}", "IOSFODNN7EXAMPLE"));
    check(&format!("ASIA{}", "IOSFODNN7EXAMPLE"));
    check(&format!("{}.01.{}", fake("glpat-", 27), "0a1b2c3d4"));
    let part = |count| fake("eyJ", count);
    check(&format!("{}.{}.{}", part(30), part(80), fake("", 43)));
}

#[test]
fn what_authorizes_a_request_goes_and_the_rest_of_the_line_stays() {
    check_in("Authorization: Bearer ", &fake("", 32), "\r\nAccept: */*");
    check_in("authorization: bearer ", &fake("v2.local.", 20), "");
    check_in("-H 'Authorization: Basic ", "dXNlcjpwYXNzd29yZDE=", "' https://example.com");
    check_in("https://user:", "hunter2", "@example.com/path");
    check_in("postgres://app:", "correct-horse", "@localhost:5432/app?sslmode=off");
    check_in("redis://:", "p:w%40d", "@cache:6379");
    check_in("{\"url\":\"amqp://guest:", "guest-word", "@mq\"}");
}

fn private_key(kind: &str, line_end: &str) -> String {
    let body = [fake("MII", 61), fake("q", 63), fake("", 20)].join(line_end);
    format!("-----BEGIN {kind}PRIVATE KEY-----{line_end}{body}{line_end}-----END {kind}PRIVATE KEY-----")
}

#[test]
fn private_keys_are_found_however_their_lines_end() {
    for kind in ["", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED "] {
        for line_end in ["\n", "\r\n", "\\n", "\\\\n", "\n    ", "\\n\" +\n  \"", "\\n\\\n"] {
            check_in("key: ", &private_key(kind, line_end), " and more words");
        }
    }
    let armored = |body: &str| {
        format!(
            "-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: 1.2 (x)\n\n{body}\n=aB3d\n-----END PGP PRIVATE KEY BLOCK-----"
        )
    };
    check_in("", &armored(&fake("", 64)), "\n");
}

#[test]
fn a_private_key_that_is_cut_off_is_found_as_far_as_it_goes() {
    let whole = private_key("", "\n");
    let cut = whole.split_once("\n-----END").unwrap().0;
    check_in("", cut, "\n[… 12 bytes left out …]");
}

#[test]
fn ordinary_code_and_text_stay_as_they_are() {
    for text in [
        "",
        "fn main() { println!(\"{}\", secret_key()); }",
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "da39a3ee5e6b4b0d3255bfef95601890afd80709",
        "output:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "550e8400-e29b-41d4-a716-446655440000",
        "sha512-oRYmBGhIB8yQPnGXDZ7ILg5AJPbXSbYy2zjJYfZdTEkRWKwmpTrJnBpkPcHmXhZBlkQ1hFcrUyCsCXAmzr0bJQ==",
        "run k3x9m2p7q4ab.0#17, call toolu_01A09q90qw90lq917835lq9",
        "task-12345678901234567890 risk-abcdefghijklmnopqrstuvwxyz disk-0123456789abcdef0123",
        "<div class=\"sk-chasing-dot sk-loading-indicator-animation-container\">",
        "gsk_render_node_get_node_type hf_hub_download_with_progress npm_config_registry_url_for_the_scope",
        "ghp_ is a prefix, as are sk-ant-, AIza, AKIA, xoxb- and eyJ",
        "AKIA in words: BRASIAKIAPERSONALIZATION",
        "Authorization: Bearer ${TOKEN}, Bearer <token>, \"Bearer \" + token, Bearer {token}",
        "uses bearer authentication-with-tokens and Bearer YOUR_ACCESS_TOKEN_HERE",
        "basic understanding of Authorization: basic",
        "https://example.com:8080/a@b http://[::1]:80/ ssh://git@host:22/path git@github.com:owner/repo.git",
        "postgres://user:${PASSWORD}@host mysql://u:$PW@h x://u:<password>@h y://u:{pw}@h z://u:%s@h a://u:***@h",
        "https://registry.example/@scope/name:latest https://example.com/?q=a:b@c",
        "text.strip_prefix(\"-----BEGIN PRIVATE KEY-----\")?.strip_suffix(\"-----END PRIVATE KEY-----\")",
        "between -----BEGIN PRIVATE KEY----- and -----END PRIVATE KEY----- is the key",
        "-----BEGIN CERTIFICATE-----\nMIIBkTCB+wIJAKHHCgVZU6Z9MA0GCSqGSIb3DQEBCwUAMBExDzANBgNVBAMMBnRl\n-----END CERTIFICATE-----",
    ] {
        check_none(text);
    }
}

#[test]
fn sources_and_checksums_have_no_secrets() {
    let crate_root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let sources = ignore::Walk::new(crate_root.join("src")).filter_map(Result::ok);
    let sources = sources.filter(|entry| entry.file_name() != "tests.rs").map(|entry| entry.into_path());
    let mut read = 0;
    for path in sources.chain([crate_root.join("../../Cargo.lock")]).filter(|path| path.is_file()) {
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(Redactor::default().redact(&text), text, "{}", path.display());
        read += 1;
    }
    assert!(read > 20, "only {read} files");
}

#[test]
fn values_it_was_given_are_found_wherever_they_stand() {
    let redactor = knowing(&[" correct-horse\n", "line one\nline \"two\""]);
    assert_eq!(redactor.redact("xcorrect-horsey"), "x[secret]y");
    assert_eq!(redactor.redact("correct-horsecorrect-horse"), "[secret][secret]");
    assert_eq!(redactor.redact("a line one\nline \"two\" b"), "a [secret] b");
    assert_eq!(redactor.redact(r#"a line one\nline \"two\" b"#), "a [secret] b");
    assert!(matches!(redactor.redact("correct-hors"), Cow::Borrowed("correct-hors")));
}

#[test]
fn values_of_less_than_eight_characters_are_ignored() {
    let redactor = knowing(&["", " ", "seven77", "sieben7ü", "  seven77  "]);
    assert_eq!(redactor.redact("seven77 sieben7ü"), "seven77 [secret]");
    assert_eq!(knowing(&["größer7"]).redact("größer7"), "größer7");
}

#[test]
fn of_values_that_overlap_nothing_stays() {
    let redactor = knowing(&["abcdefgh", "cdefghijklmn", "abcdefghij"]);
    assert_eq!(redactor.redact("-abcdefghijklmn-"), "-[secret]-");
    assert_eq!(redactor.redact("-abcdefghijk-"), "-[secret]k-");
}

#[test]
fn redacting_twice_is_redacting_once() {
    let redactor = knowing(&["hunter2hunter2"]);
    let text = format!("https://u:{}@h Bearer {} hunter2hunter2", "pa55word", fake("", 20));
    let once = redactor.redact(&text).into_owned();
    assert_eq!(once, "https://u:[secret]@h Bearer [secret] [secret]");
    assert!(matches!(redactor.redact(&once), Cow::Borrowed(_)));
}

#[test]
fn json_stays_json_and_the_same_text_but_for_the_secrets() {
    let redactor = knowing(&["hunter2\nhunter2", "12345678", "a \"quoted\" value"]);
    let check = |json: &str, expected: &str| assert_eq!(redactor.redact_json(json), expected, "{json}");
    check(r#"{ "a" : 1.50, "b":[ true,null ] }"#, r#"{ "a" : 1.50, "b":[ true,null ] }"#);
    check(r#"{"a":"x hunter2\nhunter2 y"}"#, r#"{"a":"x [secret] y"}"#);
    check(r#"{"a":"hunter2\u000ahunt\u0065r2"}"#, r#"{"a":"[secret]"}"#);
    check(r#"{"args":"{\"p\":\"hunter2\\nhunter2\"}"}"#, r#"{"args":"{\"p\":\"[secret]\"}"}"#);
    check(r#"{"a \"quoted\" value":"\"\\"}"#, r#"{"[secret]":"\"\\"}"#);
    check(r#"{"pin":12345678,"n":1234567}"#, r#"{"pin":"[secret]","n":1234567}"#);
    check(r#"["\ud800 12345678","\ud800 fine"]"#, r#"["[secret]","\ud800 fine"]"#);
    assert!(matches!(redactor.redact_json(r#"{"a":"\"fine\""}"#), Cow::Borrowed(_)));
}

#[test]
fn it_shows_nothing_of_what_it_knows() {
    assert_eq!(format!("{:?}", knowing(&["hunter2hunter2"])), "Redactor { .. }");
}

proptest! {
    #[test]
    fn a_value_is_never_left_in_any_json_that_holds_it(
        secret in "[ -~\n\u{e4}\u{1f600}]{8,20}", before in "\\PC{0,12}", after in "\\PC{0,12}",
    ) {
        prop_assume!(secret.trim() == secret && !"[secret]".contains(secret.as_str()));
        let redactor = knowing(&[&secret]);
        let text = json!({ "k": [format!("{before}{secret}{after}")], secret.as_str(): null }).to_string();
        let redacted = redactor.redact_json(&text);
        let value: Value = serde_json::from_str(&redacted).unwrap();
        for (key, value) in value.as_object().unwrap() {
            prop_assert!(!key.contains(secret.as_str()));
            prop_assert!(value.is_null() || !value[0].as_str().unwrap().contains(secret.as_str()));
        }
    }
}

/// A key in a long text with an omission, for every cut: the rest of the key is shorter than 8 characters.
#[test]
fn no_part_of_a_value_is_left_where_a_text_was_cut() {
    let key = fake("", 30);
    let redactor = knowing(&[&key]);
    let texts: [fn(&str) -> String; 7] = [
        |part| format!("yes {part}"),
        |part| format!("yes {part}…"),
        |part| format!("yes {part} […]"),
        |part| format!("yes {part}\n[12,000 bytes left out]\nno"),
        |part| format!("yes {part}… [the line goes on after 2,000 bytes]\nno"),
        |part| format!("yes {part}\n[the rest is left out]"),
        |part| format!("yes \u{1b}[1m{part}\n[1 byte left out]\nno"),
    ];
    for at in 8..key.len() {
        for text in texts {
            let text = text(&key[..at]);
            let expected = text.replace(&key[..at], "[secret]");
            assert_eq!(redactor.redact_cut(&text), expected);
        }
        let end = &key[key.len() - at..];
        for text in [
            format!("{end} no"),
            format!("yes\n[9 bytes left out]\n{end} no"),
            format!("exit status 1: [5,000 bytes printed, of which the last 4,096 are kept]\n{end} no"),
        ] {
            assert_eq!(redactor.redact_cut(&text), text.replace(end, "[secret]"));
        }
    }
    let inner = format!("[9 bytes left out]\n{}\n[9 bytes left out]\n", &key[4..20]);
    assert_eq!(redactor.redact_cut(&inner), inner.replace(&key[4..20], "[secret]"));
}

#[test]
fn parts_of_a_value_stay_where_nothing_was_cut() {
    let key = fake("sk-", 30);
    let redactor = knowing(&[&key]);
    for text in [
        format!("{} and more", &key[..7]),
        format!("keys begin with {}, as you know", &key[..12]),
        format!("a\n{}\nb", &key[..12]),
        format!("[3 bytes left out] {}", &key[9..]),
    ] {
        assert_eq!(redactor.redact_cut(&text), text);
    }
}

#[test]
fn values_of_options_and_variables_that_name_keys_are_no_part_of_a_shown_command() {
    let masked = |words: &str| {
        let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
        super::without_keys(&words).join(" ")
    };
    for (words, shown) in [
        ("agent --api-key abc --model m", "agent --api-key [secret] --model m"),
        ("agent --token=abc", "agent --token=[secret]"),
        ("env OPENAI_API_KEY=abc agent", "env OPENAI_API_KEY=[secret] agent"),
        (
            "agent --anthropic-api-key=abc --password p",
            "agent --anthropic-api-key=[secret] --password [secret]",
        ),
        ("agent --max-tokens 400 --keyboard us", "agent --max-tokens 400 --keyboard us"),
        ("agent --token --verbose", "agent --token --verbose"),
        ("agent monkey=1 tokenizer=2", "agent monkey=1 tokenizer=2"),
    ] {
        assert_eq!(masked(words), shown);
    }
}

#[test]
fn a_learned_value_is_removed_from_then_on() {
    let redactor = super::Redactor::default();
    assert_eq!(redactor.redact("it is hunter2"), "it is hunter2");
    redactor.learn("hunter2\n");
    redactor.learn("abc");
    assert_eq!(redactor.redact("it is hunter2, not abc"), "it is [secret], not abc");
    assert_eq!(redactor.redact_rows("hunter2"), "[secret]");
    assert_eq!(redactor.redact_cut("hunter2"), "[secret]");
    assert_eq!(redactor.redact_known_json("{\"a\":\"hunter2\"}"), "{\"a\":\"[secret]\"}");
}
