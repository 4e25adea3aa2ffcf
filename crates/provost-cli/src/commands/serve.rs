//! `provost serve`: the API and the page over all runs.

mod install;

use std::io::{ErrorKind, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use provost_client::ClientError;
use provost_event::{RunId, Timestamp};
use provost_runtime::{SeenFile, StateDir};
use provost_server::{Links, Listen, Server, ServerError, ServerOptions, TlsFiles};
use provost_view::SeenRuns;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio_util::sync::CancellationToken;

use super::approved::UserSettings;
use super::unattended::Unattended;
use super::{place_and_folders, print};
use crate::cli::ServeArgs;
use crate::exit::{Exit, Refusal};
use crate::output::tell;
use crate::questions::user_name;
use crate::server::running;
use crate::signals::Signals;

pub(super) async fn serve(args: ServeArgs) -> anyhow::Result<Exit> {
    if args.openapi {
        print(&format!("{:#}\n", provost_server::openapi()))?;
        return Ok(Exit::Done);
    }
    let (place, folders) = place_and_folders()?;
    if args.install {
        print(&install::install(&args, place.folder())?)?;
        return Ok(Exit::Done);
    }
    if args.link {
        return print_link(&place).await;
    }
    let options = ServerOptions {
        backend: place.open().await?,
        by: format!("{} (provost serve)", user_name("a person")),
        listen: listen(&args)?,
        access_log: Some(place.folder().join("server-access.log")),
        socket: cfg!(unix).then(|| place.server_socket()),
        approved: Some(Arc::new(UserSettings(folders.user_file))),
        work: Some(Arc::new(Unattended { folder: place.folder().to_owned() })),
        seen: Arc::new(Seen(place.seen())),
        keys: place.server_keys(),
        terminals: place.terminals(),
    };
    let mut signals = Signals::listen().context("can't listen for Ctrl-C")?;
    let server = Server::bind(options).await.map_err(|error| refusal(error, &args))?;
    let _for_commands = TokenFile::write(&place.server_token(), server.token().expose())?;
    let token_file = args.token_file.as_deref().map(|file| TokenFile::write(file, server.token().expose()));
    let _token_file = token_file.transpose()?;
    let links = server.links();
    print(&format!("{}\n", links.issue()?.expose()))?;
    tell(&format!(
        "listening on {} and {}; the link signs one browser in{}; Ctrl-C ends the server, and no run",
        server.address(),
        place.server_socket().display(),
        if is_asked() { ", Enter prints another" } else { "" },
    ));
    let stop = CancellationToken::new();
    let running = server.run(stop.clone());
    let mut running = std::pin::pin!(running);
    tokio::select! {
        () = &mut running => {}
        _ = signals.next() => {
            stop.cancel();
            running.await;
        }
        printed = print_links(&links) => printed?,
    }
    Ok(Exit::Done)
}

/// Where to listen. Beyond this machine only where that is said twice, and with TLS.
fn listen(args: &ServeArgs) -> Result<Listen, Refusal> {
    let Some(address) = args.listen else { return Ok(Listen::Loopback(args.port)) };
    if !address.ip().is_loopback() && !args.beyond_loopback {
        let what = format!("--listen: {address} is reached from other machines");
        return Err(Refusal::new(what, "--beyond-loopback says that this is meant"));
    }
    let (Some(certificate), Some(key)) = (args.tls_cert.clone(), args.tls_key.clone()) else {
        let what = format!("--listen: {address} is listened on with TLS only");
        return Err(Refusal::new(what, "give --tls-cert and --tls-key files of PEM"));
    };
    if args.hosts.is_empty() {
        return Err(Refusal::new("--listen: by which name is the server asked?", "e.g. --host box.example"));
    }
    Ok(Listen::Tls { address, names: args.hosts.clone(), files: TlsFiles { certificate, key } })
}

fn refusal(error: ServerError, args: &ServeArgs) -> anyhow::Error {
    match &error {
        ServerError::Listen { address, source } if source.kind() == ErrorKind::AddrInUse => {
            let what = format!("{address} is in use: another program listens on that port");
            let hint = match args.listen {
                Some(_) => "give --listen another port",
                None => "`provost serve --port N` takes port N, --port 0 any that is free",
            };
            Refusal::new(what, hint).into()
        }
        ServerError::SocketInUse { .. } => {
            let hint = "`provost serve --link` prints a link to its page";
            Refusal::new(error.to_string(), hint).into()
        }
        _ => error.into(),
    }
}

/// Prints a link to the server that runs over the same store.
async fn print_link(place: &StateDir) -> anyhow::Result<Exit> {
    let none = || Refusal::new("no server of these runs is running", "`provost serve` starts one");
    match running(place).ok_or_else(none)?.link().await {
        Ok(link) => print(&format!("{link}\n")).map(|()| Exit::Done),
        Err(ClientError::Unreachable { .. }) => Err(none().into()),
        Err(error) => Err(error.into()),
    }
}

fn is_asked() -> bool {
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

/// Prints a link for each line that is typed; returns only with an error.
async fn print_links(links: &Links) -> anyhow::Result<()> {
    if !is_asked() {
        return std::future::pending().await;
    }
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while lines.next_line().await?.is_some() {
        print(&format!("{}\n", links.issue()?.expose()))?;
    }
    std::future::pending().await
}

/// A file with the token, which is removed in the end.
struct TokenFile {
    path: PathBuf,
    text: String,
}

impl TokenFile {
    fn write(path: &Path, token: &str) -> anyhow::Result<Self> {
        let mut options = std::fs::OpenOptions::new();
        // A new file takes the place of one that a killed server has left: another program may hold that open.
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let hint = "name a file in a folder of yours";
        let cant =
            |error: std::io::Error| Refusal::new(format!("--token-file {}: {error}", path.display()), hint);
        let mut new = path.as_os_str().to_owned();
        new.push(format!(".{}", std::process::id()));
        let text = format!("{token}\n");
        let put = options.open(&new).and_then(|mut file| file.write_all(text.as_bytes()));
        if let Err(error) = put.and_then(|()| std::fs::rename(&new, path)) {
            let _ = std::fs::remove_file(&new);
            return Err(cant(error).into());
        }
        Ok(Self { path: path.to_owned(), text })
    }
}

impl Drop for TokenFile {
    fn drop(&mut self) {
        // Another server may have put its own there.
        if std::fs::read_to_string(&self.path).is_ok_and(|text| text == self.text) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Which runs the user has looked at.
struct Seen(SeenFile);

impl SeenRuns for Seen {
    fn has_seen(&self, run: RunId, changed_at: Timestamp) -> bool {
        self.0.has_seen(run, changed_at)
    }

    fn look_at(&self, run: RunId, changed_at: Timestamp) {
        // It is new again at the next start, and nothing else.
        let _ = self.0.look_at(run, changed_at);
    }
}
