// Draws a component again only where its props changed: a delta of a running reply must not redraw the whole log.

import { Component, type ComponentType } from "preact";

function isShallowlySame(a: object, b: object): boolean {
  const left = a as Record<string, unknown>;
  const right = b as Record<string, unknown>;
  const keys = Object.keys(left);
  return keys.length === Object.keys(right).length && keys.every((key) => isSameValue(left[key], right[key]));
}

/** Lists count as the same when their entries are: the timeline makes new lists of the same rows. */
function isSameValue(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true;
  if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return false;
  return a.every((entry, at) => Object.is(entry, b[at]));
}

export function memo<P extends object>(Inner: ComponentType<P>): ComponentType<P> {
  return class Memo extends Component<P> {
    override shouldComponentUpdate(next: P): boolean {
      return !isShallowlySame(this.props, next);
    }

    override render() {
      return <Inner {...(this.props as P)} />;
    }
  };
}
