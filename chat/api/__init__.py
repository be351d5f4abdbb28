"""The REST door: thin views over the verbs. The schema is served at /api/schema; docs/rest.md lists the routes."""
