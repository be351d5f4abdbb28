"""The settings of the product that the flow and browser tests start: the product's own, with other limits.

Named in DJANGO_SETTINGS_MODULE, as any installation may do. What a test promises (interrupted within ten seconds) keeps
the product's own value.
"""

from deploy.settings import *  # noqa: F403 - a settings module is its names

RAPPORT_REPLY_MAX_TOKENS = 560  # a fast machine writes the product's 220 before a browser has looked twice
RAPPORT_BETWEEN_TOKENS_S = 6.0  # an engine that hangs is noticed within a test's patience
RAPPORT_SCREEN_TIMEOUT_S = 5.0  # a machine that also compiles something is no reason to call an alert
RAPPORT_MESSAGES_PER_MINUTE = 1_000
RAPPORT_ADDRESS_MESSAGES_PER_MINUTE = 10_000
RAPPORT_SITE_MESSAGES_PER_MINUTE = 10_000
