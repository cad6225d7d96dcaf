"""LangChain's `get_tools()` starts a server for each call, so the second page comes from another process.

Usage: paging_langchain.py BINARY STORE STATE
"""

import asyncio
import json
import sys

from langchain_mcp_adapters.client import MultiServerMCPClient


def payload(answer):
    """Returns the JSON of an answer with its text in a string or in a content block."""
    if isinstance(answer, tuple):
        answer = answer[0]
    return json.loads(answer if isinstance(answer, str) else answer[0]["text"])


async def main(binary, store, state):
    server = {
        "transport": "stdio",
        "command": binary,
        "args": ["serve", "--stdio", "--store", store, "--state-dir", state],
    }
    tools = {tool.name: tool for tool in await MultiServerMCPClient({"fetchwell": server}).get_tools()}
    first = payload(await tools["search"].ainvoke({"query": "the", "limit": 2}))
    second = payload(await tools["search"].ainvoke({"cursor": first["next_cursor"]}))
    ids = [hit["id"] for page in (first, second) for hit in page["results"]]
    assert len(ids) == len(set(ids)) == 4, ids
    print(f"LangChain get_tools(): {len(tools)} tools, {len(ids)} results on two pages of two processes")


asyncio.run(main(*sys.argv[1:]))
