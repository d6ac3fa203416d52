import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { type Html, trusted } from '#runtime/pages/html.ts';

/** The icons of Heroicons (MIT) that pages use, by their names here and there. */
const files = {
  overview: 'home',
  keys: 'key',
  webhooks: 'bolt',
  deliveries: 'paper-airplane',
  usage: 'chart-bar',
  members: 'users',
  signIn: 'finger-print',
  clients: 'briefcase',
  auditLog: 'clock',
  settings: 'cog-6-tooth',
  organization: 'building-office',
  account: 'user-circle',
  open: 'chevron-down',
  add: 'plus',
  good: 'check-circle',
  warning: 'exclamation-triangle',
  bad: 'x-circle',
  info: 'information-circle',
  paused: 'pause-circle',
  search: 'magnifying-glass',
  copy: 'square-2-stack',
  copied: 'check',
} as const;

export type IconName = keyof typeof files;

const require = createRequire(import.meta.url);

const icons = new Map(Object.entries(files).map(([name, file]) => [name, readIcon(file)]));

/** Renders an icon in the color of its text, hidden from screen readers. `kind` colors it. */
export function icon(name: IconName, kind: 'good' | 'warning' | 'bad' | '' = ''): Html {
  return trusted(
    `<svg class="icon${kind && ` ${kind}`}" viewBox="0 0 16 16" aria-hidden="true">${icons.get(name)}</svg>`,
  );
}

/** Returns the shapes of an icon without the element around them. */
function readIcon(file: string): string {
  const text = readFileSync(require.resolve(`heroicons/16/solid/${file}.svg`), 'utf8');
  const shapes = text.slice(text.indexOf('>') + 1, text.lastIndexOf('</svg>'));
  return shapes.replace(/\s*\n\s*/g, '').replaceAll('<path ', '<path fill="currentColor" ');
}
