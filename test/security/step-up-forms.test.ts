/** What every form keeps when it is asked for the second factor first. */
import { describe, expect, it } from 'vitest';
import { unescaped } from '#test/http-visitor.ts';
import { routes } from '../../apps/console/routes.ts';
import type { Route } from '../../apps/console/web/route.ts';
import { buildRequest, pathWith, readToken, send } from './console/requests.ts';
import { copyScenes, type Scene } from './console/scene.ts';

const copy = copyScenes('Harbor');
const timeout = 180_000;
const secretNames = new Set(['clientSecret', 'value', 'oldPassword', 'newPassword']);
const forms = routes.filter(({ method, stepUp }) => method === 'POST' && stepUp);

const read = (tag: string, name: string) => unescaped(new RegExp(` ${name}="([^"]*)"`).exec(tag)?.[1] ?? '');

/** The forms of a page for a path. */
const formsFor = (text: string, action: string) =>
  (text.match(/<form method="post"[\s\S]*?<\/form>/g) ?? []).filter((form) => read(form, 'action') === action);

type Fields = Record<string, string[]>;

function add(fields: Fields, name: string, value: string): void {
  fields[name] = [...(fields[name] ?? []), value];
}

/** The hidden fields of forms by name. */
function readHidden(text: string): Fields {
  const fields: Fields = {};
  for (const [tag] of text.matchAll(/<input type="hidden"[^>]*>/g)) add(fields, read(tag, 'name'), read(tag, 'value'));
  return fields;
}

/** The fields of forms that people see, by name, as a browser would send them. */
function readShown(text: string): Fields {
  const fields: Fields = {};
  for (const [tag] of text.matchAll(/<input (?!type="hidden")[^>]*>/g)) {
    const isBox = /^(checkbox|radio)$/.test(read(tag, 'type'));
    if (isBox && !/ checked/.test(tag)) fields[read(tag, 'name')] ??= [];
    else add(fields, read(tag, 'name'), read(tag, 'value') || (isBox ? 'on' : ''));
  }
  for (const [, tag = '', content = ''] of text.matchAll(/(<textarea [^>]*>)\n?([^<]*)/g))
    add(fields, read(tag, 'name'), unescaped(content));
  for (const [, tag = '', content = ''] of text.matchAll(/(<select [^>]*>)([\s\S]*?)<\/select>/g))
    add(fields, read(tag, 'name'), /<option value="([^"]*)"[^>]* selected/.exec(content)?.[1] ?? '');
  return fields;
}

/** The fields that the form of a route sends in a scene, in lists, without secrets. */
const keptFields = (route: Route, scene: Scene) =>
  Object.entries(buildRequest(route, scene).fields)
    .filter(([name]) => !secretNames.has(name))
    .map(([name, value]) => [name, [value].flat()] as const);

describe('a form that is asked for the second factor', () => {
  it.each(forms.map((route) => [route.name, route] as const))(
    '%s keeps its input',
    { timeout },
    async (_name, route) => {
      const { t, scenes } = await copy();
      const [mine] = scenes;
      const visitor = t.http(mine.owner);
      const action = pathWith(route, buildRequest(route, mine).params);
      t.pass(6 * 60_000);
      const asked = await send(visitor, route, buildRequest(route, mine), { _token: await readToken(visitor) });
      expect(asked.text).toContain('<h1>Confirm your identity</h1>');
      const kept = keptFields(route, mine);
      const carried = readHidden(formsFor(asked.text, action).at(-1) ?? '');
      for (const [name, values] of kept) expect([name, carried[name]]).toEqual([name, values]);
      for (const name of secretNames) expect(carried).not.toHaveProperty(name);

      // Of a form with passwords alone, the page is opened again.
      if (kept.length === 0 && Object.keys(buildRequest(route, mine).fields).length > 0) return;
      const cancelled = await visitor.post(action, { ...carried, _cancel: 'yes' });
      expect([cancelled.status, cancelled.text.includes('Confirm your identity')]).toEqual([200, false]);
      expect(cancelled.text).not.toMatch(/aria-invalid="true"|<small class="problem"/);
      const shown = readShown(formsFor(cancelled.text, action).join(''));
      for (const [name, values] of kept) if (name in shown) expect([name, shown[name]]).toEqual([name, values]);
    },
  );
});
