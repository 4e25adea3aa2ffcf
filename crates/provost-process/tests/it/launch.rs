//! A launch's confinement, for each way to start a program.

use provost_event::{Exit, WindowSize};
use provost_process::{
    AtTerminal, Confinement, Launch, OpenPipes, Piped, PipedChild, PipedCommand, PtySupervisor,
    guards_are_out_of_reach,
};

use crate::pty::options;
use crate::support::{Shell, path};

fn launch<C>(shell: &Shell, stdio: C, confinement: Confinement) -> Launch<C> {
    let (name, value) = shell.marker.split_once('=').unwrap();
    Launch {
        program: "readlink".into(),
        args: vec!["/proc/self/ns/pid".into()],
        env: vec![("PATH".into(), path()), (name.into(), value.into())],
        cwd: shell.path().to_owned(),
        stdio,
        confinement,
    }
}

/// The process namespaces of programs that were started in each way.
async fn namespaces(shell: &Shell, confinement: Confinement) -> [String; 3] {
    let mut spec = shell.spec("");
    spec.launch = launch(shell, spec.launch.stdio, confinement.clone());
    let ran = shell.run(spec, &tokio_util::sync::CancellationToken::new()).await.stdout.to_text_lossy();

    let launched = launch(shell, OpenPipes, confinement.clone());
    let command = PipedCommand { launch: launched, line_bytes_max: 100, stderr_bytes_max: 100 };
    let mut child = PipedChild::spawn(command).await.unwrap();
    let Piped::Line(line) = child.next().await else { panic!("no line") };
    assert_eq!(child.next().await, Piped::Ended(Exit::Code(0)));

    let size = WindowSize::default();
    let launched = launch(shell, AtTerminal { size }, confinement);
    let terminal = PtySupervisor::spawn(launched, options()).await.unwrap();
    let mut shown = String::new();
    while let Some(more) = terminal.read_output().await {
        shown.push_str(&more);
    }
    [ran.trim().to_owned(), line, shown.trim().to_owned()]
}

#[tokio::test]
async fn a_guard_alone_shares_this_process_namespace_however_the_program_is_started() {
    let shell = Shell::new();
    let own = std::fs::read_link("/proc/self/ns/pid").unwrap().to_str().unwrap().to_owned();
    assert_eq!(namespaces(&shell, Confinement::Guard).await, [own.clone(), own.clone(), own]);
    shell.until_nothing_left().await;
}

#[tokio::test]
async fn the_strongest_confinement_has_a_process_namespace_where_there_are_the_rights_to_make_one() {
    let shell = Shell::new();
    let own = std::fs::read_link("/proc/self/ns/pid").unwrap().to_str().unwrap().to_owned();
    for found in namespaces(&shell, Confinement::Strongest).await {
        assert_eq!(found != own, guards_are_out_of_reach(), "{found}");
    }
    shell.until_nothing_left().await;
}
