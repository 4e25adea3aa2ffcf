//! `[exec]` and `[terminal]`: external programs as agents, and what Provost reports to the terminal that it runs
//! in.

use provost_event::WindowSize;

use super::Settings;
use super::declare::{From, Kind, Setting, SettingDefault};
use super::value::variable_name;

/// What `[exec]` is for.
pub(crate) const EXEC_WORDS: &str = "External agents: programs that `provost exec` runs, and [[agents]] of kind \
    external. See docs/external.md.";
/// What `[terminal]` is for.
pub(crate) const TERMINAL_WORDS: &str = "The terminal that Provost itself runs in.";

/// The most rows or columns that a window may have.
const SIDE_MAX: u16 = 1_000;

/// The settings of external programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecSettings {
    /// Their window while no terminal is attached.
    pub size: WindowSize,
    /// How long one may wait for the user, in milliseconds.
    pub idle_ms: u64,
    /// Whether what they show is recorded.
    pub records: bool,
    /// The key that detaches a person's terminal.
    pub detach_key: DetachKey,
    /// The variables that they get besides, by name.
    pub passes: Vec<String>,
    /// Whether they call models past the gateway, though money is limited.
    pub unmetered: bool,
}

impl Default for ExecSettings {
    fn default() -> Self {
        Self {
            size: WindowSize::default(),
            idle_ms: 0,
            records: true,
            detach_key: DetachKey::default(),
            passes: Vec::new(),
            unmetered: false,
        }
    }
}

/// The key with Ctrl that detaches a person's terminal from a program, by the byte that a terminal sends for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DetachKey(u8);

impl Default for DetachKey {
    fn default() -> Self {
        Self(0x1c)
    }
}

impl DetachKey {
    /// What a terminal sends for it.
    pub const fn byte(self) -> u8 {
        self.0
    }
}

impl std::fmt::Display for DetachKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Ctrl-{}", char::from(self.0 | 0x40))
    }
}

impl std::str::FromStr for DetachKey {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || {
            format!(
                "must be ctrl- and one letter or one of \\ ] ^ _, and none that programs can't do without: c, d, h, i, \
                 j, m, z (is `{text}`)"
            )
        };
        let key = text.to_ascii_lowercase();
        let mut rest = key.strip_prefix("ctrl-").unwrap_or_default().chars();
        match (rest.next(), rest.next()) {
            (Some('c' | 'd' | 'h' | 'i' | 'j' | 'm' | 'z'), _) => Err(wrong()),
            (Some(key @ ('a'..='z' | '\\' | ']' | '^' | '_')), None) => {
                Ok(Self(u8::try_from(key.to_ascii_uppercase()).unwrap_or_default() & 0x1f))
            }
            _ => Err(wrong()),
        }
    }
}

/// A window as `ROWSxCOLUMNS`.
pub(crate) fn window(text: &str) -> Result<WindowSize, String> {
    let side = |text: &str| text.trim().parse().ok().filter(|side| (1..=SIDE_MAX).contains(side));
    let sides = text.split_once(['x', 'X']).and_then(|(rows, cols)| Some((side(rows)?, side(cols)?)));
    let (rows, cols) = sides.ok_or_else(|| {
        format!("must be rows and columns, each from 1 to {SIDE_MAX}, such as 40x120 (is `{text}`)")
    })?;
    Ok(WindowSize::new(rows, cols))
}

/// The settings of `[exec]` and `[terminal]`.
pub(crate) const EXEC: &[Setting<Settings>] = &[
    Setting {
        kind: Kind::Checked(|s, text| {
            s.exec.size = window(&text)?;
            Ok(())
        }),
        default: SettingDefault::Is(r#""40x120""#),
        example: r#""50x160""#,
        words: "The rows and columns of a program's window while no terminal is attached.",
        flag: Some("--size"),
        ..exec("size")
    },
    Setting {
        kind: Kind::Time(|s, ms| s.exec.idle_ms = ms),
        default: SettingDefault::Is(r#""30m""#),
        example: r#""10m""#,
        words: "How long a program may wait for a person (a prompt, a password, an answer) before its run is suspended. \
                While a person's terminal is attached, this doesn't apply.",
        flag: Some("--idle-time"),
        ..exec("idle_time")
    },
    Setting {
        kind: Kind::Truth(|s, truth| s.exec.records = truth),
        default: SettingDefault::Is("true"),
        example: "false",
        words: "Whether a program's screen is recorded, as an asciicast in the state folder; `provost replay` \
                plays it.",
        flag: Some("--no-record"),
        ..exec("record")
    },
    Setting {
        kind: Kind::Checked(|s, text| {
            s.exec.detach_key = text.parse()?;
            Ok(())
        }),
        default: SettingDefault::Is(r#"'ctrl-\'"#),
        example: r#""ctrl-]""#,
        words: "The key that detaches your terminal from a program, which keeps running: ctrl- and a letter or one \
                of \\ ] ^ _.",
        from: From::User,
        ..exec("detach_key")
    },
    Setting {
        kind: Kind::List(|s, name| {
            s.exec.passes.push(variable_name(name)?);
            Ok(())
        }),
        default: SettingDefault::Unset("none besides those that any child gets"),
        example: r#"["OPENAI_API_KEY"]"#,
        words: "Further variables for programs, by name, such as a key that one needs. The lists of all files are \
                merged; a project's file that names one must be trusted first.",
        ..exec("env")
    },
    Setting {
        kind: Kind::Truth(|s, truth| s.exec.unmetered = truth),
        default: SettingDefault::Is("false"),
        example: "true",
        words: "Whether programs may call models without the gateway, such as with a login of their vendor: a \
                limit of money doesn't apply to them then, and the run says so.",
        flag: Some("--unmetered"),
        // It loosens a limit of money.
        from: From::User,
        ..exec("unmetered")
    },
    Setting {
        kind: Kind::Choice { of: &["on", "off"], put: |s, word| s.terminal_reports = word == "on" },
        default: SettingDefault::Is(r#""on""#),
        example: r#""off""#,
        words: "Whether `run`, `flow run`, `exec` and `resume` report their status to the terminal that they run \
                in: program status (OSC 7501), progress (OSC 9;4), title.",
        from: From::User,
        ..Setting::declared("terminal", "reports")
    },
];

const fn exec(name: &'static str) -> Setting<Settings> {
    Setting::declared("exec", name)
}

#[cfg(test)]
mod tests {
    use super::{DetachKey, WindowSize, window};

    #[test]
    fn windows_have_two_sides_from_one_to_a_thousand() {
        assert_eq!(window("40x120"), Ok(WindowSize::new(40, 120)));
        assert_eq!(window("1x1000"), Ok(WindowSize::new(1, 1_000)));
        for wrong in ["", "40", "0x80", "40x0", "40x1001", "x", "40x120x3", "-1x80", "70000x80"] {
            assert!(window(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn keys_that_programs_need_dont_detach() {
        let key = |text: &str| text.parse::<DetachKey>().map(DetachKey::byte);
        assert_eq!(key("ctrl-\\"), Ok(0x1c));
        assert_eq!(key("Ctrl-]"), Ok(0x1d));
        assert_eq!(key("ctrl-q"), Ok(0x11));
        for wrong in ["ctrl-c", "ctrl-d", "ctrl-m", "ctrl-[", "alt-x", "ctrl-", "ctrl-qq", "q", "ctrl-ö"] {
            assert!(key(wrong).is_err(), "{wrong}");
        }
        assert_eq!(DetachKey::default().to_string(), "Ctrl-\\");
    }
}
