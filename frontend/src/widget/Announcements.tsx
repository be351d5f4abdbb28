// The page's one status region. Every announcement is a line of its own that is added and never changed, so that quick
// ones do not swallow each other and nothing is read twice.

import type { Announcement } from "./store";

export function Announcements({ announcements }: { readonly announcements: readonly Announcement[] }) {
  return (
    <div class="unseen" role="status" aria-live="polite" aria-atomic="false" aria-relevant="additions">
      {announcements.map(({ id, text }) => (
        <p key={id}>{text}</p>
      ))}
    </div>
  );
}
