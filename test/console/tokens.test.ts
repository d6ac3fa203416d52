/** The contrast of the design tokens (WCAG 2.2, 1.4.3 and 1.4.11). */
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { contrast } from './contrast.ts';

const css = readFileSync(new URL('../../apps/runtime/pages/tokens.css', import.meta.url), 'utf8');
const [light = '', dark = ''] = css.split('@media screen and (prefers-color-scheme: dark)');
const listColors = (text: string) =>
  Object.fromEntries([...text.matchAll(/--([\w-]+): #([0-9a-f]{6});/g)].map(([, name, color]) => [name, color]));
const schemes = { light: listColors(light), dark: { ...listColors(light), ...listColors(dark) } };

const grounds = ['surface', 'surface-sunken', 'surface-raised'];
/** Pairs of colors and their backgrounds. */
const texts: [color: string, grounds: string[]][] = [
  ...['ink', 'ink-muted', 'accent', 'danger', 'bad'].map((color): [string, string[]] => [color, grounds]),
  ...['good', 'bad', 'warning', 'info'].map((color): [string, string[]] => [color, [`${color}-ground`]]),
  ['accent', ['accent-ground']],
  ['on-accent', ['accent', 'accent-hover', 'danger', 'danger-hover']],
  ...['code-name', 'code-string', 'code-value'].map((color): [string, string[]] => [color, ['surface-sunken']]),
];
const parts: [color: string, grounds: string[]][] = [
  ['focus', grounds],
  ['line-strong', grounds],
  ...['good', 'late', 'open', 'failing', 'held', 'bad', 'quiet'].map((name): [string, string[]] => [
    `chart-${name}`,
    ['surface'],
  ]),
  ...['dns', 'connect', 'tls', 'wait'].map((name): [string, string[]] => [`step-${name}`, ['surface']]),
];

/** Returns the pairs below `least`, in either scheme. */
const faint = (pairs: typeof texts, least: number) =>
  Object.entries(schemes).flatMap(([scheme, colors]) =>
    pairs.flatMap(([color, all]) =>
      all.flatMap((ground) => {
        const found = contrast(Buffer.from(colors[color] ?? '', 'hex'), Buffer.from(colors[ground] ?? '', 'hex'));
        return found >= least ? [] : [[scheme, color, ground, found]];
      }),
    ),
  );

it('text has a contrast of 4.5:1 or more on its ground, light and dark', () => {
  expect(faint(texts, 4.5)).toEqual([]);
});

it('borders of fields, charts and the focus ring have a contrast of 3:1 or more, light and dark', () => {
  expect(faint(parts, 3)).toEqual([]);
});
