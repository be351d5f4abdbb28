"""How versions get served: model conversion, adapter checks, one driver per kind of model server, and the keeper."""
