// An answer is on its way: three dots for the eye, words for everybody else.

export function Dots({ label, note = "" }: { readonly label: string; readonly note?: string }) {
  return (
    <div class="dots">
      <span class="unseen">{label}</span>
      <span class="dot" aria-hidden="true" />
      <span class="dot" aria-hidden="true" />
      <span class="dot" aria-hidden="true" />
      {note !== "" && <span class="quiet">{note}</span>}
    </div>
  );
}
