"""The list of tools of a live server, converted by agent frameworks, and calls with the converted tools.

Usage: converters.py BINARY STORE
"""

import asyncio
import json
import sys

from agents.mcp import MCPServerStdio
from agents.mcp.util import MCPUtil
from google.genai import _mcp_utils, models
from langchain_core.utils.function_calling import convert_to_openai_tool
from langchain_google_genai._function_utils import convert_to_genai_function_declarations
from langchain_mcp_adapters.tools import load_mcp_tools
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

# `filter` and `expand_limit` accept any names, so strict mode cannot close them; the framework keeps these tools as
# they are.
NOT_STRICT = {"search", "fetch", "query_records", "aggregate"}


def arguments(profile, state):
    return ["serve", "--stdio", "--profile", profile, "--log", "error", *state]


async def google(tools):
    for tool in tools:
        converted = _mcp_utils.mcp_to_gemini_tool(tool)
        models._Tool_to_mldev(converted)
        [declaration] = converted.function_declarations
        assert declaration.parameters.properties.keys() == tool.inputSchema["properties"].keys(), tool.name


async def langchain(session, profile):
    tools = {tool.name: tool for tool in await load_mcp_tools(session)}
    for tool in tools.values():
        convert_to_openai_tool(tool)
    convert_to_genai_function_declarations(list(tools.values()))
    # Every optional argument as null, as CrewAI's adapter sends it.
    names = tools["search"].args_schema["properties"]
    found = await tools["search"].ainvoke({**dict.fromkeys(names), "query": "invoice"})
    text = found if isinstance(found, str) else found[0]["text"]
    assert json.loads(text)["results"], (profile, found)


async def openai(binary, args, profile):
    async with MCPServerStdio(params={"command": binary, "args": args}) as server:
        strict = set()
        for tool in await server.list_tools():
            for convert in [False, True]:
                converted = MCPUtil.to_function_tool(tool, server, convert_schemas_to_strict=convert)
                assert converted.params_json_schema["properties"], tool.name
                assert convert or not converted.strict_json_schema, tool.name
            if converted.strict_json_schema:
                strict.add(tool.name)
            else:
                assert profile == "standard" and tool.name in NOT_STRICT, tool.name
                assert converted.params_json_schema["properties"] == tool.inputSchema["properties"], tool.name
        return strict


async def main(binary, store):
    for profile in ["standard", "openai"]:
        args = arguments(profile, ["--store", store, "--state-dir", f"{store}.converters"])
        async with stdio_client(StdioServerParameters(command=binary, args=args)) as (read, write):
            async with ClientSession(read, write) as session:
                await session.initialize()
                tools = (await session.list_tools()).tools
                await google(tools)
                await langchain(session, profile)
        strict = await openai(binary, args, profile)
        print(f"converters, {profile}: {len(tools)} tools; strict: {', '.join(sorted(strict))}")


asyncio.run(main(*sys.argv[1:]))
