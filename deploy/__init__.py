"""The product on a machine: settings, doors, engines and the local start. Imports nothing: the set-up starts here."""
