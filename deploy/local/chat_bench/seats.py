"""Makes conversations to talk in, and prints a seat for each: `python -m deploy.local.chat_bench.seats COUNT`.

Through the start call ten thousand of them would take minutes; what is measured begins at the socket.
"""

from __future__ import annotations

import json
import sys
from datetime import timedelta


def make_seats(count: int) -> list[dict[str, str]]:
    """So many visitors on the demo site, each with an open conversation and a token."""
    from django.utils import timezone

    from chat.models import Conversation, Visitor, WidgetSite
    from chat.models.conversations import ConversationKind
    from chat.services.visitors import split_bucket_of, token_for

    site = WidgetSite.objects.get(slug="demo")
    visitors = Visitor.objects.bulk_create([Visitor(site=site) for _ in range(count)], batch_size=500)
    conversations = Conversation.objects.bulk_create(
        [
            Conversation(
                site=site,
                visitor=visitor,
                kind=ConversationKind.DEMO,
                split_bucket=split_bucket_of(visitor.pk),
                mode=site.mode,
            )
            for visitor in visitors
        ],
        batch_size=500,
    )
    expires_at = timezone.now() + timedelta(hours=2)
    return [
        {
            "token": token_for(conversation, visitor=conversation.visitor, expires_at=expires_at),
            "conversation": str(conversation.pk),
            "visitor": str(conversation.visitor_id),
        }
        for conversation in conversations
    ]


def main(arguments: list[str]) -> int:
    """Prints one JSON line for each seat."""
    import django

    django.setup()
    for seat in make_seats(int(arguments[0])):
        print(json.dumps(seat))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
