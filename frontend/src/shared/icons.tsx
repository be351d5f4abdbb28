// Our few icons, drawn for this product on a 20 by 20 grid; those of a finished answer are in `widget/answericons.ts`, since
// a module is in one file whole. Decorative: the button around one carries the name.

export const MORE = "M4 5.5h12M4 10h12M4 14.5h12";
export const CLOSE = "M5 5l10 10M15 5L5 15";
export const SEND = "M10 16V4M5 9l5-5 5 5";
export const STOP = "M6 6h8v8H6z";
export const BELOW = "M10 4v12M5 11l5 5 5-5";
export const PHONE =
  "M5 3h3l1.5 4-2 1.500a9 9 0 0 0 4 4l1.5-2 4 1.500v3c0 1-.8 1.5-1.5 1.500A13 13 0 0 1 3.5 4.500C3.5 3.8 4 3 5 3z";
export const MESSAGE = "M3 4h14v10H9l-4 3v-3H3z";
export const LINK = "M8 4H4v12h12v-4M11 4h5v5M16 4l-7 7";
export const SHIELD = "M10 3l6 2v5c0 4-2.5 6-6 7.500C6.5 16 4 14 4 10V5z";

export function Icon({ path }: { readonly path: string }) {
  return (
    <svg class="icon" viewBox="0 0 20 20" aria-hidden="true" focusable="false">
      <path d={path} />
    </svg>
  );
}
