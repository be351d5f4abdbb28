"""The product's settings for `make bench-chat`: as shipped, but for limits that count what one address or site does.

A visitor's own limit stays: the bench talks as many visitors.
"""

from deploy.settings import *  # noqa: F403 - a settings module is its names

RAPPORT_ADDRESS_MESSAGES_PER_MINUTE = 1_000_000
RAPPORT_SITE_MESSAGES_PER_MINUTE = 1_000_000
RAPPORT_IDLE_SOCKET_S = 3_600.0
RAPPORT_SLOW_READER_S = 3_600.0  # a reader that hangs shall stay for the whole measurement
# What a message waits for its screen is measured, also beyond the deadline after which it would count as high and get
# no reply; `G4.screened_late` says how many waited longer than that.
RAPPORT_SCREEN_TIMEOUT_S = 25.0  # the encoder takes up to 30
