import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { z } from 'zod';
import { eventData, eventEnvelope, eventTypes } from '#domain/contract/events.ts';

const file = path.join(import.meta.dirname, '../../../apps/clients/receiver-typescript/src/events.ts');
const source = readFileSync(file, 'utf8');

it('the TypeScript kit has each event type of the contract, with its members and known values', () => {
  const aliases = [...source.matchAll(/^type (\w+) = (Open<.*>);$/gm)];
  const text = aliases.reduce((so, [, alias = '', type = '']) => so.replaceAll(`: ${alias}`, `: ${type}`), source);
  const found = [...text.matchAll(/\| Envelope<'(.+?)', \{ (.+?) \}>/g)].map(([, type, members]) => [type, members]);
  const expected = eventTypes.map((type) => {
    const { properties = {} } = z.toJSONSchema(eventData[type]) as { properties?: Record<string, { enum?: string[] }> };
    const members = Object.entries(properties).map(([name, { enum: values }]) => {
      const known = values?.map((value) => `'${value}'`).join(' | ');
      return `${name}: ${known === undefined ? 'string' : `Open<${known}>`}`;
    });
    return [type, members.join('; ')];
  });
  expect(found).toEqual(expected);
  const [, envelope = ''] = /^interface Envelope[^{]*\{\n(.*?)^\}/ms.exec(source) ?? [];
  const members = [...envelope.matchAll(/^ {2}(\w+)\??:/gm)].map(([, name]) => name);
  for (const type of eventTypes) expect(members).toEqual(Object.keys(eventEnvelope(type).shape));
});
