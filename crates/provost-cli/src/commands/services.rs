//! `provost services`: the commands that agents keep running after their runs.

mod output;

use provost_event::{RunId, SessionId};
use provost_harness::{
    Backend, ServiceError, ServiceRecord, ServiceState, Services, StoppedBy, report_service,
};
use provost_view::{ServiceStateView, ServiceView};

use super::descent::Act;
use super::show::date_and_time;
use super::{place, print};
use crate::cli::{ServicesArgs, ServicesCommand};
use crate::exit::{Exit, Refusal};
use crate::render::{Cells, Table, one_line, plural, safe, terminal_width};

/// Columns of a command where there is no terminal to measure.
const COMMAND_WIDTH: usize = 200;

pub(super) fn act_of(args: &ServicesArgs) -> Act {
    match args.command {
        Some(ServicesCommand::Stop { .. }) => Act::Acts("services stop"),
        Some(ServicesCommand::Logs { .. }) | None => Act::Looks,
    }
}

pub(super) async fn services(args: ServicesArgs) -> anyhow::Result<Exit> {
    match args.command {
        None => list(args.all, args.json),
        Some(ServicesCommand::Stop { names }) => stop(&names).await,
        Some(ServicesCommand::Logs { name, follow }) => {
            let services = place()?.services();
            let service = named(&services, &name)?;
            output::print_output(&services, service, follow).await
        }
    }
}

fn list(all: bool, json: bool) -> anyhow::Result<Exit> {
    let views = ServiceView::all(&place()?.services().all());
    let is_shown = |view: &&ServiceView| all || view.state != ServiceStateView::Ended;
    let shown = views.iter().filter(is_shown).collect::<Vec<_>>();
    if json {
        for view in shown {
            print(&format!("{}\n", serde_json::to_string(view)?))?;
        }
        return Ok(Exit::Done);
    }
    if shown.is_empty() {
        let ended = u64::try_from(views.len()).unwrap_or(u64::MAX);
        let more = if ended == 0 {
            String::new()
        } else {
            format!("; {} ended: provost services --all", plural(ended, "service"))
        };
        print(&format!("no services run{more}\n"))?;
        return Ok(Exit::Done);
    }
    print(&safe(&table(&shown).lines(terminal_width())))?;
    Ok(Exit::Done)
}

fn table(services: &[&ServiceView]) -> Table {
    let mut table = Table::new(&[
        ("NAME", Cells::Text),
        ("STATE", Cells::CutLast),
        ("RUN", Cells::Text),
        ("PID", Cells::LeftOut),
        ("UNTIL", Cells::Text),
        ("COMMAND", Cells::CutAtEnd),
    ]);
    for service in services {
        let state = match service.state {
            ServiceStateView::Starting => "starting",
            ServiceStateView::Running => "running",
            ServiceStateView::Ended => service.how.as_deref().unwrap_or("has ended"),
        };
        table.row(vec![
            service.name.clone(),
            one_line(state, COMMAND_WIDTH),
            service.session.to_string(),
            service.pid.map(|pid| pid.to_string()).unwrap_or_default(),
            date_and_time(service.expires_at_ms),
            one_line(&service.command, COMMAND_WIDTH),
        ]);
    }
    table
}

fn named(services: &Services, name: &str) -> anyhow::Result<ServiceRecord> {
    services.get(name).ok_or_else(|| {
        let running = services.all();
        let names = running.iter().map(|service| service.name.as_str()).collect::<Vec<_>>();
        let hint = match names.as_slice() {
            [] => "there are none".to_owned(),
            names => format!("there is {}", names.join(", ")),
        };
        Refusal::new(format!("there is no service `{name}`"), hint).into()
    })
}

async fn stop(names: &[String]) -> anyhow::Result<Exit> {
    let place = place()?;
    let services = place.services();
    for name in names {
        named(&services, name)?;
    }
    let backend = place.open().await?;
    let by = StoppedBy::Command("provost services stop".to_owned());
    let mut exit = Exit::Done;
    for name in names {
        let was_running = named(&services, name)?.state() == ServiceState::Running;
        let stopped = services.stop(name, &by).await;
        if !told(&*backend, stopped, was_running).await? {
            exit = Exit::Failed;
        }
    }
    Ok(exit)
}

/// Prints what came of ending a service, and has its agent's log say so. Returns whether it has ended.
async fn told(
    backend: &dyn Backend,
    stopped: Result<ServiceRecord, ServiceError>,
    was_running: bool,
) -> anyhow::Result<bool> {
    match stopped {
        Ok(service) => {
            // A run that isn't in the store any more has no log to say so.
            if backend.get(service.session.run).await?.is_some() {
                report_service(backend, &service).await?;
            }
            let already = if was_running { "" } else { " already" };
            print(&safe(&format!("service {}{already}: {}\n", service.name, service.state())))?;
            Ok(true)
        }
        Err(error) => {
            crate::output::tell(&format!("error: {:#}", anyhow::Error::from(error)));
            Ok(false)
        }
    }
}

/// Ends the services of a run that is cancelled, or those of these agents, and prints what came of each. Returns
/// whether all have ended; `None` if none ran.
pub(super) async fn stop_with_run(
    backend: &dyn Backend,
    run: RunId,
    agents: Option<&[SessionId]>,
) -> anyhow::Result<Option<bool>> {
    let services = place()?.services();
    let by = StoppedBy::Command("provost cancel".to_owned());
    let mut is_all_ended = None;
    for service in services.running_of_run(run) {
        if agents.is_none_or(|agents| agents.contains(&service.session)) {
            let stopped = services.stop(&service.name, &by).await;
            let has_ended = told(backend, stopped, true).await?;
            is_all_ended = Some(is_all_ended.unwrap_or(true) && has_ended);
        }
    }
    Ok(is_all_ended)
}

/// A line for each service that a run leaves running.
pub(crate) fn left_running(services: &Services, run: RunId) -> Vec<String> {
    let line = |service: &ServiceRecord| {
        format!(
            "service `{}` goes on, until {} at the latest: {}\n  end it with: provost services stop {}",
            service.name,
            date_and_time(service.expires),
            one_line(&service.command, COMMAND_WIDTH),
            service.name
        )
    };
    services.running_of_run(run).iter().map(line).collect()
}
