//! The service file of `provost serve --install`.

use std::path::{Path, PathBuf};

use crate::cli::ServeArgs;
use crate::exit::Refusal;

/// The first line of a file that Provost wrote; no other is overwritten.
const MARK: &str = "Written by provost serve --install";

/// A service file, and what starts the service.
struct ServiceFile {
    path: PathBuf,
    text: String,
    start: String,
    /// Where the service writes the token.
    token: String,
}

/// Writes the service file of this platform; returns what to tell the user.
///
/// # Errors
/// [`Refusal`] where there is no home folder, or a file that isn't the user's own.
pub(super) fn install(args: &ServeArgs, state: &Path) -> anyhow::Result<String> {
    let home = std::env::home_dir().filter(|home| home.is_absolute());
    let home = home.ok_or_else(|| Refusal::new("--install: there is no home folder", "set HOME"))?;
    let program = std::env::current_exe()?;
    let file = if cfg!(target_os = "macos") {
        launchd(&home, &program, args.port, state)?
    } else {
        systemd(&home, &program, args.port, state)?
    };
    let path = &file.path;
    if std::fs::read_to_string(path).is_ok_and(|text| !text.contains(MARK)) {
        let what = format!("--install: {} is there, and provost didn't write it", path.display());
        return Err(Refusal::new(what, "move it away first").into());
    }
    let cant = |error: std::io::Error| {
        Refusal::new(format!("--install: can't write {}: {error}", path.display()), "")
    };
    path.parent().map_or(Ok(()), std::fs::create_dir_all).map_err(cant)?;
    std::fs::write(path, &file.text).map_err(cant)?;
    Ok(format!(
        "wrote {}\nstart it: {}\nthe token for programs is in {} while it runs; `provost serve --link` prints a link for a browser\n\
         runs that it starts have its environment: give it the keys of your providers\n",
        path.display(),
        file.start,
        file.token,
    ))
}

/// A path in a service file, where a few characters would mean something else.
fn plain(path: &Path) -> Result<&str, Refusal> {
    let text = path.to_str().filter(|text| !text.contains(['"', '\\', '%', '$', '<', '&', '\n']));
    text.ok_or_else(|| {
        let what = format!("--install: {} can't be named in a service file", path.display());
        Refusal::new(what, "a path without quotes, backslashes, %, $, < and &")
    })
}

/// A unit of systemd for this user. Only the server is ended with it: runs have processes of their own.
fn systemd(home: &Path, program: &Path, port: u16, state: &Path) -> Result<ServiceFile, Refusal> {
    let (program, state) = (plain(program)?, plain(state)?);
    let text = format!(
        "# {MARK}; it is overwritten by the next one.\n\
         [Unit]\n\
         Description=Provost's server\n\
         \n\
         [Service]\n\
         Environment=\"PROVOST_STATE_DIR={state}\"\n\
         ExecStart=\"{program}\" serve --port {port} --token-file %t/provost.token\n\
         KillMode=process\n\
         Restart=on-failure\n\
         \n\
         [Install]\n\
         WantedBy=default.target\n"
    );
    Ok(ServiceFile {
        path: home.join(".config/systemd/user/provost.service"),
        text,
        start: "systemctl --user daemon-reload && systemctl --user enable --now provost".to_owned(),
        token: "$XDG_RUNTIME_DIR/provost.token".to_owned(),
    })
}

/// An agent of launchd.
fn launchd(home: &Path, program: &Path, port: u16, state: &Path) -> Result<ServiceFile, Refusal> {
    let path = home.join("Library/LaunchAgents/dev.provost.serve.plist");
    let token = state.join("programs.token");
    let (program, state, token) = (plain(program)?, plain(state)?, plain(&token)?);
    let port = port.to_string();
    let words = [program, "serve", "--port", &port, "--token-file", token];
    let words = words.map(|word| format!("<string>{word}</string>")).concat();
    let text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <!-- {MARK}; it is overwritten by the next one. -->\n\
         <!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">\n\
         <plist version=\"1.0\"><dict>\n\
         <key>Label</key><string>dev.provost.serve</string>\n\
         <key>ProgramArguments</key><array>{words}</array>\n\
         <key>EnvironmentVariables</key><dict><key>PROVOST_STATE_DIR</key><string>{state}</string></dict>\n\
         <key>RunAtLoad</key><true/>\n\
         <key>KeepAlive</key><dict><key>SuccessfulExit</key><false/></dict>\n\
         <key>AbandonProcessGroup</key><true/>\n\
         </dict></plist>\n"
    );
    let start = format!("launchctl bootstrap gui/$(id -u) '{}'", path.display());
    Ok(ServiceFile { path, text, start, token: token.to_owned() })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{launchd, systemd};

    #[test]
    fn service_files_name_the_program_and_leave_runs_alone() {
        let (home, state) = (Path::new("/home/ann"), Path::new("/home/ann/state"));
        let unit = systemd(home, Path::new("/opt/provost"), 7867, state).unwrap();
        assert_eq!(unit.path, Path::new("/home/ann/.config/systemd/user/provost.service"));
        assert!(unit.text.contains("ExecStart=\"/opt/provost\" serve --port 7867 "), "{}", unit.text);
        assert!(unit.text.contains("KillMode=process"), "{}", unit.text);
        let agent = launchd(home, Path::new("/opt/provost"), 1, state).unwrap();
        assert!(agent.text.contains("<key>AbandonProcessGroup</key><true/>"), "{}", agent.text);
        for odd in ["/o\"pt", "/100%", "/a&b"] {
            assert!(systemd(home, Path::new(odd), 1, state).is_err(), "{odd}");
            assert!(launchd(home, Path::new(odd), 1, state).is_err(), "{odd}");
        }
    }
}
