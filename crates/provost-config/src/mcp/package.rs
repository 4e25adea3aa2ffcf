//! Which package a launcher of packages starts, and whether its version is exact.

/// A program that fetches a package and starts it.
struct Launcher {
    /// The names of the program.
    programs: &'static [&'static str],
    /// The words before the package that make it a launcher.
    words: &'static [&'static str],
    /// Options that take the next argument.
    with_value: &'static [&'static str],
    /// Options whose value is the package, in the place of the first argument.
    names_package: &'static [&'static str],
    /// What stands before a version.
    separators: &'static [&'static str],
    /// A version as an example.
    example: &'static str,
}

const NODE_OPTIONS: &[&str] = &["-c", "--call", "--registry", "--cache", "--userconfig", "-w", "--workspace"];
const NODE_PACKAGE: &[&str] = &["-p", "--package"];
const UV_OPTIONS: &[&str] = &[
    "--python",
    "-p",
    "--with",
    "--with-editable",
    "--with-requirements",
    "--index",
    "--default-index",
    "--index-url",
    "-i",
    "--extra-index-url",
    "--cache-dir",
    "--directory",
    "--project",
    "--constraints",
    "-c",
    "--overrides",
    "--env-file",
    "--find-links",
    "-f",
    "--refresh-package",
    "--upgrade-package",
    "-P",
];

const LAUNCHERS: &[Launcher] = &[
    Launcher {
        programs: &["npx", "bunx", "pnpx"],
        words: &[],
        with_value: NODE_OPTIONS,
        names_package: NODE_PACKAGE,
        separators: &["@"],
        example: "@1.2.3",
    },
    Launcher {
        programs: &["npm", "pnpm", "yarn", "bun"],
        words: &["exec", "x", "dlx"],
        with_value: NODE_OPTIONS,
        names_package: NODE_PACKAGE,
        separators: &["@"],
        example: "@1.2.3",
    },
    Launcher {
        programs: &["uvx"],
        words: &[],
        with_value: UV_OPTIONS,
        names_package: &["--from"],
        separators: &["==", "@"],
        example: "==1.2.3",
    },
    Launcher {
        programs: &["uv"],
        words: &["tool run"],
        with_value: UV_OPTIONS,
        names_package: &["--from"],
        separators: &["==", "@"],
        example: "==1.2.3",
    },
    Launcher {
        programs: &["pipx"],
        words: &["run"],
        with_value: &["--python", "--index-url", "-i", "--pip-args", "--with"],
        names_package: &["--spec"],
        separators: &["=="],
        example: "==1.2.3",
    },
];

/// The package that a command starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PackageVersion {
    /// None: the command is a program of its own.
    None,
    /// This one, as it was written, with its exact version.
    Exact(String),
    /// One whose version isn't exact: what is started tomorrow may be another program.
    Open {
        /// The package, as it was written.
        package: String,
        /// What to write in its place, as an example.
        example: String,
    },
}

/// The package that `command` with `args` starts.
#[must_use]
pub fn package_of(command: &str, args: &[String]) -> PackageVersion {
    let program = command.rsplit(['/', '\\']).next().unwrap_or(command);
    let program = program.strip_suffix(".cmd").or_else(|| program.strip_suffix(".exe")).unwrap_or(program);
    let launchers = LAUNCHERS.iter().filter(|launcher| launcher.programs.contains(&program));
    let mut found = launchers.filter_map(|launcher| Some((launcher, launcher.rest_of(args)?)));
    let Some((launcher, rest)) = found.next() else { return PackageVersion::None };
    let Some(package) = launcher.package_in(rest) else { return PackageVersion::None };
    if launcher.has_exact_version(&package) {
        PackageVersion::Exact(package)
    } else {
        let name = launcher.name_of(&package);
        PackageVersion::Open { example: format!("{name}{}", launcher.example), package }
    }
}

impl Launcher {
    /// The arguments after the words that make the program a launcher.
    fn rest_of<'a>(&self, args: &'a [String]) -> Option<&'a [String]> {
        if self.words.is_empty() {
            return Some(args);
        }
        self.words.iter().find_map(|words| {
            let words = words.split(' ').collect::<Vec<_>>();
            let begins = args.len() >= words.len() && args.iter().zip(&words).all(|(arg, word)| arg == word);
            begins.then(|| args.get(words.len()..).unwrap_or_default())
        })
    }

    fn package_in(&self, args: &[String]) -> Option<String> {
        let mut rest = args.iter();
        let mut first = None;
        while let Some(arg) = rest.next() {
            let (option, value) = match arg.split_once('=') {
                Some((option, value)) if option.starts_with("--") => (option, Some(value)),
                _ => (arg.as_str(), None),
            };
            if self.names_package.contains(&option) {
                return value.map(str::to_owned).or_else(|| rest.next().cloned());
            }
            if self.with_value.contains(&option) {
                if value.is_none() {
                    rest.next();
                }
            } else if arg == "--" {
                return first.or_else(|| rest.next().cloned());
            } else if !arg.starts_with('-') && first.is_none() {
                first = Some(arg.clone());
                // What follows is the package's own, unless the launcher names it later by an option: it can't.
                return first;
            }
        }
        first
    }

    /// The package's name without its version.
    fn name_of<'a>(&self, package: &'a str) -> &'a str {
        let at = self.separators.iter().filter_map(|separator| separator_at(package, separator)).min();
        at.and_then(|at| package.get(..at)).unwrap_or(package)
    }

    fn has_exact_version(&self, package: &str) -> bool {
        let is_local = package.starts_with(['.', '/', '~']);
        let versions = self.separators.iter().filter_map(|separator| {
            let at = separator_at(package, separator)?;
            package.get(at.saturating_add(separator.len())..)
        });
        is_local || versions.into_iter().any(is_exact)
    }
}

/// Where a version begins: an `@` at the beginning is part of the name.
fn separator_at(package: &str, separator: &str) -> Option<usize> {
    package.get(1..)?.find(separator).map(|at| at.saturating_add(1))
}

/// Whether a version names one release: `1.2.3`, `2025.1.14`, `1.0.0-beta.1`. `latest`, `1`, `^1.2`, `1.x` don't.
fn is_exact(version: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+');
    let core = version.split(['-', '+']).next().unwrap_or_default();
    let parts = core.split('.').collect::<Vec<_>>();
    let is_number = |part: &&str| part.starts_with(|c: char| c.is_ascii_digit());
    version.chars().all(fits) && parts.len() >= 2 && parts.iter().all(is_number)
}

#[cfg(test)]
mod tests {
    use super::{PackageVersion, package_of};

    fn of(line: &str) -> String {
        let mut words = line.split(' ').map(str::to_owned);
        let command = words.next().unwrap_or_default();
        match package_of(&command, &words.collect::<Vec<_>>()) {
            PackageVersion::None => "none".to_owned(),
            PackageVersion::Exact(package) => format!("exact {package}"),
            PackageVersion::Open { package, example } => format!("open {package}, such as {example}"),
        }
    }

    #[test]
    fn a_launchers_package_needs_an_exact_version() {
        let cases = [
            (
                "npx -y @modelcontextprotocol/server-memory@2025.9.25",
                "exact @modelcontextprotocol/server-memory@2025.9.25",
            ),
            ("npx -y @scope/name", "open @scope/name, such as @scope/name@1.2.3"),
            ("npx server@latest /tmp", "open server@latest, such as server@1.2.3"),
            ("npx server@^1.2.0", "open server@^1.2.0, such as server@1.2.3"),
            ("npx server@1", "open server@1, such as server@1.2.3"),
            ("npx server@1.x", "open server@1.x, such as server@1.2.3"),
            ("/usr/bin/npx --package=a@1.0.0 b", "exact a@1.0.0"),
            ("npx -p a b", "open a, such as a@1.2.3"),
            ("npm exec -- a", "open a, such as a@1.2.3"),
            ("npm run server", "none"),
            ("pnpm dlx a@2.0.0-beta.1", "exact a@2.0.0-beta.1"),
            ("uvx mcp-server-git", "open mcp-server-git, such as mcp-server-git==1.2.3"),
            ("uvx mcp-server-git==2025.1.14 --repository .", "exact mcp-server-git==2025.1.14"),
            ("uvx --python 3.12 ruff@0.3.0", "exact ruff@0.3.0"),
            ("uvx --from a==1.0 b", "exact a==1.0"),
            ("uv tool run a", "open a, such as a==1.2.3"),
            ("uv run server.py", "none"),
            ("pipx run a==1.*", "open a==1.*, such as a==1.2.3"),
            ("npx ./server", "exact ./server"),
            ("node server.js", "none"),
            ("python3 -m mcp_server_git", "none"),
        ];
        for (line, expected) in cases {
            assert_eq!(of(line), expected, "{line}");
        }
    }
}
