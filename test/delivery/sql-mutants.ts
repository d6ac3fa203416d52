/** A statement, or a function of PostgreSQL, of which one part is missing or changed. */
export interface Mutant {
  /** The text that is replaced and its replacement, in one line. */
  change: string;
  /** The whole text with the change. */
  text: string;
}

/** A word, a sign or a constant; or what stands in parentheses, brackets or from `case` to `end`. */
interface Node {
  start: number;
  end: number;
  /** The text of a word; the opening one of a group. */
  word: string;
  /** What is within a group. */
  inner?: Node[];
}

const tokens =
  /--[^\n]*|'(?:[^']|'')*'|"[^"]*"|\$\w*\$|\$\d+|[a-z_][\w.]*\*?|\d+(?:\.\d+)?|::|:=|<>|<=|>=|\|\||[-+*/<>=(),;[\]]/gi;

function parse(sql: string): Node[] {
  const top: Node[] = [];
  const open: Node[] = [];
  for (const { 0: word, index } of sql.matchAll(tokens)) {
    if (word.startsWith('--')) continue;
    const group = open.at(-1);
    const end = index + word.length;
    if (/^[)\]]$/.test(word) || (word === 'end' && group?.word === 'case')) {
      open.pop();
      if (group !== undefined) group.end = end;
      continue;
    }
    const isGroup = /^(?:[([]|case)$/.test(word);
    const node: Node = { start: index, end, word, ...(isGroup && { inner: [] }) };
    (group?.inner ?? top).push(node);
    if (isGroup) open.push(node);
  }
  // A function declares before its body.
  const body = top.findIndex(({ word }) => word === '$function$') + 1;
  return top.slice(body, body === 0 ? undefined : -1);
}

const clauses = new Set(
  `where on when then else end if elsif having order group limit offset for returning union from select set values as
   into join left cross using begin and or , ; := assigns`.split(/\s+/),
);

/**
 * Makes every mutant of a statement or of a function's definition, each with one change:
 *
 * - one of several conditions does not count; one that stands alone always holds, or never where it selects a branch;
 * - a lock is not taken, or waits where it skips;
 * - a side of an operator, of `coalesce`, `least` or `greatest` is missing;
 * - an item of an `in` list, a key of an order or a partition, or an assignment is missing; an order is reversed.
 *
 * An expression that the text repeats is changed everywhere. `shared` are parts that stay, because other statements
 * have them too. Three parts stay because no result shows them: that an id is of its organization (an id is of one
 * only, and indexes begin with it), that ids break ties in an order, and limits of rows. Keywords are in lower case,
 * as in the product.
 */
export function mutate(sql: string, shared: readonly string[] = []): Mutant[] {
  const mutants = new Map<string, Mutant>();
  for (const { change, repeated } of listChanges(sql, parse(sql), null)) {
    const what = `${sql.slice(change.start, change.end)} → ${change.by}`
      .replace(/--.*/g, '')
      .replace(/\s+/g, ' ')
      .trim();
    if (/\borganization(?:_id)? = [^ ]+ → true$/.test(what) || isWithin(sql, change, shared)) continue;
    const text = applyTo(sql, change, repeated);
    if (text !== sql && !mutants.has(text)) mutants.set(text, { change: what, text });
  }
  return numberRepeats([...mutants.values()]);
}

/** Tells the second change of a kind from the first, and so on. */
function numberRepeats(mutants: readonly Mutant[]): Mutant[] {
  const counts = new Map<string, number>();
  return mutants.map(({ change, text }) => {
    const count = (counts.get(change) ?? 0) + 1;
    counts.set(change, count);
    return { change: count === 1 ? change : `${change} (${count})`, text };
  });
}

function* listChanges(
  sql: string,
  nodes: Node[],
  repeated: Change | null,
): Generator<{ change: Change; repeated: Change | null }> {
  const rules = new Rules(sql, nodes);
  for (const [index, { start, end, inner = [] }] of nodes.entries()) {
    for (const change of rules.changesAt(index)) yield { change, repeated };
    const group = { start, end, by: '' };
    yield* listChanges(sql, inner, end - start > shortestRepeated && isRepeated(sql, group) ? group : repeated);
  }
}

/** Characters of an expression that is the same one when it is repeated. */
const shortestRepeated = 60;

const isRepeated = (sql: string, { start, end }: Change) => sql.split(sql.slice(start, end)).length > 2;

const isWithin = (sql: string, { start, end }: Change, parts: readonly string[]) =>
  parts.some((part) => {
    for (let at = sql.indexOf(part); at >= 0; at = sql.indexOf(part, at + 1))
      if (start >= at && end <= at + part.length) return true;
    return false;
  });

function applyTo(sql: string, { start, end, by }: Change, repeated: Change | null): string {
  if (repeated === null) return `${sql.slice(0, start)}${by}${sql.slice(end)}`;
  const before = sql.slice(repeated.start, repeated.end);
  const after = `${sql.slice(repeated.start, start)}${by}${sql.slice(end, repeated.end)}`;
  return sql.replaceAll(before, () => after);
}

interface Change {
  start: number;
  end: number;
  /** What replaces the text between. */
  by: string;
}

/** The rules, for the nodes of one group. */
class Rules {
  private readonly sql: string;
  private readonly nodes: readonly Node[];
  /** The words of the nodes; an `=` that assigns a column is `assigns`. */
  private readonly words: string[];

  constructor(sql: string, nodes: readonly Node[]) {
    this.sql = sql;
    this.nodes = nodes;
    let isSet = false;
    this.words = nodes.map(({ word }, index) => {
      if (/^(?:set|from|where|returning|;)$/.test(word)) isSet = word === 'set';
      const isFirst = /^(?:set|,)$/.test(nodes[index - 2]?.word ?? '');
      return isSet && word === '=' && isFirst ? 'assigns' : word;
    });
  }

  *changesAt(at: number): Generator<Change> {
    yield* this.conditions(at);
    yield* this.locks(at);
    yield* this.operators(at);
    yield* this.lists(at);
    yield* this.assignments(at);
  }

  private *conditions(at: number): Generator<Change> {
    const word = this.words[at] ?? '';
    if (word === 'and' || word === 'or') {
      const within = word === 'or' ? ['and'] : [];
      const without = word === 'or' ? 'false' : 'true';
      yield this.replace(this.firstBefore(at, within), at - 1, without);
      yield this.replace(at + 1, this.lastAfter(at, within), without);
    }
    if (!/^(?:where|on|when|if|elsif)$/.test(word) || this.words[at + 1] === 'conflict') return;
    const last = this.lastAfter(at, ['and', 'or']);
    if (last === at) return; // `end if`
    // `case value when …` compares.
    if (word === 'when' && this.words[0] !== 'when') return yield this.replace(at + 1, last, 'null');
    if (this.lastAfter(at) === last) yield this.replace(at + 1, last, 'true');
    if (word !== 'where' && word !== 'on') yield this.replace(at + 1, last, 'false');
  }

  private *locks(at: number): Generator<Change> {
    if (this.words[at] !== 'for') return;
    let last = at;
    while (/^(?:no|key|update|of|\w|skip|locked)$/.test(this.words[last + 1] ?? '')) last += 1;
    yield this.replace(at, last, '');
    if (this.words[last] === 'locked') yield this.replace(last - 1, last, '');
  }

  private *operators(at: number): Generator<Change> {
    const word = this.words[at] ?? '';
    const before = this.words[at - 1] ?? '';
    if (/^[-+*/]$/.test(word) && at > 0 && !clauses.has(before)) {
      let last = this.lastOfOperand(at + 1);
      while (/^[-+]$/.test(word) && /^[*/]$/.test(this.words[last + 1] ?? '')) last = this.lastOfOperand(last + 2);
      yield this.replace(at, last, '');
    }
    if (/^(?:coalesce|least|greatest)$/.test(word)) {
      const items = this.itemsOf(this.nodes[at + 1]);
      for (const item of items) {
        const rest = items.filter((other) => other !== item).map(({ start, end }) => this.sql.slice(start, end));
        yield this.replace(at, at + 1, rest.length === 1 ? `(${rest[0]})` : `${word}(${rest.join(', ')})`);
      }
    }
  }

  private *lists(at: number): Generator<Change> {
    if (this.words[at] === 'in') {
      const items = this.itemsOf(this.nodes[at + 1]);
      if (items.length > 1 && this.nodes[at + 1]?.inner?.[0]?.word !== 'select')
        for (const item of items) yield this.withoutItem(items, item);
    }
    if (this.words[at] === 'by') yield* this.keys(at);
  }

  private *keys(at: number): Generator<Change> {
    const keys = split(this.nodes.slice(at + 1, this.lastAfter(at, [',']) + 1));
    const [first] = keys;
    if (keys.length > 1) for (const key of keys) if (!this.slice(key).endsWith('id')) yield this.withoutItem(keys, key);
    if (first !== undefined && this.words[at - 1] === 'order' && !/ (?:desc|asc)\b/.test(this.slice(first)))
      yield { ...first, by: `${this.slice(first)} desc` };
  }

  private *assignments(at: number): Generator<Change> {
    if (this.words[at] === ':=') yield this.replace(at - 1, this.lastAfter(at), 'null');
    if (this.words[at] !== 'set') return;
    const last = this.lastAfter(at, [',', 'assigns', 'and', 'or']);
    const columns = split(this.nodes.slice(at + 1, last + 1));
    for (const column of columns) {
      if (columns.length > 1) yield this.withoutItem(columns, column);
      else yield this.replace(at + 3, last, `${this.words[at - 1]}.${this.words[at + 1]}`);
    }
  }

  private withoutItem(items: readonly Change[], item: Change): Change {
    const index = items.indexOf(item);
    const next = items[index + 1];
    if (next !== undefined) return { start: item.start, end: next.start, by: '' };
    return { start: items[index - 1]?.end ?? item.start, end: item.end, by: '' };
  }

  private itemsOf = (group: Node | undefined) => split(group?.inner ?? []);
  private slice = ({ start, end }: Change) => this.sql.slice(start, end);

  private replace(first: number, last: number, by: string): Change {
    return { start: this.nodes[first]?.start ?? 0, end: this.nodes[last]?.end ?? 0, by };
  }

  private isClause(at: number, within: readonly string[]): boolean {
    const word = this.words[at] ?? ';';
    if (within.includes(word)) return false;
    return clauses.has(word) && !(word === 'from' && this.words[at - 1] === 'distinct');
  }

  private lastAfter(at: number, within: readonly string[] = []): number {
    let last = at;
    while (!this.isClause(last + 1, within)) last += 1;
    return last;
  }

  private firstBefore(at: number, within: readonly string[] = []): number {
    let first = at;
    while (!this.isClause(first - 1, within)) first -= 1;
    return first;
  }

  /** The last node of `name`, `name(…)[…]::type`, `(…)` or `interval '…'`. */
  private lastOfOperand(at: number): number {
    let last = this.words[at] === 'interval' ? at + 1 : at;
    for (;;) {
      if (this.words[last + 1] === '::') last += 2;
      else if (/^(?:[([]|over)$/.test(this.words[last + 1] ?? '')) last += 1;
      else return last;
    }
  }
}

/** Splits what stands between commas. */
function split(nodes: readonly Node[]): Change[] {
  const items: Change[] = [];
  let isNew = true;
  for (const { word, start, end } of nodes) {
    const item = items.at(-1);
    if (word === ',') isNew = true;
    else if (isNew || item === undefined) {
      items.push({ start, end, by: '' });
      isNew = false;
    } else item.end = end;
  }
  return items;
}
