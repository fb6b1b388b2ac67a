//! A data directory of an earlier release, opened by this one.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use http::Method;
use serde_json::{Value, json};

use crate::program::{Server, ask, succeeded};
use crate::verbs::on;

/// The simulated site of that time, replayed from a recording: it can be read but not changed.
#[derive(Clone)]
struct Cloud {
    answers: Arc<Value>,
    /// Requests, as `METHOD path`.
    requests: Arc<Mutex<Vec<String>>>,
    url: String,
}

impl Cloud {
    fn start(answers: Value) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let cloud = Self { answers: Arc::new(answers), requests: Arc::default(), url };
        let served = cloud.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let cloud = served.clone();
                std::thread::spawn(move || cloud.serve(stream));
            }
        });
        cloud
    }

    fn serve(&self, mut stream: TcpStream) -> Option<()> {
        let mut reader = BufReader::new(stream.try_clone().ok()?);
        let mut first = String::new();
        reader.read_line(&mut first).ok()?;
        let mut words = first.split_whitespace();
        let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
        let mut length = 0;
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).ok()?;
            if line.trim().is_empty() {
                break;
            }
            if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().ok()?;
            }
        }
        reader.take(length).read_to_end(&mut Vec::new()).ok()?;
        self.requests.lock().unwrap().push(format!("{method} {path}"));
        if path == "/v1/changes" {
            write!(stream, "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").ok()?;
            loop {
                std::thread::sleep(Duration::from_secs(10));
                write!(stream, "1\r\n\n\r\n").ok()?;
            }
        }
        let found = self.answers.get(&path).filter(|_| method == "GET");
        let (code, body) = match found {
            Some(found) => ("200 OK", found.clone()),
            None if method == "GET" => ("404 Not Found", json!({"message": "not recorded"})),
            None => ("500 Internal Server Error", json!({"message": "the recording is read-only"})),
        };
        let body = body.to_string();
        write!(
            stream,
            "HTTP/1.1 {code}\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
        .ok()
    }

    /// Waits until every machine was read.
    fn wait_until_read(&self, machines: &BTreeSet<String>) {
        let deadline = Instant::now() + Duration::from_secs(120);
        loop {
            let requests = self.requests.lock().unwrap().clone();
            let missing = machines.iter().find(|path| !requests.contains(&format!("GET {path}")));
            let Some(missing) = missing else { return };
            assert!(Instant::now() < deadline, "{missing} is not read: {requests:#?}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Requests that change something.
    fn changes(&self) -> Vec<String> {
        let requests = self.requests.lock().unwrap();
        requests.iter().filter(|what| !what.starts_with("GET ")).cloned().collect()
    }
}

/// Uids and generations of the objects in the recording.
async fn objects(server: &Server, facts: &Value) -> Value {
    let mut all = serde_json::Map::new();
    for path in facts.as_object().unwrap().keys() {
        let (code, list) = ask(&server.admin(), Method::GET, path, &Value::Null).await;
        assert_eq!(code, 200, "{path}: {list}");
        let items = list["items"].as_array().unwrap().iter();
        let known = items.map(|item| {
            let meta = &item["metadata"];
            (meta["name"].as_str().unwrap().to_owned(), json!([meta["uid"], meta["generation"]]))
        });
        all.insert(path.clone(), Value::Object(known.collect()));
    }
    Value::Object(all)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_data_directory_is_served_and_its_clusters_are_not_changed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/older");
    let dir = tempfile::tempdir().unwrap();
    let packed = std::fs::File::open(folder.join("data.tar.gz")).unwrap();
    tar::Archive::new(flate2::read::GzDecoder::new(packed)).unpack(dir.path()).unwrap();
    let facts: Value = serde_json::from_slice(&std::fs::read(folder.join("facts.json")).unwrap()).unwrap();
    let machines = facts["cloud"].as_object().unwrap().keys();
    let machines: BTreeSet<String> =
        machines.filter(|path| path.starts_with("/v1/machines/")).cloned().collect();
    assert_eq!(machines.len(), 2);

    let cloud = Cloud::start(facts["cloud"].clone());
    let server = Server::start(&dir.path().join("data"), &["--simulator-url", &cloud.url]);
    assert_eq!(objects(&server, &facts["objects"]).await, facts["objects"], "stored objects are served");
    cloud.wait_until_read(&machines);
    // The workload cluster does not exist any more, which is no reason to replace machines.
    let tree = succeeded(on(&server, &["describe", "quick", "--all"]));
    assert_eq!(tree.matches("─ Machine/").count(), 2, "{tree}");
    assert_eq!(
        objects(&server, &facts["objects"]).await,
        facts["objects"],
        "nothing was created, changed or deleted"
    );
    assert_eq!(cloud.changes(), [""; 0]);

    // Again, now that this release has written to it.
    drop(server);
    let server = Server::start(&dir.path().join("data"), &["--simulator-url", &cloud.url]);
    assert_eq!(objects(&server, &facts["objects"]).await, facts["objects"]);
    assert_eq!(cloud.changes(), [""; 0]);
}
