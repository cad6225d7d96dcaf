"""The `client` of the contract's examples: `get(path, params=None)` returns the JSON of a response of the tested server.

Usage: contract_client.py BASE_URL EXAMPLE [ARGUMENT]. Runs one example of contract_examples.py, and prints its result as JSON."""

import asyncio
import json
import sys
import urllib.parse
import urllib.request

import contract_examples


class Client:
    def __init__(self, base):
        self.base = base

    async def get(self, path, params=None):
        query = "?" + urllib.parse.urlencode(params) if params else ""
        with urllib.request.urlopen(self.base + path + query) as answer:
            return json.load(answer)


contract_examples.client = Client(sys.argv[1])
print(json.dumps(asyncio.run(getattr(contract_examples, sys.argv[2])(*sys.argv[3:]))))
