//! Two tenants of one server, each with a store of its own: random calls through MCP, `/api/v1`, `/v1` and the command line
//! never show a text or an id of the other tenant, and a name of the other tenant is refused as one that does not exist.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::support::hosted::{ANN, BOB, Place, bearer, start};
use crate::support::{Answer, HttpServer, ask, binary, encoded, fetchwell, post, stdout, text};

/// Number of random calls.
const CALLS: usize = 500;

/// An id that no project, document or search has.
const UNKNOWN_ID: &str = "550e8400-e29b-41d4-a716-446655440000";

/// Files of a tenant's projects. Both tenants have the same paths, and one that names the tenant.
const PATHS: [&str; 4] = ["guide.md", "research/deep/notes.md", "process/plan.txt", "marker.md"];

/// A tenant: a caller with a store.
struct Tenant {
    name: &'static str,
    token: &'static str,
    /// Text in every document, title, path and project name of the tenant.
    marker: String,
    /// Ids of the tenant's projects, documents, chunks and searches.
    ids: Vec<String>,
    /// Names by which calls name something of the tenant.
    names: Vec<String>,
}

/// A request with the name in it.
#[derive(Debug, Clone)]
enum Call {
    Get(String),
    Post(String, Value),
    Tool(&'static str, &'static str, Value),
}

impl Call {
    /// Returns the calls that name something, and those that list everything.
    fn all(name: &str) -> Vec<Self> {
        let path = encoded(name);
        let docs = |tool, arguments| Self::Tool("/mcp/docs", tool, arguments);
        let standard = |tool, arguments| Self::Tool("/mcp", tool, arguments);
        vec![
            Self::Get("/api/v1/projects".to_owned()),
            Self::Get("/v1/schema".to_owned()),
            Self::Get("/v1/streams".to_owned()),
            Self::Get("/v1/search?q=zebra".to_owned()),
            Self::Get("/v1/streams/documents/records?connection_id=shared".to_owned()),
            standard("search", json!({"query": "zebra"})),
            standard("schema", json!({})),
            standard("query_records", json!({"stream": "documents", "connection_id": "shared"})),
            docs("list_categories", json!({"project_id": "shared"})),
            docs("search_docs", json!({"query": "zebra", "project_id": "shared", "top_k": 20})),
            // From here on, each call has the name.
            Self::Get(format!("/api/v1/projects/{path}")),
            Self::Get(format!("/api/v1/search/stream?query=zebra&project_id={path}")),
            Self::Get(format!("/v1/schema?connection_id={path}")),
            Self::Get(format!("/v1/search?q=zebra&connection_id={path}")),
            Self::Get(format!("/v1/streams/documents/records?connection_id={path}")),
            Self::Get(format!("/v1/streams/documents/records/{path}?connection_id=shared")),
            Self::Get(format!(
                "/v1/streams/documents/aggregate?metric=count&group_by=path&connection_id={path}"
            )),
            Self::Post(
                "/api/v1/search".to_owned(),
                json!({"query": "zebra", "project_id": name, "top_k": 50}),
            ),
            Self::Post(format!("/api/v1/search/{path}/feedback"), json!({"feedback": "helpful"})),
            docs("search_docs", json!({"query": "zebra", "project_id": name})),
            docs("get_document", json!({"path": name, "project_id": "shared"})),
            docs("get_document", json!({"path": "guide.md", "project_id": name})),
            docs("list_categories", json!({"project_id": name})),
            standard("search", json!({"query": "zebra", "connection_id": name})),
            standard("fetch", json!({"id": name})),
            standard("read_record_field", json!({"id": name, "field": "text"})),
            standard("query_records", json!({"stream": "documents", "connection_id": name})),
            standard("schema", json!({"stream": "documents", "connection_id": name})),
        ]
    }

    /// Number of calls of [`Call::all`] without the name.
    const LISTS: usize = 10;

    fn send(&self, server: &HttpServer, token: &str) -> Answer {
        let (address, headers) = (&server.address, [bearer(token)]);
        let headers = [headers[0].as_str()];
        match self {
            Self::Get(target) => ask(address, "GET", target, &headers),
            Self::Post(target, body) => post(address, target, &headers, &body.to_string()),
            Self::Tool(target, tool, arguments) => {
                let params = json!({"name": tool, "arguments": arguments});
                let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
                post(address, target, &headers, &message.to_string())
            }
        }
    }

    /// Returns the text of the request, with the name that is encoded in it.
    fn text(&self, name: &str) -> String {
        format!("{name} {self:?}")
    }
}

/// The server with its tenants.
struct Site {
    place: Place,
    server: HttpServer,
    tenants: [Tenant; 2],
}

impl Site {
    fn new() -> Self {
        let place = Place::new();
        let tenants = [("ann", ANN), ("bob", BOB)].map(|(name, token)| {
            let marker = format!("marker-of-{name}");
            let tenant = Tenant { name, token, marker, ids: Vec::new(), names: Vec::new() };
            tenant.import(&place);
            tenant
        });
        let server = start(&place.of_two());
        let mut site = Self { place, server, tenants };
        for at in 0..2 {
            site.collect(at);
        }
        site
    }

    /// Collects the ids of a tenant, as the tenant sees them.
    fn collect(&mut self, at: usize) {
        let Self { server, tenants, .. } = self;
        let tenant = &mut tenants[at];
        let list = Call::Get("/api/v1/projects".to_owned()).send(server, tenant.token).json();
        for project in list["projects"].as_array().unwrap() {
            let (id, slug) = (project["id"].as_str().unwrap(), project["slug"].as_str().unwrap());
            tenant.ids.push(id.to_owned());
            tenant.names.extend([slug.to_owned(), id.to_owned()]);
            let body = json!({"query": "zebra", "project_id": slug, "top_k": 50});
            let found = Call::Post("/api/v1/search".to_owned(), body).send(server, tenant.token);
            let search = found.header("search-id").unwrap().to_owned();
            tenant.names.push(search.clone());
            tenant.ids.push(search);
            for result in found.json()["results"].as_array().unwrap() {
                let [id, document] =
                    ["id", "document_id"].map(|key| result[key].as_str().unwrap().to_owned());
                let handle = format!("{slug}/documents:{document}");
                tenant.names.extend([handle, id.clone(), document.clone()]);
                tenant.ids.extend([id, document]);
            }
        }
        assert!(tenant.ids.len() > 15, "{:?}", tenant.ids);
    }

    /// Asserts that a reply to one tenant has nothing of the other, apart from what the request names.
    #[track_caller]
    fn check(&self, at: usize, request: &str, reply: &str) {
        let other = &self.tenants[1 - at];
        for secret in other.ids.iter().chain([&other.marker]) {
            assert!(
                !reply.contains(secret.as_str()) || request.contains(secret.as_str()),
                "{request}\n{reply}"
            );
        }
        assert!(!reply.contains(&format!("only for {}", other.name)), "{request}\n{reply}");
    }
}

impl Tenant {
    fn store(&self, place: &Place) -> PathBuf {
        place.path(&format!("{}.db", self.name))
    }

    fn origin(&self, place: &Place) -> PathBuf {
        place.path(&format!("{}-docs", self.name))
    }

    /// Writes a document. Every text of a tenant has the marker, also in its headings and front matter.
    fn write(&self, place: &Place, path: &str, number: usize) {
        let Self { marker, name, .. } = self;
        let file = self.origin(place).join(path.replace("marker", marker));
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        let filler = format!("A line about the {marker} and its queue.\n").repeat(number % 40 * 40);
        let body = format!(
            "---\nauthor: {marker}\n---\n# Guide {marker} {number}\n\nThe zebra {number} of {name}: {marker}.\n\n{filler}"
        );
        fs::write(file, body).unwrap();
    }

    /// Creates the projects and imports the documents into both.
    fn import(&self, place: &Place) {
        for (number, path) in PATHS.into_iter().enumerate() {
            self.write(place, path, number);
        }
        let (store, origin) = (self.store(place), self.origin(place));
        for slug in ["shared".to_owned(), format!("only-{}", self.name)] {
            let title = format!("Project {}", self.marker);
            stdout(&fetchwell(["project", "create", &slug, "--name", &title, "--store", text(&store)]));
            let import = ["import", "docs", text(&origin), "--project", &slug];
            let options = ["--category-from", "folder", "--store", text(&store)];
            stdout(&binary().args(import).args(options).output().unwrap());
        }
    }

    /// Changes a document and follows the change. Returns the output of the command.
    fn change(&self, place: &Place, path: &str, number: usize) -> String {
        self.write(place, path, number);
        stdout(&fetchwell(["sync", "shared", "--store", text(&self.store(place)), "--json"]))
    }

    /// Runs a reading command on the tenant's store. Returns its output and errors.
    fn command(&self, place: &Place, number: usize, name: &str) -> String {
        let arguments = match number % 5 {
            0 => vec!["search", "zebra", "--json"],
            1 => vec!["project", "list", "--json"],
            2 => vec!["project", "show", name, "--json"],
            3 => vec!["fetch", name],
            _ => vec!["connections", "--json"],
        };
        let output = binary().args(&arguments).args(["--store", text(&self.store(place))]).output().unwrap();
        let [out, problem] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        format!("{out}{problem}")
    }
}

/// Pseudo-random numbers, the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % end
    }

    fn choose<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }
}

#[test]
fn random_calls_show_nothing_of_the_other_tenant() {
    let site = Site::new();
    let mut random = Random(7);
    // Replies of each interface with a text of the caller's own: without them, the test would see nothing.
    let mut shown = [0; 4];
    for number in 0..CALLS {
        let at = random.below(2);
        let (own, other) = (&site.tenants[at], &site.tenants[1 - at]);
        let name = match random.below(5) {
            0..=1 => random.choose(&own.names).as_str(),
            2..=3 => random.choose(&other.names).as_str(),
            _ => ["none", UNKNOWN_ID, "*", "shared", "../only"][random.below(5)],
        };
        let (request, interface, reply) = match random.below(10) {
            0 => (name.to_owned(), 3, own.command(&site.place, random.below(5), name)),
            1 => {
                let path = *random.choose(&PATHS);
                ("sync".to_owned(), 3, own.change(&site.place, path, number))
            }
            _ => {
                let call = random.choose(&Call::all(name)).clone();
                let interface = match &call {
                    Call::Tool(..) => 0,
                    Call::Get(target) | Call::Post(target, _) if target.starts_with("/api/") => 1,
                    Call::Get(_) | Call::Post(..) => 2,
                };
                (call.text(name), interface, call.send(&site.server, own.token).text)
            }
        };
        site.check(at, &request, &reply);
        shown[interface] += usize::from(reply.contains(&own.marker));
    }
    assert!(shown.iter().all(|count| *count >= 10), "{shown:?}");
}

#[test]
fn a_name_of_the_other_tenant_is_refused_as_an_unknown_one() {
    let site = Site::new();
    for (at, tenant) in site.tenants.iter().enumerate() {
        let other = &site.tenants[1 - at];
        let (only, unknown) = (format!("only-{}", other.name), "only-xyz".to_owned());
        let handle = |connection: &str, id: &str| format!("{connection}/documents:{id}");
        let mut pairs = vec![(only.clone(), unknown.clone())];
        pairs.extend(other.ids.iter().take(40).map(|id| (id.clone(), UNKNOWN_ID.to_owned())));
        let documents = other.names.iter().filter_map(|name| name.strip_prefix("shared/documents:"));
        for id in documents.take(3) {
            pairs.push((handle("shared", id), handle("shared", UNKNOWN_ID)));
            pairs.push((handle(&only, id), handle(&unknown, UNKNOWN_ID)));
        }
        for (foreign, unknown) in pairs {
            let calls = Call::all(&foreign).into_iter().zip(Call::all(&unknown)).skip(Call::LISTS);
            for (call, like) in calls {
                let (answer, expect) =
                    (call.send(&site.server, tenant.token), like.send(&site.server, tenant.token));
                site.check(at, &call.text(&foreign), &answer.text);
                assert!(is_refusal(&answer), "{call:?}: {answer:?}");
                assert_eq!(answer.status, expect.status, "{call:?}: {answer:?}");
                assert_eq!(anonymous(&answer, &foreign), anonymous(&expect, &unknown), "{call:?}");
            }
        }
    }
}

/// Returns true if a reply is an error.
fn is_refusal(answer: &Answer) -> bool {
    answer.status >= 400 || answer.json()["result"]["isError"] == true
}

/// Returns the text of a reply without the name of the request and without the request id.
fn anonymous(answer: &Answer, name: &str) -> String {
    let mut text = answer.text.clone();
    let written = [encoded(name), name.to_owned()];
    let parts = name.split_once("/documents:").map(|(connection, id)| [id.to_owned(), connection.to_owned()]);
    for name in written.iter().chain(parts.iter().flatten()).filter(|name| *name != "shared") {
        text = text.replace(name, "NAME");
    }
    match answer.header("request-id") {
        Some(id) => text.replace(id, "REQUEST"),
        None => text,
    }
}
