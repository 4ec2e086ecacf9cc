"""The service: models behind an HTTP API, and the page that uses it."""
