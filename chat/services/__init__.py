"""The verbs of conversations: synchronous, transactional, called by every door (socket, REST, tasks, commands)."""
