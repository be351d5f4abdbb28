"""What an erasure means for what was learned from: tombstones on snapshots, and the versions that learned.

`training.apps` registers this with `chat.services.erasure`. The row-level table is `SnapshotRow`; the manifest keeps
the old hash and gets a tombstone (rule 8). Removing rows from snapshot files comes with the files themselves.
"""

from django.utils import timezone

from chat.models import PolicyVersion
from chat.services.erasure import ErasedTable, ErasureSubject, HookAnswer, register_erased_table, register_erasure_hook
from training.models import Snapshot, SnapshotRow


def join_erasures() -> None:
    """Make every erasure cover this app's rows. Called once, when the app is ready."""
    register_erased_table(ErasedTable(model=SnapshotRow, to_visitor="visitor", to_conversation="reply__conversation"))
    register_erasure_hook(bury_in_snapshots)


def bury_in_snapshots(subject: ErasureSubject) -> HookAnswer:
    """Leave a tombstone on each snapshot that holds replies of the subject; name the versions that learned from it."""
    snapshots = Snapshot.objects.select_for_update().filter(
        pk__in=SnapshotRow.objects.filter(reply__in=subject.message_ids).values("snapshot")
    )
    answer = HookAnswer()
    for snapshot in snapshots:
        rows = snapshot.rows.filter(reply__in=subject.message_ids).count()
        snapshot.tombstones = [*snapshot.tombstones, {"at": timezone.now().isoformat(), "rows": rows}]
        snapshot.save(update_fields=["tombstones"])
        answer.counts["snapshot tombstones"] = answer.counts.get("snapshot tombstones", 0) + 1
        learned = PolicyVersion.objects.filter(snapshot_sha256=snapshot.sha256)
        answer.learned_versions.extend(learned.values_list("name", flat=True))
    return answer
