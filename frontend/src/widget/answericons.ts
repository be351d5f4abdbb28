// The icons that come with the first finished answer; `shared/icons.tsx` draws them.

export const COPY = "M7 7V4h9v9h-3M4 7h9v9H4z";
export const DONE = "M4 10.5l4 4 8-9";
export const AGAIN = "M15.5 7A6 6 0 1 0 16 11.500M16 3.500V7h-3.5";
export const UP = "M7 9v7H4V9zM7 9l3-6c1.5 0 2 1 2 2l-.5 3H15c1 0 1.5.8 1.3 1.700l-1 5c-.2.8-.8 1.3-1.6 1.300H7";
export const DOWN = "M13 11V4h3v7zM13 11l-3 6c-1.5 0-2-1-2-2l.5-3H5c-1 0-1.5-.8-1.3-1.700l1-5C4.9 4.5 5.5 4 6.3 4H13";
export const LEFT = "M12 5l-5 5 5 5";
export const RIGHT = "M8 5l5 5-5 5";
