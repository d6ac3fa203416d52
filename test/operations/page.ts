import path from 'node:path';
import { type Page, readPage } from '#test/documents.ts';

/** What carries out the blocks of a page that match a pattern. It gets the command or statement. */
export type Step = [pattern: RegExp, carryOut: (text: string) => unknown];

const guide = path.resolve(import.meta.dirname, '../../docs/operations');

/** Returns a section of a page of the guide, by its heading. @throws Error when there is none. */
export function readSection(name: string, heading: string): Page {
  const { file, text } = readPage(path.join(guide, name));
  const section = text.split(/^(?=## )/m).find((one) => one.startsWith(`## ${heading}\n`));
  if (section === undefined) throw new Error(`${name} has no section ${heading}`);
  return { file, text: section };
}

/**
 * Carries out a section as a reader does: each line of its shell blocks, each statement of its SQL
 * blocks and each of its files, in the order of the page. It ends with the first that fails, as lines
 * joined by `&&` do.
 *
 * @throws Error for a block that no step carries out, and for a step that no block needs.
 */
export async function carryOut(section: Page, steps: readonly Step[]): Promise<void> {
  const unused = new Set(steps);
  for (const text of blocksInOrder(section)) {
    const step = steps.find(([pattern]) => pattern.test(text));
    if (step === undefined) throw new Error(`no step of the test carries out: ${text}`);
    unused.delete(step);
    await step[1](text);
  }
  if (unused.size > 0) throw new Error(`the page has no command ${[...unused].map(([pattern]) => pattern).join(', ')}`);
}

function blocksInOrder({ text }: Page): string[] {
  const blocks = text.matchAll(/^( *)```(sh|sql|yaml)\n([\s\S]*?)^ *```/gm);
  return [...blocks].flatMap(([, indent = '', language, body = '']) => {
    const block = body.replace(new RegExp(`^${indent}`, 'gm'), '').trim();
    return language === 'sh' ? block.replace(/\\\n\s*/g, ' ').split(/(?: &&)?\n/) : [block];
  });
}

/** Nothing is to be done in a test, for the reason that the caller gives. */
export const without = (_reason: string) => () => {};
