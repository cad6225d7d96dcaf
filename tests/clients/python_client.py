"""The client of the Python SDK, over stdio and over HTTP, with both kinds of session start.

Usage: python_client.py BINARY STORE URL, with the bearer token of the URL in FETCHWELL_TOKEN where it wants one.
"""

import asyncio
import json
import os
import sys

from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

TOOLS = ["search", "fetch", "schema", "query_records", "aggregate", "read_record_field"]


def payload(result):
    """Returns the payload of a successful call: the same JSON in both channels."""
    assert not result.is_error, result
    [block] = result.content
    value = json.loads(block.text)
    assert value == result.structured_content, (value, result.structured_content)
    return value


async def converse(client, way):
    assert client.server_info.name == "fetchwell", client.server_info
    assert client.instructions.startswith("Search and read"), client.instructions

    tools = (await client.list_tools()).tools
    names = [tool.name for tool in tools]
    assert names == TOOLS, names
    assert all(tool.annotations.read_only_hint for tool in tools)

    found = payload(await client.call_tool("search", {"query": "invoice"}))["results"]
    assert len(found) > 1, found
    for hit in found:
        record = payload(await client.call_tool("fetch", {"id": hit["id"]}))
        assert record["id"] == hit["id"], (record, hit)
        assert record["title"] == hit["title"], (record, hit)
        assert record["text"], record

    refused = await client.call_tool("fetch", {"id": "cin_home/messages:nobody"})
    assert refused.is_error, refused
    error = json.loads(refused.content[0].text)["error"]
    assert error["code"] == "not_found" and error["hint"], error
    print(f"python {way}, {client.protocol_version}: {len(tools)} tools, {len(found)} records fetched")


async def main(binary, store, url):
    token = os.environ.get("FETCHWELL_TOKEN")
    headers = {"Authorization": f"Bearer {token}"} if token else None
    arguments = ["serve", "--stdio", "--store", store, "--state-dir", f"{store}.python", "--log", "error"]
    for mode in ["legacy", "auto"]:
        async with Client(StdioServerParameters(command=binary, args=arguments), mode=mode) as client:
            await converse(client, "stdio")
        async with create_mcp_http_client(headers=headers) as http:
            async with Client(streamable_http_client(url, http_client=http), mode=mode) as client:
                await converse(client, "HTTP")


asyncio.run(main(*sys.argv[1:]))
