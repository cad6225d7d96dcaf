//! Tests against services that answer in awkward ways.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::HttpModel;
use crate::{EmbeddingError, EmbeddingModel, PROBE_TEXT, Purpose};

/// A service with scripted answers. The last one is repeated.
struct Service {
    url: String,
    requests: Arc<Mutex<Vec<String>>>,
    max_at_once: Arc<AtomicUsize>,
}

impl Service {
    async fn start(path: &str, answers: Vec<String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}{path}", listener.local_addr().unwrap());
        let requests: Arc<Mutex<Vec<String>>> = Arc::default();
        let max_at_once: Arc<AtomicUsize> = Arc::default();
        let (seen, peak) = (Arc::clone(&requests), Arc::clone(&max_at_once));
        tokio::spawn(async move {
            let now = Arc::new(AtomicUsize::new(0));
            while let Ok((mut stream, _)) = listener.accept().await {
                let (seen, peak, now) = (Arc::clone(&seen), Arc::clone(&peak), Arc::clone(&now));
                let answers = answers.clone();
                tokio::spawn(async move {
                    let request = read_request(&mut stream).await;
                    peak.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    let number = {
                        let mut seen = seen.lock().unwrap();
                        seen.push(request);
                        seen.len()
                    };
                    let answer = answers.get(number - 1).or(answers.last()).unwrap().clone();
                    tokio::task::yield_now().await;
                    now.fetch_sub(1, Ordering::SeqCst);
                    stream.write_all(answer.as_bytes()).await.unwrap();
                });
            }
        });
        Self { url, requests, max_at_once }
    }

    fn model(&self) -> HttpModel {
        let key = Some("sk-sekret-key-1".into());
        HttpModel::new(self.url.parse().unwrap(), "m".to_owned(), 2, None, key).unwrap()
    }

    async fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbeddingError> {
        let texts: Vec<String> = texts.iter().map(ToString::to_string).collect();
        self.model().embed(&texts, Purpose::Query).await
    }
}

async fn read_request(stream: &mut TcpStream) -> String {
    let (mut request, mut block) = (Vec::new(), [0; 4096]);
    loop {
        let read = stream.read(&mut block).await.unwrap();
        request.extend_from_slice(&block[..read]);
        let text = String::from_utf8_lossy(&request).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length =
            head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
        if read == 0 || body.len() >= length.unwrap_or(0_usize) {
            return text;
        }
    }
}

fn response(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n{headers}\r\n{body}", body.len())
}

fn ok(body: &str) -> String {
    response("200 OK", "", body)
}

const ONE: &str = r#"{"data": [{"index": 0, "embedding": [3, 4]}]}"#;

#[tokio::test]
async fn a_limited_request_is_repeated_and_the_key_is_sent() {
    let limited = response("429 Too Many Requests", "Retry-After: 0\r\n", "slow down");
    let busy = response("503 Service Unavailable", "Retry-After: 0\r\n", "<html>busy</html>");
    let service = Service::start("/v1", vec![limited, busy, ok(ONE)]).await;
    assert_eq!(service.embed(&["a"]).await.unwrap(), [[0.6, 0.8]]);
    let requests = service.requests.lock().unwrap().clone();
    assert_eq!(requests.len(), 3);
    let request = requests.first().unwrap();
    assert!(request.starts_with("POST /v1/embeddings HTTP/1.1"), "{request}");
    assert!(request.to_lowercase().contains("authorization: bearer sk-sekret-key-1"), "{request}");
    assert!(request.contains(r#""input":["a"]"#), "{request}");
}

#[tokio::test]
async fn a_pause_beyond_the_deadline_is_an_error_at_once() {
    let service =
        Service::start("/v1", vec![response("429 Too Many Requests", "Retry-After: 30\r\n", "")]).await;
    let error = service.embed(&["a"]).await.unwrap_err();
    assert!(
        matches!(&error, EmbeddingError::RateLimited { retry_after: Some(pause), .. } if pause.as_secs() == 30)
    );
    assert!(error.to_string().ends_with("try again in 30 s"), "{error}");
}

#[tokio::test]
async fn awkward_answers_are_typed_errors_without_key_and_text() {
    let error_body = r#"{"error": {"message": "no model m for key sk-sekret-key-1 and text hidden"}}"#;
    for (answer, expect) in [
        (response("401 Unauthorized", "", error_body), "rejects the key (status 401)"),
        (response("403 Forbidden", "", error_body), "rejects the key (status 403)"),
        (response("404 Not Found", "", error_body), "(status 404);"),
        (response("400 Bad Request", "", "<html>hidden</html>"), "(status 400);"),
        (response("301 Moved", "Location: https://example.com/\r\n", ""), "(status 301);"),
        (ok("<html>hidden</html>"), "it is HTML"),
        (ok("hidden"), "it is not JSON"),
        (ok(r#"{"data": []}"#), "returned 0 vectors for 1 texts"),
        (ok(r#"{"data": [{"embedding": [1, 0]}, {"embedding": [1, 0]}]}"#), "returned 2 vectors for 1 texts"),
        (ok(r#"{"data": [{"embedding": [1, 0, 0]}]}"#), "Expected 2 dimensions, got 3"),
        (ok(r#"{"data": [{"embedding": [0, 0]}]}"#), "vector that is zero"),
        (ok(r#"{"data": [{"embedding": [1e39, 0]}]}"#), "it is not JSON with finite numbers"),
        (ok(r#"{"data": [{"embedding": [NaN, 0]}]}"#), "it is not JSON"),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 999999999\r\n\r\n".to_owned(),
            "does not answer (an answer of more",
        ),
    ] {
        let service = Service::start("/v1", vec![answer.clone()]).await;
        let error = service.embed(&["hidden"]).await.unwrap_err();
        let shown = format!("{error} {error:?}");
        assert!(error.to_string().contains(expect), "{answer}: {error}");
        assert!(!shown.contains("hidden") && !shown.contains("sekret"), "{shown}");
    }
}

#[tokio::test]
async fn the_message_of_a_service_is_shown_for_a_probe() {
    let body = r#"{"error": {"message": "no model m; key sk-sekret-key-1"}}"#;
    let service = Service::start("/v1", vec![response("404 Not Found", "", body)]).await;
    let error = service.embed(&[PROBE_TEXT]).await.unwrap_err().to_string();
    assert!(error.contains("no model m; key [redacted]"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_silent_service_ends_with_the_deadline() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let model = HttpModel::new(url.parse().unwrap(), "m".to_owned(), 2, None, None).unwrap();
    let error = model.embed(&["a".to_owned()], Purpose::Query).await.unwrap_err();
    assert!(matches!(error, EmbeddingError::Unavailable { .. }), "{error}");
}

#[tokio::test]
async fn one_request_is_in_flight_for_each_key() {
    let service = Service::start("/v1", vec![ok(ONE)]).await;
    let models: Vec<HttpModel> = (0..8).map(|_| service.model()).collect();
    let texts = ["a".to_owned()];
    let answers =
        futures_util::future::join_all(models.iter().map(|model| model.embed(&texts, Purpose::Document)));
    for answer in answers.await {
        answer.unwrap();
    }
    assert_eq!(service.max_at_once.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn texts_inference_has_a_shape_of_its_own() {
    let service = Service::start("/embed", vec![ok("[[0, 5], [5, 0]]")]).await;
    assert_eq!(service.embed(&["a", "b"]).await.unwrap(), [[0.0, 1.0], [1.0, 0.0]]);
    let request = service.requests.lock().unwrap().first().unwrap().clone();
    assert!(request.starts_with("POST /embed HTTP/1.1"), "{request}");
    assert!(request.contains(r#""inputs":["a","b"]"#), "{request}");
}
