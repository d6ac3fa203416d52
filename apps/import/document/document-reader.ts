import type { Token } from 'stream-json/core/parser.js';
import { itemSizeMax } from './json-tokens.ts';
import { keyPath, UnreadableDocument } from './problems.ts';

/**
 * The parts of a document that are passed on one by one: the items of `lists` and the objects of
 * `parts`, each with its own lists. Everything else stays in its object.
 */
export interface Layout<Kind extends string = string> {
  kind: Kind;
  lists?: Record<string, Layout<Kind>>;
  parts?: Record<string, Layout<Kind>>;
}

/** An object that was passed on. `at` is its index in each list around it, outermost first. */
export interface Item<Kind extends string = string> {
  kind: Kind;
  at: readonly number[];
  path: string;
  value: unknown;
}

/** No document of org-api is deeper than 7. The bound refuses a file of brackets at once. */
const depthMax = 16;

interface Frame<Kind extends string> {
  container: unknown[] | Record<string, unknown>;
  /** The layout of the object in this frame, if it is passed on by itself. */
  layout?: Layout<Kind> | undefined;
  /** The layout of the items of the list in this frame, if they are passed on one by one. */
  items?: Layout<Kind> | undefined;
  key: string | null;
  index: number;
  /** Whether the value is under a duplicate key: it is read and never passed on. */
  muted: boolean;
  keyTwice: boolean;
  /** The frame whose size includes this one's. */
  owner: Frame<Kind> | null;
  size: number;
}

/**
 * Assembles objects from tokens and passes each on as soon as it is complete: an item before the
 * object that contains its list, and that object with an empty list in its place. The second value
 * of a duplicate key is ignored and reported through `onProblem`.
 *
 * @throws UnreadableDocument on nesting deeper than 16 or an item larger than 1 MiB.
 */
export function documentReader<Kind extends string>(
  layout: Layout<Kind>,
  onItem: (item: Item<Kind>) => void,
  onProblem: (path: string, problem: string) => void,
) {
  const stack: Frame<Kind>[] = [];
  let complete = false;

  const top = () => stack.at(-1);
  const path = () =>
    stack.reduce(
      (text, frame) =>
        Array.isArray(frame.container)
          ? `${text}[${frame.index}]`
          : frame.key === null
            ? text
            : keyPath(text, frame.key),
      '$',
    );
  const positions = () => stack.filter((frame) => frame.items !== undefined).map((frame) => frame.index);

  function count(frame: Frame<Kind> | null | undefined, size: number): void {
    if (frame === null || frame === undefined) return;
    frame.size += size;
    if (frame.size > itemSizeMax) throw new UnreadableDocument(path(), `is larger than ${itemSizeMax} characters`);
  }

  /** Returns the layout of the object or list that begins in the innermost frame. */
  function inherited(isList: boolean): Layout<Kind> | undefined {
    const parent = top();
    if (parent === undefined) return isList ? undefined : layout;
    if (parent.items !== undefined) return isList ? undefined : parent.items;
    const named = isList ? parent.layout?.lists : parent.layout?.parts;
    return named !== undefined && parent.key !== null && Object.hasOwn(named, parent.key)
      ? named[parent.key]
      : undefined;
  }

  function open(container: Frame<Kind>['container']): void {
    const isList = Array.isArray(container);
    const parent = top();
    const known = inherited(isList);
    if (stack.length === depthMax) throw new UnreadableDocument(path(), `is nested deeper than ${depthMax} levels`);
    const frame: Frame<Kind> = {
      container,
      layout: isList ? undefined : known,
      items: isList ? known : undefined,
      key: null,
      index: 0,
      muted: parent !== undefined && (parent.muted || parent.keyTwice),
      keyTwice: false,
      owner: null,
      size: 0,
    };
    frame.owner = known === undefined && parent !== undefined ? parent.owner : frame;
    count(frame.owner, 8);
    stack.push(frame);
  }

  function close(): void {
    const frame = stack.pop();
    if (frame === undefined) return;
    value(frame.container, frame.layout, frame.items !== undefined);
  }

  /** Passes a complete value on, or adds it to the list or object around it. */
  function value(whole: unknown, own?: Layout<Kind>, streamed = false): void {
    const parent = top();
    if (parent === undefined) {
      complete = true;
      onItem({ kind: layout.kind, at: [], path: '$', value: whole });
    } else if (parent.items !== undefined) {
      if (!parent.muted) onItem({ kind: parent.items.kind, at: positions(), path: path(), value: whole });
      parent.index += 1;
    } else if (Array.isArray(parent.container)) {
      parent.container.push(whole);
      parent.index += 1;
    } else {
      property(parent, streamed ? [] : whole, own);
    }
  }

  function property(parent: Frame<Kind>, whole: unknown, own?: Layout<Kind>): void {
    const { key, container } = parent;
    if (key !== null && !parent.keyTwice && !Array.isArray(container)) {
      if (own !== undefined && !parent.muted) onItem({ kind: own.kind, at: positions(), path: path(), value: whole });
      container[key] = own === undefined ? whole : {};
    }
    parent.key = null;
    parent.keyTwice = false;
  }

  function key(name: string): void {
    const parent = top();
    if (parent === undefined || Array.isArray(parent.container)) return;
    parent.key = name;
    parent.keyTwice = Object.hasOwn(parent.container, name);
    count(parent.owner, name.length + 4);
    if (parent.keyTwice && !parent.muted) onProblem(path(), 'is given twice');
  }

  function scalar(whole: string | number | boolean | null, size: number): void {
    count(top()?.owner, size + 8);
    value(whole);
  }

  const steps: Partial<Record<Token['name'], (text: string) => void>> = {
    startObject: () => open(Object.create(null)),
    startArray: () => open([]),
    endObject: close,
    endArray: close,
    keyValue: key,
    stringValue: (text) => scalar(text, text.length + 4),
    numberValue: (text) => scalar(Number(text), text.length),
    nullValue: () => scalar(null, 4),
    trueValue: () => scalar(true, 4),
    falseValue: () => scalar(false, 5),
  };

  return {
    accept(token: Token): void {
      steps[token.name]?.('value' in token ? (token.value as string) : '');
    },
    /** Whether the outermost value has ended. */
    get complete(): boolean {
      return complete;
    },
  };
}
