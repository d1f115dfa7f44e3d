//! A small web server on the loopback address, told by each test how to answer.

// Each test program uses a part of this.
#![allow(dead_code, unreachable_pub)]

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What a client asked for.
#[derive(Debug, Clone)]
pub struct Request {
    pub method: String,
    pub path: String,
    pub headers: Vec<(String, String)>,
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(n, _)| n.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// First and last byte of `Range: bytes=A-[B]`.
    pub fn range(&self) -> Option<(usize, Option<usize>)> {
        let (first, last) = self
            .header("range")?
            .strip_prefix("bytes=")?
            .split_once('-')?;
        Some((first.parse().unwrap(), last.parse().ok()))
    }
}

/// What it gets.
#[derive(Debug, Clone, Default)]
pub struct Reply {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    cut_after: Option<usize>,
    stall_after: Option<usize>,
    pause: Duration,
}

impl Reply {
    pub fn status(status: u16) -> Self {
        Self {
            status,
            ..Self::default()
        }
    }

    pub fn text(text: impl Into<String>) -> Self {
        Self {
            body: text.into().into_bytes(),
            ..Self::status(200)
        }
    }

    /// The file as a server with ranges sends it.
    pub fn file(request: &Request, bytes: &[u8]) -> Self {
        match request.range() {
            Some((first, _)) if first >= bytes.len() => {
                Self::status(416).header("Content-Range", &format!("bytes */{}", bytes.len()))
            }
            Some((first, last)) => {
                let end = last.map_or(bytes.len(), |last| (last + 1).min(bytes.len()));
                Self {
                    body: bytes[first..end].to_vec(),
                    ..Self::status(206)
                }
                .header(
                    "Content-Range",
                    &format!("bytes {first}-{}/{}", end - 1, bytes.len()),
                )
            }
            None => Self {
                body: bytes.to_vec(),
                ..Self::status(200)
            },
        }
    }

    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The connection is closed after so many bytes of the body.
    pub fn cut_after(mut self, bytes: usize) -> Self {
        self.cut_after = Some(bytes);
        self
    }

    /// Nothing comes after so many bytes of the body, and the connection stays open.
    pub fn stall_after(mut self, bytes: usize) -> Self {
        self.stall_after = Some(bytes);
        self
    }

    /// The answer begins only after a while.
    pub fn pause(mut self, pause: Duration) -> Self {
        self.pause = pause;
        self
    }
}

/// Runs until the test ends.
pub struct Server {
    pub address: String,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    pub fn start(answer: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        let answer = Arc::new(answer);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (seen, answer) = (Arc::clone(&seen), Arc::clone(&answer));
                std::thread::spawn(move || {
                    // A client that hangs up early is part of several tests.
                    let _ = serve(&stream, &seen, &*answer);
                });
            }
        });
        Self { address, requests }
    }

    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }
}

fn serve(
    mut stream: &TcpStream,
    seen: &Mutex<Vec<Request>>,
    answer: &dyn Fn(&Request) -> Reply,
) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream).lines();
    let first = lines.next().unwrap_or_else(|| Ok(String::new()))?;
    let mut words = first.split(' ');
    let mut word = || words.next().unwrap_or_default().to_owned();
    let mut request = Request {
        method: word(),
        path: word(),
        headers: Vec::new(),
    };
    for line in lines {
        let line = line?;
        let Some((name, value)) = line.split_once(": ") else {
            break;
        };
        request.headers.push((name.to_owned(), value.to_owned()));
    }
    seen.lock().unwrap().push(request.clone());
    let reply = answer(&request);
    std::thread::sleep(reply.pause);
    let length = reply.body.len();
    write!(
        stream,
        "HTTP/1.1 {} X\r\nConnection: close\r\nContent-Length: {length}\r\n",
        reply.status
    )?;
    for (name, value) in &reply.headers {
        write!(stream, "{name}: {value}\r\n")?;
    }
    stream.write_all(b"\r\n")?;
    if request.method == "HEAD" {
        return Ok(());
    }
    let end = reply
        .cut_after
        .or(reply.stall_after)
        .unwrap_or(reply.body.len());
    stream.write_all(&reply.body[..end.min(reply.body.len())])?;
    stream.flush()?;
    if reply.stall_after.is_some() {
        std::thread::sleep(Duration::from_secs(20));
    }
    Ok(())
}
