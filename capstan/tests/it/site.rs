//! Simulated machines in a process of their own.

use std::collections::BTreeSet;

use serde_json::Value;

/// A running `capstan sim site`; killed when dropped.
pub struct Site {
    process: std::process::Child,
    _stdout: std::io::BufReader<std::process::ChildStdout>,
    pub url: String,
}

impl Site {
    /// Starts one on free ports.
    pub fn start() -> Self {
        let mut process = std::process::Command::new(env!("CARGO_BIN_EXE_capstan"))
            .args(["sim", "site", "--listen", "127.0.0.1:0", "--endpoint-port", "0", "--instant"])
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let mut stdout = std::io::BufReader::new(process.stdout.take().unwrap());
        let mut first = String::new();
        std::io::BufRead::read_line(&mut stdout, &mut first).unwrap();
        let url = first.split_whitespace().find(|word| word.starts_with("http://")).unwrap().to_owned();
        Self { process, _stdout: stdout, url }
    }

    /// Ids of its machines.
    pub async fn machines(&self) -> BTreeSet<String> {
        let client = hyper_util::client::legacy::Client::builder(hyper_util::rt::TokioExecutor::new())
            .build_http::<http_body_util::Empty<bytes::Bytes>>();
        let answer = client.get(format!("{}/v1/machines", self.url).parse().unwrap()).await.unwrap();
        let body = http_body_util::BodyExt::collect(answer.into_body()).await.unwrap().to_bytes();
        let machines: Vec<Value> = serde_json::from_slice(&body).unwrap();
        machines.iter().map(|machine| machine["id"].as_str().unwrap().to_owned()).collect()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
