"""As `settings`, with replies that end after as many tokens as the bare engine is asked for (G15)."""

from deploy.local.chat_bench.settings import *  # noqa: F403 - a settings module is its names

RAPPORT_REPLY_MAX_TOKENS = 96
