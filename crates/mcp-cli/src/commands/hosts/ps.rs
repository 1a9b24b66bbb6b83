//! `ps`: lists the hosts of this user that run, with their servers and clients.

use serde::Serialize;

use super::RunningHost;
use super::resource_use::{ProcessTable, ResourceUse};
use crate::args::Format;
use crate::config::context::Context;
use crate::control::protocol::{HostStatus, HostedClient, HostedServer, ServerInstance};
use crate::output::console::Report;
use crate::output::failure::Failure;
use crate::output::json;
use crate::output::table::{Column, TableStyle, table};
use crate::runtime::exit::Exit;
use crate::runtime::run_blocking;
use crate::runtime::signals::{Signals, run_until_signal};

const COLUMNS: [Column; 7] = [
    Column::Number("ID"),
    Column::Text("WHAT"),
    Column::Text("STATE"),
    Column::Number("SINCE"),
    Column::Number("MEMORY"),
    Column::Number("CPU"),
    Column::Text("FILE OR FOLDER"),
];

/// The JSON document of `ps`.
#[derive(Serialize)]
struct HostsJson {
    hosts: Vec<HostJson>,
}

#[derive(Serialize)]
struct HostJson {
    id: u32,
    #[serde(flatten)]
    status: HostStatus,
    #[serde(flatten)]
    resources: ResourcesJson,
    /// Of the processes in the status.
    processes: Vec<ProcessJson>,
}

#[derive(Serialize)]
struct ProcessJson {
    id: u32,
    #[serde(flatten)]
    resources: ResourcesJson,
}

#[derive(Serialize)]
struct ResourcesJson {
    memory_bytes: Option<u64>,
    cpu_seconds: Option<f64>,
}

/// Runs the command.
pub(crate) async fn run(context: &Context, signals: &mut Signals) -> Result<Exit, Failure> {
    let hosts = run_until_signal(signals, RunningHost::find_all()).await??;
    let processes = run_blocking(ProcessTable::read).await;
    let out = match context.format {
        Format::Text if hosts.is_empty() => "no host runs\n".to_owned(),
        Format::Text => text(&hosts, &processes, context.console.table_style()),
        Format::Json => {
            let hosts = hosts.into_iter().map(|host| HostJson::new(host, &processes)).collect();
            json::document(&HostsJson { hosts })
        }
    };
    Ok(context.print(Report::out(out)).await)
}

fn text(hosts: &[RunningHost], processes: &ProcessTable, style: TableStyle) -> String {
    let mut rows = Vec::new();
    for RunningHost { client, status } in hosts {
        let HostStatus { kind, file, seconds, servers, clients, .. } = status;
        let own = processes.process(client.process);
        let mut row = |process: Option<u32>, what: String, state: &str, since: Option<u64>, place: &str| {
            let used = process.and_then(|process| processes.tree(process));
            let used = if process == Some(client.process) { own } else { used };
            rows.push(vec![
                process.map_or_else(|| "-".to_owned(), |process| process.to_string()),
                what,
                state.to_owned(),
                since.map_or_else(|| "-".to_owned(), duration_text),
                used.map_or_else(|| "-".to_owned(), |used| memory_text(used.memory)),
                used.map_or_else(|| "-".to_owned(), |used| format!("{:.1} s", used.processor.as_secs_f64())),
                place.to_owned(),
            ]);
        };
        row(Some(client.process), format!("host ({kind})"), "running", Some(*seconds), file);
        for HostedServer { name, state, instances, .. } in servers {
            let what = format!("server {name}");
            if instances.is_empty() {
                row(None, what.clone(), state, None, "");
            }
            for ServerInstance { process, seconds, leased } in instances {
                let what = if *leased { format!("{what} (one client)") } else { what.clone() };
                row(*process, what, state, Some(*seconds), "");
            }
        }
        for HostedClient { process, folder, seconds } in clients {
            row(Some(*process), "client".to_owned(), "connected", Some(*seconds), folder);
        }
    }
    table(&COLUMNS, &rows, style)
}

impl HostJson {
    fn new(host: RunningHost, processes: &ProcessTable) -> HostJson {
        let RunningHost { client, status } = host;
        let instances = status.servers.iter().flat_map(|server| &server.instances);
        let instances = instances.filter_map(|instance| instance.process);
        let ids = instances.chain(status.clients.iter().map(|client| client.process));
        let processes_json =
            ids.map(|id| ProcessJson { id, resources: ResourcesJson::new(processes.tree(id)) }).collect();
        let resources = ResourcesJson::new(processes.process(client.process));
        HostJson { id: client.process, resources, processes: processes_json, status }
    }
}

impl ResourcesJson {
    fn new(used: Option<ResourceUse>) -> ResourcesJson {
        ResourcesJson {
            memory_bytes: used.map(|used| used.memory),
            cpu_seconds: used.map(|used| used.processor.as_secs_f64()),
        }
    }
}

fn memory_text(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / (1 << 20) as f64)
}

fn duration_text(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sh_009_durations_and_sizes_are_short() {
        let texts: Vec<String> = [0, 119, 120, 7199, 7200, 172_800].map(duration_text).into();
        assert_eq!(texts, ["0 s", "119 s", "2 min", "119 min", "2 h", "2 d"]);
        assert_eq!(memory_text(3 << 19), "1.5 MiB");
    }
}
