// @vitest-environment happy-dom
// Parts in later files: what stands there until the file comes, and what happens when it does not.

import { render } from "preact";
import { act } from "preact/test-utils";
import { beforeEach, expect, it, vi } from "vitest";
import { later } from "../../src/shared/later";

let root: HTMLElement;

beforeEach(() => {
  root = document.createElement("div");
});

function Whole({ name }: { readonly name: string }) {
  return <b>{name}</b>;
}

it("stands in with something simpler until the file is there, and is fetched once", async () => {
  let arrive: (part: typeof Whole) => void = () => undefined;
  const fetchPart = vi.fn(
    () =>
      new Promise<typeof Whole>((resolve) => {
        arrive = resolve;
      }),
  );
  const { Part, load } = later<{ readonly name: string }>(fetchPart, ({ name }) => <i>{name}</i>);
  await act(() => render(<Part name="Ana" />, root));
  expect(root.innerHTML).toBe("<i>Ana</i>");
  await act(async () => {
    arrive(Whole);
    await load();
  });
  expect(root.innerHTML).toBe("<b>Ana</b>");
  const other = document.createElement("div");
  await act(() => render(<Part name="Ben" />, other));
  expect(other.innerHTML).toBe("<b>Ben</b>");
  expect(fetchPart).toHaveBeenCalledTimes(1);
});

it("asks again when the network is back", async () => {
  const fetchPart = vi.fn(async () => Whole).mockRejectedValueOnce(new TypeError("offline"));
  const { Part } = later<{ readonly name: string }>(fetchPart);
  await act(async () => render(<Part name="Ana" />, root));
  expect(root.innerHTML).toBe("");
  await act(async () => {
    window.dispatchEvent(new Event("online"));
    await Promise.resolve();
  });
  expect(root.innerHTML).toBe("<b>Ana</b>");
});
