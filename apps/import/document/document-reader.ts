import type { Token } from 'stream-json/core/parser.js';
import { itemSizeMax } from './json-tokens.ts';
import { keyPath, UnreadableDocumentError } from './problems.ts';

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

/** No document of org-api is deeper than 7. The bound rejects a file of brackets at once. */
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
 */
export class DocumentReader<Kind extends string> {
  readonly #layout: Layout<Kind>;
  readonly #onItem: (item: Item<Kind>) => void;
  readonly #onProblem: (path: string, problem: string) => void;
  /** The objects and lists that have begun, outermost first. */
  readonly #stack: Frame<Kind>[] = [];
  #isComplete = false;

  constructor(
    layout: Layout<Kind>,
    onItem: (item: Item<Kind>) => void,
    onProblem: (path: string, problem: string) => void,
  ) {
    this.#layout = layout;
    this.#onItem = onItem;
    this.#onProblem = onProblem;
  }

  /** Whether the outermost value has ended. */
  get isComplete(): boolean {
    return this.#isComplete;
  }

  /** @throws UnreadableDocumentError on nesting deeper than 16 or an item larger than 1 MiB. */
  accept(token: Token): void {
    const text = 'value' in token ? (token.value as string) : '';
    const { name } = token;
    if (name === 'startObject') this.#open(Object.create(null));
    else if (name === 'startArray') this.#open([]);
    else if (name === 'endObject' || name === 'endArray') this.#close();
    else if (name === 'keyValue') this.#key(text);
    else if (name === 'stringValue') this.#scalar(text, text.length + 4);
    else if (name === 'numberValue') this.#scalar(Number(text), text.length);
    else if (name === 'nullValue') this.#scalar(null, 4);
    else if (name === 'trueValue') this.#scalar(true, 4);
    else if (name === 'falseValue') this.#scalar(false, 5);
  }

  get #top(): Frame<Kind> | undefined {
    return this.#stack.at(-1);
  }

  get #path(): string {
    const step = (text: string, { container, key, index }: Frame<Kind>) =>
      Array.isArray(container) ? `${text}[${index}]` : key === null ? text : keyPath(text, key);
    return this.#stack.reduce(step, '$');
  }

  #open(container: Frame<Kind>['container']): void {
    const isList = Array.isArray(container);
    const parent = this.#top;
    const known = this.#findLayout(isList);
    if (this.#stack.length === depthMax)
      throw new UnreadableDocumentError(this.#path, `is nested deeper than ${depthMax} levels`);
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
    this.#count(frame.owner, 8);
    this.#stack.push(frame);
  }

  /** Returns the layout of the object or list that begins in the innermost frame. */
  #findLayout(isList: boolean): Layout<Kind> | undefined {
    const parent = this.#top;
    if (parent === undefined) return isList ? undefined : this.#layout;
    if (parent.items !== undefined) return isList ? undefined : parent.items;
    const named = isList ? parent.layout?.lists : parent.layout?.parts;
    return named !== undefined && parent.key !== null && Object.hasOwn(named, parent.key)
      ? named[parent.key]
      : undefined;
  }

  #close(): void {
    const frame = this.#stack.pop();
    if (frame !== undefined) this.#value(frame.container, frame.layout, frame.items !== undefined);
  }

  #key(name: string): void {
    const parent = this.#top;
    if (parent === undefined || Array.isArray(parent.container)) return;
    parent.key = name;
    parent.keyTwice = Object.hasOwn(parent.container, name);
    this.#count(parent.owner, name.length + 4);
    if (parent.keyTwice && !parent.muted) this.#onProblem(this.#path, 'is given twice');
  }

  #scalar(whole: string | number | boolean | null, size: number): void {
    this.#count(this.#top?.owner, size + 8);
    this.#value(whole);
  }

  #count(frame: Frame<Kind> | null | undefined, size: number): void {
    if (frame === null || frame === undefined) return;
    frame.size += size;
    if (frame.size > itemSizeMax)
      throw new UnreadableDocumentError(this.#path, `is larger than ${itemSizeMax} characters`);
  }

  /** Passes a complete value on, or adds it to the list or object around it. */
  #value(whole: unknown, own?: Layout<Kind>, isStreamed = false): void {
    const parent = this.#top;
    if (parent === undefined) {
      this.#isComplete = true;
      this.#emit(this.#layout, whole);
    } else if (parent.items !== undefined) {
      if (!parent.muted) this.#emit(parent.items, whole);
      parent.index += 1;
    } else if (Array.isArray(parent.container)) {
      parent.container.push(whole);
      parent.index += 1;
    } else {
      this.#property(parent, isStreamed ? [] : whole, own);
    }
  }

  #property(parent: Frame<Kind>, whole: unknown, own?: Layout<Kind>): void {
    const { key, container } = parent;
    if (key !== null && !parent.keyTwice && !Array.isArray(container)) {
      if (own !== undefined && !parent.muted) this.#emit(own, whole);
      container[key] = own === undefined ? whole : {};
    }
    parent.key = null;
    parent.keyTwice = false;
  }

  #emit({ kind }: Layout<Kind>, value: unknown): void {
    const at = this.#stack.filter((frame) => frame.items !== undefined).map((frame) => frame.index);
    this.#onItem({ kind, at, path: this.#path, value });
  }
}
