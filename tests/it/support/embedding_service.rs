//! An embedding service on a real socket that can fail as real ones do.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use super::{FakeServer, Reply, Request};

/// Dimensions of the service's vectors.
const DIMENSIONS: usize = 8;

/// The way in which the service answers requests.
#[derive(Debug, Clone)]
pub(crate) enum Mood {
    /// Vectors of the words of each text. Another salt is another model.
    Healthy { salt: u64 },
    /// Vectors, after this pause.
    Slow(Duration),
    /// No answer, on an open connection.
    Silent,
    /// Status 429 with `Retry-After`.
    Limited { retry_after: &'static str },
    /// This status and body.
    Status(u16, &'static str),
    /// Status 400 for requests with a text that has this word, and vectors for others.
    Refusing(&'static str),
    /// This vector for each text.
    Vector(Value),
    /// One vector less than texts.
    TooFew,
}

/// The service, with the texts that it received.
pub(crate) struct EmbeddingService {
    pub(crate) server: FakeServer,
    mood: Arc<Mutex<Mood>>,
    texts: Arc<Mutex<Vec<String>>>,
}

impl EmbeddingService {
    pub(crate) fn start() -> Self {
        let mood = Arc::new(Mutex::new(Mood::Healthy { salt: 0 }));
        let texts: Arc<Mutex<Vec<String>>> = Arc::default();
        let (now, sent) = (Arc::clone(&mood), Arc::clone(&texts));
        let server = FakeServer::start(move |request| {
            let mood = now.lock().unwrap().clone();
            answer(request, mood, &sent)
        });
        Self { server, mood, texts }
    }

    pub(crate) fn set(&self, mood: Mood) {
        *self.mood.lock().unwrap() = mood;
    }

    /// Returns the embedded texts of records, without those that check the model.
    pub(crate) fn texts(&self) -> Vec<String> {
        self.texts.lock().unwrap().clone()
    }

    /// Returns the number of times that each text was embedded.
    pub(crate) fn counts(&self) -> HashMap<String, usize> {
        let mut counts = HashMap::new();
        for text in self.texts() {
            *counts.entry(text).or_default() += 1;
        }
        counts
    }

    /// Returns a configuration table that names the service by the loopback address or by another address of this
    /// machine.
    pub(crate) fn table(&self, is_this_machine: bool) -> String {
        let url = if is_this_machine {
            self.server.url.clone()
        } else {
            self.server.url.replace("127.0.0.1", "0.0.0.0")
        };
        format!(
            "[embedding]\nprovider = \"http\"\nurl = \"{url}/v1\"\nmodel = \"m\"\ndimensions = {DIMENSIONS}\nallow_insecure = true\n"
        )
    }
}

fn answer(request: &Request, mood: Mood, sent: &Mutex<Vec<String>>) -> Reply {
    let body: Value = serde_json::from_str(&request.body).unwrap_or_default();
    let texts: Vec<String> = serde_json::from_value(body["input"].clone()).unwrap_or_default();
    let salt = match mood {
        Mood::Limited { retry_after } => {
            let headers = vec![("retry-after", retry_after.to_owned())];
            return Reply::Full(429, headers, "{}".to_owned());
        }
        Mood::Silent => return Reply::Hang,
        Mood::Status(status, body) => return Reply::Json(status, body.to_owned()),
        Mood::Vector(vector) => {
            let data: Vec<Value> = texts.iter().map(|_| json!({"embedding": vector})).collect();
            return Reply::Json(200, json!({"data": data}).to_string());
        }
        Mood::TooFew => {
            let data: Vec<Value> =
                texts.iter().skip(1).map(|_| json!({"embedding": vec![1.0; DIMENSIONS]})).collect();
            return Reply::Json(200, json!({"data": data}).to_string());
        }
        Mood::Slow(pause) => {
            std::thread::park_timeout(pause);
            0
        }
        Mood::Refusing(word) if texts.iter().any(|text| text.contains(word)) => {
            return Reply::Json(400, "{}".to_owned());
        }
        Mood::Refusing(_) => 0,
        Mood::Healthy { salt } => salt,
    };
    let of_records = texts.iter().filter(|text| !text.starts_with("fetchwell checks that this model"));
    sent.lock().unwrap().extend(of_records.cloned());
    let data: Vec<Value> = texts
        .iter()
        .enumerate()
        .map(|(index, text)| json!({"index": index, "embedding": vector(text, salt)}))
        .collect();
    Reply::Json(200, json!({"object": "list", "data": data}).to_string())
}

fn vector(text: &str, salt: u64) -> Vec<f32> {
    let mut vector = vec![0.1; DIMENSIONS];
    for word in text.split_whitespace() {
        let hash = word.bytes().fold(17 + salt, |hash, byte| hash.wrapping_mul(31).wrapping_add(byte.into()));
        vector[usize::try_from(hash % 8).unwrap()] += 1.0;
    }
    vector
}
