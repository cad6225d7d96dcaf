"""LlamaIndex and FastMCP list the tools and read two pages; LlamaIndex starts a process for each call.

Usage: llama_index_fastmcp.py BINARY STORE STATE
"""

import asyncio
import json
import sys

from fastmcp import Client
from llama_index.tools.mcp import BasicMCPClient, McpToolSpec


def check(way, pages, count):
    ids = [hit["id"] for page in pages for hit in page["results"]]
    assert len(ids) == len(set(ids)) == 4, (way, ids)
    print(f"{way}: {count} tools, {len(ids)} results on two pages")


async def llama_index(binary, arguments):
    tools = await McpToolSpec(client=BasicMCPClient(binary, args=arguments)).to_tool_list_async()
    search = next(tool for tool in tools if tool.metadata.name == "search")

    async def page(**asked):
        result = (await search.acall(**asked)).raw_output
        return json.loads(result.content[0].text)

    first = await page(query="the", limit=2)
    check("LlamaIndex", [first, await page(cursor=first["next_cursor"])], len(tools))


async def fastmcp(binary, arguments):
    configuration = {"mcpServers": {"fetchwell": {"command": binary, "args": arguments}}}
    pages = []
    asked = {"query": "the", "limit": 2}
    for _ in range(2):
        async with Client(configuration) as client:
            tools = await client.list_tools()
            pages.append((await client.call_tool("search", asked)).structured_content)
            asked = {"cursor": pages[-1].get("next_cursor")}
    check("FastMCP", pages, len(tools))


async def main(binary, store, state):
    arguments = ["serve", "--stdio", "--store", store, "--state-dir", state]
    await llama_index(binary, arguments)
    await fastmcp(binary, arguments)


asyncio.run(main(*sys.argv[1:]))
