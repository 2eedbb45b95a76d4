"""Fetch one document over HTTPS from a named host."""

import http.client
import ssl
import sys

HOSTS = {"collector": "collector.example.net", "api": "api.example.com"}
connection = http.client.HTTPSConnection(HOSTS[sys.argv[1]], timeout=10, context=ssl.create_default_context())
connection.request("GET", "/status")
connection.getresponse().read()
connection.close()
