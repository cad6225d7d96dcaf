"""Calls every tool by CrewAI's adapter, which sends every optional argument as null.

Usage: crewai_adapter.py BINARY STORE
"""

import json
import sys

from crewai_tools import MCPServerAdapter
from mcp import StdioServerParameters

CALLS = [
    ("search", {"query": "invoice"}, "results"),
    ("search", {"query": "invoice", "streams": ["messages"], "limit": 2}, "results"),
    ("fetch", {"id": "cin_work/messages:m1"}, "text"),
    ("schema", {}, "connections"),
    ("query_records", {"stream": "messages", "filter": {"amount_eur": {"gte": 1}}}, "records"),
    ("aggregate", {"stream": "messages", "metric": "count"}, "value"),
    ("read_record_field", {"id": "cin_work/messages:m1", "field": "body"}, "text"),
]


def main(binary, store):
    args = ["serve", "--stdio", "--log", "error", "--store", store, "--state-dir", f"{store}.crewai"]
    with MCPServerAdapter(StdioServerParameters(command=binary, args=args)) as listed:
        tools = {tool.name: tool for tool in listed}
        for name, arguments, part in CALLS:
            answer = json.loads(tools[name].run(**arguments))
            assert answer[part], (name, arguments, answer)
        print(f"converters: {len(tools)} tools by CrewAI's adapter")


main(*sys.argv[1:])
