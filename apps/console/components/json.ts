import { type Html, html } from '#runtime/pages/html.ts';
import { foreignText } from './foreign-text.ts';

/** One token of JSON: a string, a number or word, a bracket, a separator, or space. */
const token = /"(?:[^"\\]|\\.)*"|[-+.\w]+|[[\]{}]|[,:]|\s+/gy;

/**
 * Returns JSON in indented lines with colors, or null for text that is not JSON. Only space differs
 * from the text: numbers, escapes and repeated names stay as they are.
 */
export function highlightJson(text: string): Html | null {
  if (!isJson(text)) return null;
  const parts: (Html | string)[] = [];
  const tokens = (text.match(token) ?? []).filter((each) => each.trim() !== '');
  let depth = 0;
  for (const [index, each] of tokens.entries()) {
    const [previous = '', next = ''] = [tokens[index - 1], tokens[index + 1]];
    if (isClosing(each)) depth -= 1;
    if (isClosing(each) && !isOpening(previous)) parts.push(newLine(depth));
    parts.push(renderToken(each, next));
    if (isOpening(each)) depth += 1;
    if (each === ',' || (isOpening(each) && !isClosing(next))) parts.push(newLine(depth));
  }
  return html`${parts}`;
}

const isOpening = (each: string): boolean => each === '{' || each === '[';
const isClosing = (each: string): boolean => each === '}' || each === ']';
const newLine = (depth: number): string => `\n${'  '.repeat(depth)}`;

function renderToken(each: string, next: string): Html | string {
  if (each === ':') return ': ';
  if (/^[[\]{},]$/.test(each)) return each;
  if (!each.startsWith('"')) return html`<span class="value">${each}</span>`;
  return html`<span class="${next === ':' ? 'name' : 'string'}">${foreignText(each)}</span>`;
}

function isJson(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null;
  } catch {
    return false;
  }
}
