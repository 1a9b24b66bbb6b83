//! Blocking pipes: one write, one read, one typed parse without copies.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use mcp_benches::meter::{self, Meter, summary};
use mcp_benches::minimal_client::{
    INITIALIZE, INITIALIZED, Tool, call_message, list_message, page_of, text_of,
};
use mcp_benches::options::Options;
use mcp_benches::scenario::Ask;
use mcp_benches::{Failure, TEXT};
use serde_json::{Value, json};

struct Pipe {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    line: Vec<u8>,
}

impl Pipe {
    fn open(options: &Options) -> Result<Pipe, Failure> {
        let (command, arguments) = options.server.split_first().ok_or("no server is given")?;
        let mut child = Command::new(command)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let stdin = child.stdin.take().ok_or("the stream is not piped")?;
        let stdout = child.stdout.take().ok_or("the stream is not piped")?;
        let mut res =
            Pipe { child, stdin, stdout: BufReader::with_capacity(64 << 10, stdout), line: Vec::new() };
        res.exchange(INITIALIZE)?;
        res.send(INITIALIZED)?;
        Ok(res)
    }

    fn send(&mut self, message: &str) -> Result<(), Failure> {
        Ok(self.stdin.write_all(format!("{message}\n").as_bytes())?)
    }

    fn read(&mut self) -> Result<&[u8], Failure> {
        self.line.clear();
        match self.stdout.read_until(b'\n', &mut self.line)? {
            0 => Err("the server has ended".into()),
            _ => Ok(&self.line),
        }
    }

    fn exchange(&mut self, message: &str) -> Result<&[u8], Failure> {
        self.send(message)?;
        self.read()
    }

    fn call(&mut self, id: usize, ask: Ask) -> Result<usize, Failure> {
        Ok(text_of(self.exchange(&call_message(id, ask))?)?.1)
    }

    fn list(&mut self) -> Result<Vec<Tool>, Failure> {
        let (mut res, mut cursor) = (Vec::new(), None);
        loop {
            let page = page_of(self.exchange(&list_message(cursor.as_deref()))?)?;
            res.extend(page.tools);
            cursor = page.next;
            if cursor.is_none() {
                return Ok(res);
            }
        }
    }

    fn close(self) -> Result<(), Failure> {
        let Pipe { mut child, stdin, stdout, line: _ } = self;
        drop((stdin, stdout));
        child.wait()?;
        Ok(())
    }
}

/// Runs the scenarios that one blocking connection supports.
pub(crate) fn run(options: &Options) -> Result<Value, Failure> {
    let count = options.count();
    match options.scenario() {
        "connect" => {
            let mut times = Vec::new();
            for _ in 0..count {
                let begun = Instant::now();
                let mut pipe = Pipe::open(options)?;
                pipe.list()?;
                times.push(begun.elapsed());
                pipe.close()?;
            }
            Ok(summary(times))
        }
        "seq" => many(options, 1),
        "conc" => many(options, options.number("--conc", 1)),
        "big" => {
            let (mut pipe, kib) = (Pipe::open(options)?, options.number("--kib", 1024));
            let idle = meter::status("VmRSS");
            pipe.call(0, Ask::Big(kib))?;
            let (meter, mut times) = (Meter::begin(), Vec::new());
            for id in 0..count {
                let begun = Instant::now();
                pipe.call(id, Ask::Big(kib))?;
                times.push(begun.elapsed());
            }
            let mut line = summary(times);
            meter.end(count, &mut line);
            line["grown_kb"] = json!(meter::status("VmHWM").saturating_sub(idle));
            Ok(line)
        }
        "list" => {
            let mut pipe = Pipe::open(options)?;
            let before = meter::status("VmRSS");
            let (mut times, mut kept) = (Vec::new(), None);
            for _ in 0..count {
                let begun = Instant::now();
                let list = pipe.list()?;
                times.push(begun.elapsed());
                kept.get_or_insert(list);
            }
            std::thread::sleep(Duration::from_millis(options.number("--rest-ms", 0) as u64));
            let after = meter::status("VmRSS");
            let mut line = summary(times);
            line["tools"] = json!(kept.map_or(0, |it| it.len()));
            line["rss_delta_kb"] = json!(after.saturating_sub(before));
            Ok(line)
        }
        "fleet" => fleet(options),
        "hol" => beside(options),
        other => Err(format!("over one blocking pipe there is no scenario {other:?}").into()),
    }
}

/// This many calls with a window of calls in flight.
fn many(options: &Options, window: usize) -> Result<Value, Failure> {
    let mut pipe = Pipe::open(options)?;
    pipe.list()?;
    let warmup = options.number("--warmup", 200);
    let total = warmup + options.count();
    let (mut meter, mut times) = (Meter::begin(), Vec::with_capacity(total));
    let (mut begun, mut sent, mut got) = (vec![Instant::now(); total], 0, 0);
    let mut out = String::new();
    while got < total {
        out.clear();
        // Each batch of responses is followed by as many new calls in one write.
        while sent < total && sent - got < window {
            begun[sent] = Instant::now();
            out.push_str(&call_message(sent, Ask::Echo));
            out.push('\n');
            sent += 1;
        }
        pipe.stdin.write_all(out.as_bytes())?;
        loop {
            let (id, bytes) = text_of(pipe.read()?)?;
            if bytes != TEXT.len() {
                return Err(format!("the echo has {bytes} bytes").into());
            }
            got += 1;
            if got > warmup {
                times.push(begun[id].elapsed());
            }
            if got == warmup {
                meter = Meter::begin();
            }
            if got == total || !pipe.stdout.buffer().contains(&b'\n') {
                break;
            }
        }
    }
    let mut line = summary(times);
    meter.end(options.count(), &mut line);
    Ok(line)
}

/// One echo and one large result in flight at any time on one pipe.
fn beside(options: &Options) -> Result<Value, Failure> {
    const LARGE: usize = 1;
    const ECHO: usize = 2;
    let kib = options.number("--kib", 4096);
    let mut pipe = Pipe::open(options)?;
    pipe.list()?;
    pipe.send(&call_message(LARGE, Ask::Big(kib)))?;
    pipe.send(&call_message(ECHO, Ask::Echo))?;
    let (begun, mut asked) = (Instant::now(), Instant::now());
    let (mut times, mut got) = (Vec::new(), 0);
    while got < options.count() {
        let (id, _) = text_of(pipe.read()?)?;
        if id == ECHO {
            times.push(asked.elapsed());
            asked = Instant::now();
            pipe.send(&call_message(ECHO, Ask::Echo))?;
            continue;
        }
        got += 1;
        if got < options.count() {
            pipe.send(&call_message(LARGE, Ask::Big(kib)))?;
        }
    }
    let mut line = summary(times);
    line["big_ms"] = json!(begun.elapsed().as_secs_f64() * 1e3 / options.count() as f64);
    Ok(line)
}

/// One thread per server.
fn fleet(options: &Options) -> Result<Value, Failure> {
    let begun = Instant::now();
    let one = || {
        let mut pipe = Pipe::open(options)?;
        let list = pipe.list()?;
        Ok::<_, Failure>((pipe, list, begun.elapsed()))
    };
    let mut all = Vec::new();
    if options.text("--mode", "par") == "seq" {
        for _ in 0..options.count() {
            all.push(one()?);
        }
    } else {
        let threads = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..options.count()).map(|_| scope.spawn(one)).collect();
            threads.into_iter().map(|it| it.join()).collect::<Vec<_>>()
        });
        for done in threads {
            all.push(done.map_err(|_| "a thread has panicked")??);
        }
    }
    let ready = begun.elapsed();
    let first = all.iter().map(|it| it.2).min().unwrap_or_default();
    let line = json!({
        "first_tool_ms": first.as_secs_f64() * 1e3,
        "all_ready_ms": ready.as_secs_f64() * 1e3,
        "rss_kb": meter::status("VmRSS"),
        "threads": meter::status("Threads"),
    });
    for (pipe, _, _) in all {
        pipe.close()?;
    }
    Ok(line)
}
