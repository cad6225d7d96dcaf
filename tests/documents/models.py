"""Models of the document-search contract, version 5.1.0.

A response may have no field that its model does not name, except where the contract lets a body grow: errors and `/health`.
JSON is validated strictly: a number in a string is not a number. Requests are read as loosely as pydantic reads them.
"""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

Category = Literal["intent", "research", "references", "process", "workspace", "general"]
Score = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=0)]
Millis = Annotated[int, Field(ge=0)]


class Request(BaseModel):
    """Body of a request. Unknown parameters are refused."""

    model_config = ConfigDict(extra="forbid")


class Closed(BaseModel):
    """Body of a response with exactly these fields."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Open(BaseModel):
    """Body of a response with at least these fields."""

    model_config = ConfigDict(extra="allow", strict=True)


class SearchRequest(Request):
    query: Annotated[str, Field(min_length=1, max_length=1000)]
    project_id: Annotated[str, Field(min_length=1, max_length=100)]
    top_k: Annotated[int, Field(ge=1, le=50)] = 5
    category: str | None = None
    use_reranker: bool = True
    include_metadata: bool = False


class ChunkResult(Closed):
    id: UUID
    document_id: UUID
    content: str
    score: Score
    document_path: Annotated[str, Field(min_length=1, max_length=1000)]
    document_title: Annotated[str, Field(max_length=500)] | None
    category: Category
    chunk_index: Count
    metadata: dict[str, Any]


class SearchResponse(Closed):
    results: Annotated[list[ChunkResult], Field(max_length=50)]
    query: Annotated[str, Field(min_length=1, max_length=1000)]
    project_id: Annotated[str, Field(min_length=1, max_length=100)]
    total_found: Count
    latency_ms: Millis
    cache_hit: bool
    corpus_version: Annotated[int, Field(ge=1)]


class Document(Closed):
    id: UUID
    project_id: UUID
    path: Annotated[str, Field(min_length=1, max_length=1000)]
    title: Annotated[str, Field(max_length=500)] | None
    content_hash: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    category: Category
    metadata: dict[str, Any]
    created_at: datetime
    updated_at: datetime


class Project(Closed):
    id: UUID
    slug: Annotated[str, Field(pattern="^[a-z0-9][a-z0-9_-]{0,99}$")]
    name: Annotated[str, Field(min_length=1, max_length=255)]
    settings: dict[str, Any]
    corpus_version: Annotated[int, Field(ge=1)]
    created_at: datetime
    updated_at: datetime


class ProjectList(Open):
    projects: list[Project]


class ValidationError(Closed):
    loc: Annotated[list[str | int], Field(min_length=1)]
    msg: Annotated[str, Field(min_length=1)]
    type: Annotated[str, Field(min_length=1)]


class ErrorResponse(Closed):
    error: Annotated[str, Field(min_length=1)]
    detail: Annotated[str, Field(min_length=1)] | None = None
    code: Annotated[str, Field(pattern="^[A-Z]+(_[A-Z]+)*$")]
    request_id: Annotated[str, Field(min_length=1)] | None = None
    # Validation errors are the list `errors` of the body.
    errors: Annotated[list[ValidationError], Field(min_length=1)] | None = None


class Contracts(Open):
    docs_search: Literal["5.1.0"]


class Health(Open):
    status: Literal["healthy", "degraded"]
    version: Annotated[str, Field(min_length=1)]
    database: Literal["connected"]
    cache: Literal["connected", "disconnected"]
    uptime_seconds: Count
    contracts: Contracts


class UnhealthyHealth(Open):
    status: Literal["unhealthy"]
    version: Annotated[str, Field(min_length=1)]
    database: Literal["disconnected"]
    cache: Literal["connected", "disconnected"]
    error: Literal["Database connection failed"]


class SearchStarted(Closed):
    query: str
    project_id: str


class CacheCheck(Closed):
    hit: bool
    key: Annotated[str, Field(pattern=r"^fraim:[a-z0-9][a-z0-9_-]{0,99}:v[1-9][0-9]*:search:[0-9a-f]{16}$")]


class Embedding(Closed):
    model: Annotated[str, Field(min_length=1)]
    latency_ms: Millis


class SearchResults(Closed):
    count: Count
    latency_ms: Millis


class Rerank(Closed):
    input: Count
    output: Count
    latency_ms: Millis


class Complete(Closed):
    results: list[ChunkResult]
    total_latency_ms: Millis


EVENTS = {
    "search_started": SearchStarted,
    "cache_check": CacheCheck,
    "embedding": Embedding,
    "search_results": SearchResults,
    "rerank": Rerank,
    "complete": Complete,
    "error": ErrorResponse,
}
