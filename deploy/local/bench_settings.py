"""The product's settings without the limits per visitor, address and site: for benchmarks from one address.

`bench` names this module for the product that it starts. What is measured is the screen, not the limits.
"""

from deploy.settings import *  # noqa: F403 - a settings module is its names

RAPPORT_MESSAGES_PER_MINUTE = 1_000_000
RAPPORT_ADDRESS_MESSAGES_PER_MINUTE = 1_000_000
RAPPORT_SITE_MESSAGES_PER_MINUTE = 1_000_000
