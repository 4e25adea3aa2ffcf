//! Typical outputs of tools in long jobs: prose, code, data, encoded bytes, logs, other scripts.

use std::fmt::Write as _;
use std::sync::LazyLock;

use fastrand::Rng;

static WORDS: LazyLock<Vec<&str>> = LazyLock::new(|| TEXT.split_whitespace().collect());
const TEXT: &str = "the run of a service that answers every request within its time was measured again after new \
    locks had been put around shared tables because two writers could meet there and it was unclear which of them came \
    first so both results were kept until a person compared them by hand this took most of an afternoon";
const HAN: &str = "我们在这个项目里使用一种新的方法来处理数据并且检查每一个结果是否正确如果有错误就写到文件中然后继续工作直到完成";
const KANA: &str = "このテストはファイルをひらいてなかみをしらべますエラーがあればログにかいてつづけます";
const HANGUL: &str = "이프로그램은파일을읽고결과를확인한다음다시기록합니다오류가있으면멈추지않고계속합니다";
const SIGNS: &str = "🙂🚀✅❌→≈µßøñčžłαβγдежщ한ไทยעبर₿";
/// The sizes of most outputs, in bytes.
const SIZES: [usize; 8] = [1 << 10, 1 << 10, 2 << 10, 3 << 10, 4 << 10, 6 << 10, 12 << 10, 32 << 10];
/// The number of kinds of texts.
pub(crate) const KINDS: u8 = 11;
/// One in this many outputs is longer than any tool may show.
const HUGE_EVERY: u64 = 97;
const HUGE_BYTES: usize = 100 << 10;

/// The output of look number `n`: always the same, and begins with its number.
pub(crate) fn output(n: u64) -> String {
    let mut rng = Rng::with_seed(n);
    let size = if n % HUGE_EVERY == HUGE_EVERY - 1 {
        HUGE_BYTES
    } else {
        let bytes = SIZES.get(rng.usize(..SIZES.len())).copied().unwrap_or_default();
        bytes / 2 + rng.usize(..bytes)
    };
    let kind = rng.u8(..KINDS);
    filled(format!("look {n}: "), size, kind, &mut rng)
}

/// `text` extended with a kind of text to `size` bytes or a few more.
pub(crate) fn filled(mut text: String, size: usize, kind: u8, rng: &mut Rng) -> String {
    while text.len() < size {
        add(&mut text, kind, rng);
    }
    text
}

/// Adds a piece of a text of one kind.
fn add(text: &mut String, kind: u8, rng: &mut Rng) {
    // Writing to a String can't fail.
    let _ = match kind {
        0 => writeln!(text, "{}.", words(rng, 18)),
        1 => writeln!(
            text,
            "    let {}_{} = {}({}, &mut {})?;",
            word(rng),
            rng.u8(..),
            word(rng),
            rng.u16(..),
            word(rng)
        ),
        2 => writeln!(
            text,
            r#"{{"id":{},"name":"{}","ok":{},"took_ms":{}.{:03},"tags":["{}","{}"]}},"#,
            rng.u32(..),
            word(rng),
            rng.bool(),
            rng.u16(..),
            rng.u16(..1000),
            word(rng),
            word(rng)
        ),
        3 => write!(text, "{:016x}", rng.u64(..)),
        4 => write!(
            text,
            "{}",
            picked(rng, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", 64)
        ),
        5 => writeln!(
            text,
            "2026-01-{:02}T{:02}:{:02}:07.{:06}Z  WARN worker-{} {} took {}ms (request {:08x})",
            rng.u8(1..29),
            rng.u8(..24),
            rng.u8(..60),
            rng.u32(..1_000_000),
            rng.u8(..),
            words(rng, 4),
            rng.u16(..),
            rng.u32(..)
        ),
        6 => writeln!(text, "{}。", picked(rng, HAN, 24)),
        7 => writeln!(text, "{}。{}.", picked(rng, KANA, 20), picked(rng, HANGUL, 20)),
        8 => write!(text, "{} {} ", picked(rng, SIGNS, 6), word(rng)),
        9 => writeln!(text, "{:>width$}{}", "", word(rng), width = rng.usize(..40)),
        _ => writeln!(
            text,
            "{} | {:>9} | {:>7.2} % | ---- | {}",
            word(rng),
            rng.u32(..),
            rng.f32() * 100.0,
            rng.bool()
        ),
    };
}

/// `count` words.
pub(crate) fn words(rng: &mut Rng, count: usize) -> String {
    (0..count).map(|_| word(rng)).collect::<Vec<_>>().join(" ")
}

fn word(rng: &mut Rng) -> &'static str {
    rng.choice(WORDS.iter()).copied().unwrap_or_default()
}

fn picked(rng: &mut Rng, from: &str, count: usize) -> String {
    let chars = from.chars().collect::<Vec<_>>();
    (0..count).filter_map(|_| rng.choice(&chars)).collect()
}
