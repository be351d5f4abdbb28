// A sheet over the page: the browser's own modal dialog, so focus stays inside, Escape closes and focus goes back.

import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { t } from "../i18n";
import { CLOSE, Icon } from "./icons";

interface DialogProps {
  readonly title: string;
  readonly children: ComponentChildren;
  onClose(): void;
}

export function Dialog({ title, children, onClose }: DialogProps) {
  const box = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const dialog = box.current;
    if (dialog && !dialog.open) dialog.showModal();
    return () => dialog?.close();
  }, []);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the keyboard closes it with Escape, which the browser handles
    <dialog
      class="sheet"
      ref={box}
      aria-labelledby="sheet-title"
      onClose={onClose}
      onClick={(event) => {
        if (event.target === box.current) box.current?.close();
      }}
    >
      <div class="sheet-body">
        <div class="sheet-head">
          <h2 id="sheet-title">{title}</h2>
          <button type="button" class="icon-button" aria-label={t("Close")} onClick={() => box.current?.close()}>
            <Icon path={CLOSE} />
          </button>
        </div>
        {children}
      </div>
    </dialog>
  );
}
