//! The channels by which a program is driven.

use std::collections::BTreeMap;

use serde::Deserialize;

/// The place of an option's value in what stands for it.
const VALUE: &str = "{value}";

/// A channel by which a program is driven.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProgramChannel {
    /// A terminal, which any program has.
    Terminal,
    /// A stream of the program's events, without a screen.
    Stream(StructuredChannel),
}

/// A stream of the program's events, without a screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StructuredChannel {
    /// Its format.
    pub format: StreamFormat,
    /// The arguments that select it.
    pub args: Vec<String>,
    /// The program's options that have an effect here, each with the arguments that stand for it, in which `{value}` is the
    /// option's value. Absent if all of them have it as they are.
    pub options: Option<BTreeMap<String, Vec<String>>>,
    /// Whether the title of a call that runs a command is that command.
    pub command_titles: bool,
}

/// The format of a structured stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StreamFormat {
    /// The Agent Client Protocol: JSON-RPC over standard input and output.
    Acp,
    /// The JSON-RPC of `codex app-server`.
    CodexAppServer,
    /// The JSON lines that Claude Code calls `stream-json`.
    StreamJson,
}

impl ProgramChannel {
    /// Its name, as in profiles.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Terminal => "terminal",
            Self::Stream(stream) => stream.format.name(),
        }
    }
}

impl StreamFormat {
    /// Its name, as in profiles.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Acp => "acp",
            Self::CodexAppServer => "codex-app-server",
            Self::StreamJson => "stream-json",
        }
    }
}

impl StructuredChannel {
    /// A stream of this format, selected by these arguments, in which all options have an effect.
    #[must_use]
    pub fn new(format: StreamFormat, args: Vec<String>) -> Self {
        Self { format, args, options: None, command_titles: false }
    }

    /// The program's own arguments as this stream takes them.
    ///
    /// # Errors
    /// The first argument that has no effect here.
    pub fn taken(&self, args: &[String]) -> Result<Vec<String>, String> {
        let Some(options) = &self.options else { return Ok(args.to_vec()) };
        let mut taken = Vec::new();
        let mut rest = args.iter();
        while let Some(arg) = rest.next() {
            let (name, joined) = match arg.split_once('=') {
                Some((name, value)) if name.starts_with("--") => (name, Some(value)),
                _ => (arg.as_str(), None),
            };
            let stands = options.get(name).ok_or_else(|| arg.clone())?;
            let has_value = stands.iter().any(|word| word.contains(VALUE));
            let value = match (has_value, joined) {
                (true, Some(value)) => value,
                (true, None) => rest.next().ok_or_else(|| arg.clone())?,
                (false, Some(_)) => return Err(arg.clone()),
                (false, None) => "",
            };
            taken.extend(stands.iter().map(|word| word.replace(VALUE, value)));
        }
        Ok(taken)
    }
}

/// A channel as profiles write it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawChannel {
    format: RawFormat,
    #[serde(default)]
    args: Vec<String>,
    options: Option<BTreeMap<String, Vec<String>>>,
    #[serde(default)]
    command_titles: bool,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum RawFormat {
    Stream(StreamFormat),
    Terminal(TerminalFormat),
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum TerminalFormat {
    Terminal,
}

impl RawChannel {
    fn read(self) -> Result<ProgramChannel, String> {
        let Self { format, args, options, command_titles } = self;
        match format {
            RawFormat::Stream(format) => {
                Ok(ProgramChannel::Stream(StructuredChannel { format, args, options, command_titles }))
            }
            RawFormat::Terminal(TerminalFormat::Terminal)
                if args.is_empty() && options.is_none() && !command_titles =>
            {
                Ok(ProgramChannel::Terminal)
            }
            RawFormat::Terminal(TerminalFormat::Terminal) => {
                Err("the terminal has a format only: its arguments are in [start]".to_owned())
            }
        }
    }
}

/// The channels in the order of preference; the terminal is the last one where none says otherwise.
pub(super) fn read(raw: Vec<RawChannel>) -> Result<Vec<ProgramChannel>, String> {
    let mut channels = raw.into_iter().map(RawChannel::read).collect::<Result<Vec<_>, _>>()?;
    if !channels.contains(&ProgramChannel::Terminal) {
        channels.push(ProgramChannel::Terminal);
    }
    Ok(channels)
}
