#!/usr/bin/env python3
"""Validates tools, requests, responses, events and errors of a built binary against the document-search contract.

    contract.py BINARY

Starts a server of a project with an embedding model and a reranker, so that a search has all stages, and one whose store
is deleted.
"""

import json
import sys
import tempfile
from pathlib import Path
from urllib.parse import quote, urlencode

import pydantic

import models
from providers import Providers
from server import Server, import_folder, run, text_of

UNKNOWN_ID = "550e8400-e29b-41d4-a716-446655440000"


def write_documents(folder):
    """Writes documents of several categories: with and without a title, of one and of many chunks."""
    topics = ["queue", "cache", "worker", "token", "invoice"]
    for number in range(40):
        category = ["references", "process", "research", "other"][number % 4]
        path = folder / category / f"topic-{number}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        topic = topics[number % len(topics)]
        body = f"The {topic} number {number} is described here, with its limits and its errors.\n\n" * (1 + number * 2)
        path.write_text(f"# The {topic} {number}\n\n{body}")
    (folder / "untitled.txt").write_text("token token token\n")
    (folder / "empty.md").write_text("")


def check(model, body, about):
    """Validates JSON text."""
    try:
        return model.model_validate_json(body)
    except pydantic.ValidationError as error:
        raise AssertionError(f"{about}: {error}\n{body[:2000]}") from error


def check_error(answer, status, code, about):
    """Validates an error, and that its request id is that of the header."""
    sent, headers, body = answer
    assert sent == status, (about, sent, body)
    error = check(models.ErrorResponse, body, about)
    assert error.code == code, (about, error)
    assert error.request_id == headers["request-id"], (about, error, headers)
    return error


def check_tools(server):
    """Compares the tools of the list with those of the contract."""
    listed = server.rpc("tools/list", {})["tools"]
    keys = ("name", "description", "inputSchema")
    assert [{key: tool[key] for key in keys} for tool in listed] == json.loads(text_of("tools.json")), listed
    return len(listed)


def refused_parameters(request):
    """Returns the parameters of a request that its model refuses."""
    try:
        models.SearchRequest.model_validate(request)
    except pydantic.ValidationError as error:
        return {str(one["loc"][0]) for one in error.errors()}
    return set()


def requests():
    """Returns requests at and beyond each limit of the contract."""
    base = {"query": "token", "project_id": "handbook"}
    changes = [{"query": text} for text in ("", "x", "x" * 1000, "x" * 1001, "é" * 1000, "é" * 1001, 7, None, ["x"])]
    changes += [{"project_id": text} for text in ("", "x" * 100, "x" * 101, 7, None, "Handbook", "a/b", "*", "a:b", UNKNOWN_ID)]
    changes += [{"top_k": number} for number in (0, 1, 50, 51, -1, 1.5, "5", "51", "x", None, [], 2**70)]
    changes += [{"category": text} for text in (None, "references", "general", 7, [])]
    changes += [{"use_reranker": flag} for flag in (True, False, None, "x", [])]
    changes += [{"include_metadata": flag} for flag in (True, False, None, "x", [])]
    changes += [{"limit": 5}, {"query": "", "top_k": 0, "category": 1}]
    yield from ({**base, **change} for change in changes)
    yield from ({"query": "token"}, {"project_id": "handbook"}, {})


def check_requests(server):
    """Compares the server's validation with that of the model."""
    count = 0
    for request in requests():
        answer = server.post("/api/v1/search", request)
        status, _, body = answer
        about, expect = json.dumps(request)[:200], refused_parameters(request)
        if expect:
            code = "INVALID_QUERY" if "query" in expect else "INVALID_ARGUMENT"
            error = check_error(answer, 400, code, about)
            assert {str(one.loc[-1]) for one in error.errors} == expect, (about, error, expect)
        elif request["project_id"] == "handbook":
            assert status == 200, (about, status, body)
            response = check(models.SearchResponse, body, about)
            assert len(response.results) <= min(request.get("top_k", 5) and int(request.get("top_k", 5)), 50), about
            assert (response.query, response.project_id) == (request["query"], request["project_id"]), about
        else:
            check_error(answer, 404, "PROJECT_NOT_FOUND", about)
        count += 1
    return count


def check_searches(server):
    """Validates answers to searches, and what the contract says of their values."""
    for top_k in (1, 5, 50):
        for category in ("workspace", "references", None):
            for include_metadata in (False, True):
                request = {
                    "query": "the limits of the token", "project_id": "handbook", "top_k": top_k, "category": category,
                    "use_reranker": top_k != 5, "include_metadata": include_metadata,
                }
                status, headers, body = server.post("/api/v1/search", request)
                assert status == 200 and headers["content-type"].startswith("application/json"), (status, headers)
                response = check(models.SearchResponse, body, request)
                results = response.results
                assert len(results) == min(top_k, response.total_found), (request, len(results), response.total_found)
                assert category is None or all(result.category == category for result in results)
                scores = [result.score for result in results]
                assert scores == sorted(scores, reverse=True), scores
                assert len({result.id for result in results}) == len(results)
                assert all(bool(result.metadata) == include_metadata for result in results)
    assert len({result.chunk_index for result in results}) > 1, "chunks of one number only"


def check_projects(server):
    """Validates the list of projects and each of them."""
    status, _, body = server.request("GET", "/api/v1/projects")
    assert status == 200, body
    [project] = check(models.ProjectList, body, "projects").projects
    for named in (project.slug, str(project.id)):
        status, _, one = server.request("GET", f"/api/v1/projects/{named}")
        assert status == 200 and check(models.Project, one, named) == project, one
    for named in ("none", "Handbook", UNKNOWN_ID, quote("a/b", safe="")):
        check_error(server.request("GET", f"/api/v1/projects/{named}"), 404, "PROJECT_NOT_FOUND", named)
    document = server.tool("get_document", path="references/topic-0.md", project_id="handbook")["document"]
    document = check(models.Document, json.dumps(document), "document")
    assert (document.project_id, document.category) == (project.id, "references"), document
    return project


def check_errors(server):
    """Validates the errors of requests that are no searches."""
    body = {"query": "x" * (2 << 20), "project_id": "handbook"}
    check_error(server.post("/api/v1/search", body), 413, "INVALID_ARGUMENT", "2 MiB")
    valid = json.dumps({"query": "x", "project_id": "handbook"}).encode()
    for content_type in ("text/plain", "application/x-www-form-urlencoded", "application/jsonx", ""):
        answer = server.post("/api/v1/search", valid, content_type)
        check_error(answer, 415, "INVALID_ARGUMENT", content_type)
    assert server.post("/api/v1/search", valid, "Application/JSON; charset=utf-8")[0] == 200
    for broken in (b"", b"{", b'{"query": "x"', b"[]", b'"x"', b"null", b"\xff"):
        code = "INVALID_ARGUMENT"
        check_error(server.post("/api/v1/search", broken), 400, code, broken)
    for method in ("GET", "PUT", "DELETE"):
        check_error(server.request(method, "/api/v1/search"), 405, "METHOD_NOT_ALLOWED", method)
    for id in (UNKNOWN_ID, "x"):
        check_error(server.post(f"/api/v1/search/{id}/feedback", {"feedback": None}), 404, "NOT_FOUND", id)


def check_feedback(server):
    """Gives feedback on a search by the id of its answer."""
    _, headers, _ = server.post("/api/v1/search", {"query": "token", "project_id": "handbook"})
    target = f"/api/v1/search/{headers['search-id']}/feedback"
    for feedback in ("helpful", "not_helpful", None):
        status, _, body = server.post(target, {"feedback": feedback})
        assert (status, body) == (204, b""), (feedback, status, body)
    for bad in ({"feedback": "great"}, {"feedback": 1}, {}):
        check_error(server.post(target, bad), 400, "INVALID_ARGUMENT", bad)


def events_of(server, **parameters):
    """Returns the events of a stream: their names, ids and validated data."""
    status, headers, body = server.request("GET", f"/api/v1/search/stream?{urlencode(parameters)}")
    assert status == 200 and headers["content-type"].startswith("text/event-stream"), (status, headers, body)
    events = []
    for block in body.decode().split("\n\n"):
        lines = [line.split(":", 1) for line in block.split("\n") if line and not line.startswith(":")]
        fields = {name: value.removeprefix(" ") for name, value in lines}
        if fields:
            assert len(fields) == len(lines), block
            data = check(models.EVENTS[fields["event"]], fields["data"], fields["event"])
            events.append((fields["event"], fields.get("id"), data))
    return events


def check_events(server):
    """Validates the events of a search with all stages, of one without a reranker, and of one from the cache."""
    parameters = {"query": "the errors of a worker", "project_id": "handbook", "top_k": 4}
    first = events_of(server, **parameters)
    names = ["search_started", "cache_check", "embedding", "search_results", "rerank", "complete"]
    assert [name for name, _, _ in first] == names, first
    data = {name: data for name, _, data in first}
    assert data["search_started"] == models.SearchStarted(query=parameters["query"], project_id="handbook")
    assert not data["cache_check"].hit and data["cache_check"].key.startswith("fraim:handbook:v")
    assert data["embedding"].model == "voyage/voyage-3", data["embedding"]
    assert data["search_results"].count == data["rerank"].input >= data["rerank"].output == 4, data
    _, headers, body = server.post("/api/v1/search", parameters)
    posted = check(models.SearchResponse, body, "posted")
    assert posted.cache_hit and posted.results == data["complete"].results and posted.total_found == data["search_results"].count
    again = events_of(server, **parameters)
    assert [name for name, _, _ in again] == ["search_started", "cache_check", "complete"], again
    assert again[1][2].hit and again[1][2].key == data["cache_check"].key and again[2][2].results == posted.results
    ids = [first[-1][1], again[-1][1], headers["search-id"]]
    assert len(set(ids)) == 3 and all(ids), ids
    for id in ids:
        assert server.post(f"/api/v1/search/{id}/feedback", {"feedback": "helpful"})[0] == 204, id
    plain = events_of(server, **parameters, use_reranker="false")
    assert "rerank" not in [name for name, _, _ in plain], plain
    refused = server.request("GET", "/api/v1/search/stream?query=&project_id=handbook")
    check_error(refused, 400, "INVALID_QUERY", "stream")
    check_error(server.request("GET", "/api/v1/search/stream?query=x&project_id=none"), 404, "PROJECT_NOT_FOUND", "stream")


def check_health(binary, server, folder):
    """Validates `/health` of a server that can read its store, and of one that cannot."""
    status, _, body = server.request("GET", "/health")
    assert status == 200, body
    check(models.Health, body, "health")
    store = folder / "down.db"
    run(binary, "project", "create", "handbook", "--store", store)
    with Server(binary, "--store", store) as down:
        assert down.request("GET", "/health")[0] == 200
        for file in folder.glob("down.db*"):
            if file.is_file():
                file.unlink()
        status, _, body = down.request("GET", "/health")
        assert status == 503, (status, body)
        check(models.UnhealthyHealth, body, "health without a store")


def main():
    binary = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as folder, Providers() as providers:
        folder = Path(folder)
        store, config = folder / "store.db", folder / "fetchwell.toml"
        write_documents(folder / "docs")
        import_folder(binary, store, "handbook", folder / "docs", "--category-from", "folder")
        config.write_text(f'[[source]]\nname = "own"\nstore = "{store}"\n{providers.settings()}')
        run(binary, "embeddings", "build", "--yes", "--config", config)
        with Server(binary, "--config", config) as server:
            print(f"{check_tools(server)} tools are those of the contract")
            print(f"{check_requests(server)} requests are accepted and refused as by the models")
            check_searches(server)
            check_projects(server)
            check_errors(server)
            check_feedback(server)
            check_events(server)
            check_health(binary, server, folder)
    print("responses, errors, events and /health validate against the models")


if __name__ == "__main__":
    main()
