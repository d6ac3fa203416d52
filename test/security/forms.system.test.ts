/** Every form of the console, each of its declared fields with hostile values. */
import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { HttpVisitor } from '#test/http-visitor.ts';
import { routes } from '../../apps/console/routes.ts';
import type { Route } from '../../apps/console/web/route.ts';
import { filledForms } from '../console/hostile/forms.ts';
import { arrange, type Scene } from '../console/hostile/scene.ts';
import { fingerprintTables } from '../console/hostile/tables.ts';
import { pathWith, requestOf, tokenOf } from '../console/hostile/walk.ts';
import { setupConsole } from '../console/setup.ts';
import { listErrors, reportTried, seed, tries } from './tried.ts';

const tried = reportTried('forms of the console');
const forms = routes.filter(({ method, schema }) => method === 'POST' && Object.keys(schema.shape).length > 0);

/** Is escaped where it is text, and ends an attribute or begins an element where it is not. */
const canary = (number: number) => `"'><b${number}>&lt;\``;
const nasty = [
  '\u0000',
  '\u202E\u2066',
  '\uD800',
  '%00%ff',
  'a\r\nSet-Cookie: b=c',
  "'; drop table person; --",
  '=1+1',
  '../../x',
  'javascript:alert(1)',
  'https://[::1]/',
  '9999-12-31',
  '-1',
  '1e400',
  '__proto__',
  '',
  '😀'.repeat(3_000),
];
const values = fc.oneof(
  fc.constantFrom(...nasty),
  fc.string({ unit: 'binary', maxLength: 60 }),
  fc.uuid(),
  fc.array(fc.constantFrom(...nasty, 'org.read', 'owner'), { maxLength: 4 }),
);

it('no hostile value in a field breaks a form, is shown unescaped, or is written when the form is rejected', async () => {
  const t = await setupConsole();
  const mine = await arrange(t, 'Harbor');
  const visitor = t.http(mine.owner);
  const stranger = t.http();
  const fields = forms.flatMap((route) => Object.keys(route.schema.shape).map((name) => ({ route, name })));
  expect(fields.length).toBeGreaterThan(50);
  const tables: Sending['tables'] = { known: null };
  const samples = fc.sample(values, { numRuns: fields.length * tries(5), seed });
  for (const [index, value] of samples.entries()) {
    const { route, name } = fields[index % fields.length] as (typeof fields)[number];
    const isMember = route.access === 'member' || route.access === 'person';
    const marked = index % 3 === 0 ? canary(index) : value;
    const sender = isMember ? visitor : stranger;
    await expectHarmless({ t, sender, route, mine, isMember, tables }, { [name]: marked }, `<b${index}>`);
    tried('forms');
  }
  expect(listErrors(t.logLines)).toEqual([]);
}, 240_000);

interface Sending {
  t: Awaited<ReturnType<typeof setupConsole>>;
  sender: HttpVisitor;
  route: Route;
  mine: Scene;
  isMember: boolean;
  /** What they contained after the last form, if it was rejected. */
  tables: { known: Record<string, string> | null };
}

async function expectHarmless(
  { t, sender, route, mine, isMember, tables }: Sending,
  hostile: Record<string, string | string[]>,
  element: string,
): Promise<void> {
  const { params, fields } = filledForms[route.name] ? requestOf(route, mine) : { params: {}, fields: {} };
  const _token = isMember ? await tokenOf(sender) : '';
  const before = tables.known ?? (await fingerprintTables(t.owner.pool));
  tables.known = null;
  const response = await sender.post(pathWith(route, params), { _form: randomUUID(), ...fields, _token, ...hostile });
  const what = [route.name, hostile];
  expect([what, response.status < 500]).toEqual([what, true]);
  expect([what, response.text.includes(element)]).toEqual([what, false]);
  expect([what, response.headers.get('set-cookie')?.includes('b=c') ?? false]).toEqual([what, false]);
  if (response.status >= 400) {
    const { audit_entry: _before, ...kept } = before;
    const after = await fingerprintTables(t.owner.pool);
    expect([what, { ...after, audit_entry: undefined }]).toEqual([what, kept]);
    tables.known = after;
  }
}
