// The heading of a staff page and its appearance settings. Navigation and log-out stand in the template around it.

import { useState } from "preact/hooks";
import { Dialog } from "../shared/Dialog";
import { Icon, MORE } from "../shared/icons";
import { ThemeChoice } from "../shared/ThemeChoice";

export function PageHead({ title }: { readonly title: string }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <div class="page-head">
      <h1>{title}</h1>
      <button type="button" class="icon-button" aria-label="Appearance" onClick={() => setOpen(true)}>
        <Icon path={MORE} />
      </button>
      {isOpen && (
        <Dialog title="Appearance" onClose={() => setOpen(false)}>
          <ThemeChoice />
        </Dialog>
      )}
    </div>
  );
}
